"""Echoes: messages that a client cannot tell apart have one, and others have another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.blocks import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    assistant,
    user,
)
from reasoning_store.conversation.echoes import align_echoes, message_echo
from reasoning_store.conversation.validation import tool


def call(**fields: object) -> ToolCallBlock:
    return ToolCallBlock(id="c1", name="weather", **fields)  # type: ignore[arg-type]


SAME = {
    "a thought": (assistant(ThinkingBlock(thought="x"), "4 C"), assistant("4 C")),
    "space around": (assistant("\n4 C "), assistant("4 C")),
    "pieces": (assistant("4 ", "C"), assistant("4 C")),
    "order of keys": (
        assistant(call(arguments='{"a": 1, "b": 2}')),
        assistant(call(parameters={"b": 2, "a": 1})),
    ),
    "a result as text": (
        tool(ToolResponseBlock(call_id="c1", result={"t": 4})),
        tool(ToolResponseBlock(call_id="c1", result='{"t":4}')),
    ),
}
DIFFERENT = {
    "the role": (assistant("4 C"), user("4 C")),
    "the text": (assistant("4 C"), assistant("5 C")),
    "the arguments": (assistant(call(arguments='{"a": 1}')), assistant(call(arguments="{}"))),
    "the call that is answered": (
        tool(ToolResponseBlock(call_id="c1", result="4")),
        tool(ToolResponseBlock(call_id="c2", result="4")),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_messages_that_a_client_cannot_tell_apart_have_one_echo(name: str) -> None:
    """It keeps text, calls and results, and spells them its own way."""
    one, other = SAME[name]

    assert message_echo(one) == message_echo(other)


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_messages_have_other_echoes(name: str) -> None:
    """Each part that a client sends back counts."""
    one, other = DIFFERENT[name]

    assert message_echo(one) != message_echo(other)


def test_an_erased_message_has_no_echo() -> None:
    """Two erased messages are not the same one."""
    assert message_echo(Message(role="assistant", blocks=(), status="erased")) is None
    assert message_echo(assistant(TextBlock(text="x"))) is not None


@given(
    st.lists(st.integers(0, 5) | st.none(), max_size=12),
    st.lists(st.integers(0, 5) | st.none(), max_size=12),
)
def test_aligned_messages_agree_and_keep_their_order(
    sent: list[int | None], stored: list[int | None]
) -> None:
    """However a client left messages out or changed them."""
    found = align_echoes(sent, stored)

    matched = [place for place in found if place is not None]
    assert matched == sorted(set(matched))
    assert all(sent[n] == stored[place] for n, place in enumerate(found) if place is not None)


@given(st.lists(st.integers(0, 99), max_size=20, unique=True), st.data())
def test_a_conversation_is_matched_whole_where_nothing_changed(
    stored: list[int], data: st.DataObject
) -> None:
    """Its beginning may be trimmed, and new messages may follow."""
    trimmed = data.draw(st.integers(0, len(stored)))
    sent = [*stored[trimmed:], 100, 101]

    assert align_echoes(sent, stored) == [*range(trimmed, len(stored)), None, None]
