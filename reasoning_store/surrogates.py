"""Halves of characters, which a Python string can hold and UTF-8 cannot.

A stream that was cut in the middle of an emoji leaves a surrogate without its other half. It
is stored as it came; what is to be sent, or counted, is mended first.

Knows strings; must not know what they say or where they go.
"""

from __future__ import annotations


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can write a text."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encodable(text: str) -> str:
    """Return a text that UTF-8 can write: two halves that spell a character are that character,
    and a lone one is U+FFFD, the sign for one that is not known.
    """
    if is_encodable(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
