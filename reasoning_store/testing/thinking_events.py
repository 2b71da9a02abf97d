"""Streams that a host has normalised already, spoken in either of two vocabularies.

The hosts' own: ``thinking_start``, ``thinking_delta``, ``thinking_end`` and the same for text
and calls, numbered by ``contentIndex``; an end repeats the whole and has, in the snapshot
that goes with it, what seals the block. The AI SDK's, for its own provider id:
``reasoning-start`` and its kin, named by ``id``, sealed by the metadata of an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

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

_UI: Final = "vercel-ai-sdk"
_UI_SEALS: Final = {"signed": "signature", "redacted": "redactedData"}


def _events(script: Script) -> Iterator[Event]:
    return _ui_events(script) if script.contract.provider == _UI else _host_events(script)


def _body(script: Script) -> Event:
    if script.contract.provider == _UI:
        parts: list[Event] = [{"type": "step-start"}]
        parts += [_ui_part(block) for block in _sendable_blocks(script)]
        return {"id": script.response_id_or("m1"), "role": "assistant", "parts": parts}
    return _host_message(script, [_host_entry(block) for block in _sendable_blocks(script)])


def _sendable_blocks(script: Script) -> list[Block]:
    """The blocks that the vocabularies have a place for."""
    return [
        block
        for block in script.message.blocks
        if isinstance(block, ToolCallBlock)
        or (isinstance(block, TextBlock) and block.text)
        or (isinstance(block, ThinkingBlock) and (block.thought or form(block) in _UI_SEALS))
    ]


# The hosts' own vocabulary


def _host_events(script: Script) -> Iterator[Event]:
    entries: list[Event] = []
    yield {"type": "start", "partial": _host_message(script, [])}
    for index, block in enumerate(_sendable_blocks(script)):
        kind = {"tool_call": "toolcall"}.get(block.type, block.type)
        about = {"contentIndex": index}
        entry = _host_entry(block)
        begun = [*entries, _without_content(entry)]
        yield {"type": f"{kind}_start", **about, "partial": _host_message(script, begun)}
        # A redacted block has nothing to say; its end has the host's placeholder.
        for piece in script.cut("" if _form(block) == "redacted" else _whole_block(block)):
            yield {"type": f"{kind}_delta", **about, "delta": piece}
        entries.append(entry)
        if script.breaks_in(block):
            return
        ended = ("toolCall", entry) if kind == "toolcall" else ("content", _whole_block(block))
        partial = _host_message(script, [*entries])
        yield {"type": f"{kind}_end", **about, ended[0]: ended[1], "partial": partial}
    if not script.is_broken_off:
        message = _host_message(script, entries)
        yield {"type": "done", "reason": message["stopReason"], "message": message}


def _host_message(script: Script, content: list[Event]) -> Event:
    return {
        "role": "assistant",
        "content": content,
        "model": script.model,
        **without_none(responseId=script.response_id),
        "stopReason": script.reason(calls="toolUse", otherwise="stop"),
        **_host_usage(script.usage),
    }


def _host_entry(block: Block) -> Event:
    if isinstance(block, ThinkingBlock):
        if form(block) == "redacted":
            seal = {"thinkingSignature": block.encrypted, "redacted": True}
            return {"type": "thinking", "thinking": "[redacted]", **seal}
        seal = without_none(thinkingSignature=block.signature or None)
        return {"type": "thinking", "thinking": block.thought, **seal}
    if isinstance(block, ToolCallBlock):
        value = arguments_value(block)
        return {"type": "toolCall", "id": block.id, "name": block.name, "arguments": value}
    return {"type": "text", "text": _whole_block(block)}


def _without_content(entry: Event) -> Event:
    empty: dict[str, Any] = {"thinking": "", "text": "", "arguments": {}}
    return {
        name: empty.get(name, value) for name, value in entry.items() if name != "thinkingSignature"
    }


def _whole_block(block: Block) -> str:
    if isinstance(block, ThinkingBlock):
        return "[redacted]" if form(block) == "redacted" else block.thought
    if isinstance(block, ToolCallBlock):
        return arguments_text(block)
    return block.text if isinstance(block, TextBlock) else ""


def _host_usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    counts = without_none(
        input=outside_cache(usage),
        output=usage.output,
        reasoning=usage.reasoning,
        cacheRead=usage.cached,
        cacheWrite=usage.cache_write,
    )
    return {"usage": counts}


# The AI SDK's vocabulary


def _ui_events(script: Script) -> Iterator[Event]:
    yield {"type": "start", "messageId": script.response_id_or("m1")}
    yield {"type": "start-step"}
    for number, block in enumerate(_sendable_blocks(script)):
        if isinstance(block, ToolCallBlock):
            yield from _ui_call(block, script)
            continue
        kind = "reasoning" if isinstance(block, ThinkingBlock) else "text"
        named = {"id": f"{kind[0]}{number}"}
        yield {"type": f"{kind}-start", **named}
        for piece in script.cut("" if _form(block) == "redacted" else _whole_block(block)):
            yield {"type": f"{kind}-delta", **named, "delta": piece}
        if not script.breaks_in(block):
            yield {"type": f"{kind}-end", **named, **_ui_seal(block)}
    if not script.is_broken_off:
        yield {"type": "finish-step"}
        yield {"type": "finish", **without_none(finishReason=script.message.finish_reason)}


def _ui_call(block: ToolCallBlock, script: Script) -> Iterator[Event]:
    named = {"toolCallId": block.id}
    yield {"type": "tool-input-start", **named, "toolName": block.name}
    for piece in script.cut(arguments_text(block)):
        yield {"type": "tool-input-delta", **named, "inputTextDelta": piece}
    if not script.breaks_in(block):
        value = arguments_value(block)
        whole = {"toolName": block.name, "input": value}
        yield {"type": "tool-input-available", **named, **whole}


def _ui_part(block: Block) -> Event:
    if isinstance(block, ToolCallBlock):
        return {
            "type": "dynamic-tool",
            "toolName": block.name,
            "toolCallId": block.id,
            "state": "input-available",
            "input": arguments_value(block),
        }
    text = "" if _form(block) == "redacted" else _whole_block(block)
    kind = "reasoning" if isinstance(block, ThinkingBlock) else "text"
    return {"type": kind, "text": text, "state": "done", **_ui_seal(block)}


def _form(block: Block) -> str:
    return form(block) if isinstance(block, ThinkingBlock) else "plain"


def _ui_seal(block: Block) -> Event:
    name = _UI_SEALS.get(_form(block))
    if name is None or not isinstance(block, ThinkingBlock):
        return {}
    seal = block.encrypted if block.redacted else block.signature
    return {"providerMetadata": {"anthropic": {name: seal}}}


def _ui_losses(message: Message, whole: bool) -> Iterator[str]:
    """A whole UI message has no reason for its end."""
    if whole and message.finish_reason is not None:
        yield "the finish reason"


def _nothing_more(message: Message, whole: bool) -> Iterator[str]:
    return iter(())


def _capabilities(contract: Contract) -> Capabilities:
    ui = contract.provider == _UI
    source = ("reasoning",) if ui else ("thinking",)
    forms = frozenset({"plain", "signed", "redacted"})
    return Capabilities(
        forms=forms,
        sources=dict.fromkeys(forms, source),
        usage=frozenset()
        if ui
        else frozenset({"input", "output", "reasoning", "cached", "cache_write"}),
        outside_cache=not ui,
        objects=True,
        objects_whole=True,
        more=_ui_losses if ui else _nothing_more,
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
