"""The call without a command: the content of the database, and what to do next."""

from __future__ import annotations

from reasoning_store.cli import hints, store_access
from reasoning_store.cli.command import Call
from reasoning_store.cli.output import (
    Page,
    answer_fields,
    local_time,
    plural,
    print_answer,
    print_note,
)

_LATEST = 5
_COUNTED = 1000


def print_status(call: Call) -> None:
    """Print the content of the database, or that no database exists yet."""
    call.command = "status"
    path = store_access.database_file(call)
    if path is not None and not store_access.file_exists(path):
        print_answer(
            call,
            {
                "database": str(path),
                "exists": False,
                **dict.fromkeys(("revision", "bytes")),
                "sessions": 0,
                "moreSessions": False,
                "latest": [],
            },
            lambda page: page.line(f"There is no database yet at {path}."),
        )
        print_note(
            "all commands: reasoning-store --help; to see the program at work: "
            "reasoning-store demo; to create a database: "
            + hints.command_line(call, "db", "create")
        )
        return
    with store_access.open_to_read(call) as store:
        found, revision = store.sessions(limit=_COUNTED), store.revision
        others = any(store.owners(limit=2).items)
    latest = found.items[:_LATEST]
    place = str(path or ("in memory" if store_access.is_in_memory(call) else "PostgreSQL"))
    size = None if path is None else path.stat().st_size

    def write_page(page: Page) -> None:
        bytes_text = "" if size is None else f", {size / 1e6:.1f} MB"
        page.line(f"{place} (revision {revision}{bytes_text})")
        more = "" if found.next is None else "more than "
        owned = " of the owner without a name" if others else ""
        page.line(f"{more}{plural(len(found.items), 'session')}{owned}")
        if latest:
            page.line()
            page.table(
                ("last message", "session", "messages", "title"),
                [
                    (local_time(one.updated_at), one.id, str(one.message_count), one.title or "")
                    for one in latest
                ],
                right=("messages",),
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
                {**answer_fields(one, "id title updatedAt"), "messages": one.message_count}
                for one in latest
            ],
        },
        write_page,
    )
    if latest:
        explained = hints.command_line(call, "request", "SESSION", "--why")
        print_note(f"to see a session's next request: {explained}")
    else:
        print_note(f"to import a history: {hints.command_line(call, 'import', 'FILE')}")
    if others:
        print_note(f"to see the owners: {hints.command_line(call, 'report', '--by', 'owner')}")
