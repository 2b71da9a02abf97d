"""Columns to values, pure: a message and its state as they were given.

Written for the load of ten thousand messages: what stands plainly in a column is not
parsed, and the frozen values are filled past their constructors, which would cost as much
as reading the rows.

Knows blocks, codec and the columns' forms (``tables`` says what they hold); runs no SQL.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field, make_dataclass, replace
from typing import Any

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    Counts,
    Message,
    Origin,
    TextBlock,
    ThinkingBlock,
    Usage,
)
from reasoning_store.errors import CorruptRow
from reasoning_store.ledger.values import EXACTNESS, State, StoredRow

UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a row raises that nobody here wrote, or that was changed since."""
_scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def parsed(text: str) -> Any:
    """Return the value of stored JSON."""
    try:
        # A row holds one value with nothing around it, so there is no space to look for;
        # a leading one is the codec's own mark.
        if text[:1] != " ":
            value, end = _scan(text, 0)
            if end == len(text):
                return value
        return codec.loads(text)
    except (ValueError, StopIteration):
        raise CorruptRow("a stored row holds text that is not JSON") from None


def _twin(kind: Any) -> Any:
    """Return a class with the slots of ``kind`` that is filled by place and not frozen.

    Its objects become ``kind``'s own by taking that class: half the cost of a frozen
    constructor, which sets field after field through ``object.__setattr__``.
    """
    names = [(name, Any, field(default=None)) for name in kind.__slots__]
    return make_dataclass(f"_{kind.__name__}", names, slots=True, eq=False)


_Text, _Thinking = _twin(TextBlock), _twin(ThinkingBlock)
_Message, _Usage, _Counts, _Stored = (_twin(kind) for kind in (Message, Usage, Counts, StoredRow))


def _text_block(text: str | None) -> TextBlock:
    block: Any = _Text(text, None, "text")
    block.__class__ = TextBlock
    made: TextBlock = block
    return made


def _usage(data: dict[str, Any]) -> Usage:
    try:
        usage: Any = _Usage(**data)
    except TypeError:
        return codec.usage_from_json(data)
    usage.__class__ = Usage
    made: Usage = usage
    return made


def thinking_block(source_field: str | None, thought: str | None, data: str | None) -> Block:
    """Return the block of a row of ``thinking_blocks``."""
    if data is not None:
        fields = parsed(data)
        if thought is not None:
            fields["thought"] = thought
        if source_field is not None:
            fields["sourceField"] = source_field
        return codec.block_from_json({"type": "thinking", **fields})
    block: Any = _Thinking(thought, source_field, False, None, None, False, False, None, "thinking")
    block.__class__ = ThinkingBlock
    made: ThinkingBlock = block
    return made


def stored_row(
    branch: int,
    head: Sequence[Any],
    body: Sequence[Any],
    thoughts: list[tuple[Any, ...]] | None,
    origin: Origin | None,
) -> StoredRow:
    """Return a message from its rows.

    ``head`` is position, id, role, status, created_at, origin, visible, exactness, shape,
    digest; ``body`` is position, text, data; each of ``thoughts`` is position, ordinal,
    tokens, source_field, thought, data. None says that thoughts were not asked for, or
    that the message has none.
    """
    position, id_, role, status, created_at, _, visible, exactness, shape, digest_ = head
    _, text, data = body
    usage = finish = metadata = None
    blocks: tuple[Block, ...] = () if text is None else (_text_block(text),)
    if data is not None:
        fields = parsed(data)
        if "blocks" in fields:
            blocks = tuple(
                [
                    _text_block(text) if item is None else codec.block_from_json(item)
                    for item in fields["blocks"]
                ]
            )
        if "usage" in fields:
            usage = _usage(fields["usage"])
        finish = fields.get("finishReason")
        metadata = fields.get("metadata")
        if "responseId" in fields and origin is not None:
            origin = replace(origin, response_id=fields["responseId"])
    tokens: tuple[int, ...] = ()
    marks = None
    if shape is not None:
        if thoughts is None:
            marks = parsed(shape)
            tokens = tuple([mark[1] for mark in marks])
        elif not thoughts:
            raise CorruptRow(f"the thinking of message {position} is not there")
        elif len(thoughts) == 1 and not thoughts[0][1]:
            _, _, count, source_field, thought, more = thoughts[0]
            blocks = (thinking_block(source_field, thought, more), *blocks)
            tokens = (count,)
        else:
            together = list(blocks)
            for _, place, _, source_field, thought, more in thoughts:
                together.insert(place, thinking_block(source_field, thought, more))
            blocks = tuple(together)
            tokens = tuple([row[2] for row in thoughts])
    message: Any = _Message(role, blocks, status, origin, usage, finish, metadata)
    message.__class__ = Message
    counts: Any = _Counts(visible, tokens, EXACTNESS[exactness])
    counts.__class__ = Counts
    row: Any = _Stored(id_, position, branch, message, counts, created_at, digest_, False, marks)
    row.__class__ = StoredRow
    made: StoredRow = row
    return made


def state(position: int, columns: Sequence[Any]) -> State:
    """Return a state from its columns, in the order of ``state_columns``."""
    visible, portable, calls, opaque, turn, has_call, thinking, sent, reported, guessed = columns
    return State(
        position=position,
        visible=visible,
        portable=portable,
        portable_calls=calls,
        opaque={key: (own, part) for key, (own, part) in parsed(opaque).items()} if opaque else {},
        turn_start=turn,
        turn_has_call=bool(has_call),
        last_thinking=thinking,
        last_sent=sent,
        reported=reported,
        estimated=guessed,
    )
