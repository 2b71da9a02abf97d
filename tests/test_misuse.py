"""What an application gets wrong: a named error, the same on both engines, nothing changed."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs

Verb = Callable[[rs.Store, rs.Session], Any]


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        opened.session("chat", create=True).append([rs.user("Hello."), rs.assistant("Hi.")])
        yield opened


def refused(store: rs.Store, verb: Verb) -> rs.UsageError:
    """Return the error of a verb that must change nothing."""
    before = list(store.export_lines())
    with pytest.raises(rs.UsageError) as caught:
        verb(store, store.session("chat"))
    assert list(store.export_lines()) == before
    return caught.value


POSITIONS: dict[str, Callable[[rs.Session, Any], Any]] = {
    "get": lambda chat, at: chat.get(at),
    "fork": lambda chat, at: chat.fork(at=at),
    "edit": lambda chat, at: chat.edit(at, rs.user("Other.")),
    "regenerate": lambda chat, at: chat.regenerate(at),
    "erase": lambda chat, at: chat.erase(at),
    "usage": lambda chat, at: chat.usage(at=at),
    "branch": lambda chat, at: chat.branch(at),
    "activate": lambda chat, at: chat.activate(at),
    "undo": lambda chat, at: chat.undo(at),
    "after": lambda chat, at: chat.append(rs.user("More."), after=at),
    "limit": lambda chat, at: chat.history(limit=at),
    "tokens": lambda chat, at: chat.history(tokens=at),
    "before": lambda chat, at: chat.history(before=at),
    "behind": lambda chat, at: chat.history(after=at),
}


@pytest.mark.parametrize("at", [True, "1", 1.0, 1.5, float("nan"), b"1"], ids=repr)
@pytest.mark.parametrize("verb", POSITIONS)
def test_what_is_no_whole_number_is_no_position(store: rs.Store, verb: str, at: Any) -> None:
    """True is not 1, and 1.0 is not 1: neither erases the first message."""
    error = refused(store, lambda _, chat: POSITIONS[verb](chat, at))

    assert "a whole number" in str(error)


@pytest.mark.parametrize("limit", [0, -1, True, "3", 1.5, None], ids=repr)
def test_a_page_has_a_whole_number_of_sessions(store: rs.Store, limit: Any) -> None:
    """At least one of them."""
    assert "limit" in str(refused(store, lambda all_of, _: all_of.sessions(limit=limit)))


NO_LIMITS: dict[str, Verb] = {
    "a usage's limit": lambda _, chat: chat.usage(limit=0),
    "a negative one": lambda _, chat: chat.usage(limit=-1),
    "a plan's limit": lambda _, chat: chat.compression(limit=0),
    "a limit beyond all counts": lambda _, chat: chat.compression(limit=10**400),
    "a reserve": lambda _, chat: chat.compression(limit=100, reserve=-1),
    "growth": lambda _, chat: chat.compression(limit=100, min_growth=-1),
    "worth": lambda _, chat: chat.compression(limit=100, min_freed=-1),
    "a summary": lambda _, chat: chat.compression(limit=100, summary_tokens=-1),
    "a budget": lambda _, chat: chat.budget(limit=0),
    "a budget beyond all counts": lambda _, chat: chat.budget(limit=10**400),
    "a window": lambda _, chat: chat.history(limit=-1),
    "a window of tokens": lambda _, chat: chat.history(tokens=-1),
}


@pytest.mark.parametrize("case", NO_LIMITS)
def test_what_nothing_can_count_is_no_limit(store: rs.Store, case: str) -> None:
    """A limit of no tokens, or of fewer than none, is a slip of whoever gives it."""
    refused(store, NO_LIMITS[case])


@pytest.mark.parametrize("create", [2, 1, "yes", None], ids=repr)
def test_create_is_true_or_false(store: rs.Store, create: Any) -> None:
    """A session that is there is not given for it, and one that is not is not made."""
    refused(store, lambda every, _: every.session("chat", create=create))
    refused(store, lambda every, _: every.session("new", create=create))


BAD: dict[str, Verb] = {
    "limit": lambda _, chat: chat.usage(limit=0),
    "reserve": lambda _, chat: chat.compression(limit=100, reserve="some"),  # type: ignore[arg-type]
    "threshold": lambda _, chat: chat.compression(limit=1, threshold="x"),  # type: ignore[arg-type]
    "sessions": lambda every, _: every.sessions(limit=0),
    "history": lambda _, chat: chat.history(limit=-1),
    "provider": lambda _, chat: chat.build_request(provider=5),  # type: ignore[arg-type]
    "report": lambda every, _: every.report(by="week"),  # type: ignore[arg-type]
    "owner": lambda every, _: every.for_owner(None),  # type: ignore[arg-type]
    "extra": lambda _, chat: chat.build_request(extra=["stream"]),  # type: ignore[arg-type]
    "a key": lambda _, chat: chat.append(rs.user("a"), idempotency_key="k" * 1001),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_value_comes_with_what_a_good_one_is(store: rs.Store, case: str) -> None:
    """As it would stand in the call."""
    assert refused(store, BAD[case]).hint


class Shortsighted:
    """A masker that does not say how far a match may reach."""

    lookback = -1

    def mask(self, text: str) -> str:
        return text


@pytest.mark.parametrize("masker", [str.upper, "secret", rs.SecretMasker, Shortsighted()])
def test_what_cannot_mask_is_refused_before_anything_is_there(tmp_path: Path, masker: Any) -> None:
    """A function is none, nor is the class: no file is made, and no message waits for it."""
    with pytest.raises(rs.UsageError, match="a masker has") as refused:
        rs.Store(f"sqlite:///{tmp_path}/chat.db", masker=masker)

    assert "SecretMasker" in (refused.value.hint or "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", [rs.StreamNormalizer, partial(rs.normalize_response, {})])
def test_whom_something_is_from_is_named_by_strings(verb: Any) -> None:
    """Also where no request is built."""
    with pytest.raises(rs.UsageError, match="provider is a string, not int"):
        verb(provider=5)


def test_a_conflict_shows_what_stands_in_the_place(store: rs.Store) -> None:
    """Who submits twice sees that the first one is his own."""
    chat = store.session("chat")
    first = chat.append(rs.user("More."), after=2)

    with pytest.raises(rs.Conflict) as caught:
        chat.append(rs.user("More."), after=2)

    assert caught.value.stored == chat.get(first.position)


@pytest.mark.parametrize("archived", [2, 1, "no", [False], None], ids=repr)
def test_archived_is_true_or_false(store: rs.Store, archived: Any) -> None:
    """A number of its own would take the session out of both lists."""
    refused(store, lambda _, chat: chat.archive(archived=archived))
    refused(store, lambda all_of, _: all_of.sessions(archived=archived))

    assert [chat.id for chat in store.sessions().items] == ["chat"]


def test_a_page_may_ask_for_more_than_an_engine_counts(store: rs.Store) -> None:
    """It holds what there is."""
    assert len(store.sessions(limit=1 << 70).items) == 1


@pytest.mark.parametrize("name", [1, True, b"chat", 1.5, ("chat",)], ids=repr)
@pytest.mark.parametrize(
    "verb",
    [
        lambda store, _, name: store.session(name, create=True),
        lambda store, _, name: store.for_owner(name).session("chat", create=True),
        lambda store, _, name: store.for_owner(name).sessions(),
        lambda store, _, name: store.for_owner(name).erase(),
        lambda store, _, name: store.sessions(after=name),
        lambda store, _, name: list(store.export_lines(name)),
        lambda _, chat, name: chat.rename(name),
        lambda _, chat, name: chat.append(rs.user("More."), idempotency_key=name),
        lambda _, chat, name: list(chat.record([], provider="openai", idempotency_key=name)),
        lambda store, _, name: store.settings.profiles.set(name, {}),
        lambda _, chat, name: chat.settings.use(name),
    ],
    ids=[
        "id",
        "owner",
        "list",
        "erase",
        "after",
        "export",
        "title",
        "key",
        "attempt",
        "profile",
        "use",
    ],
)
def test_what_is_no_string_is_no_name(
    store: rs.Store, verb: Callable[[rs.Store, rs.Session, Any], Any], name: Any
) -> None:
    """An id that comes from elsewhere as a number is not taken for another's."""
    assert "a string" in str(refused(store, lambda owner, chat: verb(owner, chat, name)))


