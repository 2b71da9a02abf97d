"""The next request goes on from the last one, and is the request that is made from scratch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress import request, select, verdicts
from reasoning_store.egress.building import Remembered
from reasoning_store.egress.tokens import count_message
from reasoning_store.egress.verdicts import Viewed
from reasoning_store.settings import resolve
from reasoning_store.tokenizers import counter
from reasoning_store.wire.base import Outgoing
from reasoning_store.wire.pages import Page
from tests.egress.histories import OPEN_LOOP, answer, assistant_messages, call, call_ids, thought
from tests.egress.targets import TARGETS, Target

COUNTER = counter("o200k_base")
KEEP = {"reasoning.includeInContext": True}
TOOLS = [{"name": "look_up", "parameters": {"type": "object", "properties": {}}}]
each_target = pytest.mark.parametrize("target", TARGETS, ids=str)
CHAT = next(target for target in TARGETS if target.model == "deepseek-v4")
CLAUDE = next(target for target in TARGETS if target.model == "claude-haiku-4-5")


def viewed(message: rs.Message, name: int, *, summary: bool = False) -> Viewed:
    return Viewed(message, count_message(message, COUNTER), name, summary)


def view_of(*messages: rs.Message) -> list[Viewed]:
    return [viewed(message, n) for n, message in enumerate(messages, 1)]


def to(target: Target) -> verdicts.Target:
    return select.target(target.provider, target.model, target.api, None)


def fresh(
    view: Sequence[Viewed], target: Target, chosen: Mapping[str, Any], **given: Any
) -> rs.Request:
    return request.build(view, resolve(chosen), to(target), COUNTER, **given)


def following(
    view: Sequence[Viewed],
    target: Target,
    chosen: Mapping[str, Any],
    before: Remembered | None,
    **given: Any,
) -> tuple[rs.Request, Remembered]:
    return request.build_next(view, resolve(chosen), to(target), COUNTER, before=before, **given)


def spoil(value: Any) -> None:
    """Change everything in a body that can be changed, to its last leaf."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoilt"] = True
        value.pop("role", None)
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")


# --- always the same request


@dataclass(frozen=True)
class Move:
    """Something that happens to a conversation, or to what is asked of it."""

    kind: str
    at: int = 0
    message: rs.Message | None = None
    policy: int = 0


POLICIES = [
    {"reasoning.includeInContext": include, "reasoning.stripFromContext": strip, **more}
    for include in (True, False)
    for strip in ("none", "all", "allButLast", "priorTurns")
    for more in ({}, {"reasoning.floor": "off"}, {"reasoning.effort": "high"})
]
said = (
    st.builds(rs.user, st.sampled_from(["", "Well?", "half \ud83d of it"]))
    | st.builds(rs.system, st.just("Be brief."))
    | assistant_messages
    | st.builds(answer, call_ids)
)
moves = st.lists(
    st.one_of(
        st.builds(Move, st.just("said"), message=said),
        st.builds(Move, st.just("loop"), at=st.integers(1, 3)),
        st.builds(Move, st.just("loop"), at=st.integers(1, 3)),
        st.builds(Move, st.just("policy"), policy=st.integers(0, len(POLICIES) - 1)),
        st.builds(Move, st.sampled_from(["fork", "erase", "compact", "head", "draft"]),
                  at=st.integers(0, 9)),
    ),
    min_size=3,
    max_size=12,
)  # fmt: skip


def steps(
    target: Target, made: Sequence[Move]
) -> Iterator[tuple[list[Viewed], dict[str, Any], str]]:
    """Yield the view, the settings and the system prompt after each move."""
    view: list[Viewed] = []
    chosen, head = POLICIES[0], "Be brief."
    for n, move in enumerate(made):
        at = move.at % len(view) if view else 0
        if move.message is not None:
            view = [*view, viewed(move.message, len(view) + 1)]
        elif move.kind == "loop":
            for step in range(move.at):
                name = f"m{n}s{step}"
                reply = target.reply(name, thought=f"Thought {name}.", text="So.", calls=step % 2)
                answers = [answer(call.id) for call in reply.tool_calls]
                view = [
                    *view,
                    *(viewed(m, len(view) + 1 + i) for i, m in enumerate([reply, *answers])),
                ]
        elif move.kind == "policy":
            chosen = POLICIES[move.policy]
        elif move.kind == "fork":
            view = view[:at]
        elif move.kind == "erase" and view:
            gone = replace(view[at].message, blocks=(), status="erased")
            view = [*view[:at], viewed(gone, view[at].name), *view[at + 1 :]]
        elif move.kind == "compact":
            summary = viewed(rs.user("What was said."), 1, summary=True)
            view = [summary, *view[at + 1 :]]
        elif move.kind == "head":
            head = f"Be brief, {n}."
        elif move.kind == "draft" and view:
            view = [
                *view[:-1],
                replace(view[-1], message=replace(view[-1].message, status="streaming")),
            ]
        yield view, chosen, head


