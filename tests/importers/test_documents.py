"""JSON and JSON lines, read piece by piece: each value with its line, each fault with its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers import documents
from reasoning_store.importers.documents import read_entries
from tests.properties import each

texts = st.text(max_size=8) | st.sampled_from(['"', "\\", '\\"', "[{", "]}", ",\n", "\0", "\u2028"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def given_values(source: Any) -> list[Any]:
    return [entry.value for entry in read_entries(source)]


@given(st.lists(values, max_size=4), st.sampled_from([None, 0, 2]), st.integers(1, 9))
def test_an_array_is_its_elements_however_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, found: list[Any], indent: int | None, block: int
) -> None:
    """An element is never cut by a bracket or a quotation mark inside of a text."""
    path = tmp_path_factory.mktemp("cut") / "array.json"
    path.write_text(json.dumps(found, indent=indent), "utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_BLOCK", block)
        assert given_values(path) == found


@given(st.lists(st.dictionaries(texts, values, max_size=2), max_size=4))
def test_json_lines_are_their_values(found: list[Any]) -> None:
    """A value a line, whatever stands in it; U+2028 ends no line."""
    lines = [json.dumps(item, ensure_ascii=False) for item in found]

    assert given_values(lines) == found
    assert given_values(line + "\r\n" for line in lines) == found


def test_a_file_is_read_like_its_lines(tmp_path: Path) -> None:
    """A path in place of lines; a mark at its beginning is no text of it."""
    path = tmp_path / "long.json"
    long = ["x" * 70_000, '\\"]', {"a": [1, "\u00e9" * 40_000]}]
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(long, indent=1, ensure_ascii=False).encode())

    assert given_values(path) == long
    assert given_values(str(path)) == long


def test_one_object_over_many_lines_is_one_value() -> None:
    """What was written for people to read is read, and stands on its first line."""
    lines = ["", *json.dumps({"messages": [{"role": "user"}]}, indent=2).split("\n")]
    (entry,) = read_entries(lines)

    assert (entry.line, entry.value) == (2, {"messages": [{"role": "user"}]})


def test_nothing_is_read_before_it_is_asked_for() -> None:
    """A value is given before the line after it is read, in both forms."""

    def forever(first: str, line: str) -> Iterator[str]:
        yield first
        while True:
            yield line

    assert next(read_entries(forever("", '{"a": 1}'))).value == {"a": 1}
    assert next(read_entries(forever("[", '{"a": 1},'))).value == {"a": 1}


@each(
    "lines, line",
    [
        (['{"a": 1}', "", '{"a": '], 3),
        (['{"a": 1}', "{'a': 1}"], 2),
        (['{"a": 1', '{"a": 1}'], 1),
        (["{", '"a": 1,', "", "]"], 4),
        (["[", '{"a": 1},', "{]"], 3),
        (["[", "1,", "]"], 3),
        (["[", "1"], 3),
        (["[1}"], 1),
        (["[]", "x"], 2),
        (["[1]", "]"], 2),
        (['{"a": 1}', b'{"a": "\xff"}'], 2),
        (['{"a": 1}', '{"a": "\n"}'], 2),
        (['{"a": 1}', "[" * 500 + "]" * 500], 2),
        (['{"a": 1}', "9" * 5_000], 2),
    ],
)
def test_what_is_not_json_is_refused_by_its_line(lines: list[str | bytes], line: int) -> None:
    """The error names the line, says what helps, and repeats nothing of what stands there."""
    with pytest.raises(InvalidCall, match=rf"^line {line}: ") as refused:
        list(read_entries(lines))

    assert refused.value.hint is not None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["[", '{"a": 1},', '{"a":  }', "]"], "line 3: not JSON at character 8"),
        (["{", '"a": 1,', " b"], "line 3: not JSON at character 2"),
        (["{", '"a": ' + "[" * 500 + "]" * 500 + "}"], "line 1: nested deeper than 300"),
        (['{"a": ' + "9" * 5_000 + "}"], "line 1: a number has more digits than"),
    ],
)
def test_invalid_json_is_named_by_its_place_in_its_line(lines: list[str], says: str) -> None:
    """Also within a value that stands on many."""
    with pytest.raises(InvalidCall) as refused:
        list(read_entries(lines))

    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("thing", [{"role": "user", "content": "a"}, rs.user("a"), 7, None])
def test_what_is_no_line_is_refused_by_its_number(thing: Any) -> None:
    """Messages that are parsed already: the hint says how they come in."""
    with pytest.raises(InvalidCall) as refused:
        list(read_entries(['{"role": "user", "content": "a"}', thing]))

    assert str(refused.value) == f"line 2: a line is text or bytes, not {type(thing).__name__}"
    assert refused.value.hint == "json.dumps() makes one of a message, or of a list of messages"


@pytest.mark.parametrize("thing", [{"messages": []}, rs.user("a"), 7, None])
def test_a_source_is_a_path_or_lines(thing: Any) -> None:
    with pytest.raises(InvalidCall) as refused:
        list(read_entries(thing))

    assert str(refused.value) == f"a source is a path or lines, not {type(thing).__name__}"


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    """One error of ours, not the system's."""
    with pytest.raises(InvalidCall, match="cannot be read"):
        list(read_entries(tmp_path / "none.json"))
