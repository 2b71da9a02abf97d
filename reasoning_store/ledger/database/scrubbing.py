"""Bytes of erased rows, followed until they have left the file and its log.

An erasure is two steps: one transaction takes the rows, and then the file is rewritten and its
log emptied, which a kill, a full disk or a reader elsewhere can prevent. So the transaction
also makes the file's ``user_version`` odd, and only a whole rewriting makes it even again. The
number grows with each erasure: a rewriting for an earlier one does not finish a later one.
"""

from __future__ import annotations

import os
from typing import Any

_MOST = 0x7FFFFFFF


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


def rewrite_file(raw: Any) -> bool:
    """Rewrite the file and empty its log; return whether what was erased is gone.

    Outside of a transaction. The log is emptied first, too: as long as a reader elsewhere
    prevents that, rewriting the file would only make the log longer.
    """
    version = _version(raw)
    if not empty_log(raw):
        return False
    raw.execute("VACUUM")
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
