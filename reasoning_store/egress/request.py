"""The next request: selected, mended, counted, rendered, explained.

``build`` puts the parts of this room together for one view, one policy and one target.
The count is that of the request that it returns, whatever the policy (BR-004), because
both come from the same selection. It must not know SQL, a clock or an environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import PrivateAttr

from reasoning_store.blocks import Origin
from reasoning_store.egress import building
from reasoning_store.egress.building import Key, Made, Remembered
from reasoning_store.egress.given import Given, fixed
from reasoning_store.egress.tokens import TokenCount, total, with_fixed
from reasoning_store.egress.verdicts import Selection, Target, Verdict, Viewed, Warning
from reasoning_store.errors import UsageError
from reasoning_store.rope import Rope
from reasoning_store.settings import KEY_OF, Layer, Policy, ReasoningSettings, Resolved
from reasoning_store.tokenizers import Counter
from reasoning_store.wire import neutral, registry
from reasoning_store.wire.base import Asked, Written
from reasoning_store.wire.reasoning_parameters import at


class RequestSettings(ReasoningSettings):
    """The settings of one request; by its key, each tells its value and its layer."""

    _layers: Mapping[str, Layer] = PrivateAttr(default_factory=dict)

    @classmethod
    def _of(cls, policy: Policy) -> RequestSettings:
        settings = cls.model_validate(policy.settings.by_key())
        settings._layers = policy.layers
        return settings

    def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that held, and the layer it came from."""
        return {key: self[key] for key in KEY_OF.values()}

    def __getitem__(self, key: str) -> Resolved:
        return Resolved(self.by_key()[key], self._layers.get(key, "default"))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request that can be sent, and why it is what it is.

    ``body`` is the whole JSON body of the HTTP request, ``kwargs`` the same for the
    official SDK's call.
    """

    body: dict[str, Any]
    tokens: TokenCount
    _verdicts: Sequence[Verdict] = field(repr=False)
    warnings: tuple[Warning, ...]
    settings: RequestSettings
    _to: Target = field(repr=False)
    digest: str
    """Of system and tools, which are not stored: tells whether they were the same."""
    cache_break: int | None = None
    """The first rendered message that is not the earlier request's; ``None`` without one."""
    beside: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the SDK's call takes beside the body: a model that stands in the address."""

    @property
    def target(self) -> Origin:
        """Whom it is for, as the origin of the reply to it."""
        return self._to.origin

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What was decided about each thinking block, in order, and by which rule."""
        return tuple(self._verdicts)

    @cached_property
    def kwargs(self) -> dict[str, Any]:
        """The body as arguments of the official SDK's call.

        Made when they are asked for: some SDKs want every message in another form.
        """
        writer = registry.writer(self._to.contract.api)
        return {**writer.sdk_arguments(self.body), **self.beside}


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
    if previous is not None and not isinstance(previous, Request):
        raise UsageError(f"previous is an earlier request, not {type(previous).__name__}")
    given = Given.of(to, system, tools, extra, counter)
    made = building.make(Key.of(to, policy.settings, given.digest), view)
    return _request(made, policy, to, given, previous, copies=False)


def build_next(
    view: Sequence[Viewed],
    policy: Policy,
    to: Target,
    counter: Counter,
    *,
    before: Remembered | None,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
    previous: Remembered | None = None,
) -> tuple[Request, Remembered]:
    """Return the same request as ``build``, and what the next one can go on from.

    ``before`` is what came with an earlier request of the conversation, or ``None``. A view
    that is another, by what was appended, edited, compacted or erased, is found out.
    ``previous`` is what an earlier request with the same system and tools was made of.
    """
    given = Given.of(to, system, tools, extra, counter)
    now = building.remember(Key.of(to, policy.settings, given.digest), view, before)
    return _request(now.made[-1], policy, to, given, previous, copies=True), now


def _request(
    made: Made,
    policy: Policy,
    to: Target,
    given: Given,
    previous: Request | Remembered | None,
    *,
    copies: bool,
) -> Request:
    selecting = made.selecting
    written = made.page.finish(
        model=to.model,
        system=given.system,
        tools=given.tools,
        asked=_asked(policy),
        copies=copies,
    )
    body = written.body
    body.update(given.extra)
    warnings = [
        *selecting.warnings,
        *made.repairs.warnings,
        *given.warnings,
        *_of_writing(written, to),
        *_of_body(body, to),
    ]
    return Request(
        body=body,
        tokens=with_fixed(
            made.raw, selecting.withheld, made.exactness, given.fixed, given.encoding
        ),
        _verdicts=selecting.verdicts,
        warnings=tuple({warning.code: warning for warning in reversed(warnings)}.values())[::-1],
        settings=RequestSettings._of(policy),
        _to=to,
        digest=given.digest,
        cache_break=_cache_break(body, made, to, given.digest, previous),
        beside=written.beside,
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
        fixed(system, tools, counter),
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


def _keys(names: Sequence[str]) -> str:
    return ", ".join(KEY_OF[name] for name in names)


def _of_writing(written: Written, to: Target) -> Iterator[Warning]:
    """Yield what the protocol had no way to say, and what it had to say besides."""
    who = to.provider or "an unknown host"
    if to.provider and to.model:
        who = f"{to.model} of {to.provider}"
    if written.unsaid:
        text = f"{_keys(written.unsaid)} cannot be said to {who}; pass its own parameter in extra"
        yield Warning(code="parameter_unsent", text=text)
    if written.held:
        text = (
            f"{who} goes on with a turn as it began; said from the next user message on: "
            f"{_keys(written.held)}"
        )
        yield Warning(code="parameter_held", text=text)
    if written.left_out:
        kinds = ", ".join(written.left_out)
        text = f"{to.contract.api} has no place for these blocks, which are left out: {kinds}"
        yield Warning(code="block_left_out", text=text)
    if written.unfollowed:
        yield _UNFOLLOWED


_UNFOLLOWED = Warning(
    code="no_answer",
    text="the provider takes reasoning together with what it led to; where that is nothing, "
    f"{neutral.NO_ANSWER!r} is sent behind it",
)


def _of_body(body: Mapping[str, Any], to: Target) -> Iterator[Warning]:
    """Yield what a provider refuses in the list of messages, whoever made it so."""
    said = _rendered(body)
    # What a system says alone is nothing where order is strict.
    strict = to.contract.strict_order
    if not said or (strict and all(item.get("role") == "system" for item in said)):
        yield _NOTHING
    elif to.contract.user_last and said[-1].get("role") == "assistant" and _thinks(body, to):
        text = (
            f"{to.provider} refuses a conversation that ends with the model's own message while "
            "the model thinks; append what the user says"
        )
        if to.contract.off is not None:
            text += ", or set reasoning.enabled to false"
        yield Warning(code="reply_last", text=text)


_NOTHING = Warning(
    code="nothing_to_send",
    text="no message is left to send, and providers refuse a request without",
)


def _thinks(body: Mapping[str, Any], to: Target) -> bool:
    """Whether the model thinks, as far as the request has a say in it."""
    said = at(body, to.contract.enabled_at)
    return to.contract.thinks if said is None else said != to.contract.off


_LISTS = ("messages", "input", "contents")
"""The keys under which protocols have the list of messages."""


def _cache_break(
    body: Mapping[str, Any],
    made: Made,
    to: Target,
    asked_with: str,
    previous: Request | Remembered | None,
) -> int | None:
    """Return how far a provider's prompt cache can reach back: what is rendered alike."""
    if previous is None:
        return None
    if isinstance(previous, Remembered):
        if to != previous.key.to:
            return 0
        # What system became of the same list stands before what was written of the view.
        head = len(_rendered(body)) - len(made.page)
        return head + made.page.alike(previous.made[-1].page)
    if (to, asked_with) != (previous._to, previous.digest):
        return 0  # another model's cache, or another head: nothing of it is the same
    return _alike(_rendered(body), _rendered(previous.body))


def _alike(now: Sequence[Any], before: Sequence[Any]) -> int:
    """Return how many of the first messages are the same."""
    return Rope(now).alike(Rope(before))


def _rendered(body: Mapping[str, Any]) -> Sequence[Any]:
    return next((body[key] for key in _LISTS if isinstance(body.get(key), list)), ())
