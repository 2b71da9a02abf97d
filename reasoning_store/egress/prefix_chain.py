"""The chain of a request: a short digest of all that it sends of a conversation.

Some providers bind a thought to everything before it, and refuse or drop it if anything of that has
changed. So the chain of a request is stored with its reply, and a thought is sent again only where
the chain before it is the same now. One thought that is left out does the same to those after it:
they are known in one pass, before a provider is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from reasoning_store.egress.selection_values import JudgedMessage, Verdict
from reasoning_store.egress.target import Target


class PrefixChain:
    """The chain of what a selection sends so far."""

    def __init__(self, inputs_digest: str) -> None:
        self._sums = blake2b(inputs_digest.encode(), digest_size=16)

    def add(self, item: JudgedMessage, verdicts: Sequence[Verdict]) -> None:
        """Add a message: its content, and the blocks of it that are left out."""
        if item.status == "streaming":
            return
        left_out = [(verdict.block, verdict.tokens) for verdict in verdicts if not verdict.kept]
        digest = (item.digest or b"").hex()
        self._sums.update(f"{item.number} {digest} {item.counts.visible} {left_out}\n".encode())

    def breaks(self, item: JudgedMessage) -> bool:
        """Whether the request that a message answered sent something else before it."""
        return item.chain is not None and item.chain != self.value

    @property
    def value(self) -> str:
        return self._sums.hexdigest()


def begin_chain(to: Target, inputs_digest: str | None) -> PrefixChain | None:
    """Return the chain of a selection; None for a host that binds no thoughts."""
    binds = to.contract.returning.prefix_bound is not None
    return PrefixChain(inputs_digest) if binds and inputs_digest is not None else None
