"""What a person sees of a message: a question apart from what a model is sent (BR-003).

It knows blocks and the display settings. It must not know contracts, tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasoning_store.blocks import Block, Message, ThinkingBlock
from reasoning_store.egress.verdicts import Holder, message_of
from reasoning_store.settings import ReasoningSettings, Resolved, resolve


def visible_parts(
    message: Message | Holder, settings: ReasoningSettings | Mapping[str, Any] | None = None
) -> tuple[Block, ...]:
    """Return the blocks to show, in order.

    Thinking is shown where ``includeInResponse`` says so and the block is not hidden. What
    a session's ``history()`` gives is taken as it is, for its message. It does not bring the
    session's settings along: give ``session.settings.resolved()``, or the default holds.
    """
    show = resolve(_values(settings)).settings.include_in_response
    return tuple(
        block
        for block in message_of(message).blocks
        if not isinstance(block, ThinkingBlock) or (show and not block.is_hidden)
    )


def _values(
    settings: ReasoningSettings | Mapping[str, Any] | None,
) -> ReasoningSettings | Mapping[str, Any] | None:
    """Return settings without the layers that they came from."""
    if not isinstance(settings, Mapping):
        return settings
    return {
        key: value.value if isinstance(value, Resolved) else value
        for key, value in settings.items()
    }
