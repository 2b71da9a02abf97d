"""A session's reasoning held against a limit, and each mark told once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress.budget import Budget, assess_budget
from tests.properties import each


def budget(reported: int, *, limit: int | None = 1_000, **given: Any) -> Budget:
    return assess_budget(reasoning=reported, limit=limit, **given)


@pytest.mark.parametrize(
    ("used", "state"),
    [(0, "ok"), (799, "ok"), (800, "warning"), (999, "warning"), (1_000, "exceeded")],
)
def test_the_state_follows_the_use(used: int, state: str) -> None:
    """A warning at the share, exceeded at the whole; reaching a mark is passing it."""
    assert budget(used).state == state


def test_each_mark_is_reported_once() -> None:
    """What the store remembers is not told again."""
    first = budget(850)
    again = budget(900, remembered=first.marks)
    over = budget(1_100, remembered=again.marks)
    last = budget(1_200, remembered=over.marks)

    assert [b.crossed for b in (first, again, over, last)] == [("warning",), (), ("exceeded",), ()]


def test_a_leap_past_both_marks_tells_the_last() -> None:
    """No one is warned of what has already happened, then or later."""
    leap = budget(5_000)

    assert leap.crossed == ("exceeded",)
    assert budget(900, remembered=leap.marks).crossed == ()


def test_a_raised_limit_is_reported_again() -> None:
    """What was told of a smaller limit says nothing of a larger one."""
    small = budget(1_000)
    large = budget(1_000, limit=10_000, remembered=small.marks)
    warned = budget(9_000, limit=10_000, remembered=(*small.marks, *large.marks))

    assert (large.state, large.crossed) == ("ok", ())
    assert warned.crossed == ("warning",)


def test_absent_usage_is_not_zero() -> None:
    """Where no one reported anything and nothing can be counted, nothing is known."""
    silent = budget(0, unreported=3)

    assert (silent.state, silent.used, silent.unreported) == ("unknown", 0, 3)


def test_counted_thinking_replaces_a_missing_report() -> None:
    """A provider that reports no reasoning still uses the budget up."""
    mixed = budget(500, counted=400, unreported=2)

    assert (mixed.used, mixed.reasoning, mixed.counted) == (900, 500, 400)
    assert (mixed.state, mixed.crossed) == ("warning", ("warning",))


def test_without_a_limit_nothing_is_crossed() -> None:
    """No limit is a choice, and the use is still said."""
    free = budget(10**9, limit=None)

    assert (free.state, free.crossed, str(free)) == ("ok", (), "1000000000")


def test_it_prints_used_and_limit() -> None:
    """The same form as a context's usage."""
    assert str(budget(850)) == "850/1000"


@each(
    "wrong",
    [
        {"limit": 0},
        {"limit": -1},
        {"warn_at": 0},
        {"warn_at": 80},
        {"warn_at": -0.1},
        {"warn_at": float("nan")},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    """A zero that means unlimited, or a percentage, is a slip."""
    with pytest.raises(rs.InvalidCall):
        budget(1, **wrong)


@given(
    st.lists(st.integers(0, 300), max_size=30),
    st.integers(1, 3_000),
    st.floats(0.01, 1),
    st.lists(st.integers(0, 3), max_size=30),
)
def test_workers_that_share_a_memory_tell_each_mark_at_most_once(
    thoughts: list[int], limit: int, warn_at: float, asked: Collection[int]
) -> None:
    """However often and whenever it is asked."""
    used = 0
    memory: set[str] = set()
    told: list[str] = []
    for n, thought in enumerate(thoughts):
        used += thought
        for _ in range(sum(1 for worker in asked if worker == n % 4)):
            answer = assess_budget(reasoning=used, limit=limit, warn_at=warn_at, remembered=memory)
            told += answer.crossed
            memory.update(answer.marks)

    assert len(told) == len(set(told))
    assert told in ([], ["warning"], ["exceeded"], ["warning", "exceeded"])
