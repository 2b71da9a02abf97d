"""The database and the session that a command works on.

A command that only reads creates no database. An unknown session is answered with those of a
similar name.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reasoning_store import InvalidCall, NotFound, SchemaError
from reasoning_store.cli import hints
from reasoning_store.cli.command import Call
from reasoning_store.cli.output import print_note
from reasoning_store.cli.progress import Progress
from reasoning_store.ledger.database import files

if TYPE_CHECKING:
    from reasoning_store import Session, Store
    from reasoning_store.results import Owner

_NAMES = 1000
"""The number of latest sessions among which a name is searched that is not an id."""
_DATA_FOLDER = {
    "win32": ("LOCALAPPDATA", "~/AppData/Local"),
    "darwin": ("", "~/Library/Application Support"),
}
"""The variable that names the folder for a user's data, and the usual one."""
LATEST = "@latest"
"""The name of the session with the latest message."""
_SCHEME = re.compile(r"(sqlite|postgres\w*)[:+]", re.IGNORECASE)


def database_url(call: Call) -> str:
    """Return the URL of the database that was given, or of the user's own; a path is a file's."""
    given = call.db or str(default_path())
    is_path = "://" not in given and "@" not in given and not _SCHEME.match(given)
    return f"sqlite:///{given}" if is_path else given


def default_path() -> Path:
    """Return the path of the user's own database, by the convention of the system."""
    variable, usual = _DATA_FOLDER.get(sys.platform, ("XDG_DATA_HOME", "~/.local/share"))
    try:
        folder = Path(os.environ.get(variable) or usual).expanduser()
    except RuntimeError:
        raise InvalidCall(
            "this user has no home folder for a database",
            hint="--db sqlite:///chat.db names one",
        ) from None
    return folder / "reasoning-store" / "chat.db"


def database_file(call: Call) -> Path | None:
    """Return the database's file; None for a server or memory."""
    from reasoning_store import Store

    return Store.file_of(database_url(call))


def is_in_memory(call: Call) -> bool:
    """Whether the database is one that only this process has."""
    return database_file(call) is None and database_url(call).startswith("sqlite")


def file_exists(path: Path) -> bool:
    """Whether a database's file exists; refuse a path that cannot be looked up."""
    return files.status_of(path, f"{path.name} cannot be opened") is not None


def require_file(call: Call) -> None:
    """Refuse a file that is not there."""
    path = database_file(call)
    if path is not None and not file_exists(path):
        raise NotFound(
            f"there is no database at {path}",
            hint=f"{hints.command_line(call, 'db', 'create')} creates one there; --db names "
            "another; reasoning-store demo needs none",
        )


def open_existing(call: Call) -> Store:
    """Open a database that is there already."""
    require_file(call)
    from reasoning_store import Store

    return Store(database_url(call))


def make_folder(call: Call) -> None:
    """Make the folder of the user's own database, where no other is named."""
    if call.db is None:
        folder = default_path().parent
        with files.system_errors(f"{folder} cannot be made"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_or_create(call: Call, *, dry_run: bool = False) -> Store:
    """Open a database; an absent one is made, on a ``dry_run`` in memory."""
    path = database_file(call)
    if path is None or file_exists(path):
        return open_existing(call)
    from reasoning_store import Store

    if dry_run:
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
    from reasoning_store import Store

    try:
        return Store(database_url(call), read_only=True)
    except SchemaError:
        return open_existing(call)


@dataclass(frozen=True, slots=True)
class Where:
    """The session that a command line names."""

    session_id: str
    owner: str
    branch: int | None = None

    @contextmanager
    def open(self, call: Call, *, writes: bool = False) -> Iterator[Session]:
        """Open the session on its current branch, or on the one that is named."""
        with self._open_owner(call, writes=writes) as owner:
            yield self._on_branch(find_session(call, owner, self.session_id))

    @contextmanager
    def open_place(self, call: Call, *, writes: bool) -> Iterator[tuple[Session, int | str | None]]:
        """Open the session, and the position or id of the message where it is SESSION:POSITION."""
        with self._open_owner(call, writes=writes) as owner:
            place: int | str | None = None
            try:
                session = find_session(call, owner, self.session_id)
            except NotFound:
                name, _, word = self.session_id.rpartition(":")
                if not name or not word:
                    raise
                session = find_session(call, owner, name)
                place = int(word) if word.isdecimal() else word
            yield self._on_branch(session), place

    @contextmanager
    def open_message(self, call: Call) -> Iterator[tuple[Session, int | str]]:
        """Open the session of SESSION:POSITION to change it there."""
        with self.open_place(call, writes=True) as (session, place):
            if place is None:
                raise InvalidCall(
                    f"{self.session_id!r} is not SESSION:POSITION",
                    hint="for example chat-42:2, or SESSION:ID",
                )
            yield session, place

    @contextmanager
    def _open_owner(self, call: Call, *, writes: bool) -> Iterator[Owner]:
        with open_existing(call) if writes else open_to_read(call) as store, Progress("reading"):
            yield store.for_owner(self.owner)

    def _on_branch(self, session: Session) -> Session:
        return session if self.branch is None else session.branch(self.branch)


def find_session(call: Call, owner: Owner, name: str, *, whole: bool = False) -> Session:
    """Return a session by its id, by the beginning that no other id has, or as ``@latest``.

    ``whole`` takes the id alone. The error for an unknown name lists the nearest ones.
    """
    try:
        return owner.session(name)
    except NotFound:
        if name == LATEST and not whole and (latest := owner.sessions(limit=1).items):
            return latest[0]
        there = session_names(owner)
        begun = [each for each in there if each.startswith(name)]
        if len(begun) == 1 and not whole:
            return owner.session(begun[0])
        near = begun[:3] or difflib.get_close_matches(name, there, n=3)
        listed = f"{hints.command_line(call, 'sessions', of_owner=True)} lists them"
        raise NotFound(
            ("there is no session" if name == LATEST else f"there is no session {name!r}")
            if not begun or whole
            else f"{len(begun)} sessions begin with {name!r}",
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
