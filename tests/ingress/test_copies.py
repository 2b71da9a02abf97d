"""A thought that stands in the text and in a field of its own is one thought."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.ingress import copies
from reasoning_store.ingress.copies import Copies, Echo, folded
from tests.wire.steps import steps

SPACED = st.text("ab \n\t\u00a0\u2003", max_size=12)


@given(pieces=st.lists(SPACED, max_size=5), stretch=st.sampled_from([1, 2, 3, 65_536]))
def test_white_space_is_folded_wherever_a_text_is_cut(pieces: list[str], stretch: int) -> None:
    """However it arrived and in whatever stretches it is read, the words are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_STRETCH", stretch)

        assert folded(pieces) == " ".join("".join(pieces).split())


@given(
    native=st.lists(st.lists(SPACED, max_size=3), max_size=4), tagged=st.lists(SPACED, max_size=3)
)
def test_a_copy_begins_one_thought_or_all_of_them_together(
    native: list[list[str]], tagged: list[str]
) -> None:
    """The sorted list finds what comparing with each of them would find."""
    thought = folded(tagged)
    candidates = [folded(pieces) for pieces in native]
    candidates.append(folded([piece for pieces in native for piece in pieces]))

    found = tagged in Copies(native)
    assert found is (bool(thought) and any(text.startswith(thought) for text in candidates))


@given(native=st.lists(st.lists(SPACED, max_size=3), max_size=4), text=st.lists(SPACED, max_size=5))
def test_an_echo_goes_on_as_long_as_all_so_far_was_thought(
    native: list[list[str]], text: list[str]
) -> None:
    """However either is cut; white space is no difference."""
    thought = "".join(piece for pieces in native for piece in pieces)
    echo = Echo(native)
    so_far = ""
    for piece in text:
        so_far += piece
        goes_on = echo.goes_on(piece)

        assert goes_on is "".join(thought.split()).startswith("".join(so_far.split()))
        if not goes_on:
            break


def test_a_long_echo_costs_work_in_proportion() -> None:
    """Word by word, of a thought that came in one piece."""

    def work(count: int) -> int:
        def compare() -> None:
            echo = Echo([["word " * count]])
            assert all([echo.goes_on("word ") for _ in range(count)])

        return steps(compare)

    assert work(4_000) < 4.5 * work(1_000)


def test_many_thoughts_are_compared_with_many_in_linear_work() -> None:
    """A host that tags ten thousand thoughts and then sends as many others costs no square."""

    def work(count: int) -> int:
        tagged = [[f"t{number}"] for number in range(count)]

        def compare() -> None:
            known = Copies([f"n{number}"] for number in range(count))
            assert not any(pieces in known for pieces in tagged)

        return steps(compare)

    assert work(4_000) < 4.5 * work(1_000)
