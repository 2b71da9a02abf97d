"""Lines on their way in, one after the other: what each does.

Messages wait until a few hundred stand behind one another, and are then one append; those of
one idempotency key are not parted. What is there already is compared with them first. A line
that does not fit is an error, raised before anything of it is written; ``number`` is the line
that it speaks of.

Masking and counting are the caller's, and are asked for outside of any transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from reasoning_store import codec
from reasoning_store.blocks import Counts, Message, Origin
from reasoning_store.errors import Conflict, CorruptRow, NotFound, UsageError
from reasoning_store.ledger import (
    columns,
    compacting,
    faults,
    importing,
    importing_compactions,
    lines,
    profiles,
)
from reasoning_store.ledger.importing import Begun
from reasoning_store.ledger.importing_compactions import Given, Misfit
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
from reasoning_store.ledger.values import DraftRow, Entry, Imported, SessionRow
from reasoning_store.ledger.verbs.arriving import Current, Item
from reasoning_store.ledger.verbs.erasing import Count, ErasingVerbs

Mask: TypeAlias = Callable[[Message], Message]
MaskParts: TypeAlias = Callable[[list[str]], list[str]]


@dataclass(slots=True)
class Intake:
    """Lines, one after the other."""

    ledger: ErasingVerbs
    owner: Callable[[str], str]
    encoding: str | None
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
            self.current.waiting.clear()
            self.skipping = True
            if isinstance(line, SessionEndLine):
                self.session_end(line)  # what waited for it differs here; it ends all the same

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
        at = self.ledger._time(line.updated_at)
        row = profiles.columns_of(self.owner(line.owner), line.name, line.settings, now=at)
        self.ledger._write(lambda connection: importing.profile(connection, row))

    def session(self, line: SessionLine) -> None:
        self._outside()
        row, begun = self._session(line)
        self.current = Current(line, self.number, row.key, row.encoding, begun)

    def _session(self, line: SessionLine) -> tuple[SessionRow, Begun | None]:
        owner, now = self.owner(line.owner), self.ledger._time(None)
        encoding = self.encoding or line.encoding

        def make() -> tuple[SessionRow, Begun | None]:
            return self.ledger._write(
                lambda connection: importing.session(connection, owner, line, encoding, now=now)
            )

        try:
            return make()
        except faults.Taken:
            return make()  # somebody else made it meanwhile

    def branch(self, line: BranchLine) -> None:
        current = self._inside()
        self._flush(current)
        now = self.ledger._time(None)
        is_new = self.ledger._write(
            lambda connection: importing.branch(connection, current.key, line, now=now)
        )
        if current.begun is not None:
            current.begun.branches += is_new
        current.next[line.number] = line.first

    def message(self, line: MessageLine) -> None:
        current = self._inside()
        position = self._position(current, line.branch)
        if line.position not in (None, position):
            raise UsageError(f"position: is not {position}, which follows")
        if (line.repeat is None) != (line.batch is None):
            raise UsageError("repeat, batch: one is there without the other")
        if line.batch is not None:
            if position <= current.batches.get(line.branch, (0, 0))[0]:
                raise UsageError("repeat: stands among the messages of another one")
            current.batches[line.branch] = (position + line.batch - 1, self.number)
        message, counts = self._counted(line.message, line.counts, current)
        if message.status == "erased" and message != Message(role=message.role, status="erased"):
            raise UsageError("message: is erased and still says something")
        prepared = self.ledger._prepared(
            Entry(message, counts, line.sent), self.ledger._time(line.created_at), id=line.id
        )
        if line.counts is not None and prepared.thought.unreported:
            current.recounted += prepared.thought.counted - sum(line.counts.thinking)
        more = {
            "idempotency_key": line.repeat,
            "batch": line.batch,
            "erased_at": line.erased_at,
        }
        if line.branch != current.branch:
            self._flush(current)
        current.branch = line.branch
        current.next[line.branch] += 1
        current.messages += 1
        current.waiting.append(
            Item(
                self.number,
                position,
                prepared._replace(columns={**prepared.columns, **more}),
                line.id is not None,
            )
        )
        current.characters += sum(len(row["thought"] or "") for row in prepared.thinking)
        current.characters += len(prepared.body["text"] or "") + len(prepared.body["data"] or "")
        many = len(current.waiting) >= lines.AT_ONCE or current.characters >= lines.CHARACTERS
        if many and current.missing(line.branch) is None:
            self._flush(current)

    def _position(self, current: Current, branch: int) -> int:
        """Return where the next message of a branch stands; refuse one that was not begun."""
        if branch not in current.next:
            raise UsageError("branch: has no line of its own before this one")
        return current.next[branch]

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
        waiting, current.waiting, current.characters = current.waiting, [], 0
        if not waiting:
            return
        here = self.number
        missing = current.missing(current.branch)
        if missing is not None:
            self.number = missing
            raise UsageError("batch: covers messages that did not come")
        branch, key, ledger = current.branch, current.key, self.ledger
        there = ledger._read(
            lambda connection: importing.there(
                connection, key, branch, waiting[0].position, waiting[-1].position
            ),
            single=True,
        )
        new: list[Item] = []
        for item in waiting:
            found = there.get(item.position)
            if found is None:
                new.append(item)
                continue
            id_, digest, erased_at = found
            same = digest == item.prepared.columns["digest"]
            if not same and erased_at is not None:
                current.erased.add((branch, item.position))
                same = True
            if not same or (item.has_id and id_ != item.prepared.columns["id"]):
                self.number = item.number
                raise Conflict(f"another message is at {item.position} of branch {branch}")
        if new:
            self.number = new[0].number
            self._append(current, new)
            self.number = here
        self.done = replace(
            self.done,
            messages=self.done.messages + len(new),
            already=self.done.already + len(waiting) - len(new),
        )

    def _append(self, current: Current, new: list[Item]) -> None:
        ledger, key, branch = self.ledger, current.key, current.branch
        prepared = [item.prepared for item in new]
        now = max(item.columns["created_at"] for item in prepared)
        after = new[0].position - 1
        if ledger._append(key, branch, prepared, after=after, now=now) is not None:
            if current.begun is not None:
                current.begun.messages += len(new)
            return
        draft = ledger.draft(key, branch)
        # The draft that this message became, where it was exported.
        if draft is not None and draft.id == prepared[0].columns["id"]:
            made = ledger._append(key, branch, prepared, after=after, now=now, ending=draft.id)
            if made is not None:
                return
        raise Conflict(
            f"something else stands behind {after} of branch {branch}"
            if draft is None
            else f"a reply is being recorded behind {after} of branch {branch}"
        )

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
        self._position(current, line.branch)
        found = current.compactions.setdefault(line.branch, {})
        if line.number in found:
            raise UsageError("number: is that of another one on this branch")
        found[line.number] = (self.number, Given(line, compacting.summary_columns(entry)))

    def draft(self, line: DraftLine) -> None:
        current = self._inside()
        position = self._position(current, line.branch)
        self._flush(current)
        origin = None if line.origin is None else _origin(line.origin)
        parts = line.parts
        if self.mask_parts is not None:
            parts = self.mask_parts(parts)
        elif self.mask is not None:
            raise UsageError("parts: cannot be masked here")
        if not all(columns.holdable(text) for text in (line.id, *parts)):
            raise UsageError("parts: are not as drafts are")
        row = DraftRow(
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
        is_new = self.ledger._write(lambda connection: importing.draft(connection, row))
        if current.begun is not None:
            current.begun.drafts += is_new

    def session_end(self, line: SessionEndLine) -> None:
        current = self._inside()
        if not self.skipping:
            if line.erased:
                self._forget(current.key)
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

    def _check_whole(self, current: Current, line: SessionEndLine) -> None:
        """Refuse a session that its own lines do not make, before its last ones are written."""
        if line.messages != current.messages:
            raise UsageError(f"messages: {line.messages} were to come, {current.messages} did")
        if current.line.current_branch not in current.next:
            self.number = current.number
            raise UsageError("currentBranch: has no line of its own in this session")

    def _compact(self, current: Current) -> None:
        """Write the compactions of a session: what one is depends on the others."""
        now = self.ledger._time(None)
        for branch, found in current.compactions.items():
            given = [one for _, one in found.values()]
            try:
                self.ledger._write(
                    partial(
                        importing_compactions.take,
                        key=current.key,
                        branch=branch,
                        given=given,
                        erased=current.erased,
                        now=now,
                    )
                )
            except Misfit as misfit:
                self.number = found[misfit.number][0]
                raise misfit.error from None

    def _finish(self, current: Current) -> None:
        line = current.line
        if line.counted is not None:
            line = replace(line, counted=max(line.counted + current.recounted, 0))
        here, self.number = self.number, current.number
        self.ledger._write(lambda connection: importing.finish(connection, current.key, line))
        self.number = here
        self.done = replace(self.done, sessions=self.done.sessions + 1)

    def take_back(self) -> None:
        """Take back what was written of the session whose lines are wrong, if it began here."""
        current = self.current
        begun = None if current is None else current.begun
        if current is not None and begun is not None:
            with suppress(NotFound):  # erased meanwhile
                self.ledger._write(
                    lambda connection: importing.take_back(connection, current.key, begun)
                )

    def _forget(self, key: int) -> None:
        """Erase what was begun of a session that was erased while it was exported."""
        if self.ledger._read(lambda connection: importing.is_importing(connection, key)):
            self.ledger.erase_session(key)

    def end(self, line: EndLine) -> None:
        self._outside()
        if line.sessions != self.sessions:
            raise UsageError(f"sessions: {line.sessions} were to come, {self.sessions} did")
        self.ended = True

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
