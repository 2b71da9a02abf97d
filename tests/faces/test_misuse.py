"""What an application gets wrong: a named error, the same on both engines, nothing changed."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from pydantic import BaseModel

import reasoning_store as rs
from reasoning_store.conversation.blocks import MOST_TOKENS
from tests.properties import each

Verb = Callable[[rs.Store, rs.Session], Any]


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        opened.session("chat", create=True).append([rs.user("Hello."), rs.assistant("Hi.")])
        yield opened


def refused(store: rs.Store, verb: Verb) -> rs.InvalidCall:
    """Return the error of a verb that must change nothing."""
    before = list(store.export_lines())
    with pytest.raises(rs.InvalidCall) as caught:
        verb(store, store.session("chat"))
    assert list(store.export_lines()) == before
    return caught.value


POSITIONS: dict[str, tuple[str, Callable[[rs.Session, Any], Any]]] = {
    "get": ("position", lambda chat, at: chat.get(at)),
    "fork": ("at", lambda chat, at: chat.fork(at=at)),
    "edit": ("position", lambda chat, at: chat.edit(at, rs.user("Other."))),
    "regenerate": ("position", lambda chat, at: chat.regenerate(at)),
    "erase": ("position", lambda chat, at: chat.erase(at)),
    "usage": ("at", lambda chat, at: chat.usage(at=at)),
    "branch": ("a branch id", lambda chat, at: chat.branch(at)),
    "activate": ("a branch id", lambda chat, at: chat.activate(at)),
    "undo": ("a compaction id", lambda chat, at: chat.undo(at)),
    "append": ("after", lambda chat, at: chat.append(rs.user("More."), after=at)),
    "history, limit": ("limit", lambda chat, at: chat.history(limit=at)),
    "history, tokens": ("tokens", lambda chat, at: chat.history(tokens=at)),
    "history, before": ("before", lambda chat, at: chat.history(before=at)),
    "history, after": ("after", lambda chat, at: chat.history(after=at)),
}
"""What a verb calls the number that it is given, and the verb."""


@each("at", [True, 1.0, 1.5, float("nan"), b"1"])
@each("case", POSITIONS)
def test_what_is_no_whole_number_is_no_position(store: rs.Store, case: str, at: Any) -> None:
    """True is not 1, and 1.0 is not 1: neither erases the first message."""
    name, verb = POSITIONS[case]
    error = refused(store, lambda _, chat: verb(chat, at))

    allowed = ("a whole number", "a position or the id of a message")
    assert str(error) in [f"{name}: {one}, not {type(at).__name__}" for one in allowed]


class Slip(NamedTuple):
    """A call with something wrong in it, and what is stated of that."""

    verb: Verb
    said: str
    """The argument, what it may be, and what was given."""
    hint: str


TOKENS = "it is in tokens, as "
SHARE = "more than 0 and at most 1, as in "
loose: Any = rs
SLIPS: dict[str, Slip] = {
    # Numbers
    "usage, limit": Slip(
        lambda _, chat: chat.usage(limit=0), "limit: 1 or more, not 0", TOKENS + "limit=8_192"
    ),
    "usage, negative limit": Slip(
        lambda _, chat: chat.usage(limit=-1), "limit: 1 or more, not -1", TOKENS + "limit=8_192"
    ),
    "usage, limit as text": Slip(
        lambda _, chat: chat.usage(limit="50"),  # type: ignore[arg-type]
        "limit: a whole number, not str",
        TOKENS + "limit=8_192",
    ),
    "compression, limit": Slip(
        lambda _, chat: chat.compression(limit=0),
        "limit: 1 or more, not 0",
        TOKENS + "limit=8_192",
    ),
    "compression, limit beyond all counts": Slip(
        lambda _, chat: chat.compression(limit=10**400),
        f"limit: {MOST_TOKENS} or less, not 1{36 * '0'}...",
        TOKENS + "limit=8_192",
    ),
    "compression, limit as text": Slip(
        lambda _, chat: chat.compression(limit="many"),  # type: ignore[arg-type]
        "limit: a whole number, not str",
        TOKENS + "limit=8_192",
    ),
    "compression, no limit": Slip(
        lambda _, chat: chat.compression(limit=None),  # type: ignore[arg-type]
        "a plan needs the limit of the model's context",
        "give it once, as in session.context(limit=212_000)",
    ),
    "compression, reserve": Slip(
        lambda _, chat: chat.compression(limit=100, reserve=-1),
        "reserve: 0 or more, not -1",
        TOKENS + "reserve=8_192",
    ),
    "compression, half a token": Slip(
        lambda _, chat: chat.compression(limit=100, reserve=1.5),  # type: ignore[arg-type]
        "reserve: a whole number, not float",
        TOKENS + "reserve=8_192",
    ),
    "compression, all of it reserved": Slip(
        lambda _, chat: chat.compression(limit=100, reserve=100),
        "a reserve of 100 uses up the limit of 100",
        "the model's whole context as limit",
    ),
    "compression, growth": Slip(
        lambda _, chat: chat.compression(limit=100, min_growth=-1),
        "min_growth: 0 or more, not -1",
        TOKENS + "min_growth=8_192",
    ),
    "compression, worth": Slip(
        lambda _, chat: chat.compression(limit=100, min_freed=-1),
        "min_freed: 0 or more, not -1",
        TOKENS + "min_freed=8_192",
    ),
    "compression, summary": Slip(
        lambda _, chat: chat.compression(limit=100, summary_tokens=-1),
        "summary_tokens: 0 or more, not -1",
        TOKENS + "summary_tokens=8_192",
    ),
    "compression, threshold": Slip(
        lambda _, chat: chat.compression(limit=9, threshold="1"),  # type: ignore[arg-type]
        "threshold: a share, not str",
        SHARE + "threshold=0.85",
    ),
    "compression, target": Slip(
        lambda _, chat: chat.compression(limit=100, target=True),
        "target: a share, not bool",
        SHARE + "target=0.85",
    ),
    "compression, target above the threshold": Slip(
        lambda _, chat: chat.compression(limit=100, target=0.9),
        "the target 0.9 is not below the threshold 0.85",
        "leave target out",
    ),
    "budget, limit": Slip(
        lambda _, chat: chat.budget(limit=0), "limit: 1 or more, not 0", TOKENS + "limit=8_192"
    ),
    "budget, limit beyond all counts": Slip(
        lambda _, chat: chat.budget(limit=10**400),
        f"limit: {MOST_TOKENS} or less, not 1{36 * '0'}...",
        TOKENS + "limit=8_192",
    ),
    "budget, limit as text": Slip(
        lambda _, chat: chat.budget(limit="50"),  # type: ignore[arg-type]
        "limit: a whole number, not str",
        TOKENS + "limit=8_192",
    ),
    "budget, share": Slip(
        lambda _, chat: chat.budget(limit=50, warn_at=None),  # type: ignore[arg-type]
        "warn_at: a share, not None",
        SHARE + "warn_at=0.85",
    ),
    "history, limit": Slip(
        lambda _, chat: chat.history(limit=-1), "limit: 0 or more, not -1", "history(limit=50)"
    ),
    "history, before the beginning": Slip(
        lambda _, chat: chat.history(before=-1), "before: 0 or more, not -1", "history(before=50)"
    ),
    "history, after nothing": Slip(
        lambda _, chat: chat.history(after=-3), "after: 0 or more, not -3", "history(after=50)"
    ),
    "history, tokens": Slip(
        lambda _, chat: chat.history(tokens=-1), "tokens: 0 or more, not -1", "history(tokens=50)"
    ),
    "sessions, no limit": Slip(
        lambda every, _: every.sessions(limit=None),  # type: ignore[arg-type]
        "limit: a whole number, not None",
        "sessions(limit=50)",
    ),
    "sessions, limit": Slip(
        lambda every, _: every.sessions(limit=0), "limit: 1 or more, not 0", "sessions(limit=50)"
    ),
    # Whom a request is for, and what goes with it
    "build_request, provider": Slip(
        lambda _, chat: chat.build_request(provider=5),  # type: ignore[arg-type]
        "provider: a string, not int",
        'e.g. provider="openai"',
    ),
    "build_request, base_url": Slip(
        lambda _, chat: chat.build_request(base_url=5),  # type: ignore[arg-type]
        "base_url: a string, not int",
        "https://host/v1",
    ),
    "build_request, api": Slip(
        lambda _, chat: chat.build_request(api="rest"), "unknown api 'rest'", "openai.chat"
    ),
    "build_request, tools": Slip(
        lambda _, chat: chat.build_request(tools={"name": "look_up"}),  # type: ignore[arg-type]
        "tools must be a list of mappings, not dict",
        "put a single tool into a list",
    ),
    "build_request, extra": Slip(
        lambda _, chat: chat.build_request(extra=["stream"]),  # type: ignore[arg-type]
        "extra must be a mapping, not list",
        'extra={"stream": True}',
    ),
    "build_request, what it builds itself": Slip(
        lambda _, chat: chat.build_request(extra={"messages": []}),
        "extra cannot set messages: the request is built from the conversation",
        "change the history",
    ),
    "build_request, what is no JSON": Slip(
        lambda _, chat: chat.build_request(extra={"stop": {"end"}}),
        "extra['stop']: JSON has no set",
        "lists and dicts",
    ),
    "record, request": Slip(
        lambda _, chat: chat.record([], request={"messages": []}),  # type: ignore[arg-type]
        "request: the Request of build_request(), not dict",
        "name the provider and the model",
    ),
    "record, nothing to iterate": Slip(
        lambda _, chat: chat.record(None),  # type: ignore[arg-type]
        "the stream must be iterable, not NoneType",
        "with ... as stream",
    ),
    "record, a text": Slip(
        lambda _, chat: list(chat.record("Hi.", model="m")),
        "record() reads provider events, not text",
        "rs.normalize_response(text)",
    ),
    "record, a message": Slip(
        lambda _, chat: chat.record(rs.assistant("Hi.")),  # type: ignore[arg-type]
        "the stream must be iterable, not Message",
        "append(message)",
    ),
    "record, messages": Slip(
        lambda _, chat: list(chat.record([rs.assistant("Hi.")])),
        "this stream gives Message objects, not events",
        "append(message)",
    ),
    "record, a history": Slip(
        lambda _, chat: list(chat.record(chat.history())),
        "this stream gives Stored objects, not events",
        "append(message)",
    ),
    "record, chunks": Slip(
        lambda _, chat: list(chat.record([rs.TextChunk(text="Hi.")])),
        "this stream gives TextChunk objects, not events",
        "the provider's events",
    ),
    # What a plan is, and what it is of
    "compact, no plan": Slip(
        lambda _, chat: chat.compact({"action": "strip"}),  # type: ignore[arg-type]
        "pass a plan of compression(), not dict",
        "session.compression(limit=...)",
    ),
    "compact, nothing to do": Slip(
        lambda _, chat: chat.compact(chat.compression(limit=9_000)),
        "there is no step to apply: the plan's action is none",
        "below_threshold",
    ),
    "regenerate, a user's": Slip(
        lambda _, chat: chat.regenerate(1),
        "the message at 1 is not a model's reply",
        "edit(position, message)",
    ),
    # Names
    "report, by": Slip(
        lambda every, _: every.report(by="week"),  # type: ignore[arg-type]
        "by: one of session, owner, model, day",
        'report(by="model")',
    ),
    "for_owner, nobody": Slip(
        lambda every, _: every.for_owner(None),  # type: ignore[arg-type]
        "owner: a string, not None",
        'for_owner("user-7")',
    ),
    "append, a long key": Slip(
        lambda _, chat: chat.append(rs.user("a"), idempotency_key="k" * 1001),
        "an idempotency key is longer than 1000 bytes",
        "a digest of it",
    ),
    "import_lines, no lines": Slip(
        lambda every, _: every.import_lines("{}\n{}"),
        "lines: an iterable of lines",
        "text.split('\\n')",
    ),
}


@each("case", SLIPS)
def test_an_invalid_argument_is_named_with_a_valid_one(store: rs.Store, case: str) -> None:
    """As it would stand in the call; and nothing is done."""
    verb, said, hint = SLIPS[case]
    error = refused(store, verb)

    assert str(error) == said
    assert hint in (error.hint or "")


SWITCHES: dict[str, Callable[[rs.Store, rs.Session, Any], Any]] = {
    "create": lambda every, _, switch: every.session("chat", create=switch),
    "create of a new one": lambda every, _, switch: every.session("new", create=switch),
    "archived": lambda _, chat, switch: chat.archive(archived=switch),
    "archived of a list": lambda every, _, switch: every.sessions(archived=switch),
    "overwrite": lambda every, _, switch: every.backup("copy.db", overwrite=switch),
    "clear": lambda _, chat, switch: chat.compression(limit=100, clear=switch),
    "starts_inside": lambda _, chat, switch: chat.record([], model="m", starts_inside=switch),
    "merge": lambda _, chat, switch: chat.record([], model="m", merge=switch),
}


@each("switch", [2, 1, "no", [False]])
@each("case", SWITCHES)
def test_a_switch_is_true_or_false(store: rs.Store, case: str, switch: Any) -> None:
    """ "no" is none, which Python takes for true: it would write over a file."""
    error = refused(store, lambda every, chat: SWITCHES[case](every, chat, switch))

    assert str(error) == f"{case.split()[0]}: True or False, not {type(switch).__name__}"


class Shortsighted:
    """A masker that does not say how far a match may reach."""

    lookback = -1

    def mask(self, text: str) -> str:
        return text


@pytest.mark.parametrize("masker", [str.upper, "secret", rs.SecretMasker, Shortsighted()])
def test_what_cannot_mask_is_refused_before_anything_is_there(tmp_path: Path, masker: Any) -> None:
    """A function is none, nor is the class: no file is made, and no message waits for it."""
    with pytest.raises(rs.InvalidCall, match="a masker has") as refused:
        rs.Store(f"sqlite:///{tmp_path}/chat.db", masker=masker)

    assert "SecretMasker" in (refused.value.hint or "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", [rs.StreamNormalizer, partial(rs.normalize_response, {})])
def test_whom_something_is_from_is_named_by_strings(verb: Any) -> None:
    """Also where no request is built."""
    with pytest.raises(rs.InvalidCall, match="provider: a string, not int"):
        verb(provider=5)


def test_a_conflict_has_the_stored_messages(store: rs.Store) -> None:
    """Who submits twice sees that the first one is his own."""
    chat = store.session("chat")
    first = chat.append(rs.user("More."), after=2)

    with pytest.raises(rs.Conflict) as caught:
        chat.append(rs.user("More."), after=2)

    assert caught.value.stored == chat.get(first.position)


def test_a_page_may_ask_for_more_than_an_engine_counts(store: rs.Store) -> None:
    """It holds what there is."""
    assert len(store.sessions(limit=1 << 70).items) == 1


NAMES: dict[str, tuple[str, Callable[[rs.Store, rs.Session, Any], Any]]] = {
    "session": ("a session id", lambda every, _, name: every.session(name, create=True)),
    "owner": ("owner", lambda every, _, name: every.for_owner(name).session("chat")),
    "owner's list": ("owner", lambda every, _, name: every.for_owner(name).sessions()),
    "owner's erase": ("owner", lambda every, _, name: every.for_owner(name).erase()),
    "sessions": ("after", lambda every, _, name: every.sessions(after=name)),
    "export": ("a session id", lambda every, _, name: list(every.export_lines(name))),
    "rename": ("a title", lambda _, chat, name: chat.rename(name)),
    "append": (
        "an idempotency key",
        lambda _, chat, name: chat.append(rs.user("More."), idempotency_key=name),
    ),
    "record": (
        "an idempotency key",
        lambda _, chat, name: list(chat.record([], provider="openai", idempotency_key=name)),
    ),
    "profile": (
        "the name of a settings profile",
        lambda every, _, name: every.settings.profiles.set(name, {}),
    ),
    "use": (
        "the name of a settings profile",
        lambda _, chat, name: chat.settings.use(name),
    ),
}


@each("name", [1, True, b"chat", 1.5, ("chat",)])
@each("case", NAMES)
def test_what_is_no_string_is_no_name(store: rs.Store, case: str, name: Any) -> None:
    """An id that comes from elsewhere as a number is not taken for another's."""
    what, verb = NAMES[case]
    error = refused(store, lambda owner, chat: verb(owner, chat, name))

    assert str(error) == f"{what}: a string, not {type(name).__name__}"


