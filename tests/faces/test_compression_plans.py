"""Plans that make a session's requests shorter: made, applied, taken back; and its budget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger.views import Views
from tests.clock import Clock

from .answering import DEEPSEEK, thinking, turn


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    return store.session("chat", create=True)


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
    narrow = ledger.views.narrow

    def then_undone(*given: Any, **named: Any) -> Any:
        found = narrow(*given, **named)
        session.undo(made.id)
        return found

    monkeypatch.setattr(ledger.views, "narrow", then_undone)

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


@pytest.mark.parametrize(
    "what", ["a summary", "a summary taken back", "one taken back before", "an erasure"]
)
def test_the_cached_prefix_does_not_depend_on_the_clock(
    session: rs.Session, url: str, what: str
) -> None:
    """It goes back before a reply and while that arrives; another handle gives the same."""
    clock = Clock()
    clock.pass_(10**9)  # the session was made now
    session._state.ledger.clock.now = clock
    for number in range(6):
        turn(session, number)
    made: Any = None
    if what in ("a summary taken back", "one taken back before"):
        made = session.compact(session.compression(limit=1_000, **DEEPSEEK), summary="They talked.")
    if what == "one taken back before":
        clock.pass_(60)
        session.undo(made.id)
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
    elif what == "a summary taken back":
        session.undo(made.id)

    with rs.Store(url) as elsewhere:
        request = elsewhere.session(session.id).build_request(**DEEPSEEK)

    same = request.cache_break
    assert request.body["messages"][:same] == sent.body["messages"][:same]
    if what == "one taken back before":  # the request is sent again, whole
        assert same == len(sent.body["messages"])


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
    """A warning at a share, and at exceeding; each mark is reported to one who asks."""
    session.append(rs.assistant(thinking("a"), usage=rs.Usage(output=90, reasoning=85)))
    budgets = [session.budget(limit=100), store.session("chat").budget(limit=100)]
    session.append(rs.assistant(thinking("a"), usage=rs.Usage(output=90, reasoning=85)))
    budgets += [session.budget(limit=100), session.budget(limit=100)]

    assert [(one.state, one.crossed) for one in budgets] == [
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
