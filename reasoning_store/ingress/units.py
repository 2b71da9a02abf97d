"""The blocks of thinking that are open, and the chunks that begin, grow and end them.

Whatever asks for them, a block has one start, then its deltas, then one end, and its number
is its place among all of the message's blocks in the order in which they began.
A unit that the protocol numbers is found by that ``key`` until it is ended. Of those that it
does not number one at most, the *loose* one, is open for what comes next.

This module knows lifecycles. It must not know which of several fields counts, nor what
stands in the text: that is ``channels``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoning_store.chunks import Chunk, Phase, ReasoningChunk


@dataclass(slots=True)
class Unit:
    """A reasoning block: its place, and what it said so far."""

    number: int
    metadata: Mapping[str, Any]
    key: int | None = None
    said: list[str] = field(default_factory=list)
    ended: bool = False


class Units:
    """The reasoning blocks of one choice, and the numbers of all its blocks."""

    __slots__ = ("_by_key", "_choice", "_ended", "_numbers", "_open", "_provider", "loose")

    def __init__(self, provider: str, choice: int) -> None:
        self._provider = provider
        self._choice = choice
        self._numbers = 0
        self._open: dict[int, Unit] = {}
        self._by_key: dict[int, Unit] = {}
        self._ended: dict[int, int] = {}
        self.loose: Unit | None = None

    def number(self) -> int:
        """Return the place of a block that begins."""
        self._numbers += 1
        return self._numbers - 1

    def find(self, key: int | None) -> Unit | None:
        """Return the open unit that a piece with this key goes on with."""
        return self.loose if key is None else self._by_key.get(key)

    def ended(self, key: int | None) -> int | None:
        """Return the place of the unit that was last ended under this key."""
        return None if key is None else self._ended.get(key)

    def opened(self) -> list[Unit]:
        """Return what is open, in the order in which it began."""
        return list(self._open.values())

    def begin(
        self,
        metadata: Mapping[str, Any],
        out: list[Chunk],
        *,
        key: int | None = None,
        number: int | None = None,
    ) -> Unit:
        """Begin a unit at the end, or at the place that was kept for it."""
        unit = Unit(self.number() if number is None else number, metadata, key)
        self._open[unit.number] = unit
        if key is not None:
            self._by_key[key] = unit
        out.append(self.piece("start", unit.number, "", _still(metadata)))
        return unit

    def grow(self, unit: Unit, text: str, metadata: Mapping[str, Any], out: list[Chunk]) -> None:
        if text:
            unit.said.append(text)
        if metadata.get("sourceField") != unit.metadata.get("sourceField"):
            unit.metadata = metadata  # the first field to speak was not the one it began with
        out.append(self.piece("delta", unit.number, text, metadata))

    def end(self, unit: Unit, out: list[Chunk], *, interrupted: bool = False) -> None:
        unit.ended = True
        del self._open[unit.number]
        if unit is self.loose:
            self.loose = None
        if unit.key is not None:
            del self._by_key[unit.key]
            self._ended[unit.key] = unit.number
        out.append(
            self.piece("end", unit.number, "", _still(unit.metadata), complete=not interrupted)
        )

    def end_loose(self, out: list[Chunk]) -> None:
        if self.loose is not None:
            self.end(self.loose, out)

    def piece(
        self,
        phase: Phase,
        number: int,
        text: str,
        metadata: Mapping[str, Any],
        *,
        complete: bool = False,
    ) -> ReasoningChunk:
        return ReasoningChunk(
            provider=self._provider,
            phase=phase,
            text=text,
            content_index=number,
            is_complete=complete,
            metadata=metadata,
            choice=self._choice,
        )


def _still(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is known of a block from its start to its end."""
    return {name: metadata[name] for name in ("sourceField", "group") if name in metadata}