@pytest.mark.parametrize("name", [None, 1, b"ann"], ids=repr)
@pytest.mark.parametrize(
    "verb",
    [
        lambda owner: owner.sessions(),
        lambda owner: list(owner.export_lines()),
        lambda owner: owner.report(),
        lambda owner: owner.import_lines([]),
        lambda owner: owner.erase(),
    ],
    ids=["list", "export", "report", "import", "erase"],
)
def test_an_owner_without_a_name_is_not_everybody(
    store: rs.Store, verb: Callable[[rs.Owner], Any], name: Any
) -> None:
    """A user whose id is None by mistake sees nothing of the others."""
    assert "owner: a string" in str(refused(store, lambda every, _: verb(every.for_owner(name))))


loose: Any = rs
WRONG: dict[str, Callable[[], Any]] = {
    "role": lambda: loose.Message(role="boss", blocks=()),
    "status": lambda: loose.assistant("Hi.", status="done"),
    "metadata": lambda: loose.user("Hi.", metadata=["a"]),
    "finish_reason": lambda: loose.assistant("Hi.", finish_reason=5),
    "origin": lambda: loose.assistant("Hi.", origin="openai"),
    "origin.model": lambda: loose.assistant("Hi.", origin=loose.Origin(model=5)),
    "usage": lambda: loose.assistant("Hi.", usage={"input": 5}),
    "usage.output": lambda: loose.assistant("Hi.", usage=loose.Usage(output=True)),
    "blocks.0": lambda: loose.user(["Hi."]),
    "blocks.1": lambda: loose.Message(role="user", blocks=(loose.TextBlock(text="Hi."), "there")),
    "blocks.0.text": lambda: loose.user(loose.TextBlock(text=5)),
    "blocks.1.thought": lambda: loose.assistant("Hi.", loose.ThinkingBlock(thought=None)),
    "blocks.0.redacted": lambda: loose.assistant(loose.ThinkingBlock(redacted="yes")),
    "blocks.0.id": lambda: loose.assistant(loose.ToolCallBlock(id=5, name="look")),
    "blocks.0.call_id": lambda: loose.tool(loose.ToolResponseBlock(call_id=None)),
    "blocks.0.kind": lambda: loose.user(loose.MediaBlock(kind="smell", mime_type="a/b")),
    "blocks.0.data": lambda: loose.user(
        loose.MediaBlock(kind="image", mime_type="a/b", data="AA==")
    ),
    "blocks.0.provider_metadata": lambda: loose.user(
        loose.TextBlock(text="", provider_metadata="x")
    ),
}


