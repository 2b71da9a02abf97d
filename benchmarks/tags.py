"""The tag filter: prose of which every second paragraph is a thought, in small deltas.

Each piece of text is kept in a list, as an accumulator would keep it. The rival compares a
delta with the tag and does not look inside one, so every tag is a delta of its own; ours
looks inside each of them all the same, and one row has its tags cut anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from benchmarks.timing import timed
from benchmarks.workload import Prepare, Sample, Setting
from reasoning_store.ingress.tags import TagFilter

Drive = Callable[[list[str]], None]
_PARAGRAPH = 1500


def mixed(size: int, paragraph: int) -> Iterator[str]:
    """Prose in paragraphs of equal length, every second one a thought, some of it ``<``."""
    chance = random.Random(1)
    words = ["so", "we", "try", "seven", "times", "thirteen", "and", "find", "ninety", "one"]
    given = 0
    thought = False
    while given < size:
        body = " ".join(chance.choices([*words, "a", "x"], k=paragraph // 3))
        body = body.replace(" a x ", " a < x ")[:paragraph]
        yield from ("<think>", body, "</think>") if thought else (body,)
        thought = not thought
        given += len(body)


def pieces(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


@cache
def deltas(size: int, length: int, *, whole_tags: bool = True) -> list[str]:
    parts = list(mixed(size, max(length, _PARAGRAPH)))
    if not whole_tags:
        parts = ["".join(parts)]
    return [piece for part in parts for piece in pieces(part, length)]


def driven(factory: Callable[[], Drive], length: int, *, whole_tags: bool = True) -> Prepare:
    """Return a contender that filters a text with a fresh filter; a figure is one delta."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        stream = deltas(setting.size, length, whole_tags=whole_tags)
        go = timed(setting, lambda: factory()(stream))
        yield lambda: go() / len(stream)

    return prepare


def ours() -> Drive:
    tag_filter = TagFilter()
    kept: list[str] = []

    def drive(stream: list[str]) -> None:
        feed = tag_filter.feed
        keep = kept.append
        for delta in stream:
            for run in feed(delta):
                keep(run.text)
        tag_filter.finish()

    return drive


def floor() -> Drive:
    """A loop that looks for the one character that can open a tag, and keeps the rest."""
    kept: list[str] = []

    def drive(stream: list[str]) -> None:
        keep = kept.append
        for delta in stream:
            if "<" not in delta:
                keep(delta)

    return drive


# What makes a careless filter hold without bound, or look twice.
_HOSTILE = (
    "<",
    "<think>",
    "<thin",
    "<think></think>",
    "</think>",
    "<" + " " * 16,
    "<thi<think></think>nk>",
)


@cache
def hostile(size: int) -> list[list[str]]:
    """Texts of so many characters, each in pieces of several lengths."""
    texts = [(unit * (size // len(unit) + 1))[:size] for unit in _HOSTILE]
    texts += ["<" + " " * size, "<thi" * (size // 8) + "nk>" * (size // 8)]
    return [pieces(text, length) for text in texts for length in (1, 4, 64, len(text))]


@contextmanager
def on_hostile(setting: Setting) -> Iterator[Sample]:
    """All of the hostile texts; a figure is one character."""
    streams = hostile(setting.size)
    characters = sum(len(piece) for stream in streams for piece in stream)

    def drive() -> None:
        for stream in streams:
            ours()(stream)

    go = timed(setting, drive)
    yield lambda: go() / characters
