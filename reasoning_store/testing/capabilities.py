"""The parts of a message that a protocol has a place for, and those that are lost in it.

A ``Capabilities`` is a protocol's table; ``losses`` reads a message against it. Ids and kinds that
a protocol adds are no loss, and neither is a source field that the message does not set. Nor is the
spelling of arguments, if the protocol sends them as objects.

Knows blocks and what keeps them apart on a wire. It must not know any protocol's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.tools import parse_arguments

TAGS: Final = "think_tags"
"""The source of a thought between delimiters in the text."""

_NAMES: Final = ("think", "thinking", "thought", "reasoning", "reflection")
_MARKS: Final = re.compile("[<>[\\]|\u25c1\u25b7]")
"""A string in every delimiter of every model family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """One protocol's places.

    ``forms``: of thoughts, which of plain, signed, encrypted (nothing readable), summary
    (readable next to ciphertext) and redacted. ``sources``: the source fields that come back,
    by form. ``*_metadata``: the keys that go along.
    ``usage``: the counts. ``outside_cache``: what a cache held is no part of the input.
    ``objects``: arguments are objects, always or in a whole body.
    ``merges``: the types of which neighbours become one block; a seal keeps them apart all
    the same where ``seals_end``. ``order``: of the types in a whole body. ``other``: which
    blocks of other types have a place. ``more``: what only this protocol loses.
    """

    forms: frozenset[str] = frozenset({"plain"})
    sources: Mapping[str, tuple[str, ...]]
    text_metadata: frozenset[str] = frozenset()
    thinking_metadata: frozenset[str] = frozenset()
    call_metadata: frozenset[str] = frozenset()
    usage: frozenset[str] = frozenset({"input", "output"})
    outside_cache: bool = False
    objects: bool = False
    objects_whole: bool = False
    merges: frozenset[str] = frozenset()
    seals_end: bool = False
    order: tuple[str, ...] = ()
    other: Callable[[Block], bool] = lambda block: False
    more: Callable[[Message, bool], Iterator[str]] = lambda message, whole: iter(())


def losses(
    message: Message,
    usage: Usage | None,
    capabilities: Capabilities,
    contract: Contract,
    *,
    whole: bool,
) -> Iterator[str]:
    """Name the parts of a message that do not survive, each in a few words."""
    if message.role != "assistant":
        yield f"a message of the role {message.role}"
    if message.status not in ("complete", "interrupted"):
        yield f"the status {message.status}"
    if message.metadata is not None:
        yield "the message's own metadata"
    if message.status == "interrupted":
        if whole:
            yield "an interruption"
        if message.finish_reason is not None or usage is not None:
            yield "the end of a message that was interrupted"
    for name in ("input", "output", "reasoning", "cached", "cache_write"):
        if getattr(usage, name, None) is not None and name not in capabilities.usage:
            yield f"the count of {name} tokens"
    if capabilities.outside_cache and usage is not None and _is_under_cache(usage):
        yield "a count of input tokens that is smaller than its cached part"
    for number, block in enumerate(message.blocks):
        last = number == len(message.blocks) - 1 and message.status == "interrupted"
        for lost in _block_losses(block, capabilities, last=last):
            yield f"block {number}: {lost}"
        if isinstance(block, ToolCallBlock):
            objects = capabilities.objects_whole if whole else capabilities.objects
            for lost in _argument_losses(block, objects=objects):
                yield f"block {number}: {lost}"
    yield from _together(message, capabilities, contract, whole=whole)
    yield from capabilities.more(message, whole)


def _is_under_cache(usage: Usage) -> bool:
    cache = (usage.cached or 0) + (usage.cache_write or 0)
    return usage.input is not None and usage.input < cache


def form(block: ThinkingBlock) -> str:
    """Return how a thought is sealed."""
    if block.redacted:
        return "redacted" if block.encrypted and not block.thought else "redacted and readable"
    if block.encrypted:
        if block.signature:
            return "signed and encrypted"
        return "summary" if block.thought else "encrypted"
    return "signed" if block.signature else "plain"


