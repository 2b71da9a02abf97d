"""Verify: what is damaged is found and placed, and nothing else is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.conversation.blocks import (
    Counts,
    Origin,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, Problem
from reasoning_store.store import Store
from tests.properties import examples

from .compacting import compact
from .erasures import Step, steps
from .histories import (
    add_part,
    answered,
    answering,
    calling,
    new_session,
    part,
    said,
    stored_messages,
)
from .opening import never_rewritten

LIBRARY: Any = sqlite_connections.library()
ENCODINGS = ("cl100k_base", "o200k_base")
SECRET = "the text of a conversation"


def history(ledger: Ledger) -> Any:
    """A session with a bit of everything."""
    session = new_session(ledger, title=SECRET)
    key = session.key
    reply = NewMessage(
        assistant(
            *answered(SECRET, SECRET).message.blocks,
            origin=Origin(provider="p", response_id=SECRET),
            usage=Usage(input=5, output=7, reasoning=3),
            metadata={10: 1, 9: {SECRET: None}},  # type: ignore[dict-item]
        ),
        Counts(visible=3, thinking=(4,)),
        {"provider": "p"},
    )
    ledger.messages.append(
        key, 1, [said(SECRET), reply, said(SECRET), calling("c"), answering("c")]
    )
    ledger.messages.append(key, 1, [said(SECRET), reply, said(SECRET)], idempotency_key=SECRET)
    two = ledger.branches.fork(key, 1, 6)
    ledger.messages.append(key, two, [said(SECRET), answered(), answered()])
    ledger.branches.fork(key, two, 8)
    compact(ledger, key, 1, 1, 2, said(SECRET))
    compact(ledger, key, 1, 1, 5, said(SECRET))
    draft = ledger.drafts.begin(key, two)
    add_part(ledger, draft, 1, part(SECRET))
    return session


@examples(40)
@given(steps=steps)
def test_what_was_never_damaged_has_no_problem(ledger: Ledger, steps: list[Step]) -> None:
    """Whatever was appended, forked and erased, in any order."""
    never_rewritten(ledger)
    session = new_session(ledger)
    branches = [1]
    for kind, which, what in steps:
        branch = branches[which % len(branches)]
        head = ledger.branches.get(session.key, branch).head
        if kind == "append":
            ledger.messages.append(session.key, branch, what)
        elif kind == "fork":
            branches.append(ledger.branches.fork(session.key, branch, min(what, head) + 1))
        elif kind == "all reasoning":
            ledger.erasure.erase_session(session.key, only="reasoning")
        elif head:
            only: Any = None if kind == "erase" else "reasoning"
            ledger.erasure.erase_message(session.key, branch, what % head + 1, only=only)

    messages, problems = ledger.audit._verify_session(session.key, None)

    own = [ledger.branches.get(session.key, branch) for branch in branches]
    assert problems == []
    assert messages == sum(one.next_position - one.first for one in own)


def test_a_store_is_gone_through_session_by_session(ledger: Ledger) -> None:
    """All of them, with their forks, drafts, compactions and erased messages."""
    sessions = [history(ledger) for _ in range(3)]
    ledger.erasure.erase_message(sessions[0].key, 1, 4)
    ledger.erasure.erase_session(
        sessions[1].key, only="reasoning", draft_message=lambda draft: said("x")
    )

    verified = ledger.audit.verify()

    assert verified.ok, verified
    assert (verified.sessions, verified.messages) == (3, 34)


def damage(url: str, statement: str) -> None:
    """Change rows behind the store's back, with no one to watch over keys."""
    if url.startswith("sqlite"):
        raw = LIBRARY.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        raw.execute("PRAGMA foreign_keys=OFF")
        raw.execute(statement)
        raw.close()
        return
    with Ledger.open(url) as ledger:

        def work(connection: Any) -> None:
            # On Citus the nodes get it too; another server reads no such setting.
            driver(connection).execute("SET LOCAL citus.propagate_set_commands = local")
            driver(connection).execute("SET LOCAL session_replication_role = replica")
            driver(connection).execute(statement)

        ledger.database.write(work)


