"""Haystack's chat generator through the HTTP transport."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

import reasoning_store as rs
from reasoning_store.integrations import http
from tests.docs.provider import Provider
from tests.integrations.loops import STEPS

MODELS = {"deepseek": "deepseek-flash", "moonshot": "kimi-k2-thinking"}
HOSTS = pytest.mark.parametrize("host", MODELS)


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


def run_agent(provider: Provider, host: str, *, streamed: bool = False, **options: Any) -> str:
    """Run two turns of an agent, which keeps its messages itself."""
    generator = OpenAIChatGenerator(
        api_key=Secret.from_token("k"),
        model=MODELS[host],
        api_base_url=f"{provider.address}/v1",
        max_retries=0,
        streaming_callback=(lambda piece: None) if streamed else None,
        **options,
    )
    agent = Agent(chat_generator=generator, tools=[create_tool_from_function(get_weather)])
    messages: list[ChatMessage] = []
    for text in ("How is the weather?", "And now?"):
        messages = agent.run(messages=[*messages, ChatMessage.from_user(text)])["messages"]
    return messages[-1].text or ""


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@HOSTS
def test_an_agent_of_forty_steps_passes(provider: Provider, host: str, streamed: bool) -> None:
    """The thinking is in the store, and goes back where the provider demands it."""
    with rs.Store("sqlite://") as store:
        kept = http.transport(store, httpx.HTTPTransport(), provider=host)
        answer = run_agent(
            provider, host, streamed=streamed, http_client_kwargs={"transport": kept}
        )
        (session,) = store.sessions().items
        history = session.history()

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert len(history) == 2 * (2 + 2 * STEPS)


@HOSTS
def test_without_the_transport_the_same_agent_is_refused(provider: Provider, host: str) -> None:
    """The generator leaves the thinking out."""
    with pytest.raises(openai.BadRequestError, match="reasoning_content"):
        run_agent(provider, host)
