"""How long a text is, in tokens, without a network.

    from reasoning_store.tokenizers import counter

    counter().count("Is 91 prime?")        # Count(tokens=5, exactness='exact')

This room knows tiktoken, the two vocabularies that ship with the package and what to do
when they fail. It must not know SQL, a provider, a policy or a message: it counts one
text, and what is counted is decided elsewhere. Importing it neither imports tiktoken nor
reads a vocabulary; the first count does.
"""

from __future__ import annotations

from reasoning_store.tokenizers.base import Count, Counter, Exactness, worst
from reasoning_store.tokenizers.counting import DEFAULT_ENCODING, ENCODINGS, counter

__all__ = ["DEFAULT_ENCODING", "ENCODINGS", "Count", "Counter", "Exactness", "counter", "worst"]
