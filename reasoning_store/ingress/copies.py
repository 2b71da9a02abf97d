"""Which thoughts taken out of the text repeat a native one.

A host may send one thought twice: between delimiters in the text, and in a field of its own.
The copy may be cut short and its white space may differ; the native thought may stand in
several blocks. So a copy is what begins a native thought, or all of them together, white
space aside.

Of a thought that is whole ``Copies`` tells; ``Echo`` of a text that is still coming, whether
it can be a copy yet.

Both may be long, and both may be many. White space is folded a stretch at a time, so that a
thought is never a list of its words, and a beginning is found in a sorted list. It knows
texts, and nothing of blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

_STRETCH = 65_536


class Copies:
    """The native thoughts, each as the pieces it came in: what begins one is a copy."""

    __slots__ = ("_thoughts",)

    def __init__(self, thoughts: Iterable[Sequence[str]]) -> None:
        native = [tuple(pieces) for pieces in thoughts]
        whole = [piece for pieces in native for piece in pieces]
        several = [whole] if len(native) > 1 else []
        self._thoughts = sorted(folded(pieces) for pieces in (*native, *several))

    def __contains__(self, pieces: Sequence[str]) -> bool:
        thought = folded(pieces)
        # All texts that begin with it stand together, the first of them where it would stand.
        place = bisect_left(self._thoughts, thought)
        first = self._thoughts[place] if place < len(self._thoughts) else ""
        return bool(thought) and first.startswith(thought)


class Echo:
    """A text that may be repeating what was thought, white space aside, as it goes on."""

    __slots__ = ("_block", "_piece", "_said", "_thoughts", "_upto")

    def __init__(self, thoughts: Sequence[Sequence[str]]) -> None:
        self._thoughts = thoughts
        """Each as the pieces it came in; there may be more of them by and by."""
        self._block = self._piece = 0
        self._said = ""  # the piece that is being repeated
        self._upto = 0

    def goes_on(self, text: str) -> bool:
        """Take in the next of the text; say whether all so far repeats what was thought."""
        words = "".join(text.split())
        start = 0
        while start < len(words):
            if self._upto == len(self._said) and not self._next():
                return False
            count = min(len(words) - start, len(self._said) - self._upto)
            if not self._said.startswith(words[start : start + count], self._upto):
                return False
            start += count
            self._upto += count
        return True

    def _next(self) -> bool:
        """Go on to the next piece that says something; False where there is none yet."""
        while self._block < len(self._thoughts):
            pieces = self._thoughts[self._block]
            while self._piece < len(pieces):
                self._said, self._upto = "".join(pieces[self._piece].split()), 0
                self._piece += 1
                if self._said:
                    return True
            if self._block + 1 == len(self._thoughts):
                break
            self._block, self._piece = self._block + 1, 0
        return False


def folded(pieces: Iterable[str]) -> str:
    """Return a text with one space for every run of white space, and none around it."""
    return "".join(_folded(pieces)).rstrip(" ")


def _folded(pieces: Iterable[str]) -> Iterator[str]:
    spaced = True  # what is given out so far ends in white space, or is nothing
    for stretch in _stretches(pieces):
        words = " ".join(stretch.split())
        if not words:
            gap = "" if spaced else " "
            spaced = True
            yield gap
            continue
        if not spaced and stretch[0].isspace():
            yield " "
        yield words
        spaced = stretch[-1].isspace()
        if spaced:
            yield " "


def _stretches(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        for start in range(0, len(piece), _STRETCH):
            yield piece[start : start + _STRETCH]
