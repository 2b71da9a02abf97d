"""What was measured, judged: figures to rows, rows to JSON and back.

The JSON holds of each workload the median and quartiles of every contender at every size,
each ratio with its verdict, and the growth. A run of a few workloads replaces only their
rows, since a ratio is of one run and needs no other.

Knows the form of the results; knows no clock and prints nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.figures import Spread, Verdict
from benchmarks.running import Figures
from benchmarks.workload import BEST, CLASS, FLOOR, Bound, Contender, Workload

VERSION = 1
Row = dict[str, Any]


def judged(workload: Workload, measured: Figures) -> Row:
    """Return the row of a workload."""
    largest = max(measured)
    at = workload.judged_at if workload.judged_at in measured else largest
    return {
        "name": workload.name,
        "title": workload.title,
        "promise": workload.promise,
        "unit": workload.unit,
        "of": workload.of,
        "storage": "server" if workload.server else workload.storage,
        "at": at,
        "sizes": {
            str(size): {name: _spread(figures.spread(values)) for name, values in by_name.items()}
            for size, by_name in measured.items()
        },
        "kinds": {one.name: one.kind for one in workload.contenders},
        "ratios": _ratios(workload, measured[at]),
        "growth": _growth(workload, measured),
    }


def _spread(one: Spread) -> dict[str, Any]:
    return asdict(one)


def spread(one: Mapping[str, Any]) -> Spread:
    """Return the figures of a contender or of a ratio, as they are in a row."""
    return Spread(**{field.name: one[field.name] for field in fields(Spread)})


def _ratios(workload: Workload, there: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    mine = there["ours"]
    rows = [_bounded(workload, bound, there) for bound in workload.bounds]
    told = {row["against"] for row in rows}
    for one in workload.contenders:
        if one.kind != "ours" and one.name in there and one.name not in told:
            ratio = figures.ratio(mine, there[one.name])
            rows.append({"bound": None, "against": one.name, **_spread(ratio), "verdict": None})
    return rows


def _bounded(workload: Workload, bound: Bound, there: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return the ratio that a bound is about, and whether it holds."""
    row: dict[str, Any] = {"bound": bound.at_most, "against": bound.against}
    if bound.against == CLASS:
        taken = figures.spread([value / bound.at_most for value in there["ours"]])
        verdict = figures.verdict(taken, figures.CLASS)
        return {
            **row,
            "bound": figures.CLASS,
            "class": bound.at_most,
            **_spread(taken),
            "verdict": verdict,
        }
    name = _against(workload.contenders, bound, there)
    if name is None:
        return {**row, "verdict": "unmeasured"}
    ratio = figures.ratio(there["ours"], there[name])
    found = {**row, "against": name, "best": bound.against == BEST, **_spread(ratio)}
    verdict = figures.verdict(ratio, bound.at_most)
    bare = _bare(workload.contenders)
    if bare is not None and bare in there and bare != name:
        theirs = figures.ratio(there[bare], there[name])
        verdict = figures.beside_the_floor(
            verdict, theirs, bound.at_most, _near_the_floor(workload, there, bare)
        )
        found["floor"] = theirs.median
    return {**found, "verdict": verdict}


def _bare(contenders: Iterable[Contender]) -> str | None:
    """Return the bare program that does what ours has to, where the floor does less."""
    named = {one.kind: one.name for one in contenders}
    return named.get("bare", named.get("floor"))


def _near_the_floor(
    workload: Workload, there: Mapping[str, list[float]], bare: str
) -> Verdict | None:
    """Return whether ours is as near to the bare program as is promised, if anything is."""
    promised = next((bound.at_most for bound in workload.bounds if bound.against == bare), None)
    if promised is None:
        return None
    return figures.verdict(figures.ratio(there["ours"], there[bare]), promised)


def _against(
    contenders: Iterable[Contender], bound: Bound, there: Mapping[str, list[float]]
) -> str | None:
    if bound.against == FLOOR:
        return next((one.name for one in contenders if one.kind == "floor"), None)
    if bound.against == BEST:
        rivals = [one.name for one in contenders if one.kind == "rival" and one.name in there]
        return figures.best({name: there[name] for name in rivals})
    return bound.against if bound.against in there else None


def _growth(workload: Workload, measured: Figures) -> dict[str, Any] | None:
    if workload.growth is None or len(measured) < 2:
        return None

    def spreads(kind: str) -> dict[int, Spread]:
        # A figure that is one of a size's units is not what grows; all of them together are.
        return {
            size: figures.spread([value * (size if workload.each else 1) for value in values])
            for size, by_name in measured.items()
            for one in workload.contenders
            if one.kind == kind and (values := by_name.get(one.name))
        }

    mine, floor = spreads("ours"), spreads("bare") or spreads("floor")
    row = {
        "promised": workload.growth,
        "exponent": figures.exponent(figures.quickest(mine)),
        "last": figures.last_exponent(figures.quickest(mine)),
        "floor": figures.last_exponent(figures.quickest(floor)),
    }
    at_most = figures.LINEAR if workload.growth == "linear" else figures.FLAT
    return {**row, "verdict": figures.growth(mine, floor, at_most)}


def verdicts(row: Row) -> list[Verdict]:
    """Return every verdict of a row."""
    found: list[Verdict] = [one["verdict"] for one in row["ratios"] if one["verdict"] is not None]
    if row["growth"] is not None:
        found.append(row["growth"]["verdict"])
    return found


def merged(path: Path, machine: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
    """Return what is in the file with these rows in the place of theirs."""
    old = read(path)
    by_name = {row["name"]: row for row in old.get("rows", [])} if old else {}
    by_name |= {row["name"]: row for row in rows}
    known = {name: value for name, value in machine.items() if value is not None}
    return {
        "version": VERSION,
        "machine": {**machine, **old.get("machine", {}), **known},
        "rows": list(by_name.values()),
    }


def as_text(found: Mapping[str, Any]) -> str:
    """Return the results as the file holds them."""
    return json.dumps(found, indent=1) + "\n"


def read(path: Path) -> dict[str, Any]:
    """Return the results of a file; nothing where there is none."""
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found if found.get("version") == VERSION else {}
