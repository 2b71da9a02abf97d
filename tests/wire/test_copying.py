"""Copies of JSON are equal and nobody else's, however often their shape was met."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.wire.copying import Shapes, copied

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=12,
)


def containers(value: Any) -> list[int]:
    """Return the identities of all lists and dicts in a value."""
    if isinstance(value, dict):
        return [id(value), *(found for item in value.values() for found in containers(item))]
    if isinstance(value, list):
        return [id(value), *(found for item in value for found in containers(item))]
    return []


@given(json)
def test_a_copy_is_equal_and_shares_no_container(value: Any) -> None:
    """Whoever got it may change it to its last leaf."""
    found = copied(value)

    assert found == value
    assert set(containers(found)).isdisjoint(containers(value))


@given(st.lists(json, max_size=6))
def test_a_shape_that_was_met_copies_every_value_of_it(values: list[Any]) -> None:
    """Values of different shapes never get each other's copier."""
    shapes = Shapes()
    copiers = [shapes.copier(value) for value in values]

    assert [copier(value) for copier, value in zip(copiers, values, strict=True)] == values


def test_a_shape_is_looked_through_once() -> None:
    """What a conversation says again and again is copied by one function."""
    shapes = Shapes()
    said = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in "ab"]

    assert shapes.copier(said[0]) is shapes.copier(said[1])


def test_json_as_deep_as_it_can_be_read_is_copied() -> None:
    """The arguments of a call may be nested."""
    value: Any = "leaf"
    for _ in range(200):
        value = {"a": [value]}

    assert copied(value) == value
