"""The recipes for other programs give what their page says."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.pages import CHECKOUT, Block, clean_environment, lines, read, run

PAGE = CHECKOUT / "docs" / "howto" / "recipes.md"


@pytest.fixture
def recipes(tmp_path: Path) -> list[Block]:
    """The page's blocks; its database is in the folder."""
    made, *blocks = read(PAGE)
    run(made, tmp_path, clean_environment(tmp_path))
    return blocks


def test_the_queries_of_the_page_run_on_its_database(recipes: list[Block], tmp_path: Path) -> None:
    """Rows are written as sqlite3 does."""
    queries = [block for block in recipes if block.language == "sql"]
    assert queries
    with closing(sqlite3.connect(tmp_path / "chat.db")) as database:
        for block in queries:
            rows = database.execute(block.text).fetchall()

            assert ["|".join(map(str, row)) for row in rows] == lines(block.output or "")


@pytest.mark.long
def test_the_other_programs_of_the_page_print_what_it_says(
    recipes: list[Block], tmp_path: Path
) -> None:
    """sqlite3 and jq themselves."""
    commands = [block for block in recipes if block.language == "shell"]
    assert commands
    for block in commands:
        ran = subprocess.run(
            ["sh", "-ec", block.text],
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )

        assert ran.returncode == 0, ran.stderr
        assert lines(ran.stdout) == lines(block.output or "")
