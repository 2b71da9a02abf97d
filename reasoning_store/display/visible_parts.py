"""The blocks of a message that a person sees, whatever a model is sent (BR-003)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    ThinkingBlock,
)
from reasoning_store.conversation.reasoning_settings import ReasoningSettings
from reasoning_store.conversation.settings import Resolved, resolve_settings
from reasoning_store.conversation.validation import Holder, message_of


def visible_parts(
    message: Message | Holder, settings: ReasoningSettings | Mapping[str, Any] | None = None
) -> tuple[Block, ...]:
    """Return the blocks to show, in order.

    Thinking is shown where ``includeInResponse`` is on and the block is not hidden. An item of
    a session's ``history()`` is taken for its message. It does not bring the session's settings
    along: give ``session.settings.resolved()``, or the default holds.
    """
    with_thinking = shows_thinking(settings)
    return tuple(
        block
        for block in message_of(message).blocks
        if is_visible(block, with_thinking=with_thinking)
    )


def shows_thinking(settings: ReasoningSettings | Mapping[str, Any] | None) -> bool:
    """Whether these settings show thinking to a person."""
    # BR-003, BR-006: only includeInResponse decides; strip, include and enabled do not.
    return resolve_settings(_values(settings)).settings.include_in_response


def is_visible(block: Block, *, with_thinking: bool) -> bool:
    """Whether a person sees this block."""
    return not isinstance(block, ThinkingBlock) or (with_thinking and not block.is_hidden)


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
