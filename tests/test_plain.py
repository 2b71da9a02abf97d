"""Long runs of plain messages are sent by column, and the request is the same."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import update

import reasoning_store as rs
from reasoning_store.blocks import Role
from reasoning_store.egress import building
from reasoning_store.egress.order import Order
from reasoning_store.egress.select import target as select_target
from reasoning_store.egress.stretch import Stretch
from reasoning_store.egress.verdicts import Viewed
from reasoning_store.egress.what_if import Alternative
from reasoning_store.ledger import plain
from reasoning_store.ledger.tables import messages, thinking_blocks
from reasoning_store.viewing import Views
from reasoning_store.wire import contracts
from tests.egress.alternatives import selected
from tests.egress.targets import TARGETS, Target, sealed
from tests.happenings import POLICIES, STEPS, step

HOST: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-chat"}
KEPT = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"}
STRIPPED = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "all"}
ROLLING = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "allButLast"}
BY_VALUE = 1 << 62


@contextmanager
def runs_of(few: int) -> Iterator[None]:
    """Read runs of so many plain messages by column."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plain, "FEW", few)
        patched.setattr(building, "FEW", few)
        yield


@pytest.fixture
def session(url: str) -> Iterator[rs.Session]:
    with rs.Store(url) as store:
        yield store.session("chat", create=True)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where in a run each message stands that a value was made of."""
    places: list[int] = []
    original = Stretch._value

    def value(run: Stretch, at: int) -> Viewed:
        places.append(at)
        return original(run, at)

    monkeypatch.setattr(Stretch, "_value", value)
    return places


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the runs were that were sent by column."""
    seen: list[int] = []
    original = plain._runs

    def runs(rows: Any) -> Iterator[Any]:
        for run in original(rows):
            seen.append(len(run.texts))
            yield run

    monkeypatch.setattr(plain, "_runs", runs)
    return seen


def talk(session: rs.Session, turns: int, source: str | None = "reasoning_content") -> None:
    origin = rs.Origin(api="openai.chat", **HOST)
    for number in range(turns):
        thought = rs.ThinkingBlock(thought=f"Thought {number}.", source_field=source)
        reply = rs.assistant(thought, f"Answer {number}.", origin=origin, finish_reason="stop")
        session.append([rs.user(f"Question {number}?"), reply])


def loop(session: rs.Session, name: str) -> None:
    call = rs.ToolCallBlock(id=name, name="look", arguments="{}")
    answer = rs.ToolResponseBlock(call_id=name, tool_name="look", result="4 C")
    session.append(
        [
            rs.user("Look."),
            rs.assistant(rs.ThinkingBlock(thought="A tool."), call),
            rs.tool(answer),
            rs.assistant("It is 4 C."),
        ]
    )


def parts(request: rs.Request) -> tuple[Any, ...]:
    return (
        request.body,
        request.tokens,
        request.verdicts,
        request.warnings,
        request.cache_break,
        json.dumps(request.body),  # with its names in their order
    )


def read_anew(session: rs.Session, few: int, **asked: Any) -> rs.Request:
    session._workings.views.forget_all()
    with runs_of(few):
        return session.build_request(**asked)


# --- always the same request

