"""A loop over cases is as telling as a test a case would be."""

from __future__ import annotations

import pytest

from tests.properties import each, examples, is_thorough


def test_each_case_is_tried_with_what_the_test_is_given() -> None:
    """Every case once, in the order of the table."""
    tried: list[tuple[str, int]] = []

    @each("number", [1, 2, 3])
    def test(word: str, number: int) -> None:
        tried.append((word, number))

    test(word="a")

    assert tried == [("a", 1), ("a", 2), ("a", 3)]


def test_the_case_that_fails_is_named() -> None:
    """A traceback alone does not show which one it was."""

    @each("number, word", [(1, "one"), (2, "three")])
    def test(number: int, word: str) -> None:
        assert len(word) < 5

    with pytest.raises(AssertionError) as failed:
        test()

    assert failed.value.__notes__ == ["the case: number, word = (2, 'three')"]


def test_a_thinned_table_has_other_cases_for_other_arguments() -> None:
    """One test leaves cases out where the run is quick, and all tests together leave none out."""
    tried: set[int] = set()

    @each("number", range(4), thinned=4)
    def test(word: str, number: int) -> None:
        tried.add(number)

    test(word="a")
    of_one = len(tried)
    for word in "bcdefghijkl":
        test(word=word)

    assert of_one == (4 if is_thorough() else 1)
    assert tried == {0, 1, 2, 3}


def test_a_property_has_its_examples_where_the_run_is_thorough() -> None:
    """And never fewer than three."""
    assert examples(200).max_examples == (200 if is_thorough() else 20)
    assert examples(5).max_examples == (5 if is_thorough() else 3)
