"""Blocks and numbers as texts for a reader."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from reasoning_store import Block, ToolCallBlock, ToolResponseBlock, tool, ui_events


def argument_text(call: ToolCallBlock) -> str:
    """Return the arguments of a call, as they came where they came as a text."""
    return call.arguments if call.arguments is not None else _json(call.parameters)


def result_text(response: ToolResponseBlock) -> str:
    """Return the result of a tool as a chat page has it; a value that is no text is JSON."""
    (shown,) = (event for event in ui_events([tool(response)]) if "toolCallId" in event)
    value = shown.get("output", shown.get("errorText"))
    return value if isinstance(value, str) else _json(value)


def raw_text(block: Block) -> str:
    """Return a block that has no form of its own as JSON."""
    return _json(getattr(block, "data", None))


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def signed(number: int) -> str:
    """Return a difference with its sign."""
    return "\N{PLUS-MINUS SIGN}0" if number == 0 else f"{number:+d}".replace("-", "\N{MINUS SIGN}")


def minute(time: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def positions(numbers: list[int]) -> str:
    """Return positions as words: ``2, 4 and 10``."""
    words = [str(number) for number in numbers]
    if len(words) > _MOST_POSITIONS:
        words = [*words[:_MOST_POSITIONS], f"{len(words) - _MOST_POSITIONS} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


_MOST_POSITIONS = 6


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
