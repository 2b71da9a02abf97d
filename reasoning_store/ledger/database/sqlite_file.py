"""The file of an SQLite database: whether it is there and ours, and how a new one is made.

A file that is empty or not ours is refused before any connection could change it. SQLite itself
reads the header: to close a handle of one's own would drop the locks of this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reasoning_store.conversation.errors import InvalidCall, SchemaError, StoreFull
from reasoning_store.ledger.database import backup, driver_errors, files

APPLICATION_ID = 0x52535431
"""RST1: the mark in the file's header that it is ours."""


def is_there(path: Path, module: Any) -> bool:
    """Return whether a database of ours is at ``path``; refuse what is neither ours nor new.

    Changes nothing, and makes no file next to it.
    """
    # Looked for first: where the file is being made just now, it has no log before.
    log = backup.log_of(path)
    status = files.status_of(path, f"{path.name} cannot be opened")
    if status is None:
        if log is not None:
            raise backup.log_error(path, log)
        files.check_folder(path)
        return False
    files.check_file(status, path.name or str(path))
    if status.st_size == 0:
        raise SchemaError(
            f"{path.name} is empty: that is no database of ours",
            hint="if nothing was ever stored in it, delete it; else restore a copy",
        )
    try:
        with closing(module.connect(uri(path, "mode=ro&immutable=1"), uri=True)) as raw:
            # Someone may be making the file longer just now: let the length not matter.
            raw.execute("PRAGMA writable_schema=ON")
            found = raw.execute("PRAGMA application_id").fetchone()[0]
    except module.DatabaseError as error:
        if driver_errors.error_code(error) != "SQLITE_NOTADB":
            raise
        found = None
    if found != APPLICATION_ID:
        raise SchemaError(
            f"{path.name} is not a database of reasoning-store",
            hint="name another file; this one was not touched",
        )
    return True


def check_one_name(path: Path) -> None:
    """Refuse a file that has a second name, a hard link: its log is next to one of them only.

    Two programs that open it by different names lose what the other one writes.
    """
    status = files.status_of(path, f"{path.name} cannot be opened")
    if status is not None and status.st_nlink > 1 and not files.has_one_name(path):
        raise InvalidCall(
            f"{path.name} has a second name (a hard link), and each would have its own log",
            hint=f"remove the other name, or make a file of its own: cp {path.name} copy.db",
        )


def check_same(path: Path, was: os.stat_result) -> None:
    """Refuse another file than the one that is open, where that was moved away or removed.

    The log there is the other's, which a program that opened it would take for this one's.
    """
    status = files.status_of(path, f"{path.name} cannot be opened")
    if status is None:
        raise InvalidCall(
            f"{path.name} cannot be opened again: it was moved away or removed",
            hint="put it back, or close the store: what is written from now on may be lost",
        )
    if os.path.samestat(was, status):
        return
    raise InvalidCall(
        f"{path.name} is another file than the one that was opened",
        hint=f"close the store, and move {path.name}-wal away, which is of the one before",
    )


def uri(path: Path, how: str) -> str:
    """Return the name by which SQLite opens a file with the settings ``how``."""
    return f"file:{quote(os.fsencode(path))}?{how}"


def create(path: Path, build: Callable[[Path], None]) -> None:
    """Let ``build`` fill a new file next to ``path``, then give it that name, once and whole."""
    with (
        files.system_errors(f"{path.name} cannot be created"),
        files.unfinished_file(path) as fresh,
    ):
        build(fresh)
        if Path(f"{fresh}-wal").exists():
            # It still holds what was built: closing could not copy it, and raises nothing.
            raise StoreFull("the disk refused the write")
        files.give_name(fresh, path)


def mark_as_ours(fresh: Path, module: Any) -> None:
    """Write the header that marks the file as ours, and nothing else."""
    with closing(module.connect(str(fresh))) as raw:
        raw.execute(f"PRAGMA application_id={APPLICATION_ID}")
