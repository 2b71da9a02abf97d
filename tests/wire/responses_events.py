"""Events of the Responses protocol, and the messages that they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Message,
)
from reasoning_store.conversation.chunks import (
    Chunk,
)
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.openai_responses.reader import (
    ResponsesReader,
)

API = "openai.responses"


CASES = json.loads(
    (Path(__file__).parents[1] / "cases/wire/openai_responses.json").read_text(encoding="utf-8")
)["variants"]


NAMES = [case["name"] for case in CASES]


FIRST = CASES[0]


CONTRACT = contract_lookup.find_contract("openai", "gpt-5.6", API)


def streamed(events: list[Any], *, interrupted: bool = False) -> Message:
    normalizer = StreamNormalizer(provider="openai", model="gpt-5.6", api=API)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish(interrupted=interrupted)


def whole(body: Any) -> Message:
    return normalize_response(body, provider="openai", model="gpt-5.6", api=API)


def chunks_of(events: list[Any], contract: Contract = CONTRACT) -> list[Chunk]:
    adapter = ResponsesReader(contract)
    return [chunk for event in events for chunk in adapter.parse_chunk(event)]


def unknown_in(message: Message) -> int:
    return int((message.metadata or {}).get("unknownChunks", 0))


def about(kind: str, item: str = "rs_1", place: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "item_id": item, "output_index": place, **fields}


def item_event(kind: str, item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": place, "item": item}


def ended(*output: Any, kind: str = "completed", **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "status": kind, "output": list(output), **fields}
    return {"type": f"response.{kind}", "response": response}


def reasoning(*summary: str, **fields: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": parts, **fields}


def said(*texts: str, item: str = "msg_1", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "id": item,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **fields,
    }


def call(name: str = "f", arguments: Any = "{}", number: int = 1) -> dict[str, Any]:
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
    }


def comparable(message: Message) -> list[dict[str, Any]]:
    return codec.blocks_to_json(message.blocks)
