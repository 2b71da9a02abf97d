"""How often a reply was mended on its way in: the counters on a message's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

COUNTERS: Final[Mapping[str, str]] = {
    "stripped_delimiters": "strippedDelimiters",
    "extracted_blocks": "extractedBlocks",
    "suppressed_duplicates": "suppressedDuplicates",
    "unknown_chunks": "unknownChunks",
}
"""Each counter with its name in a message's metadata."""


@dataclass(slots=True, kw_only=True)
class Counters:
    """The counters of one choice."""

    stripped_delimiters: int = 0
    """Delimiters taken out of the text."""
    extracted_blocks: int = 0
    """Thoughts found in the text."""
    suppressed_duplicates: int = 0
    """Copies of a thought that were left out."""
    unknown_chunks: int = 0
    """Events that were not understood."""
    removed: list[dict[str, Any]] = field(default_factory=list, compare=False)
    """The first delimiters that were removed and belong to no block: each text, and the length of
    the visible text before it."""

    def to_metadata(self) -> dict[str, Any]:
        """Return the counters that are not zero, and the delimiters that belong to no block."""
        counts = {key: count for name, key in COUNTERS.items() if (count := getattr(self, name))}
        return {**counts, "removedDelimiters": [*self.removed]} if self.removed else counts


def read_counters(metadata: Mapping[str, Any] | None) -> Counters:
    """Return the counters of a message."""
    notes = metadata or {}
    return Counters(**{name: notes.get(key, 0) for name, key in COUNTERS.items()})
