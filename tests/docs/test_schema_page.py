"""The page of the tables names every table and column, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from reasoning_store.ledger.tables import metadata

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schema.md"


def test_the_page_has_every_table_and_column() -> None:
    """In their order."""
    parts = re.split(r"^## `(\w+)`$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    written = {
        name: re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
        for name, part in zip(parts[1::2], parts[2::2], strict=True)
    }

    assert written == {
        name: [column.name for column in table.columns] for name, table in metadata.tables.items()
    }
