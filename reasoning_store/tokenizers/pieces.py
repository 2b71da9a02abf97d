r"""Long texts, cut where the cut changes no count.

Knows where both split patterns are certain to begin a new token. It must not know a
vocabulary, nor tiktoken.

A long text is counted in pieces because one run of about a million whitespace characters
makes tiktoken panic, and because one call should not hold megabytes of token numbers.

A place between two characters ``a`` and ``b`` is safe when no alternative of either
pattern can match across it, and none in front of it looks past it:

- ``a`` not whitespace, ``b`` a U+0020: a space only ever begins a match or continues
  whitespace;
- ``a`` a line end, ``b`` neither whitespace nor ``/``: a run of whitespace that ends in a
  line end is matched whole whatever comes next, and punctuation takes line ends with it
  but nothing behind them (o200k: but ``/``);
- ``a`` and ``b`` of two kinds out of digit, letter, punctuation, but for a letter behind
  punctuation (it may be the letter's prefix) and an apostrophe (it may open ``'ll``). So
  that no version of Unicode matters, only ASCII and the common CJK letters and signs are
  taken for what they are.

``\S`` and ``\s`` are Python's here. They call everything whitespace that the patterns do,
and U+001C to U+001F besides, which only loses places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WHOLE_CHARS = 16 * 1024
"""A text up to here is counted in one piece; from here on a safe place is looked for."""

MOST_CHARS = 64 * 1024
"""No piece is longer: far below the million of whitespace at which tiktoken panics."""

_LETTER = r"A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
_SIGN = r"!-&(-/:-@\[-`{-~\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_SAFE_PLACE = re.compile(
    r"(?<=\S)(?= )"
    r"|(?<=[\r\n])(?=[^\s/])"
    rf"|(?<=[0-9])(?=[{_LETTER}{_SIGN}])"
    rf"|(?<=[{_LETTER}])(?=[0-9{_SIGN}])"
    rf"|(?<=[{_SIGN}])(?=[0-9])"
)


def pieces(
    text: str, *, whole: int = WHOLE_CHARS, most: int = MOST_CHARS
) -> Iterator[tuple[str, bool]]:
    """The pieces of ``text`` in order, each with whether the cut at its end is a hard one.

    A hard cut is made only where ``most`` characters hold no safe place behind the first
    ``whole``. No character is looked at twice.
    """
    start = 0
    while len(text) - start > whole:
        place = _SAFE_PLACE.search(text, start + whole, start + most)
        if place is not None:
            end, hard = place.start(), False
        elif len(text) - start > most:
            end, hard = start + most, True
        else:
            break
        yield text[start:end], hard
        start = end
    yield text[start:], False
