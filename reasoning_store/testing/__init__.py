"""For applications' tests: a provider's streams and answers, made from messages.

``stream`` and ``response`` write an assistant message as a protocol's events or as its whole body,
``sse`` writes events as bytes, ``carries`` is true if a protocol has a place for all of a message,
and ``refusal`` is the error that a strict provider answers to a request. No test needs a network, a
key or a recorded file.

Written from the providers' documentation; this room imports nothing of egress.
"""

from reasoning_store.testing.streams import carries, response, sse, stream
from reasoning_store.testing.strict_provider import Record, Sealed, refusal

__all__ = ["Record", "Sealed", "carries", "refusal", "response", "sse", "stream"]
