"""The files of an import, read one after the other: a single one, or those of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reasoning_store import InvalidCall, ReasoningStoreError
from reasoning_store.cli.output import plural

if TYPE_CHECKING:
    from reasoning_store.formats import Conversation

LINES = "lines"
"""The format of an export of our own."""
_ENDINGS = (".json", ".jsonl", ".db", ".sqlite", ".sqlite3")
"""How the names of histories end: in a folder, no other file is looked at."""


@dataclass(slots=True, kw_only=True)
class HistoryFile:
    """A file whose format is known, and what became of it."""

    path: str | os.PathLike[str]
    """Its place; of a file in a zip, a label."""
    format: str | None
    conversations: int = 0
    error: str | None = None
    """Why it could not be read to its end."""


@dataclass(slots=True, kw_only=True)
class HistoryFiles:
    """The histories of a file or a folder, and the other files there."""

    files: list[HistoryFile]
    others: list[str] = field(default_factory=list)
    is_folder: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: list[HistoryFile] = field(default_factory=list)
    """The file of each conversation that was read."""

    def conversations(self) -> Iterator[Conversation]:
        """Yield the conversations of each file. In a folder an error ends only its own file.

        A file of a folder that holds no message is one of the others after all.
        """
        from reasoning_store.importers import formats

        for file in [file for file in self.files if file.error is None]:
            try:
                for one in formats.conversations(file.path, format=file.format, **self.options):
                    if one.items or not self.is_folder:
                        file.conversations += 1
                        self.sources.append(file)
                        yield one
            except (ReasoningStoreError, OSError) as error:
                if not self.is_folder:
                    raise
                file.error = str(error)
            if self.is_folder and file.error is None and not file.conversations:
                self.files.remove(file)
                self.others.append(str(file.path))


def find_histories(folder: str, only: str | None, options: Mapping[str, Any]) -> HistoryFiles:
    """Return the histories in a folder or a zip, or only those of a format, by their names.

    A file is looked at as far as its format shows.
    """
    from reasoning_store.importers import archives, formats

    found = HistoryFiles(files=[], is_folder=True, options=options)
    is_folder = os.path.isdir(folder)
    for path in _files_below(folder) if is_folder else archives.archived_files(folder):
        file = _look_at(path, only, may_be_any=not is_folder)
        if file is None:
            found.others.append(str(path))
        else:
            found.files.append(file)
    if not found.files:
        raise InvalidCall(
            f"{folder} holds no history" + (f" in the format {only}" if only else ""),
            hint=f"{plural(len(found.others), 'file was', 'files were')} looked at; the formats "
            f"are {', '.join(formats.READERS)}",
        )
    return found


def _look_at(
    path: str | os.PathLike[str], only: str | None, *, may_be_any: bool
) -> HistoryFile | None:
    """Return a history, or a file that cannot be read and may be one; ``None`` for any other.

    JSON lines of which not even the first can be read are one: programs keep theirs so.
    """
    from reasoning_store.importers import formats

    try:
        format = formats.detect(path)
    except formats.Foreign:
        return None
    except (ReasoningStoreError, OSError) as failure:
        may_be = may_be_any or isinstance(failure, OSError) or str(path).endswith(".jsonl")
        return HistoryFile(path=path, format=only, error=str(failure)) if may_be else None
    if format != (only or format):
        return None
    error = "an export of this package: import it by itself" if format == LINES else None
    return HistoryFile(path=path, format=format, error=error)


def _files_below(folder: str) -> Sequence[str]:
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(_ENDINGS) and os.path.isfile(os.path.join(parent, name))
    )