SAID = {
    "nothing": rs.assistant(""),
    "spaces": rs.assistant("  "),
    "a NUL": rs.assistant("a\0b"),
    "spaces around": rs.assistant(" a \n"),
    "a user's spaces": rs.user("\n "),
    "a user's nothing": rs.user(""),
    "half a character": rs.assistant("\ud83d"),
    "two texts": rs.assistant("one", "two"),
    "halves beside each other": rs.assistant("one", "\ud83d\ude00"),
    "a user's image and halves": rs.user(
        "one", rs.MediaBlock(kind="image", mime_type="image/png", url="\ud83d\ude00")
    ),
    "two thoughts": rs.assistant(rs.ThinkingBlock(thought="a"), rs.ThinkingBlock(thought="b"), "c"),
    "a thought behind": rs.assistant("c", rs.ThinkingBlock(thought="a")),
    "a field of brackets": rs.assistant(rs.ThinkingBlock(thought="a", source_field="],["), "c"),
    "an empty thought": rs.assistant(rs.ThinkingBlock(thought=""), "c"),
    "a seal": rs.assistant(rs.ThinkingBlock(thought="a", signature="c2ln"), "c"),
    "a hidden thought": rs.assistant(rs.ThinkingBlock(thought="a", is_hidden=True), "c"),
    "half a thought": rs.assistant(rs.ThinkingBlock(thought="a", interrupted=True), "c"),
    "a thought of spaces": rs.assistant(rs.ThinkingBlock(thought=" \n"), "c"),
    "a thought of odd letters": rs.assistant(rs.ThinkingBlock(thought="\ud83d\0"), "c"),
    "metadata": rs.assistant(rs.TextBlock(text="c", provider_metadata={"a": 1})),
    "an interrupted reply": rs.assistant("c", status="interrupted"),
    "a system message": rs.system("c"),
    "a text of a tool": rs.Message(role="tool", blocks=(rs.TextBlock(text="c"),)),
    "a user's block of tomorrow": rs.user(rs.RawBlock(data={"type": "dream"}, kind="dream")),
}

SO = rs.TextBlock(text="So.")
Made = tuple[rs.Block, ...]
THOUGHTS: dict[str, Callable[[rs.ThinkingBlock, str], Made]] = {
    "words": lambda thought, seal: (thought, SO),
    "words behind": lambda thought, seal: (SO, thought),
    "signed": lambda thought, seal: (replace(thought, signature=seal), SO),
    "signed behind": lambda thought, seal: (SO, replace(thought, signature=seal)),
    "signed alone": lambda thought, seal: (replace(thought, signature=seal),),
    "signed before a blank": lambda thought, seal: (
        replace(thought, signature=seal),
        rs.TextBlock(text=" "),
    ),
    "signed before two texts": lambda thought, seal: (replace(thought, signature=seal), SO, SO),
    "signed twice": lambda thought, seal: (
        replace(thought, signature=seal),
        replace(thought, signature=seal + "2"),
        SO,
    ),
    "signed and words": lambda thought, seal: (replace(thought, signature=seal), thought, SO),
    "signed and encrypted": lambda thought, seal: (
        replace(thought, signature=seal, encrypted=seal + "2"),
        SO,
    ),
    "encrypted": lambda thought, seal: (replace(thought, encrypted=seal), SO),
    "redacted": lambda thought, seal: (
        replace(thought, thought="", encrypted=seal, redacted=True, is_hidden=True),
        SO,
    ),
    "signed and redacted": lambda thought, seal: (
        replace(thought, signature=seal, redacted=True),
        SO,
    ),
    "signed nothing": lambda thought, seal: (
        replace(thought, thought="", signature=seal, is_hidden=True),
        SO,
    ),
    "signed spaces": lambda thought, seal: (replace(thought, thought=" \n", signature=seal), SO),
    "signed odd letters": lambda thought, seal: (
        replace(thought, thought="\ud83d\0", signature=seal),
        SO,
    ),
    "signed in another's field": lambda thought, seal: (
        replace(thought, source_field="elsewhere", signature=seal),
        SO,
    ),
    "signed in no field": lambda thought, seal: (
        replace(thought, source_field=None, signature=seal),
        SO,
    ),
    "signed and hidden": lambda thought, seal: (
        replace(thought, signature=seal, is_hidden=True),
        SO,
    ),
    "signed and broken off": lambda thought, seal: (
        replace(thought, signature=seal, interrupted=True),
        SO,
    ),
    "signed with metadata": lambda thought, seal: (
        replace(thought, signature=seal, provider_metadata={"a": 1}),
        SO,
    ),
    "an empty signature": lambda thought, seal: (replace(thought, signature=""), SO),
    "a signature of quotes": lambda thought, seal: (replace(thought, signature=f'"{seal}"'), SO),
    "a signature like JSON": lambda thought, seal: (
        replace(thought, signature=f'{seal}","encrypted":"{seal}'),
        SO,
    ),
    "a signature of slashes": lambda thought, seal: (replace(thought, signature=seal + "\\"), SO),
    "a signature of odd letters": lambda thought, seal: (
        replace(thought, signature="\u2603" + seal),
        SO,
    ),
    "a signature with a NUL": lambda thought, seal: (replace(thought, signature=seal + "\0"), SO),
    "half a signature": lambda thought, seal: (replace(thought, signature=seal + "\ud83d"), SO),
    "halves in a signature": lambda thought, seal: (
        replace(thought, signature="\ud83d\ude00"),
        SO,
    ),
}
"""What a reply may have thought, and with what on it."""


