"""Events of Bedrock's Converse protocol, and the messages that they become."""

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
from reasoning_store.wire.bedrock.reader import (
    BedrockReader,
)

CASES = json.loads(
    (Path(__file__).parents[1] / "cases/wire/bedrock_converse.json").read_text(encoding="utf-8")
)["variants"]


MODEL = "us.anthropic.claude-opus-5-v1:0"


CONTRACT = contract_lookup.find_contract("aws", MODEL)


def streamed(events: list[Any], *, interrupted: bool = False) -> Message:
    normalizer = StreamNormalizer(provider="aws", model=MODEL)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish(interrupted=interrupted)


def whole(*content: Any, **fields: Any) -> Message:
    body = {"output": {"message": {"role": "assistant", "content": list(content)}}, **fields}
    return normalize_response(body, provider="aws", model=MODEL)


def chunks_of(events: list[Any]) -> list[Chunk]:
    adapter = BedrockReader(CONTRACT)
    return [chunk for event in events for chunk in adapter.parse_chunk(event)]


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": block}}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": fields}}


def thinking(index: int, **fields: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=fields)


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}
