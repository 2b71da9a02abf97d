"""The ledger: an object a subject, over one database.

Each verb is one short transaction that never waits for a caller's code, and returns whole
values. Everything slow or able to fail in a caller's value is done before the transaction.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import URL

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.records import BackedUp

if TYPE_CHECKING:
    from reasoning_store.ledger.audit import Audit
    from reasoning_store.ledger.branches import Branches
    from reasoning_store.ledger.budgets import Budgets
    from reasoning_store.ledger.compactions import Compactions
    from reasoning_store.ledger.drafts import Drafts
    from reasoning_store.ledger.echoes import Echoes
    from reasoning_store.ledger.erasure import Erasure
    from reasoning_store.ledger.history import History
    from reasoning_store.ledger.message_facts import Annotations
    from reasoning_store.ledger.messages import Messages
    from reasoning_store.ledger.profiles import Profiles
    from reasoning_store.ledger.reports import Reports
    from reasoning_store.ledger.searching.search import Search
    from reasoning_store.ledger.searching.thoughts import Thoughts
    from reasoning_store.ledger.sessions import Sessions
    from reasoning_store.ledger.transfer.transfer import Transfer
    from reasoning_store.ledger.views import Views
    from reasoning_store.ledger.withholdings import Withholdings


def _subject(name: str, needs: str) -> Any:
    """Return an attribute that is imported and made when it is first used, with what it needs."""
    module, _, kind = name.rpartition(".")

    def make(ledger: Ledger) -> Any:
        made = getattr(import_module(f"{__package__}.{module}"), kind)
        return made(*[getattr(ledger, need) for need in needs.split()])

    return cached_property(make)


class Ledger:
    """The subjects over one database."""

    sessions: Sessions = _subject("sessions.Sessions", "database clock")
    budgets: Budgets = _subject("budgets.Budgets", "database")
    profiles: Profiles = _subject("profiles.Profiles", "database clock")
    messages: Messages = _subject("messages.Messages", "database clock")
    drafts: Drafts = _subject("drafts.Drafts", "database clock messages")
    branches: Branches = _subject("branches.Branches", "database clock drafts")
    history: History = _subject("history.History", "database clock")
    annotations: Annotations = _subject("message_facts.Annotations", "database")
    echoes: Echoes = _subject("echoes.Echoes", "database")
    compactions: Compactions = _subject("compactions.Compactions", "database clock")
    withholdings: Withholdings = _subject("withholdings.Withholdings", "database clock")
    views: Views = _subject("views.Views", "database")
    erasure: Erasure = _subject("erasure.Erasure", "database clock messages drafts")
    transfer: Transfer = _subject("transfer.transfer.Transfer", "database clock messages")
    reports: Reports = _subject("reports.Reports", "database")
    search: Search = _subject("searching.search.Search", "database")
    thoughts: Thoughts = _subject("searching.thoughts.Thoughts", "database")
    audit: Audit = _subject("audit.Audit", "database")

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self.database = database
        self.clock = clock or Clock()

    @classmethod
    def open(
        cls, url: str | URL, *, connections: int = opening.CONNECTIONS, read_only: bool = False
    ) -> Self:
        """Open a database; an SQLite file is created and upgraded, a server is checked.

        ``connections`` is the size of the pool: of the readers on SQLite, of all on
        PostgreSQL. To be ``read_only`` it has to be there and of this version.
        """
        connect = opening.connect_to_read if read_only else opening.connect
        return cls(connect(url, connections=connections))

    def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of the database while it is in use, and compare it with the original.

        The copy is one file, which opens as a store. A file that is there already stays, unless
        ``overwrite``; and until the new copy is whole, also then.
        """
        if not isinstance(path, str | PathLike):
            raise InvalidCall(f"path: a string or a path, not {type(path).__name__}")
        target = Path(path).absolute()
        rows = self.database.copy_to(target, replace=overwrite)
        return BackedUp(str(target), rows["sessions"], rows["messages"], target.stat().st_size)

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
