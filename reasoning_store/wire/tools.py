"""Tools, a system prompt, arguments and media in the neutral form that applications pass.

A neutral tool has ``name``, ``description`` and ``parameters``, bare or in the envelope of Chat
Completions. A tool of any other form is the protocol's own and is sent as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store.conversation.blocks import MediaBlock, ToolCallBlock
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.json_values import json_value, parse
from reasoning_store.wire import media
from reasoning_store.wire.media import in_base64

_TOOL: Final = frozenset({"name", "description", "parameters", "strict"})
"""The text that is sent where a provider wants one and none was stored."""
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def neutral_function(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the fields of a neutral tool; ``None`` for one of a protocol's own form."""
    inner = tool.get("function")
    if tool.get("type") == "function" and isinstance(inner, Mapping):
        tool = inner
    return tool if isinstance(tool.get("name"), str) and _TOOL.issuperset(tool) else None


def tool_error(tool: Mapping[str, Any]) -> str | None:
    """Return the error of a malformed tool, to follow its name; ``None`` for a valid one.

    A tool of a type that is no function is not checked: the protocol's provider does that.
    """
    where = ""
    if tool.get("type") == "function" and "function" in tool:
        where, tool = ".function", tool["function"]
        if not isinstance(tool, Mapping):
            return f"{where} must be a mapping, not {type(tool).__name__}"
    elif tool.get("type") != "function" and not _TOOL.issuperset(tool):
        return None
    if not (isinstance(name := tool.get("name"), str) and name):
        return f"{where}.name must be a text that is not empty, the name of a function"
    schema = tool.get("parameters")
    if schema is not None and not isinstance(schema, Mapping):
        return f"{where}.parameters must be a mapping, not {type(schema).__name__}"
    return None


def system_texts(system: Any) -> list[str] | None:
    """Return the texts of a neutral system prompt; ``None`` for one of a protocol's own form."""
    if system is None:
        return []
    if isinstance(system, str):
        return [system] if system.strip() else []
    if isinstance(system, Sequence) and all(isinstance(item, str) for item in system):
        return [item for item in system if item.strip()]
    return None


def call_arguments(block: ToolCallBlock) -> dict[str, Any]:
    """Return a call's arguments as the object that a protocol demands."""
    value = block.parameters
    if value is None and block.arguments:
        value = parse_arguments(block.arguments, block.arguments)
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value is None else {"input": value}


def parse_arguments(text: str, otherwise: Any = None) -> Any:
    """Return the value of a call's arguments, or ``otherwise`` where they are not portable JSON.

    An empty text is a call without arguments.
    """
    if not text.strip():
        return {}
    try:
        return json_value(parse(text))
    except InvalidCall:
        return otherwise


def media_base64(block: MediaBlock) -> str:
    return in_base64(block.data or b"")


def media_url(block: MediaBlock) -> str:
    """Return the address of a medium, or a data URL of its bytes."""
    return block.url or media.data_url(block.mime_type, block.data or b"")
