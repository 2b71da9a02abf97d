"""A framework's message as blocks, and the same message again, exactly, from these blocks.

The blocks hold the texts, thoughts, calls and results of a foreign message. All else of it, its
ids, the order of its parts and its own fields, is its *form*: the JSON of the message with a
reference to a block in place of each value that the block holds. The form is stored in the
message's metadata, so nothing is stored twice. The parts that carry a thought are in a list
apart, which an erasure of reasoning removes with the thought.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import reasoning_store as rs
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import AnsweredBy

Path: TypeAlias = tuple[str | int, ...]
IsThought: TypeAlias = Callable[[Path, Any], bool]
"""Whether the value at a place of a foreign message carries a thought."""
_Place: TypeAlias = tuple[str | int, ...]
"""The kind of a block, its number among those of its kind, and a field of it."""

_REFERENCE: Final = "$block"
_PIECES: Final = "$pieces"
_THOUGHT: Final = "$thought"
_BYTES: Final = "$bytes"
_LITERAL: Final = "$literal"
_MARKS: Final = frozenset({_REFERENCE, _PIECES, _THOUGHT, _BYTES, _LITERAL})
_FORM: Final = "form"
_THOUGHTS: Final = "thoughtForms"
"""``erase(only="reasoning")`` removes what has this name in the metadata of a message."""
_SHORTEST: Final = 12
"""Shorter values outside of thoughts stay in the form: they may be equal by accident."""
_ABSENT: Final = object()
_PLAIN: Final = str.maketrans("-_", "+/")


def in_base64(data: bytes | bytearray) -> str:
    """Return bytes as text."""
    return base64.b64encode(data).decode("ascii")


def from_base64(text: Any) -> bytes | None:
    """Return the bytes of a text in either alphabet; ``None`` of any other value."""
    try:
        return base64.b64decode(text.translate(_PLAIN) + "==") if isinstance(text, str) else None
    except ValueError:
        return None


def given_arguments(block: rs.ToolCallBlock) -> Any:
    """Return the arguments of a call as they came: a text, or their value."""
    return block.parameters if block.arguments is None else block.arguments


def read_reply(reply: KeptReply) -> rs.Message:
    """Return a reply of a framework as its provider's own protocol gives it."""
    message = reply.message(AnsweredBy(tags="auto"))
    others = (rs.RawBlock(data=one) for one in reply.others)
    return replace(message, blocks=(*message.blocks, *others))


def with_form(message: rs.Message, name: str, form: Any, is_thought: IsThought) -> rs.Message:
    """Return a message with the form of the foreign message that it was read from."""
    writer = _Writer(message, is_thought)
    stored: dict[str, Any] = {_FORM: writer.outline(form, ())}
    if writer.thoughts:
        stored[_THOUGHTS] = writer.thoughts
    usage = None if message.usage is None else replace(message.usage, raw=None)  # the form has it
    return replace(message, usage=usage, metadata={**(message.metadata or {}), name: stored})


class Rebuilt(NamedTuple):
    """A foreign message made of blocks."""

    form: Any
    is_whole: bool
    """Whether it has all of its thoughts."""
    left_out: frozenset[int] = frozenset()
    """Of a list of parts: the indexes of those whose thought it lacks."""


def rebuild(message: rs.Message, name: str, *, withheld: Collection[int] = ()) -> Rebuilt | None:
    """Return the foreign message of a stored one; ``None`` if it was not read from one.

    ``withheld`` are the indexes of thinking blocks to leave out.
    """
    stored = (message.metadata or {}).get(name)
    if not isinstance(stored, Mapping) or _FORM not in stored:
        return None
    reader = _Reader(message, stored.get(_THOUGHTS) or [], withheld)
    outline = stored[_FORM]
    if not isinstance(outline, list | tuple):
        return Rebuilt(reader.fill(outline), reader.is_whole)
    parts = [reader.fill(part) for part in outline]
    left_out = frozenset(n for n, part in enumerate(parts) if part is _ABSENT)
    kept = [part for part in parts if part is not _ABSENT]
    return Rebuilt(kept, reader.is_whole, left_out)


