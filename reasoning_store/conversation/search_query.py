"""A search query, and the places in a text that it finds.

A text must have all words, "words in quotes" in this order, and no ``-word``. There is no other
syntax: any text with a word to look for is a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.search_words import Word, words
from reasoning_store.conversation.validation import check_text

_LONGEST = 1000
"""Characters of a query."""
_BEGINS = 3
"""Letters from which on a word also finds the words that begin with it."""
_QUOTES = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02\u300c\u300d", '"')
)
_TERM = re.compile(r'(-?)(?:"([^"]*)(?:"|$)|([^\s"]+))')
_HINT = 'as in search("prime number"); quotes keep words together, -word leaves a word out'
_BEFORE, _LENGTH = 60, 200
_SPACE = re.compile(r"\s")
_MORE = "\u2026"


@dataclass(frozen=True, slots=True)
class Term:
    """Consecutive words."""

    words: tuple[str, ...]
    is_open: bool
    """Whether the last one is the beginning of a word."""
    is_unwanted: bool

    def places(self, known: Sequence[Word], texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return its place in a text, from the first character to after the last."""
        *earlier, last = self.words
        if self.is_open:
            ends = [at for at, text in enumerate(texts) if text.startswith(last)]
        else:
            ends = [at for at, text in enumerate(texts) if text == last]
        return [
            (known[end - len(earlier)].start, known[end].end)
            for end in ends
            if end >= len(earlier) and earlier == texts[end - len(earlier) : end]
        ]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    terms: tuple[Term, ...]

    @property
    def wanted(self) -> tuple[Term, ...]:
        return tuple([term for term in self.terms if not term.is_unwanted])

    @property
    def unwanted(self) -> tuple[Term, ...]:
        return tuple([term for term in self.terms if term.is_unwanted])

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return the places of its words in a text, in order; none if it does not find them."""
        known = list(words(text))
        texts = [word.text for word in known]
        if any(term.places(known, texts) for term in self.unwanted):
            return []
        found = [term.places(known, texts) for term in self.wanted]
        return _apart(sorted(chain.from_iterable(found))) if all(found) else []


def parse(text: str) -> Query:
    """Return the query that a text is."""
    if len(check_text("text", text, hint=_HINT)) > _LONGEST:
        raise InvalidCall(f"text: a query has at most {_LONGEST} characters", hint=_HINT)
    terms = []
    for minus, quoted, plain in _TERM.findall(text.translate(_QUOTES)):
        # A word can hold what parts words: it is then several, side by side.
        term = _term(quoted or plain, is_quoted=not plain, is_unwanted=bool(minus))
        if term is not None:
            terms.append(term)
    query = Query(tuple(dict.fromkeys(terms)))
    if not query.wanted:
        raise InvalidCall("text: a query has at least one word to look for", hint=_HINT)
    return query


def _term(text: str, *, is_quoted: bool, is_unwanted: bool) -> Term | None:
    found_words = list(words(text))
    if not found_words:
        return None
    is_open = not is_quoted and not is_unwanted and len(found_words[-1].text) >= _BEGINS
    if found_words[-1].is_unspaced:
        # The pair before holds the last character already; one alone begins a pair.
        if len(found_words) > 1 and found_words[-2].end == found_words[-1].end:
            found_words.pop()
            is_open = False
        else:
            is_open = True
    return Term(tuple([word.text for word in found_words]), is_open, is_unwanted)


def _apart(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return places in order, with those joined that overlap."""
    out: list[tuple[int, int]] = []
    for start, end in places:
        if out and start < out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return out


def snippet(
    text: str, places: Sequence[tuple[int, int]]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the piece of a text around the first place, and the places in that piece."""
    first, last = places[0]
    start, end = max(0, first - _BEFORE), len(text)
    if start:  # not in the middle of a word, where there is a space
        start = next((at + 1 for at in range(start, first) if text[at].isspace()), start)
    if end > start + _LENGTH:
        end = max(start + _LENGTH, last)
        end = next((at for at in range(end, max(last, start), -1) if text[at].isspace()), end)
        end = min(end, last + _LENGTH)
    piece = _SPACE.sub(" ", text[start:end])
    before = _MORE if start else ""
    shift = len(before) - start
    marks = tuple([(a + shift, b + shift) for a, b in places if start <= a and b <= end])
    return before + piece + (_MORE if end < len(text) else ""), marks
