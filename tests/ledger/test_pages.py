"""Reading by the page: what stands on a page's edge, and a damaged row among good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Counts,
    TextBlock,
    ThinkingBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger import decode
from reasoning_store.ledger import history as history_module
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from tests.properties import examples

from .histories import answered, json_values, new_session, said, stored_messages, without_thinking
from .whole import narrow

# Each takes another way through a page: bare, with JSON, with none,
# one, two and late thoughts, sealed ones, and a text that stands in no column.
KINDS = [
    said(),
    answered(),
    NewMessage(assistant("x", usage=Usage(output=3, raw={"a": 1}), finish_reason="stop")),
    NewMessage(user("a\0b")),
    NewMessage(user()),
    NewMessage(
        assistant("x", ThinkingBlock(thought="late"), "y"), Counts(visible=1, thinking=(4,))
    ),
    NewMessage(
        assistant(ThinkingBlock(thought="a"), ThinkingBlock(encrypted="e"), "x"),
        Counts(visible=1, thinking=(4, 5)),
    ),
    NewMessage(assistant(ThinkingBlock(thought="a\0b", signature="s")), Counts(thinking=(2,))),
]


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_PAGE", 4)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 9, 40])
def test_pages_join_without_a_seam(ledger: Ledger, length: int) -> None:
    """However many messages there are, with thinking and without, across a fork."""
    session = new_session(ledger)
    history = [KINDS[n % len(KINDS)] for n in range(length)]
    ledger.messages.append(session.key, 1, history)
    branch = ledger.branches.fork(session.key, 1, length // 2 + 1)
    ledger.messages.append(session.key, branch, history[length // 2 :])

    for which in (1, branch):
        read = stored_messages(ledger, session.key, which)
        light = without_thinking(ledger, session.key, which)

        assert [row.message for row in read] == [entry.message for entry in history]
        assert [row.counts for row in read] == [entry.counts for entry in history]
        assert [row.counts for row in light] == [entry.counts for entry in history]
        assert [len(row.headers or ()) for row in light] == [
            len(row.message.thinking) for row in read
        ]


def test_a_history_of_several_whole_pages_is_read_whole(ledger: Ledger) -> None:
    """At the size that pages have."""
    session = new_session(ledger)
    history = [KINDS[n % len(KINDS)] for n in range(2 * history_module._PAGE)]
    ledger.messages.append(session.key, 1, history)

    read = stored_messages(ledger, session.key, 1)

    assert [row.message for row in read] == [entry.message for entry in history]


DAMAGE = {
    "UPDATE bodies SET data = '{' WHERE position = 7": 7,
    "UPDATE bodies SET data = '{},{}' WHERE position = 7": 7,
    "UPDATE bodies SET data = '' WHERE position = 7": 7,
    "UPDATE bodies SET data = '[]' WHERE position = 7": 7,
    "UPDATE messages SET shape = '[[]]' WHERE position = 7": None,
    "UPDATE messages SET exactness = 9 WHERE position = 7": 7,
    "UPDATE messages SET origin = NULL, shape = NULL WHERE position = 7": 7,
    "DELETE FROM thinking_blocks WHERE position = 7": 7,
    "DELETE FROM bodies WHERE position = 7": 7,
    "UPDATE thinking_blocks SET data = '{' WHERE position = 7": 7,
    "UPDATE thinking_blocks SET data = '{\"x\":1}' WHERE position = 7": 7,
}


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_among_good_ones_is_the_one_that_is_named(
    ledger: Ledger, damage: str
) -> None:
    """It is raised and never skipped, and no other message gets what was its own."""
    session = new_session(ledger)
    recorded = NewMessage(
        assistant(ThinkingBlock(thought="t"), TextBlock(text="x"), finish_reason="stop"),
        Counts(visible=1, thinking=(1,)),
    )
    ledger.messages.append(session.key, 1, [recorded] * 12)
    ledger.database.write(lambda connection: driver(connection).execute(damage))

    with pytest.raises(CorruptRow) as caught:
        (stored_messages if DAMAGE[damage] else without_thinking)(ledger, session.key)

    assert "7" in str(caught.value) or DAMAGE[damage] is None
    assert str(caught.value).count("message ") <= 1


def test_what_breaks_off_a_read_leaves_its_connection_free(url: str) -> None:
    """However much of what was thought stands after it: the next read has the same one."""
    thinking = NewMessage(
        assistant(ThinkingBlock(thought="t" * 2000), "x"), Counts(visible=1, thinking=(1,))
    )
    with Ledger.open(url, connections=1) as ledger:
        session, other = new_session(ledger), new_session(ledger)
        ledger.messages.append(session.key, 1, [thinking] * 2000)
        ledger.messages.append(other.key, 1, [thinking])
        ledger.database.write(
            lambda connection: driver(connection).execute(
                "UPDATE thinking_blocks SET data = '{' WHERE position = 2"
            )
        )

        with pytest.raises(CorruptRow, match="2"):
            stored_messages(ledger, session.key, 1)

        assert [row.message for row in stored_messages(ledger, other.key, 1)] == [thinking.message]


def test_thoughts_are_the_same_where_they_cannot_be_streamed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A libpq before 17 hands over whole answers only."""
    with Ledger.open(postgres_url) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, KINDS * 60)
        streamed = stored_messages(ledger, session.key, 1)
    monkeypatch.setattr(psycopg.capabilities, "has_stream_chunked", lambda: False)

    with Ledger.open(postgres_url) as ledger:
        assert stored_messages(ledger, session.key, 1) == streamed
    assert [row.message for row in streamed] == [entry.message for entry in KINDS * 60]


