"""A refused conversation comes back: one block is left out, and can be sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.testing import Record, refusal, response
from tests.egress.targets import TARGETS, Target, named_call, signed, summary
from tests.properties import each, is_thorough

STEPS = 20
BY_NAME = {str(target): target for target in TARGETS}
CLAUDE = Target("anthropic", "claude-opus-5", "anthropic.messages", signed)
BINDS = BY_NAME["anthropic claude-opus-5-5 anthropic.messages"]
DROPS = Target("openai", "gpt-6.2-sol", "openai.responses", summary, call_metadata=named_call)
RESPONSES = BY_NAME["openai gpt-5.6 openai.responses"]
GEMINI = BY_NAME["google gemini-3-pro gemini.generate_content"]
DEEPSEEK = BY_NAME["deepseek deepseek-v4 openai.chat"]
PARTS: dict[str, Callable[[Any], Any]] = {
    "anthropic.messages": lambda body: body["content"],
    "openai.responses": lambda body: body["output"],
    "gemini.generate_content": lambda body: body["candidates"][0]["content"]["parts"],
    "openai.chat": lambda body: [],
}


@dataclass
class Loop:
    """A session in an open loop of calls, and the host that it talks to."""

    session: rs.Session
    target: Target
    record: Record = field(default_factory=Record)
    retries: int = 0
    left_out: list[rs.results.Withheld] = field(default_factory=list)

    def refusal(self, request: rs.Request) -> str | None:
        return refusal(request.body, record=self.record, **self.target.to)

    def request(self) -> rs.Request:
        return self.session.build_request(**self.target.to, settings=self.target.asks)

    def step(self, name: str, *, is_bad: bool = False, most: int = 9) -> rs.Request:
        """Ask, recover as often as it takes, and store the reply and its tools' answers."""
        request = self.request()
        for _ in range(most):
            if (said := self.refusal(request)) is None:
                break
            found = self.session.recover(said, request)
            assert found.request is not None, found.reason
            self.left_out += found.withheld
            request, self.retries = found.request, self.retries + 1
        assert self.refusal(request) is None
        return self.answer(name, request, is_bad=is_bad)

    def answer(
        self, name: str, request: rs.Request, *, calls: int = 1, is_bad: bool = False
    ) -> rs.Request:
        """Store a reply to a request, and what its tools answered."""
        said = "" if calls else "Done."
        reply = self.target.reply(name, thought=f"Thought {name}.", text=said, calls=calls)
        spoken = response(reply, **self.target.to)
        if not is_bad:  # else its seal was never given by this host
            self.record.answered(request.body, PARTS[self.target.api](spoken))
        for _ in self.session.record(spoken, request=request):
            pass
        if results := [rs.tool(one) for one in answers(reply)]:
            self.session.append(results)
        return request


def answers(reply: rs.Message) -> Iterator[rs.ToolResponseBlock]:
    for call in reply.tool_calls:
        yield rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="Found.")


def start(store: rs.Store, target: Target) -> Loop:
    session = store.session(create=True)
    session.append(rs.user("Look it up."))
    return Loop(session, target)


@each("place", range(STEPS), thinned=5)
@each("target", [CLAUDE, BINDS, RESPONSES])
def test_a_loop_goes_on_after_one_retry_with_one_block_left_out(place: int, target: Target) -> None:
    """The refusal names the thought; every other thought, call and response is sent on."""
    with rs.Store("sqlite://") as store:
        loop = start(store, target)
        for n in range(STEPS):
            loop.step(f"s{n}", is_bad=n == place)
        loop.step("last")

        assert loop.retries == 1
        assert [one.block for one in loop.left_out] == [0]
        assert loop.session.withheld() == loop.left_out
        assert [v.rule for v in loop.request().verdicts].count("withheld") == 1
        counted = loop.session.usage(**target.to, settings=target.asks).effective
        assert counted == loop.request().tokens.effective


@each("place", range(STEPS), thinned=5)
def test_a_seal_that_is_not_named_is_found_in_two_retries(place: int) -> None:
    """No call and no response is lost: a placeholder takes the place of the seal."""
    with rs.Store("sqlite://") as store:
        loop = start(store, GEMINI)
        for n in range(STEPS):
            loop.step(f"s{n}", is_bad=n == place)
        request = loop.step("last")

        assert loop.retries <= 2
        parts = [part for content in request.body["contents"] for part in content["parts"]]
        assert sum("functionCall" in part for part in parts) == STEPS
        assert sum("functionResponse" in part for part in parts) == STEPS


def test_a_seal_is_searched_by_asking() -> None:
    """With at most log2 of their number requests, and one more."""
    with rs.Store("sqlite://") as store:
        loop = start(store, GEMINI)
        for n in range(12):
            request = loop.step(f"s{n}")
        loop.record = Record()
        for n, item in enumerate(loop.session.history()):
            if item.message.role == "assistant" and n != 9:
                spoken = response(item.message, **GEMINI.to)
                loop.record.answered({}, PARTS[GEMINI.api](spoken))
        asked: list[rs.Request] = []

        def ask(tried: rs.Request) -> object:
            asked.append(tried)
            return loop.refusal(tried)

        request = loop.request()
        found = loop.session.recover(loop.refusal(request), request, ask=ask)

        assert found.request is not None
        assert loop.refusal(found.request) is None
        assert [one.position for one in found.withheld] == [10]
        assert found.is_certain
        assert len(asked) <= 5


