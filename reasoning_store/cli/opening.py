"""Which database a command works on, and which session of it.

Looking at a database never makes one. What is not there is answered with what is: the
sessions of nearly that name.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reasoning_store import files
from reasoning_store.cli import advice
from reasoning_store.cli.call import Call
from reasoning_store.cli.progress import Progress
from reasoning_store.errors import NotFound, UsageError

if TYPE_CHECKING:
    from reasoning_store.session import Session
    from reasoning_store.store import Owner, Store

_NAMES = 1000
"""Among how many of the latest sessions a name is searched for."""


def url(call: Call) -> str:
    """Return the URL that was given, else that of the user's own database."""
    if call.db and "://" not in call.db and os.path.isfile(call.db):
        raise UsageError(
            f"{call.db} is a path, not a database URL", hint=f"--db sqlite:///{call.db}"
        )
    return call.db or f"sqlite:///{default_path()}"


def default_path() -> Path:
    """Return where a user's own database lies, by the custom of the system."""
    try:
        return _data_folder() / "reasoning-store" / "chat.db"
    except RuntimeError:
        raise UsageError(
            "this user has no home folder to keep a database in",
            hint="--db sqlite:///chat.db names one",
        ) from None


def _data_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def file(call: Call) -> Path | None:
    """Return the database's file; None where it is on a server or in memory."""
    from reasoning_store.ledger import engine

    return engine.file_of(engine.parse(url(call)))


def is_there(path: Path) -> bool:
    """Whether anything is at a database's path; refuse one that cannot be looked up."""
    return files.found(path, f"{path.name} cannot be opened") is not None


def require(call: Call) -> None:
    """Refuse a file that is not there."""
    path = file(call)
    if path is not None and not is_there(path):
        raise NotFound(
            f"there is no database at {path}",
            hint=f"{advice.line(call, 'init')} makes one there; --db names another; "
            "reasoning-store demo needs none",
        )


def existing(call: Call) -> Store:
    """Open a database that is there already."""
    require(call)
    from reasoning_store.store import Store

    return Store(url(call))


@contextmanager
def opened(call: Call, owner: str, session_id: str, branch: int | None = None) -> Iterator[Session]:
    """Open a session on its current branch, or on another one, to work on it silently."""
    with existing(call) as store, Progress("reading"):
        session = find(call, store.for_owner(owner), session_id)
        yield session if branch is None else session.branch(branch)


def find(call: Call, owner: Owner, session_id: str) -> Session:
    """Return a session; where there is none of this name, tell the nearest ones."""
    try:
        return owner.session(session_id)
    except NotFound:
        near = difflib.get_close_matches(session_id, names(owner), n=3)
        listed = f"{advice.line(call, 'sessions', of_owner=True)} lists them"
        raise NotFound(
            f"there is no session {session_id!r}",
            hint=f"did you mean {' or '.join(near)}?"
            if near
            else listed + ("" if call.owner else "; --owner names whose"),
        ) from None


def names(owner: Owner) -> list[str]:
    """Return the ids of an owner's latest sessions, archived ones too."""
    return [
        session.id
        for archived in (False, True)
        for session in owner.sessions(limit=_NAMES, archived=archived).items
    ]
