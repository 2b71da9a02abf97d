"""Runs of the tag filter, and the texts that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reasoning_store.ingress.tags import Run, TagFilter

MOST_HELD = 120
"""Two delimiters with the usual names: the most characters that a filter of them holds."""
MOST_HELD_OF_ALL = 316
"""The same with every family: a header of harmony with a constraint is the longest."""


class Outcome(NamedTuple):
    """Everything that a caller can learn, adjacent pieces of one channel put together."""

    runs: tuple[Run, ...]
    interrupted: bool

    @property
    def stripped(self) -> int:
        return sum(run.phase != "delta" and run.text != "" for run in self.runs)

    @property
    def visible(self) -> str:
        return "".join(run.text for run in self.deltas if run.kind == "visible")

    @property
    def thoughts(self) -> dict[int, str]:
        bodies: dict[int, str] = {}
        for run in self.deltas:
            if run.kind == "thinking":
                bodies[run.block] = bodies.get(run.block, "") + run.text
        return bodies

    @property
    def spoken(self) -> list[str]:
        return [body for body in self.thoughts.values() if body.strip()]

    @property
    def deltas(self) -> Iterator[Run]:
        return (run for run in self.runs if run.phase == "delta")


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    whole: list[Run] = []
    for run in runs:
        last = whole[-1] if whole else None
        if last and run.phase == last.phase == "delta" and run[::2] == last[::2]:
            whole[-1] = last._replace(text=last.text + run.text)
        else:
            whole.append(run)
    return tuple(whole)


def drive(
    chunks: Iterable[str],
    tags: Iterable[str] | None = None,
    starts_inside: bool = False,
    markers: Iterable[str] = (),
) -> Outcome:
    tag_filter = TagFilter(tags, starts_inside, markers=markers, events=True)
    runs = [run for chunk in chunks for run in tag_filter.feed(chunk)]
    runs += tag_filter.finish()
    return Outcome(joined(runs), tag_filter.interrupted)
