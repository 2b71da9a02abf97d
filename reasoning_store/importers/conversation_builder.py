"""A conversation that is being read: its messages, their keys, and the counts of its report.

Theory. A message's key is a hash over the conversation's id and the source of every message up to
it. So if a store has a key, it has all messages before it too: a second import finds every key
stored, and a file that has grown has new keys only at its end. The key is made from the source, not
from the message: a later version that reads something better does not write the same conversation
again.

A reply is read by ingress. A tool response without an id is for the first call that has none.

This module knows messages and the forms of parts; it must not know formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NoReturn

from reasoning_store import (
    InvalidCall,
    Message,
    ToolCallBlock,
    ToolResponseBlock,
    normalize_response,
)
from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Role
from reasoning_store.conversation.digests import digest_texts
from reasoning_store.importers.documents import refuse
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import AnsweredBy, is_thought
from reasoning_store.importers.source_messages import (
    SourceConversation,
    SourceMessage,
    stated_time,
    states_time,
    text_field,
)
from reasoning_store.importers.values import (
    Conversation,
    Item,
    Report,
    Skipped,
    SourceBranch,
    count_message,
)
from reasoning_store.ingress.reply_counters import read_counters
from reasoning_store.wire import call_ids, content_parts
from reasoning_store.wire.event_fields import other_fields

EMPTY: Final = "it has no content"
IN_PARTS: Final = 'it has "parts" in the place of "content", which cannot be imported yet'
UNKNOWN_ROLE: Final = "its role is not one of the format's"
UNREAD_TIME: Final = "its time is neither ISO 8601 nor seconds or milliseconds since 1970"
_LONGEST_ID: Final = 500
"""In bytes; of a longer id the hash is taken."""

_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def digest_values(*parts: Any) -> str:
    """Return the hash of JSON values, each apart from the next, as 32 hexadecimal digits."""
    return digest_texts(map(_canonical, parts), size=16).hex()


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The end of a line at some moment, where a branch can go off later."""

    key: str
    next: int
    at: datetime | None
    names: Mapping[str, str]
    """The tool of each call."""
    due: Mapping[str, str]
    """The calls that have no answer yet."""


