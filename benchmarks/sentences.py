"""The few figures that the README has in words.

No word judges: a line gives a ratio and the store that it is to, and is as true of a run in
which ours is the slower one. A figure that was not measured is left out. Pure: rows in, text out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.report import count, figure, ratio
from benchmarks.results import Row, spread
from benchmarks.rivals import SQLITE_SESSION, STORES, without_json
from benchmarks.table.reading import RECOUNTING

_WIDTH = 98
_NEAREST = SQLITE_SESSION.name
_OTHERS = [one.name for one in STORES if one.name != _NEAREST]


def written(rows: Iterable[Row]) -> str:
    """Return the cost of a turn, of a request and of a count, a line of a list for each."""
    by_name = {row["name"]: row for row in rows}
    lines = [*_turn(by_name), *_request(by_name), *_usage(by_name)]
    return "\n".join(_list_line(line) for line in lines)


def _list_line(text: str) -> str:
    return textwrap.fill(
        f"- {text}",
        _WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _turn(by_name: Mapping[str, Row]) -> Iterator[str]:
    ratios = _ratios(by_name, "turn")
    if not {"floor", _NEAREST} <= ratios.keys():
        return
    others = [
        f"{_told(ratios[name])} times as long as {name}"
        for name in (_NEAREST, *_OTHERS)
        if name in ratios
    ]
    others[1:] = [other.replace("times as long as ", "times ", 1) for other in others[1:]]
    *some, last = others
    yield (
        f"A durable turn, its tokens counted, takes {_told(ratios['floor'])} times as long as the"
        " bare driver with tiktoken. Of the stores that count nothing, it takes"
        f" {' and '.join(filter(None, (', '.join(some), last)))}."
    )


def _request(by_name: Mapping[str, Row]) -> Iterator[str]:
    ratios = _ratios(by_name, "request-kept")
    best = next((name for name, one in ratios.items() if one.get("best")), None)
    if best is None:
        return
    line = (
        f"A request of {count(by_name['request-kept']['at'])} messages, thinking kept, takes"
        f" {_told(ratios[best])} times as long as the quickest rival, {best}, which loads them and"
        " writes them as JSON"
    )
    if without_json(best) in ratios:
        line += f"; {_told(ratios[without_json(best)])} times as long as its loading alone"
    yield f"{line}."


def _usage(by_name: Mapping[str, Row]) -> Iterator[str]:
    if "usage" not in by_name:
        return
    row = by_name["usage"]
    sizes = {int(size): there for size, there in row["sizes"].items()}
    costs = sorted(there["ours"]["median"] for there in sizes.values())
    line = (
        f"The tokens of the next request take {figure(costs[0], row['unit'])} to"
        f" {figure(costs[-1], row['unit'])}, at lengths from {count(min(sizes))} to"
        f" {count(max(sizes))} messages"
    )
    again = sizes[row["at"]].get(RECOUNTING)
    if again:
        cost = figure(again["median"], row["unit"])
        line += f"; counting {count(row['at'])} messages again takes {cost}"
    yield f"{line}."


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
