"""The page of promises names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent.parent
PAGE = (HERE / "README.md").read_text("utf-8")


def test_every_numbered_promise_has_one_command_of_tests_that_are_there() -> None:
    """A file that moves takes its line along."""
    rows = re.findall(r"^\| (\d*) *\|.*\| `([^`]+)` \|$", PAGE, re.MULTILINE)
    named = [word for _, command in rows for word in command.split() if word.startswith("tests/")]

    assert [number for number, _ in rows] == [*map(str, range(1, 12)), "", "", "", ""]
    assert len(named) > 20
    assert [path for path in named if not (HERE.parent / path).exists()] == []


def test_every_link_of_the_page_leads_somewhere() -> None:
    """To a file next to it."""
    links = re.findall(r"\]\(([^)]+)\)", PAGE)

    assert len(links) > 5
    assert [link for link in links if not (HERE / link).exists()] == []
