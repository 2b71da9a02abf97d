"""A file that is open while its process forks: nothing that either of them was told is lost.

Each program runs in an interpreter of its own, for a fork concerns a whole process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import reasoning_store as rs
from tests.durability.whole import check_whole

HEAD = """
import os, sys, threading, time, warnings
if sys.argv[2] == "the library of Python's own":
    sys.modules["pysqlite3.dbapi2"] = None
import reasoning_store as rs

warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
url = sys.argv[1]


def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

BOTH_WRITE = """
written, closed = os.pipe(), os.pipe()
store = rs.Store(url)
session = store.session("s", create=True)
session.append(rs.user("parent"))


def child():
    own = rs.Store(url).session("s")
    for number in range(5):
        own.append(rs.user(f"before {number}"))
    os.write(written[1], b"x")
    os.read(closed[0], 1)
    for number in range(5):
        own.append(rs.user(f"after {number}"))


ended = forked(child)
os.read(written[0], 1)
store.close()  # the last connection that a process knows of takes the WAL along
os.write(closed[1], b"x")
with rs.Store(url) as again:
    again.session("s").append(rs.user("parent again"))
assert ended() == 0
"""

LIBRARIES = ["pysqlite3, where there is one", "the library of Python's own"]


def run(program: str, url: str, *more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program, url, *(more or LIBRARIES[:1])],
        check=True,
        timeout=120,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def texts(url: str) -> list[str]:
    with rs.Store(url) as store:
        return [one.message.text for one in store.session("s").history()]


@pytest.fixture
def url(sqlite_path: Path) -> str:
    return f"sqlite:///{sqlite_path}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_parent_and_child_both_write_and_nothing_is_lost(url: str, library: str) -> None:
    """The child opens the file itself; then the parent closes what it had open before."""
    run(BOTH_WRITE, url, library)

    found = texts(url)
    child = [text for text in found if "parent" not in text]
    assert child == [f"{when} {n}" for when in ("before", "after") for n in range(5)]
    assert [text for text in found if text not in child] == ["parent", "parent again"]
    check_whole(url)


WHILE_THREADS_WORK = """
store = rs.Store(url)
store.session("s", create=True)
stop = threading.Event()
told = [[] for _ in range(4)]


def write(mine):
    session = store.session("s")
    while not stop.is_set():
        name = f"{threading.get_ident()} {len(mine)}"
        session.append(rs.user(name))
        mine.append(name)
        session.history(limit=3)


threads = [threading.Thread(target=write, args=(mine,)) for mine in told]
for thread in threads:
    thread.start()
while not all(told):
    pass


def child():
    own = rs.Store(url)
    own.session("s").append(rs.user("child"))
    own.close()


for _ in range(8):
    assert forked(child)() == 0
stop.set()
for thread in threads:
    thread.join()
store.close()
import json
print(json.dumps(told))
"""


def test_a_fork_beside_threads_that_write_loses_nothing_of_theirs(url: str) -> None:
    """They are waited for, and go on behind it."""
    told = json.loads(run(WHILE_THREADS_WORK, url))

    found = texts(url)
    assert found.count("child") == 8
    for mine in told:
        assert [text for text in found if text in {*mine}] == mine
    check_whole(url)


WHO_DOES_NOT_GIVE_IT_BACK = """
from reasoning_store.ledger import sqlite_forks
from reasoning_store.ledger.ledger import Ledger

sqlite_forks._PATIENCE = 0.1
store = rs.Store(url)
session = store.session("s", create=True)
reads, over = threading.Event(), threading.Event()
ledger = store._workings.ledger


def hold(connection):
    reads.set()
    assert over.wait(60)


reader = threading.Thread(target=lambda: ledger._read(hold))
reader.start()
reads.wait()


def child():
    for other in ("", "/../" + os.path.basename(os.path.dirname(url))):
        folder, name = os.path.split(url)
        try:
            rs.Store(f"{folder}{other}/{name}")
        except rs.UsageError as error:
            assert "forked" in str(error) and error.hint, error
        else:
            sys.exit("it was opened")
    with rs.Store(url + ".other") as beside:
        beside.session("s", create=True)


assert forked(child)() == 0
over.set()
reader.join()
session.append(rs.user("after"))
"""


def test_a_file_that_could_not_be_let_go_of_is_refused_in_the_child(url: str) -> None:
    """By whatever path it goes; other files are not, and the parent goes on."""
    run(WHO_DOES_NOT_GIVE_IT_BACK, url)

    assert texts(url) == ["after"]


WHILE_INTERRUPTED = """
import signal

store = rs.Store(url)
session = store.session("s", create=True)
reads, over = threading.Event(), threading.Event()
ledger = store._workings.ledger


def hold(connection):
    reads.set()
    assert over.wait(60)


def interrupt():
    while not ledger._database._readers._waiting:
        pass
    os.kill(os.getpid(), signal.SIGINT)


def child():
    try:
        rs.Store(url)
    except rs.UsageError as error:
        assert "forked" in str(error) and error.hint, error
    else:
        sys.exit("it was opened")
    with rs.Store(url + ".other") as beside:
        beside.session("s", create=True)


threads = [threading.Thread(target=lambda: ledger._read(hold)), threading.Thread(target=interrupt)]
threads[0].start()
reads.wait()
threads[1].start()
sys.unraisablehook = lambda _: None  # Python lets no error stop a fork
assert forked(child)() == 0
over.set()
for thread in threads:
    thread.join()
session.append(rs.user("after"))
assert forked(lambda: rs.Store(url).session("s").append(rs.user("child")))() == 0
"""


def test_a_fork_that_does_not_wait_to_the_end_is_refused_the_file_too(url: str) -> None:
    """An interrupt ends the waiting, and not the fork; the next one waits again."""
    run(WHILE_INTERRUPTED, url)

    assert texts(url) == ["after", "child"]


IN_MEMORY = """
store = rs.Store("sqlite://")
store.session("s", create=True).append(rs.user("here"))
assert forked(lambda: None)() == 0
assert [one.message.text for one in store.session("s").history()] == ["here"]
"""


def test_a_store_in_memory_outlives_a_fork(url: str) -> None:
    """It is no file, and its one connection is all there is of it."""
    run(IN_MEMORY, url)


SEVERAL_AT_ONCE = """
store = rs.Store(url)
session = store.session("s", create=True)
threads = [
    threading.Thread(target=lambda: [forked(lambda: None)() for _ in range(5)]) for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
session.append(rs.user("after"))
store.close()
"""


def test_threads_that_fork_at_the_same_time_wait_for_one_another(url: str) -> None:
    """And what each let go of is there again behind the last."""
    run(SEVERAL_AT_ONCE, url)

    assert texts(url) == ["after"]