DAMAGES: list[tuple[str, str, int | None, int | None]] = [
    ("UPDATE bodies SET text = 'another' WHERE branch = 1 AND position = 6", "digest", 1, 6),
    ("UPDATE thinking_blocks SET thought = 'x' WHERE branch = 1 AND position = 2", "digest", 1, 2),
    ("UPDATE messages SET role = 'tool' WHERE branch = 1 AND position = 6", "digest", 1, 6),
    ("UPDATE messages SET status = 'erased' WHERE branch = 2 AND position = 7", "digest", 2, 7),
    ("UPDATE messages SET thinking = 9 WHERE branch = 2 AND position = 7", "columns", 2, 7),
    ("UPDATE messages SET input = 9 WHERE branch = 1 AND position = 2", "columns", 1, 2),
    ("UPDATE messages SET flags = 1 WHERE branch = 1 AND position = 2", "columns", 1, 2),
    ("UPDATE thinking_blocks SET tokens = 9 WHERE branch = 1 AND position = 2", "columns", 1, 2),
    ("UPDATE branches SET segments = '[[1,1,3]]' WHERE branch = 2", "lineage", 2, None),
    ("UPDATE branches SET segments = '[[1,1' WHERE branch = 2", "unreadable", None, None),
    ("UPDATE branches SET next_position = 8 WHERE branch = 1", "gap", 1, None),
    ("UPDATE branches SET next_position = 10 WHERE branch = 1", "gap", 1, None),
    ("DELETE FROM messages WHERE branch = 1 AND position = 3", "gap", 1, None),
    ("DELETE FROM messages WHERE branch = 1 AND position = 3", "unreadable", 1, 3),
    ("DELETE FROM messages WHERE branch = 1 AND position = 3", "stray", 1, 3),
    ("DELETE FROM bodies WHERE branch = 1 AND position = 3", "unreadable", 1, 3),
    ("DELETE FROM thinking_blocks WHERE branch = 2 AND position = 7", "unreadable", 2, 7),
    ("UPDATE bodies SET data = '{' WHERE branch = 1 AND position = 4", "unreadable", 1, 4),
    ("UPDATE bodies SET sent = '{' WHERE branch = 1 AND position = 2", "unreadable", 1, 2),
    ("UPDATE messages SET batch = 9 WHERE batch IS NOT NULL", "batch", 1, 6),
    ('UPDATE origins SET origin = \'{"provider":"q"}\'', "origin", None, None),
    ("DELETE FROM origins", "stray", 1, 2),
    ("DELETE FROM branches WHERE branch = 3", "session", None, None),
    ("UPDATE sessions SET current_branch = 7", "session", None, None),
    ("UPDATE branches SET instead_of = 7 WHERE branch = 3", "session", None, None),
    ("UPDATE sessions SET next_branch = 3", "session", None, None),
    ("UPDATE sessions SET owner = 'other'", "session", None, None),
    ("UPDATE sessions SET metadata = '{'", "unreadable", None, None),
    ("UPDATE sessions SET sum_reasoning = 1", "budget", None, None),
    ("UPDATE sessions SET sum_reasoning = 7", "budget", None, None),
    ("UPDATE sessions SET sum_counted = 7", "budget", None, None),
    ("UPDATE sessions SET sum_unreported = 2", "budget", None, None),
    ("UPDATE sessions SET archived = 3", "session", None, None),
    ("UPDATE sessions SET archived = -1", "session", None, None),
    ("UPDATE sessions SET encoding = 'p50k_base'", "session", None, None),
    ("UPDATE sessions SET settings = '[]'", "unreadable", None, None),
    ("UPDATE sessions SET crossed = '{'", "unreadable", None, None),
    ("DELETE FROM sessions", "stray", None, None),
    ("DELETE FROM draft_parts", "unreadable", 2, None),
    ("DELETE FROM drafts", "unreadable", 2, None),
    ("UPDATE branches SET draft = NULL WHERE branch = 2", "stray", 2, None),
    ("UPDATE branches SET next_compaction = 2 WHERE branch = 1", "compaction", 1, None),
    ("UPDATE compactions SET last = 40 WHERE number = 2", "compaction", 1, None),
    ("UPDATE compactions SET superseded_by = 7 WHERE number = 1", "compaction", 1, None),
    ("UPDATE compactions SET superseded_by = NULL WHERE number = 1", "compaction", 1, None),
    ("UPDATE compactions SET summary = '{' WHERE number = 1", "unreadable", 1, None),
]


