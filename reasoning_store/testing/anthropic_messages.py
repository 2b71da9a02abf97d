"""Anthropic's Messages, spoken: a block opens, grows by deltas, and stops.

From the official SDK's types: a thought's signature comes in one delta just before its
block stops; redacted thinking comes whole in the event that opens it; usage is begun in the
first event and completed in the last but one.
"""

from __future__ import annotations

from collections.abc import Iterator

from reasoning_store.conversation.blocks import (
    Block,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.testing.capabilities import Capabilities, form, is_raw
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

_BLOCKS = ("thinking", "redacted_thinking", "text", "tool_use")


def _events(script: Script) -> Iterator[Event]:
    message = {**_envelope(script), "content": [], "stop_reason": None, "stop_sequence": None}
    usage = _usage(script.usage)
    if usage:
        at_first = {name: usage[name] for name in usage if name != "output_tokens_details"}
        if "output_tokens" in at_first:
            at_first["output_tokens"] = min(1, at_first["output_tokens"])
        message["usage"] = at_first
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    for index, block in enumerate(_sendable_blocks(script)):
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": _opening(block),
        }
        for delta in _deltas(block, script):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if not script.breaks_in(block):
            yield {"type": "content_block_stop", "index": index}
    if script.is_broken_off:
        return
    delta = {"stop_reason": _reason(script), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, **({"usage": usage} if usage else {})}
    yield {"type": "message_stop"}


def _body(script: Script) -> Event:
    usage = _usage(script.usage)
    return {
        **_envelope(script),
        "content": [_whole_block(block) for block in _sendable_blocks(script)],
        "stop_reason": _reason(script),
        "stop_sequence": None,
        **({"usage": usage} if usage else {}),
    }


def _envelope(script: Script) -> Event:
    return {
        "id": script.response_id_or("msg_1"),
        "type": "message",
        "role": "assistant",
        "model": script.model,
    }


def _reason(script: Script) -> str:
    return script.reason(calls="tool_use", otherwise="end_turn")


def _sendable_blocks(script: Script) -> list[Block]:
    """The blocks that the protocol has a place for."""
    capabilities = _capabilities(script.contract)
    return [
        block
        for block in script.message.blocks
        if isinstance(block, TextBlock | ToolCallBlock)
        or (
            isinstance(block, ThinkingBlock)
            and (block.thought or form(block) in capabilities.forms)
        )
        or capabilities.other(block)
    ]


def _whole_block(block: Block) -> Event:
    if isinstance(block, ThinkingBlock):
        if form(block) == "redacted":
            return {"type": "redacted_thinking", "data": block.encrypted}
        signature = block.signature or ""
        return {"type": "thinking", "thinking": block.thought, "signature": signature}
    if isinstance(block, ToolCallBlock):
        value = arguments_value(block)
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": value}
    if isinstance(block, TextBlock):
        citations = (block.provider_metadata or {}).get("citations")
        return {"type": "text", "text": block.text, **without_none(citations=citations)}
    return dict(block.data) if isinstance(block, RawBlock) else {}


def _opening(block: Block) -> Event:
    empty: dict[str, object] = {"thinking": "", "signature": "", "text": "", "input": {}}
    if isinstance(block, TextBlock | ThinkingBlock | ToolCallBlock):
        whole = {name: empty.get(name, value) for name, value in _whole_block(block).items()}
        return {**whole, "citations": []} if "citations" in whole else whole
    return _whole_block(block)


def _deltas(block: Block, script: Script) -> Iterator[Event]:
    if isinstance(block, TextBlock):
        for piece in script.cut(block.text):
            yield {"type": "text_delta", "text": piece}
        for citation in (block.provider_metadata or {}).get("citations") or ():
            yield {"type": "citations_delta", "citation": citation}
    elif isinstance(block, ThinkingBlock) and form(block) != "redacted":
        for piece in script.cut(block.thought):
            yield {"type": "thinking_delta", "thinking": piece}
        if block.signature:
            yield {"type": "signature_delta", "signature": block.signature}
    elif isinstance(block, ToolCallBlock):
        for piece in ["", *script.cut(arguments_text(block))]:
            yield {"type": "input_json_delta", "partial_json": piece}


def _usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    thinking = without_none(thinking_tokens=usage.reasoning)
    return without_none(
        input_tokens=outside_cache(usage),
        cache_read_input_tokens=usage.cached,
        cache_creation_input_tokens=usage.cache_write,
        output_tokens=usage.output,
        output_tokens_details=thinking or None,
    )


def _capabilities(contract: Contract) -> Capabilities:
    return Capabilities(
        forms=frozenset({"plain", "signed", "redacted"}),
        sources={
            "plain": ("thinking",),
            "signed": ("thinking",),
            "redacted": ("redacted_thinking",),
        },
        text_metadata=frozenset({"citations"}),
        thinking_metadata=frozenset({"block_type"}),
        usage=frozenset({"input", "output", "reasoning", "cached", "cache_write"}),
        outside_cache=True,
        objects_whole=True,
        other=lambda block: is_raw(block, *_BLOCKS),
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
