"""kill -9: what was acknowledged is there, what was not is there whole or not at all.

The process that kills reads the acknowledgements through a pipe; so whatever it has read
was told before the kill. Where the child said last that it is inside a transaction, the
kill fell between BEGIN and COMMIT.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import create_engine

import reasoning_store as rs
from reasoning_store.conversation.errors import NotFound

from . import programs
from .processes import Child, running
from .whole import check_whole

_UNDECIDED = ("commit", "sent")
"""What a writer said last before a kill that may have come too late."""


@dataclass
class Tally:
    """What was acknowledged so far, and where the kills fell."""

    stored: dict[int, list[int]] = field(default_factory=dict)
    fell: dict[str, int] = field(default_factory=dict)
    where: str = ""
    """The last kill's."""

    def take(self, child: Child) -> None:
        for word, number, *positions in child.heard:
            if word == "stored":
                self.stored[number] = positions[0]
        self.where = child.heard[-1][0].replace("stopped", "inside")
        self.fell[self.where] = self.fell.get(self.where, 0) + 1

    def check(self, url: str) -> int:
        """Compare with what is there, and return the number of the next turn."""
        check_whole(url)
        with rs.Store(url) as store:
            there = store.session("s", create=True).history()
        assert [item.position for item in there] == list(range(1, len(there) + 1))
        # Whole turns, in their order, each once; at most the one more that was committing.
        turns = len(there) // 2
        assert [item.message for item in there] == [
            message for number in range(1, turns + 1) for message in programs.turn(number)
        ]
        assert turns - len(self.stored) in ((0, 1) if self.where in _UNDECIDED else (0,))
        for number, positions in self.stored.items():
            assert positions == [2 * number - 1, 2 * number]
        return len(self.stored) + 1


def kill_in_a_loop(url: str, *, at_random: int, inside: int) -> Tally:
    """Kill an appending process again and again, and check after each time."""
    chance, tally, first = random.Random(20_261_118), Tally(), 1
    for round_ in range(at_random + inside):
        stop_at = chance.randint(0, 40) if round_ < inside else None
        with running(programs.append_turns, url, "s", first, stop_at) as child:
            if stop_at is None:
                child.hear_until("stored", chance.randint(1, 12))
                time.sleep(chance.uniform(0, 0.004))
            else:
                child.hear_until("stopped")
            child.kill()
        tally.take(child)
        # Not acknowledged, so not to be counted on; asked for again, it is there once.
        first = tally.check(url)
    return tally


@contextmanager
def branches_held(url: str) -> Iterator[None]:
    """Hold what every append has to take, once someone waits for it on the server."""
    engine = create_engine(url)
    with engine.connect() as holder, engine.connect() as watcher:
        holder.exec_driver_sql("LOCK TABLE branches IN EXCLUSIVE MODE")
        while not watcher.exec_driver_sql(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND query LIKE '%%append_messages%%'"
        ).all():
            watcher.rollback()
            time.sleep(0.01)
        yield
        holder.rollback()
    # The server goes on with the statement; let it end.
    with engine.connect() as watcher:
        while watcher.exec_driver_sql(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND state = 'active' AND query LIKE '%%append_messages(%%'"
            " AND pid <> pg_backend_pid()"
        ).all():
            watcher.rollback()
            time.sleep(0.01)
    engine.dispose()


def test_a_killed_writer_loses_nothing_that_was_acknowledged(url: str) -> None:
    """On both engines, at random moments."""
    tally = kill_in_a_loop(url, at_random=6, inside=0)

    assert sum(tally.fell.values()) == 6
    assert len(tally.stored) >= 6


def test_a_writer_killed_between_begin_and_commit_leaves_nothing_of_the_turn(
    sqlite_path: Path,
) -> None:
    """It stays at one statement of its transaction until it is killed there."""
    tally = kill_in_a_loop(f"sqlite:///{sqlite_path}", at_random=0, inside=6)

    assert tally.fell == {"inside": 6}


def kill_eight_at_once(url: str, kills: int) -> int:
    """Kill eight threads that share commits again and again; return the turns they stored."""
    chance, told = random.Random(20_261_119), dict.fromkeys(range(8), 0)
    for _ in range(kills):
        with running(programs.append_in_threads, url, 8) as child:
            child.hear_until("stored", chance.randint(20, 60))
            time.sleep(chance.uniform(0, 0.004))
            child.kill()
        for _, name, number in child.heard:
            told[int(name[1:])] = number
        check_whole(url)
        with rs.Store(url) as store:
            for name, last in told.items():
                there = [item.message for item in store.session(f"s{name}", create=True).history()]
                turns = len(there) // 2
                assert there == [
                    message for n in range(1, turns + 1) for message in programs.turn(n)
                ]
                # What was acknowledged, and at the most the one that was under way.
                assert turns - last in (0, 1)
                told[name] = turns
    return sum(told.values())


