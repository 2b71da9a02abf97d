"""The small history of each program: recognised, read whole and once, and refused by a place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers import formats
from tests.properties import each, examples

from . import kept


@each("name", kept.FILES)
def test_a_file_is_recognised_by_its_marks(name: str) -> None:
    """No one has to name the format."""
    assert formats.detect(kept.FILES[name]) == kept.FILES[name].parent.name


@pytest.fixture(scope="module")
def store() -> Iterator[rs.Store]:
    with rs.Store("sqlite://") as opened:
        yield opened


@each("name", kept.FILES)
def test_a_file_is_imported_whole_and_once(store: rs.Store, name: str) -> None:
    """As a dry run said; a second import writes nothing, and what is stored adds up."""
    path, mine = kept.FILES[name], store.for_owner(name)
    before = store.verify().messages
    dry = mine.import_conversations(formats.conversations(path), dry_run=True)
    first = mine.import_conversations(formats.conversations(path))
    again = mine.import_conversations(formats.conversations(path))
    stored = store.verify()

    assert (dry.new, first.new, again.new) == (stored.messages - before, dry.new, 0)
    assert (first.refused, again.refused) == ([], [])
    assert first.report.reasoning_stored > 0
    assert stored.problems == ()


ODD: list[Any] = [
    None,
    True,
    0,
    -1.5,
    1e300,
    "",
    "7",
    [],
    [None],
    ["a"],
    {},
    {"type": {}},
    [{"id": []}],
]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value inside of one."""
    yield place
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(inner, (*place, key))


def changed(values: list[Any], place: tuple[Any, ...], odd: Any) -> list[Any]:
    """Return the values with another one in a place."""
    found = copy.deepcopy(values)
    inside: Any = found
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = odd
    return found


def values_of(path: Path) -> list[Any]:
    """Return the values of a file: of its lines, or its whole one."""
    text = path.read_text("utf-8")
    return (
        [json.loads(line) for line in text.splitlines()]
        if path.suffix == ".jsonl"
        else [json.loads(text)]
    )


@examples(2000)
@given(name=st.sampled_from([*kept.FILES]), data=st.data())
def test_a_file_with_an_odd_value_anywhere_is_read_or_refused_by_its_place(
    name: str, data: st.DataObject
) -> None:
    """A list for a name, a number for a list: never a fault of Python's."""
    values = values_of(kept.FILES[name])
    place = data.draw(st.sampled_from([place for place in places(values) if place]))
    lines = [json.dumps(value) for value in changed(values, place, data.draw(st.sampled_from(ODD)))]
    told = "line 1"
    try:
        for one in formats.conversations(lines, format=kept.FILES[name].parent.name):
            assert one.report.messages == sum(len(line.items) for line in one.lines)
    except InvalidCall as error:
        told = str(error)

    assert told.startswith("line ")
