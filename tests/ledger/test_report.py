"""Reports: the sums that adding up every message gives, by whatever they are grouped."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasoning_store.blocks import Counts, Message, Origin, Usage, assistant
from reasoning_store.errors import UsageError
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Entry, ReportRow

from .histories import answered, any_text, entries, new_session, said

_runs = iter(range(1_000_000))
days = st.integers(-3 * 86_400_000_000, 3 * 86_400_000_000)
MOST = 1 << 40
FIELDS = ("owner", "session", "model", "day")
GROUPS = {"session": ("owner", "session")}


def numbers(message: Message, counts: Counts) -> list[int]:
    """What one message adds to a report, the long way."""
    reported = message.usage or Usage()
    parts = [reported.input, reported.output, reported.reasoning, reported.cached]
    usable = [part if part is not None and part < MOST else None for part in parts]
    return [
        *(part or 0 for part in usable),
        counts.visible + sum(counts.thinking),
        int(message.role == "assistant" and usable == [None] * 4),
    ]


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    owners=st.lists(any_text, min_size=1, max_size=2, unique=True),
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
    batches: list[tuple[int, int, list[Entry]]],
    since: int | None,
    until: int | None,
) -> None:
    """By session, owner, model and day, in any span of time, forks counted once."""
    run = next(_runs)
    names = [f"{run} {owner}" for owner in owners]
    made = [
        ledger.create_session(owner, f"s{n}", encoding="x") for owner in names for n in range(2)
    ]
    expected: dict[str, dict[Any, list[int]]] = {
        by: defaultdict(lambda: [0] * 6) for by in ("session", "owner", "model", "day")
    }
    for which, at, batch in batches:
        session = made[which % len(made)]
        for row in ledger.append(session.key, 1, batch, created_at=at):
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
        ledger.fork(session.key, 1, 1 + ledger.head(session.key, 1).position)

    for by, groups in expected.items():
        found: dict[Any, list[int]] = defaultdict(lambda: [0] * 6)
        for owner in names:
            for line in ledger.report(by, since=since, until=until, owner=owner):  # type: ignore[arg-type]
                names_of = dict(zip(FIELDS, astuple(line)[:4], strict=True))
                group = tuple(names_of[name] for name in GROUPS.get(by, (by,)))
                sums = found[group]
                sums[:] = map(sum, zip(sums, astuple(line)[4:], strict=True))
        assert found == groups


def test_a_report_of_everybody_is_the_sum_of_all_owners(ledger: Ledger) -> None:
    """Models are those of the replies, whatever address they were reached at."""
    for owner in ("a", "b"):
        session = ledger.create_session(owner, "s", encoding="x")
        for url in (None, "http://one", "http://two"):
            reply = assistant("x", origin=Origin(model="m", base_url=url), usage=Usage(output=5))
            ledger.append(session.key, 1, [said(), Entry(reply, Counts(visible=2))], created_at=1)

    assert ledger.report("owner") == [
        ReportRow(owner=owner, input=0, output=15, reasoning=0, cached=0, counted=42, unreported=0)
        for owner in ("a", "b")
    ]
    assert [(row.model, row.output, row.counted) for row in ledger.report("model")] == [
        (None, 0, 72),
        ("m", 30, 12),
    ]
    assert [(row.owner, row.session) for row in ledger.report()] == [("a", "s"), ("b", "s")]
    assert [row.day for row in ledger.report("day")] == ["1970-01-01"]
    assert ledger.report("day", since=2) == []
    assert ledger.report("owner", owner="nobody") == []


def test_spans_that_follow_one_another_have_each_message_once(ledger: Ledger) -> None:
    """A span begins with its first moment, and ends before the first of the next."""
    session = new_session(ledger)
    for at in (1, 2, 3):
        ledger.append(session.key, 1, [said()], created_at=at)

    def counted(since: int | None, until: int | None) -> int:
        return sum(row.counted for row in ledger.report(since=since, until=until, owner="u"))

    (row,) = ledger.report(since=2, until=3, owner="u")
    assert counted(None, 2) == counted(2, 3) == counted(3, None) == row.counted > 0
    assert counted(None, None) == 3 * row.counted
    assert ledger.report(since=2, until=2, owner="u") == []


def test_what_was_erased_is_in_no_report(ledger: Ledger) -> None:
    """Neither its numbers nor as a reply that reported nothing."""
    session = new_session(ledger)
    ledger.append(session.key, 1, [said(), answered(), answered()])
    ledger.erase_message(session.key, 1, 2)
    ledger.erase_message(session.key, 1, 3, only="reasoning")

    (row,) = ledger.report("owner", owner="u")

    assert (row.counted, row.unreported) == (len("Is 91 prime?") + 3, 1)


def test_times_far_away_have_the_nearest_day(ledger: Ledger) -> None:
    """A calendar ends; a column of microseconds goes on."""
    session = new_session(ledger)
    for at in (-(1 << 61), 1 << 61):
        ledger.append(session.key, 1, [said()], created_at=at)

    assert [row.day for row in ledger.report("day", owner="u")] == ["0001-01-01", "9999-12-31"]
    assert ledger.report("day", since=-(10**30), until=10**30, owner="u") != []


def test_an_unknown_grouping_is_a_usage_error(ledger: Ledger) -> None:
    """It names those that there are."""
    with pytest.raises(UsageError, match="session, owner, model, day"):
        ledger.report("moon")  # type: ignore[arg-type]


def test_a_report_reads_no_body(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement over the narrow rows."""
    from reasoning_store.ledger.sql import Sql

    session = new_session(ledger)
    ledger.append(session.key, 1, [said(), answered()])
    texts: list[str] = []
    plain = Sql.rows

    def noting(self: Sql, connection: Any, params: Any) -> Any:
        texts.append(self._for(connection).text)
        return plain(self, connection, params)

    monkeypatch.setattr(Sql, "rows", noting)
    ledger.report("session")
    ledger.report("owner")
    ledger.report("model")
    ledger.report("day")

    assert len(texts) == 4
    assert not any("bodies" in text or "thinking_blocks" in text for text in texts)
