"""Strands' models of OpenAI's protocols through the HTTP transport."""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.types.exceptions import EventLoopException

import reasoning_store as rs
from reasoning_store.integrations import http
from tests.docs.provider import Provider
from tests.integrations.loops import STEPS, thoughts_in

RESPONSES = {"store": False, "include": ["reasoning.encrypted_content"]}
MODELS: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
    "OpenAIModel at DeepSeek": (OpenAIModel, "deepseek-flash", "deepseek", {}),
    "OpenAIModel at Kimi": (OpenAIModel, "kimi-k2-thinking", "moonshot", {}),
    "OpenAIResponsesModel": (OpenAIResponsesModel, "gpt-5", "openai", RESPONSES),
}
NAMES = pytest.mark.parametrize("name", MODELS)


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


def run_turns(name: str, provider: Provider, **options: Any) -> str:
    """Run two turns of an agent, which keeps its messages itself."""
    kind, model, _, params = MODELS[name]
    at = {"api_key": "k", "base_url": f"{provider.address}/v1", "max_retries": 0, **options}
    chosen = kind(client_args=at, model_id=model, params=params)
    agent = Agent(model=chosen, tools=[get_weather], callback_handler=None)
    for text in ("How is the weather?", "And now?"):
        answer = agent(text)
    return str(answer).strip()


@NAMES
def test_an_agent_of_forty_steps_passes(provider: Provider, name: str) -> None:
    """The thinking is in the store, and goes back where the provider demands it."""
    with rs.Store("sqlite://") as store:
        kept = http.async_client(
            store,
            provider=MODELS[name][2],
            module="httpx",
            headers={"X-Reasoning-Store": "yes"},
        )
        answer = run_turns(name, provider, http_client=kept)
        (session,) = store.sessions().items
        history = session.history()

    assert "Done at" in answer
    assert provider.refused == []
    assert len(history) == 2 * (2 + 2 * STEPS)
    assert [thoughts_in(asked.body) for asked in provider.asked[: STEPS + 1]] == [*range(STEPS + 1)]


@pytest.mark.parametrize("name", ["OpenAIModel at DeepSeek", "OpenAIModel at Kimi"])
def test_without_the_transport_the_same_agent_is_refused(provider: Provider, name: str) -> None:
    """The model leaves the thinking out."""
    with pytest.raises(EventLoopException, match="reasoning_content"):
        run_turns(name, provider)


def test_without_the_transport_responses_gets_no_reasoning(provider: Provider) -> None:
    """The service takes calls that come without their ids and without reasoning."""
    run_turns("OpenAIResponsesModel", provider)

    assert provider.refused == []
    assert [thoughts_in(asked.body) for asked in provider.asked] == [0] * len(provider.asked)


@pytest.mark.parametrize("passes", [True, False], ids=["with", "without"])
def test_claudes_thoughts_are_sent_as_they_came(provider: Provider, passes: bool) -> None:
    """``AnthropicModel`` keeps them itself; the transport changes none of them."""
    with rs.Store("sqlite://") as store:
        options = {"http_client": http.async_client(store, module="httpx")} if passes else {}
        model = AnthropicModel(
            client_args={"api_key": "k", "base_url": provider.address, "max_retries": 0, **options},
            model_id="claude-sonnet-4-6",
            max_tokens=4096,
            params={"thinking": {"type": "enabled", "budget_tokens": 1024}},
        )
        answer = Agent(model=model, tools=[get_weather], callback_handler=None)("How is it?")

    assert "Done at" in str(answer)
    assert provider.refused == []
    assert thoughts_in(provider.asked[-1].body) == STEPS