def origins(target: Target) -> Sequence[rs.Origin | None]:
    """Return where replies were made, who else may have made them, and that nobody knows."""
    own = rs.Origin(**target.to)
    return (own, own, own, replace(own, base_url="https://proxy.example/v1"), None)


def turn_of(kind: str, at: int, target: Target, name: str) -> list[rs.Message]:
    """Return a turn in which a model of the target's thought so."""
    thoughts = target.think(f"Thought {name}.", name) or (rs.ThinkingBlock(thought="Hm."),)
    thought = replace(thoughts[0], signature=None, encrypted=None, provider_metadata=None)
    made_by = origins(target)
    origin = made_by[at % len(made_by)]
    return [
        rs.user(f"And {name}?"),
        rs.assistant(*THOUGHTS[kind](thought, sealed(name)), origin=origin),
    ]


def both_ways(history: Sequence[rs.Message], **asked: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the request of a history by column, and by value."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        session.append(list(history))
        return tuple(parts(read_anew(session, few, **asked)) for few in (1, BY_VALUE))


def told_one(session: rs.Session, kind: str, at: int, target: Target, name: str) -> rs.Session:
    if kind in SAID:
        session.append(SAID[kind])
        return session
    if kind in THOUGHTS:
        session.append(turn_of(kind, at, target, name))
        return session
    return step(session, kind, at, target, name)


TOLD = [*STEPS, *["user", "reply"] * 5, *SAID, *["signed"] * 15, *THOUGHTS]
Told = Sequence[tuple[str, int, Target | None]]


def told_all(session: rs.Session, told: Told, asked: Target, name: str = "s") -> rs.Session:
    for number, (kind, at, target) in enumerate(told):
        session = told_one(session, kind, at, target or asked, f"{name}{number}")
    return session


# None is who is asked: what it signed goes back to it, as nobody else's does.
TELLING = st.lists(
    st.tuples(
        st.sampled_from(TOLD),
        st.integers(0, 30),
        st.sampled_from([None] * len(TARGETS) + [*TARGETS]),
    ),
    max_size=16,
)


@hypothesis_settings(max_examples=150)
@given(
    told=TELLING,
    more=st.sampled_from(TOLD),
    policy=st.sampled_from(POLICIES),
    asked=st.sampled_from(TARGETS),
)
def test_a_request_by_column_is_the_request_by_value(
    told: Told, more: str, policy: dict[str, Any], asked: Target
) -> None:
    """Over every history, policy and target; so is the one that goes on from it."""
    with rs.Store("sqlite://") as store:
        session = told_all(store.session("chat", create=True), told, asked)
        given = {"settings": policy, **asked.to}

        by_value = read_anew(session, BY_VALUE, **given)
        by_column = read_anew(session, 1, **given)
        assert parts(by_column) == parts(by_value)

        session = told_one(session, more, 3, asked, "more")
        with runs_of(1):
            following = session.build_request(**given)
        assert parts(following) == parts(read_anew(session, BY_VALUE, **given))


@hypothesis_settings(max_examples=150)
@given(told=TELLING, more=TELLING, policy=st.sampled_from(POLICIES), asked=st.sampled_from(TARGETS))
def test_what_if_by_column_is_what_selections_say(
    told: Told,
    more: Told,
    policy: dict[str, Any],
    asked: Target,
) -> None:
    """Over every history, policy and target; so it is of a view that goes on from runs."""
    with rs.Store("sqlite://") as store:
        session = told_all(store.session("chat", create=True), told, asked)
        for after in ((), more[:3]):
            session = told_all(session, after, asked, "more")
            with runs_of(1):
                found = session.what_if(settings=policy, **asked.to)
            assert found.rows == by_selection(session, policy, asked)


def by_selection(
    session: rs.Session, policy: dict[str, Any], asked: Target, system: str | None = None
) -> tuple[Alternative, ...]:
    """Return the rows from selections of a view of values."""
    to = select_target(asked.provider, asked.model, asked.api, None)
    settled = session._policy(policy)
    with runs_of(BY_VALUE):
        view = Views(session._workings.ledger).of(session._row, session._branch)
    items = session._asked(view.items, settled, to)
    return selected(items, settled.settings, to, system=system)


@pytest.mark.parametrize("settings", [KEPT, STRIPPED, ROLLING], ids=["kept", "strip", "rolling"])
def test_what_reasoning_is_bound_to_is_known_by_column(
    session: rs.Session, settings: dict[str, Any]
) -> None:
    """What each reply was asked with stands beside its run, and is held against what is asked."""
    asked = next(target for target in TARGETS if target.model == "claude-opus-5-5")
    for number in range(8):
        session.append(rs.user(f"Question {number}?"))
        system = "Be brief." if number < 5 else "Be long."
        request = session.build_request(settings=KEPT, system=system, **asked.to)
        reply = asked.reply(f"r{number}", text="So.", thought=f"Thought {number}.")
        with session.record(rs.testing.stream(reply, api=asked.api), request=request) as recorded:
            list(recorded)
    session.append(rs.user("And now?"))

    for system in ("Be brief.", "Be long.", "Be kind."):
        given = {"settings": settings, "system": system, **asked.to}
        found = read_anew(session, 1, **given)
        assert parts(found) == parts(read_anew(session, BY_VALUE, **given))
        codes = {warning.code for warning in found.warnings}
        assert ("binding" in codes) == (settings is not STRIPPED)

        session._workings.views.forget_all()
        with runs_of(1):
            rows = session.what_if(**given).rows
        assert rows == by_selection(session, settings, asked, system)


def test_a_thought_that_is_more_than_words_parts_a_run(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands before it and behind it is sent by column all the same."""
    talk(session, 40)
    hidden = rs.ThinkingBlock(thought="Hm.", is_hidden=True)
    session.append([rs.user("Well?"), rs.assistant(hidden, "So.")])
    talk(session, 40)
    session.append(rs.user("And now?"))
    asked = {"settings": KEPT, **HOST}
    by_value = parts(read_anew(session, BY_VALUE, **asked))
    made: list[int] = []
    monkeypatch.setattr(Stretch, "_value", lambda _, at: made.append(at))

    assert parts(read_anew(session, plain.FEW, **asked)) == by_value
    (view,) = session._workings.views._views.values()
    assert [len(piece) for piece in view.items.chunks if isinstance(piece, Stretch)] == [81, 80]
    assert made == []


KEPT_BY_FORM = [
    ("mistral", "magistral-medium", "mistral.chat"),
    ("cohere", "command-a-reasoning", "cohere.chat"),
    ("ollama", "qwen3", "ollama.chat"),
    ("google", "gemini-3-pro", "gemini.generate_content"),
    ("vercel-ai-sdk", "any-model", "thinking_events"),
    # Thoughts of earlier turns have to be asked to stay.
    ("zai", "glm-5.3", "openai.chat"),
    ("moonshot", "kimi-k2.6", "openai.chat"),
]


@pytest.mark.parametrize(("provider", "model", "api"), KEPT_BY_FORM)
def test_thoughts_that_are_kept_go_by_the_form_that_a_protocol_has_for_them(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch, provider: str, model: str, api: str
) -> None:
    """Whoever thought them: of the open turn alone a value is made."""
    talk(session, 30)
    session.append(rs.user("And now?"))
    asked = {"settings": KEPT, "provider": provider, "model": model, "api": api}
    by_value = parts(read_anew(session, BY_VALUE, **asked))
    made: list[int] = []
    monkeypatch.setattr(Stretch, "_value", lambda _, at: made.append(at))

    request = read_anew(session, plain.FEW, **asked)

    assert made == []
    assert parts(request) == by_value
    assert str(request.body).count("Thought 7.") == 1


OF_SEALS = [
    target
    for target in TARGETS
    if [block.signature is None for block in target.think("Hm.", "a")] == [False]
]


def signed_talk(session: rs.Session, turns: int, target: Target) -> None:
    for number in range(turns):
        session.append(turn_of("signed", 0, target, f"t{number}"))


@pytest.mark.parametrize("target", OF_SEALS, ids=str)
def test_signed_thoughts_that_are_kept_go_by_form(
    session: rs.Session, made: list[int], target: Target
) -> None:
    """Each with its own signature, wherever a protocol has a place for both."""
    signed_talk(session, 30, target)
    session.append(rs.user("And now?"))
    asked = {"settings": KEPT, **target.to}
    by_value = parts(read_anew(session, BY_VALUE, **asked))
    made.clear()

    request = read_anew(session, plain.FEW, **asked)

    assert len(made) < 10, "one of a kind, where there may be something to say, and a search"
    assert parts(request) == by_value
    written = json.dumps(request.body)
    seals = [block.signature for item in session.history() for block in item.message.thinking]
    assert len({*seals}) == 30
    assert [written.count(str(seal)) for seal in seals] == [1] * 30


@pytest.mark.parametrize("kind", THOUGHTS)
@pytest.mark.parametrize("target", OF_SEALS[::2], ids=str)
def test_a_thought_goes_with_all_that_is_on_it(target: Target, kind: str) -> None:
    """By column where that is a signature alone, and else as it would by value."""
    said = [turn_of(each, 0, target, each) for each in ("signed", kind, "signed")]
    history = [*chain.from_iterable(said), rs.user("And now?")]

    by_column, by_value = both_ways(history, settings=KEPT, **target.to)
    assert by_column == by_value


IN_THE_WAY = {"a user who says more": "Wait.", "a user's spaces": "\n "}


@pytest.mark.parametrize("target", OF_SEALS, ids=str)
@pytest.mark.parametrize("settings", [KEPT, STRIPPED], ids=["kept", "stripped"])
@pytest.mark.parametrize("said", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_is_in_the_way_parts_a_run(
    session: rs.Session, made: list[int], said: str, settings: dict[str, Any], target: Target
) -> None:
    """A few about it are made one by one, and the rest of a long run are not."""
    signed_talk(session, 100, target)
    session.append(rs.user(said))
    signed_talk(session, 100, target)
    session.append(rs.user("And now?"))
    asked = {"settings": settings, **target.to}
    by_value = parts(read_anew(session, BY_VALUE, **asked))
    made.clear()

    assert parts(read_anew(session, plain.FEW, **asked)) == by_value
    assert len(made) < 2 * building.FEW


@pytest.mark.parametrize("target", OF_SEALS, ids=str)
def test_a_request_of_signed_thoughts_is_its_takers(session: rs.Session, target: Target) -> None:
    """Whatever is done to its last leaf, the next one is what it would have been."""
    signed_talk(session, 30, target)
    session.append(rs.user("And now?"))
    asked = {"settings": KEPT, **target.to}
    before = parts(read_anew(session, plain.FEW, **asked))

    empty(session.build_request(**asked).body)

    assert parts(session.build_request(**asked)) == before


def empty(value: Any) -> None:
    """Take everything out of a value, and out of all that is in it."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            empty(item)
        value.clear()


@pytest.mark.parametrize("settings", [KEPT, STRIPPED, ROLLING], ids=["kept", "strip", "rolling"])
@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
@pytest.mark.parametrize(
    "host", [HOST, {"provider": "mistral", "model": "magistral-medium"}], ids=["field", "part"]
)
def test_what_is_not_plain_is_sent_as_ever(
    session: rs.Session, said: rs.Message, settings: dict[str, Any], host: dict[str, Any]
) -> None:
    """It stands among plain messages, and both go as they would by value."""
    talk(session, 2)
    session.append([rs.user("And?"), said])
    talk(session, 2)

    asked = {"settings": settings, **host}
    assert parts(read_anew(session, 1, **asked)) == parts(read_anew(session, BY_VALUE, **asked))


ASKING = rs.assistant(rs.ToolCallBlock(id="one", name="look", arguments="{}"))
ANSWERED = rs.tool(rs.ToolResponseBlock(call_id="one", tool_name="look", result="4 C"))
AROUND: dict[str, list[rs.Message]] = {
    "a system message": [rs.system("Be brief.")],
    "an answer that nobody took up": [rs.user("Look."), ASKING, ANSWERED],
    "a call that nobody answered": [rs.user("Look."), ASKING],
    "a user who says more": [rs.user("Wait."), rs.user("And?")],
    "a model that says more": [rs.assistant("And so on.")],
}
HOSTS = {
    "mistral": {"provider": "mistral", "model": "magistral-medium"},
    "vllm": {"provider": "vllm", "model": "qwen3"},
    "anthropic": {"provider": "anthropic", "model": "claude-haiku-4-5"},
    "openai": {"provider": "openai", "model": "gpt-5.6", "api": "openai.responses"},
    # A thought and a text are two items there, which is no form.
    "items": {"provider": "vllm", "model": "gpt-oss-120b", "api": "openai.responses"},
}


@pytest.mark.parametrize("settings", [KEPT, STRIPPED], ids=["kept", "stripped"])
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_a_run_is_in_order_with_what_stands_around_it(
    session: rs.Session,
    around: list[rs.Message],
    host: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    """What a provider wants between two messages is there, and thoughts are in its own field."""
    session.append(around)
    for _ in range(2):
        talk(session, 2)
        session.append(around)
    session.append(rs.user("And now?"))

    asked = {"settings": settings, **host}
    assert parts(read_anew(session, 1, **asked)) == parts(read_anew(session, BY_VALUE, **asked))


@pytest.mark.parametrize("target", OF_SEALS, ids=str)
@pytest.mark.parametrize("asked_for", [{}, {"reasoning.effort": "low"}], ids=["", "effort"])
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_a_run_of_signed_thoughts_is_in_order_with_what_stands_around_it(
    session: rs.Session, around: list[rs.Message], asked_for: dict[str, Any], target: Target
) -> None:
    """A turn goes on as it began, and what may be asked is known of the turns before it."""
    more = rs.assistant(rs.ThinkingBlock(thought="Hm.", signature="c2ln"), "And so on.")
    origin = rs.Origin(**target.to)
    session.append(around)
    for last in ((), [replace(more, origin=origin)], around):
        signed_talk(session, 2, target)
        session.append([*around, *last])
    asked = {"settings": {**KEPT, **asked_for}, **target.to}
    for end in (rs.user("And now?"), replace(more, origin=origin)):
        session.append(end)
        assert parts(read_anew(session, 1, **asked)) == parts(read_anew(session, BY_VALUE, **asked))


@pytest.mark.parametrize("target", OF_SEALS, ids=str)
@pytest.mark.parametrize("last", ["signed", "words", "nothing"])
@pytest.mark.parametrize("begun", ["thinking", "calling"])
@pytest.mark.parametrize("asked_for", [{}, {"reasoning.effort": "low"}], ids=["", "effort"])
def test_a_turn_that_begins_unseen_goes_on_with_the_last_of_a_run(
    asked_for: dict[str, Any], begun: str, last: str, target: Target
) -> None:
    """What the user said in it cannot be sent: to the provider it is one turn with that."""
    origin = rs.Origin(**target.to)
    reply = turn_of("signed", 0, target, "more")[-1]
    history = turn_of("signed and hidden", 0, target, "hidden")
    if begun == "calling":
        history = [rs.user("Look."), ASKING, ANSWERED, SAID["metadata"]]
    history += turn_of("signed", 0, target, "first")
    if last == "nothing":
        history += [rs.user("Well?"), rs.assistant("So.", origin=origin)]
    else:
        history += turn_of(last, 0, target, "last")
    history.append(SAID["a user's block of tomorrow"])

    for more in ([], [reply]):
        asked = {"settings": {**KEPT, **asked_for}, **target.to}
        by_column, by_value = both_ways([*history, *more], **asked)
        assert by_column == by_value


def test_a_turn_that_may_go_on_with_a_thought_is_not_let_pass() -> None:
    """Where thinking is refused in a turn that began without."""
    order = Order(contracts.resolve("anthropic", "claude-haiku-4-5"))
    once: list[Role] = ["user", "assistant"]

    assert order.lets_pass([*once, *once], thinking=True)
    assert not order.lets_pass([*once, "assistant"], thinking=True)
    assert order.lets_pass([*once, "assistant"], thinking=False)


# --- and it is by column


@pytest.mark.parametrize("settings", [KEPT, STRIPPED], ids=["kept", "stripped"])
def test_no_value_is_made_of_a_plain_message(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """Of the open turn alone, however long the conversation."""
    talk(session, 40)
    session.append(rs.user("And now?"))
    made: list[int] = []
    monkeypatch.setattr(Stretch, "_value", lambda _, at: made.append(at))

    request = read_anew(session, plain.FEW, settings=settings, **HOST)

    assert made == []
    assert len(request.body["messages"]) == 81
    assert len(request.verdicts) == 40
    assert ("Thought 7." in str(request.body)) == (settings is KEPT)


@pytest.mark.parametrize("floor", ["provider", "off"])
def test_what_if_makes_no_value_of_a_plain_message(
    session: rs.Session, made: list[int], floor: str
) -> None:
    """But of one or two of each kind, for what there may be to say of all like it."""
    talk(session, 400)
    session.append(rs.user("And now?"))
    made.clear()

    settings = {**KEPT, "reasoning.floor": floor}
    found = session.what_if(settings=settings, provider="moonshot", model="kimi-k2-thinking")

    assert len(made) < 20
    assert [row.first_change for row in found.rows if not row.include_in_context] == [2] * 4


@pytest.mark.parametrize("settings", [KEPT, STRIPPED, ROLLING], ids=["kept", "strip", "rolling"])
def test_a_reply_is_followed_without_making_values(
    session: rs.Session, made: list[int], settings: dict[str, Any]
) -> None:
    """The request that it answered is found, and gone on from, however long it was."""
    talk(session, 200)
    session.append(rs.user("And now?"))
    made.clear()

    for _ in range(3):
        request = session.build_request(settings=settings, **HOST)
        delta = {"choices": [{"index": 0, "delta": {"content": "Now."}}]}
        with session.record([delta], request=request) as reply:
            list(reply)
        session.append(rs.user("And now?"))
        read_anew(session, plain.FEW, settings=settings, **HOST)

    assert len(made) < 150, "a few of each search for where the reply stands"


def test_what_is_looked_at_by_value_is_kept_by_column(session: rs.Session) -> None:
    """A view is no larger for having been asked about."""
    talk(session, 40)
    session.append(rs.user("And now?"))
    session.what_if(**HOST)
    session.build_request(settings=KEPT, provider="moonshot", model="kimi-k3")
    gc.collect()

    held = [item for item in gc.get_objects() if type(item) is Viewed]
    (view,) = session._workings.views._views.values()
    run = view.items.chunks[0]
    assert isinstance(run, Stretch)
    assert not [item for item in held if item.message.blocks[-1:] == run[-1].message.blocks]


def test_a_request_that_is_kept_keeps_no_thought_that_stayed(session: rs.Session) -> None:
    """Its verdicts are made later, and of less."""
    talk(session, 40)
    session.append(rs.user("And now?"))
    session.build_request(settings=KEPT, **HOST)
    request = session.build_request(settings=STRIPPED, **HOST)
    (view,) = session._workings.views._views.values()
    run = weakref.ref(view.items.chunks[0])
    del view
    session._workings.views.forget_all()
    gc.collect()

    assert run() is None
    assert [verdict.kept for verdict in request.verdicts] == [False] * 40


def test_a_short_run_is_read_by_value(session: rs.Session, lengths: list[int]) -> None:
    """Columns pay for themselves in long ones alone."""
    talk(session, plain.FEW // 2)
    session.append([rs.user("And now?")])
    loop(session, "one")
    talk(session, 3)
    session.build_request(settings=KEPT, **HOST)

    assert lengths == [plain.FEW + 2], "the questions before the tools, and no more"


def test_what_was_thought_with_a_seal_is_read_whole_where_it_goes_back(
    session: rs.Session,
) -> None:
    """The words alone are not all of it."""
    sealed = rs.ThinkingBlock(thought="Hm.", source_field="reasoning", signature="c2ln")
    origin = rs.Origin(provider="openrouter", api="openai.chat", model="anthropic/claude-opus-5")
    for _ in range(3):
        session.append([rs.user("Well?"), rs.assistant(sealed, "So.", origin=origin)])
    session.append(rs.user("And now?"))
    host = {"provider": "openrouter", "model": "anthropic/claude-opus-5", "api": "openai.chat"}

    asked = {"settings": KEPT, **host}
    request = read_anew(session, 1, **asked)

    assert str(request.body).count("c2ln") == 3
    assert parts(request) == parts(read_anew(session, BY_VALUE, **asked))


def change(session: rs.Session, at: int, **columns: Any) -> None:
    """Change a row of a message as nobody here would."""
    statement = update(messages).where(messages.c.position == at).values(**columns)
    session._workings.ledger._write(lambda connection: connection.execute(statement))


def test_a_row_that_makes_no_sense_is_refused_by_its_position(session: rs.Session) -> None:
    """By column it is as corrupt as by value."""
    talk(session, 30)
    change(session, 8, exactness=9)

    with pytest.raises(rs.errors.CorruptRow, match="message 8"):
        session.build_request(settings=STRIPPED, **HOST)


def without_its_signature(session: rs.Session) -> None:
    gone = update(thinking_blocks).where(thinking_blocks.c.position == 8).values(data=None)
    session._workings.ledger._write(lambda connection: connection.execute(gone))


def called_unsigned(session: rs.Session) -> None:
    change(session, 8, shape='[[0,3,32,"thinking"]]')


@pytest.mark.parametrize("damage", [without_its_signature, called_unsigned])
def test_what_stands_beside_a_thought_tells_whether_it_is_signed(
    session: rs.Session, damage: Callable[[rs.Session], None]
) -> None:
    """Where its kind tells otherwise it goes as it would by value."""
    target = OF_SEALS[0]
    signed_talk(session, 30, target)
    session.append(rs.user("And now?"))
    damage(session)
    asked = {"settings": KEPT, **target.to}

    by_column = read_anew(session, 1, **asked)

    assert by_column.body == read_anew(session, BY_VALUE, **asked).body


@pytest.mark.parametrize("shape", ["", "[]", "[[0,", "[[0,1,2]]"])
def test_a_kind_that_says_nothing_is_read_by_value(session: rs.Session, shape: str) -> None:
    """What was thought tells what it is."""
    talk(session, 30)
    session.append(rs.user("And now?"))
    asked = {"settings": KEPT, **HOST}
    before = parts(read_anew(session, BY_VALUE, **asked))

    change(session, 8, shape=shape)

    assert parts(read_anew(session, 1, **asked)) == before


def test_what_is_missing_is_refused_by_its_position(session: rs.Session, url: str) -> None:
    """A row that is gone is no shorter conversation."""
    talk(session, 30)
    session._workings.ledger._write(
        lambda connection: connection.exec_driver_sql("DELETE FROM bodies WHERE position = 7")
    )
    with pytest.raises(rs.errors.CorruptRow, match="message 7"):
        session.build_request(settings=STRIPPED, **HOST)
