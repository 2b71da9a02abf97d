"""The common part of the importers of JSON: from a source to conversations.

A conversation without an id of its own is known by the name of its file, by its number among
those without an id, and by its first message: so the same file gives the same ids again,
also when it has grown, and two files of one name get different ids.

Knows how the parts of this room fit. It must not know a format's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, groupby
from typing import Any, Final, NoReturn

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    Status,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
)
from reasoning_store.importers import content_parts
from reasoning_store.importers.conversation_builder import (
    ConversationBuilder,
    ForkPoint,
    digest_values,
)
from reasoning_store.importers.documents import Entry, Source, read_entries, refuse, source_name
from reasoning_store.importers.reply_parts import (
    AnsweredBy,
    Part,
    is_thought,
    read_reply_parts,
)
from reasoning_store.importers.source_messages import (
    SourceConversation,
    SourceMessage,
    group_messages,
    stated_time,
    states_time,
)
from reasoning_store.importers.values import Conversation
from reasoning_store.ingress.normalizer import normalize_response
from reasoning_store.ingress.reply_counters import read_counters
from reasoning_store.wire import call_ids
from reasoning_store.wire.event_fields import other_fields

EMPTY: Final = "it has no content"
IN_PARTS: Final = 'it has "parts" in the place of "content", which cannot be imported yet'
UNKNOWN_ROLE: Final = "its role is not one of the format's"


@dataclass(frozen=True, slots=True)
class ReaderForkPoint:
    """The end of a line at some moment, with the names of its calls and those not answered."""

    into: ForkPoint
    names: Mapping[str, str]
    due: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class HistoryReader:
    """One conversation under way: who answers in it, and which calls have no answer yet."""

    into: ConversationBuilder
    who: AnsweredBy
    about: Mapping[str, Any] = field(default_factory=dict)
    provider: str | None = None
    """The provider that the history names."""
    _names: dict[str, str] = field(default_factory=dict)
    _due: dict[str, str] = field(default_factory=dict)

    def read_reply(self, body: Any, api: str, about: Mapping[str, Any]) -> Message:
        """Return a reply as ingress reads it. ``about`` may name the model.

        ``body`` has the form of the protocol; its values may be anything.
        """
        return normalize_response(body, api=api, **self.ingress_options(about))

    def ingress_options(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords with which ingress reads a reply that ``about`` describes."""
        model = about.get("model") or self.about.get("model")
        return self.who.ingress_options(
            provider=self.provider, model=model if isinstance(model, str) else None
        )

    @property
    def fork_point(self) -> ReaderForkPoint:
        """The point from which a branch after the last message starts."""
        return ReaderForkPoint(self.into.fork_point, dict(self._names), dict(self._due))

    def start_branch(self, point: ReaderForkPoint) -> None:
        """Go on after an earlier message: what is added next is a branch."""
        self.into.start_branch(point.into)
        self._names, self._due = dict(point.names), dict(point.due)

    def add_reply_parts(
        self,
        parts: Sequence[Part],
        placed: SourceMessage,
        *,
        source: Any,
        media: Sequence[MediaBlock] = (),
        usage: Usage | None = None,
        finish_reason: str | None = None,
        status: Status = "complete",
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a reply that was kept as parts; ``source`` is what its key is made of."""
        model = placed.value.get("model") or self.about.get("model")
        message = read_reply_parts(
            parts,
            self.who,
            model=model if isinstance(model, str) else None,
            provider=self.provider,
        )
        self.add(
            replace(
                message,
                blocks=(*message.blocks, *media),
                usage=usage or message.usage,
                finish_reason=finish_reason or message.finish_reason,
                status=message.status if status == "complete" else status,
            ),
            placed,
            texts=[part["text"] for part in parts if part["type"] == "text" and part["text"]],
            thoughts=sum(map(is_thought, parts)),
            source=source,
            unread=unread,
        )

    def add_steps(
        self, parts: Sequence[Part], placed: SourceMessage, *, source: Any, **reply: Any
    ) -> None:
        """Add the replies that parts make, and between them what tools answered.

        ``reply`` is what ``add_reply_parts`` takes, for the last reply.
        """
        runs = [list(run) for _, run in groupby(parts, lambda part: part["type"] == "tool_result")]
        for number, run in enumerate(runs or [[]]):
            key = [source, number]
            if run and run[0]["type"] == "tool_result":
                blocks = tuple(
                    self.tool_response(
                        placed,
                        part["tool_call_id"],
                        part["output"],
                        name=part["name"],
                        is_error=part["is_error"],
                    )
                    for part in run
                )
                texts = [block.result for block in blocks if isinstance(block.result, str)]
                self.add(Message(role="tool", blocks=blocks), placed, texts=texts, source=key)
            else:
                is_last = number + 2 > len(runs)
                self.add_reply_parts(run, placed, source=key, **(reply if is_last else {}))

    def add(
        self,
        message: Message,
        placed: SourceMessage,
        *,
        texts: list[str],
        thoughts: int = 0,
        source: Any = None,
        in_metadata: int = 0,
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a message, with the ``unread`` fields of its source in its metadata."""
        if not (message.blocks or read_counters(message.metadata).unknown_chunks):
            parted = isinstance(placed.value.get("parts"), list)
            self.into.skip(placed.place, IN_PARTS if parted else EMPTY)
            return
        notes = {**(message.metadata or {}), **({"source": dict(unread)} if unread else {})}
        message = replace(message, metadata=notes or None, blocks=tuple(self._link_calls(message)))
        at = stated_time(placed.value)
        if at is None and states_time(placed.value):
            self.into.note_time(placed.place)
        self.into.add(
            message,
            placed.value if source is None else source,
            placed.place,
            texts=texts,
            thoughts=thoughts,
            in_metadata=in_metadata,
            created_at=at,
        )

    def add_plain(
        self, role: Any, placed: SourceMessage, *, unread: Mapping[str, Any] | None = None
    ) -> None:
        """Add a message of a user, or a system prompt, unchanged."""
        content = placed.value.get("content")
        made = Message(role=role, blocks=tuple(self.read_parts(content, placed)))
        self.add(made, placed, texts=content_parts.visible_texts(content), unread=unread)

    def add_system_prompts(self, one: SourceConversation, *names: str) -> None:
        """Add the system prompts that the conversation has under these names."""
        for name in names:
            if said := one.about.get(name):
                value = {"role": "system", "content": said}
                place = f"line {one.line}: {name}"
                self.add_plain("system", SourceMessage(place=place, line=one.line, value=value))

    def add_tool_message(
        self,
        block: ToolResponseBlock,
        content: Any,
        placed: SourceMessage,
        unread: Mapping[str, Any],
    ) -> None:
        """Add a message that is one tool response."""
        said = content_parts.visible_texts(content) if isinstance(block.result, str) else []
        self.add(Message(role="tool", blocks=(block,)), placed, texts=said, unread=unread)

    def read_parts(self, content: Any, placed: SourceMessage) -> list[Any]:
        """Return the blocks of a content, or refuse another value."""
        try:
            return content_parts.read_blocks(content)
        except content_parts.Unreadable:
            refuse_content(placed)

    def tool_response(
        self,
        placed: SourceMessage,
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
            call_id = waiting[0] if waiting else call_ids.make_call_id(self.into.id, self.into.next)
        self._due.pop(call_id, None)
        known = self._names.get(call_id, "")
        return ToolResponseBlock(
            call_id=call_id,
            tool_name=name if isinstance(name, str) and name else known,
            result=content_parts.read_result(content),
            is_error=is_error,
            provider_metadata=metadata or None,
        )

    def _link_calls(self, message: Message) -> Iterator[Any]:
        """Yield the blocks, with made ids for calls that have none, and note the calls."""
        for place, block in enumerate(message.blocks):
            if isinstance(block, ToolCallBlock):
                if not block.id or call_ids.is_made_here(block.id):
                    # The id of a lone response repeats in a history.
                    block = replace(
                        block, id=call_ids.make_call_id(self.into.id, self.into.next, place)
                    )
                self._names[block.id] = self._due[block.id] = block.name
            yield block


def _same(called: str, answering: Any) -> bool:
    """Whether a tool answers to a name: a part of it may have been called, as ``files.search``."""
    return called == answering or called.partition(".")[0] == str(answering).partition(".")[0]


def _place_in_line(placed: SourceMessage) -> str:
    place = placed.place.removeprefix(f"line {placed.line}").removeprefix(": ")
    return f"{place}: " if place else ""


def read_conversations(
    format: str,
    read: Callable[[SourceConversation, HistoryReader], None],
    source: Source,
    who: AnsweredBy,
    name: str | None,
    *,
    unpack: Callable[[Entry], Iterable[Entry]] = lambda entry: (entry,),
) -> Iterator[Conversation]:
    """Return the conversations of a source, each read with ``read``.

    ``unpack`` returns the values of an entry that holds more than one conversation.
    """
    name = source_name(source) if name is None else name
    unnamed = 0
    left: dict[str, tuple[int, str, datetime | None]] = {}
    entries = chain.from_iterable(map(unpack, read_entries(source)))
    for one in group_messages(entries):
        first, key, at = 1, "", _start_time(one)
        if one.id is None:
            unnamed += 1
            begun = one.messages[0].value if one.messages else {}
            id = f"{format}-{digest_values(name, unnamed, begun)}"
        else:
            id = one.id
            if not one.about:
                first, key, at = left.get(id, (first, key, at))
        into = ConversationBuilder(id, title=one.title, created_at=at, first=first, key=key)
        if stated_time(one.about) is None and states_time(one.about):
            into.note_time(f"line {one.line}")
        read(one, HistoryReader(into=into, who=who, about=one.about))
        if one.id is not None and not one.about:
            left[id] = into.next, into.key, into.at
        yield into.conversation()


def unread_fields(
    value: Mapping[str, Any], read: Iterable[str], message: Message
) -> Mapping[str, Any]:
    """Return the other fields, or all if more was unreadable than the message keeps."""
    kept = (message.metadata or {}).get("unknownEvents", ())
    if read_counters(message.metadata).unknown_chunks > len(kept):
        return value
    return other_fields(value, read)


def _start_time(one: SourceConversation) -> datetime | None:
    return stated_time(one.about) or (stated_time(one.messages[0].value) if one.messages else None)


def refuse_content(placed: SourceMessage) -> NoReturn:
    """Refuse a message whose content is neither a text nor parts."""
    refuse(placed.line, f"{_place_in_line(placed)}content is neither text nor a list of parts")
