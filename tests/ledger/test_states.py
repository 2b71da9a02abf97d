"""The narrow view: at every position it has the counts and facts of the messages there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.errors import NotFound
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from tests.properties import examples

from .compacting import compact, conversation, summary
from .histories import answered, entries, new_session, said, stored_messages
from .reads import watched
from .whole import check_narrow, narrow, whole

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
def test_a_narrow_view_has_the_facts_of_its_messages(
    ledger: Ledger, steps: list[tuple[str, int, list[NewMessage] | int]]
) -> None:
    """Whatever was appended and forked, in any order, at every position of every branch."""
    session = new_session(ledger)
    branches = [1]
    recorded: set[str] = set()
    for _, which, what in steps:
        branch = branches[which % len(branches)]
        if isinstance(what, int):
            head = ledger.branches.get(session.key, branch).head
            branches.append(ledger.branches.fork(session.key, branch, min(what, head) + 1))
        else:
            rows = ledger.messages.append(session.key, branch, what)
            pairs = zip(rows, what, strict=True)
            recorded |= {row.id for row, entry in pairs if entry.request_facts is not None}

    for branch in branches:
        rows = stored_messages(ledger, session.key, branch)
        for at in range(len(rows) + 1):
            check_narrow(ledger, session.key, branch, at)
            snapshot, _ = narrow(ledger, session.key, branch, at)
            starts = [row.position for row in rows[:at] if row.message.starts_turn]
            sent = [row.position for row in rows[:at] if row.id in recorded]
            thinking = [row.position for row in rows[:at] if row.message.thinking]
            last = snapshot.last_request
            assert snapshot.turn_start == max(starts, default=None)
            assert (last and last.position) == max(sent, default=None)
            needed = max(starts, default=1), max(thinking, default=1)
            assert ledger.views.thinking_needed_from(session.key, branch, at) == needed
    whole(ledger, session.key)


def test_a_position_that_does_not_exist_is_not_found(ledger: Ledger) -> None:
    """After the head, and before the beginning."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])

    for at in (-1, 2, 10**30):
        with pytest.raises(NotFound):
            narrow(ledger, session.key, 1, at)


def test_a_narrow_view_reads_nothing_that_a_summary_replaces(ledger: Ledger) -> None:
    """Of 5 000 messages those outside of the ranges; no text, whatever there is."""
    session = conversation(ledger, 50)
    ledger.messages.append(session.key, 1, [said(), answered()] * 2450)
    compact(ledger, session.key, 1, 1, 4900, summary())

    with watched() as work:
        _, rows = narrow(ledger, session.key, 1)
    with watched() as whole_work:
        ledger.views.view(session.key, 1)

    assert len(rows) == 101
    assert sum(work) < 100 + 20
    assert sum(whole_work) < 100 * 3 + 20
