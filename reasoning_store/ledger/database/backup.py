"""Copies of an SQLite file: backups, and copies made before an upgrade.

A copy is taken in one step of the library's own backup: in several, any writer would start
it anew for ever. It is compared row by row with its source before it gets its name.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from reasoning_store.conversation.errors import CorruptRow, InvalidCall
from reasoning_store.ledger.database import files
from reasoning_store.ledger.database.statement import quoted

_ROWS = 1000
_LOGS = ("-wal", "-journal")
BESIDE = ("", "-shm", *_LOGS)
"""How the names of a database's files end."""


class Contents(NamedTuple):
    """Every row of a database, as numbers."""

    rows: dict[str, int]
    """How many each table has."""
    digest: bytes


def read_contents(raw: Any) -> Contents:
    """Read every row of every table."""
    counts: dict[str, int] = {}
    digest = blake2b()
    tables = raw.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        " ORDER BY name"
    ).fetchall()
    for (table,) in tables:
        counts[table] = 0
        cursor = raw.execute(f"SELECT * FROM {quoted(table)}")  # noqa: S608
        while rows := cursor.fetchmany(_ROWS):
            counts[table] += len(rows)
            digest.update(repr(rows).encode("utf-8", "surrogatepass"))
        digest.update(f"{table} {counts[table]};".encode())
    return Contents(counts, digest.digest())


def write_copy(
    source: Any,
    target: Path,
    module: Any,
    *,
    replace: bool,
    wanted: Callable[[Any], bool] = lambda _: True,
) -> Contents:
    """Copy the database of a connection that is in no transaction; return what it holds.

    If by then it is not as ``wanted``, no copy is made.
    """
    with (
        files.system_errors(f"{target.name} cannot be written"),
        files.unfinished_file(target) as fresh,
    ):
        with closing(module.connect(str(fresh), isolation_level=None)) as copied:
            # One snapshot for both, while others write.
            source.execute("BEGIN")
            try:
                if not wanted(source):
                    return Contents({}, b"")
                copied_from = read_contents(source)
                source.backup(copied, pages=-1)
            finally:
                source.execute("ROLLBACK")
            copied.execute("PRAGMA journal_mode=DELETE").fetchall()
            _check(copied, copied_from)
        _name(fresh, target, replace=replace)
    return copied_from


def _check(copied: Any, copied_from: Contents) -> None:
    if copied.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise CorruptRow("the database is damaged: its copy was not kept")
    if read_contents(copied) != copied_from:
        raise CorruptRow("the copy differs from the database: it was not kept")


def _name(fresh: Path, target: Path, *, replace: bool) -> None:
    if log := log_of(target):  # another program has opened it meanwhile
        raise log_error(target, log)
    if not files.give_name(fresh, target, replace=replace):
        raise taken_error(target)


def taken_error(target: Path) -> InvalidCall:
    return InvalidCall(
        f"{target.name} is there already", hint="name another file, or pass overwrite"
    )


def log_of(path: Path) -> Path | None:
    """Return the log of a name, whether a file of that name is there or not.

    To give another file that name would destroy it: a program that opened it would get the
    pages in that log in place of its own.
    """
    subject = f"{path.name} cannot be opened"
    logs = [Path(f"{path}{end}") for end in _LOGS]
    return next((log for log in logs if files.status_of(log, subject, follow_symlinks=False)), None)


def log_error(path: Path, log: Path) -> InvalidCall:
    if os.path.lexists(path):
        return InvalidCall(
            f"{path.name} is open somewhere, or was when its program was killed:"
            f" {log.name} is there too",
            hint="name another file; or close that one, and where no program has it, open it once",
        )
    return InvalidCall(
        f"{log.name} is there without {path.name}, and holds messages of it",
        hint=f"put {path.name} back where it was, or move {log.name} away",
    )


def check_target(target: Path, database: Path | None, *, replace: bool) -> None:
    """Refuse a place where a copy cannot be, before any work is done."""
    if database is not None and target in [Path(f"{database}{end}") for end in BESIDE]:
        raise InvalidCall(f"{target.name} is the database itself", hint="name another file")
    subject = f"{target.name} cannot be written"
    status = files.status_of(target, subject)
    if status is None:
        files.check_folder(target)
    else:
        own = None if database is None else files.status_of(database, subject)
        if own is not None and os.path.samestat(status, own):
            raise InvalidCall(f"{target.name} is the database itself", hint="name another file")
        files.check_file(status, target.name or str(target))
        if not replace:
            raise taken_error(target)
    if log := log_of(target):
        raise log_error(target, log)


def copies_of(path: Path) -> tuple[str, ...]:
    """Return the copies made of a database before upgrades, and any file that is half made.

    The leftovers of killed backups to the folder, under any name, are removed before.
    """
    files.remove_abandoned(path.parent)
    kept = path.parent.glob(f"{glob.escape(path.name)}.before-*")
    return tuple(str(one) for one in sorted([*kept, *files.find_unfinished(path.parent)]))
