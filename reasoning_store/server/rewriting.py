"""What a client gets of a reply in another mode than ``mirror``."""

from __future__ import annotations

from typing import Protocol

from reasoning_store.server.options import Mode


class Rewriter(Protocol):
    """One reply on its way to a client that wants its thinking elsewhere."""

    def feed(self, piece: bytes) -> bytes:
        """Return what to pass on of the next piece of a stream."""
        ...

    def finish(self) -> bytes:
        """Return the rest of a stream that has ended."""
        ...

    def rewrite_whole(self, content: bytes) -> bytes:
        """Return a whole response."""
        ...


def make_rewriter(mode: Mode, path: str) -> Rewriter | None:
    """Return the rewriter of a reply; ``None`` where it is passed on as it is."""
    return None
