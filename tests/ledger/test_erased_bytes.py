"""Erased bytes: they leave the file, its log and its index, and copies that have them are named."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from reasoning_store.conversation.blocks import (
    Counts,
    Origin,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger import encode
from reasoning_store.ledger.database import files, sqlite, sqlite_connections
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import Erased, NewMessage
from reasoning_store.ledger.tables import metadata

from .erasures import found
from .histories import add_part, answered, any_text, new_session, note, part, resolved, said
from .whole import whole

LIBRARY: Any = sqlite_connections.library()


def marked(name: str, chance: random.Random) -> Callable[[], str]:
    """Texts of any length that hold a name over and over, so that any piece of one shows it."""
    return lambda: f"<{name}>" * chance.choice([1, 1, 2, 3, 5, 9, 25, 400])


def fill(ledger: Ledger, names: list[str], chance: random.Random, turns: int) -> dict[str, int]:
    """Sessions whose every text, name and id is marked, written turn by turn in any order."""
    keys: dict[str, int] = {}
    for name in names:
        text = marked(name, chance)
        keys[name] = ledger.sessions.create(
            f"owner <{name}>",
            f"id <{name}>",
            encoding="o200k_base",
            title=text(),
            metadata={text(): text()},
        ).key
        ledger.sessions.change_settings(keys[name], {"x": text()})
    for turn in range(turns):
        name = chance.choice(names)
        text = marked(name, chance)
        reply = assistant(
            ThinkingBlock(thought=text(), source_field=f"<{name}>", signature=text()),
            TextBlock(text=text()),
            ToolCallBlock(id=f"<{name}> {turn}", name=text(), parameters={text(): text()}),
            origin=Origin(model=f"<{name}> {turn % 3}", response_id=text()),
            metadata={"x": text()},
            finish_reason=text(),
            usage=Usage(input=1, raw={"x": text()}),
        )
        result = tool(ToolResponseBlock(call_id=f"<{name}> {turn}", result=text()))
        ledger.messages.append(
            keys[name],
            1,
            [
                NewMessage(user(text()), Counts(visible=1)),
                NewMessage(reply, Counts(visible=1, thinking=(1,)), {"x": text()}),
                NewMessage(result, Counts(visible=1)),
            ],
            idempotency_key=f"<{name}> {turn}",
        )
    for name in names:
        draft = ledger.drafts.begin(keys[name], 1, request_facts={"x": name})
        note(ledger, draft, {"x": f"<{name}>"})
        add_part(ledger, draft, 1, part(marked(name, chance)()))
    return keys


@pytest.mark.parametrize("seed", range(3))
def test_no_byte_of_what_was_erased_is_left(sqlite_path: Path, seed: int) -> None:
    """Not in the file, its WAL or its index, whatever was erased before and in any order."""
    chance = random.Random(seed)
    names = [f"canary {n} of {seed}" for n in range(6)]
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        keys = fill(ledger, names, chance, 200)
        assert all(found(sqlite_path, name) for name in names)
        chance.shuffle(names)
        for name in names[:4]:
            assert ledger.erasure.erase_session(keys[name]).copies == ()
            assert found(sqlite_path, name) == {}
        owner = f"owner <{names[4]}>"
        assert ledger.erasure.erase_owner(owner).sessions == 1
        assert found(sqlite_path, names[4]) == {}
        ledger.messages.append(keys[names[5]], 1, [answered("a", "b")], draft_message=resolved)
        whole(ledger, keys[names[5]])


def test_no_byte_of_an_owner_who_only_had_profiles_is_left(sqlite_path: Path) -> None:
    """Their name and his are as much his as what he said."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        ledger.profiles.set("owner <gone>", "profile <gone>", {})
        assert found(sqlite_path, "gone")

        assert ledger.erasure.erase_owner("owner <gone>").profiles == 1

        assert found(sqlite_path, "gone") == {}


def test_no_byte_of_an_erased_message_is_left(sqlite_path: Path) -> None:
    """Nor of reasoning alone; the other messages of the session are all there."""
    chance = random.Random(7)
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        keys = fill(ledger, ["other"], chance, 100)
        key = keys["other"]
        ledger.messages.append(key, 1, [said("<said>" * 2000)], draft_message=resolved)
        ledger.messages.append(key, 1, [answered("<kept>", "<thought>" * 2000)])
        ledger.messages.append(key, 1, [answered("kept", "<all>" * 2000) for _ in range(20)])
        last = ledger.branches.get(key, 1).head

        ledger.erasure.erase_message(key, 1, last - 21)
        assert found(sqlite_path, "said") == {}
        ledger.erasure.erase_message(key, 1, last - 20, only="reasoning")
        assert found(sqlite_path, "thought") == {}
        assert found(sqlite_path, "kept")
        ledger.erasure.erase_session(key, only="reasoning")
        assert found(sqlite_path, "all") == {}
        assert found(sqlite_path, "other")
        whole(ledger, key)


