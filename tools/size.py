"""Print the statements of the package by room, and the figures to compare them with.

A statement is one of Python's grammar, so moving or joining lines changes nothing. ``testing`` is
for the tests of applications, and is left out.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "reasoning_store"
LEFT_OUT = "testing"
FIGURES = {
    ("ledger",): 7520,
    ("wire",): 6020,
    ("cli",): 3430,
    ("importers",): 3310,
    ("server",): 2760,
    ("integrations",): 2290,
    ("ingress",): 2090,
    ("egress",): 1790,
    ("conversation", "tokens"): 1740,
    ("sessions", "root"): 1610,
    ("recording", "aio", "display"): 2090,
}
"""The statements of the rooms on 2026-11-20, when there were 34 659 in all."""


def count_statements() -> Counter[str]:
    """Return the statements of each room; ``root`` has the modules of no folder."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        room, *rest = path.relative_to(PACKAGE).parts
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        found[room if rest else "root"] += sum(isinstance(node, ast.stmt) for node in nodes)
    return found


def main() -> None:
    found = count_statements()
    rows = [(", ".join(rooms), sum(map(found.pop, rooms)), then) for rooms, then in FIGURES.items()]
    rows += [(room, count, 0) for room, count in sorted(found.items()) if room != LEFT_OUT]
    rows.append(("all", sum(row[1] for row in rows), sum(FIGURES.values())))
    for name, count, then in rows:
        print(f"{name:24}{count:>8,}{then:>8,}{count - then:>+8,}")


if __name__ == "__main__":
    main()
