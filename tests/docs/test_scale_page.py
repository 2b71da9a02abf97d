"""docs/explanation/scale.md: its simulated tables are those of the simulation."""

from __future__ import annotations

import pytest

from benchmarks import scale
from tests.docs.pages import CHECKOUT

PAGE = (CHECKOUT / "docs" / "explanation" / "scale.md").read_text("utf-8")


def test_the_simulated_tables_of_the_page_are_those_of_the_simulation() -> None:
    """Seeded, so that they are the same on every machine."""
    assert scale.placement_table() in PAGE
    assert scale.activity_table() in PAGE


@pytest.mark.parametrize("shards", [1, 8])
def test_every_session_is_on_one_shard(shards: int) -> None:
    """Their turns add up whatever the number of shards is; one shard has what all have."""
    alone, spread = scale.placed_turns(500, 1), scale.placed_turns(500, shards)

    assert sum(spread) == sum(alone)
    assert scale.hottest(alone) == 0
    assert scale.hottest(spread) >= 0
