"""Old tool results are cleared from what a session sends, and from nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.placeholders import PLACEHOLDER
from reasoning_store.testing import refusal
from tests.egress import oracle
from tests.egress.targets import TARGETS, Target
from tests.properties import each

HOST: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-chat"}
LIMIT = 1_500


def canary(number: int) -> str:
    return f"canary-{number}"


def turn(session: rs.Session, number: int, target: Target = TARGETS[0]) -> None:
    """A question, a call that is answered at length, and a reply."""
    name = f"t{number}"
    asks = target.reply(name, thought=f"Look up {number}.", text="A moment.", calls=1)
    (call,) = asks.tool_calls
    result = f"{canary(number)} " + "found it " * 200
    session.append(
        [
            rs.user(f"Question {number}?"),
            asks,
            rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result=result)),
            target.reply(f"{name}b", thought="Well.", text=f"Answer {number}."),
        ]
    )


def conversation(
    store: rs.Store, target: Target = TARGETS[0], turns: int = 4, name: str = "chat"
) -> rs.Session:
    session = store.session(name, create=True)
    for number in range(turns):
        turn(session, number, target)
    return session


@pytest.fixture
def session(url: str) -> Iterator[rs.Session]:
    with rs.Store(url) as store:
        yield conversation(store)


def cleared(session: rs.Session, **given: Any) -> rs.Plan:
    """Clear old tool results as a plan says, and return it."""
    plan = session.compression(limit=LIMIT, **{**HOST, **given})
    assert plan.action == "clear"
    session.compact(plan)
    return plan


def sent(session: rs.Session, **given: Any) -> str:
    return json.dumps(session.build_request(**{**HOST, **given}).body)


def canaries(text: str) -> list[int]:
    return [number for number in range(9) if canary(number) in text]


def test_a_plan_clears_old_results_before_anything_is_summarized(session: rs.Session) -> None:
    """What it said is what is counted then, by every way to count."""
    before = sent(session)

    plan = session.compression(limit=LIMIT, **HOST)
    assert sent(session) == before, "a plan changes nothing"
    made = session.compact(plan)

    assert (plan.action, plan.reasons, plan.to_summarize) == ("clear", ("over_limit",), None)
    assert [str(step.what) for step in plan.steps] == [str(plan.to_clear)] == ["1-11"]
    request = session.build_request(**HOST)
    assert plan.after == request.tokens.effective
    assert plan.after == session.usage(**HOST).effective
    assert plan.after == session.what_if(**HOST).current.tokens.effective
    assert plan.after == plan.effective - sum(step.tokens for step in plan.steps)
    assert canaries(json.dumps(request.body)) == [3]
    assert json.dumps(request.body).count(PLACEHOLDER) == 3
    assert made is not None
    assert session.compactions() == [made]
    assert (made.kind, made.first, made.last) == ("clearing", 1, 11)
    assert (made.message, made.summary, made.tokens) == (None, None, 0)


def test_a_plan_without_it_summarizes_instead(session: rs.Session) -> None:
    """Where what tools found is to stay."""
    plan = session.compression(limit=LIMIT, clear=False, **HOST)

    assert [step.kind for step in plan.steps] == ["summarize"]
    assert plan.to_clear is None


def test_history_shows_what_was_stored(session: rs.Session) -> None:
    """Nothing is deleted, and nothing of it counts otherwise."""
    before = session.history()

    cleared(session)

    assert session.history() == before
    assert session.get(3) == before[2]
    assert canaries(str(session.history())) == [0, 1, 2, 3]


def test_undo_gives_the_same_request_again(session: rs.Session) -> None:
    """To the letter."""
    before = sent(session)
    cleared(session)
    (made,) = session.compactions()

    taken = session.undo(made.id)

    assert taken == made
    assert sent(session) == before
    assert session.compactions() == []


@pytest.fixture(scope="module")
def store_of_targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{tmp_path_factory.mktemp('targets') / 'chat.db'}") as store:
        yield store


@each("target", TARGETS)
def test_the_count_is_that_of_the_body_and_the_host_takes_it(
    store_of_targets: rs.Store, target: Target
) -> None:
    """BR-004: found out without us; every call still has its answer."""
    session = conversation(store_of_targets, target, name=str(target))
    session.append(rs.user("And now?"))
    settings = {**target.asks, "reasoning.includeInContext": True}
    plan = cleared(session, settings={"reasoning.stripFromContext": "all"}, **target.to)

    request = session.build_request(settings=settings, **target.to)

    assert plan.to_clear is not None
    assert request.tokens.effective == oracle.effective(request.body, target.api)
    assert request.tokens.effective == session.usage(settings=settings, **target.to).effective
    if target.provider is not None:
        assert refusal(request.body, **target.to) is None
    said = json.dumps(request.body)
    assert canaries(said) == [n for n in range(4) if 4 * n + 3 > plan.to_clear.last]
    assert said.count(PLACEHOLDER) == 4 - len(canaries(said))


def test_no_result_of_the_open_turn_is_cleared(session: rs.Session) -> None:
    """The model has just asked for it."""
    assert canaries(sent(session)) == [0, 1, 2, 3]

    plan = session.compression(limit=400, summary_tokens=1, **HOST)

    assert (plan.action, plan.to_clear) == ("refuse", None)
    assert plan.after > 400


def test_a_plan_that_was_overtaken_does_nothing(session: rs.Session) -> None:
    """Erased in, or followed already: a conflict."""
    plan = session.compression(limit=LIMIT, **HOST)
    session.compact(plan)
    with pytest.raises(rs.Conflict, match="cleared already"):
        session.compact(plan)
    session.undo(session.compactions()[0].id)
    session.erase(4)
    before = sent(session)

    with pytest.raises(rs.Conflict, match="planned"):
        session.compact(plan)

    assert (sent(session), session.compactions()) == (before, [])


def test_a_summary_and_a_clearing_are_applied_together_or_not_at_all(session: rs.Session) -> None:
    """Of a plan that needs both."""
    for number in range(4, 8):
        turn(session, number)
    session.append([rs.user("Long? " + "please " * 900), rs.assistant("yes " * 500)])
    turn(session, 8)
    plan = session.compression(limit=3_000, summary_tokens=10, target=0.5, **HOST)
    assert [step.kind for step in plan.steps] == ["clear"]
    plan = session.compression(limit=2_000, summary_tokens=20, **HOST)
    assert plan.action == "summarize"

    made = session.compact(plan, summary="They looked things up.")

    assert made is not None
    assert made.kind == "summary"
    assert session.usage(**HOST).effective <= plan.after
    assert session.usage(**HOST).effective == session.build_request(**HOST).tokens.effective


def test_nothing_more_is_done_until_the_request_has_grown(session: rs.Session) -> None:
    """Hysteresis holds across handles: a clearing remembers what was counted then."""
    limits: dict[str, Any] = {"limit": LIMIT, "threshold": 0.3, "min_growth": 900, **HOST}
    plan = session.compression(**limits)
    assert plan.action == "clear"
    session.compact(plan)
    session.append([rs.user("And? " + "please " * 100), rs.assistant("yes " * 100)])

    again = session.branch(1).compression(**limits)

    assert (again.action, again.reasons) == ("warn", ("over_threshold", "cooling_down"))


def test_another_handle_sees_it_at_once(session: rs.Session, url: str) -> None:
    """And its undoing, though both had read the conversation before."""
    assert canaries(sent(session)) == [0, 1, 2, 3]
    with rs.Store(url) as other:
        chat = other.session("chat")
        cleared(chat)
        assert canaries(sent(session)) == [3]
        chat.undo(chat.compactions()[0].id)
        assert canaries(sent(session)) == [0, 1, 2, 3]


def test_the_next_request_goes_on_from_a_cleared_one(session: rs.Session) -> None:
    """What comes after is whole, and what was sent stays as it was sent."""
    cleared(session)
    before = session.build_request(**HOST).body["messages"]
    turn(session, 4)

    after = session.build_request(**HOST).body["messages"]

    assert after[: len(before)] == before
    assert canaries(json.dumps(after)) == [3, 4]


def test_before_the_cache_break_all_is_as_it_was_sent(session: rs.Session) -> None:
    """A clearing changes what was sent, from its first result on."""
    session.append(rs.user("And?"))
    last = session.build_request(**HOST)
    delta = {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}
    with session.record([delta], request=last) as reply:
        list(reply)
    session.append(rs.user("And now?"))
    assert session.build_request().cache_break == len(last.body["messages"])
    cleared(session)

    request = session.build_request()

    assert request.cache_break is not None
    assert request.cache_break <= 2
    kept = request.body["messages"][: request.cache_break]
    assert kept == last.body["messages"][: request.cache_break]


def test_branches_that_share_what_is_cleared_take_it_along(session: rs.Session) -> None:
    """An edit and another answer too; undone here it stands there."""
    cleared(session)
    first, early = session.branch(1), session.fork(at=9)

    session.edit(13, rs.user("Rather this?"))
    again = session.branch(1).regenerate(16)

    assert canaries(sent(early)) == [0, 1], "what was cleared further on is not this one's"
    assert canaries(sent(again)) == [3]
    assert canaries(sent(session)) == []
    first.undo(1)
    assert canaries(sent(first)) == [0, 1, 2, 3]
    assert canaries(sent(session)) == []


def test_erasing_does_not_bring_old_results_back(session: rs.Session) -> None:
    """A clearing holds nothing of what was erased, so it stays."""
    cleared(session)

    session.erase(3)
    session.erase(only="reasoning")

    assert canaries(sent(session)) == [3]
    assert len(session.compactions()) == 1


def test_an_export_and_a_backup_have_it(session: rs.Session, url: str, tmp_path: Path) -> None:
    """What is sent from there is what is sent from here."""
    cleared(session)
    with rs.Store(url) as store, rs.Store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.import_lines(store.export_lines())
        assert sent(other.session("chat")) == sent(session)
        assert other.session("chat").compactions() == session.compactions()
        assert other.verify().ok
        if url.startswith("sqlite"):
            store.backup(tmp_path / "backup.db")
            with rs.Store(f"sqlite:///{tmp_path / 'backup.db'}") as copy:
                assert sent(copy.session("chat")) == sent(session)


def test_an_import_without_counts_counts_what_clearing_frees(session: rs.Session, url: str) -> None:
    """As everything else of a message."""
    plan = cleared(session)
    with rs.Store(url) as store, rs.Store("sqlite://") as other:
        lines = [json.loads(line) for line in store.export_lines()]
        other.import_lines(
            json.dumps({name: value for name, value in line.items() if name != "counts"})
            for line in lines
        )
        chat = other.session("chat")
        assert chat.usage(**HOST).effective == plan.after
        assert chat.build_request(**HOST).tokens.effective == plan.after
        assert other.verify().ok


def test_reasoning_that_is_bound_to_what_was_cleared_is_warned_about(tmp_path: Path) -> None:
    """The host checks the prefix, and it is another."""
    claude = next(target for target in TARGETS if target.provider == "anthropic")
    bound = replace(claude, model="claude-opus-5-5")
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        session = conversation(store, bound)
        keep = {"reasoning.includeInContext": True}
        assert "binding" not in codes(session, settings=keep, **bound.to)
        session.compact(session.compression(limit=LIMIT, **bound.to))
        assert "binding" in codes(session, settings=keep, **bound.to)


def codes(session: rs.Session, **given: Any) -> list[str]:
    return [warning.code for warning in session.build_request(**given).warnings]


def test_the_asynchronous_face_clears_too(url: str) -> None:
    """The same verbs, awaited."""
    with rs.Store(url) as store:
        conversation(store)

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            chat = await opened.session("chat")
            plan = await chat.compression(limit=LIMIT, **HOST)
            made = await chat.compact(plan)
            assert made is not None
            assert (made.kind, await chat.compactions()) == ("clearing", [made])
            assert (await chat.usage(**HOST)).effective == plan.after
            body = (await chat.build_request(**HOST)).body
            assert canaries(json.dumps(body)) == [3]
            await chat.undo(made.id)
            assert await chat.compactions() == []

    asyncio.run(work())
