"""A request that is built is accepted: the floor on, whatever the settings and the history.

The judge is ``reasoning_store.testing.refusal``, which was written from the providers' rules
and knows nothing of our contracts. Each target of ``targets`` goes through long tool loops,
models that change in the middle, interruptions, forks and summaries.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.blocks import MediaKind
from reasoning_store.conversation.settings import Effort, resolve_settings
from reasoning_store.egress.request import build
from reasoning_store.egress.request_inputs import RequestInputs
from reasoning_store.egress.selection_values import ViewedMessage
from reasoning_store.egress.target import find_target
from reasoning_store.egress.token_counts import count_message
from reasoning_store.testing import refusal
from reasoning_store.tokens import counter
from tests.egress.targets import TARGETS, Target
from tests.egress.turns import (
    FORETOLD,
    OFF,
    TOOLS,
    a_turn,
    answers,
    remembered,
    shapes,
)
from tests.properties import each, examples

POLICIES = [
    {"reasoning.includeInContext": include, "reasoning.stripFromContext": strip}
    for include, strip in itertools.product(
        (False, True), ("all", "allButLast", "none", "priorTurns")
    )
]
PARAMETERS: list[dict[str, Any]] = [
    {},
    {"reasoning.enabled": False},
    {"reasoning.enabled": True},
    *({"reasoning.effort": effort} for effort in ("none", "low", "max")),
    {"reasoning.budgetTokens": 1_024},
]
each_target = each("target", TARGETS)


def judged(
    messages: Sequence[rs.Message], target: Target, chosen: dict[str, Any], **given: Any
) -> str | None:
    """Build the request for a target, and return what it would answer if it refused it."""
    built = rs.build_request(
        messages,
        settings={**target.asks, **chosen},
        **target.to,
        system="Be brief.",
        tools=TOOLS,
        **given,
    )
    return refusal(
        built.body,
        provider=target.provider or "",
        model=target.model,
        api=target.api,
        record=remembered(messages, target),
    )


@each_target
@each("policy", POLICIES, thinned=8)
def test_a_loop_of_twenty_steps_is_accepted_at_each(target: Target, policy: dict[str, Any]) -> None:
    """Behind a closed turn with calls, and whatever the settings withhold."""
    before = a_turn(target, "first", steps=2)
    loop = a_turn(target, "second", steps=20, ends=False)
    steps = [n + 1 for n, message in enumerate(loop) if message.role != "assistant"]

    refused = {n: judged([*before, *loop[:n]], target, policy) for n in steps if _whole(loop, n)}
    assert {n: text for n, text in refused.items() if text} == {}


def _whole(loop: Sequence[rs.Message], n: int) -> bool:
    """Whether a step stands at its end: the next message is not another of its answers."""
    return n == len(loop) or loop[n].role != "tool"


@each_target
@each("asked", PARAMETERS)
def test_what_is_asked_of_the_model_is_accepted(target: Target, asked: dict[str, Any]) -> None:
    """At the beginning of a turn and in the middle of one, whatever is asked then."""
    first = a_turn(target, "first", steps=1)
    loop = [*first, *a_turn(target, "second", steps=2, ends=False)]
    plain = replace(target, asks={})

    assert judged([rs.user("Hello")], plain, asked) is None
    assert judged(first[:3], plain, asked) is None
    assert judged(loop, plain, asked) is None


MODELS = (
    "gpt-4o ft:gpt-4.1-mini:ours gpt-5-chat-latest o1-mini o3 o4-mini gpt-5 gpt-5-mini gpt-5-pro "
    "gpt-5-codex gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max gpt-5.2 gpt-5.2-pro gpt-5.3-codex gpt-5.6 "
    "gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-sol gpt-6.1-terra gpt-6.2-astra gpt-6.2-sol gpt-7-sol"
).split()


@pytest.mark.parametrize("api", ["openai.chat", "openai.responses"])
@pytest.mark.parametrize("provider", ["openai", "azure"])
def test_an_effort_is_sent_only_to_a_model_that_takes_it(provider: str, api: str) -> None:
    """An effort that a model has no word for is left out, and a warning names it (BR-006)."""
    for model, settings in itertools.product(MODELS, EFFORTS):
        to = {"provider": provider, "model": model, "api": api}
        request = rs.build_request([rs.user("q")], settings=settings, **to)
        sent = request.body.get("reasoning_effort") or request.body.get("reasoning")

        assert refusal(request.body, **to) is None
        assert bool(sent) != any(item.code == "parameter_unsent" for item in request.warnings)


@pytest.mark.parametrize("model", ["gpt-6-astra", "gpt-6.1-sol", "gpt-6.2-sol", "gpt-6.3-terra"])
def test_tools_that_a_model_takes_only_in_responses_warn(model: str) -> None:
    """The protocol does not change with the model; the warning names the one that works."""
    ask: dict[str, Any] = {"settings": {"reasoning.effort": "high"}, "provider": "openai"}
    request = rs.build_request([rs.user("q")], model=model, tools=TOOLS, **ask)
    (warning,) = request.warnings

    assert (request.target.api, "tools" in request.body) == ("openai.chat", True)
    assert warning.code == "needs_responses"
    assert 'api="openai.responses"' in warning.text
    assert rs.build_request([rs.user("q")], model=model, **ask).warnings == ()
    there = {"model": model, "api": "openai.responses", **ask}
    assert rs.build_request([rs.user("q")], tools=TOOLS, **there).warnings == ()


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6-luna", "gpt-6.1-terra"])
def test_reasoning_is_switched_off_where_tools_are_refused_with_it(model: str) -> None:
    """In Chat Completions; Responses takes both."""
    effort: dict[str, Any] = {"reasoning.effort": "high"}
    for settings, codes in (({}, ["reasoning_off"]), (effort, ["reasoning_off"]), (NO_EFFORT, [])):
        request = rs.build_request(
            [rs.user("q")], settings=settings, provider="openai", model=model, tools=TOOLS
        )
        assert refusal(request.body, provider="openai") is None
        assert [warning.code for warning in request.warnings] == codes
    to: dict[str, Any] = {"provider": "openai", "model": model, "api": "openai.responses"}
    request = rs.build_request([rs.user("q")], settings=effort, tools=TOOLS, **to)

    assert (request.body["reasoning"]["effort"], request.warnings) == ("high", ())


NO_EFFORT: dict[str, Any] = {"reasoning.effort": "none"}
EFFORTS: list[dict[str, Any]] = [
    {"reasoning.enabled": False},
    *({"reasoning.effort": effort} for effort in get_args(Effort)),
]


@pytest.mark.parametrize(
    ("key", "value"),
    [("reasoning.enabled", False), ("reasoning.effort", "none"), ("reasoning.budgetTokens", 0)],
)
def test_a_turn_with_thoughts_is_not_asked_to_stop_thinking(key: str, value: object) -> None:
    """The warning says which setting waits for the user's next message."""
    target = next(one for one in TARGETS if one.model == "claude-opus-4-7")
    loop = a_turn(target, "only", steps=2, ends=False)
    request = rs.build_request(loop, settings={key: value}, **target.to)
    (warning,) = request.warnings

    assert request.body["thinking"]["type"] == "adaptive"
    assert warning.code == "parameter_held"
    assert warning.text.endswith(f"from the next user message on: {key}")


