"""Plain messages as columns: a text each, and perhaps one thought before it.

Theory. Nearly all of a long conversation is plain: what a user wrote, what a model thought
and then answered, whole and with nothing of a provider's on it but what signs the thought.
All that a request needs of such messages stands in a few columns, and whatever is decided
of one is decided of all that are alike in kind. So a stretch of them is selected, mended,
counted and written column by column, for less than the values would cost to make. Whoever
wants the messages one by one gets them as values, made when they are asked for and kept by
nobody here: a stretch is a part of a view like any other, and a request is the same either
way.

It knows values and their columns. It must not know SQL, policy or a protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, repeat
from typing import TypeAlias, overload

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
from reasoning_store.egress.verdicts import REASONS, Rule, Verdict, Viewed

Rulings: TypeAlias = Mapping[Hashable, tuple[bool, Rule]]
"""Of each kind of thoughts whether it goes, and by which rule."""


@dataclass(frozen=True, slots=True)
class ThoughtKind:
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
    named: Mapping[Hashable, ThoughtKind]
    thoughts: Sequence[str | None] | None
    """Each message's thought. None, all of it, where they were not read."""
    seals: Sequence[str | None] | None = None
    """The signature of each thought. None, all of it, where none has one, or none was read."""
    asked: Sequence[str | None] | None = None
    """What ``Viewed.asked_with`` is of each. None, all of it, where nothing is known."""

    def __len__(self) -> int:
        return len(self.texts)

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
                None if self.seals is None else self.seals[at],
                None if self.asked is None else self.asked[at],
            )
        return self._value(range(len(self))[at])

    def __iter__(self) -> Iterator[Viewed]:
        return map(self._value, range(len(self)))

    def tokens_of(self, kinds: Collection[Hashable]) -> int:
        """Return what the thoughts of these kinds count."""
        if len(kinds) == len(self.named):
            return sum(self.thinking)
        if not kinds:
            return 0
        return sum(compress(self.thinking, [kind in kinds for kind in self.kinds]))

    def examples(self) -> list[Viewed]:
        """Return the first of those that nothing but words and numbers tells apart, in order."""
        firsts: dict[Hashable, int] = {}
        asked = self.asked or repeat(None, len(self))
        for at, alike in enumerate(zip(self.roles, self.kinds, asked, strict=True)):
            firsts.setdefault(alike, at)
        return [self._value(at) for at in firsts.values()]

    def _value(self, at: int) -> Viewed:
        blocks: list[Block] = [TextBlock(text=self.texts[at])]
        thinking: tuple[int, ...] = ()
        name, origin = self.kinds[at], self.origins[at]
        if name is not None:
            kind = self.named[name]
            thought = None if self.thoughts is None else self.thoughts[at]
            block = kind.block
            if thought is not None:
                seal = None if self.seals is None else self.seals[at]
                block = ThinkingBlock(
                    thought=thought, source_field=block.source_field, signature=seal
                )
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
            asked_with=None if self.asked is None else self.asked[at],
        )


class Verdicts(Sequence[Verdict]):
    """The verdicts about a stretch, made when somebody asks for one."""

    def __init__(self, stretch: Stretch, rulings: Rulings) -> None:
        # Not the stretch: a request that somebody keeps must not keep what was thought.
        self._first = stretch.first
        self._kinds = stretch.kinds
        self._thinking = stretch.thinking
        self._said = {
            name: (stretch.named[name].place, kept, rule, REASONS[rule])
            for name, (kept, rule) in rulings.items()
        }
        self._length = len(stretch) - stretch.kinds.count(None)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, at: int | slice) -> Verdict | Sequence[Verdict]:
        return self._made[at]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._made)

    @cached_property
    def _made(self) -> Sequence[Verdict]:
        made = []
        rows = zip(self._kinds, self._thinking, strict=True)
        for message, (name, tokens) in enumerate(rows, self._first):
            if name is not None:
                block, kept, rule, reason = self._said[name]
                made.append(Verdict(message, block, kept, rule, tokens, reason))
        return made
