"""The facts of a session that both of its faces have: those of its row, without reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any

from reasoning_store.ledger.records import SessionRow
from reasoning_store.stored_values import time_of


class SessionFacts(ABC):
    """The facts of a session, as of the time when its handle was made."""

    @abstractmethod
    def _facts(self) -> SessionRow:
        """Return the row of the session."""

    @property
    def id(self) -> str:
        return self._facts().id

    @property
    def owner(self) -> str:
        return self._facts().owner

    @property
    def title(self) -> str | None:
        return self._facts().title

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(self._facts().metadata)

    @property
    def updated_at(self) -> datetime:
        """The time of the last message, when this handle was made.

        The times that ``append`` was given count; without a message, when the session was made.
        """
        return time_of(self._facts().updated_at)

    @property
    def created_at(self) -> datetime:
        """The time when the session was made."""
        return time_of(self._facts().created_at)

    @property
    def archived(self) -> bool:
        """Whether the session is out of the usual list, when this handle was made."""
        return self._facts().archived

    @property
    def message_count(self) -> int | None:
        """The number of messages, in a page of ``sessions``; else None."""
        return self._facts().message_count

    @property
    def preview(self) -> str | None:
        """How the text of the last message begins, in a page of ``sessions``; else None."""
        return self._facts().preview
