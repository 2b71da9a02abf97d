"""The next request: select, repair, write, count, in this order.

The count is that of the request that ``build`` returns, whatever the policy (BR-004), because
both come from the same selection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import PrivateAttr

from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.reasoning_settings import ReasoningSettings
from reasoning_store.conversation.settings import KEY_OF, Layer, Policy, Resolved
from reasoning_store.conversation.turns import turn_positions
from reasoning_store.egress.media_limits import media_warnings
from reasoning_store.egress.repairs import repair
from reasoning_store.egress.request_inputs import RequestInputs
from reasoning_store.egress.request_places import Places, labelled_view, read_places
from reasoning_store.egress.request_warnings import (
    body_warnings,
    first_of_each_code,
    model_name,
    warning,
    writing_warnings,
)
from reasoning_store.egress.selection import select
from reasoning_store.egress.selection_values import (
    RequestWarning,
    Selection,
    Verdict,
    ViewedMessage,
)
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import TokenCount, counted
from reasoning_store.egress.unified_diff import unified_diff
from reasoning_store.wire.reasoning_options import ReasoningOptions


class RequestSettings(ReasoningSettings, frozen=True):
    """The settings of one request; each key has its value and its layer."""

    _layers: Mapping[str, Layer] = PrivateAttr(default_factory=dict)

    @classmethod
    def _of(cls, policy: Policy) -> RequestSettings:
        settings = cls.model_validate(policy.settings.by_key())
        settings._layers = policy.layers  # type: ignore[misc]
        return settings

    def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that held and the layer that it came from."""
        return {key: self[key] for key in KEY_OF.values()}

    def __getitem__(self, key: str) -> Resolved:
        return Resolved(self.by_key()[key], self._layers.get(key, "default"))


@dataclass(frozen=True, slots=True)
class RequestSource:
    """All that a request was built from."""

    view: Sequence[ViewedMessage]
    policy: Policy
    to: Target
    inputs: RequestInputs

    def build(self, view: Sequence[ViewedMessage]) -> Request:
        """Build the request again, of another view."""
        return build(view, self.policy, self.to, self.inputs)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request that can be sent, with its count and the decisions that made it.

    ``body`` is the whole JSON body of the HTTP request, ``kwargs`` the same as arguments of
    the official SDK's call.
    """

    body: dict[str, Any]
    tokens: TokenCount
    verdicts: tuple[Verdict, ...] = field(repr=False)
    """The decision about each thinking block, in order."""
    warnings: tuple[RequestWarning, ...]
    settings: RequestSettings
    _to: Target = field(repr=False)
    digest: str
    """The digest of system and tools, which are not stored."""
    cache_break: int | None = None
    """The first written message that differs from the earlier request; None without one."""
    address_arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Arguments of the SDK's call that are not in the body: a model that is in the address."""
    _selection: Selection = field(repr=False, compare=False)
    _source: RequestSource = field(repr=False, compare=False)

    @property
    def chain(self) -> str | None:
        """A digest of all that it sends, where the host binds thoughts to what precedes them."""
        return self._selection.chain

    @property
    def target(self) -> Origin:
        """The origin that the reply to it will have."""
        return self._to.origin

    @cached_property
    def kwargs(self) -> dict[str, Any]:
        """The body as arguments of the official SDK's call, whose messages may differ in form."""
        return {**self._to.protocol.sdk_arguments(self.body), **self.address_arguments}

    @cached_property
    def places(self) -> Places:
        """The blocks of each place of the body, by its indexes or the id that was written there.

        ``(3, 0)`` is the first part of the message or item of index 3. Found when it is asked.
        """
        again = self._source.build(labelled_view(self._source.view))
        return read_places(written_messages(self), written_messages(again))

    def first_difference(self, earlier: Request) -> int | None:
        """Return the position of the first message that an earlier request did not send like this.

        None if it sent each message; system and tools are not compared.
        """
        own, before = self._selection, _checked(earlier)._selection
        if self._to != earlier._to:
            return next(iter(own.numbers), None)
        sent = zip(before.numbers, before.messages, strict=True)
        for number, message in zip(own.numbers, own.messages, strict=True):
            if (number, message) != next(sent, None):
                return number
        return None

    def diff(self, earlier: Request, names: tuple[str, str] = ("earlier", "now")) -> list[str]:
        """Return the lines of a unified diff from the body of an earlier request to this one's.

        Without a difference there are no lines. ``names`` are the two of its header.
        """
        before, after = (
            json.dumps(body, ensure_ascii=False, indent=2).split("\n")
            for body in (_checked(earlier).body, self.body)
        )
        return [*unified_diff(before, after, names)]


