"""The few figures that the README names.

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
    """Return a list with the cost of a turn, a request and a count, and a table of the stores."""
    by_name = {row["name"]: row for row in rows}
    lines = [*_turn(by_name), *_request(by_name), *_usage(by_name)]
    return "\n".join([*(_list_line(line) for line in lines), *_stores(by_name)])


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
    if {"floor", _NEAREST} <= ratios.keys():
        yield (
            f"A durable turn, its tokens counted, takes {_ratio_text(ratios['floor'])} times as"
            " long as the bare driver with tiktoken."
        )


def _stores(by_name: Mapping[str, Row]) -> Iterator[str]:
    ratios = _ratios(by_name, "turn")
    if not {"floor", _NEAREST} <= ratios.keys():
        return
    yield (
        "\nThe time of a turn, divided by that of a store that counts no tokens (above 1 is"
        " slower):\n"
    )
    yield "| store | ratio |"
    yield "|---|---|"
    for name in (_NEAREST, *_OTHERS):
        if name in ratios:
            yield f"| {name} | {_ratio_text(ratios[name])} |"


def _request(by_name: Mapping[str, Row]) -> Iterator[str]:
    ratios = _ratios(by_name, "request-kept")
    best = next((name for name, one in ratios.items() if one.get("best")), None)
    if best is None:
        return
    line = (
        f"To build a request of {count(by_name['request-kept']['at'])} messages, with their"
        f" thinking, takes {_ratio_text(ratios[best])} times as long as to load the messages from"
        f" the quickest rival, {best}, and to write them as JSON."
    )
    if without_json(best) in ratios:
        line += f" Compared with the loading alone, it is {_ratio_text(ratios[without_json(best)])}"
        line += " times as long."
    yield line


def _usage(by_name: Mapping[str, Row]) -> Iterator[str]:
    if "usage" not in by_name:
        return
    row = by_name["usage"]
    sizes = {int(size): there for size, there in row["sizes"].items()}
    costs = sorted(there["ours"]["median"] for there in sizes.values())
    line = (
        f"To count the next request takes {figure(costs[0], row['unit'])} to"
        f" {figure(costs[-1], row['unit'])}, at lengths from {count(min(sizes))} to"
        f" {count(max(sizes))} messages."
    )
    again = sizes[row["at"]].get(RECOUNTING)
    if again:
        cost = figure(again["median"], row["unit"])
        line += f" To count the text of {count(row['at'])} messages again takes {cost}."
    yield line


def _ratios(by_name: Mapping[str, Row], name: str) -> dict[str, Mapping[str, Any]]:
    """Return a row's measured ratios, by the contender that each is to."""
    ratios = by_name[name]["ratios"] if name in by_name else ()
    return {one["against"]: one for one in ratios if "median" in one}


def _ratio_text(one: Mapping[str, Any]) -> str:
    """Return a ratio, and its quartiles if they are far apart."""
    text = ratio(one["median"])
    if spread(one).noisy:
        text += f" (noisy: {ratio(one['low'])} to {ratio(one['high'])})"
    return text
