"""Cohere's v2 chat, spoken: content items and tool calls, each begun, grown and ended.

From the official SDK's types: content items are thinking or text and numbered; calls have their own
numbers; ``tool_plan`` comes before the calls, without a beginning or an end.
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

_ITEM, _PLAN = "content.thinking", "tool_plan"


def _events(script: Script) -> Iterator[Event]:
    start = {"message": {"role": "assistant", "content": []}}
    yield {"type": "message-start", "id": script.response_id_or("1"), "delta": start}
    items = calls = 0
    for block in _sendable_blocks(script.message):
        if isinstance(block, ToolCallBlock):
            yield from _call(block, calls, script)
            calls += 1
        elif _is_plan(block):
            for piece in script.cut(_text(block)):
                yield _event("tool-plan-delta", None, {"tool_plan": piece})
        else:
            yield from _item(block, items, script)
            items += 1
    if not script.is_broken_off:
        delta = {"finish_reason": _reason(script), **_usage(script.usage)}
        yield {"type": "message-end", "delta": delta}


def _item(block: Block, index: int, script: Script) -> Iterator[Event]:
    kind = block.type
    yield _event("content-start", index, {"content": {"type": kind, kind: ""}})
    for piece in script.cut(_text(block)):
        yield _event("content-delta", index, {"content": {kind: piece}})
    if not script.breaks_in(block):
        yield {"type": "content-end", "index": index}


def _call(block: ToolCallBlock, index: int, script: Script) -> Iterator[Event]:
    call = {**_whole_call(block), "function": {"name": block.name, "arguments": ""}}
    yield _event("tool-call-start", index, {"tool_calls": call})
    for piece in script.cut(arguments_text(block)):
        fragment = {"function": {"arguments": piece}}
        yield _event("tool-call-delta", index, {"tool_calls": fragment})
    if not script.breaks_in(block):
        yield {"type": "tool-call-end", "index": index}


def _event(kind: str, index: int | None, message: Event) -> Event:
    return {"type": kind, **without_none(index=index), "delta": {"message": message}}


def _body(script: Script) -> Event:
    sendable = _sendable_blocks(script.message)
    plans = [_text(block) for block in sendable if _is_plan(block)]
    calls = [_whole_call(block) for block in sendable if isinstance(block, ToolCallBlock)]
    content = [
        {"type": block.type, block.type: _text(block)}
        for block in sendable
        if not (isinstance(block, ToolCallBlock) or _is_plan(block))
    ]
    message: dict[str, Any] = {"role": "assistant"}
    if plans:
        message["tool_plan"] = "".join(plans)
    if content:
        message["content"] = content
    if calls:
        message["tool_calls"] = calls
    return {
        "id": script.response_id_or("1"),
        "finish_reason": _reason(script),
        "message": message,
        **_usage(script.usage),
    }


def _whole_call(block: ToolCallBlock) -> Event:
    function = {"name": block.name, "arguments": arguments_text(block)}
    return {"id": block.id, "type": "function", "function": function}


def _reason(script: Script) -> str:
    return script.reason(calls="TOOL_CALL", otherwise="COMPLETE")


def _sendable_blocks(message: Message) -> list[Block]:
    """The blocks that the protocol has a place for."""
    return [block for block in message.blocks if isinstance(block, ToolCallBlock) or _text(block)]


def _text(block: Block) -> str:
    if isinstance(block, ThinkingBlock):
        return block.thought
    return block.text if isinstance(block, TextBlock) else ""


def _is_plan(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and block.source_field == _PLAN


def _usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    tokens = without_none(input_tokens=usage.input, output_tokens=usage.output)
    return {"usage": {"tokens": tokens, **without_none(cached_tokens=usage.cached)}}


def _order(message: Message, whole: bool) -> Iterator[str]:
    """A whole message has one plan, then its content, then its calls."""
    ranks = [0 if _is_plan(b) else 2 if isinstance(b, ToolCallBlock) else 1 for b in message.blocks]
    if whole and ranks != sorted(ranks):
        yield "the order of its blocks"
    if sum(map(_is_plan, message.blocks)) > 1:
        yield "where one plan ends and the next begins"


def _capabilities(contract: Contract) -> Capabilities:
    return Capabilities(
        sources={"plain": (_ITEM, _PLAN)},
        usage=frozenset({"input", "output", "cached"}),
        more=_order,
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
