"""What a session sends: one number three ways, plans that are applied and taken back, budgets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.ledger.views import Views
from tests.clock import Clock
from tests.egress.targets import TARGETS, Target
from tests.happenings import POLICIES, STEPS, cleared_upto, step
from tests.ledger.compacting import compact
from tests.properties import examples

DEEPSEEK: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-chat"}
STRIP_ALL = {"reasoning.stripFromContext": "all"}
KEEP_ALL = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"}


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        yield opened


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    return store.session("chat", create=True)


def thinking(text: str) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=text, source_field="reasoning_content")


def turn(session: rs.Session, number: int, words: int = 100) -> None:
    session.append(
        [
            rs.user(f"Question {number}? " + "please " * words),
            rs.assistant(thinking("hm " * words), rs.TextBlock(text="yes " * words)),
        ]
    )


def events(text: str, thought: str) -> list[dict[str, Any]]:
    deltas = [{"reasoning_content": thought}, {"content": text}]
    return [
        *({"choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]


def answered(session: rs.Session, text: str = "Yes.", **asked: Any) -> rs.Request:
    """Build a request, record an answer to it, and return the request."""
    request = session.build_request(**asked)
    with session.record(events(text, "Let me think."), request=request) as reply:
        for _ in reply:
            pass
    return request


# One number, three ways


def results_that_go_out(session: rs.Session) -> set[str]:
    """Which of the long results stand in a view, by what is unique in each."""
    gone = [c for c in session.compactions() if c.kind == "summary"]
    return {
        block.result.split()[0]
        for item in session.history()
        for block in item.message.blocks
        if isinstance(block, rs.ToolResponseBlock) and str(block.result).startswith("canary-")
        if item.position > cleared_upto(session)
        if not any(one.first <= item.position <= one.last for one in gone)
    }


@examples(60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.sampled_from(TARGETS)),
        max_size=14,
    ),
    policy=st.sampled_from(POLICIES),
    asked=st.sampled_from(TARGETS),
    along=st.booleans(),
)
def test_usage_is_the_count_of_the_request_whatever_happened(
    steps: list[tuple[str, int, Target]], policy: dict[str, Any], asked: Target, along: bool
) -> None:
    """BR-004: from carried state alone, over every history, policy and target."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        settings = {**asked.asks, **policy}
        for number, (kind, at, target) in enumerate(steps):
            session = step(session, kind, at, target, f"n{number}")
            if along:
                # What was read for one request is what the next goes on from.
                session.build_request(settings=settings, **asked.to)

        usage = session.usage(settings=settings, **asked.to, system="Be brief.")
        request = session.build_request(settings=settings, **asked.to, system="Be brief.")

        assert usage.effective == request.tokens.effective
        assert usage.raw == request.tokens.raw
        assert usage.fixed == request.tokens.fixed
        withheld = sum(verdict.tokens for verdict in request.verdicts if not verdict.kept)
        assert request.tokens.raw - request.tokens.effective == withheld
        assert store.verify().problems == ()
        said = set(re.findall(r"canary-n\d+", json.dumps(request.body)))
        assert said <= results_that_go_out(session)
        if not session.compactions():
            of_messages = rs.build_request(
                [item.message for item in session.history()],
                settings=settings,
                **asked.to,
                system="Be brief.",
            )
            assert request.body == of_messages.body


def test_usage_prints_as_effective_of_limit(session: rs.Session) -> None:
    """``123000/212000``."""
    turn(session, 1)

    usage = session.usage(limit=212_000)

    assert str(usage) == f"{usage.effective}/212000"


# What-if


def test_what_if_says_what_each_choice_would_send(session: rs.Session) -> None:
    """Each row is the request that those settings build."""
    turn(session, 1)
    turn(session, 2)

    for row in session.what_if(settings=KEEP_ALL, **DEEPSEEK).rows:
        built = session.build_request(
            settings={
                "reasoning.includeInContext": row.include_in_context,
                "reasoning.stripFromContext": row.strip_from_context,
            },
            **DEEPSEEK,
        )
        assert row.tokens == built.tokens


# The prompt cache


