"""LlamaIndex's models of OpenAI's protocols through the HTTP transport."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

import reasoning_store as rs
from reasoning_store.integrations import http
from tests.docs.provider import Provider
from tests.integrations.loops import STEPS, thoughts_in

CHAT = {"is_chat_model": True, "is_function_calling_model": True}
RESPONSES = {"include": ["reasoning.encrypted_content"]}
MODELS: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
    "OpenAI chat at DeepSeek": (OpenAILike, "deepseek-flash", "deepseek", CHAT),
    "OpenAI chat at Kimi": (OpenAILike, "kimi-k2-thinking", "moonshot", CHAT),
    "OpenAIResponses": (OpenAIResponses, "gpt-5", "openai", RESPONSES),
}
NAMES = pytest.mark.parametrize("name", MODELS)


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


def run_loop(name: str, provider: Provider, *, streamed: bool = False, **options: Any) -> str:
    """Run a turn with tools; the messages go back as the model class returned them."""
    kind, model, _, own = MODELS[name]
    llm = kind(
        model=model,
        api_key="k",
        api_base=f"{provider.address}/v1",
        max_retries=0,
        **own,
        **options,
    )
    tools = [FunctionTool.from_defaults(get_weather)]
    messages = [ChatMessage("How is the weather?")]
    while True:
        if streamed:
            *_, reply = llm.stream_chat_with_tools(tools, chat_history=messages)
        else:
            reply = llm.chat_with_tools(tools, chat_history=messages)
        messages.append(reply.message)
        calls = llm.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        if not calls:
            return reply.message.content or ""
        messages += [
            ChatMessage(
                role="tool", content="4 C", additional_kwargs={"tool_call_id": call.tool_id}
            )
            for call in calls
        ]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@NAMES
def test_a_loop_of_twenty_steps_passes(provider: Provider, name: str, streamed: bool) -> None:
    """The thinking is in the store, and goes back where the provider demands it."""
    with rs.Store("sqlite://") as store:
        kept = http.client(store, provider=MODELS[name][2], module="httpx")
        answer = run_loop(name, provider, streamed=streamed, http_client=kept)
        (session,) = store.sessions().items
        history = session.history()

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert len(history) == 2 + 2 * STEPS
    assert [thoughts_in(asked.body) for asked in provider.asked] == [*range(STEPS + 1)]


@pytest.mark.parametrize("name", ["OpenAI chat at DeepSeek", "OpenAI chat at Kimi"])
def test_without_the_transport_the_same_loop_is_refused(provider: Provider, name: str) -> None:
    """The model class leaves the thinking out."""
    with pytest.raises(openai.BadRequestError, match="reasoning_content"):
        run_loop(name, provider)


def test_without_the_transport_responses_gets_no_reasoning(provider: Provider) -> None:
    """The service takes calls that come without their ids and without reasoning."""
    run_loop("OpenAIResponses", provider)

    assert provider.refused == []
    assert [thoughts_in(asked.body) for asked in provider.asked] == [0] * (STEPS + 1)
