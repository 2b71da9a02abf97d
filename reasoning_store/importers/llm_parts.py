"""The parts of llm's messages that are no words of a reply: attachments, hosted tools, usage.

The work of a hosted tool is the provider's own: it is stored in the message's metadata, except an
item that the provider itself can take back. The fields of a part are those of llm's own JSON;
``attachment`` and ``attachments`` are rows. This module must not know tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store import MediaBlock, Usage
from reasoning_store.importers.reply_parts import Part, metadata_of
from reasoning_store.wire.content_parts import media_kind
from reasoning_store.wire.event_fields import whole_number
from reasoning_store.wire.usage_counts import Places, make_usage, read_counts

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
    details = details if isinstance(details, dict) else {}
    reported = {name: whole_number(row.get(f"{name}_tokens")) for name in ("input", "output")}
    if all(number is None for number in reported.values()):
        return None
    counts = {**reported, **read_counts(details, _DETAILS)}
    output, reasoning = counts["output"], counts["reasoning"]
    return make_usage(
        counts,
        {**reported, **({"details": details} if details else {})},
        cache_apart=bool(details.keys() & _OUTSIDE_INPUT),
        reasoning_apart=output is not None and (reasoning or 0) > output,
    )


_DETAILS: Final[Places] = {
    "reasoning": (
        "output_tokens_details.reasoning_tokens",
        "completion_tokens_details.reasoning_tokens",
        "reasoning_tokens",
        "thoughtsTokenCount",
    ),
    "cached": (
        "input_tokens_details.cached_tokens",
        "prompt_tokens_details.cached_tokens",
        "cache_read_input_tokens",
        "cachedContentTokenCount",
    ),
    "cache_write": (
        "input_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
    ),
}
_OUTSIDE_INPUT: Final = frozenset({"cache_read_input_tokens", "cache_creation_input_tokens"})
"""Anthropic's words: it counts as input only those outside of its cache."""
