"""A session whose lines are being read: what is known of it so far, and what waits.

Knows values; writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reasoning_store.ledger.columns import Prepared
from reasoning_store.ledger.importing import Begun
from reasoning_store.ledger.importing_compactions import Given
from reasoning_store.ledger.lines import SessionLine


@dataclass(slots=True)
class Item:
    """A message on its way in."""

    number: int
    """Of its line."""
    position: int
    prepared: Prepared
    has_id: bool


@dataclass(slots=True)
class Current:
    """The session whose lines are being read."""

    line: SessionLine
    number: int
    """Of its line."""
    key: int
    encoding: str
    begun: Begun | None
    """What was written of it, where it was not there before."""
    next: dict[int, int] = field(default_factory=lambda: {1: 1})
    """Of each branch, the position that its next line has."""
    messages: int = 0
    recounted: int = 0
    """How much more its reasoning counts here than where the lines come from."""
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each branch, how far its last idempotency key reaches, and the line that says so."""
    compactions: dict[int, dict[int, tuple[int, Given]]] = field(default_factory=dict)
    """Of each branch, by number: the line that says so, and what it says."""
    erased: set[tuple[int, int]] = field(default_factory=set)
    """The branch and the position of what these lines have, and what was erased here."""
    branch: int = 1
    """That of the messages waiting."""
    waiting: list[Item] = field(default_factory=list)
    characters: int = 0

    def missing(self, branch: int) -> int | None:
        """Return the line whose idempotency key covers more of a branch than has come yet."""
        last, number = self.batches.get(branch, (0, 0))
        return number if last >= self.next[branch] else None
