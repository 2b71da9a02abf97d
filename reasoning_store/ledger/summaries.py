"""What stands in a view, and what it comes to: values, as in ``values``.

A view is a conversation as a request would carry it: a summary in the place of each range
that was compacted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from reasoning_store.blocks import Counts, Exactness, Message, Origin
from reasoning_store.ledger.values import OwnThinking, SentRow, SessionRow, State, StoredRow


@dataclass(frozen=True, slots=True)
class SummaryRange:
    """The messages ``first..last`` for which a summary stands, and what that counts."""

    number: int
    first: int
    last: int
    tokens: int
    exactness: Exactness = "exact"


@dataclass(frozen=True, slots=True)
class CompactionRow:
    """A summary that was made to stand for the messages ``first..last`` of a branch.

    In a view it is one message, where its range began.
    """

    number: int
    """Its id, on its branch."""
    branch: int
    first: int
    last: int
    message: Message
    counts: Counts
    supersedes: tuple[int, ...]
    """Those inside its range that were in force before it."""
    superseded_by: int | None
    copied_from: int | None
    """The branch that a fork took it from."""
    created_at: int
    undone_at: int | None

    @property
    def position(self) -> int:
        return self.first


ViewRow: TypeAlias = StoredRow | CompactionRow
"""What stands in a view: a message, or a summary in the place of a range."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a range of messages was when a summary of it was planned."""

    first: int
    last: int
    sums: State
    """What the range alone counts; an erasure in it changes that."""
    supersedes: tuple[int, ...]
    """The compactions in force inside it."""


@dataclass(frozen=True, slots=True)
class UsageRows:
    """Everything that any policy needs for a number: at one position, in constant reads.

    Sums are those of the view: messages for which a summary stands do not count, the
    summary does. Positions are those of the lineage.
    """

    head: State
    before_turn: State
    """Just before the open turn; the empty state where no turn has started."""
    last_thinking: OwnThinking | None
    origins: dict[int, Origin]
    """The origins that ``head.opaque`` names, but for 0."""
    encoding: str
    lineage: State
    """The same head with every message and no summary."""
    in_force: tuple[SummaryRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """All that a count for the next request asks for, as it was at one moment."""

    session: SessionRow
    usage: UsageRows
    sent: SentRow | None
    """What the last recorded reply was sent; None too where it was not asked for."""
