"""The places of a request: which block was written where in its body.

Theory. The same view is written a second time with a label in place of each block's texts, seals
and bytes. All that decides about the form of the body is as it was, so a label is found where its
block was written, whatever the protocol. Nothing is noted while a request is built: the places are
read only after a refusal.

A place that holds several blocks, such as a string that joins thoughts, names all of them. A text
that a repair put in names none.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    with_blocks,
)
from reasoning_store.egress.selection_values import ViewedMessage
from reasoning_store.wire.content_parts import result_parts
from reasoning_store.wire.tools import parse_arguments


class Place(NamedTuple):
    """A block of the conversation, or one piece of a tool's result."""

    message: int
    """The message's position in the session, or its index in the list that was given."""
    block: int
    piece: int | None = None
    """The index of the piece in a result that has media; None: the block."""


Key: TypeAlias = "tuple[int, ...] | str"
"""The place of something written: the indexes of its message, part and piece, or its id."""
Places: TypeAlias = Mapping[Key, tuple[Place, ...]]


def labelled_view(view: Iterable[ViewedMessage]) -> list[ViewedMessage]:
    """Return a view whose blocks have labels as their content; a summary has none."""
    return [item if item.summary else item._replace(message=_labelled(item)) for item in view]


def read_places(body: Sequence[Any], labelled: Sequence[Any]) -> Places:
    """Return the places of written messages, by the labels of their second writing."""
    places: dict[Key, tuple[Place, ...]] = {}
    if len(body) != len(labelled):
        return places
    for number, (written, other) in enumerate(zip(body, labelled, strict=True)):
        _read_part((number,), other, places)
        _read_ids(written, other, places)
    return places


# Labels


_MARK: Final = "place="  # its length is a multiple of 3, so its base64 begins alike
_LABEL: Final = re.compile(rf"{_MARK}(\d+)/(\d+)/(\d*);")
_LABEL64: Final = re.compile(rf"{b64encode(_MARK.encode()).decode()}[A-Za-z0-9]+=*")


def _label(place: Place) -> str:
    piece = "" if place.piece is None else place.piece
    return f"{_MARK}{place.message}/{place.block}/{piece};"


def _label64(place: Place) -> str:
    return b64encode(_label(place).encode()).decode()


def _labels_in(value: Any) -> Iterable[Place]:
    """Yield the places whose labels a value has."""
    if isinstance(value, str):
        whole = [b64decode(found).decode() for found in _LABEL64.findall(value)]
        for message, block, piece in _LABEL.findall("".join([value, *whole])):
            yield Place(int(message), int(block), int(piece) if piece else None)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _labels_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _labels_in(item)


def _labelled(item: ViewedMessage) -> Message:
    return with_blocks(
        item.message,
        [
            _labelled_block(block, Place(item.number, place), item.message)
            for place, block in item.blocks
        ],
    )


def _labelled_block(block: Block, place: Place, message: Message) -> Block:
    """Return a block with labels in place of its content; what is blank stays blank."""
    match block:
        case TextBlock():
            return replace(block, text=_label(place)) if block.text.strip() else block
        case ThinkingBlock():
            return replace(
                block,
                thought=block.thought and _label(place),
                signature=block.signature and _label64(place),
                encrypted=block.encrypted and _label64(place),
            )
        case ToolCallBlock():
            return _labelled_call(block, place, message)
        case ToolResponseBlock():
            return replace(block, result=_labelled_result(block, place))
        case MediaBlock():
            return _labelled_medium(block, place)
        case RawBlock() if block.answered_call and "output" in block.data:
            return replace(block, data={**block.data, "output": _label(place)})
    return block


def _labelled_call(call: ToolCallBlock, place: Place, message: Message) -> ToolCallBlock:
    """Return a call with a label among its parameters; one that was cut off stays so."""
    if call.arguments is None or not call.arguments.strip():
        is_cut_off = message.status == "interrupted" and not call.parameters
    else:
        is_cut_off = parse_arguments(call.arguments) is None
        if is_cut_off:
            return replace(call, arguments=f"{_label(place)}{{")
    if is_cut_off:
        return call
    parameters = {"input": _label(place)}
    return replace(call, parameters=parameters, arguments=codec.dumps(parameters))


def _labelled_result(block: ToolResponseBlock, place: Place) -> Any:
    """Return a label for each piece of a result that has media, or one for the whole."""
    parts = result_parts(block)
    if parts is None:
        return _label(place)
    pieces = (
        _labelled_block(part, place._replace(piece=number), Message(role="tool"))
        for number, part in enumerate(parts)
    )
    return codec.blocks_to_json(pieces)


def _labelled_medium(block: MediaBlock, place: Place) -> MediaBlock:
    if block.data is not None:
        return replace(block, data=_label(place).encode())
    if block.url is not None and not block.url.startswith("data:"):
        return replace(block, url=f"{block.url}#{_label(place)}")
    return block


# Places


_LISTS: Final = ("content", "parts", "summary", "output")


def _read_part(key: tuple[int, ...], labelled: Any, places: dict[Key, tuple[Place, ...]]) -> None:
    """Note the blocks of a message, part or piece, and of the parts that it lists."""
    if found := tuple(dict.fromkeys(_labels_in(labelled))):
        places[key] = found
    inner = labelled.get("toolResult", labelled) if isinstance(labelled, Mapping) else {}
    listed = next((inner[name] for name in _LISTS if inner.get(name)), None)
    if isinstance(listed, str):
        listed = [listed]
    if isinstance(listed, list) and len(key) < _DEEPEST:
        for number, part in enumerate(listed):
            _read_part((*key, number), part, places)


_DEEPEST: Final = 3
_IDS: Final = ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId")


def _read_ids(written: Any, labelled: Any, places: dict[Key, tuple[Place, ...]]) -> None:
    """Note the blocks of each id that was written; a call and its response share one."""
    if isinstance(written, Mapping) and isinstance(labelled, Mapping):
        for name in _IDS:
            if isinstance(item := written.get(name), str) and item:
                found = (*places.get(item, ()), *_labels_in(labelled))
                places[item] = tuple(dict.fromkeys(found))
        for name, value in written.items():
            _read_ids(value, labelled.get(name), places)
    elif isinstance(written, list) and isinstance(labelled, list):
        for one, other in zip(written, labelled, strict=False):
            _read_ids(one, other, places)
