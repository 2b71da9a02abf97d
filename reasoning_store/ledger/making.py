"""A file that is made beside its place, and what is left where its maker was killed.

What is not whole yet stands, with the files that SQLite puts beside it, in a folder of its
maker's, inside a hidden folder that is named after the place: so whether anything was left
there is told by one name, however many files stand beside it. The maker's folder is locked
for as long as it works on it. The kernel lets go of the lock of whoever dies, however that
is, and in whichever container: so a folder that can be locked is nobody's, and whoever makes
or opens a file of that name removes it. Where folders cannot be locked, an abandoned one cannot
be told from one in use, and all of them stay.

A lock on the file itself would not do: closing it drops SQLite's own locks of the process.

Knows files; knows nothing of what is in them.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_ATTEMPTS = 20
_MAKERS = re.compile("[a-z0-9_]{8}")


def around(target: Path) -> Path:
    """Return the folder that everything is in that is made to become ``target``."""
    return target.with_name(f".{target.name}.new")


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Give an empty file of mode 0600 that is to become ``target``; it goes at the end."""
    clear(target)
    folder, lock = _folder(target)
    try:
        fresh = folder / target.name
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield fresh
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
            _remove_if_empty(folder.parent)
        finally:
            if lock is not None:
                os.close(lock)


def put(fresh: Path, target: Path) -> bool:
    """Give what was made its name, unless somebody was first; say whether it has it."""
    try:
        os.link(fresh, target)
    except FileExistsError:
        return False
    except OSError:
        # A file system without links; there the test and the renaming are two steps.
        with _one_by_one(target):
            if target.exists():
                return False
            fresh.rename(target)
    return True


@contextmanager
def _one_by_one(target: Path) -> Iterator[None]:
    """Keep others away who are at the same, where folders are locked."""
    with ExitStack() as stack:
        with suppress(OSError):
            lock = os.open(around(target), os.O_RDONLY)
            stack.callback(os.close, lock)
            _flock(lock, wait=True)
        yield


def clear(target: Path) -> None:
    """Remove what those who were killed left of this file."""
    here = around(target)
    with suppress(OSError):
        if not stat.S_ISDIR(here.lstat().st_mode):
            return
        with os.scandir(here) as entries:
            left = [Path(one.path) for one in entries if _MAKERS.fullmatch(one.name)]
        for folder in left:
            _remove_if_left(folder)
        _remove_if_empty(here)


def _remove_if_empty(here: Path) -> None:
    with suppress(OSError):  # others make the same just now
        here.rmdir()


def _remove_if_left(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        return
    with suppress(OSError):
        lock = _locked(folder)
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _folder(target: Path) -> tuple[Path, int | None]:
    """Return a new folder and the lock that is on it; None where there are no such locks."""
    here = around(target)
    for attempt in range(_ATTEMPTS):
        try:
            here.mkdir(mode=0o700, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="", dir=here))
        except (FileNotFoundError, FileExistsError):
            if attempt == _ATTEMPTS - 1:
                raise
            continue  # somebody came to an end, and removed what was empty by then
        try:
            return folder, _locked(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # somebody found it before it was locked, and removes it
        except OSError:
            break
    return folder, None


def _locked(folder: Path) -> int:
    """Lock a folder that nobody works in; an OSError says why it is not locked."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        _flock(lock, wait=False)
        if not os.path.samestat(folder.stat(), os.fstat(lock)):
            raise FileNotFoundError
    except BaseException:
        os.close(lock)
        raise
    return lock


def _flock(opened: int, *, wait: bool) -> None:
    if sys.platform == "win32":
        raise OSError("folders are not locked here")
    from fcntl import LOCK_EX, LOCK_NB, flock

    flock(opened, LOCK_EX if wait else LOCK_EX | LOCK_NB)
