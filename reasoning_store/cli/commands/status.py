"""The call without a command: the content of the database, and what to do next."""

from __future__ import annotations

from pathlib import Path

from reasoning_store.cli import hints, store_access
from reasoning_store.cli.command import Call
from reasoning_store.cli.output import Page, local_time, plural, print_answer, print_note, utc_time

_LATEST = 5
_COUNTED = 1000


def print_status(call: Call) -> None:
    """Print the content of the database, or that no database exists yet."""
    call.command = "status"
    path = store_access.database_file(call)
    if path is not None and not store_access.file_exists(path):
        _print_absence(call, path)
    else:
        _print_database(call, path)


def _print_absence(call: Call, path: Path) -> None:
    print_answer(
        call,
        {
            "database": str(path),
            "exists": False,
            "revision": None,
            "bytes": None,
            "sessions": 0,
            "moreSessions": False,
            "latest": [],
        },
        lambda page: page.line(f"There is no database yet at {path}."),
    )
    made = hints.command_line(call, "init")
    print_note(f"to see the program at work: reasoning-store demo; to create a database: {made}")


def _print_database(call: Call, path: Path | None) -> None:
    with store_access.open_to_read(call) as store:
        found, revision = store.sessions(limit=_COUNTED), store.revision
        others = any(store.owners(limit=2).items)
        latest = [(session, session.usage().effective) for session in found.items[:_LATEST]]
    place = _engine_name(call) if path is None else str(path)
    size = None if path is None else path.stat().st_size

    def write_page(page: Page) -> None:
        told = "" if size is None else f", {_size_text(size)}"
        page.line(f"{place} (revision {revision}{told})")
        more = "" if found.next is None else "more than "
        owned = " of the owner without a name" if others else ""
        page.line(f"{more}{plural(len(found.items), 'session')}{owned}")
        if latest:
            page.line()
            page.table(
                ("last message", "session", "next request", "title"),
                [
                    (
                        local_time(session.updated_at),
                        session.id,
                        str(effective),
                        session.title or "",
                    )
                    for session, effective in latest
                ],
                right=("next request",),
            )

    print_answer(
        call,
        {
            "database": place,
            "exists": True,
            "revision": revision,
            "bytes": size,
            "sessions": len(found.items),
            "moreSessions": found.next is not None,
            "latest": [
                {
                    "id": session.id,
                    "title": session.title,
                    "updatedAt": utc_time(session.updated_at),
                    "effective": effective,
                }
                for session, effective in latest
            ],
        },
        write_page,
    )
    if latest:
        explained = hints.command_line(call, "context", "SESSION", "--explain")
        print_note(f"to see a session's next request: {explained}")
    if others:
        print_note(f"to see the owners: {hints.command_line(call, 'report', '--by', 'owner')}")
    if not latest:
        print_note(f"to import a history: {hints.command_line(call, 'import', 'FILE')}")


def _engine_name(call: Call) -> str:
    return "in memory" if store_access.database_url(call).startswith("sqlite") else "PostgreSQL"


def _size_text(count: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GB"