@pytest.mark.parametrize(
    ("statement", "code", "branch", "position"), DAMAGES, ids=lambda value: str(value)[:70]
)
def test_damage_is_found_and_placed(
    url: str, statement: str, code: str, branch: int | None, position: int | None
) -> None:
    """By its kind, its session, branch and position; never with the text of a conversation."""
    with Ledger.open(url) as ledger:
        session = history(ledger)
        history(ledger)
    damage(
        url,
        f"{statement}{' AND' if 'WHERE' in statement else ' WHERE'} session_key = {session.key}",
    )

    with Ledger.open(url) as ledger:
        found = ledger.audit.verify(encodings=ENCODINGS).problems

    assert (code, branch, position) in {(one.code, one.branch, one.position) for one in found}
    assert {session.key} == {one.session_key for one in found}
    assert SECRET not in str([replace(one, session=None) for one in found])


def test_a_changed_count_is_found_by_counting_again(url: str) -> None:
    """It is one problem, at its place; an estimate, which may differ each time, is none."""
    replies = [rs.assistant(rs.ThinkingBlock(thought="Hm. " * 9), "No."), rs.user("Why?")]
    with Store(url) as store:
        session = store.session("chat", create=True)
        session.append([rs.user("q"), *replies, rs.user("x")])
        session.append(rs.user(rs.MediaBlock(kind="image", mime_type="image/png", url="u")))
        session.erase(2, only="reasoning")
        session.erase(4)
        assert store.verify().ok
    damage(url, "UPDATE messages SET visible = visible + 1 WHERE position IN (3, 5)")

    with Store(url) as store:
        found = store.verify().problems

    assert [(one.code, one.position, one.session) for one in found] == [("count", 3, "chat")]


def test_a_flipped_byte_in_a_text_is_found(sqlite_path: Path) -> None:
    """The engine's own check is content with it; the digest is not."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(
            session.key, 1, [said("before"), said("what was said"), said("after")]
        )
    data = sqlite_path.read_bytes()
    assert data.count(b"what was said") == 1
    sqlite_path.write_bytes(data.replace(b"what was said", b"what was sbid"))

    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        found = ledger.audit.verify().problems

    assert found == (
        Problem("digest", "the message is not the one written", session.key, 1, 2, "u", session.id),
    )


@pytest.mark.parametrize("text", ["what was said", "what it is called"])
def test_a_byte_that_makes_no_text_is_found(sqlite_path: Path, text: str) -> None:
    """The driver cannot even read it: that is a damaged row like another, and no word of it."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger, title="what it is called")
        ledger.messages.append(
            session.key, 1, [said("before"), said("what was said"), said("after")]
        )
        other = new_session(ledger)
        ledger.messages.append(other.key, 1, [said()])
    read: dict[str, Callable[[Ledger], Any]] = {
        "what was said": lambda ledger: stored_messages(ledger, session.key, 1),
        "what it is called": lambda ledger: ledger.sessions.get("u", session.id),
    }
    data = sqlite_path.read_bytes()
    assert data.count(text.encode()) == 1
    sqlite_path.write_bytes(data.replace(text.encode(), text.encode()[:-1] + b"\xff"))

    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        found = ledger.audit.verify()
        with pytest.raises(CorruptRow) as caught:
            read[text](ledger)
        with pytest.raises(CorruptRow):
            ledger.backup(sqlite_path.with_name("copy.db"))

    (problem,) = found.problems
    assert (problem.code, problem.session_key) == ("unreadable", session.key)
    assert found.sessions == 2
    if text == "what was said":
        assert (problem.branch, problem.position, found.messages) == (1, 2, 4)
    assert "what" not in f"{problem.detail} {caught.value!r}"
    assert caught.value.__context__ is None


