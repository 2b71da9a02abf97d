"""A file that is made whole under a name of its own, and is then given the name it is to have.

The name of an unfinished file contains the later name, the machine and the process: so the
leftovers of killed processes are recognised, and removed if no such process lives.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_UNFINISHED: Final = re.compile(
    r"\..+\.(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-[a-z0-9_]{8}\.new(-wal|-shm|-journal)?"
)
_SQLITES: Final = ("", "-wal", "-shm", "-journal")


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


@contextmanager
def unfinished_file(target: Path) -> Iterator[Path]:
    """Give an empty file of mode 0600 that is to become ``target``; it is removed at the end."""
    prefix = f".{target.name}.{_machine()}-{os.getpid()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=".new", dir=target.parent)
    try:
        os.close(handle)
        yield Path(name)
    finally:
        for end in _SQLITES:
            with suppress(OSError):
                os.unlink(f"{name}{end}")


def give_name(fresh: Path, target: Path, *, replace: bool = False) -> bool:
    """Make the new file durable and give it its name; False where the name is taken."""
    with fresh.open("rb") as made:
        os.fsync(made.fileno())
    if replace:
        fresh.replace(target)
    elif not _link(fresh, target):
        return False
    _sync_folder(target.parent)
    return True


def _link(fresh: Path, target: Path) -> bool:
    try:
        os.link(fresh, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: the name is taken first, by an empty file
        try:
            target.touch(0o600, exist_ok=False)
        except FileExistsError:
            return False
        fresh.replace(target)
    return True


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders, and needs no such thing
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def find_unfinished(folder: Path) -> list[Path]:
    """Return what is being made in a folder, and what killed makers left there, by name."""
    try:
        return sorted(one for one in folder.iterdir() if _UNFINISHED.fullmatch(one.name))
    except OSError:
        return []


def remove_abandoned(folder: Path) -> None:
    """Remove what killed makers left in a folder."""
    for path in find_unfinished(folder):
        if _is_abandoned(path.name):
            with suppress(OSError):
                path.unlink()


def _is_abandoned(name: str) -> bool:
    """Whether the maker was a process of this machine that is gone."""
    found = _UNFINISHED.fullmatch(name)
    if found is None or found["machine"] != _machine() or sys.platform == "win32":
        return False
    try:
        os.kill(int(found["process"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def has_one_name(path: Path) -> bool:
    """Whether a file has no other name but the one that its maker is about to remove."""
    remove_abandoned(path.parent)
    names = [path, *[one for one in find_unfinished(path.parent) if _is_same(path, one)]]
    return path.stat().st_nlink <= len(names)


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False
