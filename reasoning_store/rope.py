"""A sequence that grows at its end, whose forks share what they have in common.

Theory. A request is built again and again from a conversation that is a little longer each
time. What was there before is the same, so nobody needs a copy of it: a rope is a few
chunks that never change, behind them a short list of its own. A fork takes the chunks over
and copies the list; once that has grown long it becomes a chunk, too. Two ropes of one
descent are compared by their chunks, so that costs next to nothing however long they are.

A rope belongs to whoever made it and only grows. Any number of threads may read and fork
one that nobody lets grow any more. It must not know what its items are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Self, TypeVar, overload

T = TypeVar("T")

_LONG = 512
"""Items of one's own that are not copied any more but shared."""


class Rope(Sequence[T]):
    """Chunks that never change, and behind them a list that grows."""

    __slots__ = ("_parts",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._parts: tuple[tuple[Sequence[T], ...], list[T]] = ((), list(items))

    def fork(self) -> Rope[T]:
        """Return the same, to let grow apart from this one."""
        chunks, own = self._parts
        if len(own) >= _LONG:
            # One assignment: whoever forks this at the same time sees all of it or nothing.
            self._parts = chunks, own = (*chunks, own), []
        other: Rope[T] = Rope()
        other._parts = chunks, own.copy()
        return other

    def append(self, item: T) -> None:
        self._parts[1].append(item)

    def extend(self, items: Iterable[T]) -> None:
        self._parts[1].extend(items)

    def __iadd__(self, items: Iterable[T]) -> Self:
        self.extend(items)
        return self

    def join(self, chunk: Sequence[T]) -> None:
        """Put a chunk at the end that nobody changes any more."""
        chunks, own = self._parts
        self._parts = ((*chunks, own, chunk) if own else (*chunks, chunk)), []

    @property
    def chunks(self) -> tuple[Sequence[T], ...]:
        """Everything, in order, in as few pieces as there are."""
        chunks, own = self._parts
        return (*chunks, own) if own else chunks

    def part(self, first: int, last: int) -> Rope[T]:
        """Return what stands from ``first`` to before ``last``, while this one does not grow.

        Whole chunks are shared.
        """
        out: Rope[T] = Rope()
        start = 0
        for chunk in self.chunks:
            end = start + len(chunk)
            if first < end and start < last:
                whole = first <= start and end <= last
                out.join(chunk if whole else chunk[max(first - start, 0) : last - start])
            start = end
        return out

    def alike(self, other: Rope[T]) -> int:
        """Return how many of the first items are the same in both."""
        same = 0
        mine, theirs = filter(len, self.chunks), filter(len, other.chunks)
        one: Sequence[T] = ()
        another: Sequence[T] = ()
        while (one := one or next(mine, ())) and (another := another or next(theirs, ())):
            both = min(len(one), len(another))
            if one is not another:
                found = _alike(one[:both], another[:both])
                if found < both:
                    return same + found
            same += both
            one, another = one[both:], another[both:]
        return same

    def __len__(self) -> int:
        chunks, own = self._parts
        return sum(map(len, chunks)) + len(own)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.chunks)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            first, last, step = at.indices(len(self))
            return list(self.part(first, last))[::step] if step > 0 else list(self)[at]
        if at < 0:
            at += len(self)
        if at >= 0:
            for chunk in self.chunks:
                if at < len(chunk):
                    return chunk[at]
                at -= len(chunk)
        raise IndexError("there is no such item")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rope):
            return NotImplemented
        return len(self) == len(other) and self.alike(other) == len(self)

    def __repr__(self) -> str:
        return f"Rope({list(self)!r})"


def _alike(one: Sequence[T], another: Sequence[T]) -> int:
    """Return how many of the first items are the same in two pieces of one length."""
    if one == another:  # a piece may say so without being looked at one by one
        return len(one)
    pairs = enumerate(zip(one, another, strict=True))
    differing = (at for at, (mine, theirs) in pairs if mine is not theirs and mine != theirs)
    return next(differing, len(one))


def pieces(items: Sequence[T]) -> tuple[Sequence[T], ...]:
    """Return the chunks of a rope; anything else is one."""
    return items.chunks if isinstance(items, Rope) else (items,)


def rope(items: Sequence[T]) -> Rope[T]:
    """Return a sequence as a rope; one that is a rope is itself."""
    if isinstance(items, Rope):
        return items
    made: Rope[T] = Rope(items)
    return made
