"""Zip files, read where they are: nothing of them is written to a disk.

An export is mailed as a zip. The names in it are only labels, and a file that is packed beyond
what text can be is refused before it is read.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from reasoning_store import InvalidCall
from reasoning_store.formats import open_to_read

_MAGIC: Final = b"PK\x03\x04"
_ENDINGS: Final = (".json", ".jsonl")
"""How the names of histories in a zip end; no other file is looked at."""
_MOST_PACKED: Final = 100
"""How many times as large a file may become; text is packed to a tenth, or a thirtieth."""
_SMALL: Final = 1 << 20
"""The packed bytes of a file that count at least, as a small one is packed better."""


@dataclass(frozen=True, slots=True)
class ArchivedFile(os.PathLike[str]):
    """A file in a zip; its path is a label."""

    archive: str
    info: zipfile.ZipInfo

    def __fspath__(self) -> str:
        return f"{self.archive}/{self.info.filename}"

    __str__ = __fspath__


def is_archive(source: object) -> bool:
    """Whether a source is the path of a zip file."""
    if not isinstance(source, str | os.PathLike) or not os.path.isfile(source):
        return False
    with open_to_read(source) as file:
        return file.read(len(_MAGIC)) == _MAGIC


def archived_files(archive: str | os.PathLike[str]) -> list[ArchivedFile]:
    """Return the files in a zip that may be histories, in the order of their names."""
    path = os.fspath(archive)
    with _reading(path), open_to_read(path) as file, zipfile.ZipFile(file) as opened:
        infos = [info for info in opened.infolist() if info.filename.endswith(_ENDINGS)]
    return sorted((ArchivedFile(path, info) for info in infos), key=str)


@contextmanager
def open_source(source: str | os.PathLike[str], *, again: bool = False) -> Iterator[IO[bytes]]:
    """Open a file to read it, also one in a zip."""
    if not isinstance(source, ArchivedFile):
        with open_to_read(source, again=again) as file:
            yield file
        return
    info = source.info
    if info.file_size > _MOST_PACKED * max(info.compress_size, _SMALL):
        raise InvalidCall(
            f"{source}: unpacked it is more than {_MOST_PACKED} times as large",
            hint="if it is the export that you expect, unpack it, and import the folder",
        )
    with (
        _reading(str(source)),
        open_to_read(source.archive) as file,
        zipfile.ZipFile(file) as opened,
        opened.open(info) as unpacked,
    ):
        yield unpacked


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        text = f"{name}: the zip file is damaged or encrypted, or packed in an unknown way"
        raise InvalidCall(text, hint="unpack it, and import the folder") from error