@pytest.mark.parametrize("place", WRONG)
def test_what_could_not_be_read_again_is_not_stored(store: rs.Store, place: str) -> None:
    """A field of another type is refused by its place, and the session stays whole."""
    wrong = WRONG[place]()
    for verb, at in (
        (lambda _, chat: chat.append(wrong), ""),
        (lambda _, chat: chat.append([rs.user("First."), wrong]), "messages.1."),
        (lambda _, chat: chat.edit(1, wrong), ""),
    ):
        assert str(refused(store, verb)).startswith(f"not a message: {at}{place}: ")


def test_what_is_no_message_among_several_is_named_by_its_place(store: rs.Store) -> None:
    """A batch may be long."""
    several: Any = [rs.user("First."), "second"]
    error = refused(store, lambda _, chat: chat.append(several))

    assert str(error) == "messages.1: a message, not str"


ODD: tuple[Any, ...] = (
    {1: "a", "1": "b"},
    {"a": [{None: 1}]},
    OrderedDict(a=({True: 1},)),
)
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


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("place", HOLDING)
def test_a_key_that_would_come_back_as_another_is_not_stored(
    store: rs.Store, place: str, odd: Any
) -> None:
    """JSON has strings only, and two keys may become one."""
    error = refused(store, lambda _, chat: chat.append(HOLDING[place](odd)))

    assert str(error).startswith(f"not a message: {place}: a key is a string, not ")


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


