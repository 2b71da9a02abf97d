"""The counts of a usage report, by a protocol's table of their places.

In ours ``input`` includes what was read from a cache and written to one, and ``output`` the
reasoning, whatever the provider's habit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from reasoning_store.conversation.blocks import Usage
from reasoning_store.wire.body_path import value_at
from reasoning_store.wire.event_fields import whole_number

Places: TypeAlias = Mapping[str, tuple[str, ...]]
"""The dotted paths of each count; the first that has a number counts."""


def read_counts(report: Mapping[str, Any], places: Places) -> dict[str, int | None]:
    """Return the counts of a report; an absent one is not zero."""
    found = {}
    for name, paths in places.items():
        counts = (whole_number(value_at(report, path)) for path in paths)
        found[name] = next((count for count in counts if count is not None), None)
    return found


def make_usage(
    counts: dict[str, int | None],
    raw: Any,
    *,
    cache_apart: bool = False,
    reasoning_apart: bool = False,
) -> Usage:
    """Return the usage of counts that may have the cache, or the reasoning, apart."""
    input_tokens, output_tokens, reasoning = (
        counts.get(name) for name in ("input", "output", "reasoning")
    )
    if cache_apart and input_tokens is not None:
        input_tokens += sum(counts.get(name) or 0 for name in ("cached", "cache_write"))
    if reasoning_apart and reasoning is not None:
        output_tokens = (output_tokens or 0) + reasoning  # some hosts leave out a count of zero
    return Usage(**{**counts, "input": input_tokens, "output": output_tokens}, raw=raw)
