"""The face of imports: conversations kept elsewhere, written into a store once.

What is there already is known by the keys of its messages: a message's key stands for all
before it, so the keys that a session knows are those of a beginning, and only the rest is
written, at the place where it stood. Where something else stands at that place, because the
session has gone on or the source was changed, the conversation is refused and the others are
not. A dry run asks the same questions and writes nothing.

Glue, no rule of its own: it must not know what a format means, which is ``importers``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reasoning_store.conversation import codec, validation
from reasoning_store.conversation.errors import (
    Conflict,
    InvalidCall,
    NotFound,
)
from reasoning_store.importers.values import Conversation, Report
from reasoning_store.ledger.records import SessionRow
from reasoning_store.ledger.rows import encode
from reasoning_store.ledger.transfer import lines
from reasoning_store.ledger.transfer.lines import (
    EndLine,
    HeaderLine,
    MessageLine,
    SessionEndLine,
    SessionLine,
)
from reasoning_store.owner import Owner, state_and_owner
from reasoning_store.stored import microseconds

_TITLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """The result of one conversation."""

    id: str
    """The id of its session."""
    title: str | None
    new: int
    """Messages that were written; in a dry run, those that would be."""
    known: int
    """Messages that were there already."""
    refused: str | None
    """Why it could not be written, where that is so."""
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHistory:
    """The result of an import, conversation by conversation."""

    dry_run: bool
    conversations: Sequence[ImportedConversation]

    @property
    def new(self) -> int:
        return sum(one.new for one in self.conversations)

    @property
    def known(self) -> int:
        return sum(one.known for one in self.conversations)

    @property
    def refused(self) -> list[ImportedConversation]:
        return [one for one in self.conversations if one.refused is not None]

    @property
    def report(self) -> Report:
        """The sum over the conversations that were not refused."""
        return sum((one.report for one in self.conversations if one.refused is None), Report())


def import_conversations(
    owner: Owner, conversations: Iterable[Conversation], *, dry_run: bool = False
) -> ImportedHistory:
    """Write what is new of each conversation into the session of its id.

    Importing the same again writes nothing; of a source that has grown, what is new. Raises
    what reading the source raises; what was written before that stays, and is known then.
    """
    imports = _DryRun(owner) if dry_run else _Import(owner)
    return ImportedHistory(
        dry_run=dry_run, conversations=[imports.import_one(one) for one in conversations]
    )


class _Import:
    """An import under way, into the sessions of one owner."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._state, self._name = state_and_owner(owner)
        self._ledger = self._state.ledger

    def import_one(self, one: Conversation) -> ImportedConversation:
        """Write the new messages of a conversation, or return why it is refused."""
        if not isinstance(one, Conversation):
            raise InvalidCall(
                f"a conversation of an importer, not {validation.type_name(one)}",
                hint="importers.formats.conversations(path) gives them",
            )
        row = self._find_session(one.id)
        known = self._count_known(row, one)
        refused = self._find_obstacle(row, one, known) if known < len(one.items) else None
        new = len(one.items) - known if refused is None else 0
        if new:
            try:
                self._write_new(row, one, known)
            except Conflict:
                refused = "something else was written into the session meanwhile"
                new = self._count_known(self._find_session(one.id), one) - known
        return ImportedConversation(
            id=one.id,
            title=self._session_title(one),
            new=new,
            known=known,
            refused=refused,
            report=one.report,
        )

    def _session_title(self, one: Conversation) -> str | None:
        """Return the title, or else the beginning of the first user message; masked."""
        title = one.title or next(
            (item.message.text for item in one.items if item.message.role == "user"), None
        )
        if title is None:
            return None
        if self._state.masker is not None:
            title = self._state.masker.mask(title)
        title = title.replace("\0", "\ufffd")  # no text column of a server holds NUL
        return title if one.title else _first_words(title)

    def _find_session(self, id: str) -> SessionRow | None:
        try:
            return self._ledger.sessions.get(self._name, id)
        except NotFound:
            return None

    def _count_known(self, row: SessionRow | None, one: Conversation) -> int:
        """Return how many messages are stored already; a key is of all messages up to its own."""
        low, high = 0, len(one.items)
        if high and self._is_known(row, one, high - 1):
            return high
        while low < high:
            middle = (low + high) // 2
            if self._is_known(row, one, middle):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_known(self, row: SessionRow | None, one: Conversation, item: int) -> bool:
        if row is None:
            return False
        return self._ledger.history.by_idempotency_key(row.key, one.items[item].key) is not None

    def _head_position(self, row: SessionRow | None, one: Conversation) -> int:
        return (
            0 if row is None else self._ledger.branches.head(row.key, row.current_branch).position
        )

    def _find_obstacle(self, row: SessionRow | None, one: Conversation, known: int) -> str | None:
        head, after = self._head_position(row, one), one.first - 1 + known
        if head > after:
            return f"the session has other messages after message {after}"
        if head < after:
            return f"the session ends at {head}, before its message {after}"
        # An append would end it; what is being said here goes on.
        if row is not None and self._ledger.drafts.get(row.key, row.current_branch) is not None:
            return "a reply is being recorded in the session"
        return None

    def _write_new(self, row: SessionRow | None, one: Conversation, known: int) -> None:
        row = row or self._create_session(one)
        if not known and one.first == 1:
            self._owner.import_lines(_export_lines(row, one))
            return
        session = self._owner.session(one.id)
        new = zip(one.items[known:], one.message_times()[known:], strict=True)
        for place, (item, at) in enumerate(new, one.first + known):
            session.append(item.message, idempotency_key=item.key, after=place - 1, created_at=at)

    def _create_session(self, one: Conversation) -> SessionRow:
        """Make the session, as old as the conversation is: a list of sessions goes by its times."""
        return self._ledger.sessions.create(
            self._name,
            one.id,
            encoding=self._state.encoding,
            title=self._session_title(one),
            created_at=microseconds(one.began, "created_at"),
        )


class _DryRun(_Import):
    """An import that writes nothing: messages that would be written count as known afterwards."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner)
        self._heads: dict[str, int] = {}
        self._keys: set[tuple[str, str]] = set()

    def _is_known(self, row: SessionRow | None, one: Conversation, item: int) -> bool:
        return (one.id, one.items[item].key) in self._keys or super()._is_known(row, one, item)

    def _head_position(self, row: SessionRow | None, one: Conversation) -> int:
        return self._heads[one.id] if one.id in self._heads else super()._head_position(row, one)

    def _write_new(self, row: SessionRow | None, one: Conversation, known: int) -> None:
        self._keys.update((one.id, item.key) for item in one.items)
        self._heads[one.id] = one.first - 1 + len(one.items)


def _first_words(text: str) -> str | None:
    line = " ".join(text.split())
    return (line if len(line) <= _TITLE else line[: _TITLE - 3] + "...") or None


def _export_lines(row: SessionRow, one: Conversation) -> Iterator[str]:
    """Yield a conversation as the lines of an export, which one step imports."""
    yield lines.written(HeaderLine(version=lines.VERSION))
    yield lines.written(SessionLine(owner=row.owner, id=row.id, encoding=row.encoding))
    for item, at in zip(one.items, one.message_times(), strict=True):
        yield lines.written(
            MessageLine(
                message=codec.message_to_json(item.message),
                created_at=microseconds(at, "created_at"),
                repeat=encode.repeat(item.key),
                batch=1,
            )
        )
    yield lines.written(SessionEndLine(messages=len(one.items)))
    yield lines.written(EndLine(sessions=1))