@each_target
@each("asked", PARAMETERS)
def test_a_held_parameter_is_sent_with_the_next_user_message(
    target: Target, asked: dict[str, Any]
) -> None:
    """What a model has no words for waits for nothing."""
    loop = a_turn(target, "only", steps=2, ends=False)

    def told(messages: Sequence[rs.Message], code: str) -> set[str]:
        found = rs.build_request(messages, settings=asked, **target.to).warnings
        texts = [warning.text for warning in found if warning.code == code]
        return {key for key in asked if any(key in text for text in texts)}

    unsent = told([*loop, rs.user("Well?")], "parameter_unsent")
    assert not told(loop, "parameter_held") & unsent
    assert told(loop, "parameter_unsent") == unsent


@each_target
def test_without_the_floor_the_listed_ones_refuse_an_open_loop(target: Target) -> None:
    """What the floor is for: with it accepted, without it refused, and the request warned."""
    loop = a_turn(target, "only", steps=2, ends=False)
    warned = {
        warning.code
        for warning in rs.build_request(loop, settings={**target.asks, **OFF}, **target.to).warnings
    }

    assert judged(loop, target, {}) is None
    assert (judged(loop, target, OFF) is not None) == target.off_is_refused
    assert not target.off_is_refused or "floor_off" in warned