def test_what_is_no_request_records_nothing(store: rs.Store) -> None:
    """The body of one is not it."""
    body: Any = {"messages": []}
    error = refused(store, lambda _, chat: chat.record([], request=body))

    assert "build_request()" in str(error)


@pytest.mark.parametrize("by", ["week", ["model", "day"], None], ids=repr)
def test_what_is_no_group_makes_no_report(store: rs.Store, by: Any) -> None:
    """One at a time, by its name."""
    error = refused(store, lambda all_of, _: all_of.report(by=by))

    assert "session, owner, model, day" in str(error)


def test_what_is_no_string_is_no_setting(store: rs.Store) -> None:
    """Several are unset one by one (ERR-001)."""
    several: Any = ["reasoning.effort"]
    before = list(store.export_lines())
    with pytest.raises(rs.SettingError, match="a string, not list"):
        store.session("chat").settings.unset(several)

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


@pytest.mark.parametrize(
    ("at", "named"), [(99, "99"), (10**5000, r"about 2\*\*16610")], ids=["near", "far"]
)
@pytest.mark.parametrize("verb", ["get", "fork", "edit", "regenerate", "erase", "usage", "undo"])
def test_what_is_not_there_is_named_by_its_number(
    store: rs.Store, verb: str, at: int, named: str
) -> None:
    """Whoever asks for many finds the one in a log."""
    with pytest.raises(rs.NotFound, match=rf"\b{named}\b"):
        POSITIONS[verb](store.session("chat"), at)


@pytest.mark.parametrize(
    "metadata", [["a"], "text", {"a": {1}}, {"a": b"x"}, {1: "a"}, {"a": [{1: 2}]}], ids=repr
)
def test_metadata_that_json_cannot_hold_is_refused(store: rs.Store, metadata: Any) -> None:
    """On a session that is there, and on one that is made with it."""
    refused(store, lambda _, chat: chat.set_metadata(metadata))
    refused(store, lambda owner, _: owner.session("new", create=True, metadata=metadata))


@pytest.mark.parametrize(
    "message",
    ["text", None, 1, {"role": "user", "content": "text"}, [None], ["text"], [[rs.user("text")]]],
    ids=repr,
)
def test_what_is_no_message_is_not_stored(store: rs.Store, message: Any) -> None:
    """A text or a dict is not taken apart into messages; the hint says what makes one."""
    error = refused(store, lambda _, chat: chat.append(message))

    assert error.hint is not None
    assert "rs.user" in error.hint


@pytest.mark.parametrize("answer", ["97", {"call_id": "c"}, None])
def test_a_tools_answer_without_its_call_is_not_even_made(answer: Any) -> None:
    """A bare text belongs to no call: it would go to the model as if the user had said it."""
    with pytest.raises(rs.UsageError) as caught:
        rs.tool(answer)

    assert f"blocks.0: a block, not {'None' if answer is None else type(answer).__name__}" in str(
        caught.value
    )
    assert "rs.tool(block)" in str(caught.value.hint)


def test_what_is_no_block_is_not_stored(store: rs.Store) -> None:
    """However the message was made."""
    torn = replace(rs.user("97"), blocks=("97",))  # type: ignore[arg-type]

    assert "blocks.0: a block, not str" in str(refused(store, lambda _, chat: chat.append(torn)))


@pytest.mark.parametrize("only", ["thinking", "reasoning ", True, 1, ""], ids=repr)
@pytest.mark.parametrize("what", ["message", "session", "owner"])
def test_what_might_have_spared_something_erases_nothing(
    store: rs.Store, what: str, only: Any
) -> None:
    """A misspelt ``only`` is no order at all."""
    verbs: dict[str, Verb] = {
        "message": lambda _, chat: chat.erase(1, only=only),
        "session": lambda _, chat: chat.erase(only=only),
        "owner": lambda owner, _: owner.erase(only=only),
    }

    assert "reasoning" in str(refused(store, verbs[what]))


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-01",
        0,
        date(2026, 1, 1),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14))),
    ],
    ids=repr,
)
def test_what_is_no_time_in_utc_is_refused(store: rs.Store, time: Any) -> None:
    """As the time of a message and as the bound of a report."""
    refused(store, lambda _, chat: chat.append(rs.user("More."), created_at=time))
    refused(store, lambda owner, _: owner.report(since=time))


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


