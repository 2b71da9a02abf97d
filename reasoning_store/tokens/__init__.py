"""How long a text is, in tokens, without a network.

    from reasoning_store.tokens import counter

    counter().count("Is 91 prime?")        # Count(tokens=5, exactness='exact')

Importing it neither imports tiktoken nor reads a vocabulary; the first count does.
"""

from __future__ import annotations

from reasoning_store.conversation.blocks import Exactness
from reasoning_store.tokens.counter import (
    DEFAULT_ENCODING,
    ENCODINGS,
    Count,
    Counter,
    counter,
    worst,
)

__all__ = ["DEFAULT_ENCODING", "ENCODINGS", "Count", "Counter", "Exactness", "counter", "worst"]
