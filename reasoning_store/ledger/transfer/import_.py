"""The lines of an import, read session by session; nothing here is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Counts, Message, Origin
from reasoning_store.conversation.errors import (
    Conflict,
    CorruptRow,
    InvalidCall,
    NotFound,
    ReasoningStoreError,
)
from reasoning_store.conversation.withholding import WithheldPart
from reasoning_store.ledger import compactions, encode
from reasoning_store.ledger.encode import EncodedMessage
from reasoning_store.ledger.records import Count, DraftRow, MessagePlace, NewMessage
from reasoning_store.ledger.transfer.lines import (
    BranchLine,
    CompactionLine,
    DraftLine,
    MessageLine,
    SessionEndLine,
    SessionLine,
)
from reasoning_store.ledger.view_records import CompactionRow
from reasoning_store.ledger.withholdings import WithheldRow

Mask: TypeAlias = Callable[[Message], Message]
MaskParts: TypeAlias = Callable[[list[str]], list[str]]
Encode: TypeAlias = Callable[[MessageLine, NewMessage], EncodedMessage]


class LineError(Exception):
    """An error that is about another line than the one that is read."""

    def __init__(self, number: int, error: ReasoningStoreError) -> None:
        self.number = number
        self.error = error


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Name another line as the place of an error."""
    try:
        yield
    except (Conflict, InvalidCall, NotFound) as error:
        raise LineError(number, error) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """A message of an import."""

    number: int
    """Of its line."""
    position: int
    encoded: EncodedMessage
    has_id: bool
    """Whether its line has the id."""
    withheld: Sequence[WithheldRow] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingCompaction:
    """A compaction of an import."""

    number: int
    """Of its line."""
    row: CompactionRow