@each_target
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=moves)
def test_it_is_the_request_that_is_made_from_scratch(target: Target, made: list[Move]) -> None:
    """Whatever happened in between, and whatever was done to the bodies before."""
    before = None
    for view, chosen, head in steps(target, made):
        settings = {**target.asks, **chosen}
        found, before = following(view, target, settings, before, system=head, tools=TOOLS)

        assert found == fresh(view, target, settings, system=head, tools=TOOLS)
        spoil(found.body)


@each_target
@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=moves)
def test_its_cache_breaks_where_it_does_from_request_to_request(
    target: Target, made: list[Move]
) -> None:
    """What an earlier request was made of says as much as that request."""
    earlier: tuple[rs.Request, Remembered] | None = None
    for view, chosen, _ in steps(target, made):
        settings = {**target.asks, **chosen}
        now = following(view, target, settings, earlier[1] if earlier else None, system="Be brief.")
        if earlier is not None:
            request, remembered = earlier
            again, _ = following(
                view, target, settings, None, system="Be brief.", previous=remembered
            )
            of_request = fresh(view, target, settings, system="Be brief.", previous=request)

            assert again.cache_break == of_request.cache_break
        earlier = now


@pytest.mark.parametrize("target", [CHAT, CLAUDE], ids=str)
def test_a_remembered_request_can_be_gone_on_from_twice(target: Target) -> None:
    """It is a value: two branches from one conversation do not meet again."""
    begun = view_of(rs.user("Begin."), *loop(target, 3))
    _, before = following(begun, target, KEEP, None)
    one = [*begun, viewed(rs.user("This?"), 99)]
    other = [*begun, *map(lambda m: viewed(m, 98), loop(target, 2))]

    for view in (one, other, one):
        found, _ = following(view, target, KEEP, before)
        assert found == fresh(view, target, KEEP)


def test_a_remembered_request_can_be_gone_on_from_by_many_at_once() -> None:
    """Several threads of one session ask for the next request."""
    begun = view_of(rs.user("Begin."), *loop(CLAUDE, 30))
    _, before = following(begun, CLAUDE, KEEP, None)
    view = [*begun, viewed(rs.user("Well?"), 99)]
    expected = fresh(view, CLAUDE, KEEP)

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(following, view, CLAUDE, KEEP, before) for _ in range(40)]
        assert all(future.result()[0] == expected for future in asked)


def loop(target: Target, length: int) -> list[rs.Message]:
    out: list[rs.Message] = []
    for n in range(length):
        reply = target.reply(f"s{n}", thought=f"Thought {n}.", calls=1)
        out += [reply, answer(reply.tool_calls[0].id)]
    return out


@pytest.mark.parametrize(
    ("had", "has"),
    [
        (KEEP, {}),
        (KEEP, {**KEEP, "reasoning.stripFromContext": "all"}),
        ({}, {"reasoning.floor": "off"}),
    ],
    ids=["include", "strip", "floor"],
)
@pytest.mark.parametrize("target", [CHAT, CLAUDE], ids=str)
def test_ec_004_ec_005_the_next_request_is_made_by_the_settings_of_now(
    target: Target, had: dict[str, Any], has: dict[str, Any]
) -> None:
    """EC-004, EC-005: a change or a profile holds at once, and what is stored stays."""
    view = view_of(rs.user("Begin."), *loop(target, 2), rs.user("Well?"), *loop(target, 1))
    stored = list(view)
    first, before = following(view, target, {**target.asks, **had}, None)
    other, after = following(view, target, {**target.asks, **has}, before)
    again, _ = following(view, target, {**target.asks, **had}, after)

    assert other.verdicts != first.verdicts
    assert other == fresh(view, target, {**target.asks, **has})
    assert again == first
    assert view == stored


