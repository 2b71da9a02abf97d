"""The files of an import, read one after the other: a single one, or those of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reasoning_store.cli.output import plural
from reasoning_store.conversation.errors import InvalidCall, ReasoningStoreError

if TYPE_CHECKING:
    from reasoning_store.importers.values import Conversation

LINES = "lines"
"""The format of an export of our own."""
_ENDINGS = (".json", ".jsonl", ".db", ".sqlite", ".sqlite3")
"""How the names of histories end: in a folder, no other file is looked at."""


@dataclass(slots=True, kw_only=True)
class HistoryFile:
    """A file whose format is known, and what became of it."""

    path: str
    format: str
    conversations: int = 0
    error: str | None = None
    """Why it could not be read to its end."""


@dataclass(slots=True, kw_only=True)
class HistoryFiles:
    """The histories of a file or a folder, and the number of other files there."""

    files: list[HistoryFile]
    others: int = 0
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
                self.others += 1


def find_histories(folder: str, only: str | None) -> HistoryFiles:
    """Return the histories below a folder, or only those of a format, in the order of their names.

    A file is looked at as far as its format shows.
    """
    from reasoning_store.importers import formats

    found = HistoryFiles(files=[], is_folder=True)
    for path in _files_below(folder):
        try:
            format = formats.detect(path)
        except (ReasoningStoreError, OSError):
            format = None
        if format is None or format != (only or format):
            found.others += 1
        else:
            error = "an export of this package: import it by itself" if format == LINES else None
            found.files.append(HistoryFile(path=path, format=format, error=error))
    if not found.files:
        raise InvalidCall(
            f"{folder} holds no history" + (f" in the format {only}" if only else ""),
            hint=f"{plural(found.others, 'file was', 'files were')} looked at; the formats are "
            f"{', '.join(formats.READERS)}",
        )
    return found


def _files_below(folder: str) -> Sequence[str]:
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(_ENDINGS) and os.path.isfile(os.path.join(parent, name))
    )
