"""The next request: selected, counted, rendered, explained.

``build`` puts the parts of this room together for one view, one policy and one target.
The count is that of the request that it returns, whatever the policy (BR-004), because
both come from the same selection. It must not know SQL, a clock or an environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoning_store import codec
from reasoning_store.egress.select import Selection, Target, Verdict, Viewed, Warning, select
from reasoning_store.egress.tokens import TokenCount, fixed_tokens, total
from reasoning_store.errors import UsageError
from reasoning_store.settings import KEY_OF, Policy, ReasoningSettings
from reasoning_store.tokenizers import Counter
from reasoning_store.wire import registry
from reasoning_store.wire.base import Asked, Outgoing, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that can be sent, and why it is what it is.

    ``body`` is the whole JSON body of the HTTP request, ``kwargs`` the same for the
    official SDK's call.
    """

    body: dict[str, Any]
    kwargs: dict[str, Any]
    tokens: TokenCount
    verdicts: tuple[Verdict, ...]
    warnings: tuple[Warning, ...]
    settings: ReasoningSettings
    target: Target
    digest: str
    """Of system and tools, which are not stored: tells whether they were the same."""


def build(
    view: Sequence[Viewed],
    policy: Policy,
    to: Target,
    counter: Counter,
    *,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Request:
    """Return the request that sends this view to this target under this policy."""
    writer = registry.writer(to.contract.api)
    if owned := sorted(set(extra or ()) & writer.BUILT):
        raise UsageError(
            f"extra cannot set {', '.join(owned)}: the request is built from the conversation",
            hint="pass model=, system= or tools=, or change the history",
        )
    selection = select(view, policy.settings, to)
    written = writer.write(
        [
            Outgoing(message=message, owed=owed)
            for message, owed in zip(selection.messages, selection.owed, strict=True)
        ],
        to.contract,
        model=to.model,
        system=system,
        tools=tools,
        asked=_asked(policy),
    )
    body = written.body
    body.update(extra or {})
    return Request(
        body=body,
        kwargs=writer.sdk_arguments(body),
        tokens=count(view, selection, counter, system=system, tools=tools),
        verdicts=selection.verdicts,
        warnings=(*selection.warnings, *_unsaid(written, to)),
        settings=policy.settings,
        target=to,
        digest=hashlib.blake2b(
            codec.dumps([system, list(tools or ())]).encode(), digest_size=16
        ).hexdigest(),
    )


def count(
    view: Sequence[Viewed],
    selection: Selection,
    counter: Counter,
    *,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> TokenCount:
    """Return what a view counts when this selection of it is sent."""
    return total(
        (item.counts for item in view),
        sum(verdict.tokens for verdict in selection.verdicts if not verdict.kept),
        fixed_tokens(system, tools, counter),
        counter.encoding,
    )


def _asked(policy: Policy) -> Asked:
    """Return what the settings say to the provider; a default that nobody chose is not said."""
    settings = policy.settings
    chosen = policy.layers["reasoning.enabled"] != "default"
    return Asked(
        enabled=settings.enabled if chosen else None,
        effort=settings.effort,
        budget_tokens=settings.budget_tokens,
    )


def _unsaid(written: Written, to: Target) -> list[Warning]:
    """Say which reasoning parameters were set and are not in the request."""
    if not written.unsaid:
        return []
    keys = ", ".join(KEY_OF[name] for name in written.unsaid)
    who = to.provider or "an unknown host"
    return [
        Warning(
            code="parameter_unsent",
            text=f"{keys} cannot be said to {who}; pass its own parameter in extra",
        )
    ]