@each("name", [None, 1, b"ann"])
@each(
    "verb",
    [
        lambda owner: owner.sessions(),
        lambda owner: list(owner.export_lines()),
        lambda owner: owner.report(),
        lambda owner: owner.import_lines([]),
        lambda owner: owner.erase(),
    ],
)
def test_an_owner_without_a_name_is_not_everybody(
    store: rs.Store, verb: Callable[[rs.results.Owner], Any], name: Any
) -> None:
    """A user whose id is None by mistake sees nothing of the others."""
    assert "owner: a string" in str(refused(store, lambda every, _: verb(every.for_owner(name))))


ROLES = "one of user, assistant, tool, system"
STATUSES = "one of complete, streaming, interrupted, erased"
WRONG: dict[str, tuple[str, Callable[[], Any]]] = {
    "role": (ROLES, lambda: loose.Message(role="boss", blocks=())),
    "status": (STATUSES, lambda: loose.assistant("Hi.", status="done")),
    "metadata": ("a mapping, not list", lambda: loose.user("Hi.", metadata=["a"])),
    "finish_reason": ("a string, not int", lambda: loose.assistant("Hi.", finish_reason=5)),
    "origin": ("an Origin, not str", lambda: loose.assistant("Hi.", origin="openai")),
    "origin.model": (
        "a string, not int",
        lambda: loose.assistant("Hi.", origin=loose.Origin(model=5)),
    ),
    "usage": ("a Usage, not dict", lambda: loose.assistant("Hi.", usage={"input": 5})),
    "usage.output": (
        "a whole number, not bool",
        lambda: loose.assistant("Hi.", usage=loose.Usage(output=True)),
    ),
    "blocks.0": ("a block, not list", lambda: loose.user(["Hi."])),
    "blocks.1": (
        "a block, not str",
        lambda: loose.Message(role="user", blocks=(loose.TextBlock(text="Hi."), "there")),
    ),
    "blocks.0.text": ("a string, not int", lambda: loose.user(loose.TextBlock(text=5))),
    "blocks.1.thought": (
        "a string, not None",
        lambda: loose.assistant("Hi.", loose.ThinkingBlock(thought=None)),
    ),
    "blocks.0.redacted": (
        "True or False, not str",
        lambda: loose.assistant(loose.ThinkingBlock(redacted="yes")),
    ),
    "blocks.0.id": (
        "a string, not int",
        lambda: loose.assistant(loose.ToolCallBlock(id=5, name="look")),
    ),
    "blocks.0.call_id": (
        "a string, not None",
        lambda: loose.tool(loose.ToolResponseBlock(call_id=None)),
    ),
    "blocks.0.kind": (
        "one of image, audio, video, file",
        lambda: loose.user(loose.MediaBlock(kind="smell", mime_type="a/b")),
    ),
    "blocks.0.data": (
        "bytes, not str",
        lambda: loose.user(loose.MediaBlock(kind="image", mime_type="a/b", data="AA==")),
    ),
    "blocks.2": (
        "media with one of data, url and ref",
        lambda: loose.user("Hi.", "Ho.", loose.MediaBlock(kind="image", mime_type="image/png")),
    ),
    "blocks": ("the user message is empty", lambda: loose.user()),
    "blocks.0.provider_metadata": (
        "a mapping, not str",
        lambda: loose.user(loose.TextBlock(text="", provider_metadata="x")),
    ),
}


