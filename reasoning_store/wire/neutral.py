"""What an application gives in no protocol's own form: tools, a system prompt, arguments.

A tool is neutral where it says ``name``, ``description`` and ``parameters``, bare or in the
envelope of Chat Completions, which most applications have at hand. Everything else is taken
for the protocol's own form and goes as it stands.

It knows these forms. It must not know what a protocol makes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store import codec, strict
from reasoning_store.blocks import MediaBlock, ToolCallBlock
from reasoning_store.wire import binary
from reasoning_store.wire.binary import in_base64

_TOOL: Final = frozenset({"name", "description", "parameters", "strict"})
NO_ANSWER: Final = "no answer was recorded"
"""What a model is made to say where a provider wants something said and nothing was."""
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def function(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a neutral tool says of itself; ``None`` for one of a protocol's own form."""
    inner = tool.get("function")
    if tool.get("type") == "function" and isinstance(inner, Mapping):
        tool = inner
    return tool if isinstance(tool.get("name"), str) and _TOOL.issuperset(tool) else None


def wrong_with(tool: Mapping[str, Any]) -> str | None:
    """Return what keeps a tool from being one, behind its name; ``None`` for one that is.

    What says that it is something else than a function is its protocol's to check.
    """
    where = ""
    if tool.get("type") == "function" and "function" in tool:
        where, tool = ".function", tool["function"]
        if not isinstance(tool, Mapping):
            return f"{where} is a mapping, not {type(tool).__name__}"
    elif tool.get("type") != "function" and not _TOOL.issuperset(tool):
        return None
    if not (isinstance(name := tool.get("name"), str) and name):
        return f"{where}.name is a text that is not empty, the name of a function"
    schema = tool.get("parameters")
    if schema is not None and not isinstance(schema, Mapping):
        return f"{where}.parameters is a mapping, not {type(schema).__name__}"
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


def arguments(block: ToolCallBlock) -> dict[str, Any]:
    """Return a call's arguments as the object that a protocol demands."""
    value = block.parameters
    if value is None and block.arguments:
        value = read(block.arguments, block.arguments)
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value is None else {"input": value}


def read(text: str, otherwise: Any = None) -> Any:
    """Return what the text of a call's arguments says, or ``otherwise`` where it is not JSON.

    It is JSON that one parser reads as the other does, and as deep as may be. No text at all
    is a call of nothing.
    """
    if not text.strip():
        return {}
    try:
        return strict.loads(text, deepest=codec.DEEPEST, rules=strict.PORTABLE)
    except strict.Malformed:
        return otherwise


def base64_of(block: MediaBlock) -> str:
    return in_base64(block.data or b"")


def data_url(block: MediaBlock) -> str:
    """Return where a medium is, or all of it as an address."""
    return block.url or binary.data_url(block.mime_type, block.data or b"")
