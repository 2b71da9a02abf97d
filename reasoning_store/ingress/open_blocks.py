"""The thinking blocks of one choice that are open, and the indices of all its blocks.

A block has one start, then its deltas, then one end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoning_store.conversation.chunks import Chunk, Phase, ReasoningChunk


@dataclass(slots=True)
class OpenThought:
    """A thinking block: its place in the message, and its text so far."""

    index: int
    metadata: Mapping[str, Any]
    key: int | None
    """The protocol's number for it, if it has one."""
    pieces: list[str] = field(default_factory=list)
    ended: bool = False


class OpenBlocks:
    """Begins, grows and ends thinking blocks; the chunks go to ``out``.

    ``unnumbered`` is the one block that the next piece without a key continues.
    """

    def __init__(self, provider: str, choice: int, out: list[Chunk]) -> None:
        self._provider = provider
        self._choice = choice
        self._out = out
        self._count = 0
        self._open: dict[int, OpenThought] = {}
        self._by_key: dict[int | None, OpenThought] = {}
        self._past: dict[int | None, int] = {}

    def next_index(self) -> int:
        """Return the index of a block of any kind that begins."""
        self._count += 1
        return self._count - 1

    def find(self, key: int | None) -> OpenThought | None:
        """Return the open block that a piece with this key continues."""
        return self._by_key.get(key)

    def past_index(self, key: int | None) -> int | None:
        """Return the index of the block that was last ended under this key of the protocol."""
        return None if key is None else self._past.get(key)

    def begin(
        self,
        index: int,
        metadata: Mapping[str, Any],
        *,
        key: int | None = None,
        continues: bool = True,
    ) -> OpenThought:
        """Begin a block; with ``continues`` later pieces find it by its key."""
        block = self._open[index] = OpenThought(index, metadata, key)
        if continues:
            self._by_key[key] = block
        self._out.append(self.piece("start", index, "", _lasting(metadata)))
        return block

    def grow(self, block: OpenThought, text: str, metadata: Mapping[str, Any]) -> None:
        """Add text and metadata to a block."""
        if text:
            block.pieces.append(text)
        if metadata.get("sourceField") != block.metadata.get("sourceField"):
            block.metadata = metadata  # the first field with text is not the one it began with
        self._out.append(self.piece("delta", block.index, text, metadata))

    def end(self, block: OpenThought, *, interrupted: bool = False, whole: str = "") -> None:
        """End a block; ``whole`` is its text where the deltas did not come to it."""
        block.ended = True
        if whole:
            block.pieces[:] = [whole]
        del self._open[block.index]
        if self._by_key.get(block.key) is block:
            del self._by_key[block.key]
        self._past[block.key] = block.index
        metadata = _lasting(block.metadata)
        self._out.append(self.piece("end", block.index, whole, metadata, complete=not interrupted))

    def end_unnumbered(self) -> None:
        """End the block without a number: a piece of another kind comes (EC-003)."""
        if block := self._by_key.get(None):
            self.end(block)

    def end_all(self, *, interrupted: bool) -> None:
        """End every open block, in the order in which they began."""
        for block in [*self._open.values()]:
            self.end(block, interrupted=interrupted)

    def piece(
        self,
        phase: Phase,
        index: int,
        text: str,
        metadata: Mapping[str, Any],
        *,
        complete: bool = False,
    ) -> ReasoningChunk:
        """Return a chunk of a block."""
        return ReasoningChunk(
            provider=self._provider,
            phase=phase,
            text=text,
            content_index=index,
            is_complete=complete,
            metadata=metadata,
            choice=self._choice,
        )


def _lasting(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata that a block has from its start to its end."""
    return {name: metadata[name] for name in ("sourceField", "group") if name in metadata}
