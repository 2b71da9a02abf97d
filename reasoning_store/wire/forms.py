"""What a text alone becomes in a protocol, learnt from one that was written.

Theory. Thousands of messages that are nothing but a text are written alike: all that tells
one from the next is the text. So one is written in the ordinary way, with a mark for a text,
and the place where the mark comes out is the place where every other text goes. A message
that comes out as anything else than one part with the mark in one place has no form, and is
written by itself.

It knows JSON. It must not know a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from reasoning_store.wire.copying import Shapes

Form: TypeAlias = Callable[[str], dict[str, Any]]
"""Makes the part that a text becomes."""
Path: TypeAlias = tuple[Any, ...]

MARK = "a text that stands for others"


def learnt(written: Sequence[dict[str, Any]]) -> Form | None:
    """Return the form of what ``MARK`` was written as; None where it has none."""
    if len(written) != 1:
        return None
    part = written[0]
    places = list(_places(part, ()))
    if len(places) != 1:
        return None
    *inside, last = places[0]
    copier = Shapes().copier(part)

    def form(text: str) -> dict[str, Any]:
        made: dict[str, Any] = copier(part)
        at: Any = made
        for step in inside:
            at = at[step]
        at[last] = text
        return made

    return form


def _places(value: Any, path: Path) -> Iterator[Path]:
    """Yield where the mark stands."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places(item, (*path, number))
    elif value == MARK:
        yield path