@each_target
@each("policy", POLICIES, thinned=8)
def test_what_if_the_warnings_and_the_strict_provider_agree(
    target: Target, policy: dict[str, Any]
) -> None:
    """A request that is foretold to be refused is refused and warns, and no other is."""
    disagree = []
    for name, history in shapes(target):
        for floor, off in itertools.product(({}, OFF), ({}, NO_THOUGHT)):
            settings = {**policy, **floor, **off}
            chosen = {**target.asks, **settings}
            legal = rs.what_if(history, settings=chosen, **target.to).current.legal
            request = rs.build_request(history, settings=chosen, **target.to)
            codes = {warning.code for warning in request.warnings}
            said = judged(history, target, settings)
            if legal != (said is None) or (said is not None and not codes & FORETOLD):
                disagree.append((name, settings, legal, sorted(codes), said))

    assert disagree == []


NO_THOUGHT = {"reasoning.enabled": False}


@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-3.8-flash"])
@pytest.mark.parametrize("provider", ["google", "vertex"])
def test_a_call_that_lost_its_seal_is_refused_without_the_floor(provider: str, model: str) -> None:
    """Gemini's seals are no reasoning and no setting takes them; a lost one needs the dummy."""
    target = Target(provider, model, "gemini.generate_content", OTHERS[0].think)
    loop = a_turn(target, "only", steps=1, ends=False)

    assert judged(loop, target, {}) is None
    assert "thought_signature" in (judged(loop, target, OFF) or "accepted")


OTHERS = [
    target
    for target in TARGETS
    if str(target)
    in {
        "deepseek deepseek-v4 openai.chat",
        "anthropic claude-opus-5 anthropic.messages",
        "openai gpt-5.6 openai.responses",
        "google gemini-3-pro gemini.generate_content",
        "vertex gemini-3-pro gemini.generate_content",
        "openrouter anthropic/claude-opus-5 openai.chat",
        "mistral magistral-medium mistral.chat",
        "None some-model openai.chat",
    }
]


@each_target
@each("policy", POLICIES, thinned=8)
def test_a_model_that_takes_over_is_accepted(target: Target, policy: dict[str, Any]) -> None:
    """Between two turns, and in the middle of a loop that another began."""
    for other in OTHERS:
        after = [*a_turn(other, "a", steps=2), *a_turn(target, "b", steps=2, ends=False)]
        inside = [
            *a_turn(target, "a", steps=1),
            *a_turn(other, "b", steps=2, ends=False),
            *a_turn(target, "c", steps=2, ends=False)[1:],
        ]
        at_once = a_turn(other, "a", steps=3, ends=False)

        assert [judged(found, target, policy) for found in (after, inside, at_once)] == [None] * 3


INTERRUPTIONS = ("thought", "text", "call", "unanswered", "half a call", "nothing")


def interrupted(target: Target, name: str, how: str) -> list[rs.Message]:
    """Return a turn whose stream died, or that the user left."""
    reply = target.reply(name, thought="Let me", text="It is", calls=2)
    kinds: tuple[str, ...] = {
        "thought": ("thinking",),
        "text": ("thinking", "text"),
        "call": ("thinking", "text", "tool_call"),
    }.get(how, ("thinking", "text", "tool_call"))
    blocks = [block for block in reply.blocks if block.type in kinds]
    if how == "thought":
        blocks = [
            replace(block, signature=None, encrypted=None, interrupted=True, provider_metadata=None)
            for block in blocks
            if isinstance(block, rs.ThinkingBlock) and block.thought
        ]
    if how == "half a call" and isinstance(blocks[-1], rs.ToolCallBlock):
        blocks[-1] = replace(blocks[-1], arguments='{"word": "a', parameters=None)
    if how == "nothing":
        blocks = []
    cut = replace(reply, blocks=tuple(blocks), status="interrupted", finish_reason=None)
    turn = [rs.user(f"Question {name}?"), cut]
    if how == "half a call":
        turn += list(answers(reply))[:1]
    return turn if cut.blocks else turn[:1]


