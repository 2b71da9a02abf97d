"""The verbs over one database.

Each verb is one short transaction that never waits for a caller's code, and returns whole
values: so the sync face calls it, the async face hands it to a thread, and neither can
hold the store open. Everything slow or able to fail in a caller's value (JSON, digests) is
done before the transaction starts. Ids and time come in here and nowhere below.

Knows the order of things: prepare, intern, append, and who answers when a key was there
before. The SQL is in the modules beside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from reasoning_store import codec
from reasoning_store.errors import Conflict, CorruptRow, UsageError
from reasoning_store.ledger import (
    appending,
    branches,
    columns,
    engine,
    faults,
    interning,
    keys,
    reading,
    sessions,
)
from reasoning_store.ledger.columns import Prepared
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import (
    BranchRow,
    Entry,
    Recounted,
    SentRow,
    SessionPage,
    SessionRow,
    State,
    StoredRow,
    UsageRows,
)

_REMEMBERED = 4096
_ATTEMPTS = 3
_MOST = 1 << 62
_MOST_TOKENS = 1 << 40


class Ledger(Opened):
    """What happened, on one database: every verb, each one short transaction."""

    def __init__(
        self,
        database: engine.Database,
        *,
        clock: Callable[[], int] = keys.now,
        new_id: Callable[[], str] = keys.new_id,
    ) -> None:
        super().__init__(database, clock=clock, new_id=new_id)
        self._interned: dict[tuple[int, int], None] = {}

    # Sessions

    def create_session(
        self,
        owner: str,
        id: str | None = None,
        *,
        encoding: str,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        created_at: int | None = None,
    ) -> SessionRow:
        """Create a session; Conflict where the owner has one of this id."""
        session_id = self._new_id() if id is None else id
        at = self._clock() if created_at is None else created_at

        row = sessions.new(
            owner,
            session_id,
            encoding=encoding,
            title=title,
            metadata=metadata or {},
            settings=settings or {},
            created_at=at,
        )
        try:
            return self._write(lambda connection: sessions.create(connection, row))
        except faults.Taken:
            raise Conflict("this owner has a session of this id already") from None

    def get_session(self, owner: str, id: str) -> SessionRow:
        """Return a session; another owner's is not found."""
        return self._read(lambda connection: sessions.get(connection, owner, id), single=True)

    def sessions(
        self,
        owner: str,
        *,
        limit: int = 50,
        after: str | None = None,
        archived: bool | None = False,
    ) -> SessionPage:
        """Return a page of an owner's sessions, latest first; ``archived`` None is both."""
        return self._read(
            lambda connection: sessions.page(
                connection, owner, limit=limit, after=after, archived=archived
            ),
            single=True,
        )

    def rename(self, session_key: int, title: str | None) -> SessionRow:
        return self._change(session_key, "title", None if title is None else codec.dumps(title))

    def set_metadata(self, session_key: int, metadata: Mapping[str, Any]) -> SessionRow:
        return self._change(session_key, "metadata", codec.dumps(dict(metadata)))

    def set_settings(self, session_key: int, settings: Mapping[str, Any]) -> SessionRow:
        """Replace the session's own layer of settings."""
        return self._change(session_key, "settings", codec.dumps(dict(settings)))

    def archive(self, session_key: int, *, archived: bool = True) -> SessionRow:
        return self._change(session_key, "archived", int(archived))

    def _change(self, session_key: int, column: str, value: Any) -> SessionRow:
        return self._write(
            lambda connection: sessions.change(connection, session_key, column, value), single=True
        )

    # Messages

    def append(
        self,
        session_key: int,
        branch: int,
        entries: Sequence[Entry],
        *,
        after: int | None = None,
        idempotency_key: str | None = None,
        created_at: int | None = None,
    ) -> list[StoredRow]:
        """Append messages behind one another, all or none of them.

        ``idempotency_key`` covers all of ``entries``: given again with equal messages it
        returns what was written first, with others it is a Conflict. ``after`` is the
        position that the first of them must follow.
        """
        branches.check(branch)
        if not entries:
            raise UsageError("append: no message was given")
        if after is not None:
            after = min(max(after, -1), _MOST)
        key_text = None
        if idempotency_key is not None:
            key_text = columns.name(idempotency_key, "an idempotency key")
        now = self._clock()
        at = now if created_at is None else created_at
        if not -_MOST < at < _MOST:
            raise UsageError("created_at: out of range")
        prepared = [self._prepared(entry, at) for entry in entries]

        def work(connection: Connection) -> int | None:
            return appending.append(
                connection,
                session_key,
                branch,
                prepared,
                after=after,
                idempotency_key=key_text,
                now=at,
            )

        for _ in range(_ATTEMPTS):
            first = self._append(session_key, prepared, work, keyed=key_text is not None)
            if first is not None:
                return _new_rows(branch, first, prepared)
            stored = self._read(
                lambda connection: _first_result(
                    connection, session_key, branch, prepared, key_text, after
                )
            )
            if stored is not None:
                return stored
            # What stood in the way is there no more: it was written or erased meanwhile.
        raise CorruptRow("a message stands where the branch says that none does")

    def _prepared(self, entry: Entry, created_at: int) -> Prepared:
        if len(entry.counts.thinking) != len(entry.message.thinking):
            raise UsageError("counts: one number for each thinking block")
        if entry.message.status == "streaming":
            raise UsageError("a message that is still streaming is a draft, and is not appended")
        counted = (entry.counts.visible, *entry.counts.thinking)
        if not all(0 <= tokens < _MOST_TOKENS for tokens in counted):
            raise UsageError("counts: a number of tokens is out of range")
        return columns.prepare(entry, id=self._new_id(), created_at=created_at)

    def _append(
        self,
        session_key: int,
        prepared: Sequence[Prepared],
        work: Callable[[Connection], int | None],
        *,
        keyed: bool,
    ) -> int | None:
        """Return the first position; None says that something else stands in the way."""

        def once() -> int | None:
            self._intern(session_key, prepared)
            return self._write(work, single=True, again_when_lost=keyed)

        try:
            return once()
        except faults.Taken:
            return None
        except faults.Dangling:
            # The session was erased since its origins were interned, and may be there again.
            self._interned.clear()
        try:
            return once()
        except (faults.Taken, faults.Dangling):
            return None

    def _intern(self, session_key: int, prepared: Sequence[Prepared]) -> None:
        wanted = {
            item.origin
            for item in prepared
            if item.origin and (session_key, item.origin[0]) not in self._interned
        }
        if not wanted:
            return
        self._write(lambda connection: interning.intern(connection, session_key, wanted))
        if len(self._interned) > _REMEMBERED:
            self._interned.clear()
        self._interned.update(dict.fromkeys((session_key, number) for number, _ in wanted))

    def by_idempotency_key(self, session_key: int, idempotency_key: str) -> list[StoredRow] | None:
        """Return what was appended under a key, if anything was."""
        text = columns.name(idempotency_key, "an idempotency key")
        return self._read(
            lambda connection: reading.by_idempotency_key(connection, session_key, text)
        )

    def history(
        self,
        session_key: int,
        branch: int,
        *,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
        thinking: bool = True,
    ) -> list[StoredRow]:
        """Return messages in order, those strictly between ``after`` and ``before``.

        A ``limit`` keeps those next to ``after`` where only that is given, else the latest.
        Without ``thinking`` the table that holds it is not read.
        """
        return self._read(
            lambda connection: reading.history(
                connection,
                session_key,
                branch,
                limit=limit,
                before=before,
                after=after,
                thinking=thinking,
            )
        )

    def get(
        self, session_key: int, branch: int, position: int, *, thinking: bool = True
    ) -> StoredRow:
        return self._read(
            lambda connection: reading.get(
                connection, session_key, branch, position, thinking=thinking
            )
        )

    def head(self, session_key: int, branch: int) -> State:
        """Return the state at the head of a branch; its position is the last one there."""
        return self.get_branch(session_key, branch).state

    def states(self, session_key: int, branch: int, at: int | None = None) -> UsageRows:
        """Return what a count of any policy needs at the head, or at an earlier position."""
        return self._read(lambda connection: reading.usage(connection, session_key, branch, at))

    def last_sent(self, session_key: int, branch: int, at: int | None = None) -> SentRow | None:
        """Return the last recorded reply's request, at the head or at an earlier position."""
        return self._read(lambda connection: reading.last_sent(connection, session_key, branch, at))

    def recount(self, session_key: int, branch: int) -> list[Recounted]:
        """Return each row's carried state beside the one recomputed from the rows.

        The last is the branch's own.
        """
        return self._read(lambda connection: reading.recount(connection, session_key, branch))

    # Branches

    def branches(self, session_key: int) -> list[BranchRow]:
        return self._read(lambda connection: branches.all_of(connection, session_key), single=True)

    def get_branch(self, session_key: int, branch: int) -> BranchRow:
        return self._read(
            lambda connection: branches.get(connection, session_key, branch)[0], single=True
        )

    def fork(self, session_key: int, branch: int, at: int, *, created_at: int | None = None) -> int:
        """Return a new branch that shares the messages before ``at`` and nothing after."""
        now = self._clock() if created_at is None else created_at
        return self._write(
            lambda connection: branches.fork(connection, session_key, branch, at, created_at=now)
        )

    def activate(self, session_key: int, branch: int) -> SessionRow:
        """Make a branch the one that opening the session gives."""

        def work(connection: Connection) -> SessionRow:
            branches.get(connection, session_key, branch)
            return sessions.change(connection, session_key, "current_branch", branch)

        return self._write(work)


def _new_rows(branch: int, first: int, prepared: Sequence[Prepared]) -> list[StoredRow]:
    return [
        StoredRow(
            id=item.columns["id"],
            position=position,
            branch=branch,
            message=item.entry.message,
            counts=item.entry.counts,
            created_at=item.columns["created_at"],
            digest=item.columns["digest"],
            is_new=True,
        )
        for position, item in enumerate(prepared, first)
    ]


def _first_result(
    connection: Connection,
    session_key: int,
    branch: int,
    prepared: Sequence[Prepared],
    idempotency_key: str | None,
    after: int | None,
) -> list[StoredRow] | None:
    """Say why an append wrote nothing: it was written before, or it does not fit.

    None says that by now nothing stands in its way.
    """
    if idempotency_key is not None:
        stored = reading.by_idempotency_key(connection, session_key, idempotency_key)
        if stored is not None:
            if [row.digest for row in stored] == [item.columns["digest"] for item in prepared]:
                return stored
            raise Conflict("this idempotency key stands for another message", stored=stored)
    found, _ = branches.get(connection, session_key, branch)
    if after is not None and found.state.position != after:
        raise Conflict(
            f"the last message is at {found.state.position}, not at {after}",
            hint="read the messages after it, then decide anew",
        )
    return None
