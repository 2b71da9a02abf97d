"""The file of an SQLite database: whether it is there and ours, and how a new one is made.

A new one is built whole beside its place and linked there, so that its name is never that
of half a database; mode 0600 from the first byte. What is empty or not ours is refused
before any connection could change it: it is looked at through SQLite, since closing a file
of one's own would drop the locks that this process holds on it.

Knows files and what stands in their header; knows no connection of ours and no table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reasoning_store import files
from reasoning_store.errors import SchemaError, StoreFull, UsageError
from reasoning_store.ledger import copies, faults, making

APPLICATION_ID = 0x52535431
"""RST1: what says in the file's header that it is ours."""


def look(path: Path, module: Any) -> bool:
    """Return whether a database of ours is at ``path``; refuse what is neither ours nor new.

    Changes nothing, and makes no file beside it.
    """
    # Looked for first: where somebody makes the file just now, it has no log before.
    log = copies.log_of(path)
    at = files.found(path, f"{path.name} cannot be opened")
    if at is None:
        if log is not None:
            raise copies.logged(path, log)
        files.check_folder(path)
        return False
    files.check_file(at, path.name or str(path))
    if at.st_size == 0:
        raise SchemaError(
            f"{path.name} is empty: that is no database of ours",
            hint="if nothing was ever stored in it, delete it; else restore a copy",
        )
    try:
        with closing(module.connect(uri(path, "mode=ro&immutable=1"), uri=True)) as raw:
            # Somebody may be making the file longer just now: let the length not matter.
            raw.execute("PRAGMA writable_schema=ON")
            found = raw.execute("PRAGMA application_id").fetchone()[0]
    except module.DatabaseError as error:
        if faults.code(error) != "SQLITE_NOTADB":
            raise
        found = None
    if found != APPLICATION_ID:
        raise SchemaError(
            f"{path.name} is not a database of reasoning-store",
            hint="name another file; this one was not touched",
        )
    return True


def check_same(path: Path, was: os.stat_result) -> None:
    """Refuse another file than the one that is open, where that was moved away or removed.

    Beside it stands the log of the other, which whoever opened it would take for its own.
    """
    at = files.found(path, f"{path.name} cannot be opened")
    if at is None:
        raise UsageError(
            f"{path.name} cannot be opened again: it was moved away or removed",
            hint="put it back, or close the store: what is written from now on may be lost",
        )
    if os.path.samestat(was, at):
        return
    raise UsageError(
        f"{path.name} is another file than the one that was opened",
        hint=f"close the store, and move {path.name}-wal away, which is of the one before",
    )


def uri(path: Path, how: str) -> str:
    """Return the name by which SQLite opens a file ``how`` its settings say."""
    return f"file:{quote(os.fsencode(path))}?{how}"


def create(path: Path, build: Callable[[Path], None]) -> None:
    """Let ``build`` fill a new file beside ``path``, then give it that name, once and whole."""
    with files.telling(f"{path.name} cannot be created"), making.beside(path) as fresh:
        build(fresh)
        if Path(f"{fresh}-wal").exists():
            # What was built stands in it still: closing could not copy it, and does not say so.
            raise StoreFull("the disk refused the write")
        if making.put(fresh, path):
            copies.sync_folder(path.parent)


def make_ours(fresh: Path, module: Any) -> None:
    """Write the header that says whose file this is, and nothing else."""
    with closing(module.connect(str(fresh))) as raw:
        raw.execute(f"PRAGMA application_id={APPLICATION_ID}")
