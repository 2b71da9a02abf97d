"""What stands in a view, and what it comes to: values, as in ``values``.

A view is a conversation as a request would carry it: a summary in the place of each range
that was compacted, and old tool results cleared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reasoning_store.blocks import Counts, Exactness, Message, Origin, Role
from reasoning_store.ledger.shapes import Shape
from reasoning_store.ledger.values import (
    Entry,
    OwnThinking,
    SentRow,
    SessionRow,
    State,
    StoredRow,
)


@dataclass(frozen=True, slots=True)
class SummaryRange:
    """The messages ``first..last`` for which a summary stands, and what that counts."""

    number: int
    first: int
    last: int
    tokens: int
    exactness: Exactness = "exact"


@dataclass(frozen=True, slots=True)
class Cleared:
    """The tool results up to and with ``last`` are cleared."""

    number: int
    last: int


@dataclass(frozen=True, slots=True)
class InForce:
    """What makes a view another thing than its messages."""

    ranges: tuple[SummaryRange, ...] = ()
    cleared: Cleared | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of all of them: a view with others is another view."""
        some = tuple([one.number for one in self.ranges])
        return some if self.cleared is None else (*some, self.cleared.number)

    def before(self, position: int) -> InForce:
        """Return what of it makes the view another before a position."""
        return InForce(tuple([one for one in self.ranges if one.first < position]), self.cleared)


NOTHING_IN_FORCE = InForce()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingRow:
    """That the tool results in ``first..last`` of a branch are cleared in its views."""

    number: int
    """Its id, on its branch."""
    branch: int
    first: int
    last: int
    effective: int | None
    """What the next request counted once this was in force, where its maker said so."""
    supersedes: tuple[int, ...]
    """Those inside its range that were in force before it, of the same kind."""
    superseded_by: int | None
    copied_from: int | None
    """The branch that a fork took it from."""
    created_at: int
    undone_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRow(ClearingRow):
    """A summary that was made to stand for the messages ``first..last`` of a branch.

    In a view it is one message, where its range began.
    """

    message: Message
    counts: Counts

    @property
    def position(self) -> int:
        return self.first


Key: TypeAlias = tuple[int | None, str, str]
"""The number of an origin, and a shape without its tokens, which differ from one to the next."""


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Messages of a text each, and perhaps a thought, behind one another, by column."""

    position: int
    """Of the first."""
    roles: Sequence[Role]
    texts: Sequence[str]
    origins: Sequence[int | None]
    makers: Mapping[int, Origin]
    """Every origin that is named."""
    visible: Sequence[int]
    exactness: Sequence[Exactness]
    thinking: Sequence[int]
    kinds: Sequence[Key | None]
    """What each one's thought is like; None where nothing was thought."""
    shapes: Mapping[Key, Shape | None]
    """What each kind is; of plain messages there is always one."""
    thoughts: Sequence[str | None] | None
    """What was thought; None, all of it, where that was not to be read."""
    seals: Sequence[str | None] | None = None
    """The signature of each thought; None, all of it, where none of them has one."""


ViewRow: TypeAlias = StoredRow | CompactionRow | PlainRows
"""What stands in a view: messages, or a summary in the place of a range."""


@dataclass(frozen=True, slots=True)
class ViewRows:
    """What stands in a view, in order, and what is in force in it."""

    rows: list[ViewRow]
    in_force: InForce


@dataclass(frozen=True, slots=True)
class Basis:
    """What a range of messages was when its compaction was planned."""

    first: int
    last: int
    sums: State
    """What the range alone counts; an erasure in it changes that."""
    supersedes: tuple[int, ...]
    """The compactions of the same kind in force inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A compaction that is to be made."""

    first: int
    last: int
    summary: Entry | None
    """None: the tool results in the range are to be cleared, which then begins at 1."""
    expected: Basis | None = None
    """Where the range is another by now, it is a conflict."""
    effective: int | None = None
    """What the next request will count."""


@dataclass(frozen=True, slots=True)
class UsageRows:
    """Everything that any policy needs for a number: at one position, in constant reads.

    Sums are those of the view: messages for which a summary stands do not count, the
    summary does, and of results that are cleared what stands for them. Positions are those
    of the lineage.
    """

    head: State
    before_turn: State
    """Just before the open turn; the empty state where no turn has started."""
    last_thinking: OwnThinking | None
    origins: dict[int, Origin]
    """The origins that ``head.opaque`` names, but for 0."""
    encoding: str
    lineage: State
    """The same head with every message whole and no summary."""
    in_force: InForce = NOTHING_IN_FORCE


@dataclass(frozen=True, slots=True)
class Outlook:
    """All that a count for the next request asks for, as it was at one moment."""

    session: SessionRow
    usage: UsageRows
    sent: SentRow | None
    """What the last recorded reply was sent; None too where it was not asked for."""
