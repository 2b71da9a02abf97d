"""Whether a conversation gets shorter, and how: named decisions, and ten thousand turns."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress.compaction_plan import Limits, Plan, Range
from tests.egress.compression_model import Chat, Row, SummaryInForce
from tests.properties import each, examples

ACTS = ("strip", "clear", "summarize")
LIMITS = Limits(limit=1_100, reserve=100, threshold=0.8)
"""1000 are usable; something is done above 800, a step goes down to 480."""


def chat(*turns: tuple[Row, ...], **given: Any) -> Chat:
    """Return a conversation of these turns, each begun by a question of 10."""
    made = Chat(**given)
    for turn in turns:
        made.add(Row(said=10, starts=True))
        for row in turn:
            made.add(row)
    return made


def says(said: int, thought: int = 0) -> Row:
    return Row(said=said, thought=thought)


def steps(plan: Plan) -> list[tuple[str, str, int]]:
    return [(step.kind, str(step.what), step.tokens) for step in plan.steps]


def test_below_the_threshold_there_is_nothing_to_do() -> None:
    """The threshold is a share of what the answer leaves, and reaching it is not passing it."""
    plan = chat((says(790),)).plan(LIMITS)

    assert (plan.action, plan.reasons, plan.steps) == ("none", ("below_threshold",), ())
    assert (plan.usable, plan.trigger_at, plan.effective, plan.after) == (1000, 800, 800, 800)


def test_a_step_leaves_room_for_a_good_while() -> None:
    """Of 1 000 usable tokens: acted on from 850, down to 510, and not at all above 750."""
    limits = Limits(limit=1_200, reserve=200)

    assert (limits.trigger_at, limits.target_at, limits.enough) == (850, 510, 750)
    assert (limits.growth, limits.summary) == (100, 100)


def test_br_004_what_is_stripped_already_triggers_nothing() -> None:
    """BR-004: the decision is about what will be sent, whatever is stored."""
    long_thoughts = chat((says(100, 5_000),), (says(10),), strip="all")

    assert long_thoughts.plan(LIMITS).action == "none"


def test_old_reasoning_goes_first() -> None:
    """A setting is the cheapest step, and the gentlest value that is enough is proposed."""
    plan = chat((says(200, 400),), (says(200, 100),)).plan(LIMITS)

    assert plan.action == "strip"
    assert steps(plan) == [("strip", "priorTurns", 400)]
    assert (plan.after, plan.to_summarize) == (520, None)


def test_a_stricter_setting_where_the_gentle_one_is_not_enough() -> None:
    """The reasoning of the open turn goes where that of the closed ones is too little."""
    plan = chat((says(200, 100),), (says(200, 400),)).plan(LIMITS)

    assert steps(plan) == [("strip", "all", 500)]


def test_old_tool_results_go_before_a_summary() -> None:
    """They are cleared from the oldest on, as far as the target and no further."""
    plan = chat(
        (Row(result=300), says(50)), (Row(result=300), says(50)), (Row(result=200), says(50))
    ).plan(LIMITS)

    assert plan.action == "clear"
    assert steps(plan) == [("clear", "1-5", 600)]
    assert plan.after == 380


def test_a_summary_of_the_oldest_turns_is_the_last_step() -> None:
    """The shortest closed range that reaches the target; the rest stays as it is."""
    plan = chat((says(290),), (says(290),), (says(290),)).plan(LIMITS)

    assert (plan.action, plan.reasons) == ("summarize", ("over_threshold",))
    assert plan.to_summarize == Range(1, 4)
    assert steps(plan) == [("summarize", "1-4", 500)]
    assert (plan.after, plan.summary_tokens) == (400, 100)


def test_the_steps_of_a_plan_stand_in_order_and_add_up() -> None:
    """The cheapest first; together they free what the plan says."""
    plan = chat((says(500, 60),), (Row(result=100), says(200, 60)), (says(50),), fixed=200).plan(
        replace(LIMITS, limit=1_300)
    )

    assert [step.kind for step in plan.steps] == ["strip", "summarize"]
    assert plan.effective - sum(step.tokens for step in plan.steps) == plan.after
    assert all(step.reversible for step in plan.steps)


def test_the_open_turn_is_never_summarized() -> None:
    """With one turn there is no closed range, however long it is."""
    plan = chat((says(850),)).plan(LIMITS)

    assert (plan.action, plan.reasons) == ("warn", ("over_threshold", "nothing_closed"))
    assert plan.to_summarize is None


def test_messages_before_the_first_question_are_in_no_range() -> None:
    """A system message of the conversation is no turn."""
    made = Chat()
    made.add(says(200))
    for _ in range(3):
        made.add(Row(said=10, starts=True))
        made.add(says(250))

    assert made.plan(LIMITS).to_summarize == Range(2, 5)


def test_too_little_freed_is_not_worth_it() -> None:
    """A small closed turn next to a large open one: a warning, and the prompt cache stays."""
    plan = chat((says(30),), (says(800),)).plan(LIMITS)

    assert (plan.action, plan.reasons) == ("warn", ("over_threshold", "ineffective"))
    assert (plan.steps, plan.after) == ((), plan.effective)


def test_what_makes_the_request_fit_is_worth_it() -> None:
    """Over the limit, even a small step is taken if it is enough."""
    plan = chat((says(30, 20),), (says(940),)).plan(LIMITS)

    assert (plan.action, plan.reasons) == ("strip", ("over_limit",))
    assert plan.after == 990


def test_nothing_legal_makes_it_fit() -> None:
    """An open turn that is too long for the model is stated to be, with the least it could be."""
    plan = chat((says(300),), (says(1_100),)).plan(LIMITS)

    assert (plan.action, plan.reasons) == ("refuse", ("over_limit", "still_over_limit"))
    assert (plan.steps, plan.to_summarize, plan.after) == ((), None, 1_210)


def test_soon_after_a_change_nothing_is_done_while_it_fits() -> None:
    """Hysteresis: the request has to grow by a tenth first, or not to fit."""
    turns = [(says(290),)] * 3
    cooling = chat(*turns, since=850).plan(LIMITS)
    grown = chat(*turns, since=800).plan(LIMITS)
    too_long = chat(*turns, (says(200),), since=1_050).plan(LIMITS)

    assert (cooling.action, cooling.reasons) == ("warn", ("over_threshold", "cooling_down"))
    assert (grown.action, too_long.action) == ("summarize", "summarize")


def test_a_new_summary_takes_the_place_of_the_old_one() -> None:
    """Summaries are not stacked: the wider range supersedes the one inside."""
    made = chat((says(400),), (says(340),), (says(400),), in_force=[SummaryInForce(1, 2, 90)])
    plan = made.plan(LIMITS)

    assert plan.to_summarize == Range(1, 4)
    assert plan.after == made.effective("none") - 90 - 350 + 100


def test_a_range_in_force_is_taken_whole() -> None:
    """A cut never falls inside a range that a summary stands for."""
    made = chat((says(300),), (says(900),), (says(900),), (says(200),), (says(90),))
    made.in_force = [SummaryInForce(3, 6, 400)]
    plan = made.plan(LIMITS)

    assert plan.to_summarize == Range(1, 6)


def test_a_call_that_is_answered_in_a_later_turn_stays_with_its_answer() -> None:
    """Where a cut would part them, a later one is taken, or else an earlier one."""
    late = chat(
        (says(600), Row(said=10, calls="a")), (Row(result=10, answers="a"), says(100)), (says(200),)
    )
    open_answer = chat(
        (says(300),), (says(400), Row(said=10, calls="a")), (Row(result=10, answers="a"), says(200))
    )

    assert late.plan(LIMITS, splits=True).to_summarize == Range(1, 6)
    assert open_answer.plan(LIMITS, splits=True).to_summarize == Range(1, 2)
    assert late.plan(LIMITS).to_summarize == Range(1, 3)


def test_a_call_whose_answer_is_in_the_open_turn_can_make_every_cut_wrong() -> None:
    """Then nothing is summarized."""
    made = chat((says(600), Row(said=10, calls="a")), (Row(result=10, answers="a"), says(250)))

    assert made.plan(LIMITS, splits=True, results=False).action == "warn"


def test_the_plan_repeats_what_it_was_asked() -> None:
    """The one who reads it needs nothing else."""
    plan = chat((says(1),)).plan(LIMITS)

    assert (plan.limit, plan.reserve, plan.threshold) == (1_100, 100, 0.8)
    assert plan.exactness == "exact"


@each(
    "wrong, names",
    [
        ({"limit": 100, "reserve": 100}, "reserve"),
        ({"limit": 0}, "limit"),
        ({"limit": 100, "threshold": 0}, "threshold"),
        ({"limit": -1}, "limit: 1 or more, not -1"),
        ({"limit": 100, "threshold": 85}, "threshold: a share, not 85"),
        ({"limit": 100, "threshold": float("nan")}, "threshold"),
        ({"limit": 100, "target": -0.1}, "target"),
        ({"limit": 100, "threshold": 0.5, "target": 0.5}, "target"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, Any], names: str) -> None:
    """A share given as a percentage is the usual slip."""
    with pytest.raises(rs.InvalidCall, match=names):
        Limits(**wrong)


def a_turn(dice: random.Random) -> list[Row]:
    """Return one turn: a question, a tool loop of any length, and an answer."""
    rows = [Row(said=dice.randint(5, 200), starts=True)]
    for _ in range(dice.choice((0, 0, 1, 2, 5))):
        rows.append(Row(said=dice.randint(10, 60), thought=dice.randint(0, 300)))
        rows.append(Row(said=5, result=dice.randint(0, 600)))
    return [*rows, Row(said=dice.randint(5, 400), thought=dice.randint(0, 400))]


LONGEST = 200 + 5 * (60 + 300 + 605) + 800
"""What one turn of these can count at most."""


def simulate(
    turns: int, *, seed: int, room: int, fixed: int, threshold: float, results: bool
) -> int:
    """Talk on, follow every plan, and return how many there were.

    It never goes to and fro, never exceeds the limit, never loses a row. The limit has room
    for a turn, what is fixed and a summary, so a plan can always be made.
    """
    summary_tokens = 1_500
    limit = 1_000 + fixed + LONGEST + summary_tokens + room
    limits = Limits(limit=limit, reserve=1_000, threshold=threshold, summary_tokens=summary_tokens)
    dice = random.Random(seed)
    made = Chat(fixed=fixed)
    written: list[Row] = []
    acts = 0
    for row in chain.from_iterable(a_turn(dice) for _ in range(turns)):
        made.add(row)
        written.append(row)
        plan = made.plan(limits, results=results)
        assert plan.action != "refuse"
        if plan.action in ACTS:
            acts += 1
            assert made.since is None or (
                plan.effective - made.since >= limits.growth or plan.effective > limits.usable
            ), "no change soon after a change"
            made.apply(plan, dice.randint(1, summary_tokens))
            assert made.effective(made.strip) <= plan.after
            assert acts % 10 or made.effective(made.strip) == made.walked()
            assert made.plan(limits, results=results).action not in ACTS, "once is enough"
        assert made.effective(made.strip) <= limits.usable
    covered = list(chain.from_iterable(range(s.first, s.last + 1) for s in made.in_force))
    assert made.rows == written, "rows are only ever added"
    assert len(covered) == len(set(covered)), "no row is summarized twice"
    return acts


@examples(30)
@given(
    seed=st.integers(0, 1 << 32),
    room=st.integers(0, 90_000),
    fixed=st.integers(0, 2_000),
    threshold=st.floats(0.3, 1),
    results=st.booleans(),
)
def test_no_conversation_goes_to_and_fro(
    seed: int, room: int, fixed: int, threshold: float, results: bool
) -> None:
    """Whatever the limits and the turns, every plan holds what it says."""
    simulate(200, seed=seed, room=room, fixed=fixed, threshold=threshold, results=results)


def test_ten_thousand_turns() -> None:
    """A conversation that never ends is summarized again and again, and always fits."""
    acts = simulate(10_000, seed=91, room=50_000, fixed=900, threshold=0.85, results=True)

    assert 100 < acts < 1_000


rows = st.builds(
    Row, said=st.integers(0, 60), thought=st.integers(0, 60), result=st.integers(0, 60)
)


@st.composite
def small_chats(draw: st.DrawFn) -> Chat:
    """A few turns, and perhaps something before the first; some results are cleared already."""
    made = Chat(fixed=draw(st.integers(0, 40)))
    for row in draw(st.lists(rows, max_size=2)):
        made.add(row)
    for turn in draw(st.lists(st.lists(rows, max_size=4), min_size=1, max_size=5)):
        made.add(Row(said=10, starts=True))
        for row in turn:
            made.add(row)
    made.cleared = draw(st.integers(0, (made.start[-1] or 1) - 1))
    return made


def least(made: Chat, limits: Limits) -> int:
    """Return the least that the request can be made to count, by trying everything."""
    head = len(made.rows)
    starts = [n for n in range(1, head + 1) if made.start[n] == n]
    ways = [(0, 0), *((a, b - 1) for a, b in combinations(starts, 2))]
    found = []
    for first, last in ways:
        tried = Chat(fixed=made.fixed, strip="all", cleared=max(made.cleared, starts[-1] - 1))
        for row in made.rows:
            tried.add(row)
        if last:
            tried.summarize(Range(first, last), limits.summary)
        found.append(tried.walked())
    return min(found)


@given(small_chats(), st.integers(60, 400), st.integers(1, 30))
def test_a_refusal_means_that_nothing_would_help(
    made: Chat, limit: int, summary_tokens: int
) -> None:
    """Everything that is legal was thought of, and everything proposed is legal."""
    limits = Limits(limit=limit, summary_tokens=summary_tokens)
    plan = made.plan(limits)

    assert (plan.action == "refuse") == (least(made, limits) > limits.usable)
    if plan.action in ACTS:
        made.apply(plan, summary_tokens)
        assert made.walked() == plan.after <= limits.usable
    else:
        assert plan.steps == ()


@given(small_chats(), st.integers(60, 400))
def test_undoing_a_plan_restores_the_request(made: Chat, limit: int) -> None:
    """Nothing was deleted: without what was done next to the rows, all is as it was."""
    before, cleared = made.walked(), made.cleared
    plan = made.plan(Limits(limit=limit))
    made.apply(plan, 1)
    made.strip, made.cleared, made.in_force = "none", cleared, []

    assert made.walked() == before
