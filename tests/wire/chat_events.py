"""Events and responses of Chat Completions, and what becomes of them."""

from __future__ import annotations

from typing import Any

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.chunks import Chunk, OriginChunk
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.openai_chat import reader as openai_chat

ARRAY: list[dict[str, Any]] = [
    {"type": "reasoning.summary", "summary": "**Plan**", "format": "f", "id": "rs", "index": 0},
    {"type": "reasoning.encrypted", "data": "gAAAAB", "format": "f", "id": "rs", "index": 0},
    {"type": "reasoning.text", "text": "Look.", "signature": "c2ln", "id": None, "index": 1},
    {
        "type": "reasoning.server_tool_call",
        "tool_name": "web",
        "arguments": "{}",
        "result": "r",
        "index": 2,
    },
    {"type": "reasoning.new_kind", "anything": {"deep": [1, None]}, "index": 3},
]
"""An array of every type of entry, one of them not known here."""


def delta(choice: int = 0, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of one choice."""
    item = {"index": choice, "delta": fields, "finish_reason": finish}
    return {"id": "r-1", "object": "chat.completion.chunk", "model": "m", "choices": [item]}


def response(finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A whole response of one choice."""
    item = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "r-1", "object": "chat.completion", "model": "m", "choices": [item]}


def adapter(provider: str | None = None, model: str | None = None) -> openai_chat.ChatReader:
    return openai_chat.ChatReader(contract_lookup.find_contract(provider, model, "openai.chat"))


def chunks(*events: Any, provider: str | None = None, model: str | None = None) -> list[Chunk]:
    """What an adapter says of these events, origins aside."""
    reader = adapter(provider, model)
    found = [chunk for event in events for chunk in reader.parse_chunk(event)]
    return [chunk for chunk in found if not isinstance(chunk, OriginChunk)]


def streamed(*events: Any, provider: str | None = None, model: str | None = None) -> Message:
    normalizer = StreamNormalizer(provider, model, "openai.chat")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def whole(body: Any, provider: str | None = None, model: str | None = None) -> Message:
    return normalize_response(body, provider=provider, model=model, api="openai.chat")


def thoughts(message: Message) -> list[tuple[str, str | None]]:
    return [(block.thought, block.source_field) for block in message.thinking]


def call(index: Any, **fields: Any) -> dict[str, Any]:
    """A fragment of a call; ``name`` and ``arguments`` stand inside its function."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    item = {"function": function, **fields}
    return item if index is None else {"index": index, **item}
