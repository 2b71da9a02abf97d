"""OpenAI Agents' ``SQLAlchemySession``: JSON rows through an asynchronous engine."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.conversation import Turn
from benchmarks.rivals import agents_items


class _History:
    def __init__(self, at: str, session: str) -> None:
        kind = import_module("agents.extensions.memory").SQLAlchemySession
        self._session: Any = kind.from_url(session, url=at, create_tables=True)

    def items(self, turn: Turn) -> Sequence[Any]:
        return agents_items.items(turn)

    async def add(self, items: Sequence[Any]) -> None:
        await self._session.add_items(items)

    async def load(self) -> Sequence[Any]:
        loaded: Sequence[Any] = await self._session.get_items()
        return loaded

    async def close(self) -> None:
        await self._session.engine.dispose()


open = _History
