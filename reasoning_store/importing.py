"""The face of imports: conversations kept elsewhere, written into a store once.

What is there already is known by the keys of its messages: a message's key stands for all
before it, so the keys that a session knows are those of a beginning, and only the rest is
written, at the place where it stood. Where something else stands at that place, because the
session has gone on or the source was changed, the conversation is refused and the others are
not. A dry run asks the same questions and writes nothing.

Glue, no rule of its own: what a format means is the business of ``importers``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from reasoning_store import codec
from reasoning_store.errors import Conflict, NotFound
from reasoning_store.importers.values import Conversation, Report
from reasoning_store.ledger import columns, lines
from reasoning_store.ledger.lines import (
    EndLine,
    HeaderLine,
    MessageLine,
    SessionEndLine,
    SessionLine,
)
from reasoning_store.session import Session
from reasoning_store.store import Owner
from reasoning_store.stored import microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """What became of one conversation."""

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
    """What an import came to, conversation by conversation."""

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
    pretended: dict[str, _Pretended] = {}
    return ImportedHistory(
        dry_run=dry_run,
        conversations=[_one(owner, one, pretended if dry_run else None) for one in conversations],
    )


@dataclass(slots=True)
class _Pretended:
    """What a dry run would have written into a session by now."""

    head: int
    keys: set[str] = field(default_factory=set)


def _one(
    owner: Owner, one: Conversation, pretended: dict[str, _Pretended] | None
) -> ImportedConversation:
    session = _session(owner, one.id)
    written = None if pretended is None else pretended.get(one.id)
    known = _known(session, one, written)
    head = written.head if written is not None else _head(session)
    after = one.first - 1 + known
    refused = _obstacle(session, head, after) if known < len(one.items) else None
    new = len(one.items) - known if refused is None else 0
    if new and pretended is not None:
        keys = pretended.setdefault(one.id, _Pretended(head)).keys
        keys.update(item.key for item in one.items[known:])
        pretended[one.id].head = head + new
    elif new:
        try:
            _write(owner, one, known)
        except Conflict:
            refused = "something else was written into the session meanwhile"
            new = _known(_session(owner, one.id), one, None) - known
    return ImportedConversation(
        id=one.id, title=one.title, new=new, known=known, refused=refused, report=one.report
    )


def _session(owner: Owner, id: str) -> Session | None:
    try:
        return owner.session(id)
    except NotFound:
        return None


def _head(session: Session | None) -> int:
    if session is None:
        return 0
    return session._workings.ledger.head(session._row.key, session._branch).position


def _known(session: Session | None, one: Conversation, written: _Pretended | None) -> int:
    """Return how many of the messages are there: a key that is known stands for all before it."""

    def is_known(key: str) -> bool:
        if written is not None and key in written.keys:
            return True
        if session is None:
            return False
        ledger = session._workings.ledger
        return ledger.by_idempotency_key(session._row.key, key) is not None

    low, high = 0, len(one.items)
    if high and is_known(one.items[-1].key):
        return high
    while low < high:
        middle = (low + high) // 2
        if is_known(one.items[middle].key):
            low = middle + 1
        else:
            high = middle
    return low


def _obstacle(session: Session | None, head: int, after: int) -> str | None:
    if head > after:
        return f"something else stands in the session behind its message {after}"
    if head < after:
        return f"the session ends at {head}, before its message {after}"
    if session is None:
        return None
    # An append would end it; what is being said here goes on.
    draft = session._workings.ledger.draft(session._row.key, session._branch)
    return None if draft is None else "a reply is being recorded in the session"


def _write(owner: Owner, one: Conversation, known: int) -> None:
    session = _session(owner, one.id) or _begun(owner, one)
    if not known and one.first == 1:
        owner.import_lines(_lines(session, one))
        return
    for place, item in enumerate(one.items[known:], one.first + known):
        session.append(
            item.message, idempotency_key=item.key, after=place - 1, created_at=item.created_at
        )


def _begun(owner: Owner, one: Conversation) -> Session:
    """Make the session, as old as the conversation is: a list of sessions goes by its times."""
    workings = owner._workings
    row = workings.ledger.create_session(
        owner._owner,
        one.id,
        encoding=workings.encoding,
        title=one.title,
        created_at=None if one.created_at is None else microseconds(one.created_at),
    )
    return Session(workings, row, row.current_branch)


def _lines(session: Session, one: Conversation) -> Iterator[str]:
    """A whole conversation as the lines of an export: a few hundred messages are one step."""
    yield lines.written(HeaderLine(version=lines.VERSION))
    yield lines.written(
        SessionLine(owner=session.owner, id=session.id, encoding=session._row.encoding)
    )
    for item in one.items:
        yield lines.written(
            MessageLine(
                message=codec.message_to_json(item.message),
                created_at=None if item.created_at is None else microseconds(item.created_at),
                repeat=columns.repeat(item.key),
                batch=1,
            )
        )
    yield lines.written(SessionEndLine(messages=len(one.items)))
    yield lines.written(EndLine(sessions=1))
