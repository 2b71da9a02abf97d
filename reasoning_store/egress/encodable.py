"""What a request has no way to say, mended: half of a character, a number that is none.

A string with half of a character is stored as it came, and no HTTP client can send it: in the
request stands what ``surrogates`` makes of it.

Pure: it knows values, and mends whatever strings are in them. What needs nothing is
returned as it is. It must not know what a value means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from math import isfinite
from operator import attrgetter
from typing import Any, Final, TypeVar, get_args

from reasoning_store.blocks import Block
from reasoning_store.surrogates import encodable, is_encodable

_Value = TypeVar("_Value")
_Block = TypeVar("_Block", bound=Block)


def needs_mending(block: Block) -> bool:
    """Whether anything in a block cannot be sent."""
    return not all(map(_can_go, _VALUES[type(block)](block)))


def mended_block(block: _Block) -> _Block:
    """Return a block that can be sent: this one, or one with other strings."""
    if not needs_mending(block):
        return block
    changed = {}
    for name in _SENT[type(block)]:
        value = getattr(block, name)
        other = mended(value)
        if other is not value:
            changed[name] = other
    return replace(block, **changed)


_SENT: Final[Mapping[type, tuple[str, ...]]] = {
    kind: tuple([item.name for item in fields(kind) if item.name != "source_field"])
    for kind in get_args(Block)
}
"""The fields of each type that a body can hold. The one that a thought came in is compared with
those that a provider knows, and is sent only where it is one of them."""
_VALUES: Final[Mapping[type, Callable[[Any], tuple[Any, ...]]]] = {
    kind: attrgetter(*names) for kind, names in _SENT.items()
}


def _can_go(value: Any) -> bool:
    """Whether nothing in a value of JSON needs mending: what nearly every value is asked."""
    kind = type(value)
    if kind is str:
        return is_encodable(value)
    if value is None or kind is bool:
        return True
    if kind is dict:
        return all([_can_go(name) and _can_go(item) for name, item in value.items()])
    if kind is list:
        return all(map(_can_go, value))
    return _mended(value) is _AS_IT_IS


def mended(value: _Value) -> _Value:
    """Return a value of JSON that can be sent: this one, or one with other leaves."""
    other = _mended(value)
    return value if other is _AS_IT_IS else other


def is_torn(block: Block) -> bool:
    """Whether anything in a block is half of a character; what else is mended is a number."""
    return any(
        not is_encodable(text)
        for name in _SENT[type(block)]
        for text in _strings(getattr(block, name))
    )


_AS_IT_IS: Final = object()


def _mended(value: Any) -> Any:
    """Return what stands for a value, or ``_AS_IT_IS`` where it can be sent so."""
    if isinstance(value, str):
        return _AS_IT_IS if is_encodable(value) else encodable(value)
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
