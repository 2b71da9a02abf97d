r"""Counters of tokens: tiktoken where it works, an estimate where it does not (ERR-002).

A counter counts one text as plain text: what looks like a special token is counted as its
characters. A failure of counting ends in an estimated number and one warning, never in an error.

Theory. A long text is counted in pieces, because one run of about a million white space characters
makes tiktoken panic, and because one call is not to hold megabytes of token numbers. A place
between two characters ``a`` and ``b`` is a safe cut where no alternative of either split pattern
can match across it, and none before it looks past it:

- ``a`` not white space, ``b`` a U+0020: a space only ever begins a match or continues white space;
- ``a`` a line end, ``b`` neither white space nor ``/``: a run of white space that ends in a line
  end is matched whole whatever comes next, and punctuation takes line ends with it but nothing
  after them (o200k: but ``/``);
- ``a`` and ``b`` of two kinds out of digit, letter, punctuation, but for a letter after
  punctuation (it may be the letter's prefix) and an apostrophe (it may open ``'ll``). Only ASCII
  and the common CJK letters and signs count as such, so that no version of Unicode matters.

``\S`` and ``\s`` are Python's here. They call everything white space that the patterns do, and
U+001C to U+001F too, which only loses places.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from threading import Lock
from typing import Final, NamedTuple, Protocol, TypeVar, get_args

from reasoning_store.conversation.blocks import CountExactness, Exactness
from reasoning_store.conversation.errors import SettingError
from reasoning_store.conversation.notices import give_notice
from reasoning_store.tokens import vocabularies
from reasoning_store.tokens.estimate import estimate

DEFAULT_ENCODING = "o200k_base"
ENCODINGS = tuple(sorted(vocabularies.VOCABULARIES))

HARD_CUT_TOKENS = 8
"""How much a cut at an unsafe place may have changed, generously: no bound is proven."""


class _Loading:
    """The lock of the first count; a forked child gets a new one, which no thread holds."""

    lock = Lock()

    @classmethod
    def renew(cls) -> None:
        cls.lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Loading.renew)

WHOLE_CHARS = 16 * 1024
"""A text of so many is counted in one piece; in a longer one a safe place is looked for."""
MOST_CHARS = 64 * 1024
"""No piece is longer: far below the million of white space at which tiktoken panics."""
MOST_COUNTED = 4 * 1024 * 1024
"""Of a longer text, which fits no context window, the rest is estimated to be like so many."""

_LETTER = r"A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
_SIGN = r"!-&(-/:-@\[-`{-~\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_SAFE_PLACE = (
    r"(?<=\S)(?= )"
    r"|(?<=[\r\n])(?=[^\s/])"
    rf"|(?<=[0-9])(?=[{_LETTER}{_SIGN}])"
    rf"|(?<=[{_LETTER}])(?=[0-9{_SIGN}])"
    rf"|(?<=[{_SIGN}])(?=[0-9])"
)

_TOKENIZER_MODULES = frozenset(
    "builtins zlib binascii struct importlib zipimport tiktoken regex".split()
)
"""The packages whose exceptions a tokenizer that fails raises."""


class Count(NamedTuple):
    """A number of tokens, ``exact`` or ``estimated``; ``reported`` is a provider's own number."""

    tokens: int
    exactness: Exactness


_LABELS: Final = get_args(CountExactness)
Label = TypeVar("Label", Exactness, CountExactness)


def worst(*labels: Label) -> Label:
    """Return the label of a sum: that of its worst part."""
    return max(labels, key=_LABELS.index, default="exact")


class Encoding(Protocol):
    """The part of ``tiktoken.Encoding`` that counting needs."""

    def encode_ordinary(self, text: str) -> Sized: ...


def counter(encoding: str = DEFAULT_ENCODING) -> Counter:
    """Return the counter of an encoding; its first count reads the vocabulary."""
    try:
        return _COUNTERS[encoding]
    except (KeyError, TypeError):
        raise SettingError(
            f"the encoding must be one of {', '.join(ENCODINGS)}",
            key="encoding",
            hint=f"leave it out for {DEFAULT_ENCODING}",
        ) from None


