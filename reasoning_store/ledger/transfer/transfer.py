"""Export and import of what is stored, as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from reasoning_store.conversation.errors import Conflict, InvalidCall, NotFound, ReasoningStoreError
from reasoning_store.ledger import profiles, sessions
from reasoning_store.ledger.database import driver_errors
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.encode import EncodedMessage
from reasoning_store.ledger.keys import Clock, share_up_to
from reasoning_store.ledger.message_columns import EXPORTED
from reasoning_store.ledger.messages import Messages
from reasoning_store.ledger.records import Count, Imported, NewMessage
from reasoning_store.ledger.transfer import export, lines, load
from reasoning_store.ledger.transfer.import_ import (
    IncomingSession,
    LineError,
    Mask,
    MaskParts,
    MessageRules,
)
from reasoning_store.ledger.transfer.lines import (
    BranchLine,
    CompactionLine,
    DraftLine,
    EndLine,
    HeaderLine,
    Line,
    MessageLine,
    ProfileLine,
    SessionEndLine,
    SessionLine,
)
from reasoning_store.ledger.transfer.load import Loaded

OnConflict: TypeAlias = Literal["refuse", "skip"]


class Transfer:
    """Export and import."""

    def __init__(self, database: Database, clock: Clock, messages: Messages) -> None:
        self._database = database
        self._clock = clock
        self._messages = messages

    def export_lines(
        self,
        session_key: int | None = None,
        *,
        owner: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Iterator[str]:
        """Yield everything stored: of one session, of one owner, or of all.

        Each session is read at one moment, whole, and waits in memory: nothing is held open between
        two lines.
        """
        yield lines.to_text(HeaderLine(version=lines.VERSION))
        if session_key is None:
            for profile in self._database.read(export.profile_lines, owner):
                yield lines.to_text(profile)
        exported = 0
        for key in self._exported(session_key, owner):
            try:
                found = self._database.read(export.session_lines, key=key)
            except NotFound:
                if session_key is not None:
                    raise
                continue  # erased meanwhile
            exported += 1
            yield from found
            if progress is not None:
                progress(share_up_to(key))
        yield lines.to_text(EndLine(sessions=exported))

    def _exported(self, session_key: int | None, owner: str | None) -> Iterator[int]:
        if session_key is not None:
            yield session_key
            return
        if owner is not None:
            yield from self._database.read_one(export.session_keys_of, owner)
            return
        after = -1
        while keys := self._database.read_one(sessions.some_keys, after=after):
            yield from keys
            after = keys[-1]

    def import_lines(
        self,
        given: Iterable[str | bytes],
        *,
        owner: str | None = None,
        count: Count | None = None,
        mask: Mask | None = None,
        mask_parts: MaskParts | None = None,
        check: Callable[[Line], None] | None = None,
        on_conflict: OnConflict = "refuse",
    ) -> Imported:
        """Load the lines of an export, or others of their form, a session a transaction.

        A session that is absent is loaded; of one that is there, only new content is appended;
        anything else is a Conflict, or with ``on_conflict="skip"`` the session is left out.
        ``owner`` owns it, also if the lines name another owner. ``count`` counts where there are no
        counts in the session's encoding and where ``mask`` changed a message; ``mask_parts`` masks
        the parts of a draft; ``check`` may refuse a line. A malformed line is an InvalidCall that
        names it.
        """
        if on_conflict not in ("refuse", "skip"):
            raise InvalidCall("on_conflict: one of refuse, skip")
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise InvalidCall(
                "lines: an iterable of lines",
                hint="open(path, 'rb') is one, text.split('\\n') another",
            )
        reader = _Reader(
            transfer=self,
            owner=owner,
            rules=MessageRules(encode=self.encoded, count=count, mask=mask, mask_parts=mask_parts),
            check=check,
            skips=on_conflict == "skip",
        )
        for number, text in enumerate(given, 1):
            reader.number = number
            try:
                reader.read_line(text)
            except LineError as error:
                raise reader.name_line(error.error, error.number) from None
            except (InvalidCall, Conflict, NotFound) as error:
                raise reader.name_line(error, number) from None
        if not reader.ended:
            raise InvalidCall(
                f"line {reader.number}: the lines stop before their end"
                if reader.number
                else "the lines stop before their end: there are no lines",
                hint="export again, then import again: what is there is not written twice",
            )
        return reader.done

    def encoded(self, line: MessageLine, new: NewMessage) -> EncodedMessage:
        """Return the columns of a message, with those that only its line has."""
        encoded = self._messages.encode_entry(new, self._clock.time(line.created_at), id=line.id)
        more: dict[str, Any] = {name: getattr(line, named) for name, named in EXPORTED.items()}
        return encoded._replace(columns={**encoded.columns, **more})

    def load_profile(self, owner: str, line: ProfileLine) -> None:
        updated_at = self._clock.time(line.updated_at)
        row = profiles.columns_of(owner, line.name, line.settings, now=updated_at)
        self._database.write(lambda connection: load.load_profile(connection, row))

    def begin(
        self, owner: str, line: SessionLine, number: int, rules: MessageRules
    ) -> IncomingSession:
        """Return the session of a line, to which its other lines are added."""
        row = sessions.new(
            owner,
            line.id,
            encoding=line.encoding,
            title=line.title,
            metadata=line.metadata,
            settings=line.settings,
            created_at=self._clock.time(line.created_at),
        )
        row["profile"] = None if line.profile is None else profiles.column_of(line.profile)
        found = self._database.read_one(load.encoding_of, row["session_key"])
        return IncomingSession(
            number=number,
            line=line,
            row=row,
            encoding=line.encoding if found is None else found,
            now=self._clock.now(),
            rules=rules,
        )

    def load(self, owner: str, incoming: IncomingSession) -> Loaded:
        """Write a session whose lines have all come."""

        def write() -> Loaded:
            return self._database.write(lambda connection: load.load(connection, owner, incoming))

        try:
            return write()
        except driver_errors.UniqueViolation:
            pass  # another process made it meanwhile, or has one of its idempotency keys
        try:
            return write()
        except driver_errors.UniqueViolation:
            raise Conflict(
                "an idempotency key of this session is that of another message"
            ) from None


@dataclass(slots=True, kw_only=True)
class _Reader:
    """The lines of an import, one after the other."""

    transfer: Transfer
    owner: str | None
    rules: MessageRules
    check: Callable[[Line], None] | None
    skips: bool
    number: int = 0
    done: Imported = field(default_factory=Imported)
    begun: bool = False
    ended: bool = False
    sessions: int = 0
    current: IncomingSession | None = None

    def read_line(self, text: str | bytes) -> None:
        """Take one line; nothing, for an empty one."""
        if not isinstance(text, str | bytes):
            raise InvalidCall("a line is a string or bytes")
        if not text or text.isspace():
            return
        line = lines.read(text)
        if not self.begun and not isinstance(line, HeaderLine):
            raise InvalidCall("the first line does not say that this is an export")
        if self.check is not None:
            self.check(line)
        match line:
            case BranchLine():
                self._open_session().add_branch(line, self.number)
            case MessageLine():
                self._open_session().add_message(line, self.number)
            case CompactionLine():
                self._open_session().add_compaction(line, self.number)
            case DraftLine():
                self._open_session().add_draft(line, self.number)
            case SessionEndLine():
                self._end_session(self._open_session(), line)
            case _:
                if self.current is not None:
                    raise InvalidCall("the session before this line was not ended")
                self._read_between_sessions(line)

    def _read_between_sessions(self, line: Line) -> None:
        match line:
            case HeaderLine():
                if line.version != lines.VERSION:
                    newer = line.version > lines.VERSION
                    raise InvalidCall(
                        f"an export of version {line.version}, and this reads {lines.VERSION}",
                        hint="run: pip install --upgrade reasoning-store"
                        if newer
                        else "export the store again with a later version",
                    )
                self.begun, self.ended, self.sessions = True, False, 0
            case ProfileLine():
                self.transfer.load_profile(self._owner_of(line), line)
            case SessionLine():
                self.current = self.transfer.begin(
                    self._owner_of(line), line, self.number, self.rules
                )
            case EndLine():
                if line.sessions != self.sessions:
                    raise InvalidCall(
                        f"sessions: {line.sessions} were to come, {self.sessions} did"
                    )
                self.ended = True

    def _end_session(self, incoming: IncomingSession, line: SessionEndLine) -> None:
        incoming.check_whole(line)
        done = self.done
        try:
            loaded = self.transfer.load(self._owner_of(incoming.line), incoming)
        except (LineError, Conflict) as error:
            cause = error.error if isinstance(error, LineError) else error
            if not (self.skips and isinstance(cause, Conflict)):
                raise
            self.done = replace(done, skipped=(*done.skipped, incoming.line.id))
        else:
            self.done = replace(
                done,
                sessions=done.sessions + 1,
                messages=done.messages + loaded.new,
                already=done.already + loaded.already,
            )
        self.current = None
        self.sessions += 1

    def name_line(self, error: ReasoningStoreError, number: int) -> ReasoningStoreError:
        """Return an error with its line; of a conflict also with the session and a way out."""
        if not isinstance(error, Conflict):
            return InvalidCall(f"line {number}: {error}", hint=error.hint)
        if self.current is None:
            return Conflict(f"line {number}: {error}", stored=error.stored, hint=error.hint)
        return Conflict(
            f"line {number}: session {self.current.line.id!r}: {error}",
            stored=error.stored,
            hint=error.hint or "on_conflict skip leaves such a session out and names it",
        )

    def _owner_of(self, line: SessionLine | ProfileLine) -> str:
        return line.owner if self.owner is None else self.owner

    def _open_session(self) -> IncomingSession:
        if self.current is None:
            raise InvalidCall("no session was begun for this line")
        return self.current
