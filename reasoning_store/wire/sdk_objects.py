"""SDK objects as dicts, one level at a time.

``base.plain`` dumps an object whole. On the hot path of a stream most of an event is never
looked at, so a reader opens what it is about to read and leaves the rest as it is.

Knows how the SDKs' models are built; must not know what any of them means.
"""

from __future__ import annotations

from typing import Any

from reasoning_store.wire.base import plain

_transparent: dict[type, bool] = {}
"""What was found out about a class: a fact, found once. The SDKs' classes are few."""


def opened(value: Any) -> Any:
    """Return an SDK's object as one dict, its parts as they are; a dict as it is."""
    kind = type(value)
    if kind is dict:
        return value
    known = _transparent.get(kind)
    if known is None:
        known = _transparent[kind] = _is_transparent(kind)
    if not known:
        return plain(value)
    extra = value.__pydantic_extra__
    return {**value.__dict__, **extra} if extra else value.__dict__


def _is_transparent(kind: type) -> bool:
    """Whether a model's attributes are its JSON: no field is renamed, none rewritten."""
    decorators = getattr(kind, "__pydantic_decorators__", None)
    fields = getattr(kind, "__pydantic_fields__", None)
    return (
        decorators is not None
        and fields is not None
        and not decorators.model_serializers
        and not decorators.field_serializers
        and all(item.alias is None and item.serialization_alias is None for item in fields.values())
    )
