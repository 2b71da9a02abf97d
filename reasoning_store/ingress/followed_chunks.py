"""The chunks of a reply that is followed: read from its draft's entries, and from its message.

A place in a reply is two numbers: the characters of its texts, and the entries that hold more than
text. However the entries were joined on their way, the same place has the same numbers, so a reader
can go on in another process where it stopped in this one.

The last entries of a reply are in its message alone. ``rest`` returns the parts of the message that
its reader does not have. No text is in them twice; the begin or the end of a block may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
    text_of,
    with_text,
)
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.draft_parts import (
    Entry,
    chunk_of,
    is_plain,
    read_entries,
)


class Place(NamedTuple):
    """How far a reader of a reply has come."""

    characters: int
    marks: int
    """The entries that hold more than text."""


BEGIN: Final = Place(0, 0)


class Placed(NamedTuple):
    """A chunk, and the place in the reply after it."""

    chunk: Chunk
    place: Place


class FollowedChunks:
    """The chunks of one reply after a place in it."""

    def __init__(self, after: Place = BEGIN) -> None:
        self._after = after
        self._place = BEGIN
        self._seen = Accumulator()
        self._calls: dict[int | None, int] = {}

    @property
    def place(self) -> Place:
        """How far this has come."""
        return self._place

    def read_part(self, part: str) -> Iterator[Placed]:
        """Yield the chunks of the draft's next part."""
        for entry, chunk in read_entries(part):
            yield from self._read(entry, chunk)

    def read(self, entry: Entry) -> Iterator[Placed]:
        """Yield the chunk of the draft's next entry, or what of it is after the place."""
        yield from self._read(entry, chunk_of(entry))

    def _read(self, entry: Entry, chunk: Chunk) -> Iterator[Placed]:
        text = _new_text(chunk)
        self._seen.add(chunk)
        if isinstance(chunk, ToolCallChunk):
            number = self._calls.setdefault(chunk.content_index, len(self._calls))
            chunk = replace(chunk, index=number)
        read = max(0, self._after.characters - self._place.characters)
        self._move(len(text), marks=not is_plain(entry))
        if self._place > self._after:
            yield Placed(_cut(chunk, text, read), self._place)

    def _move(self, characters: int, *, marks: int) -> None:
        self._place = Place(self._place.characters + characters, self._place.marks + marks)

    def rest(self, message: Message) -> Iterator[Placed]:
        """Yield the parts of the stored message that its reader does not have yet."""
        for chunk in self._rest(message):
            text = _new_text(chunk)
            read = max(0, self._after.characters - self._place.characters)
            self._move(len(text), marks=1)
            is_read = read > len(text) or (read == len(text) > 0 and _is_text(chunk))
            if not is_read or isinstance(chunk, UsageChunk | FinishChunk):
                yield Placed(_cut(chunk, text, read), self._place)

    def _rest(self, message: Message) -> Iterator[Chunk]:
        seen = self._seen.indexed()
        new_index = count(max((index for index, _, _ in seen), default=-1) + 1)
        for block in message.blocks:
            place = _place_of(block, seen)
            if place is None:
                yield from self._rest_of(None, block, next(new_index))
            else:
                index, _, before = seen[place]
                del seen[: place + 1]
                yield from self._rest_of(before, block, index)
        if message.usage is not None and message.usage != self._seen.usage:
            yield UsageChunk(usage=message.usage)
        if message.finish_reason is not None and self._seen.finish_reason is None:
            yield FinishChunk(reason=message.finish_reason)

    def _rest_of(self, seen: Block | None, block: Block, index: int) -> Iterable[Chunk]:
        match block:
            case TextBlock() if seen != block:
                text = seen if isinstance(seen, TextBlock) else TextBlock(text="")
                is_known = text.provider_metadata == block.provider_metadata
                yield TextChunk(
                    text=_after(text.text, block.text),
                    content_index=index,
                    metadata=None if is_known else block.provider_metadata,
                )
            case ThinkingBlock() if seen != block:
                yield from _rest_of_thought(seen, block, index)
            case ToolCallBlock() if seen != block:
                had = seen if isinstance(seen, ToolCallBlock) else None
                arguments = block.arguments or ""
                yield ToolCallChunk(
                    index=self._calls.setdefault(index, len(self._calls)),
                    id=block.id,
                    name=block.name,
                    arguments=_after(had.arguments or "" if had else "", arguments),
                    parameters=block.parameters if block.arguments is None else None,
                    is_complete=block.parameters is not None,
                    content_index=index,
                    metadata=block.provider_metadata,
                )
            case MediaBlock() | RawBlock() if seen is None:
                yield BlockChunk(block=block, content_index=index)


