"""Imports into a store: written once, grown at the end, and a dry run that says the same."""

from __future__ import annotations

import asyncio
import json
import zipfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers import formats
from reasoning_store.results import ImportedHistory

from . import dirty, kept, llm_logs

MORE = {"role": "user", "content": "And 101?"}

openai = partial(formats.conversations, format="openai")
anthropic = partial(formats.conversations, format="anthropic")


def chat(*more: Any) -> list[str]:
    return dirty.lines([*dirty.CHAT, *more])


def said(store: Any, id: str) -> list[rs.Message]:
    return [item.message for item in store.session(id).history()]


def numbers(imported: ImportedHistory) -> list[tuple[str, int, int, bool]]:
    return [(one.id, one.new, one.known, one.refused is None) for one in imported.conversations]


def sources(folder: Path) -> dict[str, Any]:
    """Return each dirty history as it is given to its importer."""
    return {
        "openai": lambda: openai(chat()),
        "items": lambda: openai(dirty.lines([dirty.ITEMS])),
        "anthropic": lambda: formats.conversations(
            dirty.lines([dirty.MESSAGES]), format="anthropic"
        ),
        "old": lambda: formats.conversations(folder / "old.db", format="llm"),
        "new": lambda: formats.conversations(folder / "new.db", format="llm"),
    }


@pytest.mark.parametrize("name", ["openai", "items", "anthropic", "old", "new"])
def test_a_history_is_stored_whole_and_once(store: rs.Store, name: str, tmp_path: Path) -> None:
    """Every message comes back as it was read; the second import writes nothing."""
    llm_logs.responses(tmp_path / "old.db")
    llm_logs.thread(tmp_path / "new.db")
    read = sources(tmp_path)[name]
    (expected,) = read()

    dry = store.import_conversations(read(), dry_run=True)
    assert store.sessions().items == []
    first = store.import_conversations(read())
    again = store.import_conversations(read())

    assert said(store, expected.id) == [item.message for item in expected.items]
    assert numbers(first) == [(expected.id, len(expected.items), 0, True)]
    assert numbers(again) == [(expected.id, 0, len(expected.items), True)]
    assert numbers(dry) == numbers(first)
    assert dry.report == first.report == expected.report
    thoughts = sum(len(message.thinking) for message in said(store, expected.id))
    assert thoughts == first.report.reasoning_stored


def test_a_grown_file_adds_what_is_new(store: rs.Store) -> None:
    """Only the new end is written; a dry run says how much it is."""
    store.import_conversations(openai(chat()))
    dry = store.import_conversations(openai(chat(MORE, MORE)), dry_run=True)
    grown = store.import_conversations(openai(chat(MORE, MORE)))
    (one,) = grown.conversations

    assert (one.new, one.known) == (2, 8)
    assert numbers(dry) == numbers(grown)
    assert [message.text for message in said(store, one.id)[8:]] == ["And 101?"] * 2


def test_an_import_that_was_cut_off_goes_on(store: rs.Store) -> None:
    """A session that holds a beginning gets the rest, and nothing twice."""
    (whole,) = openai(chat())
    session = store.session(whole.id, create=True)
    for item in whole.items[:3]:
        session.append(item.message, idempotency_key=item.key)

    (one,) = store.import_conversations(openai(chat())).conversations

    assert (one.new, one.known) == (5, 3)
    assert len(said(store, one.id)) == 8


def test_a_log_that_repeats_a_conversation_adds_what_each_line_adds(store: rs.Store) -> None:
    """A request log has the whole conversation on every line; a dry run counts it alike."""
    log = dirty.lines(
        {"session_id": "s", "messages": dirty.CHAT[:length]} for length in (2, 3, 5, 5, 2)
    )
    expected = [("s", 2, 0, True), ("s", 1, 2, True), ("s", 2, 3, True), ("s", 0, 5, True)]
    expected.append(("s", 0, 2, True))

    dry = store.import_conversations(openai(log), dry_run=True)
    assert numbers(dry) == expected
    assert numbers(store.import_conversations(openai(log))) == expected
    assert len(said(store, "s")) == 5


