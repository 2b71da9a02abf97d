"""What a reply leaves in the store while it is still arriving, and a message made of that.

A part is JSON: the chunks since the last part, in the form in which the accumulator takes
them, so that parts of any size in order give the message that the stream has given so far.
Deltas of one block are joined, and nothing of a masked text is written before its lookback
has passed, so a part holds no secret and no half of one.

A signature seals the exact thought. Where masking changed the text, the seal is left out:
a sealed text that was changed is refused by whoever made it.

It knows chunks and JSON. It must not know SQL, time, or who reads the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from reasoning_store import codec
from reasoning_store.blocks import Message, Origin, Usage
from reasoning_store.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from reasoning_store.errors import CorruptRow
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.jsonable import jsonable
from reasoning_store.ingress.masking import ArgumentsMasker, Masker, StreamMasker, masked
from reasoning_store.ingress.texts import TAG_SOURCE

_KINDS: Mapping[str, type] = {
    "text": TextChunk,
    "reasoning": ReasoningChunk,
    "tool_call": ToolCallChunk,
    "block": BlockChunk,
    "usage": UsageChunk,
    "finish": FinishChunk,
    "origin": OriginChunk,
    "error": ErrorChunk,
}
_TEXT_OF = {"text": "text", "reasoning": "text", "tool_call": "arguments"}
"""The field of each kind that grows, and is masked as one text."""
_SEALS = ("signature", "encrypted")


@dataclass(slots=True)
class _Growing:
    """One block's text on its way through the masker."""

    masker: StreamMasker | None
    came: int = 0
    went: int = 0
    changed: bool = False
    waiting: list[dict[str, Any]] = field(default_factory=list)


class Draft:
    """The parts of one reply. ``add`` what is shown, ``take`` what may be written."""

    def __init__(self, masker: Masker | None) -> None:
        self._masker = masker
        self._growing: dict[tuple[str, int | None], _Growing] = {}
        self._pending: list[dict[str, Any]] = []
        self.size = 0
        """Characters that wait to be written."""

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Take in what the stream has said; choices beside the first are not drafted."""
        for chunk in chunks:
            if chunk.choice == 0 and chunk.type in _KINDS:
                self._add(chunk)

    def take(self) -> str | None:
        """Return the next part, or ``None`` where there is nothing to write yet."""
        if not self._pending:
            return None
        part, self._pending, self.size = codec.dumps(self._pending), [], 0
        return part

    def _add(self, chunk: Chunk) -> None:
        item = _to_json(chunk)
        if not isinstance(chunk, TextChunk | ReasoningChunk | ToolCallChunk):
            if isinstance(chunk, FinishChunk):
                self.settle()
            self._put(self._hidden(chunk, item))
            return
        name = _TEXT_OF[chunk.type]
        block = (chunk.type, chunk.content_index)
        growing = self._growing.get(block)
        if growing is None:
            kind = ArgumentsMasker if name == "arguments" else StreamMasker
            masker = None if self._masker is None else kind(self._masker)
            growing = self._growing[block] = _Growing(masker)
        text = item.pop(name, "")
        if growing.masker is not None:
            text = self._mask(growing, growing.masker, text, over=_is_over(chunk))
            item = self._unsealed(growing, self._hidden(chunk, item))
        self._join(block, name, text, item)

    def settle(self) -> None:
        """Give out what the masker holds of every text: nothing more of them comes."""
        for block, growing in self._growing.items():
            text = growing.masker.finish() if growing.masker is not None else ""
            if text:
                self._join(block, _TEXT_OF[block[0]], text, _plain(block))

    def _mask(self, growing: _Growing, masker: StreamMasker, text: str, *, over: bool) -> str:
        growing.came += len(text)
        before = text
        text = masker.feed(text) if text else ""
        if over:
            text += masker.finish()
        growing.went += len(text)
        if over and growing.went != growing.came:
            growing.changed = True
        growing.changed = growing.changed or bool(
            self._masker is not None and before and self._masker.mask(before) != before
        )
        return text

    def _unsealed(self, growing: _Growing, item: dict[str, Any]) -> dict[str, Any]:
        metadata = item.get("metadata")
        if not growing.changed or not isinstance(metadata, Mapping):
            return item
        return {
            **item,
            "metadata": {name: value for name, value in metadata.items() if name not in _SEALS},
        }

    def _hidden(self, chunk: Chunk, item: dict[str, Any]) -> dict[str, Any]:
        """Return a chunk's own fields without the secrets in them."""
        if self._masker is None:
            return item
        if isinstance(chunk, BlockChunk):
            # What JSON can hold of it, as in the message: no masker looks into anything else.
            given = codec.block_from_json(item["block"])
            (block,) = masked(Message(role="assistant", blocks=(given,)), self._masker).blocks
            return {**item, "block": codec.block_to_json(block)}
        holder = masked(Message(role="assistant", metadata={"item": item}), self._masker)
        safe: dict[str, Any] = dict((holder.metadata or {})["item"])
        return {**safe, "type": item["type"]}

    def _join(
        self, block: tuple[str, int | None], name: str, text: str, item: dict[str, Any]
    ) -> None:
        last = self._pending[-1] if self._pending else None
        # A plain delta of the block that spoke last grows that entry.
        plain = _about(_plain(block))
        if last is not None and _about(item) == plain and _about(last, name) == plain:
            last[name] = last.get(name, "") + text
        elif text or _about(item) != plain:
            self._pending.append({**item, **({name: text} if text else {})})
        self.size += len(text)

    def _put(self, item: dict[str, Any]) -> None:
        self._pending.append(item)
        self.size += 64


