"""A process that forks after opening a store: the child is refused, the parent unharmed.

SQLite's locks and a server's connection do not survive a fork, so each of these programs
runs in an interpreter of its own.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import reasoning_store as rs
from tests.durability.whole import check_whole

HEAD = """
import asyncio, multiprocessing, os, sys, warnings
import reasoning_store as rs

warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the point here
url = sys.argv[1]
leave = sys.exit


def in_a_fork(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        leave(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_a_process(work):
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    return process.exitcode


def own_store():
    # A file that was open at the fork is refused; a server is not.
    if url.startswith("sqlite"):
        refused(lambda: rs.Store(url))
        return
    with rs.Store(url) as own:
        own.session("s").append(rs.user("child"))


def refused(verb):
    try:
        verb()
    except rs.InvalidCall as error:
        assert "fork" in str(error) and error.hint
    else:
        sys.exit(9)
"""

THREADS = """
with rs.Store(url) as store:
    session = store.session("s", create=True)
    session.append(rs.user("before"))

    def child():
        refused(lambda: session.append(rs.user("child")))
        refused(session.history)
        refused(lambda: store.session("other", create=True))
        refused(lambda: session.record(iter([]), model="m").__enter__())
        store.close()
        own_store()

    assert {fork}(child) == 0
    session.append(rs.user("after"))
"""

TASKS = """
leave = os._exit  # out of a loop that runs


async def main():
    async with rs.AsyncStore(url) as store:
        session = await store.session("s", create=True)
        await session.append(rs.user("before"))

        def child():
            async def work():
                for verb in (lambda: session.append(rs.user("child")), session.history):
                    try:
                        await asyncio.wait_for(verb(), 120)
                    except rs.InvalidCall as error:
                        assert "fork" in str(error)
                    else:
                        sys.exit(9)
                own_store()

            asyncio.events._set_running_loop(None)
            asyncio.run(work())

        assert {fork}(child) == 0
        await session.append(rs.user("after"))

asyncio.run(main())
"""

RECORDING = """
from reasoning_store.recording import draft_writer
draft_writer.PART_SECONDS = 0.01

with rs.Store(url) as store:
    session = store.session("s", create=True)
    session.append(rs.user("before"))

    def stream():
        yield {{"choices": [{{"index": 0, "delta": {{"content": "a "}}}}]}}
        assert {fork}(lambda: refused(session.history)) == 0
        yield {{"choices": [{{"index": 0, "delta": {{"content": "reply"}}}}]}}

    with session.record(stream(), model="m") as reply:
        list(reply)
    session.append(rs.user("after"))
"""


@pytest.mark.parametrize(
    ("program", "fork"),
    [
        pytest.param(THREADS, "in_a_fork", id="sync"),
        pytest.param(THREADS, "in_a_process", id="sync, multiprocessing"),
        pytest.param(TASKS, "in_a_fork", id="async"),
        pytest.param(RECORDING, "in_a_fork", id="recording"),
    ],
)
def test_the_child_of_a_fork_is_refused_and_the_parent_goes_on(
    url: str, program: str, fork: str
) -> None:
    """Every verb says to open a store after the fork; on a server one that is opened works."""
    subprocess.run(
        [sys.executable, "-c", HEAD + program.format(fork=fork), url], check=True, timeout=120
    )

    with rs.Store(url) as store:
        texts = [item.message.text for item in store.session("s").history()]
    between = ["a reply"] if program == RECORDING else ["child"] if "postgresql" in url else []
    assert texts == ["before", *between, "after"]
    check_whole(url)
