"""Stored messages in LangChain's standard blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

import reasoning_store as rs
from reasoning_store.integrations import foreign_forms

_PROVIDERS: Final[Mapping[str, str]] = {
    "aws": "bedrock_converse",
    "google": "google_genai",
    "mistral": "mistralai",
    "vertex": "google_vertexai",
}
"""LangChain's names of providers, where they are others than the store's."""


def write_plain(message: rs.Message, blocks: Sequence[rs.Block]) -> list[BaseMessage]:
    """Return the messages of these blocks of a message."""
    if message.role == "tool":
        return _write_results(blocks)
    if message.role == "assistant":
        return [_write_reply(message, blocks)]
    kind = HumanMessage if message.role == "user" else SystemMessage
    return [kind(content=_content(blocks))]


def _content(blocks: Sequence[rs.Block]) -> Any:
    """Return a text where the blocks are one, else standard blocks."""
    if len(blocks) == 1 and isinstance(blocks[0], rs.TextBlock):
        return blocks[0].text
    return [part for block in blocks if (part := _standard(block)) is not None]


def _write_results(blocks: Sequence[rs.Block]) -> list[BaseMessage]:
    return [
        ToolMessage(
            content=_result(block.result),
            tool_call_id=block.call_id,
            **({"name": block.tool_name} if block.tool_name else {}),
            status="error" if block.is_error else "success",
        )
        for block in blocks
        if isinstance(block, rs.ToolResponseBlock)
    ]


def _result(result: Any) -> Any:
    is_content = isinstance(result, str) or (
        isinstance(result, list) and all(isinstance(part, str | dict) for part in result)
    )
    return result if is_content else json.dumps(result, ensure_ascii=False)


def _write_reply(message: rs.Message, blocks: Sequence[rs.Block]) -> BaseMessage:
    origin = message.origin or rs.Origin()
    provider = _PROVIDERS.get(origin.provider or "", origin.provider)
    about = {"model_provider": provider, "model_name": origin.model}
    calls = [
        {"name": block.name, "args": _arguments(block), "id": block.id, "type": "tool_call"}
        for block in blocks
        if isinstance(block, rs.ToolCallBlock)
    ]
    thinking = [block for block in blocks if isinstance(block, rs.ThinkingBlock)]
    rest = [one for one in blocks if not isinstance(one, rs.ThinkingBlock | rs.ToolCallBlock)]
    kwargs: dict[str, Any] = {}
    content: Any
    if any(one.opaque for one in thinking) or not all(map(_is_text, rest)):
        content = [part for block in blocks if (part := _standard(block)) is not None]
        about["output_version"] = "v1"
    else:
        content = "".join(one.text for one in rest if isinstance(one, rs.TextBlock))
        if thinking:
            kwargs["reasoning_content"] = "\n\n".join(one.thought for one in thinking)
    return AIMessage(
        content=content,
        tool_calls=calls,
        additional_kwargs=kwargs,
        response_metadata={key: item for key, item in about.items() if item},
    )


def _is_text(block: rs.Block) -> bool:
    return isinstance(block, rs.TextBlock)


def _arguments(block: rs.ToolCallBlock) -> dict[str, Any]:
    given = block.parameters
    if given is None and block.arguments is not None:
        try:
            given = json.loads(block.arguments)
        except ValueError:
            return {}
    return dict(given) if isinstance(given, Mapping) else {}


def _standard(block: rs.Block) -> dict[str, Any] | None:
    """Return the standard block of LangChain."""
    match block:
        case rs.TextBlock():
            return {"type": "text", "text": block.text}
        case rs.ThinkingBlock():
            return _write_thought(block)
        case rs.ToolCallBlock():
            return {
                "type": "tool_call",
                "id": block.id,
                "name": block.name,
                "args": _arguments(block),
            }
        case rs.MediaBlock():
            return _write_media(block)
        case rs.RawBlock():
            return {"type": "non_standard", "value": block.data}
        case _:
            return None


def _write_thought(block: rs.ThinkingBlock) -> dict[str, Any]:
    if block.redacted:
        value = {"type": "redacted_thinking", "data": block.encrypted or ""}
        return {"type": "non_standard", "value": value}
    seals = {"signature": block.signature, "encrypted_content": block.encrypted}
    extras = {key: item for key, item in seals.items() if item is not None}
    named = (block.provider_metadata or {}).get("item_id")
    return {
        "type": "reasoning",
        "reasoning": block.thought,
        **({"id": named} if named else {}),
        **({"extras": extras} if extras else {}),
    }


def _write_media(block: rs.MediaBlock) -> dict[str, Any] | None:
    made: dict[str, Any] = {"type": block.kind, "mime_type": block.mime_type}
    if block.data is not None:
        return {**made, "base64": foreign_forms.base64_text(block.data)}
    if block.url is not None:
        return {**made, "url": block.url}
    return None
