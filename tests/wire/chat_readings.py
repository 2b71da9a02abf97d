"""The calls that events of Chat Completions become."""

from __future__ import annotations

from typing import Any

from tests.wire.chat_events import (
    delta,
    streamed,
)


def calls(*events: Any, provider: str | None = None) -> list[tuple[str, str, str | None]]:
    message = streamed(*events, delta(finish="tool_calls"), provider=provider)
    return [(item.id, item.name, item.arguments) for item in message.tool_calls]
