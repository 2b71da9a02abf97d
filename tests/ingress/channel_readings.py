"""The messages and chunks that deltas of Chat Completions become."""

from __future__ import annotations

from typing import Any

import reasoning_store as rs
from reasoning_store.ingress.channels import Channels
from reasoning_store.ingress.duplicates import MirroredFields
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.text_channel import TextChannel
from tests.wire.well_formed import assert_well_formed


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def read(*deltas: dict[str, Any], **options: Any) -> rs.Message:
    normalizer = rs.StreamNormalizer(api="openai.chat", **options)
    chunks = [chunk for event in deltas for chunk in normalizer.feed(event)]
    assert_well_formed([*chunks, *normalizer.close()])
    return normalizer.finish()


def thoughts(message: rs.Message) -> list[tuple[str | None, str]]:
    return [(block.source_field, block.thought) for block in message.thinking]


def counters(message: rs.Message) -> dict[str, Any]:
    return dict(message.metadata or {})


def channels() -> Channels:
    counters = Counters()
    return Channels(
        TextChannel(None, counters), MirroredFields(frozenset(), counters), provider="p"
    )


def shown(*chunks: rs.Chunk) -> list[tuple[Any, ...]]:
    made = channels()
    out = [piece for chunk in chunks for piece in made.feed(chunk)] + made.close()
    return [
        (piece.phase, piece.content_index, piece.text)
        for piece in out
        if isinstance(piece, rs.ReasoningChunk)
    ]


def thinking(text: str = "", **fields: Any) -> rs.ReasoningChunk:
    return rs.ReasoningChunk(text=text, metadata={"sourceField": "thinking"}, **fields)
