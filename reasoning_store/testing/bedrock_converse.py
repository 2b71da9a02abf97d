"""Amazon Bedrock's Converse, spoken: events of one member each, numbered blocks.

From botocore's service model: only calls are announced, thinking and text begin with their
first delta; redacted content is bytes; usage comes after the end, in ``metadata``.
"""

from __future__ import annotations

from collections.abc import Iterator

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.testing.capabilities import Capabilities, form
from reasoning_store.testing.script import (
    Event,
    Protocol,
    Script,
    arguments_text,
    arguments_value,
    outside_cache,
    without_none,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.media import from_base64, in_base64

_METRICS = {"latencyMs": 1}


def _events(script: Script) -> Iterator[Event]:
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(_sendable_blocks(script.message)):
        place = {"contentBlockIndex": index}
        if isinstance(block, ToolCallBlock):
            call = {"toolUseId": block.id, "name": block.name}
            yield {"contentBlockStart": {**place, "start": {"toolUse": call}}}
        for delta in _deltas(block, script):
            yield {"contentBlockDelta": {**place, "delta": delta}}
        if not script.breaks_in(block):
            yield {"contentBlockStop": place}
    if script.is_broken_off:
        return
    yield {"messageStop": {"stopReason": _reason(script)}}
    yield {"metadata": {**_usage(script.usage), "metrics": _METRICS}}


def _body(script: Script) -> Event:
    content = [_whole_block(block) for block in _sendable_blocks(script.message)]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _reason(script),
        **_usage(script.usage),
        "metrics": _METRICS,
    }


def _reason(script: Script) -> str:
    return script.reason(calls="tool_use", otherwise="end_turn")


def _sendable_blocks(message: Message) -> list[Block]:
    """The blocks that the protocol has a place for."""
    return [
        block
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
        or (isinstance(block, TextBlock) and block.text)
        or (isinstance(block, ThinkingBlock) and (block.thought or block.signature))
        or _redacted(block)
    ]


def _redacted(block: Block) -> bytes:
    """Return the bytes of a redacted block, none where it is not one or not of bytes."""
    if not (isinstance(block, ThinkingBlock) and form(block) == "redacted"):
        return b""
    data = from_base64(block.encrypted) or b""
    return data if in_base64(data) == block.encrypted else b""


def _whole_block(block: Block) -> Event:
    if isinstance(block, TextBlock):
        return {"text": block.text}
    if isinstance(block, ToolCallBlock):
        value = arguments_value(block)
        return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": value}}
    if data := _redacted(block):
        return {"reasoningContent": {"redactedContent": data}}
    thought = block.thought if isinstance(block, ThinkingBlock) else ""
    signature = block.signature if isinstance(block, ThinkingBlock) else None
    text = {"text": thought, **without_none(signature=signature or None)}
    return {"reasoningContent": {"reasoningText": text}}


def _deltas(block: Block, script: Script) -> Iterator[Event]:
    if isinstance(block, TextBlock):
        for piece in script.cut(block.text):
            yield {"text": piece}
    elif isinstance(block, ToolCallBlock):
        for piece in script.cut(arguments_text(block)):
            yield {"toolUse": {"input": piece}}
    elif data := _redacted(block):
        for part in script.cut(data):
            yield {"reasoningContent": {"redactedContent": part}}
    elif isinstance(block, ThinkingBlock):
        for piece in script.cut(block.thought):
            yield {"reasoningContent": {"text": piece}}
        if block.signature:
            yield {"reasoningContent": {"signature": block.signature}}


def _usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    total = None if usage.input is None or usage.output is None else usage.input + usage.output
    counts = without_none(
        inputTokens=outside_cache(usage),
        outputTokens=usage.output,
        totalTokens=total,
        cacheReadInputTokens=usage.cached,
        cacheWriteInputTokens=usage.cache_write,
    )
    return {"usage": counts}


def _not_bytes(message: Message, whole: bool) -> Iterator[str]:
    for block in message.blocks:
        if isinstance(block, ThinkingBlock) and form(block) == "redacted" and not _redacted(block):
            yield "a ciphertext that is not base64"


def _capabilities(contract: Contract) -> Capabilities:
    text, redacted = "reasoningContent.reasoningText", "reasoningContent.redactedContent"
    return Capabilities(
        forms=frozenset({"plain", "signed", "redacted"}),
        sources={"plain": (text,), "signed": (text,), "redacted": (redacted,)},
        thinking_metadata=frozenset({"block_type", "encoding"}),
        usage=frozenset({"input", "output", "cached", "cache_write"}),
        outside_cache=True,
        objects_whole=True,
        more=_not_bytes,
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
