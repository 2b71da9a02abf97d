"""A conversation store of Pydantic AI: a conversation is a session, an entry is a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

import reasoning_store as rs
from reasoning_store.integrations.pydantic_ai.messages import read_message, write_message
from reasoning_store.integrations.store_access import (
    all_sessions,
    check_owner,
    find_message,
    find_session,
    mark_recorded,
    run_in_thread,
)
from reasoning_store.results import Owner, Stored

_RECORD: Final = "pydanticAi"
_REVISION: Final = "pydanticAiRevision"
"""The keys of a session's metadata."""
_RECORDS: Final[TypeAdapter[ConversationRecord]] = TypeAdapter(ConversationRecord)


class SessionConversationStore(ConversationStore):  # type: ignore[misc]  # its types are not here
    """Conversations as sessions of one owner: the id of an entry is the id of a message.

    A record and its new entries are stored in one step. A fork copies the messages before it into
    a session of its own; to delete a conversation deletes its session. The scopes of records are
    those of Pydantic AI; the owner of the store is one more wall around all of them.
    """

    def __init__(self, store: Owner) -> None:
        self._store = check_owner(store)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None if there is no such session."""
        mark_recorded(self._store, conversation_id)
        return await run_in_thread(self._read_record_of, conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return records, the last saved first."""
        return await run_in_thread(self._read_records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries, if the revision is the expected one."""
        await run_in_thread(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete the session, if its revision is the expected one. Copies in forks stay."""
        await run_in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return the message of this id with that of the message before it."""
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the messages up to the one of this id, or the last of them."""
        return [] if head_id is None else await run_in_thread(self._history, head_id, limit)

    def _read_record_of(self, conversation_id: str) -> ConversationRecord | None:
        session = find_session(self._store, conversation_id)
        return None if session is None else _record_of(session.metadata)

    def _read_records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        records = (_record_of(session.metadata) for session in all_sessions(self._store))
        found = [one for one in records if one is not None and scope in (None, one.scope)]
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found[:limit]

    def _history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        session = self._store.find_session(head_id)
        if session is None:
            raise KeyError(head_id)
        if limit == 0:
            return []
        end = session.get(head_id).position + 1
        # One more than the limit: its id is the parent of the first.
        history = session.history(before=end, limit=None if limit is None else limit + 1)
        entries = []
        for before, stored in zip([None, *history], history, strict=False):
            message = write_message(stored.message)
            if message is not None:
                parent = None if before is None else before.id
                entries.append(ConversationEntry(id=stored.id, parent_id=parent, message=message))
        return entries if limit is None else entries[-limit:]

    def _write(
        self,
        record: ConversationRecord,
        entries: Sequence[ConversationEntry],
        expected: str | None,
    ) -> None:
        id = record.conversation_id
        session = find_session(self._store, id)
        found = None if session is None else session.metadata.get(_REVISION)
        if found != expected:
            raise ConversationConflict(id)
        parent = entries[0].parent_id if entries else record.head_id
        copies = self._to_copy(session, parent, id)
        if session is None:
            session = self._store.session(id, create=True)
        change: dict[str, Any] = {
            "update_metadata": {
                _RECORD: _RECORDS.dump_python(record, mode="json"),
                _REVISION: record.revision,
            },
            "expected": {_REVISION: expected},
        }
        branch = _branch_after(session, None if copies else parent)
        messages = [stored.message for stored in copies]
        ids = [stored.id for stored in copies]
        times: list[datetime | None] = [stored.created_at for stored in copies]
        for entry in entries:
            messages.append(read_message(entry.message))
            ids.append(entry.id)
            times.append(None)
        try:
            if messages:
                last = branch.head()
                branch.append(messages, id=ids, created_at=times, after=last, **change)
            else:
                branch.update_metadata(change["update_metadata"], expected=change["expected"])
        except rs.Conflict:
            raise ConversationConflict(id) from None
        if branch.branch_id != session.branch_id:
            session.activate(branch.branch_id)

    def _to_copy(self, session: rs.Session | None, parent: str | None, id: str) -> Sequence[Stored]:
        """Return the messages of another conversation that a fork begins with."""
        if parent is None or (session is not None and find_message(session, parent) is not None):
            return []
        source = self._store.find_session(parent)
        if source is None:
            raise ConversationConflict(id)
        history = source.history(before=source.get(parent).position + 1)
        return [stored for stored in history if stored.message.status != "erased"]

    def _delete(self, conversation_id: str, expected: str) -> None:
        session = find_session(self._store, conversation_id)
        gone = {_RECORD: None, _REVISION: None}
        try:
            if session is None:
                raise rs.NotFound("no such session")
            session.update_metadata(gone, expected={_REVISION: expected})
            session.delete()
        except (rs.Conflict, rs.NotFound):
            raise ConversationConflict(conversation_id) from None


def _record_of(metadata: Mapping[str, Any]) -> ConversationRecord | None:
    stored = metadata.get(_RECORD)
    return None if stored is None else _RECORDS.validate_python(stored)


def _branch_after(session: rs.Session, parent: str | None) -> rs.Session:
    """Return the session on a branch that ends with this message; without one, on an empty one."""
    end = 0
    if parent is not None:
        stored = session.get(parent)
        session, end = session.branch(stored.branch), stored.position
    return session if session.head() == end else session.fork(at=end + 1)
