"""The free functions: selection, request and counts for a plain list of messages.

Without a session there are two layers of settings, the call's and the defaults, and a host that
the call does not name is unknown: it gets no reasoning parameters, and no floor but the one that
the model's name tells. ``contracts`` are those of a store (``store.contracts``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from reasoning_store.conversation import validation
from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.reasoning_settings import ReasoningSettings
from reasoning_store.conversation.settings import resolve_settings
from reasoning_store.conversation.turns import turn_positions
from reasoning_store.conversation.validation import Holder, message_of
from reasoning_store.egress import selection as _selection
from reasoning_store.egress import what_if as _what_if
from reasoning_store.egress.request import Request, build, count_view
from reasoning_store.egress.request_inputs import RequestInputs
from reasoning_store.egress.selection_values import (
    Selection,
    ViewedMessage,
)
from reasoning_store.egress.target import Target, find_target
from reasoning_store.egress.token_counts import TokenCount, count_message
from reasoning_store.egress.what_if import WhatIf
from reasoning_store.tokens import (
    DEFAULT_ENCODING,
    Counter,
    counter,
)
from reasoning_store.wire.contract_tables import Contracts
from reasoning_store.wire.message_writer import Outgoing

Settings: TypeAlias = ReasoningSettings | Mapping[str, Any] | None
Messages: TypeAlias = Sequence[Message | Holder]
"""Plain messages, or the items of a session's ``history()``."""
Tools: TypeAlias = Sequence[Mapping[str, Any]] | None


def select(
    messages: Messages,
    *,
    settings: Settings = None,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    contracts: Contracts | None = None,
) -> Selection:
    """Return the selection of these messages, with a verdict for each thinking block."""
    view = _make_view(messages)
    to = find_target(provider, model, api, base_url, contracts)
    return _selection.select(view, turn_positions(view), resolve_settings(settings).settings, to)


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
    contracts: Contracts | None = None,
) -> Request:
    """Return the request that sends these messages, counted and explained.

    With ``previous``, an earlier request of the same conversation, ``cache_break`` is the first
    message in which the two differ.
    """
    return build(
        _make_view(messages),
        resolve_settings(settings),
        find_target(provider, model, api, base_url, contracts),
        RequestInputs.of(_default_counter(), system, tools, extra),
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
    contracts: Contracts | None = None,
) -> TokenCount:
    """Return the count of the request of these messages, without building it."""
    view = _make_view(messages)
    to = find_target(provider, model, api, base_url, contracts)
    chosen = resolve_settings(settings).settings
    selection = _selection.select(view, turn_positions(view), chosen, to)
    return count_view(view, selection, RequestInputs.of(_default_counter(), system, tools), to)


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
    contracts: Contracts | None = None,
) -> WhatIf:
    """Return the counts of every choice of include and strip, with the current one marked."""
    return _what_if.what_if(
        _make_view(messages),
        resolve_settings(settings),
        find_target(provider, model, api, base_url, contracts),
        RequestInputs.of(_default_counter(), system, tools),
    )


def write_message(
    message: Message | Holder,
    *,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    owed: bool = False,
    contracts: Contracts | None = None,
) -> list[dict[str, Any]]:
    """Return the parts of a request's body that carry one message, all of its thinking included.

    For a program that restores the thinking of a message in a body that another one built:
    ``select`` decides which thinking is sent; this function gives it the target's form. ``owed`` is
    the selection's: the target demands the field, also where it is empty.
    """
    plain = validation.check_message(message_of(message), "")
    to = find_target(provider, model, api, base_url, contracts)
    return write_reply(plain, to, owed=owed)


def write_reply(message: Message, to: Target, *, owed: bool) -> list[dict[str, Any]]:
    """Return the parts that carry one message, for a target that is known."""
    writer = to.protocol.writer(to.contract)
    writer.write_message(Outgoing(message, owed=owed))
    written: list[dict[str, Any]] = writer.messages()
    if message.role == "assistant":  # some protocols open with a user's message
        written = [part for part in written if part.get("role") != "user"]
    return written


def _default_counter() -> Counter:
    return counter(DEFAULT_ENCODING)


def _make_view(messages: Messages) -> list[ViewedMessage]:
    if not validation.are_several(messages):
        raise InvalidCall(
            f"messages must be a list of messages, not {validation.type_name(messages)}",
            hint="put a single message into a list",
        )
    plain: list[Message] = []
    for place, item in enumerate(messages):
        if not isinstance(item, Message) and not isinstance(getattr(item, "message", 0), Message):
            raise InvalidCall(
                f"messages[{place}] is not a message but {validation.type_name(item)}",
                hint="make one with user(), assistant(), tool() or system()",
            )
        plain.append(validation.check_message(message_of(item), f"messages[{place}]."))
    counts = (count_message(message, _default_counter()) for message in plain)
    return _selection.make_view(plain, counts)
