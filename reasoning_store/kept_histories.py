"""Conversations that another program kept, and the results of importing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

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
    """Times that could not be read: the message has the time of the one before it."""

    def __add__(self, other: Report) -> Report:
        return Report(
            **{item.name: getattr(self, item.name) + getattr(other, item.name) for item in _FIELDS}
        )


_FIELDS = fields(Report)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message, the key under which it is written once, and its time, if that is known.

    The key is of the message and all before it in its conversation.
    """

    message: Message
    key: str
    created_at: datetime | None = None
    id: str | None = None
    """The id that the other program gave the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBranch:
    """Messages that follow another message than the first line's do.

    ``after`` is the key of the message that they follow, empty at the beginning of the
    conversation; ``first`` is the place of the first of them, from 1.
    """

    after: str
    first: int
    items: list[Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as it was kept elsewhere, oldest message first.

    ``items`` are its first line; ``branches`` go off from it, or from a branch before them.
    ``current`` is the key of the last message that the other program shows, where that is not the
    end of the first line. ``first`` is the place of the first item, from 1; it is more where a file
    comes back to a conversation whose beginning it gave before. ``created_at`` is then the time of
    that message.
    """

    id: str
    title: str | None = None
    created_at: datetime | None = None
    items: list[Item]
    report: Report
    first: int = 1
    branches: Sequence[SourceBranch] = ()
    current: str | None = None
    archived: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lines(self) -> Iterator[SourceBranch]:
        """The first line, and each branch after the one that it starts from."""
        yield SourceBranch(after="", first=self.first, items=self.items)
        yield from self.branches

    @property
    def began(self) -> datetime | None:
        """The earliest known time of the conversation or its first message."""
        stated = next((item.created_at for item in self.items if item.created_at), None)
        return min((at for at in (self.created_at, stated) if at), default=None)

    def message_times(self) -> Mapping[str, datetime | None]:
        """Return the time of each message by its key; one without has that of the one before."""
        times: dict[str, datetime | None] = {}
        for line in self.lines:
            at = times.get(line.after, self.began)
            for item in line.items:
                times[item.key] = at = item.created_at or at
        return times


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """The result of importing one conversation."""

    id: str
    """The id of its session."""
    title: str | None
    new: int
    """Messages that were written; in a dry run, those that would be."""
    known: int
    """Messages that were there already."""
    refused: str | None
    """Why it could not be written, where that is so."""
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHistory:
    """The result of an import, conversation by conversation."""

    dry_run: bool
    conversations: Sequence[ImportedConversation]

    @property
    def new(self) -> int:
        return sum(one.new for one in self.conversations)

    @property
    def known(self) -> int:
        return sum(one.known for one in self.conversations)

    @property
    def refused(self) -> list[ImportedConversation]:
        return [one for one in self.conversations if one.refused is not None]

    @property
    def report(self) -> Report:
        """The sum over the conversations that were not refused."""
        return sum((one.report for one in self.conversations if one.refused is None), Report())