def test_lines_of_two_conversations_are_separated(store: rs.Store) -> None:
    """Each line goes to the conversation it names, in its order."""
    log = dirty.lines(
        {"session_id": name, "role": "user", "content": text}
        for name, text in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4")]
    )
    dry = store.import_conversations(openai(log), dry_run=True)
    imported = store.import_conversations(openai(log))

    assert numbers(dry) == numbers(imported)
    assert [message.text for message in said(store, "a")] == ["1", "3"]
    assert [message.text for message in said(store, "b")] == ["2", "4"]
    assert store.import_conversations(openai(log)).new == 0


def test_a_conversation_that_has_gone_on_here_is_refused_and_others_are_not(
    store: rs.Store,
) -> None:
    """What is stated here is not mixed with what is stated there."""

    def log(length: int) -> list[str]:
        return dirty.lines({"id": id, "messages": dirty.CHAT[:length]} for id in ("a", "b"))

    store.import_conversations(openai(log(2)))
    store.session("a").append(rs.user("Something else"))
    dry = store.import_conversations(openai(log(3)), dry_run=True)
    imported = store.import_conversations(openai(log(3)))

    assert numbers(imported) == [("a", 0, 2, False), ("b", 1, 2, True)] == numbers(dry)
    assert [one.id for one in imported.refused] == ["a"]
    assert "the session has other messages after message 2" in (imported.refused[0].refused or "")
    assert len(said(store, "a")) == 3
    assert imported.report.messages == 3


def test_a_reply_that_is_being_recorded_is_not_overtaken(store: rs.Store) -> None:
    """What arrives here meanwhile comes first; the import says so and writes nothing."""
    (one,) = store.import_conversations(openai(chat())).conversations
    piece = {"choices": [{"index": 0, "delta": {"content": "x" * 70_000}}]}
    with store.session(one.id).record(iter([piece, piece]), api="openai.chat") as reply:
        chunks = iter(reply)
        next(chunks)
        (meanwhile,) = store.import_conversations(openai(chat(MORE))).conversations
        assert len(list(chunks)) > 0

    assert (meanwhile.new, meanwhile.known) == (0, 8)
    assert meanwhile.refused == "a reply is being recorded in the session"
    assert len(said(store, one.id)) == 9


def test_a_long_conversation_is_written_in_few_steps_and_grows(store: rs.Store) -> None:
    """More messages than one step holds, with their times; then one more."""
    at = [f"2026-01-02T03:{n // 60:02}:{n % 60:02}+00:00" for n in range(600)]
    history = [{"role": "user", "content": str(n), "timestamp": time} for n, time in enumerate(at)]
    (one,) = store.import_conversations(openai(dirty.lines(history))).conversations
    grown = store.import_conversations(openai(dirty.lines([*history, MORE])))
    stored = store.session(one.id).history()

    assert (one.new, grown.new, grown.known) == (600, 1, 600)
    assert [item.message.text for item in stored] == [*map(str, range(600)), "And 101?"]
    assert [item.created_at for item in stored[:600]] == [*map(datetime.fromisoformat, at)]
    assert store.verify().ok


def test_a_source_that_was_changed_is_refused(store: rs.Store) -> None:
    """A message that says something else now is not written after the others."""
    history = {"id": "a", "messages": dirty.CHAT[:3]}
    store.import_conversations(openai(dirty.lines([history])))
    history["messages"] = [dirty.CHAT[0], MORE, dirty.CHAT[2]]
    imported = store.import_conversations(openai(dirty.lines([history])))

    assert numbers(imported) == [("a", 0, 1, False)]
    assert len(said(store, "a")) == 3


def test_a_session_of_ones_own_is_not_written_into(store: rs.Store) -> None:
    """An id that is taken by something else is refused."""
    store.session("a", create=True).append(rs.user("Mine"))
    history = {"id": "a", "messages": dirty.CHAT[:3]}
    imported = store.import_conversations(openai(dirty.lines([history])))

    assert numbers(imported) == [("a", 0, 0, False)]
    assert [message.text for message in said(store, "a")] == ["Mine"]


def test_nothing_of_a_conversation_with_a_malformed_line_is_written(store: rs.Store) -> None:
    """The error has the line's number; what was read before is there, and is known later."""
    good = {"id": "a", "messages": dirty.CHAT[:3]}
    bad = {"id": "b", "messages": [*dirty.CHAT[:3], "no message"]}

    with pytest.raises(InvalidCall, match=r"^line 2: messages\[3\]"):
        store.import_conversations(openai(dirty.lines([good, bad])))
    with pytest.raises(InvalidCall, match=r"^line 11: not JSON"):
        store.import_conversations(openai([*chat(), '{"role": "user"']))

    assert [session.id for session in store.sessions().items] == ["a"]
    mended = {"id": "b", "messages": dirty.CHAT[:3]}
    later = store.import_conversations(openai(dirty.lines([good, mended])))
    assert numbers(later) == [("a", 0, 3, True), ("b", 3, 0, True)]