# --- and less work


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each writing was of."""
    sizes: list[int] = []
    add = Page.add

    def counted(self: Page, messages: Sequence[Outgoing]) -> None:
        sizes.append(len(messages))
        add(self, messages)

    monkeypatch.setattr(Page, "add", counted)
    return sizes


@each_target
@pytest.mark.parametrize("strip", ["none", "all", "priorTurns", "allButLast"])
def test_a_step_of_an_open_loop_writes_no_more_than_itself(
    target: Target, strip: str, written: list[int]
) -> None:
    """However long the loop is; where the last thought is another, from the one before on."""
    settings = {**KEEP, **target.asks, "reasoning.stripFromContext": strip}
    messages = [rs.user("Begin."), *loop(target, 12)]
    view = view_of(*messages)
    _, before = following(view[:-2], target, settings, None)
    written.clear()
    following(view, target, settings, before)

    assert sum(written) <= (5 if strip == "allButLast" else 2)


@each_target
def test_another_question_writes_the_turn_before_it_at_most(
    target: Target, written: list[int]
) -> None:
    """What stands in closed turns is as it will always be; some hosts want replies put between."""
    turns = [m for n in range(6) for m in (rs.user(f"Question {n}?"), *loop(target, 2))]
    view = view_of(*turns, rs.user("And now?"))
    settings = {**KEEP, **target.asks}
    _, before = following(view[:-1], target, settings, None)
    written.clear()
    following(view, target, settings, before)

    assert sum(written) <= 8


@each_target
@pytest.mark.parametrize("strip", ["none", "allButLast"])
def test_an_edited_question_writes_no_closed_turn_again(
    target: Target, strip: str, written: list[int]
) -> None:
    """What stands before it is what it was."""
    turns = [m for n in range(6) for m in (rs.user(f"Question {n}?"), *loop(target, 2))]
    settings = {**KEEP, **target.asks, "reasoning.stripFromContext": strip}
    view = view_of(*turns, rs.user("This?"))
    _, before = following(view, target, settings, None)
    edited = [*view[:-1], viewed(rs.user("That?"), view[-1].name)]
    written.clear()
    found, _ = following(edited, target, settings, before)

    assert sum(written) <= 3
    assert found == fresh(edited, target, settings)


def test_reasoning_that_is_bound_no_more_writes_nothing_that_stands_before_it(
    written: list[int],
) -> None:
    """Of the last that thought it is known what was asked, and of those before it no more."""
    turns = [
        m for n in range(6) for m in (rs.user(f"Question {n}?"), rs.assistant(thought("x"), "So."))
    ]
    bound = next(target for target in TARGETS if target.model == "claude-opus-5-5")
    settings = {**KEEP, "reasoning.stripFromContext": "allButLast"}
    view = view_of(*turns)
    view[-1] = replace(view[-1], asked_with="what was asked")
    _, before = following(view, bound, settings, None)
    more = [*view_of(*turns), *(viewed(m, 13 + n) for n, m in enumerate(turns[:2]))]
    written.clear()
    found, _ = following(more, bound, settings, before)

    assert sum(written) <= 4
    assert found == fresh(more, bound, settings)


def test_an_answer_that_comes_late_is_found() -> None:
    """What was sent as a call without an answer has to be mended anew."""
    view = view_of(rs.user("Weather?"), rs.assistant(thought("x"), call()), rs.user("Well?"))
    first, before = following(view, CHAT, KEEP, None)
    late = [*view, viewed(answer(), 4)]
    found, _ = following(late, CHAT, KEEP, before)

    assert [warning.code for warning in first.warnings if warning.code == "no_result"]
    assert found == fresh(late, CHAT, KEEP)
    assert "response_moved" in {warning.code for warning in found.warnings}


def test_what_is_remembered_is_no_more_than_the_view_and_its_request() -> None:
    """A hundred steps leave as much behind as one: a few stages, each of one conversation."""
    before = None
    view = view_of(*OPEN_LOOP)
    for n in range(100):
        view = [*view, *(viewed(m, len(view) + i) for i, m in enumerate(loop(CHAT, 1), 1))]
        if n % 7 == 0:
            view = [*view, viewed(rs.user("Go on."), len(view) + 1)]
        settings = {**KEEP, "reasoning.stripFromContext": "allButLast"}
        _, before = following(view, CHAT, settings, before)

        assert len(before.made) <= 3


def test_what_was_erased_is_not_remembered() -> None:
    """The value that comes with the next request has nothing of it."""
    view = view_of(rs.user("My secret is canary."), rs.assistant("Oh."), rs.user("Well?"))
    _, before = following(view, CHAT, KEEP, None)
    gone = viewed(rs.Message(role="user", status="erased"), 1)
    _, after = following([gone, *view[1:]], CHAT, KEEP, before)

    assert "canary" in repr(before.view) + repr(before.made[-1].page.rendered)
    assert "canary" not in repr(after.view)
    assert all("canary" not in repr(made.page.rendered) for made in after.made)
