"""A disk that breaks where it is asked to, and that remembers what was written to it.

It stands between SQLite and the system, where SQLite itself puts such things: a VFS, which
hands every call on to the system's own. So what is tested is the library that is in use,
with its own caches and its own way to give up. No compiler, no right of any kind is needed.

What breaks is the Nth write, sync or truncation from now on, once or from there on. A
write that breaks has written half of its bytes, as a disk that is full does.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from types import ModuleType
from typing import Any, NamedTuple

_OK = 0
_BUSY = 5
_FULL = 13
_IOERR = 10
_IOERR_BY_KIND = {"write": _IOERR | 3 << 8, "sync": _IOERR | 4 << 8, "truncate": _IOERR | 6 << 8}

_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_Open = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)
_Write = ctypes.CFUNCTYPE(_I, _P, _P, _I, _L)
_Truncate = ctypes.CFUNCTYPE(_I, _P, _L)
_Sync = ctypes.CFUNCTYPE(_I, _P, _I)
_ShmLock = ctypes.CFUNCTYPE(_I, _P, _I, _I, _I)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = (
        ("version", _I),
        ("file_size", _I),
        ("longest_path", _I),
        ("next", _P),
        ("name", ctypes.c_char_p),
        ("data", _P),
        ("open", _P),
        *((f"other_{n}", _P) for n in range(14)),
    )


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = (
        ("version", _I),
        ("close", _P),
        ("read", _P),
        ("write", _P),
        ("truncate", _P),
        ("sync", _P),
        *((f"other_{n}", _P) for n in range(7)),
        ("shm_map", _P),
        ("shm_lock", _P),
        *((f"more_{n}", _P) for n in range(4)),
    )


class Operation(NamedTuple):
    """Something that SQLite asked of the disk."""

    kind: str
    """write, truncate, sync, lock, unlock"""
    path: str
    at: int = 0
    """The offset, the new length, or the number of the lock."""
    data: bytes = b""


@dataclass
class Disk:
    """What is done to the files of SQLite, and when it breaks."""

    kills: bool = False
    """Whether the process dies where the disk would break."""
    full: bool = False
    """Whether it breaks as a full disk does, or with an input/output error."""
    remembers: bool = False
    broke: bool = False
    """Whether anything was refused since it was told to break."""
    occupied: int = 0
    """How often a lock was asked for that another held."""
    _left: int | None = None
    _for_good: bool = False

    def __post_init__(self) -> None:
        self.operations: list[Operation] = []

    def break_at(self, nth: int, *, for_good: bool) -> None:
        """Refuse the Nth of what follows, counted from 1, or all from there on."""
        self._left, self._for_good, self.broke = nth, for_good, False

    def mend(self) -> None:
        self._left = None

    def _breaks(self) -> bool:
        if self._left is None:
            return False
        self._left -= 1
        breaks = self._left <= 0 if self._for_good else self._left == 0
        if breaks and self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        self.broke |= breaks
        return breaks

    def _asked(self, operation: Operation) -> int:
        """Return how SQLite is answered before the system is asked."""
        if operation.kind in _IOERR_BY_KIND and self._breaks():
            return _FULL if self.full else _IOERR_BY_KIND[operation.kind]
        if self.remembers:
            self.operations.append(operation)
        return _OK


_numbers = count()


def _exports(module: ModuleType) -> Any:
    package = module.__name__.partition(".")[0]
    inner = "_sqlite3" if package == "sqlite3" else f"{package}._sqlite3"
    library = ctypes.CDLL(str(import_module(inner).__file__))
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    library.sqlite3_vfs_register.argtypes = [ctypes.POINTER(_Vfs), _I]
    library.sqlite3_vfs_unregister.argtypes = [ctypes.POINTER(_Vfs)]
    return library


@contextmanager
def watched(module: ModuleType, disk: Disk) -> Iterator[Disk]:
    """Let every file that this library opens inside the block be on ``disk``.

    All of them have to be closed inside the block too.
    """
    library = _exports(module)
    system = library.sqlite3_vfs_find(None)
    names: dict[int, str] = {}
    patched: dict[int, _Methods] = {}
    alive: list[object] = []

    def patch(plain: _Methods) -> _Methods:
        made = _Methods.from_buffer_copy(plain)

        def callback(kind: Any, function: Callable[..., int]) -> int:
            wrapped = kind(function)
            alive.append(wrapped)
            address: int = ctypes.cast(wrapped, _P).value or 0
            return address

        real_write, real_sync = _Write(plain.write), _Sync(plain.sync)
        real_truncate, real_lock = _Truncate(plain.truncate), _ShmLock(plain.shm_lock)

        def write(file: int, data: int, size: int, at: int) -> int:
            given = ctypes.string_at(data, size) if disk.remembers else b""
            answer = disk._asked(Operation("write", names[file], at, given))
            if answer != _OK:
                real_write(file, data, size // 2, at)
                return answer
            return int(real_write(file, data, size, at))

        def truncate(file: int, size: int) -> int:
            answer = disk._asked(Operation("truncate", names[file], size))
            return answer or int(real_truncate(file, size))

        def sync(file: int, flags: int) -> int:
            answer = disk._asked(Operation("sync", names[file]))
            return answer or int(real_sync(file, flags))

        def shm_lock(file: int, first: int, size: int, flags: int) -> int:
            answer = int(real_lock(file, first, size, flags))
            exclusive, unlocks = flags & 8, flags & 1
            if answer == _OK and exclusive:
                for number in range(first, first + size):
                    kind = "unlock" if unlocks else "lock"
                    disk._asked(Operation(kind, names[file], number))
            disk.occupied += answer == _BUSY
            return answer

        made.write = callback(_Write, write)
        made.truncate = callback(_Truncate, truncate)
        made.sync = callback(_Sync, sync)
        made.shm_lock = callback(_ShmLock, shm_lock)
        return made

    real_open = _Open(system.contents.open)

    def open_(_: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        answer = int(real_open(ctypes.cast(system, _P), name, file, flags, out))
        methods = ctypes.cast(file, ctypes.POINTER(_P))
        address = methods[0]
        if answer == _OK and address:
            if address not in patched:
                patched[address] = patch(_Methods.from_address(address))
            methods[0] = ctypes.cast(ctypes.pointer(patched[address]), _P)
            names[file] = "" if name is None else ctypes.string_at(name).decode()
        return answer

    ours = _Vfs.from_buffer_copy(system.contents)
    # A name of its own: SQLite never forgets one that it has seen.
    ours.name = f"watched-{next(_numbers)}".encode()
    opens = _Open(open_)
    ours.open = ctypes.cast(opens, _P).value
    assert library.sqlite3_vfs_register(ctypes.byref(ours), 1) == _OK
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(ours))
