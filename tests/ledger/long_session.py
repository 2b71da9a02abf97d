"""A process that reads a session and counts what that takes: ``long_session URL OWNER ID``.

It prints, as JSON, by verb: the rows that each statement returned, and the steps that the
engine went through for all of them together. On SQLite these are the loops of its virtual
machine, so that a row looked at and not returned is counted too; on PostgreSQL the rows that
the server says it fetched.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event

import reasoning_store as rs
from reasoning_store.ledger.database.statement import driver

from .reads import watched

_FETCHED = """SELECT COALESCE(sum(seq_tup_read), 0) + COALESCE(sum(idx_tup_fetch), 0)
    FROM pg_stat_user_tables"""


class Steps:
    """What an engine has done since it was asked last."""

    def __init__(self) -> None:
        self.loops = 0
        self._fetched = 0

    def watch(self, raw: Any, _: object) -> None:
        if hasattr(raw, "set_progress_handler"):
            raw.set_progress_handler(self._step, 1)

    def _step(self) -> int:
        self.loops += 1
        return 0

    def take(self, store: rs.Store) -> int:
        if store._writers == 1:
            done, self.loops = self.loops, 0
            return done
        ledger = store._state.ledger
        for _ in range(store._writers):
            ledger.database.read(lambda c: driver(c).execute("SELECT pg_stat_force_next_flush()"))
        total = ledger.database.read_one(lambda c: driver(c).execute(_FETCHED).fetchone()[0])
        done, self._fetched = int(total) - self._fetched, int(total)
        return done


def verbs(session: rs.Session, last: int) -> dict[str, Callable[[], object]]:
    """What is read, at both ends of a conversation of equal turns and in its middle."""
    middle = last // 8 * 4  # the end of a turn
    return {
        "the latest ten": lambda: session.history(limit=10),
        "the first ten": lambda: session.history(after=0, limit=10),
        "before the middle": lambda: session.history(before=middle + 1, limit=10),
        "behind the middle": lambda: session.history(after=middle, limit=10),
        "around the middle": lambda: session.history(after=middle - 8, before=middle + 8),
        "before the second turn": lambda: session.history(before=5, limit=4),
        "behind the last turn but one": lambda: session.history(after=last - 4),
        "the latest that fit": lambda: session.history(tokens=335),
        "those before the last turn that fit": lambda: session.history(before=last - 3, tokens=335),
        "the first message": lambda: session.get(1),
        "one in the middle": lambda: session.get(middle),
        "the last message": lambda: session.get(last),
    }


def main(url: str, owner: str, id: str) -> None:
    steps = Steps()
    event.listen(Engine, "connect", steps.watch)
    with rs.Store(url) as store:
        session = store.for_owner(owner).session(id)
        last = session.history(limit=1)[-1].position
        found: dict[str, Any] = {}
        for name, verb in verbs(session, last).items():
            verb()  # what is read once and kept, as the vocabulary is, is read by now
            steps.take(store)
            with watched() as rows:
                verb()
            found[name] = {"rows": list(rows), "steps": steps.take(store)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