def _values(block: rs.Block) -> Iterator[tuple[Path, Any]]:
    """Yield the values of a block that a foreign message holds, too, with their fields."""
    match block:
        case rs.TextBlock():
            yield ("text",), block.text
        case rs.ThinkingBlock():
            yield ("thought",), block.thought
            yield ("signature",), block.signature
            yield ("encrypted",), block.encrypted
        case rs.ToolCallBlock():
            yield ("arguments",), block.arguments
            yield ("parameters",), block.parameters
        case rs.ToolResponseBlock():
            yield ("result",), block.result
        case rs.MediaBlock():
            yield ("url",), block.url
            yield ("data",), None if block.data is None else in_base64(block.data)
        case rs.RawBlock():
            yield ("data",), block.data
    yield from _leaves(block.provider_metadata, ("provider_metadata",))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))


def _numbered(blocks: Sequence[rs.Block]) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield the kind and number of each block, with its index.

    An empty text has no number: an erasure of reasoning removes one that only carried a seal.
    """
    counts: dict[str, int] = {}
    for index, block in enumerate(blocks):
        if isinstance(block, rs.TextBlock) and not block.text:
            continue
        number = counts.get(block.type, 0)
        counts[block.type] = number + 1
        yield (block.type, number), index


class _Writer:
    """The values of one message's blocks, and the forms that refer to them."""

    def __init__(self, message: rs.Message, is_thought: IsThought) -> None:
        self._is_thought = is_thought
        self.thoughts: list[Any] = []
        self._texts: dict[str, _Place] = {}
        self._thinking: dict[str, _Place] = {}
        self._wholes: list[tuple[Any, _Place]] = []
        for at, index in _numbered(message.blocks):
            for path, value in _values(message.blocks[index]):
                self._add((*at, *path), value, thinking=at[0] == "thinking")
        self._woven = sorted(
            (text for text, at in self._thinking.items() if at[2:] == ("thought",)),
            key=len,
            reverse=True,
        )
        self._media = [text for text, at in self._texts.items() if at[0] == "media"]

    def _add(self, place: _Place, value: Any, *, thinking: bool) -> None:
        if isinstance(value, str) and value:
            (self._thinking if thinking else self._texts).setdefault(value, place)
        elif isinstance(value, dict | list) and value:
            self._wholes.append((value, place))

    def outline(self, value: Any, path: Path, *, in_thought: bool = False) -> Any:
        """Return a value of the foreign message with references in place of the blocks' values."""
        if not in_thought and self._is_thought(path, value):
            number = len(self.thoughts)
            self.thoughts.append(None)
            self.thoughts[number] = self.outline(value, path, in_thought=True)
            return {_THOUGHT: number}
        if isinstance(value, str):
            return self._text(value, in_thought)
        if isinstance(value, bytes):
            return {_BYTES: self._text(in_base64(value), in_thought)}
        if isinstance(value, Mapping):
            if (place := self._whole(value)) is not None:
                return {_REFERENCE: list(place)}
            made = {
                key: self.outline(item, (*path, key), in_thought=in_thought)
                for key, item in value.items()
            }
            return {_LITERAL: made} if _MARKS & made.keys() else made
        if isinstance(value, list | tuple):
            if (place := self._whole(value)) is not None:
                return {_REFERENCE: list(place)}
            return [
                self.outline(item, (*path, number), in_thought=in_thought)
                for number, item in enumerate(value)
            ]
        return value

    def _whole(self, value: Any) -> _Place | None:
        for whole, place in self._wholes:
            if whole == value and _spelling(whole) == _spelling(value):
                return place
        return None

    def _text(self, text: str, in_thought: bool) -> Any:
        if in_thought:
            place = self._thinking.get(text) or self._texts.get(text)
            return text if place is None else {_REFERENCE: list(place)}
        if len(text) < _SHORTEST:
            return text
        place = self._texts.get(text) or self._thinking.get(text)
        if place is not None:
            return {_REFERENCE: list(place)}
        pieces = self._weave([text], self._woven)
        if len(pieces) > 1:
            pieces = self._weave(pieces, sorted(self._texts, key=len, reverse=True))
        else:
            pieces = self._weave(pieces, self._media)
        return text if len(pieces) == 1 else {_PIECES: pieces}

    def _weave(self, pieces: list[Any], values: Sequence[str]) -> list[Any]:
        """Return the pieces of a text with references in place of these values."""
        for value in values:
            if len(value) < _SHORTEST:
                continue
            place = self._thinking.get(value) or self._texts[value]
            parts: list[Any] = []
            for piece in pieces:
                if not isinstance(piece, str) or value not in piece:
                    parts.append(piece)
                    continue
                for number, rest in enumerate(piece.split(value)):
                    parts += [{_REFERENCE: list(place)}] if number else []
                    parts += [rest] if rest else []
            pieces = parts
        return pieces


