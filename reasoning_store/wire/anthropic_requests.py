"""Anthropic's Messages protocol, the writing direction: messages as a request body.

Theory. A user and a model take turns (``turns``), each turn a list of content blocks. A
thought goes back as the block it came in: text and signature as they are, redacted data as
it is, between the same neighbours; a thought without a signature has no signature here, not
an empty one. Blank text is refused and says nothing, so it is no block. The protocol demands
``max_tokens``: the contract's ``answer_tokens``, and the budget of thinking on top, for the
limit holds for both. Where a host has the model in its address, the body names the version of
the protocol instead.

What is kept was decided before. The reading direction is ``anthropic``; this module must
not know settings, tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import asking, call_ids, neutral, turns
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of, without
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.pages import Page, with_extra_body
from reasoning_store.wire.reasoning_parameters import at

Part = dict[str, Any]

BUILT: Final = frozenset({"model", "system", "messages", "tools"})

SDK_PARAMETERS: Final = frozenset(
    "cache_control container diagnostics inference_geo max_tokens messages metadata model "
    "output_config service_tier speed stop_sequences stream system thinking tool_choice "
    "tools".split()
)
"""What the official SDK's call takes by name; the rest goes through its ``extra_body``."""

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})

_ANSWER_TOKENS: Final = 8_192
"""The limit at a host of which nothing is known."""

_OURS: Final = ("block_type", "vercel", "textSignature", "thoughtSignature")
"""What ingress, or a host that normalises, keeps beside a block and the protocol never sent."""


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official SDK's call."""
    return with_extra_body(body, SDK_PARAMETERS)


class _Page(turns.Alternating):
    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        named: Part = {"model": model} if model is not None else {}
        version = self.contract.version
        body: Part = named if version is None else {"anthropic_version": version}
        if prompt := _system(system, self.begun):
            body["system"] = prompt
        body["messages"] = self.messages(copies=copies)
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        unsaid, held = asking.ask(asked, self.contract, body, self.turn)
        budget = at(body, self.contract.budget_at) or 0
        body["max_tokens"] = (self.contract.answer_tokens or _ANSWER_TOKENS) + budget
        return Written(
            body=body,
            unsaid=unsaid,
            held=held,
            left_out=tuple(self.left_out),
            beside={} if version is None else named,
        )

    def closed(self, turn: turns.Turn) -> Part:
        return _message(turn)

    def said(self, outgoing: Outgoing) -> list[Part]:
        message = outgoing.message
        side = "assistant" if message.role == "assistant" else "user"
        parts = []
        for block in message.blocks:
            if isinstance(block, TextBlock) and not block.text.strip():
                continue
            if isinstance(block, RawBlock):
                part = dict(block.data) if turns.is_own(block, message, self.contract) else None
            else:
                render = _PARTS[side].get(type(block))
                part = render(block, self.contract) if render is not None else None
            if part is None:
                self.left_out[name_of(block)] = None
            else:
                parts.append(part)
        demanded = outgoing.owed and self.contract.empty_field != "none"
        if demanded and not any(part.get("type") in _THOUGHTS for part in parts):
            parts.insert(0, {"type": "thinking", "thinking": ""})
        return parts

    def answer(self, block: ToolResponseBlock) -> Part:
        part = _beside(block) | {
            "type": "tool_result",
            "tool_use_id": call_ids.accepted(block.call_id, self.contract.call_id),
        }
        if text := codec.result_text(block):
            part["content"] = text
        if block.is_error:
            part["is_error"] = True
        return part


def _message(turn: turns.Turn) -> Part:
    content = turn.content
    if turn.role != "assistant" and len(content) == 1 and content[0].keys() == {"type", "text"}:
        return {"role": turn.role, "content": content[0]["text"]}
    return {"role": turn.role, "content": content}


def _system(system: Any, begun: Iterable[str]) -> Any:
    texts = neutral.system_texts(system)
    if texts is None:
        given = [system] if isinstance(system, Mapping) else system
        return [*given, *({"type": "text", "text": text} for text in begun)]
    texts += begun
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


def _tool(tool: Mapping[str, Any]) -> Part:
    about = neutral.function(tool)
    if about is None:
        return dict(tool)
    out = without(about, ("parameters",))
    return {**out, "input_schema": about.get("parameters") or dict(neutral.NO_PARAMETERS)}


# Blocks


def _beside(block: Block) -> Part:
    return without(block.provider_metadata, _OURS) if block.provider_metadata else {}


def _text(block: TextBlock, contract: Contract) -> Part:
    return {**_beside(block), "type": "text", "text": block.text}


def _thinking(block: ThinkingBlock, contract: Contract) -> Part | None:
    beside = _beside(block) if block.opaque else {}
    if block.redacted or (block.encrypted and not block.signature):
        if not block.encrypted:
            return None
        return {**beside, "type": "redacted_thinking", "data": block.encrypted}
    part = {**beside, "type": "thinking", "thinking": block.thought}
    if block.signature:
        part["signature"] = block.signature
    return part


def _call(block: ToolCallBlock, contract: Contract) -> Part:
    return {
        **_beside(block),
        "type": "tool_use",
        "id": call_ids.accepted(block.id, contract.call_id),
        "name": block.name,
        "input": neutral.arguments(block),
    }


def _media(block: MediaBlock, contract: Contract) -> Part | None:
    if block.data is None and block.url is None:
        return None  # the application's own name for it means nothing to others
    render = _MEDIA.get(block.kind)
    return render(block) if render is not None else None


def _image(block: MediaBlock) -> Part:
    return {**_beside(block), "type": "image", "source": _source(block)}


def _document(block: MediaBlock) -> Part | None:
    about = {"title": block.name} if block.name else {}
    source = _source(block)
    if block.mime_type.startswith("text/") and block.data is not None:
        text = block.data.decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif block.mime_type != "application/pdf":
        return None
    return {**_beside(block), "type": "document", **about, "source": source}


def _source(block: MediaBlock) -> Part:
    if block.data is None:
        return {"type": "url", "url": block.url}
    return {
        "type": "base64",
        "media_type": block.mime_type,
        "data": neutral.base64_of(block),
    }


_MEDIA: Final[Mapping[str, Callable[[MediaBlock], Part | None]]] = {
    "image": _image,
    "file": _document,
}
_PARTS: Final[Mapping[str, Mapping[type, Callable[[Any, Contract], Part | None]]]] = {
    "user": {TextBlock: _text, MediaBlock: _media},
    "assistant": {TextBlock: _text, ThinkingBlock: _thinking, ToolCallBlock: _call},
}
"""Who may say what."""