def test_an_index_that_does_not_lead_to_a_message_is_found(sqlite_path: Path) -> None:
    """And the rest is gone through."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said(), said(), said()])
    # Of the index of bodies, the entry of the second message says that it is the first.
    entry = b"\x05\x06\x09\x01\x01" + session.key.to_bytes(8, "big")
    data = sqlite_path.read_bytes()
    assert data.count(entry + b"\x02\x02") == 1
    sqlite_path.write_bytes(data.replace(entry + b"\x02\x02", entry + b"\x01\x02"))

    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        found = ledger.audit.verify()

    assert (found.sessions, found.messages) == (1, 3)
    assert ("unreadable", 2) in {(one.code, one.position) for one in found.problems}
    assert "integrity" in {one.code for one in found.problems}


def test_a_damaged_page_does_not_hide_the_rest(sqlite_path: Path) -> None:
    """What can be read is gone through; what cannot is named."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        sessions = [new_session(ledger) for _ in range(2)]
        for n in range(60):
            for session in sessions:
                ledger.messages.append(session.key, 1, [said(f"{session.id} {n} " + "x" * 500)])
    data = bytearray(sqlite_path.read_bytes())
    at = data.index(f"{sessions[0].id} 30 ".encode()) // 8192 * 8192
    data[at : at + 8192] = bytes([255]) * 8192
    sqlite_path.write_bytes(data)

    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        found = ledger.audit.verify()

    assert (found.sessions, found.messages) == (2, 120)
    unreadable = {one.position for one in found.problems if one.code == "unreadable"}
    assert 31 in unreadable
    assert len(unreadable) < 40
    assert "integrity" in {one.code for one in found.problems}


def test_a_store_that_is_in_use_has_no_false_alarms(ledger: Ledger) -> None:
    """Appends, forks and erasures go on while it is gone through."""
    sessions = [new_session(ledger) for _ in range(3)]
    stop = threading.Event()
    failed: list[BaseException] = []

    def use() -> None:
        n = 0
        try:
            while not stop.is_set():
                n += 1
                key = sessions[n % 3].key
                ledger.messages.append(key, 1, [said(), calling("c"), answering("c"), answered()])
                if n % 3 == 0:
                    ledger.erasure.erase_message(key, 1, n)
                if n % 4 == 0:
                    ledger.messages.append(key, ledger.branches.fork(key, 1, n), [said()])
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=use)
    writer.start()
    try:
        found = [ledger.audit.verify().problems for _ in range(15)]
    finally:
        stop.set()
        writer.join()

    assert failed == []
    assert found == [()] * 15


