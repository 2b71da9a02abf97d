"""Selections of messages, as tests ask for them."""

from __future__ import annotations

import reasoning_store as rs

KEEP = rs.ReasoningSettings(include_in_context=True)


def kept(
    messages: tuple[rs.Message, ...],
    settings: rs.ReasoningSettings | None = None,
    provider: str | None = None,
) -> list[int]:
    """Return which messages keep their thinking."""
    verdicts = rs.select(messages, settings=settings, provider=provider).verdicts
    return [verdict.message for verdict in verdicts if verdict.kept]
