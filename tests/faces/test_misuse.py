"""What an application gets wrong: a named error, the same on both engines, nothing changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.blocks import MOST_TOKENS
from tests.properties import each

from .misusing import Verb, refused


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        opened.session("chat", create=True).append([rs.user("Hello."), rs.assistant("Hi.")])
        yield opened


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


SLIPS = {
    # Numbers
    "chat.usage(limit=0)": ("limit: 1 or more, not 0", "in tokens, as limit=8_192"),
    "chat.usage(limit='50')": ("limit: a whole number, not str", "in tokens, as limit=8_192"),
    "chat.budget(limit=0)": ("limit: 1 or more, not 0", "in tokens, as limit=8_192"),
    "chat.budget(limit=10**400)": (
        f"limit: {MOST_TOKENS} or less, not 1{36 * '0'}...",
        "in tokens, as limit=8_192",
    ),
    "chat.budget(limit=50, warn_at=None)": (
        "warn_at: a share, not None",
        "more than 0 and at most 1, as in warn_at=0.85",
    ),
    "chat.compression(limit=-1)": ("limit: 1 or more, not -1", "in tokens, as limit=8_192"),
    "chat.compression(limit=None)": (
        "a plan needs the limit of the model's context",
        "give it once, as in session.context(limit=212_000)",
    ),
    "chat.compression(limit=100, reserve=-1)": (
        "reserve: 0 or more, not -1",
        "in tokens, as reserve=8_192",
    ),
    "chat.compression(limit=100, reserve=1.5)": (
        "reserve: a whole number, not float",
        "in tokens, as reserve=8_192",
    ),
    "chat.compression(limit=100, reserve=100)": (
        "a reserve of 100 uses up the limit of 100",
        "the model's whole context as limit",
    ),
    "chat.compression(limit=100, min_growth=-1)": (
        "min_growth: 0 or more, not -1",
        "in tokens, as min_growth=8_192",
    ),
    "chat.compression(limit=100, min_freed=-1)": (
        "min_freed: 0 or more, not -1",
        "in tokens, as min_freed=8_192",
    ),
    "chat.compression(limit=100, summary_tokens=-1)": (
        "summary_tokens: 0 or more, not -1",
        "in tokens, as summary_tokens=8_192",
    ),
    "chat.compression(limit=9, threshold='1')": (
        "threshold: a share, not str",
        "more than 0 and at most 1, as in threshold=0.85",
    ),
    "chat.compression(limit=100, target=True)": (
        "target: a share, not bool",
        "more than 0 and at most 1, as in target=0.85",
    ),
    "chat.compression(limit=100, target=0.9)": (
        "the target 0.9 is not below the threshold 0.85",
        "leave target out",
    ),
    "chat.history(limit=-1)": ("limit: 0 or more, not -1", "history(limit=50)"),
    "chat.history(before=-1)": ("before: 0 or more, not -1", "history(before=50)"),
    "chat.history(after=-3)": ("after: 0 or more, not -3", "history(after=50)"),
    "chat.history(tokens=-1)": ("tokens: 0 or more, not -1", "history(tokens=50)"),
    "store.sessions(limit=None)": ("limit: a whole number, not None", "sessions(limit=50)"),
    "store.sessions(limit=0)": ("limit: 1 or more, not 0", "sessions(limit=50)"),
    # The model of a request, and what goes with it
    "chat.build_request(provider=5)": (
        "provider: a string, not int",
        'e.g. provider="openai"',
    ),
    "chat.build_request(base_url=5)": ("base_url: a string, not int", "https://host/v1"),
    "chat.build_request(api='rest')": ("unknown api 'rest'", "openai.chat"),
    "chat.build_request(tools={'name': 'look_up'})": (
        "tools must be a list of mappings, not dict",
        "put a single tool into a list",
    ),
    "chat.build_request(extra=['stream'])": (
        "extra must be a mapping, not list",
        'extra={"stream": True}',
    ),
    "chat.build_request(extra={'messages': []})": (
        "extra cannot set messages: the request is built from the conversation",
        "change the history",
    ),
    "chat.build_request(extra={'stop': {'end'}})": (
        "extra['stop']: JSON has no set",
        "lists and dicts",
    ),
    # What is recorded
    "chat.record([], request={'messages': []})": (
        "request: the Request of build_request(), not dict",
        "name the provider and the model",
    ),
    "chat.record(None)": ("the stream must be iterable, not NoneType", "with ... as stream"),
    "chat.record('Hi.', model='m')": (
        "record() reads provider events, not text",
        "rs.normalize_response(text)",
    ),
    "chat.record(rs.assistant('Hi.'))": (
        "the stream must be iterable, not Message",
        "append(message)",
    ),
    "list(chat.record([rs.assistant('Hi.')]))": (
        "this stream gives Message objects, not events",
        "append(message)",
    ),
    "list(chat.record(chat.history()))": (
        "this stream gives Stored objects, not events",
        "append(message)",
    ),
    "list(chat.record([rs.TextChunk(text='Hi.')]))": (
        "this stream gives TextChunk objects, not events",
        "the provider's events",
    ),
    # Plans and replies
    "chat.compact({'action': 'strip'})": (
        "pass a plan of compression(), not dict",
        "session.compression(limit=...)",
    ),
    "chat.compact(chat.compression(limit=9_000))": (
        "there is no step to apply: the plan's action is none",
        "below_threshold",
    ),
    "chat.regenerate(1)": ("the message at 1 is not a model's reply", "edit(position, message)"),
    # Names
    "store.report(by='week')": ("by: one of session, owner, model, day", 'report(by="model")'),
    "store.for_owner(None)": ("owner: a string, not None", 'for_owner("user-7")'),
    "chat.append(rs.user('a'), idempotency_key='k' * 1001)": (
        "an idempotency key is longer than 1000 bytes",
        "a digest of it",
    ),
    "store.import_lines('{}\\n{}')": ("lines: an iterable of lines", "text.split('\\n')"),
}
"""By the call: what its error says, and a part of the hint."""


@each("call", SLIPS)
def test_an_invalid_argument_is_named_with_a_valid_one(store: rs.Store, call: str) -> None:
    """As it would stand in the call; and nothing is done."""
    stated, hint = SLIPS[call]
    error = refused(store, lambda store, chat: eval(call, {"store": store, "chat": chat, "rs": rs}))

    assert str(error) == stated
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


@pytest.mark.parametrize("by", ["week", ["model", "week"], [], None], ids=repr)
def test_what_is_no_group_makes_no_report(store: rs.Store, by: Any) -> None:
    """Each by its name, in a list or alone."""
    error = refused(store, lambda all_of, _: all_of.report(by=by))

    assert str(error) == "by: one of session, owner, model, day"


def test_what_is_no_string_is_no_setting(store: rs.Store) -> None:
    """A session's are unset one by one, a profile's together (ERR-001)."""
    several: Any = ["reasoning.effort"]
    no_lists: tuple[Any, ...] = (5, "reasoning.effort")
    before = list(store.export_lines())
    with pytest.raises(rs.SettingError, match="key is a string, not list"):
        store.session("chat").settings.unset(several)
    for one in no_lists:
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
