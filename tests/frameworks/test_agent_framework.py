"""Microsoft's Agent Framework on the store.

Its own tests of history providers are in no published package: these promises are those of its
base class.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, Message

import reasoning_store as rs
from reasoning_store.integrations.agent_framework import StoredHistoryProvider, read_message
from tests.frameworks import pages

THOUGHT: Final = "Oslo is cold in winter, so a tool is needed."
SEAL: Final = "a seal of the thought"


def messages() -> list[Message]:
    """Return a message of each kind."""
    thought = Content.from_text_reasoning(text=THOUGHT, protected_data=SEAL)
    return [
        Message("system", ["Be brief."]),
        Message("user", ["How is it?"], author_name="ann", message_id="m1"),
        Message("user", []),
        Message("user", [Content.from_data(b"\xff" * 40, "image/png")]),
        Message(
            "assistant",
            [
                thought,
                "One moment, please.",
                Content.from_function_call(call_id="c1", name="w", arguments='{"b":  1}'),
            ],
            additional_properties={"score": 0.5},
        ),
        Message("tool", [Content.from_function_result("c1", result="4 C")]),
        Message("assistant", [Content.from_text_reasoning(text=None, protected_data=SEAL)]),
        Message("assistant", ["4 C."]),
    ]


def as_json(given: list[Message]) -> list[dict[str, Any]]:
    return [one.to_dict() for one in given]


def on_provider(
    store: rs.Store, work: Callable[[StoredHistoryProvider], Coroutine[Any, Any, Any]]
) -> Any:
    return asyncio.run(work(StoredHistoryProvider(store)))


def test_messages_come_back_equal(store: rs.Store) -> None:
    """In their order; an absent session has none."""

    async def work(history: StoredHistoryProvider) -> None:
        await history.save_messages("chat-42", messages())
        await history.save_messages("chat-42", [])
        assert as_json(await history.get_messages("chat-42")) == as_json(messages())
        assert await history.get_messages("chat-43") == await history.get_messages(None) == []

    on_provider(store, work)


def test_a_thought_is_a_block_and_an_erasure_of_reasoning_takes_it(store: rs.Store) -> None:
    """No thought and no seal is in the messages, or anywhere in the session."""

    async def work(history: StoredHistoryProvider) -> Any:
        await history.save_messages("chat-42", messages())
        session = store.session("chat-42")
        (thought,) = session.get(5).message.thinking
        assert (thought.thought, thought.encrypted) == (THOUGHT, SEAL)
        session.erase(only="reasoning")
        return as_json(await history.get_messages("chat-42"))

    left = on_provider(store, work)
    exported = "".join(store.export_lines())

    assert [secret for secret in (THOUGHT, SEAL) if secret in repr(left) + exported] == []
    assert [content["type"] for content in left[4]["contents"]] == ["text", "function_call"]
    assert THOUGHT not in repr(read_message(messages()[4]).metadata)


def test_the_host_that_seals_can_be_named(store: rs.Store) -> None:
    """So a request of the store sends the sealed thought to it."""
    claude = {"provider": "anthropic", "model": "claude-opus-5", "api": "anthropic.messages"}
    history = StoredHistoryProvider(store, **claude)
    asyncio.run(history.save_messages("chat-42", messages()[:6]))
    request = store.session("chat-42").build_request(
        settings={"reasoning.includeInContext": True}, **claude
    )

    assert SEAL in repr(request.body)


def test_messages_without_a_session_are_refused(store: rs.Store) -> None:
    """With the name of what makes one."""
    with pytest.raises(rs.InvalidCall, match="without a session"):
        on_provider(store, lambda history: history.save_messages(None, messages()))


class Client(BaseChatClient):
    """A model that thinks, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        self.asked.append(len(messages))
        thought = Content.from_text_reasoning(text=THOUGHT, protected_data=SEAL)

        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [thought, "4 C."])])

        return answer()


def test_an_agent_finds_its_history_again(store: rs.Store) -> None:
    """Also after the process was restarted: a session is known by its id."""
    client = Client()

    async def work(_: StoredHistoryProvider) -> None:
        for number in range(2):
            agent = Agent(client=client, context_providers=[StoredHistoryProvider(store)])
            session = agent.create_session(session_id="chat-42")
            await agent.run(f"Question {number}?", session=session)

    on_provider(store, work)
    history = store.session("chat-42").history()

    assert [one.message.role for one in history] == ["user", "assistant"] * 2
    assert [block.thought for block in history[1].message.thinking] == [THOUGHT]
    assert client.asked == [1, 3]


@pytest.mark.parametrize("block", pages.blocks("agent_framework"))
def test_the_pages_run(block: pages.Block, tmp_path: Path) -> None:
    """Each example prints what its page says."""
    pages.run(block, tmp_path)
