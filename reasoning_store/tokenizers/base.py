"""What a count is, and what may be passed in as a counter.

Knows the words only: nothing of tiktoken, of vocabularies or of files.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from reasoning_store.blocks import EXACTNESS, Exactness

__all__ = ["Count", "Counter", "Exactness", "worst"]


class Count(NamedTuple):
    """A number of tokens and how far it can be trusted.

    A counter says ``exact`` or ``estimated``; ``reported`` is a provider's own number.
    """

    # A named tuple, not a frozen dataclass: one is made for every text that is appended,
    # and a tuple costs a third of the time.
    tokens: int
    exactness: Exactness


class Counter(Protocol):
    """Counts the tokens of a text in one encoding; an application may bring its own."""

    @property
    def encoding(self) -> str:
        """The encoding's name; numbers of two encodings are never added up."""

    def count(self, text: str) -> Count:
        """Count ``text`` as plain text. The same text gives the same count, from any thread."""


def worst(*labels: Exactness) -> Exactness:
    """The label of a sum: ``estimated`` outweighs ``reported`` outweighs ``exact``."""
    return max(labels, key=EXACTNESS.index, default="exact")
