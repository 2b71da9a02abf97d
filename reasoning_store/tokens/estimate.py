r"""ERR-002: a number of tokens for when nothing can count them, on the high side.

Theory. The rule is a price for each character, in quarters of a token, because one ratio for all
text does not exist. Bytes / 3, the usual rule, is too low for most of the world: measured
in bytes a token, English has 4 and more and Python code 4.6, but Polish 2.8 to 3.1, JSON
lines 3.2, Hebrew 1.9 (cl100k), Greek 2.1 (cl100k), hexadecimal 1.8, base64 1.4, and
Armenian in cl100k or Cherokee in either 1.0, which is the least there can be: no token is
shorter than a byte. So

- a character costs its bytes, unless its script is listed as cheaper;
- in ASCII the nineteen commonest small letters and the space cost a half, all else one:
  words made of the other letters are in no vocabulary (base64, Zhuang, made-up names);
- a space in front of a digit or of a letter outside ASCII does not join it: one in full;
- a run of spaces costs what two do (one token up to 79 of them, and the one that joins
  the word after it);
- two more for the whole, because a text may begin and end in mid-word;
- and never more than the bytes, the bound that always holds.

The price is being too high: 1.9 times for JSON, 2.3 for Markdown and plain English, 2.5 for
Python and Chinese, 2.2 to 3.4 for Russian, Japanese or Hindi; at most 4.3 (Khmer, o200k).
"""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping

# (first code point, last, quarters of a token)
_CHEAPER_SCRIPTS: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    "cl100k_base": (
        (0x0400, 0x045F, 4),  # Cyrillic, without the letters of Asian languages
        (0x0E00, 0x0E7F, 8),  # Thai
        (0x3040, 0x30FF, 8),  # kana
        (0x4E00, 0x9FFF, 10),  # ideographs
        (0xAC00, 0xD7AF, 8),  # hangul
    ),
    "o200k_base": (
        (0x0370, 0x03FF, 6),  # Greek
        (0x0400, 0x045F, 4),
        (0x0530, 0x06FF, 6),  # Armenian, Hebrew, Arabic
        (0x0900, 0x0E7F, 6),  # the scripts of India, Sinhala, Thai
        (0x1000, 0x10FF, 6),  # Burmese, Georgian
        (0x3040, 0x30FF, 8),
        (0x4E00, 0x9FFF, 8),
        (0xAC00, 0xD7AF, 8),
    ),
}

_HALF_A_TOKEN = frozenset("abcdefghilmnoprstuy ")
_LONE_SPACE = r" (?=[0-9\x80-\U0010ffff])"
_FOR_THE_ENDS = 8


def estimate(text: str, encoding: str) -> int:
    """Return at least as many tokens as ``text`` has in ``encoding``, from its characters alone."""
    shorter = re.sub(" {3,64}", "  ", text)
    scripts = _CHEAPER_SCRIPTS[encoding]
    quarters = sum(
        _price(char, scripts) * times for char, times in collections.Counter(shorter).items()
    )
    quarters += 2 * sum(1 for _ in re.finditer(_LONE_SPACE, shorter)) + _FOR_THE_ENDS
    return min(-(-quarters // 4), len(text.encode()))


def _price(char: str, scripts: tuple[tuple[int, int, int], ...]) -> int:
    if char.isascii():
        return 2 if char in _HALF_A_TOKEN else 4
    code = ord(char)
    for first, last, quarters in scripts:
        if first <= code <= last:
            return quarters
    return 4 * len(char.encode())
