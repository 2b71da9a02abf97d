"""OpenAI's Responses, spoken: items are added, grow, are done, and all repeated at the end.

From the official SDK's types: reasoning is an item of summaries or of content, its
ciphertext may be incomplete when it is added and is whole when it is done; a message is an
item whose parts are texts; every event is numbered. The last event has the whole response.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    Message,
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
    stored_metadata,
    without_none,
)
from reasoning_store.wire.contract import Contract

_SUMMARY: Final = "reasoning.summary"
_CONTENT: Final = "reasoning.content"
_ITEMS: Final = ("reasoning", "message", "function_call", "custom_tool_call")
_INCOMPLETE: Final = ("max_output_tokens", "content_filter")
"""Why a response may end that is not complete; other reasons have no place."""

_PARTS: Final = {
    "summary": ("summary_text", "response.reasoning_summary_text", "summary_index"),
    "content": ("reasoning_text", "response.reasoning_text", "content_index"),
    "text": ("output_text", "response.output_text", "content_index"),
}
"""The type of a part, the name of its events, and what numbers it."""


def _events(script: Script) -> Iterator[Event]:
    numbers = count()
    for event in _unnumbered(script):
        yield {"type": event["type"], "sequence_number": next(numbers), **event}


def _unnumbered(script: Script) -> Iterator[Event]:
    begun = {**_envelope(script, "in_progress"), "output": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, (block, item) in enumerate(_items(script)):
        about = {"output_index": place}
        yield {"type": "response.output_item.added", **about, "item": _without_content(item)}
        yield from _grown(block, item, {"item_id": item.get("id"), **about}, script)
        if not script.breaks_in(block):
            yield {"type": "response.output_item.done", **about, "item": item}
    if not script.is_broken_off:
        body = _body(script)
        yield {"type": f"response.{body['status']}", "response": body}


def _grown(block: Block, item: Event, about: Event, script: Script) -> Iterator[Event]:
    if isinstance(block, ToolCallBlock):
        name, whole = "response.function_call_arguments", arguments_text(block)
        for piece in script.cut(whole):
            yield {"type": f"{name}.delta", **about, "delta": piece}
        if not script.breaks_in(block):
            yield {"type": f"{name}.done", **about, "name": block.name, "arguments": whole}
    elif isinstance(block, TextBlock):
        yield from _part("text", 0, item["content"][0], about, script, last=block)
    elif isinstance(block, ThinkingBlock):
        for kind in ("summary", "content"):
            for number, part in enumerate(item.get(kind, ())):
                yield from _part(kind, number, part, about, script, last=block)


def _part(
    kind: str, number: int, part: Event, about: Event, script: Script, *, last: Block
) -> Iterator[Event]:
    _, name, index = _PARTS[kind]
    about = {**about, index: number}
    # A summary's part is announced under a name of its own, other parts under a common one.
    frame = "response.reasoning_summary_part" if kind == "summary" else "response.content_part"
    spoken: Event = {"logprobs": []} if kind == "text" else {}
    empty = {**part, "text": ""}
    yield {"type": f"{frame}.added", **about, "part": empty}
    for piece in script.cut(part["text"]):
        yield {"type": f"{name}.delta", **about, "delta": piece, **spoken}
    if not script.breaks_in(last):
        yield {"type": f"{name}.done", **about, "text": part["text"], **spoken}
        yield {"type": f"{frame}.done", **about, "part": part}


def _items(script: Script) -> list[tuple[Block, Event]]:
    """The items of a response, each with its block."""
    items = []
    for number, block in enumerate(script.message.blocks):
        item = _item(block, number, script.contract)
        if item is not None:
            items.append((block, item))
    return items


def _item(block: Block, number: int, contract: Contract) -> Event | None:
    named = (block.provider_metadata or {}).get("item_id")
    if isinstance(block, ThinkingBlock):
        seals = without_none(encrypted_content=block.encrypted or None)
        if block.signature and _signs(contract):
            seals["signature"] = block.signature
        if not (block.thought or seals):
            return None
        return {
            "id": named or f"rs_{number}",
            "type": "reasoning",
            **_texts(block, contract),
            **seals,
        }
    if isinstance(block, ToolCallBlock):
        return {
            "id": named or f"fc_{number}",
            "type": "function_call",
            "call_id": block.id,
            "name": block.name,
            "arguments": arguments_text(block),
            "status": "completed",
        }
    if isinstance(block, TextBlock):
        text = {"type": "output_text", "text": block.text, "annotations": []}
        return {
            "id": named or f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            **stored_metadata(block, "phase"),
            "content": [{**text, **stored_metadata(block, "annotations")}],
        }
    return dict(block.data) if _is_item(block) and isinstance(block, RawBlock) else None


def _texts(block: ThinkingBlock, contract: Contract) -> Event:
    """A thought as summaries, or as the raw text that open models give."""
    raw = (
        contract.returning.returns_in == _CONTENT and form(block) == "plain"
        if block.source_field is None
        else (block.source_field == _CONTENT)
    )
    if raw:
        return {"summary": [], "content": [{"type": "reasoning_text", "text": block.thought}]}
    parts = (block.provider_metadata or {}).get("summary")
    if not isinstance(parts, list | tuple) or "\n\n".join(filter(None, parts)) != block.thought:
        parts = [block.thought] if block.thought else []
    return {"summary": [{"type": "summary_text", "text": part} for part in parts]}


def _without_content(item: Event) -> Event:
    """An item when it is added: without its texts, its ciphertext perhaps not all there."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": ""}
    if item["type"] not in _ITEMS:
        return item
    begun = {name: empty.get(name, value) for name, value in item.items() if name != "signature"}
    if "status" in begun:
        begun["status"] = "in_progress"
    if ciphertext := begun.pop("encrypted_content", ""):
        begun["encrypted_content"] = ciphertext[: len(ciphertext) // 2]
    return begun


def _body(script: Script) -> Event:
    why = script.message.finish_reason
    status = "incomplete" if why in _INCOMPLETE else "completed"
    return {
        **_envelope(script, status),
        "incomplete_details": {"reason": why} if status == "incomplete" else None,
        "output": [item for _, item in _items(script)],
        **_usage(script.usage),
    }


def _envelope(script: Script, status: str) -> Event:
    return {
        "id": script.response_id_or("resp_1"),
        "object": "response",
        "created_at": 1,
        "model": script.model,
        "status": status,
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _usage(usage: Usage | None) -> Event:
    if usage is None:
        return {}
    counts: dict[str, Any] = without_none(input_tokens=usage.input, output_tokens=usage.output)
    if usage.input is not None and usage.output is not None:
        counts["total_tokens"] = usage.input + usage.output
    details = without_none(cached_tokens=usage.cached, cache_write_tokens=usage.cache_write)
    if details:
        counts["input_tokens_details"] = details
    if usage.reasoning is not None:
        counts["output_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return {"usage": counts}


def _signs(contract: Contract) -> bool:
    """OpenRouter's kind of the protocol signs reasoning items, OpenAI's own does not."""
    return contract.provider not in ("openai", "azure")


def _is_item(block: Block) -> bool:
    return is_raw(block, *_ITEMS)


def _further_losses(message: Message, whole: bool) -> Iterator[str]:
    if message.finish_reason not in (None, "completed", *_INCOMPLETE):
        yield f"the finish reason {message.finish_reason}"
    ids = [(block.provider_metadata or {}).get("item_id") for block in message.blocks]
    named = [name for name in ids if name is not None]
    if len(set(named)) < len(named):
        yield "two items of one id"
    for block in message.thinking:
        parts = (block.provider_metadata or {}).get("summary")
        if parts is None:
            continue
        readable = "" if block.source_field == _CONTENT else block.thought
        if not all(isinstance(p, str) and p for p in parts) or "\n\n".join(parts) != readable:
            yield "summaries that its thought lacks"


def _capabilities(contract: Contract) -> Capabilities:
    readable, sealed = (_SUMMARY, _CONTENT), ("reasoning.encrypted_content",)
    sources = {"plain": readable, "summary": readable, "encrypted": sealed}
    if _signs(contract):
        sources |= {"signed": (*readable, *sealed), "signed and encrypted": (*readable, *sealed)}
    return Capabilities(
        forms=frozenset(sources),
        sources=sources,
        text_metadata=frozenset({"item_id", "phase", "annotations"}),
        thinking_metadata=frozenset({"item_id", "item_type", "summary"}),
        call_metadata=frozenset({"item_id"}),
        usage=frozenset({"input", "output", "reasoning", "cached", "cache_write"}),
        other=_is_item,
        more=_further_losses,
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
