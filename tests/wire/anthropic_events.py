"""Events of the Messages protocol, and the messages that they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reasoning_store.conversation.blocks import (
    Message,
)
from reasoning_store.conversation.chunks import (
    Chunk,
)
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.anthropic.reader import (
    AnthropicReader,
)

API = "anthropic.messages"


CASES = json.loads(
    (Path(__file__).parents[1] / "cases/wire/anthropic_messages.json").read_text(encoding="utf-8")
)["variants"]


FIRST = CASES[0]


CONTRACT = contract_lookup.find_contract("anthropic", "claude-opus-5")


def streamed(events: list[Any], *, interrupted: bool = False) -> Message:
    normalizer = StreamNormalizer(provider="anthropic", model="claude-opus-5")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish(interrupted=interrupted)


def whole(body: Any) -> Message:
    return normalize_response(body, provider="anthropic", model="claude-opus-5")


def chunks_of(events: list[Any]) -> list[Chunk]:
    adapter = AnthropicReader(CONTRACT)
    return [chunk for event in events for chunk in adapter.parse_chunk(event)]


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


CITATIONS = [
    {"type": "char_location", "cited_text": "a", "document_index": 0},
    {"type": "web_search_result_location", "url": "https://a", "encrypted_index": "x"},
]
