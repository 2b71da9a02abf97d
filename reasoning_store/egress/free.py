"""The free functions: the same selection, request and count for a plain list of messages.

They know two layers of settings only, the call's and the defaults, and no session: what
they are not told is unknown, and an unknown host gets no floor and no parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from reasoning_store import checking
from reasoning_store.blocks import Message
from reasoning_store.egress import request as _request
from reasoning_store.egress import select as _select
from reasoning_store.egress import what_if as _what_if
from reasoning_store.egress.request import Request
from reasoning_store.egress.tokens import TokenCount, count_message
from reasoning_store.egress.verdicts import Holder, Selection, Viewed, message_of
from reasoning_store.egress.what_if import WhatIf
from reasoning_store.errors import UsageError
from reasoning_store.settings import ReasoningSettings, resolve
from reasoning_store.tokenizers import DEFAULT_ENCODING, Counter, counter

Settings: TypeAlias = ReasoningSettings | Mapping[str, Any] | None
Messages: TypeAlias = Sequence[Message | Holder]
"""Plain messages, or what a session's ``history()`` gives."""
Tools: TypeAlias = Sequence[Mapping[str, Any]] | None


def select(
    messages: Messages,
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
    messages: Messages,
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    system: Any = None,
    tools: Tools = None,
    extra: Mapping[str, Any] | None = None,
    previous: Request | None = None,
) -> Request:
    """Return the request that sends these messages, counted and explained.

    With ``previous``, an earlier request of the same conversation, it says in
    ``cache_break`` from which message on the two differ.
    """
    return _request.build(
        _view(messages, _counter()),
        resolve(settings),
        _select.target(provider, model, api, base_url),
        _counter(),
        system=system,
        tools=tools,
        extra=extra,
        previous=previous,
    )


def effective_tokens(
    messages: Messages,
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    system: Any = None,
    tools: Tools = None,
) -> TokenCount:
    """Return what the request of these messages counts, without building it."""
    to = _select.target(provider, model, api, base_url)
    view = _view(messages, _counter())
    selection = _select.select(view, resolve(settings).settings, to)
    return _request.count(view, selection, _counter(), system=system, tools=tools)


def what_if(
    messages: Messages,
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    system: Any = None,
    tools: Tools = None,
) -> WhatIf:
    """Return what every choice of include and strip would send, beside the current one."""
    return _what_if.what_if(
        _view(messages, _counter()),
        resolve(settings),
        _select.target(provider, model, api, base_url),
        _counter(),
        system=system,
        tools=tools,
    )


def _counter() -> Counter:
    return counter(DEFAULT_ENCODING)


def _view(messages: Messages, count: Counter) -> list[Viewed]:
    if not checking.are_several(messages):
        raise UsageError(
            f"messages is a list of messages, not {checking.type_name(messages)}",
            hint="put a single message into a list",
        )
    plain: list[Message] = []
    for place, item in enumerate(messages):
        if not isinstance(item, Message) and not isinstance(getattr(item, "message", 0), Message):
            raise UsageError(
                f"messages[{place}] is not a message but {checking.type_name(item)}",
                hint="make one with user(), assistant(), tool() or system()",
            )
        # What is none would go out as something else, or fail far from here.
        plain.append(checking.checked(message_of(item), f"messages[{place}]."))
    return _select.viewed(plain, (count_message(message, count) for message in plain))
