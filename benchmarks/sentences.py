"""The few figures that the README says in words, whatever they come out as.

No word here judges: a sentence gives a ratio and whom it is to, and is as true of a run in
which ours is the slower one. What was not measured is left out. Pure: rows in, text out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.conversation import WRITERS
from benchmarks.report import count, figure, ratio
from benchmarks.results import Row, spread
from benchmarks.rivals import SQLITE_SESSION, STORES, without_json
from benchmarks.table.reading import RECOUNTING

_WIDTH = 98
_NEAREST = SQLITE_SESSION.name
_OTHERS = [one.name for one in STORES if one.name != _NEAREST]


def written(rows: Iterable[Row]) -> str:
    """Return what a turn, a request and a count cost, as a paragraph."""
    by_name = {row["name"]: row for row in rows}
    said = [*_turn(by_name), *_others(by_name), *_request(by_name), *_usage(by_name)]
    return textwrap.fill(" ".join(said), _WIDTH, break_on_hyphens=False, break_long_words=False)


def _turn(by_name: Mapping[str, Row]) -> Iterator[str]:
    alone, together = _ratios(by_name, "turn"), _ratios(by_name, "writers")
    both = {"floor", _NEAREST}
    if not both <= alone.keys():
        return
    said = (
        f"A durable turn, its tokens counted, takes {_told(alone['floor'])} times as long as with"
        f" the bare driver and tiktoken, and {_told(alone[_NEAREST])} times as long as with"
        f" {_NEAREST}, which counts nothing"
    )
    if both <= together.keys():
        said += (
            f"; with {WRITERS} writers at once, {_told(together['floor'])} and"
            f" {_told(together[_NEAREST])} times"
        )
    yield f"{said}."


def _others(by_name: Mapping[str, Row]) -> Iterator[str]:
    alone = _ratios(by_name, "turn")
    told = [f"{_told(alone[name])} times with {name}" for name in _OTHERS if name in alone]
    if told:
        *some, last = told
        listed = " and ".join(filter(None, (", ".join(some), last)))
        yield f"It takes {listed.replace(' times', ' times as long as', 1)}."


def _request(by_name: Mapping[str, Row]) -> Iterator[str]:
    ratios = _ratios(by_name, "request-kept")
    best = next((name for name, one in ratios.items() if one.get("best")), None)
    if best is None:
        return
    said = (
        f"A request of {count(by_name['request-kept']['at'])} messages, thinking kept,"
        f" costs {_told(ratios[best])} times what the quickest rival measured, {best}, needs to"
        " load them and write them as JSON"
    )
    if without_json(best) in ratios:
        said += f", and {_told(ratios[without_json(best)])} times what it needs to load them"
    yield f"{said}."


def _usage(by_name: Mapping[str, Row]) -> Iterator[str]:
    if "usage" not in by_name:
        return
    row = by_name["usage"]
    sizes = {int(size): there for size, there in row["sizes"].items()}
    costs = sorted(there["ours"]["median"] for there in sizes.values())
    said = (
        f"`usage` costs {figure(costs[0], row['unit'])} to {figure(costs[-1], row['unit'])} at"
        f" lengths from {count(min(sizes))} to {count(max(sizes))} messages"
    )
    again = sizes[row["at"]].get(RECOUNTING)
    if again:
        cost = figure(again["median"], row["unit"])
        said += f"; counting {count(row['at'])} messages again costs {cost}"
    yield f"{said}."


def _ratios(by_name: Mapping[str, Row], name: str) -> dict[str, Mapping[str, Any]]:
    """Return a row's ratios by whom they are to, as far as they were measured."""
    ratios = by_name[name]["ratios"] if name in by_name else ()
    return {one["against"]: one for one in ratios if "median" in one}


def _told(one: Mapping[str, Any]) -> str:
    """Return a ratio, and its quartiles where they are too far apart for it to stand alone."""
    said = ratio(one["median"])
    if spread(one).noisy:
        said += f" (noisy: {ratio(one['low'])} to {ratio(one['high'])})"
    return said
