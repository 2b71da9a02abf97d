"""The recorded shapes of every provider, and what they have to become."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.wire.call_ids import is_made_here

FOLDER = Path(__file__).parent.parent / "cases" / "wire"

BOUND = {
    "text": ("text",),
    "thinking": (
        "thought",
        "sourceField",
        "isHidden",
        "signature",
        "encrypted",
        "redacted",
    ),
    "tool_call": ("id", "name", "parameters"),
}
"""What of each kind of block is binding; the README of the cases says so."""
GENERATED = "<generated>"


@dataclass(frozen=True)
class Case:
    file: str
    provider: str
    api: str
    variant: dict[str, Any]

    @property
    def expected_blocks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.variant["expected_blocks"]
        return found

    def normalizer(self) -> rs.StreamNormalizer:
        return rs.StreamNormalizer(provider=self.provider, api=self.api)

    def whole(self) -> rs.Message:
        return rs.normalize_response(
            self.variant["nonstream"], provider=self.provider, api=self.api
        )


def all_cases() -> list[Case]:
    return [
        Case(path.stem, data["provider"], data["api"], variant)
        for path in sorted(FOLDER.glob("*.json"))
        if "variants" in (data := json.loads(path.read_text("utf-8")))
        for variant in data["variants"]
    ]


def params(kind: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{case.file}-{case.variant['name']}")
        for case in all_cases()
        if case.variant.get(kind) is not None
    ]


def bound(message: rs.Message) -> list[dict[str, Any]]:
    """Return the binding part of a message's blocks, in order."""
    return [_bound(codec.block_to_json(block)) for block in message.blocks]


def expected(case: Case) -> list[dict[str, Any]]:
    return [_bound(block) for block in case.expected_blocks]


def _bound(block: dict[str, Any]) -> dict[str, Any]:
    out = {"type": block["type"]}
    for name in BOUND[block["type"]]:
        value = block.get(name)
        # JSON leaves out what is false, and so does this.
        if value not in (None, False):
            out[name] = GENERATED if name == "id" and _generated(block) else value
    return out


def _generated(block: dict[str, Any]) -> bool:
    return block["id"] == GENERATED or is_made_here(block["id"])


def usage_of(message: rs.Message) -> dict[str, Any] | None:
    usage = message.usage
    if usage is None:
        return None
    return {"reasoning": usage.reasoning, "output": usage.output}


def expected_usage(case: Case) -> dict[str, Any] | None:
    """Return the usage that a case states; its total includes the reasoning."""
    stated = case.variant["expected_usage"]
    if stated["output_tokens_total"] is None:
        return None
    return {"reasoning": stated["reasoning_tokens"], "output": stated["output_tokens_total"]}


def reports_usage(case: Case) -> bool:
    """Whether a case's stream holds a usage at all; one file's envelope is simplified."""
    return "usage" in json.dumps(case.variant["stream"]).lower() or any(
        "eval_count" in event for event in case.variant["stream"]
    )
