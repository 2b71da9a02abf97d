"""Other files that hold the same bytes: backups, and copies made before an upgrade.

A copy is taken in one step of the library's own backup: in several, any writer would start
it anew for ever. It is made in a folder of its own beside the target (``making``), mode
0600, compared row by row with what it was made of, synced, and only then given its name: so
that name is never that of half a copy, and a process killed meanwhile leaves the older one.

Knows SQLite's files; knows no table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from reasoning_store import files
from reasoning_store.errors import CorruptRow, UsageError
from reasoning_store.ledger import making

_ROWS = 1000
_LOGS = ("-wal", "-journal")
_BESIDE = ("", "-shm", *_LOGS)


class Contents(NamedTuple):
    """Every row of a database, as numbers."""

    rows: dict[str, int]
    """How many each table has."""
    digest: bytes


def contents(raw: Any) -> Contents:
    """Read every row of every table."""
    counts: dict[str, int] = {}
    digest = blake2b()
    tables = raw.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        " ORDER BY name"
    ).fetchall()
    for (table,) in tables:
        counts[table] = 0
        cursor = raw.execute(f'SELECT * FROM "{table}"')  # noqa: S608
        while rows := cursor.fetchmany(_ROWS):
            counts[table] += len(rows)
            digest.update(repr(rows).encode("utf-8", "surrogatepass"))
        digest.update(f"{table} {counts[table]};".encode())
    return Contents(counts, digest.digest())


def write(
    source: Any,
    target: Path,
    module: Any,
    *,
    replace: bool,
    wanted: Callable[[Any], bool] = lambda _: True,
) -> Contents:
    """Copy the database of a connection that is in no transaction; return what it holds.

    Where it is not ``wanted`` as it stands by then, there is no copy.
    """
    with files.telling(f"{target.name} cannot be written"), making.beside(target) as fresh:
        with closing(module.connect(str(fresh), isolation_level=None)) as copied:
            # One snapshot for both, whoever writes meanwhile.
            source.execute("BEGIN")
            try:
                if not wanted(source):
                    return Contents({}, b"")
                copied_from = contents(source)
                source.backup(copied, pages=-1)
            finally:
                source.execute("ROLLBACK")
            copied.execute("PRAGMA journal_mode=DELETE").fetchall()
            _check(copied, copied_from)
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        _name(fresh, target, replace=replace)
    return copied_from


def _check(copied: Any, copied_from: Contents) -> None:
    if copied.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise CorruptRow("the database is damaged: its copy was not kept")
    if contents(copied) != copied_from:
        raise CorruptRow("the copy differs from the database: it was not kept")


def _name(fresh: Path, target: Path, *, replace: bool) -> None:
    if log := log_of(target):  # somebody has opened it meanwhile
        raise logged(target, log)
    if replace:
        fresh.replace(target)
    elif not making.put(fresh, target):
        raise taken(target)
    sync_folder(target.parent)


def taken(target: Path) -> UsageError:
    return UsageError(f"{target.name} is there already", hint="name another file, or say overwrite")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders, and needs no such thing
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def log_of(path: Path) -> Path | None:
    """Return the log that stands beside a name, whether a file of that name does or not.

    To give another file that name would destroy it: whoever opened it would be given the
    pages in that log in place of its own.
    """
    told = f"{path.name} cannot be opened"
    logs = [Path(f"{path}{end}") for end in _LOGS]
    return next((log for log in logs if files.found(log, told, follow_symlinks=False)), None)


def logged(path: Path, log: Path) -> UsageError:
    if os.path.lexists(path):
        return UsageError(
            f"{path.name} is open somewhere, or was when its program was killed:"
            f" {log.name} stands beside it",
            hint="name another file; or close that one, where nobody has it by opening it once",
        )
    return UsageError(
        f"{log.name} is there without {path.name}, and holds messages of it",
        hint=f"put {path.name} back where it was, or move {log.name} away",
    )


def check_target(target: Path, database: Path | None, *, replace: bool) -> None:
    """Refuse a place where a copy cannot be, before any work is done."""
    if database is not None and target in [Path(f"{database}{end}") for end in _BESIDE]:
        raise UsageError(f"{target.name} is the database itself", hint="name another file")
    told = f"{target.name} cannot be written"
    at = files.found(target, told)
    if at is None:
        files.check_folder(target)
    else:
        own = None if database is None else files.found(database, told)
        if own is not None and os.path.samestat(at, own):
            raise UsageError(f"{target.name} is the database itself", hint="name another file")
        files.check_file(at, target.name or str(target))
        if not replace:
            raise taken(target)
    if log := log_of(target):
        raise logged(target, log)


def beside(path: Path) -> tuple[str, ...]:
    """Return the copies made of a database before upgrades, and any left half made."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return ()
    return tuple(
        str(path.parent / name)
        for name in names
        if name.startswith(f"{path.name}.before-")
        or (name.startswith(f".{path.name}.") and name.endswith(".new"))
    )
