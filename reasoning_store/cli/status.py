"""The call without a command: what is in the database, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reasoning_store.cli import advice, opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.output import Page, answer, note, plural, stamp, when

_LATEST = 5
_COUNTED = 1000


def status(call: Call) -> None:
    """Say what there is; where there is nothing yet, say so too."""
    call.command = "status"
    path = opening.file(call)
    if path is not None and not path.exists():
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
            lambda page: _nothing_yet(page, path),
        )
        made = advice.line(call, "init")
        note(f"to see what it does: reasoning-store demo; to make a database: {made}")
        return
    with opening.existing(call) as store:
        found = store.sessions(limit=_COUNTED)
        latest: list[dict[str, Any]] = [
            {
                "id": session.id,
                "title": session.title,
                "updatedAt": stamp(session.updated_at),
                "effective": session.usage().effective,
            }
            for session in found.items[:_LATEST]
        ]
        data: dict[str, Any] = {
            "database": _engine(call) if path is None else str(path),
            "exists": True,
            "revision": store.revision,
            "bytes": None if path is None else path.stat().st_size,
            "sessions": len(found.items),
            "moreSessions": found.next is not None,
            "latest": latest,
        }
        times = [when(session.updated_at) for session in found.items[:_LATEST]]

    def people(page: Page) -> None:
        size = "" if path is None else f", {_size(path.stat().st_size)}"
        page.line(f"{data['database']} (revision {data['revision']}{size})")
        more = "more than " if data["moreSessions"] else ""
        page.line(f"{more}{plural(data['sessions'], 'session')} of the nameless owner")
        if latest:
            page.line()
            page.table(
                ("last message", "session", "next request", "title"),
                [
                    (time, item["id"], str(item["effective"]), item["title"] or "")
                    for time, item in zip(times, latest, strict=True)
                ],
                right=("next request",),
            )

    answer(call, data, people)
    if latest:
        explained = advice.line(call, "context", "SESSION", "--explain")
        note(f"what its next request would carry: {explained}")
    else:
        note(f"whose there are: {advice.line(call, 'report', '--by', 'owner')}")
        note(f"to take in what you have: {advice.line(call, 'import', 'FILE')}")


def _nothing_yet(page: Page, path: Path) -> None:
    page.line(f"There is no database yet at {path}.")


def _engine(call: Call) -> str:
    return "in memory" if opening.url(call).startswith("sqlite") else "PostgreSQL"


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GB"
