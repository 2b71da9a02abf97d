"""The results in the documentation: the part of a page between two marks is written anew.

Knows the pages and their marks; what a line says is the report's, what a sentence says is
the sentences'.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import report, sentences
from benchmarks.results import verdicts

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def update(checkout: Path, found: Mapping[str, Any]) -> None:
    """Put the results into every page that tells of them."""
    for name, text in told(found).items():
        page = checkout / name
        page.write_text(filled(page.read_text("utf-8"), text), "utf-8")


def told(found: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands between the marks of each page."""
    return {
        "README.md": sentences.written(found["rows"]),
        "docs/benchmarks.md": written(found),
    }


def filled(page: str, text: str) -> str:
    """Return a page with a text between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError("the page has no place for the results")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


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
        parts += ["### Missed promises", report.markdown(missed)]
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
