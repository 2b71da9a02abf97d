"""Ollama's own chat, spoken: lines of JSON, each a response with the next piece.

From the official SDK's types: ``thinking`` and ``content`` are strings of the message, a
call comes whole with its arguments as an object, the last line is ``done`` and counts.
Models that are served without a reasoning parser think inside the content, between tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reasoning_store.conversation.blocks import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.testing.capabilities import TAGS, Capabilities
from reasoning_store.testing.script import (
    Event,
    Protocol,
    Script,
    arguments_value,
    tagged_losses,
    tagged_message_text,
    tagged_text,
    without_none,
)
from reasoning_store.wire.contract import Contract


def _events(script: Script) -> Iterator[Event]:
    for block in script.message.blocks:
        if isinstance(block, ToolCallBlock):
            yield _line(script, {"content": "", "tool_calls": [_call(block)]})
        elif isinstance(block, ThinkingBlock) and block.source_field != TAGS:
            for piece in script.cut(block.thought):
                yield _line(script, {"content": "", "thinking": piece})
        elif isinstance(block, TextBlock | ThinkingBlock):
            for piece in script.cut(tagged_text(block, script)):
                yield _line(script, {"content": piece})
    if not script.is_broken_off:
        yield {**_line(script, {"content": ""}), **_end(script)}


def _body(script: Script) -> Event:
    blocks = script.message.blocks
    thought = "".join(
        block.thought
        for block in blocks
        if isinstance(block, ThinkingBlock) and block.source_field != TAGS
    )
    message: dict[str, Any] = {"content": tagged_message_text(script)}
    if thought:
        message["thinking"] = thought
    if calls := [_call(block) for block in script.message.tool_calls]:
        message["tool_calls"] = calls
    return {**_line(script, message), **_end(script)}


def _line(script: Script, message: Event) -> Event:
    return {
        "model": script.model,
        "created_at": "2026-11-18T00:00:00Z",
        "message": {"role": "assistant", **message},
        "done": False,
    }


def _call(block: ToolCallBlock) -> Event:
    return {"id": block.id, "function": {"name": block.name, "arguments": arguments_value(block)}}


def _end(script: Script) -> Event:
    reason = script.reason(calls="stop", otherwise="stop")
    return {"done": True, "done_reason": reason, **_usage(script.usage)}


def _usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    return without_none(prompt_eval_count=usage.input, eval_count=usage.output)


def _further_losses(message: Message, whole: bool) -> Iterator[str]:
    yield from tagged_losses(message, [block.source_field for block in message.thinking])


def _capabilities(contract: Contract) -> Capabilities:
    return Capabilities(
        sources={"plain": ("thinking", TAGS)},
        objects=True,
        objects_whole=True,
        merges=frozenset({"text", "thinking"}),
        order=("thinking", "text", "tool_call"),
        more=_further_losses,
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