@each("place", WRONG)
def test_what_could_not_be_read_again_is_not_stored(store: rs.Store, place: str) -> None:
    """A field of another type is refused by its place, and the session stays whole."""
    allowed, made = WRONG[place]
    wrong = made()
    for verb, at in (
        (lambda _, chat: chat.append(wrong), ""),
        (lambda _, chat: chat.append([rs.user("First."), wrong]), "messages.1."),
        (lambda _, chat: chat.edit(1, wrong), ""),
    ):
        assert str(refused(store, verb)) == f"not a message: {at}{place}: {allowed}"


ODD: dict[str, tuple[str, Any]] = {
    "a number for a key": ("a key is a string, not int", {1: "a", "1": "b"}),
    "nothing for a key": ("a key is a string, not NoneType", {"a": [{None: 1}]}),
    "a key of an own mapping": ("a key is a string, not bool", OrderedDict(a=({True: 1},))),
    "a set": ("JSON has no set", {"a": {1}}),
    "bytes": ("JSON has no bytes", {"a": [b"x"]}),
    "a date": ("JSON has no date", {"a": date(2026, 1, 1)}),
}
HOLDING: dict[str, Callable[[Any], rs.Message]] = {
    "metadata": lambda odd: rs.user("Hi.", metadata=odd),
    "usage.raw": lambda odd: rs.assistant("Hi.", usage=rs.Usage(raw=odd)),
    "blocks.0.provider_metadata": lambda odd: rs.user(
        rs.TextBlock(text="Hi.", provider_metadata=odd)
    ),
    "blocks.1.parameters": lambda odd: rs.assistant(
        "Hi.", rs.ToolCallBlock(id="a", name="b", parameters=odd)
    ),
    "blocks.0.result": lambda odd: rs.tool(rs.ToolResponseBlock(call_id="a", result=odd)),
    "blocks.0.data": lambda odd: rs.user(rs.RawBlock(data=odd)),
}


