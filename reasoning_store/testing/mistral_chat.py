"""Mistral's chat, spoken: content is a list of chunks while it thinks, then a string.

From the official SDK's types: a ``thinking`` chunk holds a list of texts, and a signature
that signs it; calls are fragments with an index, whose absent id the SDK writes as the word
``null``; usage comes in the last chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.testing.capabilities import Capabilities
from reasoning_store.testing.script import Event, Protocol, Script, arguments_text, without_none
from reasoning_store.wire.contract import Contract

_SOURCE = "content.thinking"


def _events(script: Script) -> Iterator[Event]:
    yield _chunk(script, {"role": "assistant", "content": ""})
    calls = 0
    for block in _sendable_blocks(script):
        if isinstance(block, ThinkingBlock):
            for piece in script.cut(block.thought):
                yield _chunk(script, {"content": [_thinking([piece])]})
            if block.signature:
                signed = {**_thinking([]), "signature": block.signature}
                yield _chunk(script, {"content": [signed]})
        elif isinstance(block, TextBlock):
            for piece in script.cut(block.text):
                yield _chunk(script, {"content": piece})
        elif isinstance(block, ToolCallBlock):
            for fragment in _fragments(block, calls, script):
                yield _chunk(script, {"tool_calls": [fragment]})
            calls += 1
    if not script.is_broken_off:
        yield {**_chunk(script, {"content": ""}, _reason(script)), **_usage(script.usage)}


def _body(script: Script) -> Event:
    sendable = _sendable_blocks(script)
    items = [_item(block) for block in sendable if not isinstance(block, ToolCallBlock)]
    calls = [_call(block, n) for n, block in enumerate(script.message.tool_calls)]
    plain = [item["text"] for item in items if item["type"] == "text"]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": items if len(plain) < len(items) else "".join(plain),
    }
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _reason(script)}
    return {
        **_envelope(script, "chat.completion"),
        "choices": [choice],
        **_usage(script.usage),
    }


def _envelope(script: Script, kind: str) -> Event:
    return {
        "id": script.response_id_or("cmpl-1"),
        "object": kind,
        "created": 1,
        "model": script.model,
    }


def _chunk(script: Script, delta: Event, reason: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**_envelope(script, "chat.completion.chunk"), "choices": [choice]}


def _sendable_blocks(script: Script) -> list[Block]:
    """The blocks that the protocol has a place for."""
    return [
        block
        for block in script.message.blocks
        if isinstance(block, ToolCallBlock)
        or (isinstance(block, TextBlock) and block.text)
        or (isinstance(block, ThinkingBlock) and (block.thought or block.signature))
    ]


def _thinking(texts: list[str]) -> Event:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text} for text in texts]}


def _item(block: Block) -> Event:
    if isinstance(block, ThinkingBlock):
        texts = [block.thought] if block.thought else []
        return {**_thinking(texts), **without_none(signature=block.signature or None)}
    return {"type": "text", "text": block.text if isinstance(block, TextBlock) else ""}


def _call(block: ToolCallBlock, index: int) -> Event:
    function = {"name": block.name, "arguments": arguments_text(block)}
    return {"id": block.id, "type": "function", "function": function, "index": index}


def _fragments(block: ToolCallBlock, index: int, script: Script) -> Iterator[Event]:
    first, *others = script.cut(arguments_text(block)) or [""]
    yield {**_call(block, index), "function": {"name": block.name, "arguments": first}}
    for piece in others:
        yield {"id": "null", "function": {"name": "", "arguments": piece}, "index": index}


def _reason(script: Script) -> str:
    return script.reason(calls="tool_calls", otherwise="stop")


def _usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    total = None if usage.input is None or usage.output is None else usage.input + usage.output
    counts = without_none(
        prompt_tokens=usage.input, completion_tokens=usage.output, total_tokens=total
    )
    return {"usage": counts}


def _capabilities(contract: Contract) -> Capabilities:
    return Capabilities(
        forms=frozenset({"plain", "signed"}),
        sources={"plain": (_SOURCE,), "signed": (_SOURCE,)},
        merges=frozenset({"text", "thinking"}),
        seals_end=True,
        more=_calls_last,
    )


def _calls_last(message: Message, whole: bool) -> Iterator[str]:
    """A whole message has its calls after all of its content."""
    calls = [isinstance(block, ToolCallBlock) for block in message.blocks]
    if whole and calls != sorted(calls):
        yield "the order of its blocks"


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
