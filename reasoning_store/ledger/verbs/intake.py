"""Lines on their way in, one after the other: what each says, and where it may stand.

A line that does not fit is an error, raised before anything of it is written; ``number`` is
the line that it speaks of. What is known of a session while its lines come is in
``arriving``, how it is written in ``taking_in``.

Masking and counting are the caller's, and are asked for outside of any transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from reasoning_store import codec
from reasoning_store.blocks import Counts, Message, Origin
from reasoning_store.errors import Conflict, CorruptRow, NotFound, UsageError
from reasoning_store.ledger import columns, compacting, lines
from reasoning_store.ledger.importing import Misfit
from reasoning_store.ledger.importing_compactions import Given
from reasoning_store.ledger.lines import (
    BranchLine,
    CompactionLine,
    CountsLine,
    DraftLine,
    EndLine,
    HeaderLine,
    Line,
    MessageLine,
    ProfileLine,
    SessionEndLine,
    SessionLine,
)
from reasoning_store.ledger.values import DraftRow, Entry, Imported
from reasoning_store.ledger.verbs.arriving import Current, Waiting
from reasoning_store.ledger.verbs.erasing import Count
from reasoning_store.ledger.verbs.taking_in import Item, TakingInVerbs

Mask: TypeAlias = Callable[[Message], Message]
MaskParts: TypeAlias = Callable[[list[str]], list[str]]


@dataclass(slots=True, kw_only=True)
class Intake:
    """Lines, one after the other."""

    ledger: TakingInVerbs
    owner: Callable[[str], str]
    count: Count | None
    mask: Mask | None
    mask_parts: MaskParts | None
    check: Callable[[Line], None] | None
    skips: bool
    number: int = 0
    """Of the line that an error speaks of."""
    done: Imported = field(default_factory=Imported)
    ended: bool = False
    headed: bool = False
    sessions: int = 0
    current: Current | None = None
    skipping: bool = False

    def take(self, text: str | bytes) -> None:
        """Take one line; nothing, for an empty one."""
        if not isinstance(text, str | bytes):
            raise UsageError("a line is a string or bytes")
        if not text or text.isspace():
            return
        line = lines.read(text)
        if not self.headed and not isinstance(line, HeaderLine):
            raise UsageError("the first line does not say that this is an export")
        if self.skipping and not isinstance(line, SessionEndLine):
            return
        if self.check is not None:
            self.check(line)
        try:
            _TAKERS[type(line)](self, line)
        except Conflict:
            if not self.skips or self.current is None:
                raise
            self.current.waiting = Waiting()
            self.skipping = True
            if isinstance(line, SessionEndLine):
                self.session_end(line)  # what waited for it differs here; it ends all the same

    # What stands around sessions

    def header(self, line: HeaderLine) -> None:
        if line.version != lines.VERSION:
            raise UsageError(
                f"an export of version {line.version}, and this reads {lines.VERSION}",
                hint="run: pip install --upgrade reasoning-store",
            )
        self._outside()
        self.headed, self.ended, self.sessions = True, False, 0

    def profile(self, line: ProfileLine) -> None:
        self._outside()
        self.ledger.take_profile(self.owner(line.owner), line)

    def end(self, line: EndLine) -> None:
        self._outside()
        if line.sessions != self.sessions:
            raise UsageError(f"sessions: {line.sessions} were to come, {self.sessions} did")
        self.ended = True

    # A session, from its first line to its last

    def session(self, line: SessionLine) -> None:
        self._outside()
        row, begun = self.ledger.take_session(self.owner(line.owner), line)
        self.current = Current(
            line=line, number=self.number, key=row.key, encoding=row.encoding, begun=begun
        )

    def branch(self, line: BranchLine) -> None:
        current = self._inside()
        self._flush(current)
        is_new = self.ledger.take_branch(current.key, line)
        if current.begun is not None:
            current.begun.branches += is_new
        current.next[line.number] = line.first

    def message(self, line: MessageLine) -> None:
        current = self._inside()
        position = current.place(line, number=self.number)
        message, counts = self._counted(line.message, line.counts, current)
        if message.status == "erased" and message != Message(role=message.role, status="erased"):
            raise UsageError("message: is erased and still says something")
        prepared = self.ledger.prepared_line(line, Entry(message, counts, line.sent))
        if line.counts is not None and prepared.thought.unreported:
            current.recounted += prepared.thought.counted - sum(line.counts.thinking)
        if line.branch != current.waiting.branch:
            self._flush(current)
        item = Item(position, prepared, has_id=line.id is not None)
        current.add(line.branch, item, number=self.number)
        if current.waiting.are_many and current.missing(line.branch) is None:
            self._flush(current)

    def compaction(self, line: CompactionLine) -> None:
        current = self._inside()
        entry = None
        if line.clears:
            if line.message is not None or line.counts is not None or line.first != 1:
                raise UsageError("clears: a clearing begins at 1, and no message stands for it")
        elif line.message is None:
            raise UsageError("message: is missing")
        else:
            entry = Entry(*self._counted(line.message, line.counts, current))
        current.position(line.branch)
        given = Given(line, compacting.summary_columns(entry))
        current.keep(line.branch, given, number=self.number)

    def draft(self, line: DraftLine) -> None:
        current = self._inside()
        position = current.position(line.branch)
        self._flush(current)
        origin = None if line.origin is None else _origin(line.origin)
        parts = line.parts
        if self.mask_parts is not None:
            parts = self.mask_parts(parts)
        elif self.mask is not None:
            raise UsageError("parts: cannot be masked here")
        if not all(columns.holdable(text) for text in (line.id, *parts)):
            raise UsageError("parts: are not as drafts are")
        is_new = self.ledger.take_draft(
            DraftRow(
                session_key=current.key,
                branch=line.branch,
                id=line.id,
                position=position,
                origin=origin,
                metadata=line.metadata,
                sent=line.sent,
                idempotency_key=line.repeat,
                created_at=line.created_at,
                parts=tuple(parts),
            )
        )
        if current.begun is not None:
            current.begun.drafts += is_new

    def session_end(self, line: SessionEndLine) -> None:
        current = self._inside()
        if not self.skipping:
            if line.erased:
                self.ledger.forget_session(current.key)
            else:
                self._check_whole(current, line)
                self._flush(current)
                self._compact(current)
                self._finish(current)
        if self.skipping:
            self.take_back()
            self.done = replace(self.done, skipped=(*self.done.skipped, current.line.id))
        self.current, self.skipping = None, False
        self.sessions += 1

    def take_back(self) -> None:
        """Take back what was written of the session whose lines are wrong, if it began here."""
        current = self.current
        if current is not None and current.begun is not None:
            with suppress(NotFound):  # erased meanwhile
                self.ledger.take_back(current.key, current.begun)

    # The steps of these

    def _counted(
        self, given: dict[str, object], line: CountsLine | None, current: Current
    ) -> tuple[Message, Counts]:
        """Return a message as it is to be stored, with what it counts then."""
        message = came = codec.validate_message(given)
        if self.mask is not None:
            message = self.mask(came)
        if line is not None and current.line.encoding == current.encoding and message == came:
            return message, lines.counts_of(line)
        if self.count is None:
            raise UsageError(
                "there are no counts in the encoding of the session",
                hint="import through a store, which counts",
            )
        return message, self.count(message, current.encoding)

    def _flush(self, current: Current) -> None:
        """Write the messages that wait, less those that are there already."""
        waiting, current.waiting = current.waiting, Waiting(current.waiting.branch)
        if not waiting.items:
            return
        missing = current.missing(waiting.branch)
        if missing is not None:
            self.number = missing
            raise UsageError("batch: covers messages that did not come")
        with self._speaking_of(waiting.lines):
            added = self.ledger.take_messages(current.key, waiting.branch, waiting.items)
        if current.begun is not None:
            current.begun.messages += added.new
        current.erased |= added.erased
        self.done = replace(
            self.done,
            messages=self.done.messages + added.new,
            already=self.done.already + added.already,
        )

    def _check_whole(self, current: Current, line: SessionEndLine) -> None:
        """Refuse a session that its own lines do not make, before its last ones are written."""
        if line.messages != current.messages:
            raise UsageError(f"messages: {line.messages} were to come, {current.messages} did")
        if current.line.current_branch not in current.next:
            self.number = current.number
            raise UsageError("currentBranch: has no line of its own in this session")

    def _compact(self, current: Current) -> None:
        for branch, found in current.compactions.items():
            given = [one for _, one in found.values()]
            with self._speaking_of({number: line for number, (line, _) in found.items()}):
                self.ledger.take_compactions(current.key, branch, given, erased=current.erased)

    def _finish(self, current: Current) -> None:
        line = current.line
        if line.counted is not None:
            line = replace(line, counted=max(line.counted + current.recounted, 0))
        with self._speaking_of({0: current.number}):
            self.ledger.finish_session(current.key, line)
        self.done = replace(self.done, sessions=self.done.sessions + 1)

    @contextmanager
    def _speaking_of(self, numbers: Mapping[int, int]) -> Iterator[None]:
        """Let an error speak of the one of several lines that does not fit, or of the first."""
        here, self.number = self.number, next(iter(numbers.values()))
        try:
            yield
        except Misfit as misfit:
            self.number = numbers[misfit.number]
            raise misfit.error from None
        self.number = here

    def _inside(self) -> Current:
        if self.current is None:
            raise UsageError("no session was begun for this line")
        return self.current

    def _outside(self) -> None:
        if self.current is not None:
            raise UsageError("the session before this line was not ended")


def _origin(given: dict[str, Any]) -> Origin:
    try:
        return codec.origin_from_json(given)
    except CorruptRow:
        raise UsageError("origin: is none that a reply has") from None


_TAKERS: dict[type[Line], Callable[..., None]] = {
    HeaderLine: Intake.header,
    ProfileLine: Intake.profile,
    SessionLine: Intake.session,
    BranchLine: Intake.branch,
    MessageLine: Intake.message,
    CompactionLine: Intake.compaction,
    DraftLine: Intake.draft,
    SessionEndLine: Intake.session_end,
    EndLine: Intake.end,
}