@each("odd", ODD)
@each("place", HOLDING)
def test_what_would_come_back_as_something_else_is_not_stored(
    store: rs.Store, place: str, odd: str
) -> None:
    """JSON has few kinds of values, and strings only for keys, of which two may become one."""
    said, value = ODD[odd]
    error = refused(store, lambda _, chat: chat.append(HOLDING[place](value)))

    assert str(error) == f"not a message: {place}: {said}"
    assert "dicts" in (error.hint or "")


def test_a_message_may_be_made_of_an_applications_own_kinds(store: rs.Store) -> None:
    """A string, a whole number and a mapping of a class of its own are what they are."""

    class Name(str):
        __slots__ = ()

    class Number(IntEnum):
        FIVE = 5

    metadata = OrderedDict(name=Name("x"))
    usage = rs.Usage(input=Number.FIVE)
    store.session("chat").append(rs.assistant(Name("Hi."), usage=usage, metadata=metadata))

    message = store.session("chat").get(3).message
    assert (message.text, message.usage, message.metadata) == ("Hi.", usage, {"name": "x"})


@pytest.mark.parametrize("by", ["week", ["model", "week"], [], None], ids=repr)
def test_what_is_no_group_makes_no_report(store: rs.Store, by: Any) -> None:
    """Each by its name, in a list or alone."""
    error = refused(store, lambda all_of, _: all_of.report(by=by))

    assert str(error) == "by: one of session, owner, model, day"


