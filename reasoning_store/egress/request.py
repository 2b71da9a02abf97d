"""The next request: selected, mended, counted, rendered, explained.

``build`` puts the parts of this room together for one view, one policy and one target.
The count is that of the request that it returns, whatever the policy (BR-004), because
both come from the same selection. It must not know SQL, a clock or an environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import PrivateAttr

from reasoning_store import codec
from reasoning_store.egress.repair import repair
from reasoning_store.egress.select import Selection, Target, Verdict, Viewed, Warning, select
from reasoning_store.egress.tokens import TokenCount, fixed_tokens, total
from reasoning_store.errors import UsageError
from reasoning_store.settings import KEY_OF, Layer, Policy, ReasoningSettings, Resolved
from reasoning_store.tokenizers import Counter
from reasoning_store.wire import registry
from reasoning_store.wire.base import Asked, Written


class RequestSettings(ReasoningSettings):
    """The settings of one request; by its key, each tells its value and its layer."""

    _layers: Mapping[str, Layer] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy) -> RequestSettings:
        settings = cls.model_validate(policy.settings.by_key())
        settings._layers = policy.layers
        return settings

    def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that held, and the layer it came from."""
        return {key: self[key] for key in KEY_OF.values()}

    def __getitem__(self, key: str) -> Resolved:
        return Resolved(self.by_key()[key], self._layers.get(key, "default"))


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
    settings: RequestSettings
    target: Target
    digest: str
    """Of system and tools, which are not stored: tells whether they were the same."""
    cache_break: int | None = None
    """The first rendered message that is not the earlier request's; ``None`` without one."""


def build(
    view: Sequence[Viewed],
    policy: Policy,
    to: Target,
    counter: Counter,
    *,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
    previous: Request | None = None,
) -> Request:
    """Return the request that sends this view to this target under this policy.

    ``previous`` is an earlier request of the same conversation, for ``cache_break``.
    """
    writer = registry.writer(to.contract.api)
    if owned := sorted(set(_mapping("extra", extra)) & writer.BUILT):
        raise UsageError(
            f"extra cannot set {', '.join(owned)}: the request is built from the conversation",
            hint="pass model=, system= or tools=, or change the history",
        )
    for tool in tools or ():
        _mapping("a tool", tool)
    asked_with = digest(system, tools)
    selection = select(view, policy.settings, to, asked_with=asked_with)
    repaired = repair(selection, to)
    asked, held = _asked(policy, selection, to)
    written = writer.write(
        repaired.outgoing,
        to.contract,
        model=to.model,
        system=system,
        tools=tools,
        asked=asked,
    )
    body = written.body
    body.update(extra or {})
    return Request(
        body=body,
        kwargs={**writer.sdk_arguments(body), **written.beside},
        tokens=count(view, selection, counter, system=system, tools=tools),
        verdicts=selection.verdicts,
        warnings=(
            *selection.warnings,
            *repaired.warnings,
            *held,
            *_unsaid(written.unsaid, to),
            *_left_out(written, to),
            *([] if _rendered(body) else [_NOTHING]),
        ),
        settings=RequestSettings.of(policy),
        target=to,
        digest=asked_with,
        cache_break=_cache_break(body, to, asked_with, previous),
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


def digest(system: Any, tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Return what tells one request's system and tools from another's."""
    text = codec.dumps([system, list(tools or ())])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{name} is a mapping, not {type(value).__name__}")
    return value or {}


def _asked(policy: Policy, selection: Selection, to: Target) -> tuple[Asked, list[Warning]]:
    """Return what the settings say to the provider; a default that nobody chose is not said."""
    settings = policy.settings
    chosen = policy.layers["reasoning.enabled"] != "default"
    asked = Asked(
        enabled=settings.enabled if chosen else None,
        effort=settings.effort,
        budget_tokens=settings.budget_tokens,
    )
    if to.contract.fixed_in_turn and selection.open_reasoning and asked.enabled is False:
        held = Warning(
            code="parameter_held",
            text=f"{to.provider} cannot stop reasoning within a turn that carries some; "
            "reasoning.enabled=false holds from the next user message on",
        )
        return Asked(), [held]
    return asked, []


def _unsaid(names: Iterable[str], to: Target) -> list[Warning]:
    """Say which reasoning parameters were set and are not in the request."""
    keys = ", ".join(KEY_OF[name] for name in names)
    who = to.provider or "an unknown host"
    if to.provider and to.model:
        who = f"{to.model} of {to.provider}"
    text = f"{keys} cannot be said to {who}; pass its own parameter in extra"
    return [Warning(code="parameter_unsent", text=text)] if keys else []


def _left_out(written: Written, to: Target) -> list[Warning]:
    """Say which kinds of blocks the protocol has no place for."""
    kinds = ", ".join(written.left_out)
    text = f"{to.contract.api} has no place for these blocks, which are left out: {kinds}"
    return [Warning(code="block_left_out", text=text)] if kinds else []


_NOTHING = Warning(
    code="nothing_to_send",
    text="no message is left to send, and providers refuse a request without",
)

_LISTS = ("messages", "input", "contents")
"""The keys under which protocols have the list of messages."""


def _cache_break(
    body: Mapping[str, Any], to: Target, asked_with: str, previous: Request | None
) -> int | None:
    """Return how far a provider's prompt cache can reach back: what is rendered alike."""
    if previous is None:
        return None
    if (to, asked_with) != (previous.target, previous.digest):
        return 0  # another model's cache, or another head: nothing of it is the same
    now, before = _rendered(body), _rendered(previous.body)
    shorter = min(len(now), len(before))
    return next((n for n in range(shorter) if now[n] != before[n]), shorter)


def _rendered(body: Mapping[str, Any]) -> Sequence[Any]:
    return next((body[key] for key in _LISTS if isinstance(body.get(key), list)), ())
