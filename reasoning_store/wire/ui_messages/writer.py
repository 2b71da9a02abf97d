"""Writes the model messages that hosts of the AI SDK send on.

A host that normalises streams takes history in a form of its own and makes each provider's request
of it. Thoughts, texts and calls are parts of a message; a provider's opaque data is sent in
``providerOptions`` under that provider's name, where the host's own adapter looks for a signature.
A tool's result is in a message of the role ``tool``, its value marked as text, JSON or an error.
There is no official Python SDK to call: its arguments are the body.
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
from reasoning_store.wire.content_parts import result_parts
from reasoning_store.wire.message_writer import (
    MessageWriter,
    Outgoing,
    Part,
    Tools,
)
from reasoning_store.wire.tools import NO_PARAMETERS, call_arguments, media_base64, neutral_function

_ENVELOPE: Final = "vercel"
"""The key under which ingress stores ``providerMetadata``."""


class UIMessageWriter(MessageWriter):
    """Writes the messages of one request."""

    def write_message(self, outgoing: Outgoing) -> None:
        message = outgoing.message
        results: list[Part] = []
        parts: list[Part] = []
        for block in message.blocks:
            if isinstance(block, ToolResponseBlock):
                results.append(self._write_result(block))
                continue
            part = _write_block(block)
            if part is None:
                self.leave_out(block)
            else:
                parts.append(part)
        role = "user" if message.role == "tool" else message.role
        out = []
        if parts:
            plain = role != "assistant" and [part.keys() for part in parts] == [{"type", "text"}]
            out.append({"role": role, "content": parts[0]["text"] if plain else parts})
        if results:
            message_of_results = {"role": "tool", "content": results}
            out = [*out, message_of_results] if role == "assistant" else [message_of_results, *out]
        self.rendered += out

    def write_result_part(self, part: TextBlock | MediaBlock) -> Part | None:
        if isinstance(part, TextBlock):
            return {"type": "text", "text": part.text}
        if part.data is None:
            return None
        return {"type": "media", "data": media_base64(part), "mediaType": part.mime_type}

    def _write_result(self, block: ToolResponseBlock) -> Part:
        value = self.result_content(block) if result_parts(block) else block.result
        kind = "text" if isinstance(value, str) else "json"
        output = {"type": f"error-{kind}" if block.is_error else kind, "value": value}
        if value is not block.result and not isinstance(value, str):
            output["type"] = "content"
        return {
            "type": "tool-result",
            "toolCallId": block.call_id,
            "toolName": block.tool_name,
            "output": output,
            **_provider_options(block),
        }

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        if system:
            body["system"] = system
        body["messages"] = self.messages()
        if tools:
            body["tools"] = [_write_tool(tool) for tool in tools]


def _write_block(block: Block) -> Part | None:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text, **_provider_options(block)}
        case ThinkingBlock():
            return _write_thinking(block)
        case ToolCallBlock():
            return _write_call(block)
        case MediaBlock():
            return _write_media(block)
    return None


def _provider_options(block: Block) -> Part:
    """Return a provider's opaque data of a block, under its name."""
    options = (block.provider_metadata or {}).get(_ENVELOPE)
    return {"providerOptions": dict(options)} if isinstance(options, Mapping) and options else {}


def _write_thinking(block: ThinkingBlock) -> Part:
    options = _provider_options(block)
    if not options and block.encrypted:
        return {"type": "redacted-reasoning", "data": block.encrypted}
    # Without a provider's name the signature is where older hosts look for it.
    signature = {"signature": block.signature} if not options and block.signature else {}
    return {"type": "reasoning", "text": block.thought, **signature, **options}


def _write_call(block: ToolCallBlock) -> Part:
    return {
        "type": "tool-call",
        "toolCallId": block.id,
        "toolName": block.name,
        "input": call_arguments(block),
        **_provider_options(block),
    }


def _write_media(block: MediaBlock) -> Part | None:
    if block.data is None and block.url is None:
        return None  # the application's own name for it means nothing to others
    name = {"filename": block.name} if block.name else {}
    data = block.url or media_base64(block)
    return {
        "type": "file",
        "mediaType": block.mime_type,
        "data": data,
        **name,
        **_provider_options(block),
    }


def _write_tool(tool: Mapping[str, Any]) -> Part:
    about = neutral_function(tool)
    if about is None:
        return dict(tool)
    schema = about.get("parameters") or dict(NO_PARAMETERS)
    described = {"description": about["description"]} if about.get("description") else {}
    return {"type": "function", "name": about["name"], **described, "inputSchema": schema}
