"""A message on its way to becoming a protocol's events: what every protocol asks of it.

Knows messages, and how a string is cut into pieces. It must not know any protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias, TypeVar

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.testing.capabilities import TAGS, Capabilities
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.tools import parse_arguments

Event: TypeAlias = dict[str, Any]
Whole = TypeVar("Whole", str, bytes)


class Cut:
    """Cuts strings into ``pieces``: evenly, or with a ``seed`` anywhere, but always alike.

    A shorter string gives a piece for each of its characters; an empty one gives none.
    """

    def __init__(self, pieces: int = 1, seed: int | None = None) -> None:
        if type(pieces) is not int or pieces < 1:
            raise InvalidCall("pieces is a whole number, 1 or more")
        self._pieces = pieces
        self._random = None if seed is None else Random(seed)

    def __call__(self, whole: Whole) -> list[Whole]:
        count = min(self._pieces, len(whole))
        places: list[int] = [len(whole) * n // count for n in range(1, count)]
        if self._random is not None:
            places = sorted(self._random.sample(range(1, len(whole)), len(places)))
        edges = [0, *places, len(whole)]
        return [whole[a:b] for a, b in pairwise(edges) if b > a]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A message to send: in which protocol, by which model, and in how many pieces."""

    message: Message
    contract: Contract
    model: str
    response_id: str | None
    usage: Usage | None
    cut: Cut

    @property
    def is_broken_off(self) -> bool:
        """Whether the stream breaks off: no end, no usage, and its last block is left open."""
        return self.message.status == "interrupted"

    def breaks_in(self, block: Block) -> bool:
        return self.is_broken_off and block is self.message.blocks[-1]

    def response_id_or(self, fallback: str) -> str:
        """Return the id of the response."""
        return self.response_id or fallback

    def reason(self, *, calls: str, otherwise: str) -> str:
        """Return why the answer ended, if the message does not have it in the protocol's words."""
        return self.message.finish_reason or (calls if self.message.tool_calls else otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One api, from a script to its events or its body, and what it has a place for."""

    events: Callable[[Script], Iterator[Event]]
    body: Callable[[Script], Event]
    capabilities: Callable[[Contract], Capabilities]


def arguments_text(block: ToolCallBlock) -> str:
    """Return a call's arguments as the string that a protocol sends."""
    if block.arguments is not None:
        return block.arguments
    parameters = {} if block.parameters is None else block.parameters
    return json.dumps(parameters, ensure_ascii=False, separators=(",", ":"))


def arguments_value(block: ToolCallBlock) -> Any:
    """Return a call's arguments as the object that a protocol sends."""
    if block.parameters is not None:
        return block.parameters
    return parse_arguments(block.arguments or "", {})


def without_none(**fields: Any) -> Event:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def outside_cache(usage: Usage) -> int | None:
    """Return the input tokens as a provider reports them that leaves its cache out of them."""
    if usage.input is None:
        return None
    return max(0, usage.input - (usage.cached or 0) - (usage.cache_write or 0))


def stored_metadata(block: Block, *names: str) -> Event:
    """Return the metadata of a block that is sent under its own names."""
    metadata: Mapping[str, Any] = block.provider_metadata or {}
    return {name: metadata[name] for name in names if name in metadata}


def tagged_text(block: TextBlock | ThinkingBlock, script: Script) -> str:
    """Return the text of a block, with tags around a thought."""
    if isinstance(block, TextBlock):
        return block.text
    line = "\n" if script.contract.returning.padded_tags else ""
    opened = f"<think>{line}{block.thought}"
    return opened if script.breaks_in(block) else f"{opened}{line}</think>{line}"


def tagged_message_text(script: Script) -> str:
    """Return the whole text of a message, its tagged thoughts in it."""
    return "".join(
        tagged_text(block, script)
        for block in script.message.blocks
        if isinstance(block, TextBlock)
        or (isinstance(block, ThinkingBlock) and block.source_field == TAGS)
    )


def tagged_losses(message: Message, fields: Sequence[str | None]) -> Iterator[str]:
    """Yield the parts of a message that are lost if its thoughts are in these fields."""
    if TAGS not in fields:
        return
    if {*fields} != {TAGS}:
        yield "thoughts between tags together with others"
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    thoughts = [block.thought for block in message.thinking]
    # A character of a delimiter may form another one with the text next to it.
    if any(set(text) & set("<>[]|\u25c1\u25b7") for text in (*texts, *thoughts)):
        yield "delimiters next to tagged thoughts"
    if not all(thought.strip() for thought in thoughts):
        yield "a thought of white space between tags"
    if any(text != text.strip("\r\n") for text in (*texts, *thoughts)):
        yield "line ends next to tags"
