"""A session service of the Agent Development Kit in a store.

The sessions of a user in an app are those of the owner ``app/user``. State of a session is its
metadata; that of a user is with one more session of the owner, and that of an app with a session
of the owner ``app``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

import reasoning_store as rs
from reasoning_store.integrations.google_adk.events import event_form, read_event, write_event
from reasoning_store.integrations.store_access import (
    all_sessions,
    find_message,
    find_session,
    mark_recorded,
    run_in_thread,
)
from reasoning_store.results import Owner

try:
    from google.adk.errors._stale_session_error import StaleSessionError
except ImportError:  # in the versions before it
    StaleSessionError = ValueError

_STATE: Final = "state:"
"""How the keys of state begin in metadata; each value is in a list, because None removes a key."""
_USER_STATE: Final = "adk:user-state"
_APP_STATE: Final = "adk:app-state"
_UPDATED: Final = "lastUpdateTime"
_REVISION: Final = "revision"
_LOCKS: Final = 64
_PAGE: Final = 200


class StoredSessionService(BaseSessionService):  # type: ignore[misc]  # its types are not here
    """The sessions, events and state of agents in a store.

    Events come back equal to those that were appended. Give it an ``rs.Store``, also for
    asynchronous agents: each verb runs in a thread.
    """

    def __init__(self, store: rs.Store) -> None:
        if not isinstance(store, rs.Store):
            raise rs.InvalidCall(
                f"a store, not {type(store).__name__}", hint='rs.Store("sqlite:///chat.db")'
            )
        self._store = store
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Make a session with its first state."""
        return await run_in_thread(self._create, app_name, user_id, state, session_id)

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events and the state of session, user and app."""
        mark_recorded(self._owner(app_name, user_id), session_id)
        return await run_in_thread(self._get, app_name, user_id, session_id, config)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of a user, or of all users, without events; the oldest first."""
        return await run_in_thread(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session, if there is one."""
        await run_in_thread(self._delete, app_name, user_id, session_id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user, without the prefix of its keys."""
        return await run_in_thread(self._user_state, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event with its changes of state; one that is stored already changes nothing.

        Raises ``StaleSessionError`` where another has appended since ``session`` was read.
        """
        mark_recorded(self._owner(session.app_name, session.user_id), session.id)
        if event.partial or not await run_in_thread(self._append, session, event):
            return event
        return await super().append_event(session=session, event=event)

    def _create(
        self, app: str, user: str, state: Mapping[str, Any] | None, session_id: str | None
    ) -> Session:
        owner, named = self._owner(app, user), (session_id or "").strip() or None
        if named == _USER_STATE:
            raise rs.InvalidCall(f"session_id: {_USER_STATE} is the state of the user")
        made = owner.session(named, create=True)
        if _REVISION in made.metadata or made.head():
            raise AlreadyExistsError(f"Session with id {named} already exists.")
        given = _split(_as_json(state or {}))
        self._change_shared_state(app, user, given)
        changes = {**_written(given[""]), _REVISION: 0, _UPDATED: time.time()}
        try:
            made.update_metadata(changes, expected={_REVISION: None})
        except rs.Conflict:
            raise AlreadyExistsError(f"Session with id {named} already exists.") from None
        return self._session(app, user, made, [], 0)

    def _get(
        self, app: str, user: str, session_id: str, config: GetSessionConfig | None
    ) -> Session | None:
        found = self._find(app, user, session_id)
        if found is None:
            return None
        # The metadata was read before the events: an append between is seen as one since.
        head = found.head()
        return self._session(app, user, found, _events(found, config), head)

    def _list(self, app: str, user: str | None) -> ListSessionsResponse:
        users = self._users(app) if user is None else [user]
        sessions = [
            self._session(app, one, session, [], None)
            for one in users
            for session in all_sessions(self._owner(app, one))
            if session.id != _USER_STATE
        ]
        sessions.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=sessions)

    def _delete(self, app: str, user: str, session_id: str) -> None:
        found = self._find(app, user, session_id)
        if found is not None:
            found.delete()

    def _append(self, session: Session, event: Event) -> bool:
        """Store an event, and note in ``session`` that it has it; False if it is stored."""
        app, user = session.app_name, session.user_id
        with self._locks[hash((app, user, session.id)) % _LOCKS]:
            stored = find_session(self._owner(app, user), session.id)
            if stored is None:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            form = event_form(event)
            same = find_message(stored, event.id)
            if same is not None and write_event(same.message) == Event.model_validate(form):
                return False
            revision, head = stored.metadata.get(_REVISION), stored.head()
            marker = _marker(revision, head)
            if not _is_current(session, stored, marker, head):
                raise StaleSessionError("The session was modified in storage since it was read.")
            changed = _split(form.get("actions", {}).get("state_delta", {}))
            self._change_shared_state(app, user, changed)
            number = (revision or 0) + 1
            try:
                stored.append(
                    read_event(event),
                    id=None if same is not None else event.id,
                    after=head,
                    created_at=datetime.fromtimestamp(event.timestamp, UTC),
                    update_metadata={
                        **_written(changed[""]),
                        _REVISION: number,
                        _UPDATED: event.timestamp,
                    },
                    expected={_REVISION: revision},
                )
            except rs.Conflict:
                raise StaleSessionError(
                    "The session was modified in storage since it was read."
                ) from None
            session._storage_update_marker = _marker(number, head + 1)
            session.last_update_time = event.timestamp
        return True

    # Where things are

    def _owner(self, app: str, user: str) -> Owner:
        return self._store.for_owner(f"{_escaped(app)}/{user}")

    def _find(self, app: str, user: str, session_id: str) -> rs.Session | None:
        named = (session_id or "").strip()
        is_one = named not in ("", _USER_STATE)
        return find_session(self._owner(app, user), named) if is_one else None

    def _shared_state(self, app: str, user: str) -> dict[str, tuple[Owner, str]]:
        """Return the owner and the session that hold the state of app and user, by its prefix."""
        return {
            State.APP_PREFIX: (self._store.for_owner(_escaped(app)), _APP_STATE),
            State.USER_PREFIX: (self._owner(app, user), _USER_STATE),
        }

    def _users(self, app: str) -> list[str]:
        """Return the users of an app."""
        begin, found, after = f"{_escaped(app)}/", [], None
        while True:
            page = self._store.owners(limit=_PAGE, after=after)
            found += [one.removeprefix(begin) for one in page.items if one.startswith(begin)]
            after = page.next
            if after is None:
                return found

    def _user_state(self, app: str, user: str) -> dict[str, Any]:
        return _state_in(self._owner(app, user), _USER_STATE)

    def _change_shared_state(
        self, app: str, user: str, changed: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Store the state of app and user; it is stored before the event, which can be repeated."""
        for prefix, (owner, named) in self._shared_state(app, user).items():
            if not changed[prefix]:
                continue
            holder = owner.session(named, create=True)
            if not holder.archived:
                holder.archive()  # it is no conversation
            holder.update_metadata(_written(changed[prefix]))

    def _session(
        self, app: str, user: str, stored: rs.Session, events: list[Event], head: int | None
    ) -> Session:
        state = _read(stored.metadata)
        for prefix, place in self._shared_state(app, user).items():
            state |= {prefix + key: value for key, value in _state_in(*place).items()}
        updated = stored.metadata.get(_UPDATED)
        made = Session(
            app_name=app,
            user_id=user,
            id=stored.id,
            state=state,
            events=events,
            last_update_time=stored.updated_at.timestamp() if updated is None else updated,
        )
        if head is not None:
            made._storage_update_marker = _marker(stored.metadata.get(_REVISION), head)
        return made


def _escaped(app: str) -> str:
    return app.replace("%", "%25").replace("/", "%2F")


def _marker(revision: int | None, head: int) -> str:
    return f"{revision or 0}:{head}"


def _is_current(session: Session, stored: rs.Session, marker: str, head: int) -> bool:
    """Whether nothing was appended since a session was read."""
    if session._storage_update_marker is not None:
        return bool(session._storage_update_marker == marker)
    if not head or not session.events:
        return not head and not session.events
    last = write_event(stored.get(head).message)
    return last is not None and bool(last.id == session.events[-1].id)


def _events(session: rs.Session, config: GetSessionConfig | None) -> list[Event]:
    count = None if config is None else config.num_recent_events
    since = None if config is None else config.after_timestamp
    if count == 0:
        return []
    history = session.history(limit=count if since is None else None)
    written = (write_event(one.message) for one in history)
    events = [
        event
        for event in written
        if event is not None and (since is None or event.timestamp >= since)
    ]
    return events if count is None else events[-count:]


# State


def _as_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return state as the kit writes it: what JSON cannot hold becomes a text."""
    dumped = EventActions(state_delta=dict(state)).model_dump(mode="json")
    return dict(dumped["state_delta"])


def _split(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the state of app, user and session (under no prefix), without the prefixes."""
    found: dict[str, dict[str, Any]] = {State.APP_PREFIX: {}, State.USER_PREFIX: {}, "": {}}
    for key, value in state.items():
        prefix = next(one for one in found if key.startswith(one))
        if not key.startswith(State.TEMP_PREFIX):
            found[prefix][key.removeprefix(prefix)] = value
    return found


def _written(state: Mapping[str, Any]) -> dict[str, Any]:
    return {_STATE + key: [value] for key, value in state.items()}


def _read(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key.removeprefix(_STATE): value[0]
        for key, value in metadata.items()
        if key.startswith(_STATE)
    }


def _state_in(owner: Owner, session_id: str) -> dict[str, Any]:
    session = find_session(owner, session_id)
    return {} if session is None else _read(session.metadata)
