"""The parts of llm's messages that are no words of a reply: attachments, hosted tools, usage.

The work of a hosted tool is the provider's own: it is stored in the message's metadata, except an
item that the provider itself can take back. The fields of a part are those of llm's own JSON;
``attachment`` and ``attachments`` are rows. This module must not know tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Usage,
)
from reasoning_store.importers.content_parts import media_kind
from reasoning_store.importers.reply_parts import Part, metadata_of
from reasoning_store.wire.event_fields import whole_number

_TYPES: Final = frozenset({"text", "reasoning", "tool_call", "tool_result", "attachment"})


def media_block(row: Mapping[str, Any]) -> MediaBlock:
    """Return an attachment: its bytes, its address, or the path that llm remembers."""
    mime = row.get("type") or "application/octet-stream"
    data = row.get("content") or None
    url = None if data else row.get("url")
    return MediaBlock(
        kind=media_kind(mime),
        mime_type=mime,
        data=data,
        url=url,
        ref=None if data or url else row.get("path") or row.get("id"),
    )


def unread_parts(parts: Sequence[Part]) -> dict[str, Any]:
    """Return what of a message became no block: hosted tools, and how a tool failed."""
    hosted = [
        {name: value for name, value in part.items() if name != "attachments"}
        for part in parts
        if part["type"] not in _TYPES
        or (
            part.get("server_executed") and not metadata_of(part, "openrouter").get("response_item")
        )
    ]
    failed = [part["exception"] for part in parts if part.get("exception")]
    return {**({"parts": hosted} if hosted else {}), **({"exceptions": failed} if failed else {})}


def read_usage(row: Mapping[str, Any], details: Any) -> Usage | None:
    """Return what a model call reported, as llm kept it."""
    counts = {name: whole_number(row.get(f"{name}_tokens")) for name in ("input", "output")}
    if all(number is None for number in counts.values()):
        return None
    reasoning = _detail(details, _REASONING)
    output = counts["output"]
    if output is not None and reasoning is not None and reasoning > output:
        output += reasoning  # it is not in the output yet
    cached, cache_write = _detail(details, _CACHED), _detail(details, _CACHE_WRITE)
    given = counts["input"]
    if given is not None and _detail(details, _OUTSIDE_INPUT) is not None:
        given += (cached or 0) + (cache_write or 0)
    return Usage(
        input=given,
        output=output,
        reasoning=reasoning,
        cached=cached,
        cache_write=cache_write,
        raw={**counts, **({"details": details} if details else {})},
    )


_REASONING: Final = (
    ("output_tokens_details", "reasoning_tokens"),
    ("completion_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
    ("thoughtsTokenCount",),
)
_CACHED: Final = (
    ("input_tokens_details", "cached_tokens"),
    ("prompt_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("cachedContentTokenCount",),
)
_CACHE_WRITE: Final = (
    ("input_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("cache_creation_input_tokens",),
)
_OUTSIDE_INPUT: Final = (("cache_read_input_tokens",), ("cache_creation_input_tokens",))
"""Anthropic's words: it counts as input only those outside of its cache."""


def _detail(details: Any, places: Sequence[Sequence[str]]) -> int | None:
    for place in places:
        value = details
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if (number := whole_number(value)) is not None:
            return number
    return None