def test_what_was_erased_does_not_come_back(store: rs.Store) -> None:
    """A message, or its reasoning, that was erased after an import stays erased."""
    (one,) = store.import_conversations(openai(chat())).conversations
    session = store.session(one.id)
    session.erase(position=3)
    session.erase(position=5, only="reasoning")
    before = said(store, one.id)
    again = store.import_conversations(openai(chat(MORE)))

    assert (again.new, again.known) == (1, 8)
    assert said(store, one.id)[:8] == before


def test_times_and_titles_are_those_of_the_source(store: rs.Store) -> None:
    """A message keeps the time at which it was said."""
    at = "2026-01-02T03:04:05+00:00"
    history = {"id": "a", "title": "Primes", "messages": [{**MORE, "timestamp": at}]}
    store.import_conversations(openai(dirty.lines([history])))
    (session,) = store.sessions().items

    assert session.title == "Primes"
    assert session.history()[0].created_at == datetime.fromisoformat(at)


@pytest.mark.parametrize("thing", ["a", rs.user("a"), {"id": "a"}])
def test_what_is_no_conversation_is_refused(store: rs.Store, thing: Any) -> None:
    """By its type, with what gives one; what came before it is stored."""
    made = openai(chat())
    with pytest.raises(InvalidCall) as refused:
        store.import_conversations([*made, thing])

    said = f"a conversation of an importer, not {type(thing).__name__}"
    assert str(refused.value) == said
    assert "importers" in (refused.value.hint or "")
    assert len(store.sessions().items) == 1


def test_an_asynchronous_store_imports_too() -> None:
    """The verb is awaited."""

    async def main() -> int:
        async with rs.AsyncStore("sqlite://") as store:
            return (await store.import_conversations(openai(chat()))).new

    assert asyncio.run(main()) > 0


NOON, ONE = "2026-01-02T12:00:00+00:00", "2026-01-02T13:00:00+00:00"
TIMES_OF_SOME = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is 91 prime?", "timestamp": NOON},
    {"role": "assistant", "content": "No."},
    {"role": "user", "content": "And 97?", "timestamp": ONE},
    {"role": "assistant", "content": "Yes."},
]


def times(store: rs.Store, id: str) -> list[str]:
    return [item.created_at.isoformat() for item in store.session(id).history()]


def test_a_message_without_a_time_gets_that_of_the_one_before_it(store: rs.Store) -> None:
    """And what stands before the first that has one, with that: not when it was imported."""
    history = {"id": "a", "messages": TIMES_OF_SOME}
    store.import_conversations(openai(dirty.lines([history])))
    (session,) = store.sessions().items

    assert times(store, "a") == [NOON, NOON, NOON, ONE, ONE]
    assert session.updated_at.isoformat() == ONE


def test_a_message_without_a_time_goes_by_the_one_before_it_when_a_history_has_grown(
    store: rs.Store,
) -> None:
    """Also where the one before it was there already."""
    for length in (3, 5):
        history = {"id": "a", "messages": TIMES_OF_SOME[:length]}
        store.import_conversations(openai(dirty.lines([history])))

    assert times(store, "a") == [NOON, NOON, NOON, ONE, ONE]


def test_a_message_without_a_time_gets_that_of_the_one_before_it_among_other_lines(
    store: rs.Store,
) -> None:
    """Two conversations whose messages take turns in a file."""
    log = [{**message, "conversation_id": id} for message in TIMES_OF_SOME[1:] for id in ("a", "b")]
    store.import_conversations(openai(dirty.lines(log)))

    assert times(store, "a") == times(store, "b") == [NOON, NOON, ONE, ONE]


def test_messages_without_a_time_are_as_old_as_their_conversation(store: rs.Store) -> None:
    """Where that is all that is known; it is then listed where it belongs."""
    history = {"id": "a", "created_at": NOON, "messages": dirty.CHAT[:3]}
    store.import_conversations(openai(dirty.lines([history])))

    assert times(store, "a") == [NOON] * 3