def message(
    parts: Iterable[str],
    *,
    origin: Origin,
    interrupted: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Message:
    """Return the message that these parts come to, as far as they go."""
    accumulator = Accumulator()
    for part in parts:
        for chunk in _chunks(part):
            accumulator.add(chunk)
    return accumulator.message(
        origin=origin,
        interrupted=interrupted,
        tag_source=TAG_SOURCE,
        counters={},
        metadata=metadata or {},
    )


def remasked(parts: Iterable[str], masker: Masker) -> list[str]:
    """Return the parts of a draft that was written elsewhere without the secrets in them."""
    draft = Draft(masker)
    out = []
    for part in parts:
        draft.add(_chunks(part))
        out.append(draft.take())
    draft.settle()
    return [part for part in (*out, draft.take()) if part is not None]


def _chunks(part: str) -> list[Chunk]:
    try:
        return [_from_json(item) for item in codec.loads(part)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptRow(f"a part of a draft cannot be read: {type(error).__name__}") from None


def _plain(block: tuple[str, int | None]) -> dict[str, Any]:
    """Return the entry of a delta that says nothing but its text."""
    kind, number = block
    return {"type": kind, "content_index": number, **({"index": 0} if kind == "tool_call" else {})}


def _is_over(chunk: Chunk) -> bool:
    """Whether nothing more of a block's text comes."""
    if isinstance(chunk, ReasoningChunk):
        return chunk.phase == "end"
    return isinstance(chunk, ToolCallChunk) and chunk.is_complete


def _about(item: Mapping[str, Any], text: str = "") -> dict[str, Any]:
    """Return an entry without its text and without what every delta repeats."""
    return {
        name: value
        for name, value in item.items()
        if name != text and not (name == "metadata" and set(value or ()) <= {"sourceField"})
    }


def _to_json(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk's fields that are not at their defaults."""
    out: dict[str, Any] = {"type": chunk.type}
    for item in fields(chunk):
        value = getattr(chunk, item.name)
        if item.name in ("type", "choice", "provider") or value is None or value == item.default:
            continue
        if isinstance(value, Usage):
            value = codec.usage_to_json(value)
        elif item.name == "block":
            value = codec.block_to_json(value)
        out[item.name] = jsonable(value)
    return out


def _from_json(item: Mapping[str, Any]) -> Chunk:
    data = {name: value for name, value in item.items() if name != "type"}
    if "usage" in data:
        data["usage"] = codec.usage_from_json(data["usage"])
    if "block" in data:
        data["block"] = codec.block_from_json(data["block"])
    if item["type"] == "text":
        data.setdefault("text", "")
    if item["type"] == "finish":
        data.setdefault("reason", None)
    chunk: Chunk = _KINDS[item["type"]](**data)
    return chunk


def streaming(made: Message) -> Message:
    """Return a message as one that is still arriving."""
    return replace(made, status="streaming")
