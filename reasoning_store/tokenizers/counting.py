"""The counters that ship: tiktoken when it works, an estimate when it does not.

Knows when a count is exact, and that counting never stops an append (ERR-002): whatever
breaks here ends in a number, a label and one warning. It must not know where a vocabulary
lies (``vocabularies``), where a text may be cut (``pieces``, ``blanks``) or what a
character costs (``estimates``).

A text is text: what looks like a special token is counted as the characters it is made
of, as a chat service does with content.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sized
from typing import Protocol

from reasoning_store.errors import SettingError
from reasoning_store.forks import ProcessLock
from reasoning_store.surrogates import encodable, is_encodable
from reasoning_store.tokenizers import vocabularies
from reasoning_store.tokenizers.base import Count, Counter
from reasoning_store.tokenizers.blanks import counted_apart
from reasoning_store.tokenizers.estimates import estimate
from reasoning_store.tokenizers.pieces import WHOLE_CHARS, pieces

DEFAULT_ENCODING = "o200k_base"
ENCODINGS = tuple(sorted(vocabularies.VOCABULARIES))

# Cutting a run of one kind in two lowered its count by 2 at the most (200 000 random runs of
# 20 to 3 000 characters of 15 kinds, both encodings); merging is greedy, so nothing proves
# that bound. This is four times as much, and next to nothing beside 64 Ki characters.
HARD_CUT_TOKENS = 8

_LOADING = ProcessLock()
_PROBE = "I'LL say <|endoftext|>: 91 = 7 * 13\n\n \u4f60\u597d \U0001f600"


class Encoding(Protocol):
    """The part of ``tiktoken.Encoding`` that counting needs."""

    def encode_ordinary(self, text: str) -> Sized: ...


def counter(encoding: str = DEFAULT_ENCODING) -> Counter:
    """The counter of an encoding, the same one for the whole process.

    It reads its vocabulary at its first count.
    """
    try:
        return _COUNTERS[encoding]
    except (KeyError, TypeError):
        raise SettingError(
            f"the encoding must be one of {', '.join(ENCODINGS)}",
            key="encoding",
            hint=f"leave it out for {DEFAULT_ENCODING}",
        ) from None


class TiktokenCounter:
    """Counts with tiktoken; from a failure to load on, by estimate."""

    __slots__ = ("_encoding", "_failure", "_length", "_load", "_warned")

    def __init__(self, encoding: str, load: Callable[[], Encoding]) -> None:
        self._encoding = encoding
        self._load = load
        self._length: Callable[[str], int] | None = None
        self._failure = ""
        self._warned = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._encoding}>"

    @property
    def encoding(self) -> str:
        """The name of the encoding."""
        return self._encoding

    def count(self, text: str) -> Count:
        """Count ``text``; exact unless tiktoken fails or a piece had to be cut hard."""
        length = self._length or self._loaded()
        if length is None:
            return self._estimated(text, self._failure)
        try:
            if len(text) <= WHOLE_CHARS:
                return Count(length(text), "exact")
            return _in_pieces(length, text)
        except BaseException as error:
            if not _is_failure(error) or not isinstance(text, str):
                raise
            # What makes no list takes no half of a character; what makes one counts the same.
            if isinstance(error, UnicodeEncodeError) and not is_encodable(text):
                return self.count(encodable(text))
            # The type only: what an error of a count says might quote the text.
            return self._estimated(text, type(error).__name__)

    def _loaded(self) -> Callable[[str], int] | None:
        """What counts, loaded once in a process; None when loading failed, once as well."""
        with _LOADING.lock:
            if self._length is None and not self._failure:
                try:
                    self._length = counted_apart(_length_in(self._load()))
                except BaseException as error:
                    if not _is_failure(error):
                        raise  # interrupted, not failed: the next count begins again
                    self._failure = f"{type(error).__name__}: {error}"
            return self._length

    def _estimated(self, text: str, reason: str) -> Count:
        """ERR-002: a number on the high side, and one warning in a process."""
        with _LOADING.lock:
            first, self._warned = not self._warned, True
        if first:
            warnings.warn(
                f"tokens of {self._encoding} are estimated, on the high side, after {reason}"
                " (run: pip install --force-reinstall reasoning-store tiktoken)",
                RuntimeWarning,
                stacklevel=3,
            )
        return Count(estimate(text, self._encoding), "estimated")


def _length_in(encoding: Encoding) -> Callable[[str], int]:
    """Return what counts a text: where this tiktoken can, without making a list of numbers.

    It can where its buffer, four bytes a token and no part of its promise, is as long as
    the list for a text that has something of everything.
    """
    encode = encoding.encode_ordinary

    def listed(text: str) -> int:
        return len(encode(text))

    try:
        to_buffer = encoding._core_bpe.encode_to_tiktoken_buffer  # type: ignore[attr-defined]
        no_special: set[str] = set()

        def buffered(text: str) -> int:
            return memoryview(to_buffer(text, no_special)).nbytes // 4

        return buffered if buffered(_PROBE) == listed(_PROBE) else listed
    except Exception:  # no such buffer, or another one: the list is right with any tiktoken
        return listed


def _in_pieces(length: Callable[[str], int], text: str) -> Count:
    tokens, cut_hard = 0, False
    for piece, hard in pieces(encodable(text)):
        tokens += length(piece)
        if hard:
            tokens += HARD_CUT_TOKENS
            cut_hard = True
    return Count(tokens, "estimated" if cut_hard else "exact")


def _is_failure(error: BaseException) -> bool:
    # A panic of tiktoken's Rust code is no Exception, and its class cannot be imported.
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _loader(vocabulary: vocabularies.Vocabulary) -> Callable[[], Encoding]:
    return lambda: vocabularies.load(vocabulary, plainly=True)


_COUNTERS: Mapping[str, Counter] = {
    name: TiktokenCounter(name, _loader(vocabulary))
    for name, vocabulary in vocabularies.VOCABULARIES.items()
}
