"""The histories that ours and the floor work on: made by the store, then a file or a database.

Both get the same rows, and both are asked about the same policies. A file is made once in a
run and copied; what a rival works on is its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import reasoning_store as rs
from benchmarks.conversation import SESSION, messages
from benchmarks.workload import Setting
from reasoning_store.store import Store

POLICIES: tuple[dict[str, Any], ...] = tuple(
    {
        "settings": {
            "reasoning.includeInContext": include,
            "reasoning.stripFromContext": strip,
        },
        **target,
    }
    for include in (False, True)
    for strip in ("none", "all", "allButLast", "priorTurns")
    for target in ({}, {"provider": "moonshot", "model": "kimi-k2-thinking"})
)
Said: TypeAlias = Callable[[], tuple[tuple[rs.Message, rs.Message], ...]]
"""Returns turns of a conversation."""
_BATCH = 500


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def fill(at: str, size: int, said: Said = messages) -> None:
    """Make a conversation of so many messages."""
    with rs.Store(at) as store:
        session = store.session(SESSION, create=True)
        pool = cycle(said())
        for start in range(0, size, _BATCH):
            few = min(_BATCH, size - start)
            batch = [message for _ in range((few + 1) // 2) for message in next(pool)]
            session.append(batch[:few])


def filled(setting: Setting, said: Said = messages) -> Path:
    """Return a new file with a conversation of the setting's size."""
    template = setting.templates / f"{said.__name__}-{setting.size}.db"
    if not template.exists():
        fill(url(template), setting.size, said)
    path = setting.folder / "chat.db"
    shutil.copy(template, path)
    return path


def filled_server(setting: Setting) -> str:
    """Return the URL of a server's database with a conversation of the setting's size."""
    Store.upgrade(setting.server_url, schema="public")  # where the bare statements look
    fill(setting.server_url, setting.size)
    return setting.server_url
