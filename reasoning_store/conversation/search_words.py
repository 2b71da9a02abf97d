"""The words of a text as a search knows them: folded, so that case, width and accents do not count.

Scripts that are written without spaces (Chinese, Japanese, Korean, Thai and their like) are cut
into pairs of characters that overlap, with the last character on its own: any piece of such a
text is then a row of pairs, and a single character begins one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

LONGEST = 64
"""Characters of a word that are compared."""
MOST_BYTES = 500_000
"""Of the different words of one text, that are found; any book has fewer."""
_ASCII = re.compile(r"[a-z0-9]+")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_PARTS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]").search
# The accents of Latin, Greek and Cyrillic, and the vowel points of Hebrew and Arabic: people leave
# them out. In other scripts a mark is half of a letter.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u065f\u0670]")
_JOINED = re.compile("[\u1160-\u11ff\uff9e\uff9f]")
"""Characters that join the one before: later parts of a Korean syllable, and voice marks."""


class Word(NamedTuple):
    """A word and its place in its text."""

    text: str
    start: int
    end: int
    is_unspaced: bool = False


class _Patterns(NamedTuple):
    run: re.Pattern[str]
    rest: re.Pattern[str]
    marks: frozenset[str]


@cache
def _patterns() -> _Patterns:
    """Return what finds letters, digits and their marks; Python's own pattern parts at a mark."""
    # Above these, marks are of scripts of long ago, and make the pattern ten times slower.
    marks = "".join(
        [one for one in map(chr, range(0x300, 0x10000)) if unicodedata.category(one)[0] == "M"]
    )
    return _Patterns(
        re.compile(rf"[\w{marks}]+"), re.compile(rf"[^\w{marks}]+|_+"), frozenset(marks)
    )


@lru_cache(maxsize=16384)
def fold(text: str) -> str:
    """Return a word as it is compared."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    folded = unicodedata.normalize("NFKC", plain.casefold())
    return _patterns().rest.sub("", folded)[:LONGEST]


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text, in order."""
    if text.isascii():
        for found in _ASCII.finditer(text.lower()):
            yield Word(found[0][:LONGEST], found.start(), found.end())
        return
    for run in _patterns().run.finditer(text.replace("_", " ")):
        if not _IS_UNSPACED(run[0]):
            if folded := fold(run[0]):
                yield Word(folded, run.start(), run.end())
            continue
        for part in _PARTS.finditer(run[0]):
            at = run.start() + part.start()
            if _IS_UNSPACED(part[0]):
                yield from _pairs(part[0], at)
            elif folded := fold(part[0]):
                yield Word(folded, at, at + len(part[0]))


def _pairs(text: str, at: int) -> Iterator[Word]:
    """Yield the pairs of a text without spaces, and its last character."""
    marks = _patterns().marks
    starts = [n for n, one in enumerate(text) if n == 0 or not (one in marks or _JOINED.match(one))]
    ends = [*starts[1:], len(text)]
    letters = [(fold(text[start:end]), start, end) for start, end in zip(starts, ends, strict=True)]
    letters = [letter for letter in letters if letter[0]]
    for (one, start, _), (other, _, end) in pairwise(letters):
        yield Word(one + other, at + start, at + end, is_unspaced=True)
    for one, start, end in letters[-1:]:
        yield Word(one, at + start, at + end, is_unspaced=True)


def distinct_words(text: str) -> list[str]:
    """Return the different words of a text, in the order in which they come first."""
    if text.isascii():
        found = dict.fromkeys([word[:LONGEST] for word in _ASCII.findall(text.lower())])
    else:
        found = {}
        for run in dict.fromkeys(_patterns().run.findall(text.replace("_", " "))):
            parts = [word.text for word in words(run)] if _IS_UNSPACED(run) else [fold(run)]
            found |= dict.fromkeys(parts)
        found.pop("", None)
    return _first(list(found)) if len(found) * LONGEST * 4 > MOST_BYTES else list(found)


def _first(found: list[str]) -> list[str]:
    """Return as many words as an index takes of one text."""
    sizes = accumulate([len(word.encode()) for word in found])
    return [word for word, size in zip(found, sizes, strict=True) if size <= MOST_BYTES]
