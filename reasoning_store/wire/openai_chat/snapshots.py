"""Text of which each piece may repeat all that came before it."""

from __future__ import annotations

from typing import Final

_TELLING: Final = 8
"""From this length on, a piece that repeats the one before it is a snapshot, not chance."""


class Snapshots:
    """One text of a host that may send it as growing snapshots, or as plain fragments.

    While each piece repeats the one before it and more, both are possible. Short pieces
    do so by chance ("a", "and"), so they wait until a longer one decides, or until the text
    is over. Nothing is held once one of the two is certain.
    """

    def __init__(self) -> None:
        self._mode = "unknown"
        self._last = ""
        self._size_given = 0
        self._held: list[str] = []

    def new_text(self, piece: str) -> str:
        """Return the new text of this piece, as far as it is known to be new."""
        if self._mode == "fragments":
            return piece
        if self._mode == "snapshots":
            return self._new_in_snapshot(piece)
        if not self._last:
            self._last, self._size_given = piece, len(piece)
            return piece
        if not piece.startswith(self._last):
            return self.rest() + piece
        is_snapshot = len(piece) >= _TELLING and len(piece) > len(self._last) and self._last.strip()
        if not is_snapshot:
            self._held.append(piece)
            self._last = piece
            return ""
        self._mode, self._last = "snapshots", piece
        self._held.clear()
        return piece[self._size_given :]

    def rest(self) -> str:
        """Return the pieces that waited: the text is over, or they are plain fragments."""
        held = "".join(self._held)
        if self._mode == "unknown":
            self._mode, self._last = "fragments", ""
            self._held.clear()
        return held

    @property
    def waiting(self) -> bool:
        return bool(self._held)

    def _new_in_snapshot(self, piece: str) -> str:
        if piece.startswith(self._last):
            size, self._last = len(self._last), piece
            return piece[size:]
        if self._last.startswith(piece):
            return ""  # an older snapshot once more
        self._last = piece
        return piece
