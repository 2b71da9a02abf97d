"""The parts that a draft stores of a reply that is arriving, and the message that they come to.

Each chunk takes two ways. The ``accumulator`` makes the message of it, which exists in memory and
is complete only at the end. Here it becomes an entry of JSON, so that a reply outlives its process
and other processes can read it while it arrives; rows of a draft are only ever added, never
changed. Parts are read back through the accumulator, so that both ways come to the same message.

Deltas of one block are joined. Nothing of a masked text is written before the masker's lookback
has passed, so a part holds no secret and no half of one. A signature seals the exact thought: it
waits for the end of the block, and is left out where masking changed the thought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Message,
    Origin,
    Usage,
)
from reasoning_store.conversation.chunks import (
    TEXT_OF,
    BlockChunk,
    Chunk,
    Delta,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.json_values import make_json
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.masking import (
    ArgumentsMasker,
    Masker,
    StreamMasker,
    mask_block,
    mask_metadata,
    mask_value,
)
from reasoning_store.ingress.reply_counters import Counters

Entry: TypeAlias = dict[str, Any]
"""A chunk as JSON: its type, and its fields that are not at their defaults."""

_CHUNKS: Final[Mapping[str, type[Chunk]]] = {
    "text": TextChunk,
    "reasoning": ReasoningChunk,
    "tool_call": ToolCallChunk,
    "block": BlockChunk,
    "usage": UsageChunk,
    "finish": FinishChunk,
    "origin": OriginChunk,
    "error": ErrorChunk,
}
_REQUIRED: Final[Mapping[str, Entry]] = {
    "text": {"text": ""},
    "tool_call": {"index": 0},
    "finish": {"reason": None},
}
"""Fields without a default that an entry may lack."""
_UNSTORED: Final = ("type", "choice", "provider", "index")
"""Fields that the message does not depend on: only the first choice is drafted."""
_SEALS: Final = ("signature", "encrypted")


class DraftParts:
    """The parts of one reply: ``add`` its chunks, ``take_part`` what may be written."""

    def __init__(self, masker: Masker | None) -> None:
        self._masker = masker
        self._texts: dict[tuple[str, int | None], _MaskedText] = {}
        self._entries: list[Entry] = []
        self._pieces: list[str] = []  # the text of the last entry
        self.size = 0
        """Characters that wait to be written."""
        self.pass_on: Callable[[Entry], None] | None = None
        """Also gets each entry, before it is joined with others."""

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks of the stream; only the first choice is drafted."""
        for chunk in chunks:
            if chunk.choice:
                continue
            match chunk:
                case TextChunk() | ReasoningChunk() | ToolCallChunk():
                    self._add_delta(chunk)
                case UnknownChunk():
                    pass
                case FinishChunk():
                    self.release()
                    self._add_whole(chunk)
                case _:
                    self._add_whole(chunk)

    def take_part(self) -> str | None:
        """Return the next part, or ``None`` if nothing has to be written yet."""
        part, self._entries, self._pieces, self.size = self.next_part(), [], [], 0
        return part

    def next_part(self) -> str | None:
        """Return the next part, which stays the next one."""
        self._join_pieces()
        return codec.dumps(self._entries) if self._entries else None

    def _join_pieces(self) -> None:
        """Give the last entry its text, of which more may come."""
        if self._pieces:
            text = "".join(self._pieces)
            self._entries[-1][TEXT_OF[self._entries[-1]["type"]]] = text
            self._pieces = [text]

    def release(self) -> None:
        """Add the text that the masker holds: nothing more of it comes."""
        for (kind, index), text in self._texts.items():
            if rest := text.finish():
                self._append({"type": kind, "content_index": index}, rest)

    def _add_whole(self, chunk: Chunk) -> None:
        entry = _to_json(chunk)
        if self._masker is not None and isinstance(chunk, BlockChunk):
            # As JSON holds it, as in the message: no masker looks into anything else.
            block = mask_block(codec.block_from_json(entry["block"]), self._masker)
            entry["block"] = codec.block_to_json(block)
        elif self._masker is not None:
            entry = {**mask_value(entry, self._masker), "type": chunk.type}
        if self.pass_on is not None:
            self.pass_on(dict(entry))
        self._begin_entry(entry)
        self.size += 64

    def _begin_entry(self, entry: Entry) -> None:
        self._join_pieces()
        self._entries.append(entry)
        self._pieces = []

    def _add_delta(self, chunk: Delta) -> None:
        entry = _to_json(chunk)
        text = entry.pop(TEXT_OF[chunk.type], "")
        if self._masker is not None:
            text = self._mask_delta(self._masker, chunk, text, entry)
        self._append(entry, text)

    def _mask_delta(self, masker: Masker, chunk: Delta, text: str, entry: Entry) -> str:
        """Return the text that may be written now; mask the other fields in the entry."""
        block = (chunk.type, chunk.content_index)
        masked = self._texts.get(block)
        if masked is None:
            is_call = isinstance(chunk, ToolCallChunk)
            stream_masker = ArgumentsMasker(masker) if is_call else StreamMasker(masker)
            masked = self._texts[block] = _MaskedText(stream_masker)
        if "metadata" in entry:
            entry["metadata"] = mask_metadata(entry["metadata"], masker)
        if "parameters" in entry:
            entry["parameters"] = mask_value(entry["parameters"], masker)
        if not isinstance(chunk, ReasoningChunk):
            is_last = isinstance(chunk, ToolCallChunk) and chunk.is_complete
            return masked.feed(text) + (masked.finish() if is_last else "")
        if chunk.phase == "end" and text:
            text = masked.replace_deltas(text, masker.mask(text))
        elif chunk.phase == "end":
            # Not the text of the end, which states the whole thought.
            if rest := masked.finish():
                self._append({"type": chunk.type, "content_index": chunk.content_index}, rest)
        else:
            text = masked.feed(text)
        if metadata := entry.get("metadata"):
            entry["metadata"] = masked.keep_seals(metadata)
        if chunk.phase == "end" and (seals := masked.take_seals()):
            entry["metadata"] = {**entry.get("metadata", {}), **seals}
        return text

    def _append(self, entry: Entry, text: str) -> None:
        last = self._entries[-1] if self._entries else None
        name = TEXT_OF[entry["type"]]
        self.size += len(text)
        if self.pass_on is not None and (text or not is_plain(entry)):
            self.pass_on({**entry, name: text} if text else dict(entry))
        if last is not None and is_plain(entry) and is_plain(last) and _names_one(entry, last):
            self._pieces.append(text)
        elif text or not is_plain(entry):
            self._begin_entry(entry)
            self._pieces = [text] if text else []


