"""Plain messages as columns: a text each, and perhaps one thought before it.

Theory. Nearly all of a long conversation is plain: what a user wrote, what a model thought
and then answered, whole and with nothing of a provider's on it. All that a request needs of
such messages stands in a few columns, and whatever is decided of one is decided of all
that are alike in kind. So a stretch of them is selected, mended, counted and written column
by column, for less than the values would cost to make. Whoever wants the messages one by
one gets them as values, made when they are asked for: a stretch is a part of a view like
any other, and a request is the same either way.

It knows values and their columns. It must not know SQL, policy or a protocol.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import overload

from reasoning_store.blocks import (
    Block,
    Counts,
    Exactness,
    Message,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
)
from reasoning_store.egress.verdicts import Viewed
from reasoning_store.wire.base import Thought


@dataclass(frozen=True, slots=True)
class Kind:
    """What the thoughts of many messages have in common: all but their words and number."""

    origin: Origin | None
    place: int
    """Which block of its message each is."""
    block: ThinkingBlock
    """One of them, with other words."""


@dataclass(frozen=True)
class Stretch(Sequence[Viewed]):
    """Plain messages that stand behind one another. None of its columns changes."""

    first: int
    """The name of the first; those that follow are numbered on."""
    roles: Sequence[Role]
    texts: Sequence[str]
    origins: Sequence[int | None]
    """Who made each, by a number."""
    makers: Mapping[int, Origin]
    visible: Sequence[int]
    exactness: Sequence[Exactness]
    thinking: Sequence[int]
    """The tokens of each message's thought; 0 where it has none, too."""
    kinds: Sequence[Hashable | None]
    """What each message's thought is like, by a name; None where it has none."""
    named: Mapping[Hashable, Kind]
    thoughts: Sequence[Thought | None] | None
    """Each message's thought. None, all of it, where they were not read."""

    def __len__(self) -> int:
        return len(self.texts)

    def __hash__(self) -> int:
        return id(self)

    @overload
    def __getitem__(self, at: int) -> Viewed: ...
    @overload
    def __getitem__(self, at: slice) -> Stretch: ...
    def __getitem__(self, at: int | slice) -> Viewed | Stretch:
        if isinstance(at, slice):
            return Stretch(
                self.first + at.indices(len(self))[0],
                self.roles[at],
                self.texts[at],
                self.origins[at],
                self.makers,
                self.visible[at],
                self.exactness[at],
                self.thinking[at],
                self.kinds[at],
                self.named,
                None if self.thoughts is None else self.thoughts[at],
            )
        return self._values[at]

    @property
    def thinkers(self) -> tuple[list[int], list[Hashable], list[int]]:
        """Return the names of the messages that thought, their kinds, their tokens."""
        thought = [kind is not None for kind in self.kinds]
        names = range(self.first, self.first + len(self))
        return (
            list(compress(names, thought)),
            list(compress(self.kinds, thought)),
            list(compress(self.thinking, thought)),
        )

    @cached_property
    def _values(self) -> Sequence[Viewed]:
        return [self._value(at) for at in range(len(self))]

    def _value(self, at: int) -> Viewed:
        blocks: list[Block] = [TextBlock(text=self.texts[at])]
        thinking: tuple[int, ...] = ()
        name, origin = self.kinds[at], self.origins[at]
        if name is not None:
            kind = self.named[name]
            thought = None if self.thoughts is None else self.thoughts[at]
            block = kind.block
            if thought is not None:
                block = ThinkingBlock(thought=thought[0], source_field=thought[1])
            blocks.insert(kind.place, block)
            thinking = (self.thinking[at],)
        return Viewed(
            Message(
                role=self.roles[at],
                blocks=tuple(blocks),
                origin=None if origin is None else self.makers[origin],
            ),
            Counts(visible=self.visible[at], thinking=thinking, exactness=self.exactness[at]),
            self.first + at,
        )
