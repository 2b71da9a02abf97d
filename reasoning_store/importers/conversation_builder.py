"""A conversation that is being read: its messages, their keys, and the counts of its report.

Theory. A message's key is a hash over the conversation's id and the source of every message up to
it. So if a store has a key, it has all messages before it too: a second import finds every key
stored, and a file that has grown has new keys only at its end. The key is made from the source, not
from the message: a later version that reads something better does not write the same conversation
again.

Whether a text was changed is found by comparing it with the source, not by asking its reader.

This module knows messages and JSON; it must not know formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Message,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.digests import digest_texts
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers.values import (
    Conversation,
    Item,
    Report,
    Skipped,
    SourceBranch,
)
from reasoning_store.ingress.reply_counters import read_counters
from reasoning_store.ingress.text_channel import TAG_SOURCE

_TIME: Final = "its time is neither ISO 8601 nor seconds or milliseconds since 1970"
_LONGEST_ID: Final = 500
"""In bytes; of a longer id the hash is taken."""

_LONGEST_TITLE: Final = 60

_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def digest_values(*parts: Any) -> str:
    """Return the hash of JSON values, each apart from the next, as 32 hexadecimal digits."""
    return digest_texts(map(_canonical, parts), size=16).hex()


def first_words(text: str) -> str | None:
    """Return the beginning of a text as a title."""
    line = " ".join(text.split())
    return (line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 3] + "...") or None


def session_id(id: str) -> str:
    """Return an id that a store takes: this one, or its hash where it is too long."""
    return id if len(codec.dumps(id).encode()) <= _LONGEST_ID else digest_values(id)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The end of a line at some moment, where a branch can go off later."""

    key: str
    next: int
    at: datetime | None


class ConversationBuilder:
    """A conversation, as far as it was read. Its next message is at ``key`` and ``first``."""

    def __init__(
        self,
        id: str,
        *,
        title: str | None = None,
        created_at: datetime | None = None,
        first: int = 1,
        key: str = "",
        archived: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = session_id(id)
        self.key = key
        self.title = title
        self._archived = archived
        self._metadata = metadata or {}
        self._created_at = created_at
        self.at = created_at
        """The time of the last message that has one."""
        self._lines = [SourceBranch(after="", first=first, items=[])]
        self._report = Report()

    @property
    def next(self) -> int:
        """The place of the message that comes next, from 1."""
        return self._lines[-1].first + len(self._lines[-1].items)

    @property
    def fork_point(self) -> ForkPoint:
        """The point from which a branch after the last message starts."""
        return ForkPoint(self.key, self.next, self.at)

    def start_branch(self, point: ForkPoint) -> None:
        """Go on after an earlier message: what is added next is a branch."""
        if not self._lines[-1].items:
            self._lines.pop()
        self.key, self.at = point.key, point.at
        self._lines.append(SourceBranch(after=point.key, first=point.next, items=[]))

    def add(
        self,
        message: Message,
        source: Any,
        place: str,
        *,
        texts: Sequence[str],
        thoughts: int = 0,
        in_metadata: int = 0,
        created_at: datetime | None = None,
    ) -> None:
        """Add a message made of ``source``, which held these texts and native thoughts.

        ``in_metadata`` is how many of its parts are stored in its metadata.
        """
        try:
            codec.dumps(codec.message_to_json(message))
        except InvalidCall as error:
            raise InvalidCall(f"{place}: {error}", hint=error.hint) from None
        self.key = digest_values(self.id, self.next, self.key, source)
        self._lines[-1].items.append(Item(message=message, key=self.key, created_at=created_at))
        self.at = created_at or self.at
        self._report += _count_message(message, texts, thoughts, in_metadata)

    def skip(self, place: str, reason: str) -> None:
        """Note that a part of the source gave no message."""
        self._report += Report(skipped=(Skipped(place=place, reason=reason),))

    def note_time(self, place: str) -> None:
        """Note that a time is stated and cannot be read."""
        self._report += Report(unread_times=(Skipped(place=place, reason=_TIME),))

    def conversation(self, *, current: str | None = None) -> Conversation:
        """Return what was read; ``current`` is the key of the last message that is shown."""
        first, *branches = self._lines
        return Conversation(
            id=self.id,
            title=self.title,
            created_at=self._created_at,
            items=first.items,
            report=self._report,
            first=first.first,
            branches=[branch for branch in branches if branch.items],
            current=current,
            archived=self._archived,
            metadata=self._metadata,
        )


def _count_message(
    message: Message, texts: Sequence[str], thoughts: int, in_metadata: int
) -> Report:
    counters = read_counters(message.metadata)
    was, is_now = "".join(texts), "".join(message_texts(message))
    tagged = sum(block.source_field == TAG_SOURCE for block in message.thinking)
    raw = sum(isinstance(block, RawBlock) for block in message.blocks)
    return Report(
        messages=1,
        reasoning_in=thoughts + max(tagged, counters.extracted_blocks),
        reasoning_stored=len(message.thinking),
        copies=counters.suppressed_duplicates,
        texts_unchanged=int(bool(was) and was == is_now),
        texts_cleaned=int(was != is_now),
        delimiters=counters.stripped_delimiters,
        kept_raw=raw + in_metadata + counters.unknown_chunks,
    )


def message_texts(message: Message) -> list[str]:
    """Return the visible texts of a message, and the texts of its tool responses."""
    return [
        text
        for block in message.blocks
        if isinstance(block, TextBlock | ToolResponseBlock)
        and isinstance(text := block.text if isinstance(block, TextBlock) else block.result, str)
    ]