def test_what_is_no_string_is_no_setting(store: rs.Store) -> None:
    """A session's are unset one by one, a profile's together (ERR-001)."""
    several: Any = ["reasoning.effort"]
    before = list(store.export_lines())
    with pytest.raises(rs.SettingError, match="key is a string, not list"):
        store.session("chat").settings.unset(several)
    for one in (loose.assistant, "reasoning.effort"):
        with pytest.raises(rs.SettingError, match="unset: a list of keys, not "):
            store.settings.profiles.change("mine", {}, unset=one)

    assert list(store.export_lines()) == before


def test_what_is_not_there_says_where_to_look(store: rs.Store) -> None:
    """A summary and a profile are named by lists that the hint names."""
    chat = store.session("chat")
    absent: dict[str, Callable[[], object]] = {
        "compactions()": lambda: chat.undo(7),
        "profiles.all()": lambda: chat.settings.use("gone"),
    }
    for where, verb in absent.items():
        with pytest.raises(rs.NotFound) as caught:
            verb()
        assert where in (caught.value.hint or "")


@each("at, named", [(99, "99"), (10**30, "1" + "0" * 30)])
@each("verb", ["get", "fork", "edit", "regenerate", "erase", "usage", "undo"])
def test_what_is_not_there_is_named_by_its_number(
    store: rs.Store, verb: str, at: int, named: str
) -> None:
    """The one who asks for many finds the one in a log."""
    with pytest.raises(rs.NotFound, match=rf"\b{named}\b"):
        POSITIONS[verb][1](store.session("chat"), at)


