"""Arguments of one Gemini call that arrive in pieces, each with its JSON path.

A path is ``$`` followed by ``.name``, ``['name']`` and ``[0]``, at most 64 of them. Pieces of
one string are appended in order; any other value arrives whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from reasoning_store.wire.event_fields import Malformed
from reasoning_store.wire.gemini.spellings import field

Path: TypeAlias = tuple[str | int, ...]

_PATH: Final = re.compile(r"\$(?:\.[^.\[\]]+|\[\d{1,6}\]|\['[^']*'\]){1,64}")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_VALUES: Final[Mapping[str, tuple[type, ...]]] = {
    "stringValue": (str,),
    "numberValue": (int, float),
    "boolValue": (bool,),
    "nullValue": (str,),
}


class ArgumentPieces:
    """The pieces of one call's arguments so far, by path."""

    def __init__(self) -> None:
        self._values: dict[Path, Any] = {}
        self._strings: dict[Path, list[str]] = {}

    def add(self, pieces: Iterable[Any]) -> None:
        """Take in the pieces of one event: all of them, or none where one is malformed."""
        for path, value in [_read(piece) for piece in pieces]:
            self._values[path] = value
            if isinstance(value, str):
                self._strings.setdefault(path, []).append(value)

    def value(self) -> dict[str, Any]:
        """Return the arguments as far as they have come."""
        root: dict[str | int, Any] = {}
        for path, value in self._values.items():
            node = root
            for step in path[:-1]:
                child = node.get(step)
                node = node.setdefault(step, {}) if isinstance(child, dict | None) else {}
            node[path[-1]] = "".join(self._strings[path]) if path in self._strings else value
        return {str(name): _listed(item) for name, item in root.items()}


def _read(piece: Any) -> tuple[Path, Any]:
    if not isinstance(piece, Mapping):
        raise Malformed
    path = field(piece, "jsonPath")
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise Malformed
    steps: Path = tuple(
        int(match[2]) if match[2] is not None else match[1] or match[3] or ""
        for match in _STEP.finditer(path)
    )
    for name, kinds in _VALUES.items():
        value = field(piece, name)
        if type(value) in kinds:
            return steps, None if name == "nullValue" else value
    raise Malformed


def _listed(node: Any) -> Any:
    """Return objects whose every name is a place as the lists that they are."""
    if not isinstance(node, dict):
        return node
    children = {name: _listed(child) for name, child in node.items()}
    if all(type(name) is int for name in children):
        return [children[place] for place in sorted(children)]
    return {str(name): child for name, child in children.items()}