def test_no_byte_of_an_erased_draft_is_left(sqlite_path: Path) -> None:
    """Nor of its parts, which were written one by one."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        draft = ledger.drafts.begin(session.key, 1)
        note(ledger, draft, {"x": "<gone>"})
        for n in range(1, 4):
            add_part(ledger, draft, n, part("<gone>" * 2000))

        assert ledger.erasure.erase_message(session.key, 1, 1, draft_message=resolved).messages == 1

        assert found(sqlite_path, "gone") == {}
        whole(ledger, session.key)


def test_a_row_is_gone_from_the_server(postgres_url: str) -> None:
    """From every table; its dead versions go with the server's next vacuum."""
    with Ledger.open(postgres_url) as ledger:
        keys = fill(ledger, ["gone", "kept"], random.Random(1), 30)

        ledger.erasure.erase_session(keys["gone"])

        def dump(connection: Any) -> str:
            return str(
                [
                    driver(connection).execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608
                    for name in metadata.tables
                ]
            )

        text = ledger.database.read(dump)
        assert "<gone>" not in text
        assert "<kept>" in text


def test_files_that_still_hold_it_are_named(sqlite_path: Path) -> None:
    """Copies made before upgrades, and backups that are half made."""
    copy = sqlite_path.with_name("chat.db.before-0002")
    half = sqlite_path.with_name(".chat.db.before-0002.00000000-1-abcdefgh.new")
    sqlite_path.with_name("notes.txt").write_text("not ours")
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said(), said(), said()])
        assert ledger.erasure.erase_message(session.key, 1, 1).copies == ()
        for made in (copy, half):
            made.write_bytes(b"an older one")

        rewritten = ledger.erasure.erase_message(session.key, 1, 2)
        nothing = ledger.erasure.erase_message(session.key, 1, 2)

    assert rewritten.copies == nothing.copies == (str(half), str(copy))


def test_what_a_killed_backup_left_is_removed_and_one_under_way_is_named(
    sqlite_path: Path,
) -> None:
    """Under whatever name in the folder of the database it was to stand."""
    maker = subprocess.Popen([sys.executable, "-c", ""])
    maker.wait()
    name = f".chat.2026-11-18.db.{files._machine()}-{maker.pid}-abcdefgh.new"
    left = sqlite_path.with_name(name)
    left.write_text("<gone>")
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said("<gone>")])
        with files.unfinished_file(sqlite_path.with_name("tonight.db")) as made:
            done = ledger.erasure.erase_session(session.key)

    assert not left.exists()
    assert done.copies == (str(made),)


def test_a_reader_elsewhere_does_not_hold_erasing_up(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its snapshot; the files that therefore still hold the bytes are named."""
    monkeypatch.setattr(sqlite, "_SCRUB_MS", 50)
    reader = LIBRARY.connect(sqlite_path, isolation_level=None)
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said("<gone>"), said()])
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()

        done = ledger.erasure.erase_message(session.key, 1, 1)

        assert done.messages == 1
        assert f"{sqlite_path}-wal" in done.copies
        assert reader.execute("SELECT text FROM bodies WHERE position = 1").fetchone() == (
            "<gone>",
        )
        reader.execute("ROLLBACK")
        assert ledger.erasure.erase_message(session.key, 1, 2).copies == ()
        assert found(sqlite_path, "gone") == {}
    reader.close()


def test_a_writer_elsewhere_does_not_hold_erasing_up(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is erased stays so; that the file could not be rewritten is reported."""
    monkeypatch.setattr(sqlite, "_SCRUB_MS", 50)
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said("<gone>")])
        ledger.database.write(lambda connection: None)
        plain = ledger.database.scrub

        def with_a_writer() -> tuple[str, ...]:
            holder = LIBRARY.connect(sqlite_path, isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            try:
                return plain()
            finally:
                holder.close()

        monkeypatch.setattr(ledger.database, "scrub", with_a_writer)
        done = ledger.erasure.erase_message(session.key, 1, 1)

        assert done.messages == 1
        assert str(sqlite_path) in done.copies
        assert ledger.history.get(session.key, 1, 1).message.status == "erased"


def test_a_store_in_memory_erases_too() -> None:
    """There is no file to rewrite."""
    with Ledger.open("sqlite://") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()])

        assert ledger.erasure.erase_message(session.key, 1, 1) == Erased(messages=1)


@given(any_text)
def test_the_stored_number_of_a_key_reveals_nothing(key: str) -> None:
    """32 hexadecimal digits, whatever the key."""
    column = encode.checked_key_digest(key)

    assert len(column) == 32
    assert {*column} <= {*"0123456789abcdef"}
    assert column == encode.checked_key_digest(key)
