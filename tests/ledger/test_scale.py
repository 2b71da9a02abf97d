"""A session of 100 000 messages answers as one of 100 does: the same statements, the same rows.

What a verb reads is counted in a process of its own, which has neither written the sessions
nor read them before, through the promised faces. Both sessions lie in one database.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.ledger.ledger import Ledger

from .histories import answered, answers, asks, said

ROOT = Path(__file__).parents[2]
TURN = [said("0123456789"), asks("a"), answers("a"), answered("x" * 5, "t" * 5)]
AT_ONCE = 1000
"""Turns in one append."""


def read(url: str, id: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.ledger.long_session", url, "u", id],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def compare(url: str, turns_of_long: int) -> None:
    with Ledger.open(url) as ledger:
        for id, turns in (("short", 25), ("long", turns_of_long)):
            key = ledger.sessions.create("u", id, encoding="o200k_base").key
            for begun in range(0, turns, AT_ONCE):
                ledger.messages.append(key, 1, TURN * min(AT_ONCE, turns - begun))

    short, long = read(url, "short"), read(url, "long")

    assert short.keys() == long.keys()
    assert len(short) > 10
    for verb, few in short.items():
        many = long[verb]
        assert (verb, many["rows"]) == (verb, few["rows"])
        # What was looked at and thrown away would show here, and not in the rows returned.
        assert 0 < many["steps"] <= few["steps"], verb


@pytest.mark.parametrize("turns", [2_500, pytest.param(25_000, marks=pytest.mark.long)])
def test_a_hundred_thousand_messages_are_read_as_a_hundred_are(
    sqlite_path: Path, turns: int
) -> None:
    """Windows from both ends and the middle, single messages."""
    compare(f"sqlite:///{sqlite_path}", turns)


@pytest.mark.long
def test_a_hundred_thousand_messages_on_a_server_are_read_as_a_hundred_are(
    plain_url: str,
) -> None:
    """The same, by the rows that the server says it fetched."""
    compare(plain_url, 25_000)