@each_target
@each("said", ["", " \n"])
@each("ends", [True, False])
def test_a_turn_begins_where_the_user_says_nothing(target: Target, said: str, ends: bool) -> None:
    """What goes along is chosen by turns, and the provider sees the same ones."""
    messages = [*a_turn(target, "first", steps=2, ends=ends), rs.user(said)]

    assert judged(messages, target, POLICIES[0]) is None


@each_target
@each("how", INTERRUPTIONS)
@each("policy", POLICIES, thinned=8)
def test_an_interrupted_turn_is_accepted(target: Target, how: str, policy: dict[str, Any]) -> None:
    """In the middle of a conversation, at its end, and where the next turn has a loop."""
    left = interrupted(target, "left", how)
    goes_on = [*left, rs.user("Go on.")]
    later = [*left, *a_turn(target, "next", steps=2, ends=False)]
    inside = [*a_turn(target, "loop", steps=1, ends=False), *left[1:], rs.user("Well?")]

    found = [judged(messages, target, policy) for messages in (goes_on, later, inside)]
    assert found == [None, None, None]


KINDS: Sequence[tuple[MediaKind, str]] = [
    ("image", "image/png"),
    ("audio", "audio/wav"),
    ("video", "video/mp4"),
    ("file", "application/pdf"),
    ("file", "text/plain"),
]
MEDIA = [
    rs.MediaBlock(kind=kind, mime_type=mime, data=b"\x00\xff", name="a.bin") for kind, mime in KINDS
]


@each_target
@each("shown", [{}, {"data": None, "url": "https://example.com/a"}])
def test_what_a_user_shows_is_accepted(target: Target, shown: dict[str, Any]) -> None:
    """Every kind of medium, by its bytes or its address, and those without a place left out."""
    media = [replace(medium, **shown) for medium in MEDIA]

    assert judged([rs.user("See:", *media)], target, {}) is None


@each_target
@each("asked", PARAMETERS)
def test_a_reply_at_the_end_is_accepted_or_warned_about(
    target: Target, asked: dict[str, Any]
) -> None:
    """Nothing can be put after it that the user did not say."""
    ended = a_turn(target, "only", steps=1)
    chosen = {**target.asks, **asked}
    said = {
        warning.code for warning in rs.build_request(ended, settings=chosen, **target.to).warnings
    }

    assert judged(ended, target, asked) is None or "reply_last" in said
    assert "reply_last" not in said or target.model.find("claude") >= 0


@pytest.mark.parametrize(
    ("provider", "model"),
    [("anthropic", "claude-opus-5"), ("aws", "us.anthropic.claude-opus-5-v1:0")],
)
def test_a_reply_may_stand_last_where_the_model_does_not_think(provider: str, model: str) -> None:
    """The warning is about models that think, and about a conversation that ends so."""

    def said(*messages: rs.Message, **settings: Any) -> list[str]:
        built = rs.build_request(messages, settings=settings, provider=provider, model=model)
        return [warning.code for warning in built.warnings]

    ended = (rs.user("Hi"), rs.assistant("Hello."))
    assert said(*ended) == ["reply_last"]
    assert said(*ended, enabled=False) == []
    assert said(*ended, rs.user("Well?")) == []


