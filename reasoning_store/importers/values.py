"""The values that importers give: conversations, each with a report.

Pure values: no format's words, no store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from reasoning_store.conversation.blocks import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something that was left out: a message, or only its time; its place, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts of what was read and stored. It holds no text of a conversation."""

    messages: int = 0
    reasoning_in: int = 0
    """Thoughts that the source holds: in fields, parts, items, and in tags in the text."""
    reasoning_stored: int = 0
    """Thinking blocks of the messages."""
    copies: int = 0
    """Thoughts of the source that repeat another one, in another field or in tags."""
    texts_unchanged: int = 0
    """Messages whose text is the source's, character for character."""
    texts_cleaned: int = 0
    """Messages out of whose text leaked delimiters were taken."""
    delimiters: int = 0
    """Delimiters that were taken out."""
    kept_raw: int = 0
    """Parts of unknown kinds, kept as they came."""
    skipped: tuple[Skipped, ...] = ()
    unread_times: tuple[Skipped, ...] = ()
    """Times that are stated and could not be read: the message goes by the one before it."""

    def __add__(self, other: Report) -> Report:
        return Report(
            **{item.name: getattr(self, item.name) + getattr(other, item.name) for item in _FIELDS}
        )


_FIELDS = fields(Report)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message, the key under which it is written once, and when it was said, if that is known.

    The key is of the message and all before it in its conversation.
    """

    message: Message
    key: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as it was kept elsewhere, oldest message first.

    ``first`` is the place of the first item, from 1; it is more where a file comes back to a
    conversation whose beginning it gave before. ``created_at`` is then when that was said.
    """

    id: str
    title: str | None = None
    created_at: datetime | None = None
    items: list[Item]
    report: Report
    first: int = 1

    @property
    def began(self) -> datetime | None:
        """The earliest known time of the conversation or its first message."""
        stated = next((item.created_at for item in self.items if item.created_at), None)
        return min((at for at in (self.created_at, stated) if at), default=None)

    def message_times(self) -> Sequence[datetime | None]:
        """Return the time of each message; one without a time has that of the one before it."""
        at = self.began
        return [at := item.created_at or at for item in self.items]
