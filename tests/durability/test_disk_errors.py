"""A disk that refuses at any moment: a named error, nothing half, and on with the work.

Whatever SQLite asks of the disk while a verb runs is refused in turn, the first thing, the
second, and so on until the verb has come through untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.blocks import Counts, user
from reasoning_store.ledger.database import (
    backup,
    checkpoints,
    sqlite_connections,
)
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from tests.ledger.compacting import clear, compact
from tests.ledger.histories import add_part, answered, complete, part, resolved, said
from tests.ledger.opening import open_ledger

from . import programs
from .disk import Disk, watched
from .whole import check_whole

LIBRARY = sqlite_connections.library()


@pytest.fixture(params=["error", "full"])
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    """A disk that breaks with an input/output error, or as a full one does."""
    with watched(LIBRARY, Disk(full=request.param == "full")) as made:
        yield made


@pytest.fixture(params=[False, True], ids=["once", "for good"])
def for_good(request: pytest.FixtureRequest) -> bool:
    """Whether the disk refuses once, or from there on until it is mended."""
    chosen: bool = request.param
    return chosen


def digest(path: Path) -> bytes:
    """Return what stands in the file, all tables of it."""
    with closing(LIBRARY.connect(str(path), isolation_level=None)) as raw:
        return backup.read_contents(raw).digest


@pytest.mark.parametrize("library", ["fixed", "vulnerable"])
def test_an_append_is_whole_or_nothing_whatever_the_disk_refuses(
    tmp_path: Path,
    disk: Disk,
    for_good: bool,
    library: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """StoreFull; reads go on; the same key again stores it, once.

    Where the library is vulnerable every append is followed by a checkpoint of ours, which
    may fail, and then makes no difference to the append.
    """
    monkeypatch.setattr(checkpoints, "is_vulnerable", lambda _: library == "vulnerable")
    monkeypatch.setattr(checkpoints, "_CHECKPOINT_PAGES", 1)
    path = tmp_path / "chat.db"
    refused = 0
    with rs.Store(f"sqlite:///{path}") as store:
        session = store.session("s", create=True)
        session.append(programs.turn(0))
        for nth in count(1):
            before = [item.id for item in session.history()]
            turn, key = programs.turn(nth), programs.key(nth)
            disk.break_at(nth, for_good=for_good)
            try:
                told = session.append(turn, idempotency_key=key)
            except rs.StoreFull:
                refused += 1
                assert [item.id for item in session.history()] == before
                disk.mend()
                told = session.append(turn, idempotency_key=key)
                assert all(item.is_new for item in told)
            disk.mend()
            assert [item.id for item in session.history()] == [*before, *(i.id for i in told)]
            if not disk.broke:
                break
            session.append(rs.user("and on with the work"))
    check_whole(f"sqlite:///{path}")
    assert refused > 10


def scenario(ledger: Ledger, session: int) -> dict[str, Callable[[], object]]:
    """Verbs that are one step each, each on what the one before has left."""
    draft: Any = None

    def begin() -> None:
        nonlocal draft
        draft = ledger.drafts.begin(session, 1, idempotency_key="d", draft_message=resolved)

    return {
        "rename": lambda: ledger.sessions.rename(session, "A title"),
        "set_profile": lambda: ledger.profiles.set("u", "p", {"reasoning.effort": "low"}),
        "begin_draft": begin,
        "add_part": lambda: add_part(ledger, draft, 1, part("1 ")),
        "finish_draft": lambda: ledger.drafts.finish(
            draft, [complete(1)], alternatives=[complete(2)]
        ),
        "fork": lambda: ledger.branches.fork(session, 1, 3),
        "activate": lambda: ledger.branches.activate(session, 2),
        "compact": lambda: compact(
            ledger, session, 1, 1, 2, NewMessage(user("S"), Counts(visible=1))
        ),
        "clear": lambda: clear(ledger, session, 1, 2),
        "undo": lambda: ledger.compactions.undo(session, 1, 1),
        "erase_message": lambda: ledger.erasure.erase_message(session, 1, 1),
        "erase_session": lambda: ledger.erasure.erase_session(session),
    }


def test_every_verb_is_whole_or_nothing_whatever_the_disk_refuses(
    tmp_path: Path, disk: Disk, for_good: bool
) -> None:
    """The state is the one before or the one after; then it goes through."""
    path = tmp_path / "chat.db"
    with open_ledger(f"sqlite:///{path}", clock=lambda: 10**15) as ledger:
        session = ledger.sessions.create("u", "s", encoding="o200k_base").key
        ledger.messages.append(session, 1, [said(), answered(), said(), answered()])
        for name, verb in scenario(ledger, session).items():
            before = digest(path)
            broke = 0
            for nth in count(1):
                disk.break_at(nth, for_good=for_good)
                try:
                    verb()
                except rs.StoreFull:
                    assert disk.broke
                    disk.mend()
                    broke += 1
                    if digest(path) != before:
                        # It was done; what could not be done is to clear up after it.
                        assert name.startswith("erase")
                        break
                else:
                    disk.mend()
                    break
            assert broke, name
            assert digest(path) != before, name
    check_whole(f"sqlite:///{path}")


def test_an_edit_that_is_refused_leaves_the_conversation_as_it_was(
    tmp_path: Path, disk: Disk, for_good: bool
) -> None:
    """No user lands on a branch where nothing was said instead."""
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        session = store.session("s", create=True)
        before = [item.id for item in session.append(programs.turn(1))]
        for nth in count(1):
            disk.break_at(nth, for_good=for_good)
            try:
                edited = session.edit(1, rs.user("Something else."))
            except rs.StoreFull:
                disk.mend()
                here = [item.id for item in session.history()]
                elsewhere = [item.id for item in store.session("s").history()]
                assert here == before
                assert elsewhere == before
            else:
                disk.mend()
                break
        assert nth > 5
        assert [item.id for item in store.session("s").history()] == [edited.id]


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.long)])
def test_a_store_that_cannot_be_made_is_not_there(
    tmp_path: Path, disk: Disk, for_good: bool, step: int
) -> None:
    """No half of a file under its name, and none next to it; then it is made."""
    path = tmp_path / "chat.db"
    for nth in count(1, step):
        disk.break_at(nth, for_good=for_good)
        try:
            rs.Store(f"sqlite:///{path}").close()
        except rs.StoreFull:
            assert list(tmp_path.iterdir()) == []
            disk.mend()
        else:
            disk.mend()
            break
    assert nth > 30
    check_whole(f"sqlite:///{path}")


def test_a_reply_on_a_full_disk_is_shown_whole_and_refused_at_its_end(
    tmp_path: Path, disk: Disk
) -> None:
    """Who reads it misses nothing; the store says that it could not keep it."""
    words = ["<think>a th", "ought</think>", "one ", "two ", "three"]
    shown: list[str] = []

    def stream() -> Iterator[dict[str, Any]]:
        for word in words:
            yield {"choices": [{"index": 0, "delta": {"content": word}}]}
            disk.break_at(1, for_good=True)

    def read(reply: rs.Recording) -> None:
        shown.extend(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))

    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        session = store.session("s", create=True)
        session.append(rs.user("Count."))
        with pytest.raises(rs.StoreFull), session.record(stream(), model="m") as reply:
            read(reply)
        disk.mend()

        assert "".join(shown) == "one two three"
        assert reply.message is not None
        assert reply.message.text == "one two three"
        assert session.append(rs.user("Again.")).position == 3
        assert session.get(2).message.status == "interrupted"


def test_a_backup_that_the_disk_refuses_leaves_the_one_before(
    tmp_path: Path, disk: Disk, for_good: bool
) -> None:
    """Whole, and with nothing next to it; and the store that it is made of goes on."""
    source, target = tmp_path / "store" / "chat.db", tmp_path / "backups" / "chat.db"
    for path in (source, target):
        path.parent.mkdir()
    with rs.Store(f"sqlite:///{source}") as store:
        session = store.session("s", create=True)
        session.append(programs.turn(1))
        store.backup(target)
        before, refused = digest(target), 0
        session.append(programs.turn(2))
        for nth in count(1):
            disk.break_at(nth, for_good=for_good)
            try:
                store.backup(target, overwrite=True)
            except rs.StoreFull:
                disk.mend()
                refused += 1
                assert digest(target) == before
                assert [*target.parent.iterdir()] == [target]
            else:
                disk.mend()
                break

        assert refused > 3
        assert digest(target) == digest(source) != before
        session.append(rs.user("and on with the work"))
    check_whole(f"sqlite:///{target}")
