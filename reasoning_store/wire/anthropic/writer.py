"""Writes Anthropic's Messages protocol.

A thought is sent back as the block it came in: text, signature and redacted data unchanged, between
the same neighbours. Blank text is refused, so it is left out. ``max_tokens`` is required: the
contract's ``answer_tokens`` plus the budget of thinking, since the limit holds for both. If a host
has the model in its address, the body names the protocol's version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import alternating
from reasoning_store.wire.body_path import value_at
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.message_writer import Outgoing, Part, Tools, with_extra_body
from reasoning_store.wire.provider_turns import OpenTurn
from reasoning_store.wire.tools import (
    NO_PARAMETERS,
    call_arguments,
    media_base64,
    neutral_function,
    system_texts,
)

SDK_PARAMETERS: Final = frozenset(
    "cache_control container diagnostics inference_geo max_tokens messages metadata model "
    "output_config service_tier speed stop_sequences stream system thinking tool_choice "
    "tools".split()
)
"""The parameters of the official SDK's call; other keys are sent in its ``extra_body``."""

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})

_ANSWER_TOKENS: Final = 8_192
"""The limit at an unknown host."""

_NOT_SENT: Final = ("block_type", "vercel", "textSignature", "thoughtSignature")
"""Metadata of ingress, or of a host that normalises, that the protocol never sent."""


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official SDK's call."""
    return with_extra_body(body, SDK_PARAMETERS)


class AnthropicWriter(alternating.AlternatingWriter):
    """Writes the messages of one request."""

    system_is_users = True
    refuses_blank_text = True

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.model_is_in_address = contract.messages.protocol_version is not None

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        if self.model_is_in_address:
            body["anthropic_version"] = self.contract.messages.protocol_version
        if prompt := self.system_parts(system, type="text"):
            is_one_text = len(prompt) == 1 and system_texts(system) is not None
            body["system"] = prompt[0]["text"] if is_one_text else prompt
        body["messages"] = self.messages()
        if tools:
            body["tools"] = [_write_tool(tool) for tool in tools]

    def complete_body(self, body: Part, turn: OpenTurn) -> None:
        budget = value_at(body, self.contract.reasoning.budget_at) or 0
        body["max_tokens"] = (self.contract.messages.answer_tokens or _ANSWER_TOKENS) + budget

    def write_turn(self, turn: alternating.Turn) -> Part:
        content = turn.content
        if turn.role != "assistant" and len(content) == 1 and content[0].keys() == {"type", "text"}:
            return {"role": turn.role, "content": content[0]["text"]}
        return {"role": turn.role, "content": content}

    def write_parts(self, outgoing: Outgoing) -> list[Part]:
        parts = super().write_parts(outgoing)
        demanded = outgoing.owed and self.contract.returning.empty_field_in != "none"
        if demanded and not any(part.get("type") in _THOUGHTS for part in parts):
            parts.insert(0, {"type": "thinking", "thinking": ""})
        return parts

    def write_block(self, block: Block, *, is_reply: bool) -> Part | None:
        match block:
            case TextBlock():
                return {**_stored_fields(block), "type": "text", "text": block.text}
            case ThinkingBlock() if is_reply:
                return _write_thinking(block)
            case ToolCallBlock() if is_reply:
                return _write_call(block)
            case MediaBlock() if not is_reply:
                return _write_media(block)
        return None

    def write_result_part(self, part: TextBlock | MediaBlock) -> Part | None:
        if isinstance(part, MediaBlock):
            return _write_media(part)
        return {"type": "text", "text": part.text} if part.text.strip() else None

    def write_result(self, block: ToolResponseBlock) -> Part:
        part = _stored_fields(block) | {"type": "tool_result", "tool_use_id": block.call_id}
        if content := self.result_content(block):
            part["content"] = content
        if block.is_error:
            part["is_error"] = True
        return part


def _write_tool(tool: Mapping[str, Any]) -> Part:
    about = neutral_function(tool)
    if about is None:
        return dict(tool)
    out = other_fields(about, ("parameters",))
    return {**out, "input_schema": about.get("parameters") or dict(NO_PARAMETERS)}


# Blocks


def _stored_fields(block: Block) -> Part:
    return other_fields(block.provider_metadata, _NOT_SENT) if block.provider_metadata else {}


def _write_thinking(block: ThinkingBlock) -> Part | None:
    stored = _stored_fields(block) if block.opaque else {}
    if block.redacted or (block.encrypted and not block.signature):
        if not block.encrypted:
            return None
        return {**stored, "type": "redacted_thinking", "data": block.encrypted}
    part = {**stored, "type": "thinking", "thinking": block.thought}
    if block.signature:
        part["signature"] = block.signature
    return part


def _write_call(block: ToolCallBlock) -> Part:
    return {
        **_stored_fields(block),
        "type": "tool_use",
        "id": block.id,
        "name": block.name,
        "input": call_arguments(block),
    }


def _write_media(block: MediaBlock) -> Part | None:
    if block.data is None and block.url is None:
        return None  # the application's own name for it means nothing to others
    if block.kind == "image":
        return {**_stored_fields(block), "type": "image", "source": _source(block)}
    return _write_document(block) if block.kind == "file" else None


def _write_document(block: MediaBlock) -> Part | None:
    about = {"title": block.name} if block.name else {}
    source = _source(block)
    if block.mime_type.startswith("text/") and block.data is not None:
        text = block.data.decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif block.mime_type != "application/pdf":
        return None
    return {**_stored_fields(block), "type": "document", **about, "source": source}


def _source(block: MediaBlock) -> Part:
    if block.data is None:
        return {"type": "url", "url": block.url}
    return {
        "type": "base64",
        "media_type": block.mime_type,
        "data": media_base64(block),
    }
