"""Options of the door that are none: refused when they are given, with what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.importers.formats import conversations
from reasoning_store.testing import stream
from tests.properties import each

DELTA = {"choices": [{"delta": {"content": "<think>a</think>b"}}]}
EVIL = "evil\x1b[2J\n\u202e" + "x" * 5_000
"""A name that no error may repeat as it is."""


@each("odd", [5, 1, 0, "no", None, []])
@each(
    "made",
    [
        lambda odd: rs.split_reasoning("a</think>b", starts_inside=odd),
        lambda odd: rs.TagFilter(starts_inside=odd),
        lambda odd: rs.StreamNormalizer(merge=odd),
    ],
)
def test_what_is_true_or_false_is_nothing_else(made: Callable[[Any], Any], odd: Any) -> None:
    """Neither 1 nor "no" is one of them."""
    with pytest.raises(rs.InvalidCall, match=r": True or False, not "):
        made(odd)


@pytest.mark.parametrize("odd", [5, 1, 0, "no", []], ids=repr)
def test_starts_inside_is_true_false_or_unset(odd: Any) -> None:
    """Not said, the model's contract knows."""
    assert rs.StreamNormalizer(starts_inside=None).feed(DELTA)
    for made in (rs.StreamNormalizer, lambda **more: rs.normalize_response("a", **more)):
        with pytest.raises(rs.InvalidCall, match="starts_inside: True or False, not "):
            made(starts_inside=odd)


@each("odd", [5, None, "always ", "bogus", [5], ["<think>"]])
def test_where_tags_are_looked_for_is_one_of_three_or_names(odd: Any) -> None:
    """Refused before the first event, which would come too late to say it."""
    for made in (rs.StreamNormalizer, lambda **more: rs.normalize_response("a", **more)):
        with pytest.raises(rs.SettingError, match=r"tags? ") as refused:
            made(tags=odd)
        assert refused.value.key == "tags"
    if isinstance(odd, str):
        assert "auto, always, never or a sequence of names" in str(refused.value)


def test_names_of_tags_may_come_one_by_one() -> None:
    """They are read once, and hold for every choice of a stream."""
    names = iter(["plan", "why"])
    normalizer = rs.StreamNormalizer(tags=names)
    for choice in (0, 1):
        normalizer.feed({"choices": [{"index": choice, "delta": {"content": "<why>a</why>b"}}]})

    assert normalizer.finish().text == "b"
    assert [message.text for message in normalizer.others] == ["b"]


@pytest.mark.parametrize(
    "given",
    [
        lambda: rs.StreamNormalizer(api=EVIL),
        lambda: rs.normalize_response("a", api=EVIL),
        lambda: rs.build_request([rs.user("Hello.")], api=EVIL),
        lambda: stream(rs.assistant("Yes."), api=EVIL),
        lambda: list(conversations([], format=EVIL)),
    ],
    ids=[
        "StreamNormalizer",
        "normalize_response",
        "build_request",
        "stream",
        "import",
    ],
)
def test_an_unknown_name_is_quoted_short_and_printable(given: Callable[[], Any]) -> None:
    """The one who reads the error sees that it is the wrong name, and their terminal obeys none."""
    with pytest.raises(rs.InvalidCall) as refused:
        given()

    assert "evil" in str(refused.value)
    assert len(str(refused.value)) < 100
    assert str(refused.value).isprintable()
    assert "one of: " in (refused.value.hint or "")


def test_an_unknown_provider_is_quoted_short_and_printable() -> None:
    """It is no error but a warning, which is read all the same."""
    (warning,) = (
        one
        for one in rs.build_request([rs.user("Hello.")], provider=EVIL).warnings
        if one.code == "unknown_provider"
    )

    assert "evil" in warning.text
    assert len(warning.text) < 300
    assert warning.text.isprintable()
