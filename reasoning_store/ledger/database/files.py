"""Files at a path, and one error of ours where the system refuses one.

Python's own answers differ with its version: for a name that is too long, or that goes through
a file, ``exists`` is False here and raises there; a NUL is a ``ValueError``.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

from reasoning_store.conversation.errors import InvalidCall, StoreFull
from reasoning_store.ledger.database import open_files

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
    open_files.check_not_held(status, subject)
    return status


@contextmanager
def open_to_read(path: str | PathLike[str], *, again: bool = False) -> Iterator[BinaryIO]:
    """Open a file, or a pipe, to be read from here to its end.

    With ``again`` a pipe, which is read once, is refused before it is opened.
    """
    if again and not stat.S_ISREG(check_to_read(path, _UNREADABLE).st_mode):
        raise InvalidCall(f"{_UNREADABLE}: it is a pipe", hint=_ANOTHER)
    if (status := status_of(path, _UNREADABLE)) is not None:
        open_files.check_not_held(status, _UNREADABLE)
    with system_errors(_UNREADABLE), open(path, "rb") as file:
        check_ends(os.fstat(file.fileno()), _UNREADABLE)
        yield file