METADATA: dict[str, tuple[str, Any]] = {
    **ODD,
    "a list": ("a mapping, not list", ["a"]),
    "a text": ("a mapping, not str", "text"),
}


@each("odd", METADATA)
def test_metadata_that_json_cannot_hold_is_refused(store: rs.Store, odd: str) -> None:
    """On a session that is there, and on one that is made with it."""
    said, metadata = METADATA[odd]
    verbs: tuple[Verb, ...] = (
        lambda _, chat: chat.set_metadata(metadata),
        lambda owner, _: owner.session("new", create=True, metadata=metadata),
    )
    for verb in verbs:
        assert str(refused(store, verb)) == f"metadata: {said}"


@each(
    "message, said",
    [
        ("text", "a message, not str"),
        (None, "a message, not NoneType"),
        (1, "a message, not int"),
        ({"role": "user", "content": "text"}, "a message, not dict"),
        ([None], "messages.0: a message, not NoneType"),
        ([rs.user("First."), "second"], "messages.1: a message, not str"),
        ([[rs.user("text")]], "messages.0: a message, not list"),
        ([], "append: no message was given"),
    ],
)
def test_what_is_no_message_is_not_stored(store: rs.Store, message: Any, said: str) -> None:
    """A text or a dict is not taken apart into messages; the hint says what makes one."""
    error = refused(store, lambda _, chat: chat.append(message))

    assert str(error) == said
    assert "rs.user" in (error.hint or "")


class HumanMessage(BaseModel):
    """A message as other libraries have them: gone through, it gives its fields."""

    content: str = "text"


@dataclass(frozen=True)
class MessageOutputItem:
    raw_item: str = "text"


ANOTHERS = {
    f"{__name__}.HumanMessage": HumanMessage(),
    f"{__name__}.MessageOutputItem": MessageOutputItem(),
    "another.Message": type("Message", (BaseModel,), {"__module__": "another"})(),
}


@pytest.mark.parametrize("name", ANOTHERS)
def test_a_message_of_another_library_is_refused_by_the_name_of_its_type(
    store: rs.Store, name: str
) -> None:
    """Alone or among others: it is not taken apart, and a Message is distinguished from ours."""
    message: Any = ANOTHERS[name]
    said = {
        str(refused(store, lambda _, chat: chat.append(message))),
        str(refused(store, lambda _, chat: chat.edit(1, message))),
        str(refused(store, lambda _, chat: chat.append([rs.user("First."), message]))),
    }

    assert said == {f"a message, not {name}", f"messages.1: a message, not {name}"}