@pytest.mark.parametrize("time", [-(10**18), 10**18, 1.5, True, "2026"], ids=repr)
def test_a_line_with_a_time_that_nobody_could_read_again_is_refused(
    store: rs.Store, time: Any
) -> None:
    """It is named by its number; a history that was imported can be shown."""
    lines = [json.loads(line) for line in store.export_lines()]
    given = [
        json.dumps({**line, "createdAt": time} if "role" in str(line) else line) for line in lines
    ]

    with pytest.raises(rs.UsageError, match=r"line \d: createdAt"):
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


@pytest.mark.parametrize("lines", [None, 1, "{}\n{}", b"{}", [1], [None]], ids=repr)
def test_what_are_no_lines_are_not_imported(store: rs.Store, lines: Any) -> None:
    """A whole text is not taken letter by letter."""
    assert "line" in str(refused(store, lambda owner, _: owner.import_lines(lines)))


@pytest.mark.parametrize("path", [None, 1, b"copy.db"], ids=repr)
def test_what_is_no_path_gets_no_backup(store: rs.Store, path: Any) -> None:
    """It is said before any work is done."""
    assert "path" in str(refused(store, lambda owner, _: owner.backup(path)))


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
        with pytest.raises(rs.UsageError, match="not open") as caught:
            await ASKED[verb](store)
        assert caught.value.hint == "async with rs.AsyncStore(url) as store"
        async with store:
            pass
        with pytest.raises(rs.UsageError, match="not open"):
            await ASKED[verb](store)

    asyncio.run(run())


def test_an_asynchronous_handle_outlives_its_store_as_an_error(url: str) -> None:
    """It says that the store is closed, whatever it is asked for."""

    async def run() -> None:
        async with rs.AsyncStore(url) as store:
            chat = await store.session("chat", create=True)
        for verb in (chat.history(), chat.append(rs.user("More.")), chat.usage(), chat.erase()):
            with pytest.raises(rs.UsageError, match="closed"):
                await verb

    asyncio.run(run())


WRONG_AMOUNTS: dict[str, Verb] = {
    "limit": lambda _, chat: chat.compression(limit="many"),  # type: ignore[arg-type]
    "a usage's limit": lambda _, chat: chat.usage(limit="50"),  # type: ignore[arg-type]
    "no limit": lambda _, chat: chat.compression(limit=None),  # type: ignore[arg-type]
    "reserve": lambda _, chat: chat.compression(limit=100, reserve=1.5),  # type: ignore[arg-type]
    "threshold": lambda _, chat: chat.compression(limit=9, threshold="1"),  # type: ignore[arg-type]
    "target": lambda _, chat: chat.compression(limit=100, target=True),
    "a budget": lambda _, chat: chat.budget(limit="50"),  # type: ignore[arg-type]
    "a share": lambda _, chat: chat.budget(limit=50, warn_at=None),  # type: ignore[arg-type]
    "a plan": lambda _, chat: chat.compact({"action": "strip"}),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG_AMOUNTS)
def test_what_is_no_amount_decides_nothing(store: rs.Store, case: str) -> None:
    """The error names what was given, and nothing is done."""
    assert " not " in str(refused(store, WRONG_AMOUNTS[case]))


REPLY = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("again", ["when it has ended", "when it was left"])
def test_a_recording_is_iterated_once(store: rs.Store, again: str) -> None:
    """A second loop would show a reply of which nothing is stored."""
    reply = store.session("chat").record([REPLY], model="m")
    with reply:
        if again == "when it has ended":
            list(reply)

    with pytest.raises(rs.UsageError, match="iterated once"):
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
            with pytest.raises(rs.UsageError, match="iterated once"):
                assert not [chunk async for chunk in reply]

    asyncio.run(work())
