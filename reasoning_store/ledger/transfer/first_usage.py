"""Usage as the first version stored it, read as it is meant today.

The first version took a provider's input count as it came: Anthropic, Bedrock and the hosts of
thinking events leave out of it what was read from a cache or written to one. The tokens written to
a cache had no field. Both are in the raw object, which is always kept.

Pure: knows the names in raw objects; knows no SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OUTSIDE = (
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    ("input", "cacheRead", "cacheWrite"),
)
"""The counts of providers that leave their cache out of the input: input, read, written."""
_INSIDE = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_creation_input_tokens"),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("inputTokenDetails", "cacheWriteTokens"),
)
"""The fields of the cache write, of providers that do not leave it out."""


def read(input_tokens: int | None, raw: Any) -> tuple[int | None, int | None]:
    """Return the input and the cache write of a usage; its stored input is given."""
    if not isinstance(raw, Mapping):
        return input_tokens, None
    details = raw.get("details")
    if isinstance(details, Mapping):  # as the importer of llm's logs keeps it
        raw = {"input_tokens": raw.get("input"), **details}
    for name, *cache in _OUTSIDE:
        counts = [_count(raw.get(part)) for part in cache]
        if name in raw and counts != [None, None]:
            if input_tokens is not None and input_tokens == _count(raw[name]):
                input_tokens += sum([count or 0 for count in counts])
            return input_tokens, counts[1]
    for holder, name in _INSIDE:
        inside = raw.get(holder)
        if isinstance(inside, Mapping) and (count := _count(inside.get(name))) is not None:
            return input_tokens, count
    if "prompt_tokens" in raw:
        return input_tokens, _count(raw.get("cache_creation_input_tokens"))
    return input_tokens, None


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 else None