def parsed_by_row(texts: list[str]) -> Iterator[object]:
    yield from map(codec.loads, texts)


@examples(60)
@given(values=st.lists(json_values, max_size=6))
def test_the_json_of_a_page_is_what_its_rows_are_one_by_one(values: list[object]) -> None:
    """One call of the parser reads them all."""
    texts = [codec.dumps(value) for value in values]

    assert list(decode._parsed_each(texts)) == list(parsed_by_row(texts)) == values


def test_a_history_that_broke_off_keeps_no_snapshot(ledger: Ledger) -> None:
    """Though its error is kept, and pages of it were not read yet: what is new is seen."""

    def run(statement: str) -> None:
        ledger.database.write(lambda connection: driver(connection).execute(statement))

    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(str(number)) for number in range(600)])
    run("UPDATE bodies SET data = '{' WHERE position = 3")
    with pytest.raises(CorruptRow, match="message 3") as kept:
        stored_messages(ledger, session.key, 1)
    run("UPDATE bodies SET data = NULL WHERE position = 3")

    assert len(stored_messages(ledger, session.key, 1)) == 600
    assert kept.value.__traceback__


def damaged(ledger: Ledger, session: Any, column: str, value: object) -> None:
    def work(connection: Any) -> None:
        driver(connection).execute(
            f"UPDATE messages SET {column} = {value!r}"  # noqa: S608
            f" WHERE session_key = {session.key} AND position = 40"
        )

    ledger.database.write(work)


WAYS: dict[str, Callable[[Ledger, int], Any]] = {
    "history": lambda ledger, key: stored_messages(ledger, key, 1),
    "get": lambda ledger, key: ledger.history.get(key, 1, 40),
    "by value": lambda ledger, key: ledger.views.view(key, 1),
    "by value, stripped": lambda ledger, key: ledger.views.view(key, 1, thinking_from=1 << 40),
    "export": lambda ledger, key: list(ledger.transfer.export_lines(key)),
    "under its key": lambda ledger, key: ledger.history.by_idempotency_key(key, "k"),
    "without blocks": lambda ledger, key: narrow(ledger, key, 1),
}


@pytest.mark.parametrize("kind", [said("x"), answered(), KINDS[2], KINDS[6]])
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("role", "nobody"),
        ("status", "lost"),
        ("exactness", -1),
        ("exactness", 3),
        ("exactness", 4),
    ],
)
def test_an_unknown_value_is_raised_by_its_position(
    ledger: Ledger, kind: NewMessage, column: str, value: object
) -> None:
    """Whichever way the message is read, and whatever stands around it."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("x")] * 39)
    ledger.messages.append(session.key, 1, [kind], idempotency_key="k")
    ledger.messages.append(session.key, 1, [said("x")] * 40)
    damaged(ledger, session, column, value)

    for way, read in WAYS.items():
        with pytest.raises(CorruptRow) as caught:
            read(ledger, session.key)
        assert "message 40 " in str(caught.value), way
    found = {(one.code, one.position) for one in ledger.audit.verify().problems}
    assert ("unreadable", 40) in found


@pytest.mark.parametrize(
    ("column", "value", "only"),
    [("role", "nobody", None), ("exactness", -1, "reasoning")],
)
def test_an_unknown_value_is_not_written_again(
    ledger: Ledger, column: str, value: object, only: Any
) -> None:
    """An erasure that would have to take it over is refused, and changes nothing."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [answered()] * 40)
    damaged(ledger, session, column, value)

    with pytest.raises(CorruptRow, match="message 40 "):
        ledger.erasure.erase_message(session.key, 1, 40, only=only)

    assert ledger.history.get(session.key, 1, 39).message == answered().message
