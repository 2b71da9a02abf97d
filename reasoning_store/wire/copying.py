"""Copies of JSON, made fast where many values have few shapes.

Theory. A copy is one's own where every list and dict in it is; texts and numbers never
change and are shared. Which of a value's members are containers is its shape. Looking for
them costs as much as copying does, so a value that is copied again and again is looked
through once, and what was found is kept as a function that copies this shape: of a flat
dict it is ``dict.copy`` itself.

``Shapes`` belongs to whoever keeps the values, and goes with them: a shape has the keys of
its dicts, which may be a user's own. It knows containers. It must not know a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

Copier: TypeAlias = Callable[[Any], Any]
"""Makes a copy of any value of one shape."""


def copied(value: Any) -> Any:
    """Return JSON as objects of one's own."""
    return Shapes().copier(value)(value)


class Shapes:
    """The shapes that were met, and what copies each. Any number of threads may ask."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Copier] = {}

    def copier(self, value: Any) -> Copier:
        """Return what copies this value, and every other of its shape."""
        if type(value) is dict:
            inside = tuple(
                [(key, self.copier(item)) for key, item in value.items() if _holds(item)]
            )
            return self._once(inside, _of_dict) if inside else dict.copy
        if type(value) is list:
            items = tuple([self.copier(item) if _holds(item) else _itself for item in value])
            kinds = set(items)
            if kinds <= {_itself}:
                return list.copy
            if len(kinds) == 1:
                return self._once(items[0], _of_alike)
            return self._once(items, _of_list)
        return _itself

    def _once(self, shape: Any, make: Callable[[Any], Copier]) -> Copier:
        key = (make, shape)
        found = self._known.get(key)
        return self._known.setdefault(key, make(shape)) if found is None else found


def _holds(item: Any) -> bool:
    return type(item) is dict or type(item) is list


def _itself(value: Any) -> Any:
    return value


def _of_dict(inside: tuple[tuple[str, Copier], ...]) -> Copier:
    def several(value: dict[str, Any]) -> dict[str, Any]:
        out = value.copy()
        for key, inner in inside:
            out[key] = inner(value[key])
        return out

    if len(inside) > 1:
        return several
    ((only, its),) = inside

    def one(value: dict[str, Any]) -> dict[str, Any]:
        out = value.copy()
        out[only] = its(value[only])
        return out

    return one


def _of_alike(item: Copier) -> Copier:
    def alike(value: list[Any]) -> list[Any]:
        return [*map(item, value)]

    return alike


def _of_list(items: tuple[Copier, ...]) -> Copier:
    def unlike(value: list[Any]) -> list[Any]:
        return [item(part) for item, part in zip(items, value, strict=True)]

    return unlike
