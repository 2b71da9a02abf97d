"""A file that a command writes: complete, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from reasoning_store import InvalidCall
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call
from reasoning_store.cli.options import name_in_error
from reasoning_store.ledger.database import files


def check_output(call: Call, path: Path) -> None:
    """Refuse a path where no file can be, and the database's own files."""
    from reasoning_store.ledger.database.backup import check_target

    check_target(path.absolute(), store_access.database_file(call), replace=True)


@contextmanager
def complete_file(path: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """Give a file its name once it is written completely."""
    if path.exists() and not overwrite:
        raise InvalidCall(f"{path} exists already", hint="name another file, or pass --overwrite")
    with files.system_errors(f"{path} cannot be written"):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with name_in_error(str(path)), open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