def test_a_list_of_sessions_is_in_the_order_of_their_messages(store: rs.Store) -> None:
    """The latest first, by the times of the source, and not by those of the import."""
    last = ["2025-03-01T00:00:00+00:00", "2025-01-01T00:00:00+00:00", "2025-02-01T00:00:00+00:00"]
    histories = [
        {
            "id": name,
            "messages": [
                {"role": "user", "content": "a", "timestamp": "2024-12-01T00:00:00+00:00"},
                {"role": "assistant", "content": "b", "timestamp": at},
            ],
        }
        for name, at in zip("abc", last, strict=True)
    ]
    store.import_conversations(openai(dirty.lines(histories)))

    assert [(one.id, one.updated_at) for one in store.sessions().items] == [
        (name, datetime.fromisoformat(at))
        for name, at in zip("acb", sorted(last)[::-1], strict=True)
    ]
    assert store.verify().ok


def test_an_import_belongs_to_its_owner_and_is_masked() -> None:
    """It goes the way of every write."""
    masker = rs.SecretMasker(values=["correct-horse-battery"])
    secret = {"role": "user", "content": "It is correct-horse-battery."}
    history = dirty.lines([{"id": "a", "messages": [secret]}])
    with rs.Store("sqlite://", masker=masker) as store:
        ada = store.for_owner("ada")
        for new in (1, 0):
            assert ada.import_conversations(openai(history)).new == new

        assert store.sessions().items == []
        assert "correct-horse" not in ada.session("a").history()[0].message.text


def test_a_title_is_masked_and_defaults_to_the_first_user_message() -> None:
    """The beginning of it, as a line, so that a list of sessions can be read."""
    long = "My key is sk-secret-1234567890.\n" + "And so on. " * 20
    histories = [
        {
            "id": "named",
            "title": "sk-secret-1234567890",
            "messages": [{"role": "user", "content": "Hi."}],
        },
        {"id": "unnamed", "messages": [{"role": "user", "content": long}]},
    ]
    with rs.Store("sqlite://", masker=rs.SecretMasker(values=["sk-secret-1234567890"])) as store:
        found = openai(dirty.lines(histories))
        done = store.import_conversations(found)
        titles = {one.id: store.session(one.id).title or "" for one in done.conversations}

    assert [one.title for one in done.conversations] == list(titles.values())
    assert not any("sk-secret" in title for title in titles.values())
    assert titles["unnamed"].startswith("My key is ")
    assert titles["unnamed"].endswith("...")
    assert len(titles["unnamed"]) == 60


TIMES = {
    "createdAt": "2025-03-01T12:00:00Z",
    "createTime": "2025-03-01T12:00:00+00:00",
    "sentAt": 1740830400000,
    "ts": "1740830400.0",
}


@pytest.mark.parametrize("name", TIMES)
def test_a_time_is_read_by_any_of_its_known_names(store: rs.Store, name: str) -> None:
    """As a text or as a number, of a message as of its conversation."""
    message = {"role": "user", "content": "Hi.", name: TIMES[name]}
    history = dirty.lines([{"id": "a", "messages": [message]}])
    store.import_conversations(openai(history))

    said = store.session("a").get(1).created_at
    assert said == datetime(2025, 3, 1, 12, tzinfo=UTC)


def test_a_time_that_cannot_be_read_is_reported_with_its_place(store: rs.Store) -> None:
    """The message comes in all the same."""
    messages = [{"role": "user", "content": "Hi.", "created_at": "01.01.2025 12:00"}]
    done = store.import_conversations(openai(dirty.lines([messages])))

    assert done.new == 1
    assert [one.place for one in done.report.unread_times] == ["line 1"]


def test_a_message_in_parts_is_reported_as_such(store: rs.Store) -> None:
    """It does say something, in a form that is not read."""
    message = {"role": "user", "parts": [{"type": "text", "text": "Hi."}]}
    done = store.import_conversations(openai(dirty.lines([message])))

    (left_out,) = done.conversations[0].report.skipped
    assert '"parts"' in left_out.reason


