"""The checks that a reader makes of an event before it remembers anything of it.

A reader asks for a field by name and kind. What is not of that kind is ``Malformed``: the
reader catches it once, at its door, and the whole event is one ``UnknownChunk``. Where the
rest of an event is worth having, a reader collects what is wrong instead of raising.

This module knows no protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reasoning_store.chunks import Chunk, UnknownChunk
from reasoning_store.wire.base import is_index, plain


class Malformed(Exception):
    """An event of a known kind lacks what its kind needs."""


def kind_of(raw: Any) -> str | None:
    """Return an event's type without opening the event: a snapshot in it may be long."""
    kind = raw.get("type") if isinstance(raw, Mapping) else getattr(raw, "type", None)
    return kind if isinstance(kind, str) else None


def string(data: Mapping[str, Any], name: str) -> str:
    """Return a field that must be a string."""
    value = data.get(name)
    if not isinstance(value, str):
        raise Malformed
    return value


def optional_string(data: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a string, or is not there."""
    return None if data.get(name) is None else string(data, name)


def mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field that must be an object."""
    value = plain(data.get(name))
    if not isinstance(value, Mapping):
        raise Malformed
    return value


def index(data: Mapping[str, Any], name: str) -> int:
    """Return a field that must be a place in a list."""
    value = data.get(name)
    if not is_index(value):
        raise Malformed
    return value


def optional_index(data: Mapping[str, Any], name: str) -> int | None:
    """Return a field that is a place in a list, or is not there."""
    return None if data.get(name) is None else index(data, name)


def with_unread(chunks: list[Chunk], wrong: Iterable[Any]) -> list[Chunk]:
    """Return the good parts of an event and, however many were bad, one unknown chunk."""
    for part in wrong:
        return [*chunks, UnknownChunk(raw=part)]
    return chunks


def object_in(value: Any, name: str, wrong: list[Any]) -> Mapping[str, Any] | None:
    """Return the object in a field, if there is one; anything else is wrong, by its name."""
    found = plain(value)
    if isinstance(found, Mapping):
        return found
    if value is not None:
        wrong.append({name: value})
    return None


def kept(value: Any, as_json: Callable[[Any], Any], wrong: list[Any]) -> Any:
    """Return as JSON what stands beside the rest of an event; too deep a value is wrong alone."""
    try:
        return as_json(value)
    except RecursionError:
        wrong.append(value)
        return None


class Said:
    """What was said of one text, so that an end that repeats it is not said again."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def rest(self, whole: str) -> str:
        """Return what ``whole`` adds; nothing where it is not a continuation."""
        said = "".join(self.pieces)
        return whole[len(said) :] if whole.startswith(said) else ""
