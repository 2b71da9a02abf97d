"""Files: at a path, whole under a name of their own first, and those that stores have open.

One error of ours stands where the system refuses a path. Python's own answers differ with its
version: for a name that is too long, or that goes through a file, ``exists`` is False here and
raises there; a NUL is a ``ValueError``.

A file is made whole under another name, and is then given the name it is to have. The name of an
unfinished file contains the later name, the machine and the process: so the leftovers of killed
processes are recognised, and removed if no such process lives.

The system's locks on a file belong to a process. SQLite remembers, for all connections of a
process together, which of them it holds; a forked child inherits that memory and none of the
locks, so a connection of its own to the same file would lock nothing, and two processes would
undo each other's pages. Therefore the child is refused the file, and never closes a connection
that it inherited: to close the last one may remove a log that others still write.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import shlex
import stat
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final, Protocol
from weakref import WeakSet

from reasoning_store.conversation.errors import InvalidCall, StoreFull

_HELPS: Final = {
    errno.ENOTDIR: "a folder in its path is a file: name another place",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ELOOP: "a link in its path leads back to itself: remove it, or name another place",
    errno.EACCES: "let this user enter its folder and use what is there, or name another place",
    errno.EMFILE: "close some files, or let the process open more: ulimit -n",
    errno.ENFILE: "close some files, or let the system open more",
    errno.EROFS: "name a place on a file system that can be written",
}
"""The remedies for the system's refusals of a path."""
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ANOTHER: Final = "name a file"


def check_name(path: str | PathLike[str]) -> None:
    """Refuse what no file can be named."""
    with suppress(UnicodeEncodeError):
        if b"\0" not in os.fsencode(path):
            return
    raise InvalidCall(
        "a path holds a character that no path can hold",
        hint="name it without NUL and without halves of characters",
    )


def status_of(
    path: str | PathLike[str], subject: str, *, follow_symlinks: bool = True
) -> os.stat_result | None:
    """Return the status of the file at a path; None where there is no file."""
    check_name(path)
    with system_errors(subject), suppress(FileNotFoundError):
        return os.stat(path, follow_symlinks=follow_symlinks)
    return None


def check_file(status: os.stat_result, name: str) -> None:
    """Refuse what is no file: a folder, a device, a pipe."""
    if not stat.S_ISREG(status.st_mode):
        raise InvalidCall(f"{name} is not a file", hint=_ANOTHER)


def check_folder(path: Path) -> None:
    """Refuse a place in a folder that is not there."""
    if status_of(path.parent, f"{path.name}: its folder cannot be looked up") is None:
        raise InvalidCall(
            f"{path.name}: its folder does not exist",
            hint=f"run: mkdir -p {shlex.quote(str(path.parent))}",
        )


def check_ends(status: os.stat_result, subject: str) -> None:
    """Refuse a device: reading one may never come to an end."""
    if stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode):
        raise InvalidCall(f"{subject}: it is a device", hint=_ANOTHER)


@contextmanager
def system_errors(subject: str) -> Iterator[None]:
    """Raise the system's refusals of a path as errors of ours; ``subject`` names it, for what."""
    try:
        yield
    except OSError as error:
        why = f"{subject}: {error.strerror}"
        if error.errno in _NO_ROOM:
            raise StoreFull(why) from None
        hint = _HELPS.get(error.errno or 0, "name another place")
        raise InvalidCall(why, hint=hint) from None


_UNREADABLE: Final = "the file cannot be read"


def check_to_read(path: str | PathLike[str], subject: str) -> os.stat_result:
    """Refuse what is not there, a folder and a device; return what it is, a file or a pipe."""
    status = status_of(path, subject)
    if status is None:
        raise InvalidCall(f"{subject}: there is no such file", hint=_ANOTHER)
    if stat.S_ISDIR(status.st_mode):
        raise InvalidCall(f"{subject}: it is a folder", hint=_ANOTHER)
    check_ends(status, subject)
    check_not_held(status, subject)
    return status


@contextmanager
def open_to_read(path: str | PathLike[str], *, again: bool = False) -> Iterator[BinaryIO]:
    """Open a file, or a pipe, to be read from here to its end.

    With ``again`` a pipe, which is read once, is refused before it is opened.
    """
    if again and not stat.S_ISREG(check_to_read(path, _UNREADABLE).st_mode):
        raise InvalidCall(f"{_UNREADABLE}: it is a pipe", hint=_ANOTHER)
    if (status := status_of(path, _UNREADABLE)) is not None:
        check_not_held(status, _UNREADABLE)
    with system_errors(_UNREADABLE), open(path, "rb") as file:
        check_ends(os.fstat(file.fileno()), _UNREADABLE)
        yield file


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


class Holder(Protocol):
    """A store that has files of SQLite's open."""

    def held_files(self) -> Collection[tuple[int, int]]:
        """Return the device and inode of each of them."""
        ...


HOLDERS: Final[WeakSet[Holder]] = WeakSet()
"""The stores of this process."""
_INHERITED: Final[set[tuple[int, int]]] = set()


def check_not_held(status: os.stat_result, subject: str) -> None:
    """Refuse a file that a store of this process has open, by whatever name.

    Closing a second handle on a file drops every POSIX lock that the process has on it, and
    SQLite writes on as if it still had them. So a file of a store is opened by SQLite alone.
    """
    if any((status.st_dev, status.st_ino) in holder.held_files() for holder in [*HOLDERS]):
        raise InvalidCall(
            f"{subject}: a store of this process has it open",
            hint="name another file; what the store holds is read through the store",
        )


def check_not_inherited(path: str) -> None:
    """Refuse a file that was open when this process was forked from another."""
    if not _INHERITED:
        return
    try:
        status = os.stat(path)
    except OSError:
        return
    if (status.st_dev, status.st_ino) in _INHERITED:
        raise InvalidCall(
            f"{Path(path).name} was open in the process that this one was forked from",
            hint="open it after the fork only, or start this process anew (spawn)",
        )


def _after_fork_in_child() -> None:
    for holder in [*HOLDERS]:
        _INHERITED.update(holder.held_files())
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))  # for good: never closed here
    HOLDERS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