def test_a_file_is_imported_by_its_path(tmp_path: Path) -> None:
    """The format is found, and files of one name in two folders are two conversations."""
    paths = [tmp_path / name / "chat.jsonl" for name in ("one", "two")]
    for path, history in zip(paths, ([MORE], dirty.CHAT), strict=True):
        path.parent.mkdir()
        path.write_text("\n".join(dirty.lines(history)))
    with rs.Store("sqlite://") as store:
        for path, length in zip(paths, (1, 8), strict=True):
            assert store.import_conversations(formats.conversations(path)).new == length
        assert len(store.sessions().items) == 2


def test_a_title_that_no_column_can_hold_does_not_keep_a_conversation_out(store: rs.Store) -> None:
    """A NUL in it, or in what a user said first, is the character for one that is unknown."""
    text = [{"role": "user", "content": "Hi.\0"}]
    titled = {"id": "c", "title": "A\0", "messages": [{"role": "user", "content": "Hi."}]}
    found = [
        one
        for history in (text, titled)
        for one in store.import_conversations(openai(dirty.lines([history]))).conversations
    ]

    assert [one.title for one in found] == ["Hi.\ufffd", "A\ufffd"]


IDS = {
    "ai-sdk": 3,
    "chatgpt": 4,
    "claude-ai": 4,
    "claude-code": 4,
    "librechat": 4,
    "open-webui": 4,
}
"""Programs that give each message an id, and at least how many of them are kept."""


@pytest.mark.parametrize("format", IDS)
def test_the_ids_of_messages_are_kept(store: rs.Store, format: str) -> None:
    """Those of the source; again, with them or without, nothing is written."""
    path = kept.of_format(format)

    def run(**options: bool) -> ImportedHistory:
        return store.import_conversations(formats.conversations(path), **options)

    dry, first = run(keep_ids=True, dry_run=True), run(keep_ids=True)
    again = (run(keep_ids=True), run())
    ids = [
        stored.id
        for page in store.sessions().items
        for stored in store.session(page.id).history()
        if f'"{stored.id}"' in path.read_text("utf-8")
    ]

    assert dry.new == first.new == again[0].known == again[1].known
    assert (again[0].new, again[1].new) == (0, 0)
    assert len(ids) >= IDS[format]
    assert [store.find_session(id) is not None for id in ids] == [True] * len(ids)
    assert store.verify().problems == ()


def test_an_id_is_given_once(store: rs.Store) -> None:
    """The first of its messages keeps it; one that no message can have is not kept."""
    ids = ["a", "b", "a", "", "x" * 9000, "n\0", "b", "c"]
    history = [{"id": id, "role": "user", "content": f"{place}"} for place, id in enumerate(ids)]

    def run(count: int) -> ImportedHistory:
        lines = [json.dumps({"id": "chat", "messages": history[:count]})]
        return store.import_conversations(openai(lines), keep_ids=True)

    grown = [run(4).new, run(8).new, run(8).new]
    stored = store.session("chat").history()

    assert grown == [4, 4, 0]
    assert [one.id if one.id in ids else None for one in stored] == [
        *("a", "b", None, None, None, None, None, "c")
    ]
    assert [one.message.text for one in stored] == [str(place) for place in range(8)]


def test_a_message_that_becomes_several_gives_its_id_to_the_last(store: rs.Store) -> None:
    """To the answer, after the calls that led to it."""
    parts = [
        {"type": "tool-look", "toolCallId": "c", "state": "output-available", "output": "4 C"},
        {"type": "text", "text": "Cold."},
    ]
    message = {"id": "m1", "role": "assistant", "parts": parts}
    lines = [json.dumps({"id": "chat", "messages": [message]})]
    store.import_conversations(formats.conversations(lines, format="ai-sdk"), keep_ids=True)

    stored = store.session("chat").history()
    assert len(stored) > 1
    assert [one.id == "m1" for one in stored] == [False] * (len(stored) - 1) + [True]


@pytest.mark.parametrize("name", ["export.zip", Path("export.zip")])
def test_a_zip_is_imported_by_its_name(
    store: rs.Store, tmp_path: Path, name: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each history in it in its own format; other files are not looked at."""
    monkeypatch.chdir(tmp_path)
    path = kept.of_format("claude-ai")
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(path, "data/conversations.json")
        packed.writestr("users.json", "[]")

    inside = [one.id for one in formats.conversations(name)]
    assert inside == [one.id for one in formats.conversations(path)]
    assert list(formats.conversations(name, format="openai")) == []
