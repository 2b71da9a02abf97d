"""The form that a text has in a protocol is learnt from one that was written."""

from __future__ import annotations

from typing import Any

import pytest

from reasoning_store.wire.forms import MARK, learnt


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"role": "user", "content": MARK}, id="flat"),
        pytest.param({"role": "user", "parts": [{"text": MARK}], "n": [1, {}]}, id="nested"),
    ],
)
def test_a_form_puts_any_text_where_the_mark_was(part: dict[str, Any]) -> None:
    """And nothing of one part is in another."""
    form = learnt([part])
    assert form is not None
    one, other = form("one"), form("other")

    assert str(one) == str(part).replace(MARK, "one")
    one[next(iter(one.keys() - {"role"}))] = None
    assert str(other) == str(part).replace(MARK, "other")


@pytest.mark.parametrize(
    "written",
    [
        pytest.param([], id="nothing"),
        pytest.param([{"text": MARK}, {"text": MARK}], id="two parts"),
        pytest.param([{"text": MARK, "again": [MARK]}], id="two places"),
        pytest.param([{"text": f"<{MARK}>"}], id="a piece of a text"),
    ],
)
def test_what_is_not_one_part_with_the_text_in_one_place_has_no_form(
    written: list[dict[str, Any]],
) -> None:
    """It is written by itself."""
    assert learnt(written) is None