def test_a_request_says_how_far_the_last_sent_one_reaches(session: rs.Session) -> None:
    """With the same settings the next request extends it."""
    session.append(rs.user("One?"))
    first = answered(session, settings=KEEP_ALL, **DEEPSEEK)
    session.append(rs.user("Two?"))

    request = session.build_request(settings=KEEP_ALL)

    assert request.cache_break == len(first.body["messages"]) == 1
    assert request.body["messages"][:1] == first.body["messages"]


def test_the_last_request_is_built_again(session: rs.Session) -> None:
    """Whatever the settings and the messages of now; its system prompt has to be named."""
    session.append(rs.user("One?"))
    answered(session, settings=KEEP_ALL, **DEEPSEEK)
    session.append(rs.user("Two?"))
    sent = answered(session, settings=KEEP_ALL, system="Be short.", **DEEPSEEK)
    session.append(rs.user("Three?"))

    again = session.context(system="Be short.").last_request()

    assert again is not None
    assert again.body == sent.body
    assert [one.kept for one in again.verdicts] == [True]


def test_a_request_says_which_message_the_last_one_did_not_send_like_this(
    session: rs.Session,
) -> None:
    """A thought that is left out now, else the first new message; not the system prompt."""
    for text in ("One?", "Two?", "Three?"):
        session.append(rs.user(text))
        answered(session, settings=KEEP_ALL, system="Be short.", **DEEPSEEK)
    session.append(rs.user("Four?"))
    last = session.context().last_request()
    assert last is not None

    kept, without = session.build_request(settings=KEEP_ALL), session.build_request()

    assert kept.first_difference(last) == 6
    assert without.first_difference(last) == 2
    assert last.first_difference(last) is None
    assert '+      "content": "Four?"' in kept.diff(last)
    assert last.diff(last) == []


def test_without_a_recorded_request_there_is_no_last_one(session: rs.Session) -> None:
    """Nor where its messages were compacted since."""
    turn(session, 1)
    assert session.context().last_request() is None

    talked(session)
    assert session.context().last_request() is not None
    session.erase(1)
    assert session.context().last_request() is None


