"""A process that forks while another of its threads loads or makes something."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORKS = """
import os, signal, sys, threading
from reasoning_store.ledger.database import schema_version
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.tokens import counter, vocabularies

began, goes_on = threading.Event(), threading.Event()

def held(real):
    def waits(*given, **named):
        if not began.is_set():
            began.set()
            goes_on.wait()
        return real(*given, **named)
    return waits

schema_version.alembic_config = held(schema_version.alembic_config)
vocabularies.read = held(vocabularies.read)
work = {
    "a schema": lambda: Ledger.open("sqlite://").close(),
    "a vocabulary": lambda: counter().count("Is 91 prime?"),
}[sys.argv[1]]
other = threading.Thread(target=work)
other.start()
began.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    work()
    os._exit(7)
goes_on.set()
other.join()
work()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("what", ["a schema", "a vocabulary"])
def test_a_fork_waits_for_no_thread_of_its_parent(what: str) -> None:
    """The thread that makes it does not exist in the child, which makes its own."""
    assert subprocess.run([sys.executable, "-c", FORKS, what], timeout=120).returncode == 7
