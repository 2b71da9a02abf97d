"""Writes Ollama's own chat API.

Text, thoughts, pictures and calls of a message are in one field each; a call's arguments are
an object, and calls have no ids: a tool's result names the tool. The body has the official
client's defaults, ``tools`` and ``stream``, so that both send the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.message_writer import (
    LeaveOut,
    MessageWriter,
    Outgoing,
    Part,
    Tools,
    join_thoughts,
)
from reasoning_store.wire.openai_chat.writer import system_messages, write_function_tool
from reasoning_store.wire.tools import call_arguments, media_base64

OWNED_KEYS: Final = frozenset({"model", "messages", "tools"})


class OllamaWriter(MessageWriter):
    """Writes the messages of one request."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._names: dict[str, str] = {}

    def write_message(self, outgoing: Outgoing) -> None:
        self.rendered += _write_messages(
            outgoing.message, self.contract, self._names, self.leave_out
        )

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        begun = [_with_one_text(item) for item in system_messages(system)]
        body["messages"] = [*begun, *self.messages()]
        body["tools"] = [write_function_tool(tool) for tool in tools or ()]
        body["stream"] = False


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official client's ``chat``."""
    messages = [
        {**item, "content": _Empty()} if item.get("content") == "" else item
        for item in body.get("messages", ())
    ]
    return {**body, "messages": messages}


class _Empty(str):
    """An empty text that is true, for a client that leaves out false values."""

    def __bool__(self) -> bool:
        return True


def _write_messages(
    message: Message, contract: Contract, names: dict[str, str], leave_out: LeaveOut
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    texts: list[str] = []
    thoughts: list[ThinkingBlock] = []
    images: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ThinkingBlock):
            thoughts += [block] if block.thought else []
        elif isinstance(block, ToolCallBlock):
            names[block.id] = block.name
            calls.append({"function": {"name": block.name, "arguments": call_arguments(block)}})
        elif isinstance(block, ToolResponseBlock):
            name = block.tool_name or names.get(block.call_id, "")
            text = codec.result_text(block)
            out.append({"role": "tool", "tool_name": name, "content": text})
        elif isinstance(block, MediaBlock) and block.kind == "image" and block.data is not None:
            images.append(media_base64(block))
        else:
            leave_out(block)
    if not (texts or thoughts or images or calls):
        return out
    role = "user" if message.role == "tool" else message.role
    written: dict[str, Any] = {"role": role, "content": "".join(texts)}
    if contract.returning.returns_in is not None and thoughts:
        # EC-007: empty reasoning is an omitted field.
        written[contract.returning.returns_in] = join_thoughts(
            thoughts, message.blocks, (contract.returning.returns_in,)
        )
    if images:
        written["images"] = images
    if calls:
        written["tool_calls"] = calls
    return [*out, written]


def _with_one_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose text is a string: parts of text become one."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text", "") if isinstance(part, Mapping) else part for part in content]
        if all(isinstance(text, str) for text in texts):
            return {**message, "content": "\n\n".join(texts)}
    return dict(message)
