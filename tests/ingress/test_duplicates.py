"""A thought that comes in the text and in a field of its own is one thought."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.ingress.duplicates import find_copies, without_white_space
from tests.wire.steps import steps

SPACED = st.text("ab \n\t\u00a0\u2003", max_size=12)


@given(pieces=st.lists(SPACED, max_size=5))
def test_white_space_is_taken_out_wherever_a_text_is_cut(pieces: list[str]) -> None:
    """The pieces of a text come to the same as the whole."""
    assert without_white_space(pieces) == "".join("".join(pieces).split())


@given(
    native=st.lists(st.lists(SPACED, max_size=3), max_size=4), tagged=st.lists(SPACED, max_size=3)
)
def test_a_copy_begins_one_thought_or_all_of_them_together(
    native: list[list[str]], tagged: list[str]
) -> None:
    """The sorted list finds the same as a comparison with each of them."""
    thought = without_white_space(tagged)
    candidates = [without_white_space(pieces) for pieces in native]
    candidates.append("".join(candidates))

    (found,) = find_copies([tagged], native)
    assert found is (bool(thought) and any(text.startswith(thought) for text in candidates))


def test_many_thoughts_are_compared_with_many_in_linear_work() -> None:
    """A host that tags ten thousand thoughts and then sends as many others costs no square."""

    def work(count: int) -> int:
        tagged = [[f"t{number}"] for number in range(count)]
        native = [[f"n{number}"] for number in range(count)]
        return steps(lambda: find_copies(tagged, native))

    assert work(4_000) < 4.5 * work(1_000)