@each_target
@each("policy", POLICIES, thinned=4)
def test_a_rule_that_is_given_in_the_middle_is_accepted(
    target: Target, policy: dict[str, Any]
) -> None:
    """Some protocols hear it as the user's word, and take what follows for another turn."""
    rule = rs.system("Be brief from now on.")
    begun = [rs.user("Begin."), target.reply("a", thought="Hm.", text="So.")]
    another = next(maker for maker in OTHERS if maker.provider != target.provider)
    taken_over = [*begun, rule, *a_turn(another, "b", steps=1, ends=False)[1:]]
    goes_on = [*a_turn(target, "a", steps=1, ends=False), rule, rs.user("Go on.")]
    own = [*begun, rule, *a_turn(target, "b", steps=1, ends=False)[1:]]

    found = [judged(messages, target, policy) for messages in (taken_over, goes_on, own)]
    assert found == [None, None, None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{tmp_path_factory.mktemp('forks') / 'chat.db'}") as opened:
        yield opened


@each_target
@each("policy", POLICIES, thinned=4)
def test_a_fork_is_accepted(store: rs.Store, target: Target, policy: dict[str, Any]) -> None:
    """Each branch is a conversation of its own, from the store."""
    first, loop = a_turn(target, "a", steps=2), a_turn(target, "b", steps=2, ends=False)
    session = store.session(f"{target} {policy}", create=True)
    session.append([*first, *loop])
    branch = session.fork(at=len(first) + 1)
    branch.append(a_turn(target, "c", steps=2, ends=False))
    for found in (session, branch):
        built = found.build_request(settings={**target.asks, **policy}, **target.to, tools=TOOLS)
        to: dict[str, Any] = {
            "provider": target.provider or "",
            "model": target.model,
            "api": target.api,
        }
        assert refusal(built.body, **to) is None


@each_target
@each("policy", POLICIES, thinned=4)
def test_a_compacted_conversation_is_accepted(target: Target, policy: dict[str, Any]) -> None:
    """A summary stands where the oldest turns were, as a user's message that asks nothing."""
    rest = [*a_turn(target, "b", steps=1), *a_turn(target, "c", steps=2, ends=False)]
    messages = [rs.user("What was said: a word was looked up."), *rest]
    count = counter("o200k_base")
    view = [
        ViewedMessage(message, count_message(message, count), n, n == 0)
        for n, message in enumerate(messages)
    ]
    built = build(
        view,
        resolve_settings({**target.asks, **policy}),
        find_target(target.provider, target.model, target.api, None),
        RequestInputs.of(count, tools=TOOLS),
    )
    to: dict[str, Any] = {
        "provider": target.provider or "",
        "model": target.model,
        "api": target.api,
    }
    assert refusal(built.body, **to) is None


@dataclass(frozen=True)
class Event:
    """One thing that happens in a conversation."""

    kind: str
    maker: int = 0
    thinks: bool = True
    text: str = "So."
    calls: int = 0
    answered: int = 2
    died: bool = False


events = st.one_of(
    st.builds(Event, st.sampled_from(["user", "user", "system", "orphan"])),
    st.builds(
        Event,
        st.just("reply"),
        maker=st.integers(0, len(OTHERS)),
        thinks=st.booleans(),
        text=st.sampled_from(["", "So.", " ", "Look: \u00e9\u6f22"]),
        calls=st.integers(0, 2),
        answered=st.integers(0, 2),
        died=st.booleans(),
    ),
)


def happened(target: Target, story: Sequence[Event]) -> list[rs.Message]:
    """Return the history that a sequence of events left; it ends where a model is due."""
    out: list[rs.Message] = [rs.user("Begin.")]
    due = True
    for n, event in enumerate(story):
        due = True
        if event.kind == "user":
            out.append(rs.user(f"Question {n}?"))
            due = False
        elif event.kind == "system":
            out.append(rs.system(f"Rule {n}."))
        elif event.kind == "orphan":
            out.append(rs.tool(rs.ToolResponseBlock(call_id=f"gone_{n}", tool_name="look_up")))
        else:
            maker = [*OTHERS, target][event.maker]
            thought = f"Thought {n}." if event.thinks else ""
            reply = maker.reply(f"r{n}", thought=thought, text=event.text, calls=event.calls)
            if event.died:
                reply = replace(reply, status="interrupted", finish_reason=None)
            answered = list(answers(reply))[: event.answered]
            out += [reply, *answered] if reply.blocks else []
            due = not answered
    return [*out, rs.user("And now?")] if due else out


@examples(1_840)
@given(
    target=st.sampled_from(TARGETS),
    story=st.lists(events, max_size=8),
    policy=st.sampled_from(POLICIES),
)
@example(
    target=TARGETS[0],
    story=[
        Event("reply", maker=len(OTHERS), thinks=False, text=" "),
        Event("reply", maker=len(OTHERS), text="", calls=1),
    ],
    policy=POLICIES[0],
)
def test_any_history_is_accepted(
    target: Target, story: list[Event], policy: dict[str, Any]
) -> None:
    """Whichever spoke, whatever was left unanswered, whichever stream died."""
    assert judged(happened(target, story), target, policy) is None
