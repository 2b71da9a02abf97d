"""While much is read the garbage collector waits, and afterwards it is as it was."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from reasoning_store.ledger.collecting import uncollected


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


@uncollected
def is_collecting(*, fails: bool = False) -> bool:
    if fails:
        raise ZeroDivisionError
    return gc.isenabled()


def test_the_collector_waits_and_goes_on() -> None:
    """Also where the verb fails."""
    assert not is_collecting()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        is_collecting(fails=True)
    assert gc.isenabled()


def test_a_collector_that_was_turned_off_stays_off() -> None:
    """That is the application's choice."""
    gc.disable()

    assert not is_collecting()
    assert not gc.isenabled()


def test_reading_within_reading_waits_once() -> None:
    """The outermost turns it on again."""

    @uncollected
    def outer() -> bool:
        is_collecting()
        return gc.isenabled()

    assert not outer()
    assert gc.isenabled()


def test_an_interrupt_that_comes_first_leaves_the_collector_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may come as soon as the collector has been told to wait."""
    disable = gc.disable

    def interrupted() -> None:
        disable()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(gc, "disable", interrupted)
        with pytest.raises(KeyboardInterrupt):
            is_collecting()

    assert gc.isenabled()


FORKED = """
import gc, os, sys, threading
from reasoning_store.ledger.collecting import uncollected

reads, goes_on = threading.Event(), threading.Event()


@uncollected
def read():
    reads.set()
    goes_on.wait()


thread = threading.Thread(target=read)
thread.start()
reads.wait()
child = os.fork()
if child == 0:
    os._exit(0 if gc.isenabled() else 1)
forked = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
here = gc.isenabled()
goes_on.set()
thread.join()
sys.exit(forked or here or not gc.isenabled())
"""


def test_the_child_of_a_fork_collects_though_a_thread_of_its_parent_was_reading() -> None:
    """No thread is there that would turn the collector on again."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)
