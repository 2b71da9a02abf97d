"""A tag filter that remembers where visible text arrived.

What may yet become a delimiter is held, and something else may come before it is decided: a
tool call, a picture. Found to be text after all, it belongs where it arrived, before what
came between. So every delta carries the owner's ``mark``, and after each feed ``older`` says
which of the first visible characters came under earlier ones. Visible text leaves in the
order in which it arrived, which is why the first are all that can be older.

It watches what the two lexers consume and give out; it decides nothing. It needs the
filter's events, and must not know what a mark stands for.
"""

from __future__ import annotations

import copy
from typing import Self, TypeAlias

from reasoning_store.ingress.tags import Run, TagFilter

Stretches: TypeAlias = tuple[tuple[int, int], ...]
"""How many characters came under which mark, in order."""


class PlacedTagFilter(TagFilter):
    """A tag filter of which one can ask where its visible text arrived."""

    __slots__ = ("_decided", "_undecided", "_watching", "mark", "older")

    def reset(self) -> None:
        super().reset()
        self.mark = 0
        """Under which the next delta arrives; it only ever grows."""
        self.older: list[tuple[int, int]] = []
        """The marks of the first visible characters that were given out, the reader's to take."""
        self._undecided: Stretches = ()  # held by the first lexer
        self._decided: Stretches = ()  # held by the second
        self._watching = False

    def fork(self) -> Self:
        """Return the same, to go on with apart from this one."""
        other = copy.copy(self)
        other.older = list(self.older)
        return other

    def finish(self) -> list[Run]:
        self._watch()
        runs = super().finish()
        self._note(self._decided)
        self._undecided = self._decided = ()
        return runs

    def _lex(self, delta: str) -> list[Run]:
        self._watch()
        if not self._watching:
            runs = super()._lex(delta)
            self._undecided = ((self.mark, len(self._carry)),) if self._carry else ()
            self._decided = ((self.mark, len(self._seam)),) if self._seam else ()
            return runs
        self._undecided += ((self.mark, len(delta)),)
        return super()._lex(delta)

    def _watch(self) -> None:
        """Watch what is consumed only while something older is held, which is seldom."""
        held = self._decided or self._undecided
        self._watching = bool(held) and held[0][0] != self.mark

    def _lead(self, text: str, runs: list[Run]) -> int:
        start = super()._lead(text, runs)
        if self._watching:
            behind = len(text) - start
            self._take(sum(count for _, count in self._undecided) - behind)
        return start

    def _turn(self, token: str, runs: list[Run]) -> None:
        if self._watching:
            self._take(len(token))
        super()._turn(token, runs)

    def _think(self, text: str, runs: list[Run]) -> None:
        if self._watching:
            self._take(len(text))
        super()._think(text, runs)

    def _show(self, text: str, runs: list[Run], *, cut: bool) -> None:
        if not self._watching:
            super()._show(text, runs, cut=cut)
            return
        self._decided += self._take(len(text))
        before = len(runs)
        super()._show(text, runs, cut=cut)
        for run in runs[before:]:
            given, self._decided = _split(self._decided, len(run.text))
            if run.phase == "delta":
                self._note(given)

    def _take(self, count: int) -> Stretches:
        taken, self._undecided = _split(self._undecided, count)
        return taken

    def _note(self, given: Stretches) -> None:
        self.older += [stretch for stretch in given if stretch[0] != self.mark]


def _split(stretches: Stretches, count: int) -> tuple[Stretches, Stretches]:
    """Return the first so many characters, and the others."""
    first: list[tuple[int, int]] = []
    for place, (mark, here) in enumerate(stretches):
        if here > count:
            head = ((mark, count),) if count else ()
            return (*first, *head), ((mark, here - count), *stretches[place + 1 :])
        first.append((mark, here))
        count -= here
    return tuple(first), ()
