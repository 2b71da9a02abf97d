"""The carried state: at every position it is what counting the messages anew would give."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.blocks import (
    Counts,
    Origin,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    assistant,
)
from reasoning_store.conversation.errors import NotFound
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, StoredRow
from reasoning_store.ledger.rows import totals
from reasoning_store.ledger.view_records import ViewTotals
from tests.properties import examples

from .counting import counted
from .histories import answered, any_text, entries, new_session, said, stored_messages
from .recounting import recount, state_of

batches = st.lists(entries(), min_size=1, max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3), batches),
        st.tuples(st.just("fork"), st.integers(0, 3), st.integers(0, 12)),
    ),
    min_size=1,
    max_size=6,
)


@examples(80)
@given(steps=steps)
def test_every_state_equals_a_recount(
    ledger: Ledger, steps: list[tuple[str, int, list[NewMessage] | int]]
) -> None:
    """Whatever was appended and forked, in any order, at every position of every branch."""
    session = new_session(ledger)
    branches = [1]
    sent: set[str] = set()
    clearable: dict[str, int] = {}
    for kind, which, what in steps:
        branch = branches[which % len(branches)]
        if isinstance(what, int):
            head = ledger.branches.totals(session.key, branch).position
            branches.append(ledger.branches.fork(session.key, branch, min(what, head) + 1))
        else:
            assert kind == "append"
            for row, entry in zip(
                ledger.messages.append(session.key, branch, what), what, strict=True
            ):
                sent |= {row.id} if entry.request_facts is not None else set()
                clearable[row.id] = entry.counts.clearable

    for branch in branches:
        rows = stored_messages(ledger, session.key, branch)
        used = ledger.views.view_totals(session.key, branch)
        numbers = {
            origin: carried_number(origin)
            for row in rows
            if row.message.origin
            for origin in [replace(row.message.origin, response_id=None)]
        }
        for at in range(len(rows) + 1):
            expected = counted(rows[:at], sent, numbers, clearable)
            found = ledger.views.view_totals(session.key, branch, at=at)
            assert expected == found.head
            before = (expected.turn_start or 1) - 1
            assert counted(rows[:before], sent, numbers, clearable) == found.before_turn
            assert {numbers[o] for o in found.origins.values()} == set(found.origins)
            assert {totals.origin_of(key) for key in found.head.opaque} - {0} == set(found.origins)
            if expected.last_thinking is None:
                assert found.last_thinkers == ()
            else:
                check_own(rows[expected.last_thinking - 1], found, numbers)
        assert used == ledger.views.view_totals(session.key, branch, at=len(rows))
        assert used.head == ledger.branches.totals(session.key, branch)
        assert all(one.stored == one.actual for one in recount(ledger, session.key, branch))


def carried_number(origin: Origin) -> int:
    from reasoning_store.conversation import codec
    from reasoning_store.ledger.rows.keys import origin_number

    return origin_number(codec.dumps(codec.origin_to_json(origin)))


def check_own(row: StoredRow, found: ViewTotals, numbers: dict[Origin, int]) -> None:
    """What the last message with thinking counts by itself."""
    alone = counted([row], set(), numbers)
    own = found.last_thinkers[0]
    assert (row.position, bool(row.message.tool_calls)) == (own.position, own.has_call)
    assert alone.portable == own.portable
    present = {key: value for key, value in own.opaque.items() if value}
    assert {key: value for key, (value, _) in alone.opaque.items() if value} == present


@given(entries(), entries(), entries())
def test_states_add_in_any_grouping(one: NewMessage, two: NewMessage, three: NewMessage) -> None:
    """A batch can be summed before it is known where it stands."""
    a, b, c = (
        state_of(
            entry.message.blocks,
            entry.counts,
            starts_turn=entry.message.starts_turn,
            origin=7,
            has_request=entry.request_facts is not None,
        )
        for entry in (one, two, three)
    )

    assert totals.add_totals(totals.add_totals(a, b), c) == totals.add_totals(
        a, totals.add_totals(b, c)
    )
    assert a == totals.add_totals(totals.NOTHING, a)


@given(any_text, any_text)
def test_an_opaque_key_names_one_field(one: str, other: str) -> None:
    """In printable ASCII, and back."""
    key = totals.opaque_key(5, one)

    assert key.isascii()
    assert key.isprintable()
    assert (5, one or None) == (totals.origin_of(key), totals.field_of(key))
    assert (key == totals.opaque_key(5, other)) == (one == other)


def test_several_origins_and_fields_are_counted_apart(ledger: Ledger) -> None:
    """Opaque thinking by origin and field, and next to it the part in messages with a call."""
    session = new_session(ledger)
    one, two = Origin(provider="anthropic"), Origin(provider="openai")
    sealed = ThinkingBlock(thought="t", signature="s", source_field="thinking")
    hidden = ThinkingBlock(encrypted="e", source_field="encrypted_content")
    call = ToolCallBlock(id="1", name="f")

    ledger.messages.append(
        session.key,
        1,
        [
            said(),
            NewMessage(assistant(sealed, call, origin=one), Counts(visible=5, thinking=(7,))),
            NewMessage(assistant(sealed, "done", origin=one), Counts(visible=5, thinking=(11,))),
            NewMessage(
                assistant(hidden, sealed, TextBlock(text="x"), origin=two),
                Counts(visible=1, thinking=(13, 17), exactness="estimated"),
            ),
            NewMessage(assistant(sealed, "no origin"), Counts(visible=1, thinking=(19,))),
        ],
    )
    used = ledger.views.view_totals(session.key, 1)
    by_name = {
        (used.origins[number].provider if number else None, totals.field_of(key)): sums
        for key, sums in used.head.opaque.items()
        for number in [totals.origin_of(key)]
    }

    assert by_name == {
        ("anthropic", "thinking"): (18, 7),
        ("openai", "encrypted_content"): (13, 0),
        ("openai", "thinking"): (17, 0),
        (None, "thinking"): (19, 0),
    }
    assert (
        used.head.turn_start,
        used.head.turn_has_call,
        used.head.last_thinking,
    ) == (1, True, 5)
    assert used.head.exactness == "estimated"
    assert list(used.last_thinkers[0].opaque.values()) == [19]


def test_a_state_that_does_not_exist_is_not_found(ledger: Ledger) -> None:
    """Behind the head, and before the beginning."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])

    for at in (-1, 2, 10**30):
        with pytest.raises(NotFound):
            ledger.views.view_totals(session.key, 1, at=at)


def test_usage_reads_as_much_at_5000_messages_as_at_100(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same statements, and the same number of rows."""
    session = new_session(ledger)
    turn = [said(), answered(origin=Origin(provider="deepseek"))]
    work: list[int] = []
    plain = Statement.rows

    def counting(self: Statement, connection: object, params: object) -> list[tuple[object, ...]]:
        rows = plain(self, connection, params)  # type: ignore[arg-type]
        work.append(len(rows))
        return rows

    def reads(at: int | None) -> list[int]:
        work.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Statement, "rows", counting)
            ledger.views.view_totals(session.key, 1, at=at)
        return list(work)

    ledger.messages.append(session.key, 1, turn * 50)
    few = [reads(None), reads(50)]
    ledger.messages.append(session.key, 1, turn * 2450)
    many = [reads(None), reads(2500)]

    assert few == many
    assert max(sum(rows) for rows in few) <= 5
