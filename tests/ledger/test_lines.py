"""The lines of an export: each comes back as it was, and a malformed one says where."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from reasoning_store.conversation.blocks import Counts
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.transfer import lines
from reasoning_store.ledger.transfer.lines import (
    VERSION,
    BranchLine,
    CompactionLine,
    DraftLine,
    EndLine,
    HeaderLine,
    Line,
    MessageLine,
    ProfileLine,
    SessionEndLine,
    SessionLine,
)
from tests.properties import each

from .histories import any_text, json_values

objects = st.dictionaries(
    any_text, json_values | st.floats(allow_nan=False, allow_infinity=False), max_size=3
)
times = st.none() | st.integers(-(1 << 55), 1 << 57)
numbers = st.integers(1, 1 << 30)
counts = st.builds(
    Counts,
    visible=st.integers(0, 1 << 39),
    thinking=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    exactness=st.sampled_from(["exact", "reported", "estimated"]),
)
anything: st.SearchStrategy[Line] = st.one_of(
    st.just(HeaderLine(version=VERSION)),
    st.builds(ProfileLine, owner=any_text, name=any_text, settings=objects, updated_at=times),
    st.builds(
        SessionLine,
        owner=any_text,
        id=any_text,
        title=st.none() | any_text,
        metadata=objects,
        settings=objects,
        profile=st.none() | any_text,
        encoding=any_text,
        archived=st.booleans(),
        current_branch=numbers,
        reported=st.none() | st.integers(0, 9),
        crossed=st.lists(any_text, max_size=2),
        created_at=times,
    ),
    st.builds(BranchLine, number=numbers, parent=st.none() | numbers, first=numbers),
    st.builds(
        MessageLine,
        branch=numbers,
        position=st.none() | numbers,
        id=st.none() | any_text,
        created_at=times,
        message=objects,
        counts=st.none() | counts,
        sent=st.none() | objects,
        repeat=st.none() | st.just("0123456789abcdef" * 2),
        batch=st.none() | numbers,
    ),
    st.builds(
        CompactionLine,
        branch=numbers,
        number=numbers,
        first=numbers,
        last=numbers,
        message=objects,
        supersedes=st.lists(numbers, max_size=2),
    ),
    st.builds(
        DraftLine,
        branch=numbers,
        id=any_text,
        parts=st.lists(any_text, max_size=2),
        created_at=st.integers(0, 9),
    ),
    st.builds(SessionEndLine, messages=st.integers(0, 9)),
    st.builds(EndLine, sessions=st.integers(0, 9)),
)


@given(anything)
def test_a_line_comes_back_as_it_was(line: Line) -> None:
    """Whatever it holds; as one line of JSON, as text and as bytes."""
    text = lines.to_text(line)

    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert isinstance(json.loads(text), dict)
    assert lines.read(text) == line
    assert lines.read(text.encode()) == line
    assert lines.read("\ufeff" + text) == line


@given(anything)
def test_a_field_that_says_null_says_nothing(line: Line) -> None:
    """Other languages write every field of a record."""
    assert is_dataclass(line)
    nulls = [to_camel(one.name) for one in fields(line) if getattr(line, one.name) is None]
    kind = f'{{"type":"{line.kind}"'
    more = "".join(f',"{name}":null' for name in nulls)

    assert lines.read(lines.to_text(line).replace(kind, kind + more, 1)) == line


MALFORMED = [
    ("", "not JSON at character 1"),
    ("{", "not JSON at character 2"),
    ('{"type":"end","sessions":1}}', "not JSON at character 28"),
    ("[]", "not an object"),
    ("7", "not an object"),
    ('{"type":"end","sessions":NaN}', "not JSON"),
    ('{"type":"end","sessions":-Infinity}', "not JSON"),
    ('{"type":"end","sessions":1e999}', "larger than a float"),
    ('{"type":"end","sessions":%s}' % ("9" * 5000), "more digits"),
    ('{"type":"end","sessions":1,"sessions":1}', "same key twice"),
    ('{"type":"message","message":{"a":{"b":1,"b":2}}}', "same key twice"),
    ('{"type":"message","message":%s}' % ('{"a":' * 500 + "1" + "}" * 500), "nested deeper"),
    ('{"type":"message","message":%s' % ("[" * 100_000), "nested deeper"),
    ("{}", "type: no line"),
    ('{"type":["end"]}', "type: no line"),
    ('{"type":"secret"}', "type: no line"),
    ('{"type":"end"}', "sessions: is missing"),
    ('{"type":"end","sessions":1,"a secret":2}', "has an unknown field"),
    ('{"type":"end","sessions":"1"}', "sessions: is not a whole number"),
    ('{"type":"end","sessions":1.0}', "sessions: is not a whole number"),
    ('{"type":"end","sessions":true}', "sessions: is not a whole number"),
    ('{"type":"end","sessions":-1}', "sessions: must be greater"),
    ('{"type":"branch","number":0}', "number: must be greater"),
    ('{"type":"branch","number":2147483648}', "number: must be less"),
    ('{"type":"session","id":1,"encoding":"x"}', "id: is not a string"),
    ('{"type":"session","id":"1","encoding":"x","archived":1}', "archived: is not true or false"),
    ('{"type":"session","id":"1","encoding":"x","metadata":null}', "metadata: is not an object"),
    ('{"type":"session","id":"1","encoding":"x","crossed":[1]}', "crossed.0: is not a string"),
    (
        '{"type":"session","id":"1","encoding":"x","erasedAt":253402300799999999}',
        "erasedAt: must be less",
    ),
    ('{"type":"message","message":[]}', "message: is not an object"),
    ('{"type":"message","message":{},"createdAt":1e3}', "createdAt: is not a whole number"),
    ('{"type":"message","message":{},"created_at":1}', "created_at: is an unknown field"),
    ('{"type":"message","message":{},"counts":[]}', "counts: is not an object"),
    ('{"type":"message","message":{},"counts":{"thinking":["secret"]}}', "counts: thinking is not"),
    ('{"type":"message","message":{},"counts":{"thinking":[true]}}', "counts: thinking is not a"),
    ('{"type":"message","message":{},"counts":{"visible":"1"}}', "counts: visible is not a whole"),
    ('{"type":"message","message":{},"counts":{"exactness":"secret"}}', "counts.exactness"),
    ('{"type":"message","message":{},"counts":{"a secret":1}}', "counts: has an unknown field"),
    ('{"type":"message","message":{},"repeat":"secret","batch":1}', "repeat: String should match"),
]


@each("text, says", MALFORMED)
def test_a_malformed_line_says_where(text: str, says: str) -> None:
    """And never what stands there."""
    with pytest.raises(InvalidCall) as caught:
        lines.read(text)

    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_bytes_that_are_no_text_say_where() -> None:
    """A file in another encoding."""
    with pytest.raises(InvalidCall, match="not UTF-8 at byte 5"):
        lines.read(b"{'x'\xff")


def test_a_line_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything of it is taken apart."""
    monkeypatch.setattr(lines, "LONGEST", 10)

    with pytest.raises(InvalidCall, match="longer than 10 characters"):
        lines.read('{"type":"end","sessions":1}')


@given(st.text(st.sampled_from('{}[]":,\\ue1.-NIatrfn'), max_size=40))
def test_no_text_makes_anything_but_an_invalid_call(text: str) -> None:
    """Whatever a file holds."""
    with contextlib.suppress(InvalidCall):
        lines.read(text)
