"""The form that a text has in a protocol is learnt from one that was written."""

from __future__ import annotations

from typing import Any

import pytest

from reasoning_store.wire.forms import MARK, SIGNATURE, THOUGHT, learnt


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"role": "user", "content": MARK}, id="flat"),
        pytest.param({"role": "user", "parts": [{"text": MARK}], "n": [1, {}]}, id="nested"),
    ],
)
def test_a_form_puts_any_text_where_the_mark_was(part: dict[str, Any]) -> None:
    """And nothing of one part is in another."""
    form = learnt([part], MARK)
    assert form is not None
    one, other = form(("one",)), form(("other",))

    assert str(one) == str(part).replace(MARK, "one")
    one[next(iter(one.keys() - {"role"}))] = None
    assert str(other) == str(part).replace(MARK, "other")


def test_a_form_of_a_thought_and_a_text_takes_both() -> None:
    """Each goes where its own mark was, and so does what signs the thought."""
    part = {"parts": [{"thinking": {"text": THOUGHT, "by": SIGNATURE}, "on": True}, {"text": MARK}]}
    form = learnt([part], MARK, THOUGHT, SIGNATURE)

    assert form is not None
    assert form(("said", "thought", "sealed")) == {
        "parts": [{"thinking": {"text": "thought", "by": "sealed"}, "on": True}, {"text": "said"}]
    }


def test_a_form_passes_over_the_words_that_have_no_mark() -> None:
    """So all that is written by column is given alike."""
    form = learnt([{"text": MARK}], MARK)

    assert form is not None
    assert form(("said", "thought", None)) == {"text": "said"}


def test_a_thought_that_has_no_place_has_no_form() -> None:
    """Though the text has one."""
    assert learnt([{"text": MARK}], MARK, THOUGHT) is None
    assert learnt([{"text": MARK, "thought": THOUGHT}], MARK, THOUGHT, SIGNATURE) is None


@pytest.mark.parametrize(
    "written",
    [
        pytest.param([], id="nothing"),
        pytest.param([{"text": MARK}, {"text": MARK}], id="two parts"),
        pytest.param([{"text": MARK, "again": [MARK]}], id="two places"),
        pytest.param([{"text": f"<{MARK}>"}], id="a piece of a text"),
        pytest.param([{"text": MARK, "name": f"<{MARK}>"}], id="a piece of another"),
    ],
)
def test_what_is_not_one_part_with_the_text_in_one_place_has_no_form(
    written: list[dict[str, Any]],
) -> None:
    """It is written by itself."""
    assert learnt(written, MARK) is None