def holds_delimiter(text: str, contract: Contract) -> bool:
    """Whether a text has something that would be taken out of it as a delimiter."""
    if contract.reading.markers and _MARKS.search(text):
        return True
    names = "|".join(map(re.escape, _NAMES))
    return re.search(rf"<\s*/?\s*(?:{names})\s*>", text, re.IGNORECASE | re.ASCII) is not None


def _block_losses(block: Block, capabilities: Capabilities, *, last: bool) -> Iterator[str]:
    if isinstance(block, TextBlock):
        if not (block.text or block.provider_metadata):
            yield "an empty text"
        yield from _metadata_losses(block, capabilities.text_metadata)
    elif isinstance(block, ThinkingBlock):
        yield from _thinking_losses(block, capabilities, last=last)
        yield from _metadata_losses(block, capabilities.thinking_metadata)
    elif isinstance(block, ToolCallBlock):
        yield from _metadata_losses(block, capabilities.call_metadata)
        if not (block.id and block.name):
            yield "a call without id or name"
    elif not capabilities.other(block):
        yield f"a block of type {block.type}"


def _thinking_losses(
    block: ThinkingBlock, capabilities: Capabilities, *, last: bool
) -> Iterator[str]:
    kind = form(block)
    if not (block.thought or block.signature or block.encrypted):
        yield "an empty thought"
    elif kind not in capabilities.forms:
        yield f"a thought that is {kind}"
    elif block.source_field not in (None, *capabilities.sources.get(kind, ())):
        yield f"the source field {block.source_field}"
    if block.is_hidden and block.thought:
        yield "that a readable thought is hidden"
    if block.interrupted != last:
        yield "whether a thought was interrupted"


def _metadata_losses(block: Block, keys: frozenset[str]) -> Iterator[str]:
    for name in sorted((block.provider_metadata or {}).keys() - keys):
        yield f"the metadata {name}"


def _argument_losses(block: ToolCallBlock, *, objects: bool) -> Iterator[str]:
    value = block.parameters
    if block.arguments is not None:
        spelled = parse_arguments(block.arguments)
        if spelled != value:
            yield "parameters that its arguments lack"
        if objects and not isinstance(spelled, dict):
            yield "arguments that are not an object"
    elif not isinstance(value, dict) and (objects or value is None):
        yield "parameters that are not an object"


def _together(
    message: Message, capabilities: Capabilities, contract: Contract, *, whole: bool
) -> Iterator[str]:
    """Name the parts of a message that survive alone, but not together."""
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    if contract.reading.tags and any(
        holds_delimiter(t, contract) for t in (*texts, "".join(texts))
    ):
        yield "a delimiter in a text"
    ids = [block.id for block in message.tool_calls]
    if len(set(ids)) < len(ids):
        yield "two calls of one id"
    for before, after in pairwise(message.blocks):
        if (
            before.type == after.type
            and before.type in capabilities.merges
            and not (capabilities.seals_end and _sealed(before))
        ):
            yield f"where one {before.type} ends and the next begins"
    if whole and capabilities.order and all(b.type in capabilities.order for b in message.blocks):
        ranks = [capabilities.order.index(block.type) for block in message.blocks]
        if ranks != sorted(ranks):
            yield "the order of its blocks"


def _sealed(block: Block) -> bool:
    if isinstance(block, ThinkingBlock):
        return block.opaque
    return bool(block.provider_metadata)


def is_raw(block: Block, *known_types: str) -> bool:
    """Whether a raw block is an object of a protocol's own, of a type that has no block here."""
    data = block.data if isinstance(block, RawBlock) else None
    kind = data.get("type") if isinstance(data, Mapping) else None
    return isinstance(kind, str) and kind not in known_types


def is_media(block: Block) -> bool:
    """Whether a media block has its data or an address, and a kind that fits its type."""
    return (
        isinstance(block, MediaBlock)
        and block.ref is None
        and (block.data is None) != (block.url is None)
        and block.mime_type.partition("/")[0] == block.kind
    )
