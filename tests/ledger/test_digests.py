"""What two messages are compared by: alike where they are, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.egress.token_counts import count_message
from reasoning_store.ledger.encode import digest, encode_message
from reasoning_store.ledger.records import NewMessage
from reasoning_store.tokens import counter
from tests.strategies import json_objects, messages

COUNTER = counter("o200k_base")


def of(message: rs.Message) -> bytes:
    entry = NewMessage(message, count_message(message, COUNTER))
    made: bytes = encode_message(entry, id="id", created_at=0).columns["digest"]
    return made


def canonical(message: rs.Message) -> Any:
    """All that a message says, in which the order of keys says nothing."""
    return codec.loads(codec.dumps(codec.message_to_json(message)))


@given(messages(), messages())
def test_messages_have_one_digest_where_they_say_the_same(
    one: rs.Message, other: rs.Message
) -> None:
    """Whatever is in them, and however alike they look."""
    assert (of(one) == of(other)) == (canonical(one) == canonical(other))


def turned(value: Any) -> Any:
    """Return JSON with the keys of every mapping the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@given(json_objects())
def test_the_order_of_keys_says_nothing(given_by: dict[str, Any]) -> None:
    """What an application gave as JSON is the same in any order, wherever it stands."""
    call = rs.ToolCallBlock(id="c", name="look", parameters=given_by)
    thought = rs.ThinkingBlock(thought="hm", provider_metadata=given_by)
    text = rs.TextBlock(text="so", provider_metadata=given_by)
    raw = rs.Usage(input=1, raw=given_by)
    message = rs.assistant(thought, text, call, usage=raw)
    message = replace(message, metadata=given_by)
    other_way = turned(given_by)

    other = replace(
        rs.assistant(
            replace(thought, provider_metadata=other_way),
            replace(text, provider_metadata=other_way),
            replace(call, parameters=other_way),
            usage=replace(raw, raw=other_way),
        ),
        metadata=other_way,
    )
    assert of(message) == of(other)


@pytest.mark.parametrize("given_by", [{1: "a", "b": 2}, {None: 1, True: 2}, {"a": (1, 2)}])
def test_keys_that_are_no_strings_are_what_they_are_read_back_as(given_by: Any) -> None:
    """They become strings in JSON, and are compared as those."""
    read_back = codec.loads(codec.dumps(given_by))

    one, other = (replace(rs.user("a"), metadata=value) for value in (given_by, read_back))
    assert of(one) == of(other)


texts = st.lists(st.none() | st.text(max_size=3), max_size=4)


@given(texts, texts)
def test_columns_are_separated_by_their_lengths(
    one: list[str | None], other: list[str | None]
) -> None:
    """What ends one column is not what begins the next; nothing is not an empty text."""
    assert (digest(one) == digest(other)) == (one == other)