@each("target", [CLAUDE, BINDS])
def test_a_bad_thought_in_the_middle_costs_one_retry(target: Target) -> None:
    """At a maker that binds, the thoughts after it are left out by rule, before it is asked."""
    with rs.Store("sqlite://") as store:
        loop = start(store, target)
        for n in range(12):
            loop.step(f"s{n}")
        good, loop.record = loop.record, Record()
        loop.record._sealed = {
            seal: held for n, (seal, held) in enumerate(good._sealed.items()) if n != 4
        }
        before = loop.request()
        loop.step("after")

        assert loop.retries == 1
        assert len(loop.left_out) == 1
        rules = [verdict.rule for verdict in loop.request().verdicts]
        assert rules.count("bound") == (7 if target is BINDS else 0) + rules.count("withheld") - 1
        assert before.body != loop.request().body


@each("target", [CLAUDE, BINDS, RESPONSES, GEMINI])
def test_undo_brings_the_very_request_back(target: Target) -> None:
    """As long as nothing was recorded since."""
    with rs.Store("sqlite://") as store:
        loop = start(store, target)
        for n in range(4):
            loop.step(f"s{n}", is_bad=n == 3)
        refused = loop.request()
        found = loop.session.recover(loop.refusal(refused), refused)
        assert found.request is not None

        for one in found.withheld:
            loop.session.undo(one.id)

        assert loop.request().body == refused.body
        assert loop.session.withheld() == []


DONE = st.lists(
    st.tuples(
        st.sampled_from(
            "step step step end system include compact withhold undo erase fork regenerate".split()
        ),
        st.integers(0, 30),
    ),
    max_size=14,
)
"""What becomes of a conversation at a maker that binds thoughts to all that precedes them."""


@given(DONE)
def test_no_request_to_a_maker_that_binds_thoughts_is_refused(
    steps: list[tuple[str, int]],
) -> None:
    """Each change of the prefix is foreseen; usage counts what is sent."""
    with rs.Store("sqlite://") as store:
        loop = start(store, BINDS)
        names: dict[str, Any] = dict(BINDS.to)
        for n, (step, place) in enumerate([*steps, ("step", 0)]):
            session = loop.session
            history = session.history()
            at = history[place % len(history)].position
            if step == "system":
                names["system"] = f"Be {place % 2}."
            elif step == "include":
                session.settings.set("reasoning.includeInContext", bool(place % 2))
            elif step == "compact":
                plan = session.compression(limit=40 + place, min_freed=1, **BINDS.to)
                if plan.action in ("clear", "summarize"):
                    session.compact(plan, summary="They spoke." if plan.to_summarize else None)
            elif step == "withhold" and history[at - 1].message.thinking:
                session.withhold(at)
            elif step == "undo" and session.withheld():
                session.undo(session.withheld()[0].id, force=True)
            elif step == "erase" and history[at - 1].message.thinking:
                session.erase(at, only="reasoning")
            elif step == "fork":
                loop.session = session.fork(at=max(2, at))
                last = loop.session.history()[-1].message
                if last.role == "assistant" and not last.tool_calls:
                    loop.session.append(rs.user("Go on."))
            elif step == "regenerate" and history[-1].message.role == "assistant":
                session.regenerate(history[-1].position)
            elif step in ("step", "end"):
                request = session.build_request(**names)
                assert loop.refusal(request) is None
                assert session.usage(**names).effective == request.tokens.effective
                loop.answer(f"s{n}", request, calls=int(step == "step"))
                if step == "end":
                    session.append(rs.user(f"And {n}?"))


@each("target", [BINDS, DROPS])
def test_a_change_of_the_prefix_is_warned_of(target: Target) -> None:
    """A maker that refuses the thoughts after it, and one that drops them in silence."""
    with rs.Store("sqlite://") as store:
        loop = start(store, target)
        for n in range(3):
            loop.answer(f"s{n}", loop.request())
        request = loop.session.build_request(**target.to, system="Be brief.")

        assert {verdict.rule for verdict in request.verdicts} == {"bound"}
        (said,) = (one.text for one in request.warnings if one.code == "binding")
        assert "system or tools have changed" in said
        assert "the reasoning after that is left out" in said
        assert loop.session.usage(**target.to, system="Be brief.").effective == int(
            str(request.tokens)
        )


def test_a_long_loop_breaks_no_prefix() -> None:
    """300 steps, and every thought goes along."""
    with rs.Store("sqlite://") as store:
        loop = start(store, BINDS)
        for n in range(300 if is_thorough() else 40):
            request = loop.request()
            loop.answer(f"s{n}", request)
        rules = {verdict.rule for verdict in loop.request().verdicts}

        assert rules == {"required"}
        assert loop.refusal(loop.request()) is None


def test_undo_after_more_steps_says_what_it_would_void() -> None:
    """The later thoughts were made without it."""
    with rs.Store("sqlite://") as store:
        loop = start(store, BINDS)
        for n in range(10):
            loop.step(f"s{n}", is_bad=n == 1)
        (one,) = loop.left_out

        with pytest.raises(rs.Conflict, match="8 later thoughts"):
            loop.session.undo(one.id)
        loop.session.undo(one.id, force=True)

        assert loop.session.withheld() == []


def test_a_thought_that_is_wanted_is_sent_again() -> None:
    """A refusal that wants more is about no refused block."""
    with rs.Store("sqlite://") as store:
        loop = start(store, DEEPSEEK)
        for n in range(3):
            loop.step(f"s{n}")
        request = loop.session.build_request(**DEEPSEEK.to, settings={"reasoning.floor": "off"})
        said = loop.refusal(request)
        assert said is not None

        found = loop.session.recover(said, request)

        assert found.act == "resend"
        assert found.withheld == ()
        assert found.request is not None
        assert loop.refusal(found.request) is None