class ConversationBuilder:
    """A conversation, as far as it was read. Its next message is at ``key`` and ``next``."""

    def __init__(
        self,
        id: str,
        who: AnsweredBy,
        *,
        title: str | None = None,
        created_at: datetime | None = None,
        model: str | None = None,
        first: int = 1,
        key: str = "",
        archived: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        # A store takes an id of this length.
        self.id = id if len(codec.dumps(id).encode()) <= _LONGEST_ID else digest_values(id)
        self.key = key
        self.title = title
        self.provider: str | None = None
        """The provider that the history names."""
        self.model = model
        """The model that answers where a message names none."""
        self.at = created_at
        """The time of the last message that has one."""
        self.who = who
        self._archived = archived
        self._metadata = metadata or {}
        self._created_at = created_at
        self._lines = [SourceBranch(after="", first=first, items=[])]
        self._report = Report()
        self._names: dict[str, str] = {}
        self._due: dict[str, str] = {}

    @property
    def next(self) -> int:
        """The place of the message that comes next, from 1."""
        return self._lines[-1].first + len(self._lines[-1].items)

    @property
    def fork_point(self) -> ForkPoint:
        """The point from which a branch after the last message starts."""
        return ForkPoint(self.key, self.next, self.at, dict(self._names), dict(self._due))

    def start_branch(self, point: ForkPoint) -> None:
        """Go on after an earlier message: what is added next is a branch."""
        if not self._lines[-1].items:
            self._lines.pop()
        self.key, self.at = point.key, point.at
        self._names, self._due = dict(point.names), dict(point.due)
        self._lines.append(SourceBranch(after=point.key, first=point.next, items=[]))

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

    # Messages

    def skip(self, place: str, reason: str) -> None:
        """Note that a part of the source gave no message."""
        self._report += Report(skipped=(Skipped(place=place, reason=reason),))

    def note_unread_time(self, place: str) -> None:
        """Note that a time is stated and cannot be read."""
        self._report += Report(unread_times=(Skipped(place=place, reason=UNREAD_TIME),))

    def add(
        self,
        message: Message,
        placed: SourceMessage,
        *,
        source: Any = None,
        texts: Sequence[str] | None = None,
        thoughts: int = 0,
        unread: Mapping[str, Any] | None = None,
    ) -> Message | None:
        """Add a message and return it, with the ``unread`` fields of its source in its metadata.

        ``source`` is what its key is made of, in the place of the value. The source of a reply
        had these ``texts`` and native ``thoughts``; other messages are stored unchanged. An empty
        message is skipped.
        """
        if not (message.blocks or read_counters(message.metadata).unknown_chunks):
            parted = isinstance(placed.value.get("parts"), list)
            self.skip(placed.place, IN_PARTS if parted else EMPTY)
            return None
        notes = {**(message.metadata or {}), **({"source": dict(unread)} if unread else {})}
        message = replace(message, metadata=notes or None, blocks=tuple(self._link_calls(message)))
        try:
            codec.dumps(codec.message_to_json(message))
        except InvalidCall as error:
            raise InvalidCall(f"{placed.place}: {error}", hint=error.hint) from None
        at = stated_time(placed.value)
        if at is None and states_time(placed.value):
            self.note_unread_time(placed.place)
        self.at = at or self.at
        source = placed.value if source is None else source
        self.key = digest_values(self.id, self.next, self.key, source)
        self._lines[-1].items.append(
            Item(message=message, key=self.key, created_at=at, id=placed.id)
        )
        self._report += count_message(message, texts=texts, thoughts=thoughts)
        return message

    def _link_calls(self, message: Message) -> Iterator[Any]:
        """Yield the blocks, with made ids for calls that have none, and note the calls."""
        for place, block in enumerate(message.blocks):
            if isinstance(block, ToolCallBlock):
                if not block.id or call_ids.is_made_here(block.id):
                    # The id of a lone response repeats in a history.
                    block = replace(block, id=call_ids.make_call_id(self.id, self.next, place))
                self._names[block.id] = self._due[block.id] = block.name
            yield block

    def add_plain(
        self,
        role: Role,
        placed: SourceMessage,
        *,
        source: Any = None,
        unread: Mapping[str, Any] | None = None,
    ) -> Message | None:
        """Add a message of a user, or a system prompt, unchanged."""
        blocks = self.read_parts(placed.value.get("content"), placed)
        made = Message(role=role, blocks=tuple(blocks))
        return self.add(made, placed, source=source, unread=unread)

    def add_system_prompts(self, one: SourceConversation, *names: str) -> None:
        """Add the system prompts that the conversation has under these names."""
        for name in names:
            if said := one.about.get(name):
                value = {"role": "system", "content": said}
                place = f"line {one.line}: {name}"
                self.add_plain("system", SourceMessage(place=place, line=one.line, value=value))

    def read_parts(self, content: Any, placed: SourceMessage) -> list[Any]:
        """Return the blocks of a content, or refuse another value."""
        if not isinstance(content, str | list | None):
            refuse_content(placed)
        return content_parts.read_blocks(content)

    def tool_response(
        self,
        call_id: Any,
        content: Any,
        *,
        name: Any = None,
        is_error: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> ToolResponseBlock:
        """Return a tool response. Without an id, it is for the first call that has none."""
        if not (isinstance(call_id, str) and call_id):
            waiting = [
                other for other, named in self._due.items() if name is None or _same(named, name)
            ]
            call_id = waiting[0] if waiting else call_ids.make_call_id(self.id, self.next)
        self._due.pop(call_id, None)
        known = self._names.get(call_id, "")
        return ToolResponseBlock(
            call_id=call_id,
            tool_name=name if isinstance(name, str) and name else known,
            result=content_parts.read_result(content),
            is_error=is_error,
            provider_metadata=metadata or None,
        )

    def add_tool_responses(
        self,
        blocks: Iterable[ToolResponseBlock],
        placed: SourceMessage,
        *,
        source: Any = None,
        unread: Mapping[str, Any] | None = None,
    ) -> Message | None:
        """Add a message of tool responses."""
        made = Message(role="tool", blocks=tuple(blocks))
        return self.add(made, placed, source=source, unread=unread)

    # Replies

    def read_reply(self, body: Any, api: str, about: Mapping[str, Any]) -> Message:
        """Return a reply as ingress reads it. ``about`` may name the model.

        ``body`` has the form of the protocol; its values may be anything.
        """
        named = self.who.ingress_options(provider=self.provider, model=self._model_of(about))
        return normalize_response(body, api=api, **named)

    def _model_of(self, about: Mapping[str, Any]) -> str | None:
        return text_field(about, "model") or self.model

    def add_kept_reply(
        self,
        reply: KeptReply,
        placed: SourceMessage,
        *,
        source: Any,
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a reply that was kept as parts; its others are in its metadata."""
        named = replace(
            reply,
            provider=reply.provider or self.provider,
            model=reply.model or self._model_of(placed.value),
        )
        parts = reply.parts
        self.add(
            named.message(self.who),
            placed,
            source=source,
            texts=[part["text"] for part in parts if part["type"] == "text" and part["text"]],
            thoughts=sum(map(is_thought, parts)),
            unread={**(unread or {}), **({"parts": reply.others} if reply.others else {})},
        )

    def add_steps(
        self,
        reply: KeptReply,
        placed: SourceMessage,
        *,
        source: Any,
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the replies that parts make, and between them the answers of tools.

        All but the parts is of the last reply.
        """
        runs = [
            list(run) for _, run in groupby(reply.parts, lambda part: part["type"] == "tool_result")
        ]
        for number, run in enumerate(runs or [[]]):
            key = [source, number]
            if run and run[0]["type"] == "tool_result":
                blocks = [
                    self.tool_response(
                        part["tool_call_id"],
                        part["output"],
                        name=part["name"],
                        is_error=part["is_error"],
                    )
                    for part in run
                ]
                self.add_tool_responses(blocks, placed, source=key)
            else:
                is_last = number + 2 > len(runs)
                step = replace(reply, parts=run) if is_last else KeptReply(parts=run)
                self.add_kept_reply(step, placed, source=key, unread=unread if is_last else None)


def _same(called: str, answering: Any) -> bool:
    """Whether a tool answers to a name: a part of it may have been called, as ``files.search``."""
    return called == answering or called.partition(".")[0] == str(answering).partition(".")[0]


def unread_fields(
    value: Mapping[str, Any], read: Iterable[str], message: Message
) -> Mapping[str, Any]:
    """Return the other fields, or all if more was unreadable than the message keeps."""
    kept = (message.metadata or {}).get("unknownEvents", ())
    if read_counters(message.metadata).unknown_chunks > len(kept):
        return value
    return other_fields(value, read)


def refuse_content(placed: SourceMessage) -> NoReturn:
    """Refuse a message whose content is neither a text nor parts."""
    place = placed.place.removeprefix(f"line {placed.line}").removeprefix(": ")
    where = f"{place}: " if place else ""
    refuse(placed.line, f"{where}content is neither text nor a list of parts")
