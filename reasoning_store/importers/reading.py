"""What the importers of JSON have in common: from a source to conversations.

A conversation without an id of its own is known by the name of its file, by its number among
those without an id, and by its first message: so the same file gives the same ids again,
also when it has grown, and two files of one name do not run into each other.

Knows how the parts of this room fit. It must not know a format's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NoReturn

from reasoning_store.blocks import Message, ToolCallBlock, ToolResponseBlock
from reasoning_store.importers import parts
from reasoning_store.importers.documents import Source, entries, name_of, refuse
from reasoning_store.importers.found import Found, Placed, found, said_at
from reasoning_store.importers.gathering import Gathering, digest
from reasoning_store.importers.values import Conversation
from reasoning_store.ingress.normalizer import Tags, normalize_response
from reasoning_store.wire import call_ids
from reasoning_store.wire.base import without

UNSAID: Final = "it says nothing"
UNKNOWN_ROLE: Final = "its role is none of the format's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who answered, as far as the caller knows, and where inline delimiters are looked for."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    tags: Tags = "always"

    def asked(self, *, provider: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Return how ingress is asked to read what a history kept of a reply.

        ``provider`` and ``model`` are what the history says of it.
        """
        return {
            "provider": self.provider or provider,
            "model": self.model or model,
            "base_url": self.base_url,
            "tags": self.tags,
            "starts_inside": False,  # kept text is an answer, whatever opened it once
            "merge": True,  # a history keeps each thought that is no copy of another
        }


@dataclass(slots=True, kw_only=True)
class Reading:
    """One conversation under way: who answers in it, and which calls have no answer yet."""

    into: Gathering
    who: Who
    about: Mapping[str, Any] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _due: dict[str, str] = field(default_factory=dict)

    def reply(self, body: Any, api: str, about: Mapping[str, Any]) -> Message:
        """Return what a model said, through ingress. ``about`` may name the model.

        ``body`` has the form of the protocol, whatever stands in it.
        """
        model = about.get("model") or self.about.get("model")
        asked = self.who.asked(model=model if isinstance(model, str) else None)
        return normalize_response(body, api=api, **asked)

    def add(
        self,
        message: Message,
        placed: Placed,
        *,
        texts: list[str],
        thoughts: int = 0,
        source: Any = None,
        beside: int = 0,
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Take in a message, with what of its source nobody read."""
        if not (message.blocks or (message.metadata or {}).get("unknownChunks")):
            self.into.skip(placed.place, UNSAID)
            return
        notes = {**(message.metadata or {}), **({"source": dict(unread)} if unread else {})}
        message = replace(message, metadata=notes or None, blocks=tuple(self._linked(message)))
        self.into.add(
            message,
            placed.value if source is None else source,
            placed.place,
            texts=texts,
            thoughts=thoughts,
            beside=beside,
            created_at=said_at(placed.value),
        )

    def told(self, role: Any, placed: Placed, *, unread: Mapping[str, Any] | None = None) -> None:
        """Take in what a user or a system prompt said, as it stands."""
        content = placed.value.get("content")
        made = Message(role=role, blocks=tuple(self.parts(content, placed)))
        self.add(made, placed, texts=parts.texts(content), unread=unread)

    def prompts(self, one: Found, *names: str) -> None:
        """Take in the system prompts that stand beside the messages, under these names."""
        for name in names:
            if said := one.about.get(name):
                value = {"role": "system", "content": said}
                place = f"line {one.line}: {name}"
                self.told("system", Placed(place=place, line=one.line, value=value))

    def answered(
        self, block: ToolResponseBlock, content: Any, placed: Placed, unread: Mapping[str, Any]
    ) -> None:
        """Take in a message that is one tool's answer."""
        said = parts.texts(content) if isinstance(block.result, str) else []
        self.add(Message(role="tool", blocks=(block,)), placed, texts=said, unread=unread)

    def parts(self, content: Any, placed: Placed) -> list[Any]:
        """Return the blocks of a content, or refuse what is none."""
        try:
            return parts.blocks(content)
        except parts.Unreadable:
            refuse_content(placed)

    def answer(
        self,
        placed: Placed,
        call_id: Any,
        content: Any,
        *,
        name: Any = None,
        is_error: bool = False,
        beside: Mapping[str, Any] | None = None,
    ) -> ToolResponseBlock:
        """Return what a tool answered. Without an id, it answers the first call that waits."""
        if not (isinstance(call_id, str) and call_id):
            waiting = [other for other, named in self._due.items() if name is None or named == name]
            call_id = waiting[0] if waiting else call_ids.made(self.into.id, self.into.next)
        self._due.pop(call_id, None)
        known = self._names.get(call_id, "")
        return ToolResponseBlock(
            call_id=call_id,
            tool_name=name if isinstance(name, str) and name else known,
            result=parts.result(content),
            is_error=is_error,
            provider_metadata=beside or None,
        )

    def _linked(self, message: Message) -> Iterator[Any]:
        """The blocks, with ids for calls that have none of their own, and the calls noted."""
        for place, block in enumerate(message.blocks):
            if isinstance(block, ToolCallBlock):
                if not block.id or call_ids.is_made(block.id):
                    # The id of a lone response repeats in a history.
                    block = replace(block, id=call_ids.made(self.into.id, self.into.next, place))
                self._names[block.id] = self._due[block.id] = block.name
            yield block


def _at(placed: Placed) -> str:
    place = placed.place.removeprefix(f"line {placed.line}").removeprefix(": ")
    return f"{place}: " if place else ""


def conversations(
    source: Source,
    format: str,
    read: Callable[[Found, Reading], None],
    who: Who,
    name: str | None,
) -> Iterator[Conversation]:
    """Return the conversations of a source, each read with ``read``."""
    name = name_of(source) if name is None else name
    unnamed = 0
    left: dict[str, tuple[int, str, datetime | None]] = {}
    for one in found(entries(source)):
        first, key, at = 1, "", _begun(one)
        if one.id is None:
            unnamed += 1
            begun = one.messages[0].value if one.messages else {}
            id = f"{format}-{digest(name, unnamed, begun)}"
        else:
            id = one.id
            if not one.about:
                first, key, at = left.get(id, (first, key, at))
        into = Gathering(id, title=one.title, created_at=at, first=first, key=key)
        read(one, Reading(into=into, who=who, about=one.about))
        if one.id is not None and not one.about:
            left[id] = into.next, into.key, into.at
        yield into.conversation()


def unread(value: Mapping[str, Any], read: Iterable[str], message: Message) -> Mapping[str, Any]:
    """Return what nobody read: other fields, or all where more was unreadable than is kept."""
    notes = message.metadata or {}
    if notes.get("unknownChunks", 0) > len(notes.get("unknownEvents", ())):
        return value
    return without(value, read)


def _begun(one: Found) -> datetime | None:
    return said_at(one.about) or (said_at(one.messages[0].value) if one.messages else None)


def refuse_content(placed: Placed) -> NoReturn:
    """Refuse a message that says neither a text nor parts."""
    refuse(placed.line, f"{_at(placed)}content is neither text nor a list of parts")
