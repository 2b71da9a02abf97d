"""The fields of an event, checked before a reader remembers anything of it.

A reader asks for a field by name and kind. A value of another kind is ``Malformed``: the reader
catches it once, at its door, and the whole event is one ``UnknownChunk``. If the rest of an event
is worth having, a reader collects the wrong values instead of raising.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeGuard

from reasoning_store.conversation.chunks import Chunk, UnknownChunk

DONE: Final = "[DONE]"
"""The end of a stream, where it comes as an event."""

# Events and SDK objects as dicts


def plain_value(raw: Any) -> Any:
    """Return an SDK's object as the dicts and lists it was made from; dicts as they are."""
    if isinstance(raw, dict | list | str | bytes) or raw is None:
        return raw
    dump = getattr(raw, "model_dump", None)
    if callable(dump):
        try:
            return dump(by_alias=True, exclude_unset=True, warnings=False)
        except TypeError:  # a look-alike of pydantic's with fewer options
            return dump()
    if isinstance(raw, Mapping):
        return dict(raw)
    to_dict = getattr(raw, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    attributes = getattr(raw, "__dict__", None)
    if isinstance(attributes, dict):
        return {
            name: plain_value(value)
            for name, value in attributes.items()
            if not name.startswith("_")
        }
    return raw


def shallow_dict(value: Any) -> Any:
    """Return an SDK's object as one dict, its parts as they are; a dict as it is.

    Most of an event of a stream is never read, so a reader opens one level at a time.
    """
    kind = type(value)
    if kind is dict:
        return value
    known = _transparent.get(kind)
    if known is None:
        known = _transparent[kind] = _is_transparent(kind)
    if not known:
        return plain_value(value)
    extra = value.__pydantic_extra__
    return {**value.__dict__, **extra} if extra else value.__dict__


_transparent: dict[type, bool] = {}
"""The classes seen so far; those of the SDKs are few."""


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


def other_fields(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a mapping that are not in ``names`` and not ``None``."""
    left_out = frozenset(names)
    return {
        name: value for name, value in data.items() if name not in left_out and value is not None
    }


def unknown_event(raw: Any) -> list[Chunk]:
    return [UnknownChunk(raw=raw)]


# Numbers


def is_index(value: Any) -> TypeGuard[int]:
    """Whether a value can number a choice, a block or a call: NaN, True and -1 cannot."""
    return type(value) is int and value >= 0


def whole_number(value: Any) -> int | None:
    """Return a reported token count, or ``None`` for any other value. Absent is not zero."""
    if type(value) is int and value >= 0:
        return value
    if type(value) is float and value >= 0 and value.is_integer():
        return int(value)
    return None


# Fields of one kind


class Malformed(Exception):
    """An event of a known kind lacks what its kind needs."""


def event_type(raw: Any) -> str | None:
    """Return an event's type without opening the event: a snapshot in it may be long."""
    kind = raw.get("type") if isinstance(raw, Mapping) else getattr(raw, "type", None)
    return kind if isinstance(kind, str) else None


def string_field(data: Mapping[str, Any], name: str) -> str:
    """Return a field that must be a string."""
    value = data.get(name)
    if not isinstance(value, str):
        raise Malformed
    return value


def optional_string_field(data: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a string, or is not there."""
    return None if data.get(name) is None else string_field(data, name)


def mapping_field(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field that must be an object."""
    value = plain_value(data.get(name))
    if not isinstance(value, Mapping):
        raise Malformed
    return value


def index_field(data: Mapping[str, Any], name: str) -> int:
    """Return a field that must be a place in a list."""
    value = data.get(name)
    if not is_index(value):
        raise Malformed
    return value


def optional_index_field(data: Mapping[str, Any], name: str) -> int | None:
    """Return a field that is a place in a list, or is not there."""
    return None if data.get(name) is None else index_field(data, name)


def with_unknown_part(chunks: list[Chunk], wrong: Iterable[Any]) -> list[Chunk]:
    """Return the good parts of an event and, however many were bad, one unknown chunk."""
    for part in wrong:
        return [*chunks, UnknownChunk(raw=part)]
    return chunks


def optional_mapping(value: Any, name: str, wrong: list[Any]) -> Mapping[str, Any] | None:
    """Return the object of a field, or None; any other value is put into ``wrong`` by its name."""
    found = plain_value(value)
    if isinstance(found, Mapping):
        return found
    if value is not None:
        wrong.append({name: value})
    return None


class StreamedText:
    """The pieces of one text that arrived, so that an end that repeats them adds nothing."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def rest(self, whole: str) -> str:
        """Return the text that ``whole`` adds; nothing where it is no continuation."""
        streamed = "".join(self.pieces)
        return whole[len(streamed) :] if whole.startswith(streamed) else ""