def _spelling(value: Any) -> str:
    """Return JSON in which 1, 1.0 and True differ, and the order of keys counts."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)


class _Reader:
    """A stored message's blocks, and its form with their values."""

    def __init__(
        self, message: rs.Message, thoughts: Sequence[Any], withheld: Collection[int]
    ) -> None:
        self._thoughts = thoughts
        self._blocks: dict[tuple[Any, Any], rs.Block] = {}
        self._left_out: set[tuple[Any, Any]] = set()
        for at, index in _numbered(message.blocks):
            self._blocks[at] = message.blocks[index]
            if index in withheld:
                self._left_out.add(at)
        kept = [at for at in self._blocks if at[0] == "thinking" and at not in self._left_out]
        self._is_all_withheld = bool(self._left_out) and not kept
        self.is_whole = True

    def fill(self, outline: Any) -> Any:
        """Return the foreign value of an outline; ``_ABSENT`` where its block is gone."""
        if isinstance(outline, list | tuple):
            items = [self.fill(item) for item in outline]
            return [item for item in items if item is not _ABSENT]
        if not isinstance(outline, Mapping):
            return outline
        if len(outline) == 1:
            ((mark, value),) = outline.items()
            if mark == _REFERENCE:
                return self._value(value)
            if mark == _PIECES:
                return self._join(value)
            if mark == _THOUGHT:
                return self._thought(value)
            if mark == _BYTES:
                filled = self.fill(value)
                return filled if filled is _ABSENT else base64.b64decode(filled)
            if mark == _LITERAL:
                return self._members(value)
        return self._members(outline)

    def _members(self, outline: Mapping[str, Any]) -> Any:
        items = {key: self.fill(item) for key, item in outline.items()}
        left = {key: item for key, item in items.items() if item is not _ABSENT}
        return left if left or not items else _ABSENT

    def _thought(self, number: Any) -> Any:
        is_erased = not isinstance(number, int) or number >= len(self._thoughts)
        outline = None if is_erased else self._thoughts[number]
        blocks = {at for at in _references(outline) if at[0] == "thinking"}
        is_withheld = blocks & self._left_out or (not blocks and self._is_all_withheld)
        if is_erased or is_withheld:
            self.is_whole = False
            return _ABSENT
        return self.fill(outline)

    def _join(self, pieces: Sequence[Any]) -> str:
        """Join the pieces of a text; where a thought in it is gone, those of the blocks alone."""
        filled = [self.fill(piece) for piece in pieces]
        if _ABSENT not in filled:
            return "".join(filled)
        found = zip(pieces, filled, strict=True)
        return "".join(
            text for piece, text in found if text is not _ABSENT and isinstance(piece, Mapping)
        )

    def _value(self, place: Sequence[Any]) -> Any:
        at = (place[0], place[1])
        block = self._blocks.get(at)
        if block is None or at in self._left_out:
            return _ABSENT
        value: Any = getattr(block, place[2])
        for step in place[3:]:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return _ABSENT
        if isinstance(value, bytes):
            return in_base64(value)
        return _ABSENT if value is None else value


def _references(outline: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the blocks that an outline refers to."""
    if isinstance(outline, Mapping):
        if len(outline) == 1 and _REFERENCE in outline:
            place = outline[_REFERENCE]
            yield place[0], place[1]
            return
        for item in outline.values():
            yield from _references(item)
    elif isinstance(outline, list | tuple):
        for item in outline:
            yield from _references(item)
