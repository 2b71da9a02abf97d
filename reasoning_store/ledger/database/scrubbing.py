"""Bytes of erased rows, followed until they have left the file and its log.

An erasure is two steps: one transaction takes the rows, and then the file is rewritten and its
log emptied, which a kill, a full disk or a reader elsewhere can prevent. So the transaction
also makes the file's ``user_version`` odd, and only a whole rewriting makes it even again. The
number grows with each erasure: a rewriting for an earlier one does not finish a later one.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasoning_store.ledger.database import files

if TYPE_CHECKING:
    from reasoning_store.ledger.database.sqlite_connections import Connections

_MOST = 0x7FFFFFFF
_CHANGES = "PRAGMA data_version"
"""A number that changes when another connection has written."""
_DONE = 101
"""SQLite's number for the last step of a copy."""
_STEP = 16
"""Pages that one step copies: fewer than any file has, so that none is copied unchecked."""


def _version(raw: Any) -> int:
    (version,) = raw.execute("PRAGMA user_version").fetchone()
    return int(version)


def is_needed(raw: Any) -> bool:
    """Whether an erasure is not finished, in this file or in the one that it is a copy of."""
    return _version(raw) % 2 == 1


def note_rewrite(raw: Any) -> None:
    """Note, inside the transaction that erases, that the file is to be rewritten."""
    raw.execute(f"PRAGMA user_version={((_version(raw) + 1) | 1) & _MOST}")


def files_of(path: str) -> tuple[str, ...]:
    """Return the files of a database that hold what was erased until it is rewritten."""
    log = f"{path}-wal"
    return (path, log) if os.path.exists(log) else (path,)


def rewrite_file(raw: Any, path: str, connections: Connections) -> bool:
    """Rewrite the file and empty its log; return whether what was erased is gone.

    It is not where another program reads or writes, or memory or disk have no room. The log is
    emptied first, too: as long as a reader elsewhere prevents that, rewriting the file would only
    make the log longer.
    """
    try:
        return empty_log(raw) and _rewrite(raw, path, connections)
    except (connections.module.Error, MemoryError, OSError):
        if raw.in_transaction:
            raw.rollback()
        with suppress(connections.module.Error, MemoryError):
            empty_log(raw)  # of what was written before the room ended
        return False


def _rewrite(raw: Any, path: str, connections: Connections) -> bool:
    """Copy what is left into a new file, and the new file over the old one.

    ``VACUUM`` does the same, and has its copy in memory where the library was built so.
    """
    with (
        files.unfinished_file(Path(path)) as fresh,
        closing(connections.connect()) as other,
    ):
        raw.execute("BEGIN IMMEDIATE")
        version, changes = _version(raw), other.execute(_CHANGES).fetchone()
        other.execute("VACUUM INTO ?", (str(fresh),))
        raw.execute("ROLLBACK")  # the library takes the lock anew, with the first step

        def check(status: int, *_: int) -> None:
            if status != _DONE and (status or other.execute(_CHANGES).fetchone() != changes):
                raise BlockingIOError("another program wrote, or is writing")

        with closing(connections.module.connect(str(fresh))) as copy:
            copy.backup(raw, pages=_STEP, progress=check)
    if not empty_log(raw):
        return False
    raw.execute("BEGIN IMMEDIATE")
    if _version(raw) == version:
        raw.execute(f"PRAGMA user_version={(version + 1) & _MOST}")
    raw.execute("COMMIT")
    return True


def empty_log(raw: Any) -> bool:
    """Copy the log into the file and empty it; return whether nothing prevented that."""
    # It holds the write lock while it copies, unless another process held that for all of the
    # time it waits: no commit of ours can get in between.
    (blocked, _, _) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not blocked
