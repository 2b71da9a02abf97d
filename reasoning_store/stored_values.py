"""Stored messages, branches and compactions, made of the ledger's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from reasoning_store.conversation.blocks import Counts, Message, Origin
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.conversation.placeholders import SUMMARY_FRAME
from reasoning_store.ledger.records import BranchRow, DraftRow, HistorySnapshot, Segment, StoredRow
from reasoning_store.ledger.view_records import CompactionRow
from reasoning_store.ledger.withholdings import WithheldRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOW = "datetime.now(UTC) is one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One of the messages that branches have in the same place."""

    branch: int
    """The branch to activate: of those that have the message, the one whose last message is the
    newest. Of the version that is shown, the branch that is read."""
    is_shown: bool


class Stored:
    """A message with its identity, its position, its time and its tokens.

    Made by a session. It cannot be changed, and two with equal fields are equal.
    """

    # It holds the ledger's row and reads it when it is asked: to make a date and a sum for
    # each of ten thousand messages would cost a tenth of loading them.
    __slots__ = ("_row", "_versions")

    def __init__(self, row: StoredRow, versions: tuple[Version, ...] = ()) -> None:
        self._row = row
        self._versions = versions

    @property
    def id(self) -> str:
        return self._row.id

    @property
    def position(self) -> int:
        return self._row.position

    @property
    def branch(self) -> int:
        return self._row.branch

    @property
    def tokens(self) -> int:
        """The tokens of the message with all of its thinking; 0 while it is arriving."""
        counts = self._row.counts
        return counts.visible + sum(counts.thinking)

    @property
    def created_at(self) -> datetime:
        return time_of(self._row.created_at)

    @property
    def message(self) -> Message:
        return self._row.message

    @property
    def annotations(self) -> dict[str, Any]:
        """The facts that are stored with the message, as they were when it was read.

        Those of ``Session.annotate`` and ``record(metadata=)``; of a recorded reply also
        ``secondsThought``, ``secondsToFirstToken`` and, where it was stopped, ``stopReason``.
        """
        return dict(self._row.annotations or {})

    @property
    def is_new(self) -> bool:
        """Whether this call wrote it; an idempotent repeat did not."""
        return self._row.is_new

    @property
    def siblings(self) -> tuple[int, ...]:
        """The branches of the other ``versions``; the arrows next to a message lead there."""
        return tuple([one.branch for one in self._versions if not one.is_shown])

    @property
    def versions(self) -> tuple[Version, ...]:
        """The messages that branches have here, after the same messages before; this one too.

        In the order of the branches that they were written on; empty where this is the only one.
        """
        return self._versions

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS)
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stored):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    def __hash__(self) -> int:
        return hash((self.id, self.position, self.branch))


