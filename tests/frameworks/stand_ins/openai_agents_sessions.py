"""Our session in the place of the sessions that the Agents SDK and its tests bring.

It takes what the constructors of their sessions take.
"""

from __future__ import annotations

import atexit
from itertools import count
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
import tests.utils.simple_session as simple
from agents.memory.session_settings import coerce_session_settings

import reasoning_store as rs
from reasoning_store.integrations.openai_agents import StoredSession

_STORES: dict[str, rs.Store] = {}
_NUMBERS = count()


def _store_at(path: str) -> rs.Store:
    if path not in _STORES:
        _STORES[path] = rs.Store("sqlite://" if path == ":memory:" else f"sqlite:///{path}")
        atexit.register(_STORES[path].close)
    return _STORES[path]


class InFile(StoredSession):
    """In the place of ``SQLiteSession``; each in memory has its own."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", *_: Any, **given: Any) -> None:
        path = str(db_path)
        store: Any = _store_at(path)
        if path == ":memory:":
            store = store.for_owner(f"{next(_NUMBERS)}")
        settings = given.get("session_settings")
        if settings is not None:
            settings = coerce_session_settings(settings)
        super().__init__(session_id, store, session_settings=settings)

    def close(self) -> None:
        """Theirs closes a connection; the store has it."""


class InMemory(StoredSession):
    """In the place of ``SimpleListSession``."""

    def __init__(self, session_id: str = "test", history: Any = None) -> None:
        super().__init__(session_id, _store_at(":memory:").for_owner(f"{next(_NUMBERS)}"))
        self._ignore_ids_for_matching = False
        if history:
            self._add(history)

    @property
    def saved_items(self) -> list[Any]:
        return self._get(None)

    _items = saved_items


class Counting(InMemory):
    """In the place of ``CountingSession``."""

    def __init__(self, session_id: str = "test", history: Any = None) -> None:
        super().__init__(session_id, history)
        self.pop_calls = 0

    async def pop_item(self) -> Any:
        self.pop_calls += 1
        return await super().pop_item()


class IdStripping(Counting):
    """In the place of ``IdStrippingSession``."""

    def __init__(self, session_id: str = "test", history: Any = None) -> None:
        super().__init__(session_id, history)
        self._ignore_ids_for_matching = True

    async def add_items(self, items: Any) -> None:
        plain = [{key: value for key, value in item.items() if key != "id"} for item in items]
        await super().add_items(plain)


for module in (agents, agents.memory, agents.memory.sqlite_session):
    module.SQLiteSession = InFile
simple.SimpleListSession = InMemory
simple.CountingSession = Counting
simple.IdStrippingSession = IdStripping
