"""For applications' tests: what providers would have sent, made from messages.

``stream`` and ``response`` turn any assistant message into a protocol's own events or its
whole body, ``sse`` into the bytes of the connection, and ``carries`` says whether a
protocol has a place for all of a message. A test needs no network, no key and no recorded
file; an application's own client code, or ours, reads what it would have read.
``refusal`` is the other direction: the error that a strict provider would answer a request.

Written from the providers' documentation and their SDKs' types. This room must not know
how our readers work (it is what they are tested against), nor egress.
"""

from reasoning_store.testing.framing import sse
from reasoning_store.testing.refusals import Record, Sealed, refusal
from reasoning_store.testing.streams import carries, response, stream

__all__ = ["Record", "Sealed", "carries", "refusal", "response", "sse", "stream"]