def test_killed_writers_that_share_commits_lose_nothing_that_was_acknowledged(
    sqlite_path: Path,
) -> None:
    """Eight threads in one process: of each all that it was told of is there, in order."""
    assert kill_eight_at_once(f"sqlite:///{sqlite_path}", 4) > 80


@pytest.mark.long
def test_forty_kills_of_writers_that_share_commits_lose_nothing(sqlite_path: Path) -> None:
    """At random moments."""
    print(kill_eight_at_once(f"sqlite:///{sqlite_path}", 40))


def test_a_statement_of_a_killed_client_ends_whole_or_not_at_all(postgres_url: str) -> None:
    """The client dies while its one statement waits on the server, inside its transaction."""
    tally = Tally()
    with running(programs.append_turns, postgres_url, "s", 1, None) as child:
        child.hear_until("stored")
        with branches_held(postgres_url):
            child.kill()
    tally.take(child)

    assert tally.where == "sent"
    tally.check(postgres_url)


_CANARY = "canary"


def _files_with_it(path: Path) -> set[str]:
    """Which files of a database hold the canary, looked for by a process of its own."""
    found = subprocess.run(
        ["grep", "-l", "-a", _CANARY, *map(str, path.parent.glob(f"{path.name}*"))],
        capture_output=True,
        text=True,
        check=False,
    )
    return set(found.stdout.split())


@contextmanager
def _erasure_killed(path: Path, what: str) -> Iterator[rs.Store]:
    """A store that was open while another process erased and was killed before the rewriting."""
    with rs.Store(f"sqlite:///{path}") as store:
        thought = rs.ThinkingBlock(thought=f"{_CANARY} " * 99, source_field="reasoning_content")
        session = store.session("s", create=True)
        session.append([rs.user("q"), rs.assistant(thought, "a")])
        with running(programs.erase_and_stay, f"sqlite:///{path}", what) as child:
            child.hear_until("stopped")
            child.kill()
        assert _files_with_it(path)
        yield store


@pytest.mark.parametrize("what", programs.ERASURES)
def test_an_erasure_that_was_killed_is_finished_when_it_is_repeated(
    sqlite_path: Path, what: str
) -> None:
    """By a program that has it open already: the answer is that nothing is left, and it is so."""
    with _erasure_killed(sqlite_path, what) as store:
        if what == "session":
            with pytest.raises(NotFound):
                store.session("s")
            store.scrub()
        else:
            assert programs.ERASURES[what](store).copies == ()

        assert _files_with_it(sqlite_path) == set()


def test_a_session_whose_erasure_was_killed_is_erased_again_through_its_handle(
    sqlite_path: Path,
) -> None:
    """Once: then it is not found any more."""
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        session = store.session("s", create=True)
        with _erasure_killed(sqlite_path, "session"):
            assert session.erase() == rs.results.Erased()
            assert _files_with_it(sqlite_path) == set()
            with pytest.raises(NotFound):
                session.erase()


def test_opening_the_file_finishes_a_killed_erasure(sqlite_path: Path) -> None:
    """While another has it open."""
    with _erasure_killed(sqlite_path, "session"):
        rs.Store(f"sqlite:///{sqlite_path}").close()

        assert _files_with_it(sqlite_path) == set()


def test_as_long_as_bytes_are_left_each_answer_names_the_files(sqlite_path: Path) -> None:
    """The file itself, too: a reader elsewhere keeps the log from being copied into it."""
    names = {str(sqlite_path), f"{sqlite_path}-wal"}
    with (
        _erasure_killed(sqlite_path, "session") as store,
        running(programs.read_and_stay, str(sqlite_path)) as reader,
    ):
        reader.hear_until("reading")
        with rs.Store(f"sqlite:///{sqlite_path}") as other:
            assert set(other.scrub()) == names
        assert set(store.erase().copies) == names
        assert _files_with_it(sqlite_path) <= names
        reader.kill()

        assert store.erase().copies == ()
        assert _files_with_it(sqlite_path) == set()


@pytest.mark.long
def test_a_hundred_kills_on_sqlite_lose_nothing(sqlite_path: Path) -> None:
    """A third of them while the writer stands between BEGIN and COMMIT, the rest at random."""
    tally = kill_in_a_loop(f"sqlite:///{sqlite_path}", at_random=70, inside=30)

    assert sum(tally.fell.values()) == 100
    assert tally.fell["inside"] >= 30
    print(tally.fell, len(tally.stored))


@pytest.mark.long
def test_sixty_kills_of_a_servers_client_lose_nothing(postgres_url: str) -> None:
    """At random moments, so that a statement under way ends whole or not at all."""
    tally = kill_in_a_loop(postgres_url, at_random=60, inside=0)

    assert sum(tally.fell.values()) == 60
    print(tally.fell, len(tally.stored))
