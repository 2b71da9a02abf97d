"""What a text alone becomes in a protocol, learnt from one that was written.

Theory. Thousands of messages that are nothing but a text, or a thought and a text, are
written alike: all that tells one from the next is the words. So one is written in the
ordinary way, with a mark for each, and the place where a mark comes out is the place where
every other text goes. A message that comes out as anything else than one part with each
mark in one place has no form, and is written by itself.

It knows JSON. It must not know a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from reasoning_store.wire.copying import Shapes

Form: TypeAlias = Callable[..., dict[str, Any]]
"""Makes the part that texts become, given in the order of their marks."""
Path: TypeAlias = tuple[Any, ...]

MARK = "a text that stands for others"
THOUGHT = "a thought that stands for others"


def learnt(written: Sequence[dict[str, Any]], *marks: str) -> Form | None:
    """Return the form of what ``marks`` were written as; None where they have none."""
    if len(written) != 1:
        return None
    part = written[0]
    paths = []
    for mark in marks:
        found = list(_places(part, mark, ()))
        if len(found) != 1 or found[0] is None:
            return None
        paths.append(found[0])
    copier = Shapes().copier(part)
    (*inside, last), *others = paths

    def form(text: str) -> dict[str, Any]:
        made: dict[str, Any] = copier(part)
        at: Any = made
        for step in inside:
            at = at[step]
        at[last] = text
        return made

    def longer(text: str, *more: str) -> dict[str, Any]:
        made = form(text)
        for (*steps, end), other in zip(others, more, strict=True):
            at: Any = made
            for step in steps:
                at = at[step]
            at[end] = other
        return made

    return longer if others else form


def _places(value: Any, mark: str, path: Path) -> Iterator[Path | None]:
    """Yield where a mark stands; None where it is a piece of something else."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, mark, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places(item, mark, (*path, number))
    elif isinstance(value, str) and mark in value:
        yield path if value == mark else None
