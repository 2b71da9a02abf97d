"""The verbs of sessions: made, found, listed, renamed, set.

Knows what a session's row says; knows no message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from reasoning_store import codec
from reasoning_store.errors import Conflict
from reasoning_store.ledger import arguments, faults, sessions
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import SessionPage, SessionRow


class SessionVerbs(Opened):
    """Sessions of owners."""

    def create_session(
        self,
        owner: str,
        id: str | None = None,
        *,
        encoding: str,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
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
            metadata={} if metadata is None else metadata,
            settings={},
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
        if archived is not None:
            arguments.truth(archived, "archived")
        return self._read(
            lambda connection: sessions.page(
                connection, owner, limit=limit, after=after, archived=archived
            ),
            single=True,
        )

    def rename(self, session_key: int, title: str | None) -> SessionRow:
        return self._change(session_key, "title", sessions.titled(title))

    def set_metadata(self, session_key: int, metadata: Mapping[str, Any]) -> SessionRow:
        held = codec.dumps(arguments.mapping(metadata, "metadata"))
        return self._change(session_key, "metadata", held)

    def change_settings(
        self, session_key: int, changes: Mapping[str, Any], *, unset: Collection[str] = ()
    ) -> SessionRow:
        """Change some of the session's own settings, and leave the others as they are."""

        def work(connection: Connection) -> SessionRow:
            sessions.lock(connection, session_key)
            now = sessions.by_key(connection, session_key).settings
            kept = {key: value for key, value in now.items() if key not in unset}
            settings = codec.dumps({**kept, **changes})
            return sessions.change(connection, session_key, "settings", settings)

        return self._write(work)

    def archive(self, session_key: int, *, archived: bool = True) -> SessionRow:
        kept = int(arguments.truth(archived, "archived"))
        return self._change(session_key, "archived", kept)

    def _change(self, session_key: int, column: str, value: Any) -> SessionRow:
        return self._write(
            lambda connection: sessions.change(connection, session_key, column, value)
        )