class Counter:
    """Counts with tiktoken, and by estimate once it failed to load."""

    __slots__ = ("_encode", "_encoding", "_failure", "_load", "_warned")

    def __init__(self, encoding: str, load: Callable[[], Encoding]) -> None:
        self._encoding = encoding
        self._load = load
        self._encode: Callable[[str], Sized] | None = None
        self._failure = ""
        self._warned = False

    @property
    def encoding(self) -> str:
        """The name of the encoding."""
        return self._encoding

    def count(self, text: str) -> Count:
        """Count ``text``; exact unless tiktoken fails, a piece is cut hard, or it is very long."""
        encode = self._encode or self._loaded()
        if encode is None:
            return self._estimated(text, self._failure)
        try:
            if len(text) <= WHOLE_CHARS:
                return Count(len(encode(text)), "exact")
            counted = _count_pieces(encode, text[:MOST_COUNTED])
            if len(text) <= MOST_COUNTED:
                return counted
            return Count(counted.tokens * len(text) // MOST_COUNTED, "estimated")
        except BaseException as error:
            if not isinstance(text, str) or not is_failure(error):
                raise
            # The type only: the error's own words could quote the text.
            return self._estimated(text, type(error).__name__)

    def _loaded(self) -> Callable[[str], Sized] | None:
        """Load what counts, once in a process; None when loading failed, once as well."""
        with _Loading.lock:
            if self._encode is None and not self._failure:
                try:
                    self._encode = self._load().encode_ordinary
                except BaseException as error:
                    if not is_failure(error):
                        raise  # interrupted, not failed: the next count begins again
                    self._failure = f"{type(error).__name__}: {error}"
            return self._encode

    def _estimated(self, text: str, reason: str) -> Count:
        """ERR-002: a number on the high side, and one warning in a process."""
        with _Loading.lock:
            first, self._warned = not self._warned, True
        if first:
            give_notice(
                f"tokens of {self._encoding} are estimated, on the high side, after {reason}"
                " (run: pip install --force-reinstall reasoning-store tiktoken)",
                stacklevel=3,
            )
        return Count(estimate(text, self._encoding), "estimated")


def _count_pieces(encode: Callable[[str], Sized], text: str) -> Count:
    tokens, cut_hard = 0, False
    for piece, hard in pieces(text):
        tokens += len(encode(piece))
        if hard:
            tokens += HARD_CUT_TOKENS
            cut_hard = True
    return Count(tokens, "estimated" if cut_hard else "exact")


def pieces(
    text: str, *, whole: int = WHOLE_CHARS, most: int = MOST_CHARS
) -> Iterator[tuple[str, bool]]:
    """Return the pieces of ``text`` in order, each with whether the cut at its end is a hard one.

    A hard cut is made only where ``most`` characters hold no safe place after the first
    ``whole``. No character is looked at twice.
    """
    start = 0
    safe_place = re.compile(_SAFE_PLACE)
    while len(text) - start > whole:
        place = safe_place.search(text, start + whole, start + most)
        if place is not None:
            end, hard = place.start(), False
        elif len(text) - start > most:
            end, hard = start + most, True
        else:
            break
        yield text[start:end], hard
        start = end
    yield text[start:], False


def is_failure(error: BaseException) -> bool:
    """Whether tiktoken failed, or its loading.

    Every other exception is the application's and goes on: a signal handler runs between any
    two steps of Python, so a time limit can be raised in the middle of a count. A time limit is a
    TimeoutError, or an exception with a class of its own.
    """
    kind = type(error)
    if kind.__name__ == "PanicException":
        return True  # of tiktoken's Rust code: no Exception, and its class cannot be imported
    return (
        isinstance(error, Exception)
        and not isinstance(error, TimeoutError)
        and kind.__module__.partition(".")[0] in _TOKENIZER_MODULES
    )


_COUNTERS: Mapping[str, Counter] = {
    name: Counter(name, partial(vocabularies.load, vocabulary))
    for name, vocabulary in vocabularies.VOCABULARIES.items()
}
