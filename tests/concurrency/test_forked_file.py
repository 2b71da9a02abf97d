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

REFUSED = """
store = rs.Store(url)
session = store.session("s", create=True)
session.append(rs.user("before"))
session.history()


def child():
    for other in ("", "/../" + os.path.basename(os.path.dirname(url))):
        folder, name = os.path.split(url)
        try:
            rs.Store(f"{folder}{other}/{name}")
        except rs.InvalidCall as error:
            assert "forked" in str(error) and error.hint, error
        else:
            sys.exit("it was opened")
    with rs.Store(url + ".other") as beside:
        beside.session("s", create=True)


assert forked(child)() == 0
session.append(rs.user("after"))
"""

ENDS_AS_A_PROGRAM_DOES = """
with rs.Store(url) as store:
    store.session("s", create=True).append(rs.user("before"))
store = rs.Store(url)
session = store.session("s")
session.history()
closed = os.pipe()
child = os.fork()
if child == 0:
    os.read(closed[0], 1)
    sys.exit(0)  # what it inherited goes with its modules
store.close()
killed = os.fork()
if killed == 0:
    rs.Store(url).session("s").append(rs.user("only in the log"))
    os.kill(os.getpid(), 9)
os.waitpid(killed, 0)
assert os.path.getsize(url.removeprefix("sqlite:///") + "-wal") > 0
os.write(closed[1], b"x")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert os.path.getsize(url.removeprefix("sqlite:///") + "-wal") > 0
"""

AFTER_CLOSING = """
with rs.Store(url) as store:
    store.session("s", create=True).append(rs.user("parent"))


def child():
    with rs.Store(url) as own:
        own.session("s").append(rs.user("child"))


assert forked(child)() == 0
with rs.Store(url) as store:
    store.session("s").append(rs.user("parent again"))
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
def test_a_file_that_was_open_at_the_fork_is_refused_in_the_child(url: str, library: str) -> None:
    """By whatever path it goes; other files are not, and the parent goes on."""
    run(REFUSED, url, library)

    assert texts(url) == ["before", "after"]
    check_whole(url)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_child_that_ends_takes_no_log_along(url: str, library: str) -> None:
    """Though by then no other process has the file open, and the log holds messages."""
    run(ENDS_AS_A_PROGRAM_DOES, url, library)

    assert texts(url) == ["before", "only in the log"]
    check_whole(url)


def test_a_file_that_was_closed_before_the_fork_is_opened_in_the_child(url: str) -> None:
    run(AFTER_CLOSING, url)

    assert texts(url) == ["parent", "child", "parent again"]
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
    try:
        rs.Store(url)
    except rs.InvalidCall as error:
        assert "forked" in str(error), error
    else:
        sys.exit("it was opened")


for _ in range(8):
    assert forked(child)() == 0
stop.set()
for thread in threads:
    thread.join()
store.close()
import json
print(json.dumps(told))
"""


def test_a_fork_next_to_writing_threads_loses_none_of_their_writes(url: str) -> None:
    """They go on, and the child is refused the file."""
    told = json.loads(run(WHILE_THREADS_WORK, url))

    found = texts(url)
    for mine in told:
        assert [text for text in found if text in {*mine}] == mine
    check_whole(url)


IN_MEMORY = """
store = rs.Store("sqlite://")
store.session("s", create=True).append(rs.user("here"))
assert forked(lambda: None)() == 0
assert [one.message.text for one in store.session("s").history()] == ["here"]
"""


def test_a_store_in_memory_outlives_a_fork(url: str) -> None:
    """It is no file, and its one connection is all there is of it."""
    run(IN_MEMORY, url)