def test_an_item_of_a_history_is_refused_with_a_hint(store: rs.Store) -> None:
    """Copying from one session into another is the ``message`` of each."""
    history: Any = store.session("chat").history()
    error = refused(store, lambda _, chat: chat.append(history))

    assert str(error) == "messages.0: a message, not Stored"
    assert error.hint == "pass its .message"


def test_messages_come_from_whatever_can_be_gone_through(store: rs.Store) -> None:
    """A generator, the values of a dict, a deque."""
    said = [rs.user("Is 91 prime?"), rs.assistant("No.")]
    chat = store.session("chat")
    for given in (iter(said), dict(enumerate(said)).values(), deque(said)):
        stored = chat.append(cast(Any, given))
        assert [item.message for item in stored] == said


@pytest.mark.parametrize("answer", ["97", {"call_id": "c"}, None])
def test_a_tools_answer_without_its_call_is_not_even_made(answer: Any) -> None:
    """A bare text belongs to no call: it would go to the model as if the user had said it."""
    with pytest.raises(rs.InvalidCall) as caught:
        rs.tool(answer)

    assert f"blocks.0: a block, not {'None' if answer is None else type(answer).__name__}" in str(
        caught.value
    )
    assert "rs.tool(block)" in str(caught.value.hint)


def test_what_is_no_block_is_not_stored(store: rs.Store) -> None:
    """However the message was made."""
    torn = replace(rs.user("97"), blocks=("97",))  # type: ignore[arg-type]

    assert "blocks.0: a block, not str" in str(refused(store, lambda _, chat: chat.append(torn)))


@each("only", ["thinking", "reasoning ", True, 1, ""])
@each("what", ["message", "session", "owner"])
def test_what_might_have_spared_something_erases_nothing(
    store: rs.Store, what: str, only: Any
) -> None:
    """A misspelt ``only`` is no order at all."""
    verbs: dict[str, Verb] = {
        "message": lambda _, chat: chat.erase(1, only=only),
        "session": lambda _, chat: chat.erase(only=only),
        "owner": lambda owner, _: owner.erase(only=only),
    }

    allowed = '"reasoning"' if what == "message" else '"reasoning" or "messages"'
    assert str(refused(store, verbs[what])) == f"only: {allowed}, or nothing for all of it"


@each(
    "time",
    [
        "2026-01-01",
        0,
        date(2026, 1, 1),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14))),
    ],
)
def test_what_is_no_time_in_utc_is_refused(store: rs.Store, time: Any) -> None:
    """As the time of a message and as a bound of a report."""
    verbs: dict[str, Verb] = {
        "created_at": lambda _, chat: chat.append(rs.user("More."), created_at=time),
        "since": lambda owner, _: owner.report(since=time),
        "until": lambda owner, _: owner.report(until=time),
    }
    for name, verb in verbs.items():
        error = refused(store, verb)
        wrong = "out of range" if isinstance(time, datetime) else "a datetime, not "
        assert str(error).startswith(f"{name}: {wrong}")
        assert error.hint == "datetime.now(UTC) is one"


