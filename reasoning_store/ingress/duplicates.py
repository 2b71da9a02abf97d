"""Which thoughts of a reply repeat another one.

Theory. A host may send one thought several times: in several fields of its own (mirrors), and
between delimiters in the text. A copy may be cut short and its white space may differ.

*Fields.* The first field that has more than white space counts. The text of another field waits
until something other than reasoning comes: by then the first field has had its chance to repeat it.
A copy is left out, and the thought that it repeats gets its seal; anything else is a thought of its
own. If every field is blank, the blank text of one field counts: the first that has a seal or other
metadata, else the first that came. Only text since the last but one such moment is compared, and
all of it if that is not enough.

*Ends.* An end that states the whole thought takes the place of the deltas if it contains them in
order. One that the deltas contain adds nothing. Any other is a thought of its own: both are kept.

*Tagged thoughts.* A copy is the beginning of one native thought, or of all of them together.
Both sides may be long and both may be many, so a beginning is found in a sorted list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reasoning_store.ingress.reply_counters import Counters

Pieces: TypeAlias = Sequence[str]
"""A text as the pieces that it came in."""


def find_copies(thoughts: Sequence[Pieces], native: Iterable[Pieces]) -> list[bool]:
    """Return, for each thought, whether a native one or all of them together begin with it."""
    whole = [without_white_space(pieces) for pieces in native]
    known = sorted([*whole, "".join(whole)])
    copies = []
    for pieces in thoughts:
        thought = without_white_space(pieces)
        # Texts that begin with it are neighbours in the list, the first where it would be itself.
        place = bisect_left(known, thought)
        copies.append(bool(thought) and place < len(known) and known[place].startswith(thought))
    return copies


def contains_in_order(whole: str, pieces: Pieces) -> bool:
    """Whether a text has all pieces of another, in their order; white space does not count."""
    text, place = without_white_space([whole]), 0
    for piece in pieces:
        sought = without_white_space([piece])
        found = text.find(sought, place)
        if found < 0:
            return False
        place = found + len(sought)
    return True


def without_white_space(pieces: Iterable[str]) -> str:
    """Return a text without its white space."""
    return "".join(["".join(piece.split()) for piece in pieces])


@dataclass(slots=True)
class WaitingThought:
    """A thought of a field that is not the first."""

    source: str
    metadata: dict[str, Any]
    pieces: list[str] = field(default_factory=list)


class MirroredFields:
    """The fields of one choice that may mirror each other."""

    def __init__(self, names: frozenset[str], counters: Counters) -> None:
        self.names = names
        self._counters = counters
        self._first_pieces: list[str] = []
        self._windows = (0, 0)
        self._waiting: dict[tuple[str, int | None], WaitingThought] = {}
        self.first: str | None = None
        """The field that counts, once one has more than white space."""
        self._blank: str | None = None
        self._copied: set[str] = set()

    @property
    def has_news(self) -> bool:
        """Whether a field has had text since the last ``settle``."""
        return bool(self._waiting) or self._windows[1] < len(self._first_pieces)

    def add_first(self, text: str) -> None:
        """Add a piece of the first field."""
        if text:
            self._first_pieces.append(text)

    def choose_first(self, source: str, text: str) -> str:
        """Make a field the first; return its earlier text, which is blank."""
        self.first = source
        self.add_first(text)
        own = [key for key in self._waiting if key[0] == source]
        return "".join([piece for key in own for piece in self._waiting.pop(key).pieces])

    def take_blank(self, source: str, key: int | None, text: str) -> str:
        """Take a blank piece of a real thought; return the thought's earlier text."""
        waiting = self._waiting.pop((source, key), None)
        earlier = "".join(waiting.pieces) if waiting else ""
        if earlier or text:
            self._blank = self._blank or source
        return earlier

    def add_waiting(
        self, source: str, key: int | None, text: str, metadata: Mapping[str, Any], *, whole: bool
    ) -> WaitingThought:
        """Add a piece of a field that is not the first."""
        waiting = self._waiting.setdefault((source, key), WaitingThought(source, {}))
        if whole and text:
            if not contains_in_order(text, waiting.pieces):
                # Another statement of the thought, or another thought: both are kept.
                self._waiting[source, -id(waiting)] = self._waiting.pop((source, key))
                waiting = self._waiting[source, key] = WaitingThought(source, {})
            waiting.pieces.clear()
        if text:
            waiting.pieces.append(text)
        waiting.metadata |= metadata
        return waiting

    def drop_waiting(self, source: str, key: int | None) -> None:
        """Leave out a copy."""
        waiting = self._waiting.pop((source, key), None)
        if waiting is not None:
            self._count_copy(waiting)

    def settle(self) -> list[tuple[WaitingThought, bool]]:
        """Return each waiting thought, with whether it is a copy of the first field."""
        waiting, self._waiting = self._waiting, {}
        settled = [(item, self._is_copy(item)) for item in waiting.values()]
        for item, is_copy in settled:
            if is_copy:
                self._count_copy(item)
        self._windows = (self._windows[1], len(self._first_pieces))
        return settled

    def _count_copy(self, item: WaitingThought) -> None:
        """Count a field once, however often it repeats the first."""
        if item.source not in self._copied and without_white_space(item.pieces):
            self._copied.add(item.source)
            self._counters.suppressed_duplicates += 1

    def _is_copy(self, item: WaitingThought) -> bool:
        if self.first is None:
            self._blank = self._blank or item.source
            return item.source != self._blank
        start = self._windows[0]
        recent = self._first_pieces[start:]
        if item.pieces == recent:
            return True  # piece by piece, as most hosts send it
        text = without_white_space(item.pieces)
        return text in without_white_space(recent) or (
            start > 0 and text in without_white_space(self._first_pieces)
        )
