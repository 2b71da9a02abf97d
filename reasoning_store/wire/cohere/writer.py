"""Writes Cohere's v2 chat.

A model's message is a list of thoughts and texts in their order, with its plan
(``tool_plan``), its calls and the citations of its texts in fields of their own. A tool's
result is a document. ``stream`` is in every body, as the official client sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Message,
    RawBlock,
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
from reasoning_store.wire.openai_chat.reply import is_part, join_parts
from reasoning_store.wire.openai_chat.writer import (
    Medium,
    system_messages,
    write_content,
    write_function_tool,
    write_image,
)

OWNED_KEYS: Final = frozenset({"model", "messages", "tools"})

SDK_PARAMETERS: Final = frozenset(
    "citation_options documents frequency_penalty k logprobs max_tokens messages model p "
    "presence_penalty priority response_format safety_mode seed stop_sequences strict_tools "
    "temperature thinking tool_choice tools".split()
)
"""The parameters of the official SDK's call; other keys are additional parameters."""

_PLAN: Final = "tool_plan"
_CITATIONS: Final = "citations"
_MEDIA: Final[Mapping[str, Medium]] = {"image": write_image}


class CohereWriter(MessageWriter):
    """Writes the messages of one request."""

    def write_message(self, outgoing: Outgoing) -> None:
        self.rendered += _write_messages(outgoing.message, self.contract, self.leave_out)

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        body["messages"] = [*system_messages(system), *self.messages()]
        if tools:
            body["tools"] = [write_function_tool(tool) for tool in tools]
        body["stream"] = False


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as arguments of ``chat``, or of ``chat_stream``."""
    known = {name: value for name, value in body.items() if name in SDK_PARAMETERS}
    rest = {
        name: value
        for name, value in body.items()
        if name not in SDK_PARAMETERS and name != "stream"
    }
    if rest:
        known["request_options"] = {"additional_body_parameters": rest}
    return known


def _write_messages(
    message: Message, contract: Contract, leave_out: LeaveOut
) -> list[dict[str, Any]]:
    if message.role == "assistant":
        return [_write_reply(message, contract, leave_out)]
    out: list[dict[str, Any]] = [
        _write_result(block) for block in message.blocks if isinstance(block, ToolResponseBlock)
    ]
    content = write_content(message, _MEDIA, leave_out)
    if content is not None:
        role = "user" if message.role == "tool" else message.role
        out.append({"role": role, "content": content})
    return out


def _write_reply(message: Message, contract: Contract, leave_out: LeaveOut) -> dict[str, Any]:
    parts: list[str | dict[str, Any]] = []
    plan: list[ThinkingBlock] = []
    calls: list[dict[str, Any]] = []
    citations: list[Any] = []
    for block in message.blocks:
        about = block.provider_metadata or {}
        if isinstance(block, ThinkingBlock):
            if block.source_field == _PLAN and _PLAN in contract.returning.returns_in_own_field:
                plan += [block] if block.thought else []
            elif block.thought:
                parts.append({"type": "thinking", "thinking": block.thought})
        elif isinstance(block, TextBlock):
            citations += about.get(_CITATIONS) or ()
            if block.text:
                parts.append(block.text)
        elif isinstance(block, ToolCallBlock):
            calls.append(_write_call(block))
        elif isinstance(block, RawBlock) and is_part(block.data):
            parts.append(dict(block.data))
        elif isinstance(block, RawBlock) and _has_citations(block.data):
            citations += block.data[_CITATIONS]
        else:
            leave_out(block)
    out: dict[str, Any] = {"role": "assistant"}
    content = join_parts(parts)
    if content or not calls:
        out["content"] = content
    if plan:
        out[_PLAN] = join_thoughts(plan, message.blocks, (_PLAN,))
    if calls:
        out["tool_calls"] = calls
    if citations:
        out[_CITATIONS] = citations
    return out


def _has_citations(data: Any) -> bool:
    return isinstance(data, Mapping) and isinstance(data.get(_CITATIONS), list)


def _write_call(block: ToolCallBlock) -> dict[str, Any]:
    function = {"name": block.name, "arguments": codec.argument_text(block)}
    return {"id": block.id, "type": "function", "function": function}


def _write_result(block: ToolResponseBlock) -> dict[str, Any]:
    document = {"type": "document", "document": {"data": codec.result_text(block)}}
    return {"role": "tool", "tool_call_id": block.call_id, "content": [document]}
