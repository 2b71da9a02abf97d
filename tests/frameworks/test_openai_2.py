"""The HTTP transport with openai 2.x, whose clients are those of httpx."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import openai
import pytest

import reasoning_store as rs
from reasoning_store.integrations import http
from tests.docs.provider import Provider
from tests.integrations.loops import STEPS, chat_loop, responses_loop

LOOPS: dict[str, tuple[Any, str, str]] = {
    "chat": (chat_loop, "deepseek", "deepseek-flash"),
    "responses": (responses_loop, "openai", "gpt-5"),
}


def options(provider: Provider) -> dict[str, Any]:
    return {"api_key": "k", "base_url": f"{provider.address}/v1", "max_retries": 0}


def test_it_is_a_client_of_that_version() -> None:
    """The environment has openai 2."""
    assert openai.__version__.startswith("2.")
    assert issubclass(openai.DefaultHttpxClient, httpx.Client)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_of_twenty_steps_passes(
    store: rs.Store, provider: Provider, name: str, streamed: bool
) -> None:
    """The thinking that the client loses goes back."""
    loop, host, model = LOOPS[name]
    kept = http.client(store, provider=host, module="httpx")
    with openai.OpenAI(**options(provider), http_client=kept) as client:
        answer = loop(client, model, streamed=streamed)
    (session,) = store.sessions().items

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert session.head() == 2 + 2 * STEPS


def test_an_asynchronous_client_passes(store: rs.Store, provider: Provider) -> None:
    """Two turns with a call that is answered."""

    async def run() -> None:
        kept = http.async_client(store, provider="deepseek", module="httpx")
        messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
        async with openai.AsyncOpenAI(**options(provider), http_client=kept) as client:
            for _ in range(2):
                reply = await client.chat.completions.create(
                    model="deepseek-flash", messages=messages
                )
                (call,) = reply.choices[0].message.tool_calls or ()
                function: Any = getattr(call, "function", None)
                named = {"name": function.name, "arguments": function.arguments}
                calls = [{"id": call.id, "type": "function", "function": named}]
                messages += [
                    {"role": "assistant", "tool_calls": calls},
                    {"role": "tool", "tool_call_id": call.id, "content": "4 C"},
                ]

    asyncio.run(run())
    assert provider.refused == []


def test_without_the_transport_the_same_loop_is_refused(provider: Provider) -> None:
    """The client drops the thinking."""
    with (
        openai.OpenAI(**options(provider)) as client,
        pytest.raises(openai.BadRequestError, match="reasoning_content"),
    ):
        chat_loop(client, "deepseek-flash", streamed=False)
