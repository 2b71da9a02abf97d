"""The table of ratios: as text on a terminal, as Markdown in the documentation.

A line is one comparison: what was done, what ours cost, against whom, the ratio with its
quartiles, what is promised, the verdict. Pure: rows in, text out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.figures import Verdict
from benchmarks.results import Row, spread, verdicts

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\N{MICRO SIGN}s"), (0.0, "ns"))
WORDS: Mapping[Verdict, str] = {
    "green": "met",
    "floor": "missed by the floor, too",
    "red": "MISSED",
    "noisy": "too noisy to judge",
    "unmeasured": "not measured",
}
NOISY = "noisy"
"""Of a ratio that nothing is promised of: no verdict, a warning to the one who reads it."""


class Line(NamedTuple):
    """One line of the table, as text."""

    work: str
    ours: str
    against: str
    ratio: str
    promised: str
    verdict: str


HEAD = Line("work", "ours", "against", "ratio (quartiles)", "at most", "verdict")


def figure(value: float, unit: str) -> str:
    """Return a figure as people say it."""
    if unit == "bytes":
        return f"{value:,.0f} B" if value < 1e6 else f"{value / 1e6:,.1f} MB"
    scale, name = next((s, n) for s, n in _UNITS if value >= s)
    return f"{value / (scale or 1e-9):.3g} {name}"


def ratio(value: float) -> str:
    """Return how many times, as exactly as it can be told."""
    return f"{value:.2g}" if value < 0.095 else f"{value:.2f}"


def count(value: int) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}".replace(",", " ")


def lines(rows: Iterable[Row]) -> Iterator[Line]:
    """Return the table, the rows in the order in which they are given."""
    for row in rows:
        yield from _of_row(row)


def _of_row(row: Row) -> Iterator[Line]:
    unit = row["unit"]
    ours = figure(row["sizes"][str(row["at"])]["ours"]["median"], unit)
    work = row["title"]
    if row["of"] != "processes":
        work += f" ({count(row['at'])} {row['of']})"
    for one in row["ratios"]:
        verdict = WORDS[one["verdict"]] if one["verdict"] else ""
        against = one["against"]
        if "class" in one:
            against = f"the class of {figure(one['class'], unit)}"
        elif one.get("best"):
            against = f"the best rival, {against}"
        told = "-"
        if "median" in one:
            told = f"{ratio(one['median'])} ({ratio(one['low'])}..{ratio(one['high'])})"
            if one["verdict"] is None and spread(one).noisy:
                verdict = NOISY
            if one["verdict"] == "floor":
                told += f", the floor {ratio(one['floor'])}"
        promised = "" if one["bound"] is None else ratio(one["bound"])
        yield Line(work, ours, against, told, promised, verdict)
    if row["growth"] is not None:
        yield _growth(row["growth"], row, ours)


def _growth(growth: Mapping[str, Any], row: Row, ours: str) -> Line:
    sizes = sorted(map(int, row["sizes"]))
    span = f"{count(sizes[0])} to {count(sizes[-1])} {row['of']}"
    exponent = f"n^{growth['exponent']:.2f}, last step n^{growth['last']:.2f}"
    return Line(
        f"{row['title']}, from {span}",
        ours,
        "its own growth",
        exponent,
        growth["promised"],
        WORDS[growth["verdict"]],
    )


def terminal(table: Iterable[Line]) -> str:
    """Return the table with its columns in line."""
    rows = [HEAD, *table]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def markdown(table: Iterable[Line]) -> str:
    """Return the table as Markdown."""
    rows = [HEAD, Line(*["---"] * len(HEAD)), *table]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def summary(rows: Iterable[Row]) -> str:
    """Return how many promises were met, missed, and not to be judged."""
    found = [verdict for row in rows for verdict in verdicts(row)]
    counts = [(found.count(kind), word) for kind, word in WORDS.items()]
    return ", ".join(f"{count} {word.lower()}" for count, word in counts if count)
