"""What a text alone becomes in a protocol, learnt from one that was written.

Theory. Thousands of messages that are nothing but a text, or a thought and a text, are
written alike: all that tells one from the next is the words, and what signs them. So one is
written in the ordinary way, with a mark for each, and the place where a mark comes out is
the place where every other text goes. A message that comes out as anything else than one
part with each mark in one place has no form, and is written by itself.

It knows JSON. It must not know a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

Words: TypeAlias = tuple[str | None, ...]
Form: TypeAlias = Callable[[Words], dict[str, Any]]
"""Makes the part that words become, given in the order of their marks. It passes over what
stands behind them."""
Maker: TypeAlias = Callable[[Words], Any]

MARK = "a text that stands for others"
THOUGHT = "a thought that stands for others"
SIGNATURE = "a signature that stands for others"


def learnt(written: Sequence[dict[str, Any]], *marks: str) -> Form | None:
    """Return the form of what ``marks`` were written as; None where they have none."""
    if len(written) != 1:
        return None
    told = [text for text in _texts(written[0]) if any(mark in text for mark in marks)]
    # Each stands in one place, and is no piece of something else.
    return _of_dict(written[0], marks) if sorted(told) == sorted(marks) else None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _maker(value: Any, marks: Sequence[str]) -> Maker | None:
    """Return what makes a value like this one; None where it is always the same."""
    if isinstance(value, dict):
        return _of_dict(value, marks)
    if isinstance(value, list):
        return _of_list(value, marks)
    return itemgetter(marks.index(value)) if value in marks else None


def _of_dict(value: dict[str, Any], marks: Sequence[str]) -> Form:
    inside = [
        (key, make) for key, item in value.items() if (make := _maker(item, marks)) is not None
    ]

    def several(words: Words) -> dict[str, Any]:
        out = value.copy()
        for key, make in inside:
            out[key] = make(words)
        return out

    if len(inside) != 1:
        return several
    ((only, its),) = inside

    def one(words: Words) -> dict[str, Any]:
        out = value.copy()
        out[only] = its(words)
        return out

    return one


def _of_list(value: list[Any], marks: Sequence[str]) -> Maker:
    inside = [
        (at, make) for at, item in enumerate(value) if (make := _maker(item, marks)) is not None
    ]

    def made(words: Words) -> list[Any]:
        out = value.copy()
        for at, make in inside:
            out[at] = make(words)
        return out

    return made
