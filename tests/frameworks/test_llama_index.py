"""LlamaIndex on the store.

Its own chat store tests are in no published package: these promises are those of its base class.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

import reasoning_store as rs
from reasoning_store.integrations.llama_index import StoredChatStore, read_message
from tests.frameworks import pages

THOUGHT: Final = "Oslo is cold in winter, so a tool is needed."
SEAL: Final = "a seal of the thought"
ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED
MESSAGES: Final = [
    ChatMessage(role="system", content="Be brief."),
    ChatMessage(role="user", content="How is it?"),
    ChatMessage(role="user", content=""),
    ChatMessage(
        role="user",
        blocks=[TextBlock(text="See this."), ImageBlock(image=b"aVZC", image_mimetype="image/png")],
    ),
    ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(
                content=THOUGHT, num_tokens=9, additional_information={"signature": SEAL}
            ),
            TextBlock(text="One moment, please."),
            ToolCallBlock(tool_call_id="c1", tool_name="w", tool_kwargs={"b": None, "a": 1.0}),
        ],
    ),
    ChatMessage(role="tool", content="4 C", additional_kwargs={"tool_call_id": "c1", "name": "w"}),
    ChatMessage(
        role="assistant",
        content="4 C.",
        additional_kwargs={"reasoning_content": THOUGHT, "tool_calls": [], "score": 0.5},
    ),
    ChatMessage(role="developer", content="Another."),
    ChatMessage(role="assistant", content=None),
]


def on_chat_store(
    store: rs.Store, work: Callable[[StoredChatStore], Coroutine[Any, Any, Any]]
) -> Any:
    return asyncio.run(work(StoredChatStore(store)))


def numbered(*numbers: int) -> list[ChatMessage]:
    return [ChatMessage(role="user", content=f"message {number}") for number in numbers]


def test_messages_come_back_equal(store: rs.Store) -> None:
    """In their order, with their roles, blocks and fields."""

    async def work(chats: StoredChatStore) -> None:
        await chats.add_messages("chat-42", MESSAGES)
        assert await chats.get_messages("chat-42") == MESSAGES
        assert await chats.count_messages("chat-42") == len(MESSAGES)
        assert await chats.get_messages("chat-43") == []

    on_chat_store(store, work)


def test_a_thought_is_a_block_and_an_erasure_of_reasoning_takes_it(store: rs.Store) -> None:
    """No thought and no seal is in the messages, or anywhere in the session."""

    async def work(chats: StoredChatStore) -> Any:
        await chats.add_messages("chat-42", MESSAGES)
        session = store.session("chat-42")
        thoughts = [block.thought for one in session.history() for block in one.message.thinking]
        assert thoughts == [THOUGHT] * 2
        session.erase(only="reasoning")
        return await chats.get_messages("chat-42")

    left = on_chat_store(store, work)
    exported = "".join(store.export_lines())

    assert [secret for secret in (THOUGHT, SEAL) if secret in repr(left) + exported] == []
    assert [one.content for one in left] == [one.content for one in MESSAGES]
    assert THOUGHT not in repr(read_message(MESSAGES[4]).metadata)


def test_a_window_is_of_the_oldest_messages(store: rs.Store) -> None:
    """By offset and limit, of one status or of both."""

    async def work(chats: StoredChatStore) -> None:
        given = numbered(1, 2, 3, 4, 5)
        await chats.add_messages("chat-42", given)
        assert await chats.get_messages("chat-42", limit=2) == given[:2]
        assert await chats.get_messages("chat-42", limit=2, offset=1) == given[1:3]
        assert await chats.get_messages("chat-42", offset=2) == given[2:]

    on_chat_store(store, work)


def test_the_oldest_messages_are_archived(store: rs.Store) -> None:
    """They are moved, not removed; ones that were added as archived stay so."""

    async def work(chats: StoredChatStore) -> None:
        given = numbered(1, 2, 3, 4)
        await chats.add_message("chat-42", given[0], ARCHIVED)
        await chats.add_messages("chat-42", given[1:])
        moved = await chats.archive_oldest_messages("chat-42", 2)
        assert moved == given[1:3]
        assert await chats.archive_oldest_messages("chat-42", 0) == []
        assert await chats.get_messages("chat-42") == given[3:]
        assert await chats.get_messages("chat-42", ARCHIVED) == given[:3]
        assert await chats.get_messages("chat-42", None) == given
        assert await chats.count_messages("chat-42", ARCHIVED) == 3

    on_chat_store(store, work)


def test_messages_are_taken_out_and_replaced_and_the_others_keep_their_status(
    store: rs.Store,
) -> None:
    """The old course stays on its branch until the messages are deleted."""

    async def work(chats: StoredChatStore) -> None:
        given = numbered(1, 2, 3, 4, 5)
        await chats.add_messages("chat-42", given)
        await chats.archive_oldest_messages("chat-42", 1)
        assert await chats.delete_message("chat-42", 1) == given[2]
        assert await chats.delete_message("chat-42", 9) is None
        assert await chats.delete_oldest_messages("chat-42", 1) == [given[1]]
        assert await chats.get_messages("chat-42") == given[3:]
        assert await chats.get_messages("chat-42", ARCHIVED) == given[:1]
        await chats.set_messages("chat-42", numbered(6))
        assert await chats.get_messages("chat-42", None) == [given[0], *numbered(6)]
        await chats.delete_messages("chat-42", ACTIVE)
        assert await chats.get_messages("chat-42", None) == given[:1]
        assert len(store.session("chat-42").branches()) > 1
        await chats.delete_messages("chat-42")
        assert await chats.get_messages("chat-42", None) == []
        assert len(store.session("chat-42").branches()) == 1

    on_chat_store(store, work)


def test_the_keys_are_the_sessions_with_messages(store: rs.Store) -> None:
    """One that was emptied is none of them."""

    async def work(chats: StoredChatStore) -> None:
        for key in ("a", "b", "c"):
            await chats.set_messages(key, numbered(1))
        await chats.delete_messages("b")
        await chats.delete_messages("never")
        assert sorted(await chats.get_keys()) == ["a", "c"]

    on_chat_store(store, work)


def test_a_memory_flushes_into_the_archive(store: rs.Store) -> None:
    """Of a token limit, the recent messages stay active, and none is lost."""

    async def work(chats: StoredChatStore) -> None:
        memory = Memory.from_defaults(
            session_id="chat-42",
            chat_store=chats,
            token_limit=60,
            chat_history_token_ratio=0.5,
            token_flush_size=20,
        )
        given = numbered(*range(20))
        for one in given:
            await memory.aput(one)
        active = await chats.get_messages("chat-42")
        assert 0 < len(active) < len(given)
        assert await chats.get_messages("chat-42", None) == given
        assert (await memory.aget())[-1] == given[-1]

    on_chat_store(store, work)


def test_a_session_that_was_recorded_is_read(store: rs.Store) -> None:
    """Its thoughts are thinking blocks with their seal."""
    thought = rs.ThinkingBlock(thought=THOUGHT, signature=SEAL)
    call = rs.ToolCallBlock(id="c1", name="w", parameters={"city": "Oslo"})
    store.session("chat-42", create=True).append(
        [rs.user("How is it?"), rs.assistant(thought, call)]
    )
    user, reply = on_chat_store(store, lambda chats: chats.get_messages("chat-42"))

    assert user == ChatMessage(role="user", content="How is it?")
    assert reply.blocks == [
        ThinkingBlock(content=THOUGHT, additional_information={"signature": SEAL}),
        ToolCallBlock(tool_call_id="c1", tool_name="w", tool_kwargs={"city": "Oslo"}),
    ]


@pytest.mark.parametrize("block", pages.blocks("llama_index"))
def test_the_pages_run(block: pages.Block, tmp_path: Path) -> None:
    """Each example prints what its page says."""
    pages.run(block, tmp_path)
