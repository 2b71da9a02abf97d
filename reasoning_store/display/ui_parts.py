"""The parts of the AI SDK's UI messages, made of blocks; stored messages and streams share them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    RawBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import content_parts
from reasoning_store.wire.tools import call_arguments, media_url, parse_arguments

UIObject: TypeAlias = dict[str, Any]
"""An object of the AI SDK, as JSON."""

CUT_OFF: Final = "the arguments of this call are not whole"
_OWN: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "source-url": (("sourceId", "url"), ("title",)),
    "source-document": (("sourceId", "mediaType", "title"), ("filename",)),
}
"""The AI SDK's own parts that are stored as they came: the texts that each needs and may have."""
_OUTCOMES: Final = {"tool-output-available": "output", "tool-output-error": "errorText"}
_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "stop": ("stop", "end_turn", "stop_sequence", "complete", "completed"),
    "length": ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"),
    "tool-calls": ("tool_calls", "tool-calls", "tool_use", "tool_call", "function_call"),
    "content-filter": (
        "content_filter",
        "content-filter",
        "safety",
        "refusal",
        "prohibited_content",
    ),
    "error": ("error", "failed"),
}
_REASON_OF: Final = {name: reason for reason, names in _REASONS.items() for name in names}


def is_whole(call: ToolCallBlock) -> bool:
    """Whether the arguments of a call can be read."""
    if call.parameters is not None or call.arguments is None:
        return True
    return parse_arguments(call.arguments, CUT_OFF) is not CUT_OFF


def response_fields(response: ToolResponseBlock) -> UIObject:
    """Return the output of a call, or its error, as a tool part has it."""
    has_media = content_parts.result_parts(response) is not None
    if response.is_error or has_media:
        text = content_parts.describe_result(response)
        if response.is_error:
            return {"state": "output-error", "errorText": text}
        return {"state": "output-available", "output": text}
    return {"state": "output-available", "output": response.result}


def hosted_outcomes(message: Message) -> dict[str, UIObject]:
    """Return the outputs of the calls that a host of the AI SDK made itself, by call id."""
    found: dict[str, UIObject] = {}
    for block in message.blocks:
        data = block.data if isinstance(block, RawBlock) else None
        name = _OUTCOMES.get(str(data.get("type"))) if isinstance(data, Mapping) else None
        if name is not None and isinstance(data, Mapping) and name in data:
            state = str(data["type"]).removeprefix("tool-")
            found[str(data.get("toolCallId"))] = {"state": state, name: data[name]}
    return found


def call_part(call: ToolCallBlock, outcome: UIObject | None, *, arriving: bool) -> UIObject:
    """Return the part of a call in the state that it has reached."""
    part: UIObject = {"type": f"tool-{call.name}", "toolCallId": call.id}
    whole = is_whole(call)
    if outcome is not None:
        state = outcome
    elif arriving:
        state = {"state": "input-streaming"}
    elif whole:
        state = {"state": "input-available"}
    else:
        state = {"state": "output-error", "errorText": CUT_OFF, "rawInput": call.arguments}
    given = {"input": call_arguments(call)} if whole or state is outcome else {}
    return part | given | state


def file_part(block: MediaBlock) -> UIObject:
    """Return a file with its address, its bytes, or the application's own name for it."""
    url = block.ref if block.ref and not block.url and block.data is None else media_url(block)
    name = {"filename": block.name} if block.name else {}
    return {"type": "file", "mediaType": block.mime_type, **name, "url": url}


def own_part(block: RawBlock) -> UIObject | None:
    """Return a part of the AI SDK's own that was stored as it came; None for anything else."""
    data = block.data
    if not isinstance(data, Mapping) or not isinstance(kind := data.get("type"), str):
        return None
    if kind.startswith("data-") and "data" in data:
        return {name: data[name] for name in ("type", "id", "data") if name in data}
    needed, optional = _OWN.get(kind, ((), ()))
    texts = {name: data[name] for name in (*needed, *optional) if isinstance(data.get(name), str)}
    return {"type": kind, **texts} if needed and texts.keys() >= {*needed} else None


def finish_reason(reason: str | None) -> str | None:
    """Return the AI SDK's word for a provider's reason."""
    return None if reason is None else _REASON_OF.get(reason.lower(), "other")


def add_usage(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of what steps used."""
    return {**before, **{name: before.get(name, 0) + count for name, count in more.items()}}
