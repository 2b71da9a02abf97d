"""Replies whose end the store refused: they are stored once it answers again."""

from __future__ import annotations

from collections import deque
from typing import Final

from reasoning_store.integrations.exchange import Exchange

_MOST: Final = 1000
"""How many are kept in memory; the oldest is left out for the next."""


class UnsavedReplies:
    """The replies that wait for the store, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Exchange] = deque(maxlen=_MOST)

    @property
    def is_waiting(self) -> bool:
        """Whether there is a reply to store."""
        return bool(self._waiting)

    def add(self, exchange: Exchange | None) -> None:
        """Keep a reply that came to its end and is not stored."""
        if exchange is not None and exchange.is_unsaved:
            self._waiting.append(exchange)

    def save(self) -> None:
        """Store what waits, until the store refuses again."""
        while self._waiting:
            try:
                exchange = self._waiting.popleft()
            except IndexError:  # another thread was first
                return
            if not exchange.save():
                self._waiting.appendleft(exchange)
                return
