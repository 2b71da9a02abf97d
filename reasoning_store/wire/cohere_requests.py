"""Cohere's v2 chat, the writing direction: messages as a request body.

Theory. A model's message is a list of thoughts and texts in their order, beside it what it
said it would do (``tool_plan``), its calls, and the citations of its texts. A tool's answer
is a document. ``stream`` stands in every body, as the official client has it.

The reading direction is ``cohere``; this module must not know settings, tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store import codec
from reasoning_store.blocks import (
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import reasoning_parameters
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_replies import is_part, together
from reasoning_store.wire.openai_chat_requests import (
    Medium,
    function_tool,
    image,
    said,
    system_messages,
)
from reasoning_store.wire.pages import Page

BUILT: Final = frozenset({"model", "messages", "tools"})

SDK_PARAMETERS: Final = frozenset(
    "citation_options documents frequency_penalty k logprobs max_tokens messages model p "
    "presence_penalty priority response_format safety_mode seed stop_sequences strict_tools "
    "temperature thinking tool_choice tools".split()
)
"""What the official SDK's call takes by name; the rest goes beside it, ``stream`` by the call."""

_PLAN: Final = "tool_plan"
_CITATIONS: Final = "citations"
_MEDIA: Final[Mapping[str, Medium]] = {"image": image}


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


class _Page(Page):
    def write(self, messages: Iterable[Outgoing]) -> None:
        for outgoing in messages:
            self.rendered += _messages(outgoing.message, self.contract, self.left_out)

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: dict[str, Any] = {}
        if model is not None:
            body["model"] = model
        body["messages"] = [*system_messages(system), *self.messages(copies=copies)]
        if tools:
            body["tools"] = [function_tool(tool) for tool in tools]
        body["stream"] = False
        unsaid = reasoning_parameters.say(asked, self.contract, body)
        return Written(body=body, unsaid=unsaid, left_out=tuple(self.left_out))


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


def _messages(
    message: Message, contract: Contract, left_out: dict[str, None]
) -> list[dict[str, Any]]:
    if message.role == "assistant":
        return [_reply(message, contract, left_out)]
    out: list[dict[str, Any]] = [
        _answer(block) for block in message.blocks if isinstance(block, ToolResponseBlock)
    ]
    content = said(message, _MEDIA, left_out)
    if content is not None:
        role = "user" if message.role == "tool" else message.role
        out.append({"role": role, "content": content})
    return out


def _reply(message: Message, contract: Contract, left_out: dict[str, None]) -> dict[str, Any]:
    parts: list[str | dict[str, Any]] = []
    plan: list[str] = []
    calls: list[dict[str, Any]] = []
    citations: list[Any] = []
    for block in message.blocks:
        about = block.provider_metadata or {}
        if isinstance(block, ThinkingBlock):
            if block.source_field == _PLAN and _PLAN in contract.echoes:
                plan.append(block.thought)
            elif block.thought:
                parts.append({"type": "thinking", "thinking": block.thought})
        elif isinstance(block, TextBlock):
            citations += about.get(_CITATIONS) or ()
            if block.text:
                parts.append(block.text)
        elif isinstance(block, ToolCallBlock):
            calls.append(_call(block))
        elif isinstance(block, RawBlock) and is_part(block.data):
            parts.append(dict(block.data))
        elif isinstance(block, RawBlock) and _is_citing(block.data):
            citations += block.data[_CITATIONS]
        else:
            left_out[name_of(block)] = None
    out: dict[str, Any] = {"role": "assistant"}
    told = together(parts)
    if told or not calls:
        out["content"] = told
    if any(plan):
        out[_PLAN] = "".join(plan)
    if calls:
        out["tool_calls"] = calls
    if citations:
        out[_CITATIONS] = citations
    return out


def _is_citing(data: Any) -> bool:
    return isinstance(data, Mapping) and isinstance(data.get(_CITATIONS), list)


def _call(block: ToolCallBlock) -> dict[str, Any]:
    function = {"name": block.name, "arguments": codec.argument_text(block)}
    return {"id": block.id, "type": "function", "function": function}


def _answer(block: ToolResponseBlock) -> dict[str, Any]:
    document = {"type": "document", "document": {"data": codec.result_text(block)}}
    return {"role": "tool", "tool_call_id": block.call_id, "content": [document]}
