"""The seals that a provider gave, and the conversation that each was given in.

A seal is a signature or ciphertext. A test that plays both sides records each answer here and
hands the record to ``refusal`` with the next request, which then finds a seal that was never
given, a thought that was edited, and a conversation that changed before a sealed thought.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

_PLACES = (
    ("signature", "thinking"),
    ("signature", "text"),
    ("data", None),
    ("redactedContent", None),
    ("thoughtSignature", None),
    ("encrypted_content", None),
)
"""The field of a seal in a block, part or item, and the field of the text that it seals."""
_FIXED = ("system", "tools", "toolConfig", "systemInstruction")
"""The fields of a request, other than its conversation, that a thought may be bound to."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """The text that a seal was given for, and the conversation before it."""

    text: str | None
    prefix: bytes
    """A digest of everything before it."""


class Record:
    """The seals that one provider gave in one conversation."""

    def __init__(self) -> None:
        self._sealed: dict[str, Sealed] = {}
        self._reasoning: dict[str, Mapping[str, Any]] = {}

    def answered(self, body: Mapping[str, Any], answer: Sequence[Mapping[str, Any]]) -> None:
        """Record the blocks, parts or items that answered a request."""
        before = list(conversation_blocks(body))
        for n, block in enumerate(answer):
            so_far = [*before, *(("assistant", item) for item in answer[:n])]
            for seal, text in seals_of(block):
                self._sealed[seal] = Sealed(text=text, prefix=prefix_digests(body, so_far)[-1])
        reasoning: Mapping[str, Any] | None = None
        for item in answer:
            if item.get("type") == "reasoning":
                reasoning = item
            elif reasoning is not None and isinstance(item.get("id"), str):
                self._reasoning[item["id"]] = reasoning

    def sealed(self, seal: str) -> Sealed | None:
        """Return the content that a seal was issued for; None if it was never issued."""
        return self._sealed.get(seal)

    def reasoning_before(self, item_id: str) -> Mapping[str, Any] | None:
        """Return the reasoning item that led to an item of Responses, if one did."""
        return self._reasoning.get(item_id)


def seals_of(block: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the seals of a block, each with the text that it seals, if there is one."""
    inner = block.get("reasoningContent", block)
    inner = inner.get("reasoningText", inner)
    for place, text in _PLACES:
        seal = inner.get(place)
        if isinstance(seal, str) and seal and (text is None or text in inner):
            yield seal, inner[text] if text else None


def conversation_blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the blocks of a conversation, each with its role."""
    for message in body.get("messages") or ():
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks or ():
            yield str(message.get("role")), block


def prefix_digests(
    body: Mapping[str, Any], blocks: Iterable[tuple[str, Mapping[str, Any]]]
) -> list[bytes]:
    """Return a digest of everything before each block, and one of the whole.

    Cache marks are left out.
    """
    state = blake2b(digest_size=16)
    state.update(_canonical([body.get(name) for name in _FIXED]))
    out = [state.digest()]
    for role, block in blocks:
        state.update(_canonical([role, block]))
        out.append(state.digest())
    return out


def _canonical(value: Any) -> bytes:
    return json.dumps(_uncached(value), sort_keys=True).encode()


def _uncached(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _uncached(item) for name, item in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_uncached(item) for item in value]
    return value