def test_it_only_reads(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one write, and memory that holds a page of messages at a time."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        history(ledger)

        def refuse(*_: Any, **__: Any) -> Any:
            raise AssertionError("verify wrote")

        monkeypatch.setattr(ledger.database, "write", refuse)
        assert ledger.audit.verify().ok


def test_a_message_whose_keys_are_numbers_is_what_was_written(ledger: Ledger) -> None:
    """JSON makes strings of them, which sort in another order."""
    session = new_session(ledger)
    odd: Any = {10: {3: 0, 20: [{1.5: 1, True: 2, None: 3}]}, 9: 1}
    call = ToolCallBlock(id="1", name="f", parameters=odd)
    ledger.messages.append(
        session.key,
        1,
        [NewMessage(user("x", metadata=odd), Counts()), NewMessage(assistant(call), Counts())],
        idempotency_key="k",
    )

    assert ledger.audit.verify().ok
    again = [NewMessage(user("x", metadata=odd), Counts()), NewMessage(assistant(call), Counts())]
    assert not ledger.messages.append(session.key, 1, again, idempotency_key="k")[0].is_new


def test_a_damaged_session_can_still_be_identified(ledger: Ledger) -> None:
    """A session that cannot be opened is a problem, not the end of the report."""
    sessions = [history(ledger) for _ in range(3)]
    ledger.database.write(
        lambda connection: driver(connection).execute(
            f"UPDATE branches SET segments = '[' WHERE session_key = {sessions[1].key}"  # noqa: S608
        )
    )

    with pytest.raises(CorruptRow):
        stored_messages(ledger, sessions[1].key, 1)
    verified = ledger.audit.verify()

    assert verified.sessions == 3
    assert {(one.code, one.session_key) for one in verified.problems} == {
        ("unreadable", sessions[1].key)
    }


def spent(ledger: Ledger, statement: str) -> list[str]:
    text = f"UPDATE sessions SET {statement}"  # noqa: S608
    ledger.database.write(lambda connection: driver(connection).execute(text))
    return [one.detail for one in ledger.audit.verify().problems if one.code == "budget"]


def reply(reasoning: int | None) -> NewMessage:
    usage = Usage(output=99, reasoning=reasoning)
    return NewMessage(
        assistant(ThinkingBlock(thought="t"), "x", usage=usage), Counts(thinking=(10,))
    )


def test_a_budget_that_is_not_its_messages_says_what_they_give(ledger: Ledger) -> None:
    """Over all branches, what they share once."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), reply(30), reply(None)])
    fork = ledger.branches.fork(session.key, 1, 3)
    ledger.messages.append(session.key, fork, [reply(5)])

    assert spent(ledger, "sum_counted = 10") == []
    assert spent(ledger, "sum_reasoning = 34") == ["sum_reasoning is 34, its messages give 35"]
    assert spent(ledger, "sum_reasoning = 35, sum_counted = 11, sum_unreported = 0") == [
        "sum_counted is 11, its messages give 10",
        "sum_unreported is 0, its messages give 1",
    ]


def test_what_was_erased_may_have_been_used_and_no_more(ledger: Ledger) -> None:
    """By so many replies as are gone, and by reasoning only where some of it was erased."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), reply(30), reply(None), reply(5), reply(None)])
    ledger.erasure.erase_message(session.key, 1, 2)
    most = (1 << 40) - 1

    assert ledger.audit.verify().ok
    assert spent(ledger, "sum_reasoning = 4") == [
        f"sum_reasoning is 4, its messages give 5 to {5 + most}"
    ]
    assert spent(ledger, "sum_reasoning = 35, sum_counted = 19") == [
        "sum_counted is 19, its messages give 20"
    ]
    assert spent(ledger, "sum_counted = 20, sum_unreported = 4") == [
        "sum_reasoning is 35, its messages give 5",
        "sum_unreported is 4, its messages give 2 to 3",
    ]
    assert spent(ledger, "sum_unreported = 2") == []

    ledger.erasure.erase_message(session.key, 1, 3, only="reasoning")

    assert ledger.audit.verify().ok
    assert spent(ledger, "sum_counted = 9") == ["sum_counted is 9, its messages give 10 or more"]


def test_an_encoding_is_known_by_who_counts(url: str) -> None:
    """A store knows its own, and says which; a ledger takes the name as it comes."""
    with Store(url) as store:
        store.session("s", create=True)
        store._state.ledger.database.write(
            lambda connection: driver(connection).execute("UPDATE sessions SET encoding = 'x'")
        )

        assert [one.detail for one in store.verify().problems] == [
            "its encoding is not known, and is one of cl100k_base, o200k_base"
        ]
        assert store._state.ledger.audit.verify().ok


@pytest.mark.parametrize(
    ("damage", "owner"),
    [
        ("settings = '{'", "u"),
        ("settings = '[]'", "u"),
        ("owner = 'other'", "other"),
    ],
)
def test_a_settings_profile_that_was_damaged_is_found_by_its_owner(
    ledger: Ledger, damage: str, owner: str | None
) -> None:
    """It belongs to no session, and is looked at with all of them."""
    ledger.profiles.set("u", "fast", {"a": 1})
    assert ledger.audit.verify().ok
    ledger.database.write(
        lambda connection: driver(connection).execute(
            f"UPDATE settings_profiles SET {damage}"  # noqa: S608
        )
    )

    (problem,) = ledger.audit.verify().problems
    assert (problem.code, problem.owner, problem.session_key) == ("unreadable", owner, None)
