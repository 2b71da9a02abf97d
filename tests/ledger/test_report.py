"""Reports: the sums that adding up every message gives, by whatever they are grouped."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.blocks import (
    Counts,
    Message,
    Origin,
    ThinkingBlock,
    Usage,
    assistant,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, ReportRow
from tests.properties import each, examples

from .histories import answered, any_name, entries, new_session, said

_runs = iter(range(1_000_000))
days = st.integers(-3 * 86_400_000_000, 3 * 86_400_000_000)
MOST = 1 << 40
SUMMED = ("input", "output", "reasoning", "cached", "cache_write")
FIELDS = ("owner", "session", "model", "day")
GROUPS = {"session": ("owner", "session")}


def numbers(message: Message, counts: Counts) -> list[int]:
    """What one message adds to a report, the long way."""
    reported = message.usage or Usage()
    parts = [getattr(reported, name) for name in SUMMED]
    usable = [part if part is not None and part < MOST else None for part in parts]
    unreported = message.role == "assistant" and usable[SUMMED.index("reasoning")] is None
    return [
        *(part or 0 for part in usable),
        sum(counts.thinking) if unreported else 0,
        int(unreported),
    ]


@examples(30)
@given(
    owners=st.lists(any_name, min_size=1, max_size=2, unique=True),
    batches=st.lists(
        st.tuples(st.integers(0, 5), days, st.lists(entries(), min_size=1, max_size=3)),
        min_size=1,
        max_size=5,
    ),
    since=st.none() | days,
    until=st.none() | days,
)
def test_a_report_is_the_sum_of_its_messages(
    ledger: Ledger,
    owners: list[str],
    batches: list[tuple[int, int, list[NewMessage]]],
    since: int | None,
    until: int | None,
) -> None:
    """By session, owner, model and day, in any span of time, forks counted once."""
    run = next(_runs)
    names = [f"{run} {owner}" for owner in owners]
    made = [
        ledger.sessions.create(owner, f"s{n}", encoding="x") for owner in names for n in range(2)
    ]
    expected: dict[str, dict[Any, list[int]]] = {
        by: defaultdict(lambda: [0] * 7) for by in ("session", "owner", "model", "day")
    }
    for which, at, batch in batches:
        session = made[which % len(made)]
        for row in ledger.messages.append(session.key, 1, batch, created_at=at):
            if (since is not None and at < since) or (until is not None and at >= until):
                continue
            origin = row.message.origin
            day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
            for by, group in (
                ("session", (session.owner, session.id)),
                ("owner", (session.owner,)),
                ("model", (origin.model if origin else None,)),
                ("day", (day.date().isoformat(),)),
            ):
                sums = expected[by][group]
                sums[:] = map(sum, zip(sums, numbers(row.message, row.counts), strict=True))
        ledger.branches.fork(session.key, 1, 1 + ledger.branches.get(session.key, 1).head)

    for by, groups in expected.items():
        found: dict[Any, list[int]] = defaultdict(lambda: [0] * 7)
        for owner in names:
            for line in ledger.reports.read(by, since=since, until=until, owner=owner):  # type: ignore[arg-type]
                names_of = dict(zip(FIELDS, astuple(line)[:4], strict=True))
                group = tuple(names_of[name] for name in GROUPS.get(by, (by,)))
                sums = found[group]
                sums[:] = map(sum, zip(sums, astuple(line)[4:], strict=True))
        assert found == groups


def test_a_report_of_everybody_is_the_sum_of_all_owners(ledger: Ledger) -> None:
    """Models are those of the replies, whatever address they were reached at."""
    for owner in ("a", "b"):
        session = ledger.sessions.create(owner, "s", encoding="x")
        for url in (None, "http://one", "http://two"):
            used = Usage(input=9, output=5, cached=3, cache_write=4)
            thought = ThinkingBlock(thought="Hm.")
            reply = assistant(thought, "x", origin=Origin(model="m", base_url=url), usage=used)
            entry = NewMessage(reply, Counts(visible=2, thinking=(7,)))
            ledger.messages.append(session.key, 1, [said(), entry], created_at=1)

    numbers: dict[str, Any] = {"output": 15, "reasoning": 0, "cached": 9, "cache_write": 12}
    assert ledger.reports.read("owner") == [
        ReportRow(owner=owner, input=27, **numbers, counted=21, unreported=3)
        for owner in ("a", "b")
    ]
    assert [(row.model, row.output, row.counted) for row in ledger.reports.read("model")] == [
        (None, 0, 0),
        ("m", 30, 42),
    ]
    assert [(row.owner, row.session) for row in ledger.reports.read()] == [("a", "s"), ("b", "s")]
    assert [row.day for row in ledger.reports.read("day")] == ["1970-01-01"]
    assert ledger.reports.read("day", since=2) == []
    assert ledger.reports.read("owner", owner="nobody") == []


def test_spans_that_follow_one_another_have_each_message_once(ledger: Ledger) -> None:
    """A span begins with its first moment, and ends before the first of the next."""
    session = new_session(ledger)
    for at in (1, 2, 3):
        ledger.messages.append(session.key, 1, [answered()], created_at=at)

    def counted(since: int | None, until: int | None) -> int:
        return sum(row.counted for row in ledger.reports.read(since=since, until=until, owner="u"))

    (row,) = ledger.reports.read(since=2, until=3, owner="u")
    assert counted(None, 2) == counted(2, 3) == counted(3, None) == row.counted > 0
    assert counted(None, None) == 3 * row.counted
    assert ledger.reports.read(since=2, until=2, owner="u") == []


def test_a_report_by_several_has_a_row_for_each_combination(ledger: Ledger) -> None:
    """In the order in which they are named; a session names its owner, too."""
    for owner in ("a", "b"):
        session = ledger.sessions.create(owner, "s", encoding="x")
        for day in (0, 1):
            made = assistant("x", origin=Origin(model="m"), usage=Usage(output=5))
            ledger.messages.append(
                session.key,
                1,
                [NewMessage(made, Counts(visible=1))],
                created_at=day * 86_400_000_000,
            )

    assert [(row.model, row.day, row.output) for row in ledger.reports.read(("model", "day"))] == [
        ("m", "1970-01-01", 10),
        ("m", "1970-01-02", 10),
    ]
    found = ledger.reports.read(["day", "session"], since=1)
    assert [(row.day, row.owner, row.session, row.model) for row in found] == [
        ("1970-01-02", "a", "s", None),
        ("1970-01-02", "b", "s", None),
    ]


def test_reasoning_that_no_provider_reported_is_in_the_report_what_it_is_in_the_budget(
    ledger: Ledger,
) -> None:
    """What was reported, what was counted, and how many replies reported nothing."""
    session = new_session(ledger)
    for usage in (None, Usage(input=70, output=233), Usage(output=50, reasoning=40)):
        reply = assistant(ThinkingBlock(thought="7 * 13"), "No.", usage=usage)
        ledger.messages.append(
            session.key, 1, [said(), NewMessage(reply, Counts(visible=2, thinking=(6,)))]
        )

    (row,) = ledger.reports.read("owner", owner="u")
    used = ledger.budgets.get(session.key).thought

    assert (row.reasoning, row.counted, row.unreported) == (40, 12, 2)
    assert (used.reported, used.counted, used.unreported) == (40, 12, 2)


def test_what_was_erased_is_in_no_report(ledger: Ledger) -> None:
    """Neither its numbers nor as a reply that reported nothing."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), answered(), answered()])
    ledger.erasure.erase_message(session.key, 1, 2)
    ledger.erasure.erase_message(session.key, 1, 3, only="reasoning")

    (row,) = ledger.reports.read("owner", owner="u")

    assert (row.counted, row.unreported) == (0, 1)


@each("by", ["moon", (), ("model", "moon"), ("model", ["day"]), None])
def test_an_unknown_grouping_is_an_invalid_call(ledger: Ledger, by: Any) -> None:
    """It names those that there are."""
    with pytest.raises(InvalidCall, match="session, owner, model, day"):
        ledger.reports.read(by)


def test_a_report_reads_no_body(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement over the narrow rows."""
    from reasoning_store.ledger.database.statement import Statement

    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), answered()])
    texts: list[str] = []
    plain = Statement.rows

    def noting(self: Statement, connection: Any, params: Any) -> Any:
        texts.append(self._for(connection).text)
        return plain(self, connection, params)

    monkeypatch.setattr(Statement, "rows", noting)
    ledger.reports.read("session")
    ledger.reports.read("owner")
    ledger.reports.read("model")
    ledger.reports.read("day")

    assert len(texts) == 4
    assert not any("bodies" in text or "thinking_blocks" in text for text in texts)
