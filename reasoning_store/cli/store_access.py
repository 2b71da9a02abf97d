"""The database and the session that a command works on.

A command that only reads creates no database. An unknown session is answered with those of a
similar name.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reasoning_store.cli import hints
from reasoning_store.cli.command import Call
from reasoning_store.cli.output import print_note
from reasoning_store.cli.progress import Progress
from reasoning_store.conversation.errors import (
    InvalidCall,
    NotFound,
    SchemaError,
)
from reasoning_store.ledger.database import files

if TYPE_CHECKING:
    from reasoning_store.session import Session
    from reasoning_store.store import Owner, Store

_NAMES = 1000
"""The number of latest sessions among which a similar name is searched."""


def database_url(call: Call) -> str:
    """Return the URL that was given, or that of the user's own database."""
    if call.db and "://" not in call.db and "@" not in call.db:
        raise InvalidCall(
            f"{call.db} is a path, not a database URL", hint=f"--db sqlite:///{call.db}"
        )
    return call.db or f"sqlite:///{default_path()}"


def default_path() -> Path:
    """Return the path of the user's own database, by the convention of the system."""
    try:
        return _data_folder() / "reasoning-store" / "chat.db"
    except RuntimeError:
        raise InvalidCall(
            "this user has no home folder for a database",
            hint="--db sqlite:///chat.db names one",
        ) from None


def _data_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def database_file(call: Call) -> Path | None:
    """Return the database's file; None for a server or memory."""
    from reasoning_store.ledger.database import open as engine

    return engine.file_of(engine.parse(database_url(call)))


def file_exists(path: Path) -> bool:
    """Whether a database's file exists; refuse a path that cannot be looked up."""
    return files.found(path, f"{path.name} cannot be opened") is not None


def require_file(call: Call) -> None:
    """Refuse a file that is not there."""
    path = database_file(call)
    if path is not None and not file_exists(path):
        raise NotFound(
            f"there is no database at {path}",
            hint=f"{hints.command_line(call, 'init')} creates one there; --db names another; "
            "reasoning-store demo needs none",
        )


def open_existing(call: Call) -> Store:
    """Open a database that is there already."""
    require_file(call)
    from reasoning_store.store import Store

    return Store(database_url(call))


def make_folder(call: Call) -> None:
    """Make the folder of the user's own database, where no other is named."""
    if call.db is None:
        folder = default_path().parent
        with files.system_errors(f"{folder} cannot be made"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_or_create(call: Call, *, unless: bool = False) -> Store:
    """Open a database and make it if it is absent; with ``unless``, open one in memory."""
    path = database_file(call)
    if path is None or file_exists(path):
        return open_existing(call)
    from reasoning_store.store import Store

    if unless:
        return Store("sqlite://")
    make_folder(call)
    store = Store(database_url(call))
    print_note(f"{path} was created")
    return store


def open_to_read(call: Call) -> Store:
    """Open a database that is there already, and write nothing to it.

    A file of an older version is upgraded first, as by every other command.
    """
    require_file(call)
    from reasoning_store.store import Store

    try:
        return Store(database_url(call), read_only=True)
    except SchemaError:
        return open_existing(call)


@contextmanager
def open_session(
    call: Call, owner: str, session_id: str, branch: int | None = None, *, writes: bool = False
) -> Iterator[Session]:
    """Open a session on its current branch, or on another one, to work on it silently."""
    with open_existing(call) if writes else open_to_read(call) as store, Progress("reading"):
        session = find_session(call, store.for_owner(owner), session_id)
        yield session if branch is None else session.branch(branch)


def find_session(call: Call, owner: Owner, session_id: str) -> Session:
    """Return a session; the error for an unknown name lists the nearest ones."""
    try:
        return owner.session(session_id)
    except NotFound:
        there = session_names(owner)
        begun = [name for name in there if name.startswith(session_id)]
        near = begun[:3] or difflib.get_close_matches(session_id, there, n=3)
        listed = f"{hints.command_line(call, 'sessions', of_owner=True)} lists them"
        raise NotFound(
            f"there is no session {session_id!r}",
            hint=f"did you mean {' or '.join(near)}?"
            if near
            else listed + ("" if call.owner else "; pass --owner for another owner's"),
        ) from None


def session_names(owner: Owner) -> list[str]:
    """Return the ids of an owner's latest sessions, archived ones too."""
    return [
        session.id
        for archived in (False, True)
        for session in owner.sessions(limit=_NAMES, archived=archived).items
    ]