@pytest.mark.parametrize(
    "time",
    [datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
    ids=repr,
)
def test_the_furthest_times_come_back(store: rs.Store, time: datetime) -> None:
    """Years that an import of old documents may bring."""
    chat = store.session("chat")
    stored = chat.append(rs.user("More."), created_at=time)

    assert chat.get(stored.position).created_at == time


@each("time", [-(10**18), 10**18, 1.5, True, "2026"])
def test_a_line_with_a_time_out_of_range_is_refused(store: rs.Store, time: Any) -> None:
    """It is named by its number; a history that was imported can be shown."""
    lines = [json.loads(line) for line in store.export_lines()]
    given = [
        json.dumps({**line, "createdAt": time} if "role" in str(line) else line) for line in lines
    ]

    with pytest.raises(rs.InvalidCall, match=r"line \d: createdAt"):
        store.for_owner("new").import_lines(given)


def test_a_line_may_say_null_where_it_may_say_nothing(store: rs.Store) -> None:
    """Other languages write every field of a record."""
    lines = [json.loads(line) for line in store.export_lines()]
    given = [
        json.dumps({**line, "createdAt": None} if "createdAt" in line else line) for line in lines
    ]
    store.for_owner("new").import_lines(given)

    assert [m.message.text for m in store.for_owner("new").session("chat").history()] == [
        "Hello.",
        "Hi.",
    ]


@each("lines", [None, 1, "{}\n{}", b"{}", [1], [None]])
def test_what_are_no_lines_are_not_imported(store: rs.Store, lines: Any) -> None:
    """A whole text is not taken letter by letter."""
    error = refused(store, lambda owner, _: owner.import_lines(lines))

    one_by_one = isinstance(lines, list)
    wanted = "line 1: a line is a string or bytes" if one_by_one else "lines: an iterable of lines"
    assert str(error) == wanted


@pytest.mark.parametrize("path", [None, 1, b"copy.db"], ids=repr)
def test_what_is_no_path_gets_no_backup(store: rs.Store, path: Any) -> None:
    """It is stated before any work is done."""
    error = refused(store, lambda owner, _: owner.backup(path))

    assert str(error) == f"path: a string or a path, not {type(path).__name__}"


def test_a_setting_is_unset_by_the_name_it_was_set_by(store: rs.Store) -> None:
    """The names of Python and of JSON are one."""
    settings = store.session("chat").settings
    settings.set("include_in_context", True)
    settings.unset("include_in_context")

    assert settings.resolved()["reasoning.includeInContext"].layer == "default"


ASKED: dict[str, Callable[[rs.AsyncStore], Any]] = {
    "session": lambda store: store.session("chat", create=True),
    "sessions": lambda store: store.sessions(),
    "report": lambda store: store.report(),
    "erase": lambda store: store.erase(),
    "verify": lambda store: store.verify(),
    "import": lambda store: store.import_lines([]),
    "export": lambda store: anext(aiter(store.export_lines())),
    "owner": lambda store: store.for_owner("you").sessions(),
    "profiles": lambda store: store.settings.profiles.all(),
}


@pytest.mark.parametrize("verb", ASKED)
def test_an_asynchronous_store_that_is_not_open_says_how(url: str, verb: str) -> None:
    """Before it is entered and after it is closed."""

    async def run() -> None:
        store = rs.AsyncStore(url)
        with pytest.raises(rs.InvalidCall, match="not open") as caught:
            await ASKED[verb](store)
        assert caught.value.hint == "async with rs.AsyncStore(url) as store"
        async with store:
            pass
        with pytest.raises(rs.InvalidCall, match="not open"):
            await ASKED[verb](store)

    asyncio.run(run())


def test_an_asynchronous_handle_outlives_its_store_as_an_error(url: str) -> None:
    """It says that the store is closed, whatever it is asked for."""

    async def run() -> None:
        async with rs.AsyncStore(url) as store:
            chat = await store.session("chat", create=True)
        for verb in (chat.history(), chat.append(rs.user("More.")), chat.usage(), chat.erase()):
            with pytest.raises(rs.InvalidCall, match="closed"):
                await verb

    asyncio.run(run())


PLANS: dict[str, tuple[Callable[[rs.Session, rs.Plan], Any], str, str]] = {
    "no summary": (
        lambda chat, plan: chat.compact(plan),
        "this plan summarizes 1-4, and needs a summary",
        "plan.to_summarize",
    ),
    "a number for one": (
        lambda chat, plan: chat.compact(plan, summary=5),  # type: ignore[arg-type]
        "a summary is a text or a message, not int",
        "summary=",
    ),
    "another branch": (
        lambda chat, plan: chat.branch(2).compact(plan, summary="They met."),
        "this plan is of branch 1, not of 2",
        "session.branch(1)",
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_is_applied_where_it_was_made_with_what_it_needs(store: rs.Store, case: str) -> None:
    """The error says what it needs, and how to go on."""
    chat = store.session("chat")
    chat.append([rs.user("Go on. " * 100), rs.assistant("I do. " * 100), rs.user("And now?")])
    chat.fork(at=2)
    plan = chat.compression(limit=500, summary_tokens=10)
    verb, said, hint = PLANS[case]
    error = refused(store, lambda _, here: verb(here, plan))

    assert str(error) == said
    assert hint in (error.hint or "")


REPLY = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("again", ["when it has ended", "when it was left"])
def test_a_recording_is_iterated_once(store: rs.Store, again: str) -> None:
    """A second loop would show a reply of which nothing is stored."""
    reply = store.session("chat").record([REPLY], model="m")
    with reply:
        if again == "when it has ended":
            list(reply)

    with pytest.raises(rs.InvalidCall, match="iterated once"):
        list(reply)


@pytest.mark.parametrize("again", ["when it has ended", "when it was left"])
def test_an_awaited_recording_is_iterated_once(url: str, again: str) -> None:
    """The same where the loop is an asynchronous one."""

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            chat = await opened.session("chat", create=True)
            reply = chat.record([REPLY], model="m")
            async with reply:
                if again == "when it has ended":
                    assert [chunk async for chunk in reply]
            with pytest.raises(rs.InvalidCall, match="iterated once"):
                assert not [chunk async for chunk in reply]

    asyncio.run(work())
