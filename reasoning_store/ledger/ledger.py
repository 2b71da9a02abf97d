"""The ledger: an object a subject, over one database.

Each verb is one short transaction that never waits for a caller's code, and returns whole
values. Everything slow or able to fail in a caller's value is done before the transaction.
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import URL

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.records import BackedUp
from reasoning_store.ledger.rows.keys import Clock

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


class Ledger:
    """The subjects over one database; each is imported when it is first used."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self.database = database
        self.clock = clock or Clock()

    @cached_property
    def sessions(self) -> Sessions:
        from reasoning_store.ledger.sessions import Sessions

        return Sessions(self.database, self.clock)

    @cached_property
    def budgets(self) -> Budgets:
        from reasoning_store.ledger.budgets import Budgets

        return Budgets(self.database)

    @cached_property
    def profiles(self) -> Profiles:
        from reasoning_store.ledger.profiles import Profiles

        return Profiles(self.database, self.clock)

    @cached_property
    def messages(self) -> Messages:
        from reasoning_store.ledger.messages import Messages

        return Messages(self.database, self.clock)

    @cached_property
    def drafts(self) -> Drafts:
        from reasoning_store.ledger.drafts import Drafts

        return Drafts(self.database, self.clock, self.messages)

    @cached_property
    def branches(self) -> Branches:
        from reasoning_store.ledger.branches import Branches

        return Branches(self.database, self.clock, self.drafts)

    @cached_property
    def history(self) -> History:
        from reasoning_store.ledger.history import History

        return History(self.database, self.clock)

    @cached_property
    def annotations(self) -> Annotations:
        from reasoning_store.ledger.message_facts import Annotations

        return Annotations(self.database)

    @cached_property
    def echoes(self) -> Echoes:
        from reasoning_store.ledger.echoes import Echoes

        return Echoes(self.database)

    @cached_property
    def compactions(self) -> Compactions:
        from reasoning_store.ledger.compactions import Compactions

        return Compactions(self.database, self.clock)

    @cached_property
    def withholdings(self) -> Withholdings:
        from reasoning_store.ledger.withholdings import Withholdings

        return Withholdings(self.database, self.clock)

    @cached_property
    def views(self) -> Views:
        from reasoning_store.ledger.views import Views

        return Views(self.database)

    @cached_property
    def erasure(self) -> Erasure:
        from reasoning_store.ledger.erasure import Erasure

        return Erasure(self.database, self.clock, self.messages, self.drafts)

    @cached_property
    def transfer(self) -> Transfer:
        from reasoning_store.ledger.transfer.transfer import Transfer

        return Transfer(self.database, self.clock, self.messages)

    @cached_property
    def reports(self) -> Reports:
        from reasoning_store.ledger.reports import Reports

        return Reports(self.database)

    @cached_property
    def search(self) -> Search:
        from reasoning_store.ledger.searching.search import Search

        return Search(self.database)

    @cached_property
    def thoughts(self) -> Thoughts:
        from reasoning_store.ledger.searching.thoughts import Thoughts

        return Thoughts(self.database)

    @cached_property
    def audit(self) -> Audit:
        from reasoning_store.ledger.audit import Audit

        return Audit(self.database)

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
