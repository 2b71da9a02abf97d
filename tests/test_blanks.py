"""What is counted without looking ahead is what tiktoken counts, whatever the whitespace."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reasoning_store.tokenizers import ENCODINGS, counter
from reasoning_store.tokenizers.blanks import apart, plain
from reasoning_store.tokenizers.vocabularies import VOCABULARIES, load

if TYPE_CHECKING:
    import tiktoken

BOTH = pytest.mark.parametrize("encoding", ENCODINGS)
BLANKS = "\t\x0b\x0c \x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"
LINE_ENDS = "\r\n"
NEVER_BLANK = "\x1c\x1f\u180e\u200b\ufeff"
"""What Python, older versions of Unicode or a reader may take for whitespace."""
OTHERS = "aS1.'/~\u0301\u20dd\u02b0\u4e00\U0001f600"


@cache
def published(encoding: str) -> tiktoken.Encoding:
    """tiktoken with the pattern as it was published."""
    return load(VOCABULARIES[encoding])


def tokens(encoding: str, text: str) -> int:
    return len(published(encoding).encode_ordinary(text))


@BOTH
def test_a_pattern_that_counts_neither_looks_around_nor_is_possessive(encoding: str) -> None:
    """Either would have the whole text split by backtracking, which is what this is for."""
    made = plain(VOCABULARIES[encoding].pattern)

    assert "(?!" not in made
    assert not re.search(r"[?*+]\+|\d\}\+", made)
    assert load(VOCABULARIES[encoding], plainly=True)._pat_str == made


@BOTH
def test_every_short_text_of_blanks_and_what_may_stand_around_them_is_exact(encoding: str) -> None:
    """All 37 448 texts of one to five characters of eight kinds."""
    count = counter(encoding).count

    for length in range(1, 6):
        for characters in product(" \t\n\xa0a1.'", repeat=length):
            text = "".join(characters)
            assert count(text) == (tokens(encoding, text), "exact"), ascii(text)


@BOTH
@given(
    text=st.lists(
        st.one_of(
            st.sampled_from([*BLANKS, *LINE_ENDS]),
            st.sampled_from([*NEVER_BLANK, *OTHERS]),
            st.sampled_from(["    ", "\t\t", " \n", "\r\n", "we'll", "x  ", " /", "\n\n  "]),
            st.characters(),
        ),
        max_size=40,
    ).map("".join)
)
@example(text="a\n        b\n        c")
@example(text="  \n  \n")
@example(text="a \u3000\n \u3000b")
@example(text="x" + " " * 500 + "y")
@settings(max_examples=400, deadline=None)
def test_text_with_any_whitespace_is_exact(encoding: str, text: str) -> None:
    """Runs of every blank there is, before words, line ends, marks and the end."""
    assert counter(encoding).count(text) == (tokens(encoding, text), "exact")


@pytest.mark.parametrize(
    ("text", "rest", "runs"),
    [
        ("a b", "a b", []),
        ("a   b", "a b", ["  "]),
        ("\n    x\n    y", "\n x\n y", ["   ", "   "]),
        ("a  \nb", "a  \nb", []),
        ("a  \r\n", "a  \r\n", []),
        ("a \t\xa0b", "a\xa0b", [" \t"]),
        ("  a", " a", [" "]),
        ("a  ", "a  ", []),
        ("a \x1fb", "a \x1fb", []),
    ],
)
def test_a_run_is_taken_out_but_for_its_last_blank(text: str, rest: str, runs: list[str]) -> None:
    """And where a line ends behind it, or the text, it stays."""
    assert apart(text) == (rest, runs)


@pytest.mark.parametrize("end", ["", "\n", "x"])
@pytest.mark.parametrize("blank", [" ", "\t", " \t", "\u3000"])
def test_no_run_is_gone_over_twice(blank: str, end: str) -> None:
    """The steps of a search grow with the text: doubling it does no more than that.

    Were it their square, sixteen million characters would take days.
    """
    text = blank * (16_000_000 // len(blank)) + end

    rest, runs = apart(text)

    assert len(rest) + sum(map(len, runs)) == len(text)