def build(
    view: Sequence[ViewedMessage],
    policy: Policy,
    to: Target,
    inputs: RequestInputs,
    *,
    previous: Request | None = None,
) -> Request:
    """Return the request that sends this view to this target under this policy.

    ``previous`` is an earlier request of the same conversation, for ``cache_break``.
    """
    _check_writable(to, inputs, previous)
    positions = turn_positions(view)
    selection = select(view, positions, policy.settings, to, inputs.digest)
    assert selection.is_whole, "thinking that is sent was not read"
    outgoing, repair_warnings = repair(selection.messages, selection.owed, to)
    options, switched_off = _reasoning_options(policy, to, inputs)
    tools, not_taken = _tools_taken(to, inputs)
    written = to.protocol.writer(to.contract).write(
        outgoing, model=to.model, system=inputs.system, tools=tools, options=options
    )
    body = {**written.body, **inputs.extra}
    is_paused = bool(view) and view[-1].message.is_paused
    return Request(
        body=body,
        tokens=count_view(view, selection, inputs, to),
        verdicts=selection.verdicts,
        warnings=first_of_each_code(
            [
                *selection.warnings,
                *repair_warnings,
                *media_warnings(selection, to),
                *writing_warnings(written, to),
                *switched_off,
                *not_taken,
                *body_warnings(body, body[to.protocol.messages_key], to, is_paused=is_paused),
            ]
        ),
        settings=RequestSettings._of(policy),
        _to=to,
        digest=inputs.digest,
        cache_break=_cache_break(body, to, inputs.digest, previous),
        address_arguments=written.address_arguments,
        _selection=selection,
        _source=RequestSource(view, policy, to, inputs),
    )


def written_messages(request: Request) -> list[Any]:
    """Return the messages or items of a request's body."""
    written: list[Any] = request.body[request._to.protocol.messages_key]
    return written


def source_of(request: Request) -> RequestSource:
    """Return all that a request was built from."""
    return request._source


def count_view(
    view: Sequence[ViewedMessage], selection: Selection, inputs: RequestInputs, to: Target
) -> TokenCount:
    """Return the count of the request that sends this selection of a view."""
    counts = (item.counts for item in view)
    encoding = inputs.counter.encoding
    return TokenCount(**counted(counts, selection.left_out, inputs.fixed, encoding, to.model))


def _checked(earlier: Request, name: str = "earlier") -> Request:
    if not isinstance(earlier, Request):
        raise InvalidCall(f"{name} must be an earlier request, not {type(earlier).__name__}")
    return earlier


def _check_writable(to: Target, inputs: RequestInputs, previous: Request | None) -> None:
    if previous is not None:
        _checked(previous, "previous")
    if to.only_read is not None:
        raise InvalidCall(
            f"{to.only_read} is read and not written",
            hint=f'api="{to.protocol.id}" writes the same conversation',
        )
    if owned := sorted(set(inputs.extra) & to.protocol.owned_keys):
        raise InvalidCall(
            f"extra cannot set {', '.join(owned)}: the request is built from the conversation",
            hint="pass model=, system= or tools=, or change the history",
        )


def _reasoning_options(
    policy: Policy, to: Target, inputs: RequestInputs
) -> tuple[ReasoningOptions, list[RequestWarning]]:
    """Return the reasoning that the settings ask for; a default asks for nothing.

    A model that takes tools only without reasoning is asked for none, with a warning.
    """
    settings = policy.settings
    chosen = policy.layers["reasoning.enabled"] != "default"
    options = ReasoningOptions(
        enabled=settings.enabled if chosen else None,
        effort=settings.effort,
        budget_tokens=settings.budget_tokens,
    )
    if not (to.contract.reasoning.off_with_tools and inputs.tools):
        return options, []
    is_off = options.enabled is False or options.effort == "none"
    switched_off = warning("reasoning_off", model=model_name(to), api=to.contract.api)
    return ReasoningOptions(enabled=False), [] if is_off else [switched_off]


def _tools_taken(
    to: Target, inputs: RequestInputs
) -> tuple[Sequence[Mapping[str, Any]] | None, list[RequestWarning]]:
    """Return the tools that are offered to the model, with a warning where it takes none here."""
    rules, model = to.contract.messages, model_name(to)
    if not inputs.tools or (rules.takes_tools and rules.tools_api is None):
        return inputs.tools, []
    if not rules.takes_tools:
        return None, [warning("tools_left_out", model=model)]
    refused = warning("needs_responses", model=model, api=to.contract.api, other=rules.tools_api)
    return inputs.tools, [refused]


def _cache_break(
    body: Mapping[str, Any], to: Target, digest: str, previous: Request | None
) -> int | None:
    """Return the first written message that differs from an earlier request of the conversation.

    A provider's prompt cache holds at most the messages before it. The earlier request is one that
    was built again (``sessions/context.py``), or one that the application stored.
    """
    if previous is None:
        return None
    if (to, digest) != (previous._to, previous.digest):
        return 0  # another model's cache, or other system or tools
    key = to.protocol.messages_key
    own, before = body[key], previous.body[key]
    pairs = enumerate(zip(own, before, strict=False))
    differing = (index for index, (one, other) in pairs if one != other)
    return next(differing, min(len(own), len(before)))
