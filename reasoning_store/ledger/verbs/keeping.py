"""The verbs of whoever keeps a store: what it was used for, and a copy of it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from reasoning_store.errors import UsageError
from reasoning_store.ledger import faults, reporting
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.reporting import By
from reasoning_store.ledger.values import BackedUp, ReportRow


class KeepingVerbs(Opened):
    """The store as a whole."""

    def report(
        self,
        by: By = "session",
        *,
        since: int | None = None,
        until: int | None = None,
        owner: str | None = None,
    ) -> list[ReportRow]:
        """Return what was used from ``since`` on and before ``until``, group by group."""
        return self._read(
            lambda connection: reporting.report(
                connection, by, since=since, until=until, owner=owner
            ),
            single=True,
        )

    def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of the database while it is in use, and compare it with the original.

        The copy is one file, which opens as a store. What is there already stays, unless
        ``overwrite``; and until the new copy is whole, also then.
        """
        self._check()
        if not isinstance(path, str | PathLike):
            raise UsageError(f"path: a string or a path, not {type(path).__name__}")
        target = Path(path).absolute()
        rows = faults.guarded(lambda: self._database.copy_to(target, replace=overwrite))
        return BackedUp(str(target), rows["sessions"], rows["messages"], target.stat().st_size)
