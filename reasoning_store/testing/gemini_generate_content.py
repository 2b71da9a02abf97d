"""Gemini's generateContent, spoken: parts, some of them thoughts, any of them signed.

From the official SDK's types and the documentation: a signature belongs to its own part; in
a stream it may come on a part without text, after the text that it signs; calls arrive whole;
thought tokens are counted separately from the candidates' tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.testing.capabilities import Capabilities, form, is_media
from reasoning_store.testing.script import (
    Event,
    Protocol,
    Script,
    arguments_value,
    stored_metadata,
    without_none,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.media import in_base64

_SIGNATURE = "thoughtSignature"
_OTHER = ("executableCode", "codeExecutionResult")
"""Parts of which no block of ours is made."""


def _events(script: Script) -> Iterator[Event]:
    for block in _sendable_blocks(script.message):
        for part in _parts(block, script):
            yield _event(script, [part])
    if not script.is_broken_off:
        last = _event(script, [{"text": ""}], finishReason=_reason(script))
        yield {**last, **_usage(script)}


def _body(script: Script) -> Event:
    parts = [_part(block) for block in _sendable_blocks(script.message)]
    return {**_event(script, parts, finishReason=_reason(script)), **_usage(script)}


def _event(script: Script, parts: list[Event], **about: str) -> Event:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **about}
    return {
        "candidates": [candidate],
        "modelVersion": script.model,
        "responseId": script.response_id_or("r1"),
    }


def _reason(script: Script) -> str:
    return script.reason(calls="STOP", otherwise="STOP")


def _sendable_blocks(message: Message) -> list[Block]:
    """The blocks that the protocol has a place for."""
    return [
        block
        for block in message.blocks
        if (isinstance(block, TextBlock) and (block.text or stored_metadata(block, _SIGNATURE)))
        or (isinstance(block, ThinkingBlock) and (block.thought or form(block) == "signed"))
        or isinstance(block, ToolCallBlock)
        or _has_place(block)
    ]


def _has_place(block: Block) -> bool:
    if isinstance(block, RawBlock):
        data = block.data
        return isinstance(data, dict) and len(data) == 1 and next(iter(data)) in _OTHER
    return is_media(block)


def _part(block: Block) -> Event:
    if isinstance(block, ThinkingBlock):
        return {
            "text": block.thought,
            "thought": True,
            **without_none(thoughtSignature=block.signature or None),
        }
    if isinstance(block, TextBlock):
        return {"text": block.text, **stored_metadata(block, _SIGNATURE)}
    if isinstance(block, ToolCallBlock):
        call = {"id": block.id, "name": block.name, "args": arguments_value(block)}
        return {"functionCall": call, **stored_metadata(block, _SIGNATURE)}
    if isinstance(block, MediaBlock):
        return {**_media(block), **stored_metadata(block, _SIGNATURE)}
    return dict(block.data) if isinstance(block, RawBlock) else {}


def _media(block: MediaBlock) -> Event:
    about = {"mimeType": block.mime_type, **without_none(displayName=block.name or None)}
    if block.data is not None:
        return {"inlineData": {**about, "data": in_base64(block.data)}}
    return {"fileData": {**about, "fileUri": block.url}}


def _parts(block: Block, script: Script) -> Iterator[Event]:
    """One part, or the pieces of its text followed by the signature of the whole."""
    whole = _part(block)
    pieces = script.cut(str(whole.get("text", "")))
    if len(pieces) < 2:
        yield whole
        return
    for piece in pieces:
        yield {**_without_signature(whole), "text": piece}
    if _SIGNATURE in whole:
        yield {**whole, "text": ""}


def _without_signature(part: Event) -> Event:
    return {name: value for name, value in part.items() if name != _SIGNATURE}


def _usage(script: Script) -> Event:
    usage = script.usage
    if usage is None:
        return {}
    spoken = usage.output
    if spoken is not None and script.contract.reading.output_excludes_reasoning:
        spoken -= usage.reasoning or 0
    counts: dict[str, Any] = without_none(
        promptTokenCount=usage.input,
        cachedContentTokenCount=usage.cached,
        candidatesTokenCount=spoken,
        thoughtsTokenCount=usage.reasoning,
    )
    if usage.input is not None and usage.output is not None:
        counts["totalTokenCount"] = usage.input + usage.output
    return {"usageMetadata": counts}


def _impossible(message: Message, whole: bool) -> Iterator[str]:
    usage = message.usage
    if usage is not None and (usage.reasoning or 0) > (usage.output or 0):
        yield "more tokens of reasoning than of output"


def _capabilities(contract: Contract) -> Capabilities:
    signed = frozenset({_SIGNATURE})
    return Capabilities(
        forms=frozenset({"plain", "signed"}),
        sources={"plain": ("thought",), "signed": ("thought",)},
        text_metadata=signed,
        call_metadata=signed,
        usage=frozenset({"input", "output", "reasoning", "cached"}),
        objects=True,
        objects_whole=True,
        merges=frozenset({"text", "thinking"}),
        seals_end=True,
        other=_has_place,
        more=_impossible,
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
