"""The call without a command: what is in the database, and what to do next."""

from __future__ import annotations

from pathlib import Path

from reasoning_store.cli import advice, opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.output import Page, answer, note, plural, stamp, when

_LATEST = 5
_COUNTED = 1000


def status(call: Call) -> None:
    """Say what there is; where there is nothing yet, say so too."""
    call.command = "status"
    path = opening.file(call)
    if path is not None and not opening.is_there(path):
        _say_nothing_yet(call, path)
    else:
        _say_what_there_is(call, path)


def _say_nothing_yet(call: Call, path: Path) -> None:
    answer(
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
    made = advice.line(call, "init")
    note(f"to see what it does: reasoning-store demo; to make a database: {made}")


def _say_what_there_is(call: Call, path: Path | None) -> None:
    with opening.existing(call) as store:
        found, revision = store.sessions(limit=_COUNTED), store.revision
        latest = [(session, session.usage().effective) for session in found.items[:_LATEST]]
    place = _engine(call) if path is None else str(path)
    size = None if path is None else path.stat().st_size

    def people(page: Page) -> None:
        told = "" if size is None else f", {_size(size)}"
        page.line(f"{place} (revision {revision}{told})")
        more = "" if found.next is None else "more than "
        page.line(f"{more}{plural(len(found.items), 'session')} of the nameless owner")
        if latest:
            page.line()
            page.table(
                ("last message", "session", "next request", "title"),
                [
                    (when(session.updated_at), session.id, str(effective), session.title or "")
                    for session, effective in latest
                ],
                right=("next request",),
            )

    answer(
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
                    "updatedAt": stamp(session.updated_at),
                    "effective": effective,
                }
                for session, effective in latest
            ],
        },
        people,
    )
    if latest:
        explained = advice.line(call, "context", "SESSION", "--explain")
        note(f"what its next request would carry: {explained}")
    else:
        note(f"whose there are: {advice.line(call, 'report', '--by', 'owner')}")
        note(f"to take in what you have: {advice.line(call, 'import', 'FILE')}")


def _engine(call: Call) -> str:
    return "in memory" if opening.url(call).startswith("sqlite") else "PostgreSQL"


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GB"
