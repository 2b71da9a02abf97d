"""The reasoning budget's memory: what a session thought, and which marks were reported."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.blocks import Counts, Message, ThinkingBlock, Usage, assistant
from reasoning_store.conversation.errors import CorruptRow, NotFound
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, ReasoningUsed
from tests.properties import examples

from .histories import add_part, any_text, entries, new_session, said


def reply(thinking: int, **usage: Any) -> NewMessage:
    reported = Usage(**usage) if usage else None
    message = assistant(ThinkingBlock(thought="t"), "x", usage=reported)
    return NewMessage(message, Counts(visible=5, thinking=(thinking,)))


def test_what_was_reported_is_taken_at_its_word(ledger: Ledger) -> None:
    """What was counted stands in where nothing was; absent is not zero."""
    session = new_session(ledger)

    ledger.messages.append(session.key, 1, [said(), reply(10, reasoning=700), reply(20)])
    ledger.messages.append(session.key, 1, [reply(30, output=90), reply(40, reasoning=0)])

    assert ledger.budgets.get(session.key).thought == ReasoningUsed(
        reported=700, counted=50, unreported=2
    )


def test_a_reply_that_was_made_again_was_thought_all_the_same(ledger: Ledger) -> None:
    """The sum is the session's, over all of its branches; a fork thinks nothing by itself."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), reply(1, reasoning=100)])
    fork = ledger.branches.fork(session.key, 1, 2)
    ledger.messages.append(session.key, fork, [reply(1, reasoning=50)])

    assert ledger.budgets.get(session.key).thought.reported == 150


def test_a_recorded_reply_counts_once_and_a_repeated_append_not_again(ledger: Ledger) -> None:
    """Nor does a draft while it arrives, nor what is refused."""
    session = new_session(ledger)
    draft = ledger.drafts.begin(session.key, 1)
    add_part(ledger, draft, 1, '"x"')
    assert ledger.budgets.get(session.key).thought == ReasoningUsed()

    ledger.drafts.finish(draft, [reply(1, reasoning=9)])
    ledger.drafts.finish(draft, [reply(1, reasoning=9)])
    for _ in range(2):
        ledger.messages.append(session.key, 1, [reply(1, reasoning=9)], idempotency_key="k")

    assert ledger.budgets.get(session.key).thought == ReasoningUsed(reported=18)


def test_what_is_erased_stays_used(ledger: Ledger) -> None:
    """No one gets it back."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), reply(10, reasoning=700), reply(20)])
    before = ledger.budgets.get(session.key)

    ledger.erasure.erase_message(session.key, 1, 2)
    ledger.erasure.erase_session(session.key, only="reasoning")

    assert before == ledger.budgets.get(session.key)


@examples(40)
@given(batches=st.lists(st.lists(entries(), min_size=1, max_size=4), max_size=4))
def test_the_sums_are_those_of_the_messages(
    ledger: Ledger, batches: list[list[NewMessage]]
) -> None:
    """Whatever was reported, absurd numbers too: those are no report."""
    session = new_session(ledger)
    for batch in batches:
        ledger.messages.append(session.key, 1, batch)

    messages = [
        (entry.message, sum(entry.counts.thinking))
        for batch in batches
        for entry in batch
        if entry.message.role == "assistant"
    ]

    def reported(message: Message) -> int | None:
        usage = message.usage
        known = usage is not None and usage.reasoning is not None and usage.reasoning < 1 << 40
        return usage.reasoning if known and usage is not None else None

    assert ledger.budgets.get(session.key).thought == ReasoningUsed(
        reported=sum(reported(message) or 0 for message, _ in messages),
        counted=sum(own for message, own in messages if reported(message) is None),
        unreported=sum(reported(message) is None for message, _ in messages),
    )


def test_a_mark_is_reported_once(url: str) -> None:
    """By the first of any number of workers, in any number of processes."""
    with Ledger.open(url) as one, Ledger.open(url) as other:
        session = new_session(one)

        def report(n: int) -> list[bool]:
            ledger = (one, other)[n % 2]
            return [ledger.budgets.remember(session.key, f"mark {m}") for m in range(5)]

        with ThreadPoolExecutor(8) as pool:
            reported = list(pool.map(report, range(8)))

        assert [sum(answers) for answers in zip(*reported, strict=True)] == [1] * 5
        assert sorted(other.budgets.get(session.key).crossed) == [f"mark {m}" for m in range(5)]


@examples(20)
@given(names=st.lists(any_text, unique=True, max_size=4))
def test_marks_may_have_any_name(ledger: Ledger, names: list[str]) -> None:
    """They come back in the order in which they were reported."""
    session = new_session(ledger)

    assert all(ledger.budgets.remember(session.key, name) for name in names)
    assert not any(ledger.budgets.remember(session.key, name) for name in names)

    assert ledger.budgets.get(session.key).crossed == tuple(names)


def test_a_session_that_is_not_there_has_no_budget(ledger: Ledger) -> None:
    """Neither sums nor marks."""
    with pytest.raises(NotFound):
        ledger.budgets.get(5)
    with pytest.raises(NotFound):
        ledger.budgets.remember(5, "x")


def test_marks_that_cannot_be_read_are_raised(ledger: Ledger) -> None:
    """And none learns in their place."""
    session = new_session(ledger)
    for damage in ("{", "5"):
        ledger.database.write(
            lambda connection, damage=damage: driver(connection).execute(  # type: ignore[misc]
                f"UPDATE sessions SET crossed = '{damage}'"  # noqa: S608
            )
        )
        with pytest.raises(CorruptRow):
            ledger.budgets.get(session.key)
        with pytest.raises(CorruptRow):
            ledger.budgets.remember(session.key, "x")
