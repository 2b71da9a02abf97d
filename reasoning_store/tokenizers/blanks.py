r"""Runs of blanks, counted apart from the text around them, so that no pattern looks ahead.

Knows where both split patterns part whitespace. It must not know a vocabulary, nor
tiktoken.

Both patterns are plain but for one alternative, ``\s+(?!\S)``: of a run of whitespace
before a word it takes all but the last character, which goes with the word. One look ahead
makes the whole pattern backtrack, and splitting then costs more than looking the tokens
up. Without it an automaton splits the text, in two thirds of the time (o200k) or less than
half (cl100k).

So what that alternative takes is taken out here. A *blank* is a whitespace character that
ends no line. In a run of two or more of them with something else than a line end behind
it, the run but its last blank is exactly one match, whatever stands around it: no other
alternative takes a blank with what stands before it, and only a line end could join the run
to more whitespace. What is left is split as it was, for a single blank there ends what was
before it as surely as many do. The count is that of what is left and of each run.

Possessive marks go too: no automaton has them, and behind none of them does either pattern
have anything that a character given back could match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

_LOOKS_AHEAD = r"|\s+(?!\S)"
_POSSESSIVE = re.compile(r"(?:(?<=[?*+])|(?<=[0-9]\}))\+")

_ASCII = "\t\x0b\x0c"
# What the patterns call whitespace, which is less than Python does.
_OTHERS = (
    "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_BLANK = f"[ {_ASCII}{_OTHERS}]"
# A run begins where no blank is before it. All but its last are taken one by one, so that a
# run before a line end is gone over once.
_RUN = re.compile(rf"({_BLANK}(?<!{_BLANK}{{2}}){_BLANK}*?)(?={_BLANK}[^\r\n {_ASCII}{_OTHERS}])")


def plain(pattern: str) -> str:
    """Return a published pattern without what an automaton cannot do."""
    return _POSSESSIVE.sub("", pattern.replace(_LOOKS_AHEAD, ""))


def apart(text: str) -> tuple[str, list[str]]:
    """Return ``text`` without its runs of blanks, and the runs."""
    parts = _RUN.split(text)
    return "".join(parts[::2]), parts[1::2]


def counted_apart(length: Callable[[str], int]) -> Callable[[str], int]:
    """Return what counts any text, of what counts one by a plain pattern."""

    def counted(text: str) -> int:
        if not _may_hold_a_run(text):
            return length(text)
        rest, runs = apart(text)
        return length(rest) + sum([length(run) * n for run, n in Counter(runs).items()])

    return counted


def _may_hold_a_run(text: str) -> bool:
    """Whether a run could be in it: prose mostly answers no, in a hundredth of a count."""
    if "  " in text:
        return True
    for blank in _ASCII if text.isascii() else _ASCII + _OTHERS:  # noqa: SIM110  (half the time of any())
        if blank in text:
            return True
    return False
