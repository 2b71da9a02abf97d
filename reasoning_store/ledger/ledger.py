"""The ledger: an object a subject, over one database.

Each verb is one short transaction that never waits for a caller's code, and returns whole
values. Everything slow or able to fail in a caller's value is done before the transaction.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Self

from sqlalchemy import URL

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.audit import Audit
from reasoning_store.ledger.branches import Branches
from reasoning_store.ledger.budgets import Budgets
from reasoning_store.ledger.compactions import Compactions
from reasoning_store.ledger.database import migrate
from reasoning_store.ledger.database import open as engine
from reasoning_store.ledger.database.open import Database
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.ledger.erasure import Erasure
from reasoning_store.ledger.history import History
from reasoning_store.ledger.messages import Messages
from reasoning_store.ledger.profiles import Profiles
from reasoning_store.ledger.records import BackedUp
from reasoning_store.ledger.reports import Reports
from reasoning_store.ledger.request_input import RequestInputs
from reasoning_store.ledger.rows.keys import Clock
from reasoning_store.ledger.sessions import Sessions
from reasoning_store.ledger.transfer.transfer import Transfer


class Ledger:
    """What happened, on one database."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self.database = database
        self.clock = clock or Clock()
        self.sessions = Sessions(database, self.clock)
        self.budgets = Budgets(database)
        self.profiles = Profiles(database, self.clock)
        self.messages = Messages(database, self.clock)
        self.drafts = Drafts(database, self.clock, self.messages)
        self.branches = Branches(database, self.clock, self.drafts)
        self.history = History(database, self.clock)
        self.compactions = Compactions(database, self.clock)
        self.request_input = RequestInputs(database)
        self.erasure = Erasure(database, self.clock, self.messages, self.drafts)
        self.transfer = Transfer(database, self.clock, self.messages)
        self.reports = Reports(database)
        self.audit = Audit(database)

    @classmethod
    def open(cls, url: str | URL, *, connections: int = 8, read_only: bool = False) -> Self:
        """Open a database; an SQLite file is created and upgraded, a server is checked.

        ``connections`` is the size of the pool: of the readers on SQLite, of all on
        PostgreSQL. To be ``read_only`` it has to be there and of this version.
        """
        connect = engine.connect_to_read if read_only else engine.connect
        return cls(connect(url, connections=connections))

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return migrate.REVISIONS[-1]

    def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of the database while it is in use, and compare it with the original.

        The copy is one file, which opens as a store. What is there already stays, unless
        ``overwrite``; and until the new copy is whole, also then.
        """
        if not isinstance(path, str | PathLike):
            raise InvalidCall(f"path: a string or a path, not {type(path).__name__}")
        target = Path(path).absolute()
        rows = self.database.copy_to(target, replace=overwrite)
        return BackedUp(str(target), rows["sessions"], rows["messages"], target.stat().st_size)

    def close(self) -> None:
        """Close every connection; a second time is nothing."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
