"""How two texts differ: the diff is right whatever they are, and long ones take no minute."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.egress.unified_diff import find_edits, unified_diff

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
LINES = st.lists(st.sampled_from(["{", "}", "a", "b", "c"]), max_size=30)


class Counted(str):
    """A line that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def applied(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return what the edits make of ``old``."""
    out: list[str] = []
    at = 0
    for start, end, start_new, end_new in find_edits(old, new):
        out += [*old[at:start], *new[start_new:end_new]]
        at = end
    return out + list(old[at:])


def patched(old: Sequence[str], diff: Sequence[str]) -> list[str]:
    """Return what a unified diff makes of ``old``, held to its own numbers."""
    out: list[str] = []
    at = 0
    for line in diff[2:]:
        if found := HUNK.fullmatch(line):
            start, length = int(found[1]), int(found[2] or 1)
            start -= length > 0
            out += old[at:start]
            assert int(found[3]) == len(out) + (found[4] != "0")
            at = start
        elif line[0] == "+":
            out.append(line[1:])
        else:
            assert old[at] == line[1:]
            out += [line[1:]] if line[0] == " " else []
            at += 1
    return out + list(old[at:])


@given(LINES, LINES)
def test_the_edits_make_the_one_text_of_the_other(old: list[str], new: list[str]) -> None:
    """Whatever they have in common."""
    assert applied(old, new) == new


@given(LINES)
def test_the_same_text_has_no_difference(text: list[str]) -> None:
    """Not even a head."""
    assert list(unified_diff(text, text, ("now", "then"))) == []


def test_a_difference_is_shown_with_its_context() -> None:
    """As every tool that reads a unified diff wants it."""
    old = [str(number) for number in range(10)]
    new = [*old[:5], "five", *old[6:]]

    assert list(unified_diff(old, new, ("now", "then"))) == [
        "--- now",
        "+++ then",
        "@@ -3,7 +3,7 @@",
        *(" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"),
    ]


@given(LINES, LINES)
def test_a_program_that_reads_the_diff_gets_the_other_text(old: list[str], new: list[str]) -> None:
    """Line numbers and lengths are what they are said to be."""
    assert patched(old, list(unified_diff(old, new, ("now", "then")))) == new


def test_a_long_text_is_not_compared_with_all_of_another() -> None:
    """Of ten times the lines, ten times the comparisons, not a hundred times."""
    counts = []
    for length in (300, 3000):
        old = [Counted(f"line {number}") for number in range(length)]
        new = [line for number, line in enumerate(old) if number % 3] + [Counted("end")]
        Counted.compared = 0
        list(unified_diff(old, new, ("now", "then")))
        counts.append(Counted.compared)

    assert counts[1] < 12 * counts[0]