def _place_of(block: Block, seen: Sequence[tuple[int, str, Block | None]]) -> int | None:
    """Return which of the blocks that began a stored one is.

    It is the one that it continues, else one of its type that had nothing yet, else one that it
    replaces. The message does not have those that stayed empty.
    """
    of_type = [
        (place, before) for place, (_, kind, before) in enumerate(seen) if kind == _kind_of(block)
    ]
    for fits in (_continues, lambda block, before: before is None, _may_replace):
        for place, before in of_type:
            if fits(block, before):
                return place
    return None


def _may_replace(block: Block, before: Block | None) -> bool:
    ids = _item_ids(block, before)
    return not all(ids) or ids[0] == ids[1]


def _item_ids(*blocks: Block | None) -> list[str | None]:
    return [(one.provider_metadata or {}).get("item_id") if one else None for one in blocks]


def _kind_of(block: Block) -> str:
    return "raw" if isinstance(block, MediaBlock) else block.type


def _continues(block: Block, before: Block | None) -> bool:
    match block, before:
        case TextBlock(), TextBlock():
            return block.text.startswith(before.text)
        case ThinkingBlock(), ThinkingBlock():
            if all(ids := _item_ids(block, before)):
                return ids[0] == ids[1]
            seals = (before.signature or block.signature, before.encrypted or block.encrypted)
            is_same = seals == (block.signature, block.encrypted)
            return is_same and block.thought.startswith(before.thought)
        case ToolCallBlock(), ToolCallBlock():
            return before.id in ("", block.id)
    return before == block


def _rest_of_thought(
    seen: Block | None, block: ThinkingBlock, index: int
) -> Iterator[ReasoningChunk]:
    had = seen if isinstance(seen, ThinkingBlock) else None
    if had is None:
        yield ReasoningChunk(phase="start", content_index=index)
    seen_thought = had.thought if had is not None else ""
    is_replaced = not block.thought.startswith(seen_thought)
    if text := _after(seen_thought, block.thought):
        yield ReasoningChunk(text=text, content_index=index)
    fields = codec.block_to_json(block)
    names = ("sourceField", "signature", "encrypted", "redacted", "providerMetadata")
    yield ReasoningChunk(
        phase="end",
        text=block.thought if is_replaced else "",
        content_index=index,
        is_complete=not block.interrupted,
        metadata={name: fields[name] for name in names if fields.get(name)},
    )


def _new_text(chunk: Chunk) -> str:
    """Return the text of a chunk; an end may state the whole thought, which is no more of it."""
    return "" if isinstance(chunk, ReasoningChunk) and chunk.phase == "end" else text_of(chunk)


def _is_text(chunk: Chunk) -> bool:
    """Whether a chunk holds text alone."""
    return isinstance(chunk, TextChunk | ReasoningChunk) and not chunk.metadata


def _cut(chunk: Chunk, text: str, read: int) -> Chunk:
    """Return a chunk without the begin of its text."""
    if read and isinstance(chunk, TextChunk | ReasoningChunk | ToolCallChunk):
        return with_text(chunk, text[read:])
    return chunk


def _after(seen: str, whole: str) -> str:
    """Return the text after a given beginning; nothing if it begins differently."""
    return whole[len(seen) :] if whole.startswith(seen) else ""