CHANGES: dict[str, Callable[[rs.Session], Any]] = {
    "a summary": lambda session: session.compact(
        session.compression(
            limit=60, threshold=0.1, settings={"reasoning.stripFromContext": "all"}
        ),
        summary="They talked.",
    ),
    "an erasure": lambda session: session.erase(1),
    "an erased thought": lambda session: session.erase(2, only="reasoning"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_before_the_cache_break_all_is_as_it_was_sent(session: rs.Session, change: str) -> None:
    """Whatever was done to the conversation since."""
    for number in range(3):
        session.append(rs.user(f"Question {number}?"))
        last = answered(session, settings=KEEP_ALL, **DEEPSEEK)
    CHANGES[change](session)
    session.append(rs.user("And now?"))

    request = session.build_request(settings=KEEP_ALL)

    assert request.cache_break is not None
    kept = request.body["messages"][: request.cache_break]
    assert kept == last.body["messages"][: request.cache_break]


def talked(session: rs.Session) -> rs.Request:
    """Three turns that were recorded, and a fourth after a summary of the first two."""
    for number in range(3):
        session.append(rs.user(f"Question {number}? " + "please " * 20))
        answered(session, **DEEPSEEK)
    plan = session.compression(limit=100, threshold=0.1, reserve=1, **DEEPSEEK)
    assert plan.to_summarize is not None
    session.compact(plan, summary="They talked.")
    session.append(rs.user("And now?"))
    return answered(session, **DEEPSEEK)


def undone_on_a_fork_behind_it(session: rs.Session) -> rs.Request:
    """A fork does not take along what was undone."""
    sent = talked(session)
    session.undo(session.compactions()[0].id)
    session.append(rs.user("Well?"))
    session.edit(9, rs.user("Really?"))
    return sent


def undone_before_it(session: rs.Session) -> rs.Request:
    """What was undone by then had been in force no more."""
    talked(session)
    session.undo(session.compactions()[0].id)
    session.append(rs.user("Again?"))
    return answered(session, **DEEPSEEK)


def in_force_since(session: rs.Session) -> rs.Request:
    """A summary that a fork took along holds from the fork's second turn on."""
    for number in range(3):
        session.append(rs.user(f"Question {number}?"))
        answered(session, **DEEPSEEK)
    entry = session._state.prepare(rs.user("They talked."), session._row.encoding)
    compact(session._state.ledger, session._row.key, 1, 1, 4, entry)
    session.pop_turn()
    return answered(session, **DEEPSEEK)


def in_force_all_along(session: rs.Session) -> rs.Request:
    """Nothing was changed."""
    sent = talked(session)
    session.append(rs.user("Well?"))
    session.edit(9, rs.user("Really?"))
    return sent


def made_for_what_came_behind_it(session: rs.Session) -> rs.Request:
    """A summary of later turns changes nothing before them."""
    sent = talked(session)
    session.append([rs.user("Well?"), rs.assistant("Well."), rs.user("So?")])
    ledger, key = session._state.ledger, session._row.key
    first = session.history()[-3].position
    entry = session._state.prepare(rs.user("They went on."), session._row.encoding)
    compact(ledger, key, session._branch, first, first + 1, entry)
    return sent


@pytest.mark.parametrize(
    ("history", "holds"),
    [
        (undone_on_a_fork_behind_it, False),
        (undone_before_it, True),
        (in_force_since, False),
        (in_force_all_along, True),
        (made_for_what_came_behind_it, True),
    ],
)
def test_the_cache_breaks_where_another_summary_was_sent(
    session: rs.Session, history: Callable[[rs.Session], rs.Request], holds: bool
) -> None:
    """What was in force when the reply was asked for, on the reply's own branch, decides."""
    sent = history(session)
    session.append(rs.user("What next?"))

    request = session.build_request()

    before: list[Any] = sent.body["messages"]
    assert request.cache_break == (len(before) if holds else 0)
    assert (request.body["messages"][: len(before)] == before) is holds


def test_other_tools_break_the_cache_at_once(session: rs.Session) -> None:
    """They stand before the first message."""
    session.append(rs.user("One?"))
    answered(session, **DEEPSEEK)
    tools = [{"name": "look_up", "parameters": {"type": "object", "properties": {}}}]

    assert session.build_request(tools=tools).cache_break == 0


# Compression


def test_a_plan_is_a_decision_and_changes_nothing(session: rs.Session) -> None:
    """The same asked twice is the same."""
    for number in range(6):
        turn(session, number)
    before = session.usage(**DEEPSEEK)

    plans = [session.compression(limit=1_000, **DEEPSEEK) for _ in range(2)]

    assert plans[0] == plans[1]
    assert plans[0].action == "summarize"
    assert session.usage(**DEEPSEEK) == before


def test_a_summary_goes_out_where_its_range_began_and_history_keeps_all(
    session: rs.Session,
) -> None:
    """One user message in the place of many; nothing is deleted."""
    for number in range(6):
        turn(session, number)
    plan = session.compression(limit=1_500, reserve=100, summary_tokens=8, **DEEPSEEK)
    assert plan.to_summarize is not None

    made = session.compact(plan, summary="They greeted each other.")

    sent = session.build_request(**DEEPSEEK).body["messages"]
    assert made is not None
    framed = "Summary of the conversation so far:\n\nThey greeted each other."
    assert sent[0] == {"role": "user", "content": framed}
    assert made.summary == "They greeted each other."
    assert len(sent) == 12 - plan.to_summarize.last + 1
    assert len(session.history()) == 12
    assert session.compactions() == [made]
    assert session.usage(**DEEPSEEK).effective == plan.after - 8 + made.tokens


def test_a_count_is_calibrated_by_the_last_report_of_the_same_model(session: rs.Session) -> None:
    """The parts still add up; without a report, for another model or unasked it is as it was."""
    session.append(rs.user("Is 91 prime?"))

    def answer(reported: int | None) -> rs.Request:
        chat = session.context(**DEEPSEEK, system="Be brief.")
        request = chat.request()
        body: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": "No."}}]}
        if reported is not None:
            body["usage"] = {"prompt_tokens": reported, "completion_tokens": 3}
        list(chat.record(body))
        session.append(rs.user("And 97?"))
        return request

    answer(None)
    plain = session.usage(**DEEPSEEK)
    assert session.usage(**DEEPSEEK, calibrated=True) == plain
    sent = answer(100)
    plain = session.usage(**DEEPSEEK)
    found = session.usage(**DEEPSEEK, calibrated=True)
    kinds = found.by_kind

    assert found.exactness == "calibrated"
    assert found.effective == round(plain.effective * 100 / sent.tokens.effective)
    assert kinds.system + kinds.tools + kinds.messages + kinds.thinking == found.effective
    assert found.effective + kinds.withheld == found.raw
    other: dict[str, Any] = {"provider": "openai", "model": "gpt-4o"}
    assert session.usage(**other, calibrated=True) == session.usage(**other)


def test_a_summary_of_ones_own_keeps_its_blocks_in_the_frame(session: rs.Session) -> None:
    """On a protocol whose turns alternate it is a part of the user's next message."""
    for number in range(6):
        turn(session, number)
    plan = session.compression(limit=1_500, reserve=100, **DEEPSEEK)
    picture = rs.MediaBlock(kind="image", mime_type="image/png", url="https://a.example/b.png")
    mine = rs.user(picture, "They greeted each other.")

    made = session.compact(plan, summary=mine)

    assert made is not None
    assert made.message is not None
    assert made.message.blocks[1:] == mine.blocks
    to: dict[str, Any] = {"provider": "anthropic", "model": "claude-opus-5"}
    first = session.build_request(**to).body["messages"][0]
    texts = [part.get("text") for part in first["content"] if part["type"] == "text"]
    assert texts[0] == "Summary of the conversation so far:\n\n"
    assert texts[1] == "They greeted each other."
    assert len(texts) == 3
    assert session.usage(**to).effective == session.build_request(**to).tokens.effective


def test_a_range_to_summarize_has_the_earlier_summary_and_what_came_since(
    session: rs.Session,
) -> None:
    """Never the whole original again; undone, it has the original."""
    for number in range(6):
        turn(session, number)
    first = session.compression(limit=1_500, reserve=100, **DEEPSEEK)
    assert first.to_summarize is not None
    old = first.to_summarize
    assert list(old.messages) == [item.message for item in session.history(before=old.last + 1)]
    made = session.compact(first, summary="They greeted each other.")
    assert made is not None
    for number in range(6, 12):
        turn(session, number)

    again = session.compression(limit=1_500, reserve=100, **DEEPSEEK).to_summarize

    assert again is not None
    since = session.history(after=old.last, before=again.last + 1)
    assert list(again.messages) == [made.message, *(item.message for item in since)]
    session.undo(made.id)
    whole = session.compression(limit=1_500, reserve=100, **DEEPSEEK).to_summarize
    assert whole is not None
    assert whole.messages[0] == session.get(1).message


def test_a_plan_counts_what_is_kept_once_another_message_thought_last(
    session: rs.Session,
) -> None:
    """The one that did lies in the range; the greeting before the first question is it then."""
    session.settings.set("reasoning.includeInContext", True)
    session.settings.set("reasoning.stripFromContext", "allButLast")
    session.append(rs.assistant(thinking("Greet them. " * 30), rs.TextBlock(text="Hello.")))
    for number in range(3):
        turn(session, number)
    session.append(rs.user("And now?"))
    plan = session.compression(limit=600, summary_tokens=8, min_freed=200, **DEEPSEEK)
    assert [step.kind for step in plan.steps] == ["summarize"]
    assert plan.to_summarize is not None
    assert (plan.to_summarize.first, plan.to_summarize.last) == (2, 7)

    made = session.compact(plan, summary="They talked.")

    assert made is not None
    assert session.usage(**DEEPSEEK).effective == plan.after - 8 + made.tokens


def test_a_plan_is_made_although_a_summary_is_undone_meanwhile(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted with it in force is planned for without."""
    for number in range(6):
        turn(session, number)
    made = session.compact(session.compression(limit=1_500, **DEEPSEEK), summary="They talked.")
    assert made is not None
    ledger = session._state.ledger
    view_totals = ledger.views.view_totals

    def then_undone(*place: Any) -> Any:
        found = view_totals(*place)
        session.undo(made.id)
        return found

    monkeypatch.setattr(ledger.views, "view_totals", then_undone)

    assert session.compression(limit=10_000, **DEEPSEEK).action == "none"


def test_undo_gives_the_same_request_again(session: rs.Session) -> None:
    """A summary is taken back whole."""
    for number in range(6):
        turn(session, number)
    before = session.build_request(**DEEPSEEK).body
    made = session.compact(session.compression(limit=1_000, **DEEPSEEK), summary="They talked.")
    assert made is not None
    assert session.build_request(**DEEPSEEK).body != before

    session.undo(made.id)

    assert session.build_request(**DEEPSEEK).body == before


def test_a_plan_that_strips_sets_the_sessions_own_setting(session: rs.Session) -> None:
    """It can be unset like any other."""
    for number in range(6):
        turn(session, number)
    session.settings.set("reasoning.includeInContext", True)

    plan = session.compression(limit=2_000, **DEEPSEEK)
    made = session.compact(plan)

    assert (plan.action, made) == ("strip", None)
    assert session.settings.resolved()["reasoning.stripFromContext"].layer == "session"
    assert session.usage(**DEEPSEEK).effective == plan.after


def test_a_plan_stays_good_while_its_range_is_untouched(session: rs.Session) -> None:
    """What is stated after it does no harm; what is erased in it does."""
    for number in range(6):
        turn(session, number)
    plan = session.compression(limit=1_000, **DEEPSEEK)
    turn(session, 7)
    made = session.compact(plan, summary="They talked.")
    assert made is not None
    session.undo(made.id)
    plan = session.compression(limit=1_000, **DEEPSEEK)
    session.erase(2)

    with pytest.raises(rs.Conflict, match="changed since"):
        session.compact(plan, summary="They talked.")

    assert session.compactions() == []


@pytest.mark.parametrize("which", ["the first message", "the one behind the last"])
def test_a_plan_is_no_good_where_turns_begin_elsewhere_by_now(
    session: rs.Session, which: str
) -> None:
    """What was a range of whole turns is none any more: the one who planned it is not to blame."""
    for number in range(6):
        turn(session, number)
    plan = session.compression(limit=1_000, **DEEPSEEK)
    assert plan.to_summarize is not None
    at = plan.to_summarize
    session.erase(at.first if which == "the first message" else at.last + 1)

    with pytest.raises(rs.Conflict, match="changed since"):
        session.compact(plan, summary="They talked.")

    assert session.compactions() == []


def test_a_plan_is_of_one_moment_and_refused_once_turns_begin_elsewhere(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure while it is decided is in the next plan, which can be applied."""
    for number in range(6):
        turn(session, number)
    plain = Views.basis
    erased: list[Any] = []

    def before_erasing(self: Views, key: int, branch: int, first: int, last: int) -> Any:
        found = plain(self, key, branch, first, last)
        if not erased:
            with ThreadPoolExecutor(1) as elsewhere:
                erased.append(elsewhere.submit(session.erase, last + 1).result())
        return found

    monkeypatch.setattr(Views, "basis", before_erasing)
    plan = session.compression(limit=1_000, **DEEPSEEK)

    with pytest.raises(rs.Conflict):
        session.compact(plan, summary="They talked.")
    again = session.compression(limit=1_000, **DEEPSEEK)
    assert session.compact(again, summary="They talked.") is not None


@pytest.mark.parametrize("what", ["a summary", "a summary taken back", "an erasure"])
def test_the_cached_prefix_does_not_depend_on_the_clock(
    session: rs.Session, url: str, what: str
) -> None:
    """It goes back before a reply and while that arrives; another handle tells what is the same."""
    clock = Clock()
    clock.pass_(10**9)  # the session was made now
    session._state.ledger.clock.now = clock
    for number in range(6):
        turn(session, number)
    made: Any = None
    if what == "a summary taken back":
        made = session.compact(session.compression(limit=1_000, **DEEPSEEK), summary="They talked.")
    clock.pass_(-3600)
    session.append(rs.user("And now?"))
    sent = session.build_request(**DEEPSEEK)

    def reply() -> Iterator[dict[str, Any]]:
        yield {"choices": [{"delta": {"content": "Yes."}}]}
        clock.pass_(-3600)

    list(session.record(reply(), request=sent))
    if what == "a summary":
        session.compact(session.compression(limit=1_000, **DEEPSEEK), summary="They talked.")
    elif what == "an erasure":
        session.erase(2)
    else:
        session.undo(made.id)

    with rs.Store(url) as elsewhere:
        request = elsewhere.session(session.id).build_request(**DEEPSEEK)

    same = request.cache_break
    assert request.body["messages"][:same] == sent.body["messages"][:same]


def test_the_growth_of_a_request_does_not_depend_on_the_clock(session: rs.Session) -> None:
    """It goes back by an hour between two summaries: what counts is the one made last."""
    clock = Clock()
    clock.pass_(10**9)
    session._state.ledger.clock.now = clock
    limits = {"limit": 1_200, "threshold": 0.3, "min_growth": 400, **DEEPSEEK}
    for number in range(8):
        turn(session, number)
    session.compact(session.compression(**limits), summary="They talked.")
    clock.pass_(-3600)
    for number in range(8):
        turn(session, number)
    session.compact(session.compression(**limits), summary="yes " * 420)

    plan = session.compression(**limits)

    assert (plan.action, plan.reasons) == ("warn", ("over_threshold", "cooling_down"))


def test_nothing_more_is_done_until_the_request_has_grown(session: rs.Session) -> None:
    """Hysteresis holds across handles: the summary remembers."""
    for number in range(8):
        turn(session, number)
    limits = {"limit": 1_200, "threshold": 0.3, "min_growth": 400, **DEEPSEEK}
    session.compact(session.compression(**limits), summary="yes " * 420)

    plan = session.branch(1).compression(**limits)

    assert (plan.action, plan.reasons) == ("warn", ("over_threshold", "cooling_down"))


def test_a_fork_plans_around_the_summary_that_it_took_along(session: rs.Session) -> None:
    """Before its own turn has begun that does not hold yet, and no plan reaches into it."""
    for number in range(5):
        turn(session, number)
    plan = session.compression(limit=800, summary_tokens=10, target=0.3, **DEEPSEEK)
    assert plan.to_summarize is not None
    session.compact(plan, summary="They talked.")
    fork = session.fork(at=plan.to_summarize.last + 1)
    assert fork.compactions() == []

    plans = [fork.compression(limit=limit, **DEEPSEEK) for limit in (900, 500)]

    assert [one.action for one in plans] == ["warn", "refuse"]
    fork.append(rs.user("And now?"))
    assert [one.summary for one in fork.compactions()] == ["They talked."]


@pytest.mark.parametrize("case", ["nothing to do", "no summary", "needless summary", "elsewhere"])
def test_a_plan_is_applied_whole_or_not_at_all(session: rs.Session, case: str) -> None:
    """What does not fit it is refused, and nothing changes."""
    for number in range(6):
        turn(session, number)
    session.settings.set("reasoning.includeInContext", True)
    limit = {"nothing to do": 10**6, "needless summary": 2_000}.get(case, 400)
    plan = session.compression(limit=limit, **DEEPSEEK)
    handle = session.fork(at=3) if case == "elsewhere" else session
    summary = {"no summary": None, "nothing to do": None}.get(case, "They talked.")
    before = session.settings.resolved(), session.compactions()

    with pytest.raises(rs.InvalidCall):
        handle.compact(plan, summary=summary)

    assert (session.settings.resolved(), session.compactions()) == before


# The reasoning budget


def test_each_mark_of_a_budget_is_reported_once(store: rs.Store, session: rs.Session) -> None:
    """A warning at a share, and at exceeding; the one who asks second is not told."""
    session.append(rs.assistant(thinking("a"), usage=rs.Usage(output=90, reasoning=85)))
    told = [session.budget(limit=100), store.session("chat").budget(limit=100)]
    session.append(rs.assistant(thinking("a"), usage=rs.Usage(output=90, reasoning=85)))
    told += [session.budget(limit=100), session.budget(limit=100)]

    assert [(one.state, one.crossed) for one in told] == [
        ("warning", ("warning",)),
        ("warning", ()),
        ("exceeded", ("exceeded",)),
        ("exceeded", ()),
    ]


def test_the_asynchronous_face_compresses_too(url: str) -> None:
    """The same verbs, awaited."""

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            chat = await opened.session("chat", create=True)
            for number in range(6):
                await chat.append(
                    [
                        rs.user(f"Question {number}? " + "please " * 100),
                        rs.assistant(thinking("hm " * 100), "yes " * 100),
                    ]
                )
            plan = await chat.compression(limit=1_000, **DEEPSEEK)
            made = await chat.compact(plan, summary="They talked.")
            assert made is not None
            assert await chat.compactions() == [made]
            assert (await chat.what_if(**DEEPSEEK)).current.tokens.effective == (
                await chat.usage(**DEEPSEEK)
            ).effective
            assert (await chat.undo(made.id)).id == made.id
            assert (await chat.budget(limit=10)).crossed == ("exceeded",)

    asyncio.run(work())


# A context: named once, asked often

NAMED: dict[str, Any] = {**DEEPSEEK, "system": "Be brief.", "settings": KEEP_ALL}


def test_a_context_gives_what_the_session_gives_with_the_names_in_the_call(
    session: rs.Session,
) -> None:
    """Its request, its usage, its alternatives and its plan."""
    for number in range(6):
        turn(session, number)
    chat = session.context(**NAMED, limit=1_000)

    assert chat.request({"stream": True}).body == (
        session.build_request(**NAMED, extra={"stream": True}).body
    )
    assert chat.usage() == session.usage(**NAMED, limit=1_000)
    assert chat.usage(at=4) == session.usage(**NAMED, limit=1_000, at=4)
    assert str(chat.what_if()) == str(session.what_if(**NAMED))
    assert chat.compression(threshold=0.5) == (
        session.compression(limit=1_000, threshold=0.5, **NAMED)
    )


def test_a_context_follows_its_session_to_another_branch(session: rs.Session) -> None:
    """An edit moves the handle, and the next request is of the new branch."""
    chat = session.context(**DEEPSEEK)
    session.append([rs.user("Is 91 prime?"), rs.assistant("No.")])
    before = chat.request()

    session.edit(1, rs.user("Is 97 prime?"))

    assert [len(before.body["messages"]), len(chat.request().body["messages"])] == [2, 1]


@pytest.mark.parametrize("asked", [True, False], ids=["its request", "no request"])
def test_a_context_records_the_reply_of_its_model(session: rs.Session, asked: bool) -> None:
    """With what is known of the request that it built last, if it built one."""
    chat = session.context(**NAMED)
    session.append(rs.user("Is 91 prime?"))
    if asked:
        chat.request()
    with chat.record(events("No.", "7 * 13."), idempotency_key="k") as reply:
        list(reply)

    assert reply.stored is not None
    assert reply.stored.message.origin is not None
    assert reply.stored.message.origin.model == "deepseek-chat"
    assert session.build_request(**NAMED).cache_break == (2 if asked else None)
    with pytest.raises(rs.Conflict):
        list(chat.record(events("No.", "7 * 13."), idempotency_key="k"))


def test_a_context_without_a_limit_plans_nothing(session: rs.Session) -> None:
    """It is refused with the name to give; a limit that is none is refused where it is given."""
    with pytest.raises(rs.InvalidCall, match="needs the limit") as refused:
        session.context(**DEEPSEEK).compression()
    assert "limit=" in str(refused.value.hint)
    with pytest.raises(rs.InvalidCall, match="limit: 1 or more, not 0"):
        session.context(limit=0)


def test_a_context_is_asked_and_recorded_awaited(url: str) -> None:
    """The same verbs, with the same answers."""

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            session = await opened.session("chat", create=True)
            await session.append(rs.user("Is 91 prime?"))
            chat = session.context(**NAMED, limit=1_000)
            request = await chat.request()
            assert request.body == (await session.build_request(**NAMED)).body
            async with chat.record(events("No.", "7 * 13.")) as reply:
                assert [chunk async for chunk in reply]
            assert await chat.usage() == await session.usage(**NAMED, limit=1_000)
            assert (await chat.compression()).action == "none"
            assert (await chat.what_if()).current.legal

    asyncio.run(work())
