"""What UTF-8 has no bytes for, mended in a request: half of a character.

A Python string can hold a surrogate without its other half, as a stream leaves it that was
cut in the middle of an emoji. It is stored as it came; no HTTP client can send it. In the
request U+FFFD stands in its place, the sign for a character that is not known; two halves
that had come to stand side by side are the character they spell.

Pure: it knows values, and mends whatever strings are in them. What needs nothing is
returned as it is. It must not know what a value means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

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
    """Return a value of JSON that can be sent: this one, or one with other strings."""
    other = _mended(value)
    return value if other is None else other


def _mended(value: Any) -> Any:
    """Return what stands for a value, or ``None`` where it can be sent as it is."""
    if isinstance(value, str):
        return None if is_encodable(value) else _whole(value)
    if isinstance(value, Mapping):
        pairs = [(name, item, _mended(name), _mended(item)) for name, item in value.items()]
        if all(name is None and item is None for _, _, name, item in pairs):
            return None
        return {
            name if new_name is None else new_name: item if new is None else new
            for name, item, new_name, new in pairs
        }
    if isinstance(value, list | tuple):
        items = [_mended(item) for item in value]
        if all(item is None for item in items):
            return None
        return [old if new is None else new for old, new in zip(value, items, strict=True)]
    return None


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
