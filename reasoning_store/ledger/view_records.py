"""Values of views: a conversation with its compactions applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from reasoning_store.conversation.blocks import Counts, Exactness, Message, Origin, Role, Status
from reasoning_store.conversation.message_flags import HAS_CALL, STARTS_TURN
from reasoning_store.conversation.thinking_header import ThinkingHeader
from reasoning_store.conversation.withholding import WithheldPart
from reasoning_store.ledger.records import (
    BranchRow,
    KeptSettings,
    NewMessage,
    RecordedRequest,
    SessionRow,
    StoredRow,
)

CompactionKind: TypeAlias = Literal["summary", "clearing"]


@dataclass(frozen=True, slots=True)
class SummaryRange:
    """The messages ``first..last`` that a summary replaces, and the count of the summary."""

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
class ActiveCompactions:
    """The compactions that a view applies to the messages of its branch."""

    ranges: tuple[SummaryRange, ...] = ()
    cleared: Cleared | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all of them."""
        some = tuple([one.number for one in self.ranges])
        return some if self.cleared is None else (*some, self.cleared.number)

    def before(self, position: int) -> ActiveCompactions:
        """Return those that change the view before a position."""
        return ActiveCompactions(
            tuple([one for one in self.ranges if one.first < position]), self.cleared
        )


NOTHING_IN_FORCE = ActiveCompactions()


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompactionFields:
    """The fields of both kinds of a compaction."""

    number: int
    """Its id, on its branch."""
    branch: int
    first: int
    last: int
    effective: int | None
    """The count of the next request once this was in force, if its maker gave it."""
    supersedes: tuple[int, ...]
    """Those inside its range that were in force before it, of the same kind."""
    superseded_by: int | None
    copied_from: int | None
    """The branch that a fork took it from."""
    created_at: int
    undone_at: int | None
    along: Mapping[str, Any] = field(default_factory=dict)
    """The changes that are undone with it: ``clearing``, the number of one, and ``settings``, each
    with its value before (None: not set) and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingRow(_CompactionFields):
    """A clearing: the tool results in ``first..last`` of a branch are cleared in its views."""

    kind: Literal["clearing"] = "clearing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow(_CompactionFields):
    """A summary: one message, sent in the place of the messages ``first..last`` of a branch."""

    kind: Literal["summary"] = "summary"
    message: Message
    counts: Counts

    @property
    def position(self) -> int:
        return self.first


CompactionRow: TypeAlias = SummaryRow | ClearingRow
ViewRow: TypeAlias = StoredRow | SummaryRow
"""The entries of a view: messages, or a summary in the place of a range."""


@dataclass(frozen=True, slots=True)
class RangeSnapshot:
    """A range of messages as it was when its compaction was planned."""

    first: int
    last: int
    digest: bytes
    """Of the digests of its messages; an erasure in it changes it."""
    supersedes: tuple[int, ...]
    """The compactions of the same kind in force inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCompaction:
    """A compaction that is to be made."""

    first: int
    """1, where tool results are to be cleared."""
    last: int
    summary: NewMessage | None = None
    """The message, where it is a summary."""
    expected: RangeSnapshot | None = None
    """If the range is another by now, it is a conflict."""
    effective: int | None = None
    """The count of the next request after it."""

    @property
    def kind(self) -> CompactionKind:
        return "clearing" if self.summary is None else "summary"


def summary_digest(last: int) -> bytes:
    """Return the digest of the message that replaces a range: by its end, and its own count."""
    return b"summary up to %d" % last


class NarrowRow(NamedTuple):
    """A message of a view without its blocks, or the summary of a range: all that a count reads."""

    position: int
    """The first of its range, where it is a summary."""
    last: int
    role: Role
    status: Status
    origin: Origin | None
    counts: Counts
    """Those of its placeholders, where its tool results are cleared."""
    clearable: int
    """The tokens that clearing its tool results would free."""
    flags: int
    headers: Sequence[ThinkingHeader]
    is_summary: bool = False
    withheld: Sequence[WithheldPart] = ()
    """Its parts that are left out, because a provider refused them."""
    digest: bytes | None = None
    """Of its content, where that is asked for."""
    chain: str | None = None
    """Of all that its request sent, where that is asked for."""

    @property
    def number(self) -> int:
        return self.position

    @property
    def thinking(self) -> Sequence[tuple[int, ThinkingHeader]]:
        """The headers of its thinking, each with its place among the blocks."""
        return [(header.place, header) for header in self.headers]

    @property
    def starts_turn(self) -> bool:
        return bool(self.flags & STARTS_TURN)

    @property
    def has_call(self) -> bool:
        return bool(self.flags & HAS_CALL)

    @property
    def has_thinking(self) -> bool:
        return bool(self.headers)


@dataclass(frozen=True, slots=True)
class RequestSnapshot:
    """All that the next request takes besides its messages, as it was at one moment."""

    session: SessionRow
    settings: KeptSettings
    branch: BranchRow
    at: int
    """The last position that the request is about."""
    turn_start: int | None
    """The start of the open turn, before ``at``."""
    in_force: ActiveCompactions
    last_request: RecordedRequest | None
    """That of the last recorded reply; None, too, where it was not asked for."""
