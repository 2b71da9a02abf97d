"""The results in the documentation: the part of a page between two marks is written anew.

Knows the page's marks; what a line says is the report's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.results import verdicts

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def update(path: Path, found: Mapping[str, Any]) -> None:
    """Put the results into the page."""
    text = path.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{path.name} has no place for the results")
    path.write_text(f"{before}{BEGIN}\n{written(found)}\n{END}{after}", "utf-8")


def written(found: Mapping[str, Any]) -> str:
    """Return the machine, the promises and the rest, as Markdown."""
    promised = [row for row in found["rows"] if verdicts(row)]
    missed = [
        line
        for line in report.lines(promised)
        if line.verdict in (report.WORDS["red"], report.WORDS["noisy"])
    ]
    parts = [
        f"Measured on {_machine(found['machine'])}.",
        f"Of the promises: {report.summary(promised)}.",
    ]
    if missed:
        parts += ["### What is missed", report.markdown(missed)]
    parts += ["### All figures", report.markdown(report.lines(found["rows"]))]
    return "\n\n".join(parts)


def _machine(about: Mapping[str, Any]) -> str:
    named = [
        f"{about['cores']} cores ({about['processor']}, {about['system']})",
        about["memory"] and f"{about['memory']} of memory",
        f"Python {about['python']}",
        f"SQLite {about['sqlite']}",
        about["postgresql"] and f"PostgreSQL {about['postgresql']}",
        *(f"{name} {version}" for name, version in about["rivals"].items()),
    ]
    return ", ".join(filter(None, named))