class _MaskedText:
    """The text of one block on its way through the masker, and the seals that wait for its end."""

    def __init__(self, masker: StreamMasker) -> None:
        self._masker = masker
        self._seals: dict[str, Any] = {}
        self._ended = False

    def feed(self, text: str) -> str:
        return self._masker.feed(text) if text else ""

    def finish(self) -> str:
        self._ended = True
        return self._masker.finish()

    def replace_deltas(self, text: str, masked: str) -> str:
        """Put a whole text in the place of its deltas."""
        self.finish()
        self._masker.is_changed = text != masked
        return masked

    def keep_seals(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return metadata without seals, which ``take_seals`` gives at the end.

        A seal that comes after the end stays where it is, if masking changed nothing.
        """
        seals = {name: metadata[name] for name in _SEALS if name in metadata}
        if not self._ended:
            self._seals |= seals
        elif not self._masker.is_changed:
            return dict(metadata)
        return {name: value for name, value in metadata.items() if name not in seals}

    def take_seals(self) -> dict[str, Any]:
        seals, self._seals = self._seals, {}
        return {} if self._masker.is_changed else seals


def build_message(
    parts: Iterable[str],
    *,
    origin: Origin,
    interrupted: bool = True,
) -> Message:
    """Return the message that these parts come to, as far as they go."""
    accumulator = Accumulator()
    for part in parts:
        for chunk in _read_part(part):
            accumulator.add(chunk)
    return accumulator.build(
        origin=origin, interrupted=interrupted, counters=Counters(), metadata={}
    )


def mask_parts(parts: Iterable[str], masker: Masker) -> list[str]:
    """Return the parts of a draft that was written elsewhere without the secrets in them."""
    draft = DraftParts(masker)
    out = []
    for part in parts:
        draft.add(_read_part(part))
        out.append(draft.take_part())
    draft.release()
    return [part for part in (*out, draft.take_part()) if part is not None]


def _read_part(part: str) -> list[Chunk]:
    return [chunk for _, chunk in read_entries(part)]


def read_entries(part: str) -> list[tuple[Entry, Chunk]]:
    """Return the entries of a part, each with its chunk."""
    try:
        return [(entry, chunk_of(entry)) for entry in codec.loads(part)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptRow(f"a part of a draft cannot be read: {type(error).__name__}") from None


def _to_json(chunk: Chunk) -> Entry:
    entry: Entry = {"type": chunk.type}
    for item in fields(chunk):
        value = getattr(chunk, item.name)
        if item.name in _UNSTORED or value is None or value == item.default:
            continue
        if isinstance(value, Usage):
            value = codec.to_json(value)
        elif item.name == "block":
            value = codec.block_to_json(value)
        entry[item.name] = make_json(value)
    return entry


def chunk_of(entry: Mapping[str, Any]) -> Chunk:
    """Return the chunk of an entry."""
    kind = entry["type"]
    data = {**_REQUIRED.get(kind, {}), **entry}
    del data["type"]
    if "usage" in data:
        data["usage"] = codec.from_json(Usage, data["usage"])
    if "block" in data:
        data["block"] = codec.block_from_json(data["block"])
    return _CHUNKS[kind](**data)


def is_plain(entry: Entry) -> bool:
    """Whether an entry is a delta with nothing but its text."""
    text = TEXT_OF.get(entry["type"])
    metadata = entry.get("metadata") or {}
    return (
        text is not None
        and entry.keys() <= {"type", "content_index", "metadata", text}
        and metadata.keys() <= {"sourceField"}
    )


def _names_one(entry: Entry, last: Entry) -> bool:
    """Whether two entries are of one block."""
    return entry["type"] == last["type"] and entry.get("content_index") == last.get("content_index")
