"""What a server loads before it is ready, so that its first request is not late."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import find_form
from reasoning_store.integrations.echo_matcher import EchoMatcher
from reasoning_store.server.counting import count_body
from reasoning_store.server.options import ServerOptions
from reasoning_store.store import Store

_PATH: Final = "/v1/chat/completions"
_BODY: Final[dict[str, Any]] = {"messages": [{"role": "user", "content": "?"}]}


def load_shared() -> None:
    """Load the modules, the contracts and the vocabulary: the workers of a server share them."""
    form = find_form(_PATH)
    assert form is not None
    count_body(form, _BODY)
    with rs.Store("sqlite://") as scratch:
        session = scratch.session("ready", create=True)
        with session.record([]) as recording:
            list(recording)


def make_ready(store: Store, options: ServerOptions) -> None:
    """Load what all requests share, and read the schema of the store; it may fail meanwhile."""
    load_shared()
    owner = store.for_owner(options.owner)
    with suppress(rs.ReasoningStoreError):
        EchoMatcher(owner).begin(
            _BODY, path=_PATH, base_url=options.upstream or "", unstored="counted"
        )
