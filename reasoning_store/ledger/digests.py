"""What a message is compared by: a digest of its canonical JSON.

The canonical text is that of ``codec.message_to_json`` with all keys sorted and no space in
it. It is made for every message that is stored, so it is written straight from the fields
and the JSON value is never built; only what an application gave as JSON goes through the
encoder.

Knows blocks and codec; knows no SQL.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from reasoning_store import codec
from reasoning_store.blocks import Block, MediaBlock, Message, RawBlock
from reasoning_store.errors import UsageError


def digest(message: Message) -> bytes:
    """Return 16 bytes of BLAKE2b over the canonical JSON of the whole message.

    Keys are sorted, so that equal messages have equal digests; surrogates are encoded one
    by one, so that no two strings share one. Keys that are no strings become what JSON
    makes of them before they are sorted: the message is read back with those.
    """
    try:
        text = canonical(message)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"a message cannot be written as JSON: {type(error).__name__}",
            hint="use strings, numbers, booleans, None, lists and dicts with string keys",
        ) from None
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def canonical(message: Message) -> str:
    """Return the JSON text of a whole message, its keys sorted. Raises what the encoder does."""
    blocks = ",".join([_block(block) for block in message.blocks])
    return f'{{"blocks":[{blocks}]{_fields(message)}}}'


def _block(block: Block) -> str:
    if type(block) is MediaBlock or type(block) is RawBlock:
        return _value(codec.block_to_json(block))  # their JSON is not just their fields
    return f"{{{_fields(block)[1:]}}}"


def _fields(value: Any) -> str:
    """Return the fields of a value that are not at their default, a comma before each."""
    text = ""
    for name, label, default in _SORTED[type(value)]:
        item = getattr(value, name)
        if item is default:
            continue
        kind = type(item)
        if kind is str:
            if item != default:
                text += label + _quoted(item)
        elif kind in _SORTED:
            text += f"{label}{{{_fields(item)[1:]}}}"
        else:
            text += label + _value(item)
    return text


def _value(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if isinstance(value, _NESTED) and not _has_names(value):
        value = codec.loads(codec.dumps(value))
    return _encode(value)


def _has_names(value: Any) -> bool:
    """Whether all keys in a value are strings."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or (isinstance(item, _NESTED) and not _has_names(item)):
                return False
        return True
    return all([not isinstance(item, _NESTED) or _has_names(item) for item in value])


_NESTED = (dict, list, tuple)
_quoted = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_SORTED: dict[type, tuple[tuple[str, str, Any], ...]] = {
    kind: tuple(
        (name, f',"{json_name}":', default)
        for name, json_name, default in sorted(codec.written(kind), key=lambda field: field[1])
        if name != "blocks"
    )
    for kind in codec.KINDS
}
"""Of each kind its fields by their JSON names: name, what stands before its value, default."""