@dataclass(slots=True, kw_only=True)
class IncomingBranch:
    """A branch of an import with all that is on it."""

    number: int
    """Of its line."""
    line: BranchLine
    messages: list[IncomingMessage] = field(default_factory=list)
    compactions: dict[int, IncomingCompaction] = field(default_factory=dict)
    draft: DraftRow | None = None
    draft_number: int = 0
    """Of the line of the draft."""
    batch_end: int = 0
    """The last position that an idempotency key covers."""
    batch_number: int = 0
    """Of the line with the key."""

    @property
    def next_position(self) -> int:
        return self.line.first + len(self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRules:
    """How messages of an import are masked, counted and encoded."""

    encode: Encode
    count: Count | None
    mask: Mask | None
    mask_parts: MaskParts | None


@dataclass(slots=True, kw_only=True)
class IncomingSession:
    """A session whose lines are read; it is written when the last of them has come."""

    number: int
    """Of its line."""
    line: SessionLine
    row: Mapping[str, Any]
    """Its columns, where it is a new one."""
    encoding: str
    """The one that it is counted in: that of the session that is there, if one is."""
    now: int
    """The time of what has none."""
    rules: MessageRules
    branches: dict[int, IncomingBranch] = field(default_factory=dict)
    recounted: int = 0
    """How much more its reasoning counts here than in the store that exported it."""

    def __post_init__(self) -> None:
        self.branches[1] = IncomingBranch(number=self.number, line=BranchLine(number=1))

    @property
    def key(self) -> int:
        key: int = self.row["session_key"]
        return key

    def add_branch(self, line: BranchLine, number: int) -> None:
        if line.number == 1 and not self.branches[1].messages:
            self.branches[1] = IncomingBranch(number=number, line=line)
        elif line.number in self.branches:
            raise InvalidCall("number: is that of another branch of this session")
        else:
            self._branch_of(1 if line.parent is None else line.parent)
            self.branches[line.number] = IncomingBranch(number=number, line=line)

    def add_message(self, line: MessageLine, number: int) -> None:
        branch = self._branch_of(line.branch)
        position = branch.next_position
        if line.position not in (None, position):
            raise InvalidCall(f"position: is not {position}, which follows")
        if (line.repeat is None) != (line.batch is None):
            raise InvalidCall("repeat, batch: one is there without the other")
        if line.batch is not None:
            if position <= branch.batch_end:
                raise InvalidCall("repeat: is among the messages of another one")
            branch.batch_end, branch.batch_number = position + line.batch - 1, number
        message, counts = self._counted(line.message, line.counts)
        if message.status == "erased" and message != Message(role=message.role, status="erased"):
            raise InvalidCall("message: is erased and still has content")
        if message.status == "erased" and line.annotations:
            raise InvalidCall("annotations: an erased message keeps nothing")
        annotations = self._masked(line.annotations)
        encoded = self.rules.encode(line, NewMessage(message, counts, line.sent, annotations))
        if line.counts is not None and encoded.used.unreported:
            self.recounted += encoded.used.counted - sum(line.counts.thinking)
        branch.messages.append(
            IncomingMessage(
                number=number,
                position=position,
                encoded=encoded,
                has_id=line.id is not None,
                withheld=self._withheld(line, message, MessagePlace(line.branch, position)),
            )
        )

    def _withheld(
        self, line: MessageLine, message: Message, place: MessagePlace
    ) -> list[WithheldRow]:
        """Return what requests leave out of a message."""
        rows = []
        for entry in line.withheld:
            if entry.block >= len(message.blocks):
                raise InvalidCall("withheld: the message has no such block")
            told = {"reason": entry.reason, "error": entry.error}
            told = dict(self._masked(told) or {})
            target = None if entry.target is None else _origin(entry.target)
            part = WithheldPart(entry.block, entry.part, entry.tokens, told["reason"] or "", target)
            rows.append(
                WithheldRow(
                    place=place,
                    part=part,
                    digest=bytes.fromhex(entry.digest),
                    error=told["error"],
                    created_at=entry.created_at,
                    undone_at=entry.undone_at,
                )
            )
        return rows

    def add_compaction(self, line: CompactionLine, number: int) -> None:
        summary = None
        if line.clears:
            if line.message is not None or line.counts is not None or line.first != 1:
                raise InvalidCall("clears: a clearing begins at 1 and has no message")
        elif line.message is None:
            raise InvalidCall("message: is missing")
        else:
            summary = NewMessage(*self._counted(line.message, line.counts))
            compactions.check_summary(summary)
        branch = self._branch_of(line.branch)
        if line.number in branch.compactions:
            raise InvalidCall("number: is that of another one on this branch")
        row = compactions.row_of(
            summary,
            number=line.number,
            branch=line.branch,
            first=line.first,
            last=line.last,
            effective=line.effective,
            supersedes=tuple(line.supersedes),
            superseded_by=line.superseded_by,
            copied_from=line.copied_from,
            created_at=self.now if line.created_at is None else line.created_at,
            undone_at=line.undone_at,
            along=line.along or {},
        )
        branch.compactions[line.number] = IncomingCompaction(number=number, row=row)

    def add_draft(self, line: DraftLine, number: int) -> None:
        branch = self._branch_of(line.branch)
        parts = line.parts
        if self.rules.mask_parts is not None:
            parts = self.rules.mask_parts(parts)
        elif self.rules.mask is not None:
            raise InvalidCall("parts: cannot be masked here")
        if not all(encode.fits_text_column(text) for text in (line.id, *parts)):
            raise InvalidCall("parts: are not parts of a draft")
        annotations = self._masked(line.annotations)
        encode.annotations_json(annotations, most=encode.MOST_OF_DRAFT)
        branch.draft_number = number
        branch.draft = DraftRow(
            session_key=self.key,
            branch=line.branch,
            id=line.id,
            position=branch.next_position,
            origin=None if line.origin is None else _origin(line.origin),
            annotations=None if annotations is None else dict(annotations),
            request_facts=line.sent,
            idempotency_key=line.repeat,
            created_at=line.created_at,
            parts=tuple(parts),
        )

    def check_whole(self, line: SessionEndLine) -> None:
        """Refuse a session that its own lines do not make."""
        for branch in self.branches.values():
            if branch.batch_end >= branch.next_position:
                error = InvalidCall("batch: covers messages that did not come")
                raise LineError(branch.batch_number, error)
            if branch.line.instead_of not in (None, *self.branches):
                error = InvalidCall("insteadOf: has no line of its own in this session")
                raise LineError(branch.number, error)
        came = sum(len(branch.messages) for branch in self.branches.values())
        if line.messages != came:
            raise InvalidCall(f"messages: {line.messages} were to come, {came} did")
        if self.line.current_branch not in self.branches:
            error = InvalidCall("currentBranch: has no line of its own in this session")
            raise LineError(self.number, error)

    def _masked(self, annotations: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        mask = self.rules.mask
        if mask is None or annotations is None:
            return annotations
        return mask(Message(role="user", metadata=annotations)).metadata

    def _branch_of(self, number: int) -> IncomingBranch:
        if number not in self.branches:
            raise InvalidCall("branch: has no line of its own before this one")
        return self.branches[number]

    def _counted(self, given: dict[str, object], counted: Counts | None) -> tuple[Message, Counts]:
        """Return a message as it is to be stored, with its counts."""
        came = codec.validate_message(given)
        message = came if self.rules.mask is None else self.rules.mask(came)
        if counted is not None and self.line.encoding == self.encoding and message == came:
            return message, counted
        if self.rules.count is None:
            raise InvalidCall(
                "there are no counts in the encoding of the session",
                hint="import through a store, which counts",
            )
        return message, self.rules.count(message, self.encoding)


def _origin(given: dict[str, Any]) -> Origin:
    try:
        return codec.from_json(Origin, given)
    except CorruptRow:
        raise InvalidCall("origin: no reply has such a one") from None
