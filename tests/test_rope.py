"""A rope is the list that it stands for, and forks share what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from reasoning_store import rope
from reasoning_store.rope import Rope

numbers = st.lists(st.integers(0, 3), max_size=6)
moves = st.lists(
    st.tuples(st.sampled_from(["append", "extend", "join", "fork", "part"]), numbers,
              st.integers(0, 9), st.integers(0, 9)),
    max_size=10,
)  # fmt: skip
LONG = rope._LONG


def alike(one: list[int], other: list[int]) -> int:
    return next((at for at in range(len(one)) if one[at : at + 1] != other[at : at + 1]), len(one))


@hypothesis_settings(max_examples=200)
@given(moves=moves, other=numbers)
def test_it_is_the_list_that_it_stands_for(
    moves: Sequence[tuple[str, list[int], int, int]], other: list[int]
) -> None:
    """Whatever was done to it; those that it was forked from stay what they were."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rope, "_LONG", 3)
        one: Rope[int] = Rope()
        same: list[int] = []
        left: list[tuple[Rope[int], list[int]]] = []
        for move, items, first, last in moves:
            if move == "append":
                one.append(len(items))
                same.append(len(items))
            elif move == "extend":
                one += items
                same += items
            elif move == "join":
                one.join(tuple(items))
                same += items
            else:
                left.append((one, list(same)))
                one = one.fork() if move == "fork" else one.part(first, last)
                same = list(same) if move == "fork" else same[first:last]
            for made, expected in [*left, (one, same)]:
                assert list(made) == expected
                assert len(made) == len(expected)
                assert [made[at] for at in range(-len(made), len(made))] == expected * 2
                assert made[1:-1] == expected[1:-1]
                assert made[::-2] == expected[::-2]
                assert (made == Rope(other)) == (expected == other)
                assert made.alike(Rope(other)) == alike(expected, other)


def test_what_forks_have_in_common_is_copied_nowhere() -> None:
    """And so they are compared without looking at it."""
    one = Rope(range(10 * LONG))
    other = one.fork()
    other.append(1)

    assert one.chunks[0] is other.chunks[0]
    assert other.alike(one) == len(one)


def test_what_was_cut_alike_twice_is_compared_by_the_piece() -> None:
    """A piece of a chunk is another object, and says itself what it is equal to."""

    class Piece(list[int]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            raise AssertionError("looked at one by one")

        def __getitem__(self, at):  # type: ignore[no-untyped-def]
            return Piece(super().__getitem__(at))

    one: Rope[int] = Rope()
    one.join(Piece([1, 2, 3, 4]))

    assert one.part(0, 3).alike(one.part(0, 3)) == 3
    assert one.alike(one.part(0, 3)) == 3


def test_many_may_fork_one_at_once() -> None:
    """A long list becomes a chunk once, whoever asks first."""
    for _ in range(20):
        one = Rope(range(2 * LONG))
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(one.fork) for _ in range(32)]
            for number, future in enumerate(asked):
                future.result().append(number)
            assert [list(future.result())[:-1] for future in asked] == [list(one)] * 32
