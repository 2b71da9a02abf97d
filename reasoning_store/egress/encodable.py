"""What a request has no way to say, mended: half of a character, a number that is none.

A Python string can hold a surrogate without its other half, as a stream leaves it that was
cut in the middle of an emoji. It is stored as it came; no HTTP client can send it. In the
request U+FFFD stands in its place, the sign for a character that is not known; two halves
that had come to stand side by side are the character they spell.

Pure: it knows values, and mends whatever strings are in them. What needs nothing is
returned as it is. It must not know what a value means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from math import isfinite
from typing import Any, Final, TypeVar

from reasoning_store.blocks import Block, TextBlock, ThinkingBlock

_Value = TypeVar("_Value")
_Block = TypeVar("_Block", bound=Block)


def is_encodable(text: str) -> bool:
    """Whether a text can be sent."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def needs_mending(block: Block) -> bool:
    """Whether anything in a block cannot be sent."""
    return mended_block(block) is not block


def mended_block(block: _Block) -> _Block:
    """Return a block that can be sent: this one, or one with other strings."""
    if _is_plain(block):
        return block
    changed = {}
    for item in fields(block):
        value = getattr(block, item.name)
        other = mended(value)
        if other is not value:
            changed[item.name] = other
    return replace(block, **changed) if changed else block


def _is_plain(block: Block) -> bool:
    """Whether a block is nothing but texts that can be sent, as nearly all are."""
    if isinstance(block, TextBlock) and block.provider_metadata is None:
        return is_encodable(block.text)
    if isinstance(block, ThinkingBlock) and block.provider_metadata is None:
        texts = (block.thought, block.source_field, block.signature, block.encrypted)
        return all([is_encodable(text) for text in texts if text])
    return False


def mended(value: _Value) -> _Value:
    """Return a value of JSON that can be sent: this one, or one with other leaves."""
    other = _mended(value)
    return value if other is _AS_IT_IS else other


def is_torn(block: Block) -> bool:
    """Whether anything in a block is half of a character; what else is mended is a number."""
    return any(
        not is_encodable(text)
        for item in fields(block)
        for text in _strings(getattr(block, item.name))
    )


_AS_IT_IS: Final = object()


def _mended(value: Any) -> Any:
    """Return what stands for a value, or ``_AS_IT_IS`` where it can be sent so."""
    if isinstance(value, str):
        return _AS_IT_IS if is_encodable(value) else _whole(value)
    if isinstance(value, float):
        return _AS_IT_IS if isfinite(value) else None
    if isinstance(value, Mapping):
        pairs = [(name, item, _mended(name), _mended(item)) for name, item in value.items()]
        if all(name is _AS_IT_IS and item is _AS_IT_IS for _, _, name, item in pairs):
            return _AS_IT_IS
        return {
            name if new_name is _AS_IT_IS else new_name: item if new is _AS_IT_IS else new
            for name, item, new_name, new in pairs
        }
    if isinstance(value, list | tuple):
        items = [_mended(item) for item in value]
        if all(item is _AS_IT_IS for item in items):
            return _AS_IT_IS
        return [old if new is _AS_IT_IS else new for old, new in zip(value, items, strict=True)]
    return _AS_IT_IS


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _strings(name)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
