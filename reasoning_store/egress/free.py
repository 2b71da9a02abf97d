"""The free functions: the same selection, request and count for a plain list of messages.

They know two layers of settings only, the call's and the defaults, and no session: what
they are not told is unknown, and an unknown host gets no floor and no parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reasoning_store.blocks import Message
from reasoning_store.egress import request as _request
from reasoning_store.egress import select as _select
from reasoning_store.egress.request import Request
from reasoning_store.egress.select import Selection, Viewed
from reasoning_store.egress.tokens import TokenCount, count_message
from reasoning_store.settings import ReasoningSettings, resolve
from reasoning_store.tokenizers import DEFAULT_ENCODING, Counter, counter

Settings = ReasoningSettings | Mapping[str, Any] | None


def select(
    messages: Sequence[Message],
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
) -> Selection:
    """Return what of these messages would be sent, with a verdict for each thinking block."""
    to = _select.target(provider, model, api, base_url)
    return _select.select(_view(messages, _counter()), resolve(settings).settings, to)


def build_request(
    messages: Sequence[Message],
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Request:
    """Return the request that sends these messages, counted and explained."""
    return _request.build(
        _view(messages, _counter()),
        resolve(settings),
        _select.target(provider, model, api, base_url),
        _counter(),
        system=system,
        tools=tools,
        extra=extra,
    )


def effective_tokens(
    messages: Sequence[Message],
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> TokenCount:
    """Return what the request of these messages counts, without building it."""
    to = _select.target(provider, model, api, base_url)
    view = _view(messages, _counter())
    selection = _select.select(view, resolve(settings).settings, to)
    return _request.count(view, selection, _counter(), system=system, tools=tools)


def _counter() -> Counter:
    return counter(DEFAULT_ENCODING)


def _view(messages: Sequence[Message], count: Counter) -> list[Viewed]:
    # What a session's history() gives is taken as it is, for its messages.
    plain: list[Message] = [getattr(item, "message", item) for item in messages]
    return _select.viewed(plain, (count_message(message, count) for message in plain))