_FIELDS = (
    "id",
    "position",
    "branch",
    "tokens",
    "created_at",
    "message",
    "annotations",
    "is_new",
    "versions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of a conversation: what it shares, and where it ends."""

    id: int
    parent: int | None
    first: int
    """The first position that is its own; those before are shared with its parent."""
    head: int
    """The position of its last message; 0 without messages."""
    created_at: datetime
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A step that makes the requests of a branch shorter, for the messages ``first..last``.

    A *summary* is sent instead of them. A *clearing* sends them with a placeholder instead of each
    of their tool results.
    """

    id: int
    kind: Literal["summary", "clearing"]
    branch: int
    first: int
    last: int
    message: Message | None
    """The text that is sent in their place, in its frame; None for a clearing."""
    tokens: int
    """The tokens of that text."""
    supersedes: tuple[int, ...]
    """The narrower ones inside it, which hold again when it is undone."""
    created_at: datetime

    @property
    def summary(self) -> str | None:
        """The text of the summary without its frame."""
        return None if self.message is None else self.message.text.removeprefix(SUMMARY_FRAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A part of a message that requests leave out, because a provider refused it."""

    id: str
    """The id that ``Session.undo`` takes it back by."""
    position: int
    message_id: str
    block: int
    """The index of its block in the message."""
    part: str
    """``block``: all of it; ``seal``: its signature or ciphertext alone; a number: the piece of
    that index in a tool's result."""
    tokens: int
    reason: str
    error: str | None
    """The beginning of the refusal, masked."""
    target: Origin | None
    """The only provider, api and address whose requests leave it out; None: every request."""
    created_at: datetime


def withheld(row: WithheldRow) -> Withheld:
    return Withheld(
        id=row.id,
        position=row.place.position,
        message_id=row.message_id,
        block=row.part.block,
        part=row.part.part,
        tokens=row.part.tokens,
        reason=row.part.reason,
        error=row.error,
        target=row.part.target,
        created_at=time_of(row.created_at),
    )


STOPPED = "stopped"
"""The finish reason of a reply that was stopped."""
STOP_REASON = "stopReason"
"""The annotation with the reason why it was."""


def stop_reason(message: Message, annotations: Mapping[str, Any] | None) -> str | None:
    """Return why a reply was stopped; None of one that was not."""
    return (annotations or {}).get(STOP_REASON) if message.finish_reason == STOPPED else None


def drafted(draft: DraftRow, *, interrupted: bool) -> tuple[Message, dict[str, Any] | None]:
    """Return what has arrived of a reply, as the message that it would be, and its annotations."""
    from reasoning_store.ingress import draft_parts

    message = draft_parts.build_message(
        draft.parts,
        origin=draft.origin or Origin(),
        interrupted=interrupted,
    )
    if not interrupted or draft.stop is None:
        return message, draft.annotations
    annotations = {**(draft.annotations or {}), STOP_REASON: draft.stop}
    return replace(message, finish_reason=STOPPED), annotations


def draft_so_far(draft: DraftRow, versions: tuple[Version, ...] = ()) -> Stored | None:
    """Return a draft as a reader sees it, if anything of it has arrived."""
    message, annotations = drafted(draft, interrupted=draft.expired)
    if not message.blocks:
        return None
    return Stored(
        StoredRow(
            id=draft.id,
            position=draft.position,
            branch=draft.branch,
            message=message if draft.expired else replace(message, status="streaming"),
            counts=Counts(),
            created_at=draft.created_at,
            digest=b"",
            annotations=annotations,
        ),
        versions,
    )


def stored_history(
    moment: HistorySnapshot, mine: int, *, with_draft: bool, after: int | None
) -> list[Stored]:
    """Return the messages of a window, and after them the reply that is arriving."""
    rows = moment.rows
    first = rows[0].position if rows else 0
    others = versions(moment, mine)
    found = [Stored(row, others.get(first + place, ())) for place, row in enumerate(rows)]
    draft = moment.draft if with_draft else None
    last = found[-1].position if found else (after or 0)
    arriving = None if draft is None else draft_so_far(draft, others.get(draft.position, ()))
    if arriving is not None and last == arriving.position - 1:
        found.append(arriving)
    return found


def branch(row: BranchRow, *, current: int) -> Branch:
    return Branch(
        id=row.number,
        parent=row.parent,
        first=row.first,
        head=row.head,
        created_at=time_of(row.created_at),
        is_current=row.number == current,
    )


def compaction(row: CompactionRow) -> Compaction:
    summary = row if row.kind == "summary" else None
    return Compaction(
        id=row.number,
        kind=row.kind,
        branch=row.branch,
        first=row.first,
        last=row.last,
        message=None if summary is None else summary.message,
        tokens=0 if summary is None else summary.counts.visible,
        supersedes=row.supersedes,
        created_at=time_of(row.created_at),
    )


def as_public_conflict(conflict: Conflict) -> Conflict:
    """Replace the ledger's rows in a Conflict by ``Stored`` values."""
    rows = conflict.stored
    if isinstance(rows, list):
        items = [Stored(row) for row in rows]
        conflict.stored = items[0] if len(items) == 1 else items or None
    return conflict


def versions(moment: HistorySnapshot, mine: int) -> dict[int, tuple[Version, ...]]:
    """Return, by position, the versions of the messages where branches first differ from one."""
    here = next(row for row in moment.branches if row.number == mine)
    head = here.head if moment.draft is None else moment.draft.position
    found: dict[int, dict[int, BranchRow]] = {}
    for other in moment.branches:
        differ = _common(here.segments, other.segments) + 1
        if differ <= min(other.head, head):
            # Of branches that share a message there: the one that it was written on names it.
            own = _written_on(other, differ)
            of = found.setdefault(differ, {})
            of[own] = max(of.get(own, other), other, key=lambda row: (row.last_at, row.number))
    return {
        position: tuple(
            [
                Version(branch=newest.number, is_shown=newest is here)
                for _, newest in sorted({**of, _written_on(here, position): here}.items())
            ]
        )
        for position, of in found.items()
    }


def _written_on(branch: BranchRow, position: int) -> int:
    """Return the branch that a message was written on, or the reply that arrives at the end."""
    held = (segment.branch for segment in branch.segments if position <= segment.last)
    return next(held, branch.number)


def _common(one: Sequence[Segment], other: Sequence[Segment]) -> int:
    """Return the last position up to which two lineages are the same messages."""
    last = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine.branch != theirs.branch:
            break
        last = min(mine.last, theirs.last)
        if mine.last != theirs.last:
            break
    return last


def time_of(microseconds_since_1970: int) -> datetime:
    return _EPOCH + microseconds_since_1970 * _MICROSECOND


def microseconds(time: datetime | None, name: str) -> int | None:
    """Return a time as the ledger keeps it; one without a zone is taken for local time."""
    if time is None:
        return None
    if not isinstance(time, datetime):
        raise InvalidCall(f"{name}: a datetime, not {type(time).__name__}", hint=_NOW)
    try:
        return (time.astimezone(UTC) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError, OSError):
        raise InvalidCall(f"{name}: out of range, in UTC it has no year", hint=_NOW) from None
