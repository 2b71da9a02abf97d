"""Which thinking goes back to a model, block by block, and by which rule.

    kept = admissible and (demanded or (left by strip and included))

*Admissible* asks the contract: is there a place for it, was it made there, is it signed
where a signature is demanded. *Demanded* is the provider's floor, which holds whatever the
settings say, unless ``reasoning.floor`` is off, and never overrides admissible. Strip
filters first, then include (BR-005). ``isHidden`` and ``includeInResponse`` are about
display and decide nothing here (BR-003).

What is withheld is absent: not as text, not as a fake block. The stored blocks are not
touched (BR-009). This module knows blocks, contracts and policy; it must not know a
protocol's shapes, tokens' origins or SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from reasoning_store.blocks import (
    Block,
    Counts,
    Message,
    Origin,
    ThinkingBlock,
)
from reasoning_store.egress.policy import Place, demanded, left_by_strip
from reasoning_store.settings import ReasoningSettings
from reasoning_store.wire import contracts
from reasoning_store.wire.contracts import Contract

Rule: TypeAlias = Literal["kept", "required", "no_place", "origin", "unsigned", "strip", "include"]

REASONS: dict[Rule, str] = {
    "kept": "the settings keep it",
    "required": "the provider demands it back",
    "no_place": "the protocol has no field for it",
    "origin": "it belongs to another provider, api, model family or address",
    "unsigned": "the provider takes back signed reasoning only",
    "strip": "reasoning.stripFromContext strips it",
    "include": "reasoning.includeInContext is false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was decided about one thinking block, and by which rule."""

    message: int
    """Which message: its place in the list that was given, or its position in the session."""
    block: int
    """Which block of that message."""
    kept: bool
    rule: Rule
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning:
    """Something about a request that its sender should know; ``code`` is for programs."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Viewed:
    """One message of a view, with what it counts and the name that verdicts give it."""

    message: Message
    counts: Counts
    name: int
    summary: bool = False
    """It stands for a compacted range; no turn starts with it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for."""

    contract: Contract
    provider: str | None
    model: str | None
    base_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is left of a view to send, a verdict for each thinking block, and warnings."""

    messages: tuple[Message, ...]
    verdicts: tuple[Verdict, ...]
    warnings: tuple[Warning, ...]
    owed: tuple[bool, ...] = ()
    """For each of ``messages``, whether the provider demands its reasoning."""


def target(
    provider: str | None, model: str | None, api: str | None, base_url: str | None
) -> Target:
    """Return whom a request is for; an unknown host gets its api's own row."""
    return Target(
        contract=contracts.resolve(provider, model, api, base_url),
        provider=contracts.provider_id(provider, base_url),
        model=model,
        base_url=base_url,
    )


def select(view: Sequence[Viewed], settings: ReasoningSettings, to: Target) -> Selection:
    """Decide about every thinking block of a view."""
    verdicts: list[Verdict] = []
    warnings: dict[str, Warning] = {}
    messages: list[Message] = []
    owed: list[bool] = []
    for item, place in zip(view, places(view), strict=True):
        blocks: list[Block] = []
        thinking = iter(item.counts.thinking)
        for number, block in enumerate(item.message.blocks):
            if not isinstance(block, ThinkingBlock):
                blocks.append(block)
                continue
            kept, rule = decide(obstacle(block, item.message.origin, to), settings, place, to)
            if kept:
                blocks.append(block)
            elif warning := _loss(rule, settings, place, to):
                warnings.setdefault(warning.code, warning)
            verdicts.append(
                Verdict(
                    message=item.name,
                    block=number,
                    kept=kept,
                    rule=rule,
                    tokens=next(thinking),
                    reason=REASONS[rule],
                )
            )
        if blocks:  # a message with nothing left to say is dropped
            whole = len(blocks) == len(item.message.blocks)
            messages.append(item.message if whole else replace(item.message, blocks=tuple(blocks)))
            owed.append(
                item.message.role == "assistant"
                and settings.floor == "provider"
                and demanded(to.contract.floor, place)
            )
    return Selection(
        messages=tuple(messages),
        verdicts=tuple(verdicts),
        warnings=tuple(warnings.values()),
        owed=tuple(owed),
    )


def places(view: Sequence[Viewed]) -> list[Place]:
    """Return where each message of a view stands."""
    start = max((n for n, item in enumerate(view) if _starts_turn(item)), default=0)
    last = max((n for n, item in enumerate(view) if item.message.thinking), default=-1)
    open_call = any(item.message.tool_calls for item in view[start:])
    return [
        Place(
            last=n == last,
            open=n >= start,
            call=bool(item.message.tool_calls),
            open_call=open_call,
        )
        for n, item in enumerate(view)
    ]


def _starts_turn(item: Viewed) -> bool:
    return item.message.starts_turn and not item.summary


def obstacle(block: ThinkingBlock, origin: Origin | None, to: Target) -> Rule | None:
    """Return why a block has no way to this target, or ``None`` where it is admissible."""
    if block.opaque:
        return opaque_obstacle(origin, block.source_field, to)
    return portable_obstacle(to)


def portable_obstacle(to: Target) -> Rule | None:
    """Whether reasoning without signature or ciphertext has a place at the target."""
    if to.contract.signed:
        return "unsigned"
    return None if to.contract.echo is not None else "no_place"


def opaque_obstacle(origin: Origin | None, source_field: str | None, to: Target) -> Rule | None:
    """Whether opaque reasoning of this origin may go to the target.

    It goes only where provider, api and model family equal those it came from, and the
    address where both are known; without an origin its field must be one of the target's.
    Foreign reasoning is never turned into text.
    """
    contract = to.contract
    if not contract.opaque:
        return "no_place"
    if origin is None or origin.provider is None:
        return None if source_field in contract.fields else "origin"
    made = contracts.resolve(origin.provider, origin.model, origin.api, origin.base_url)
    same = (
        origin.provider == to.provider
        and made.api == contract.api
        and contracts.family(made) == contracts.family(contract)
        and (not origin.base_url or not to.base_url or origin.base_url == to.base_url)
    )
    return None if same else "origin"


def decide(
    hindrance: Rule | None, settings: ReasoningSettings, place: Place, to: Target
) -> tuple[bool, Rule]:
    """Return whether reasoning at a place is kept, and the rule that decided."""
    if hindrance is not None:
        return False, hindrance
    left = left_by_strip(settings.strip_from_context, place)
    if left and settings.include_in_context:
        return True, "kept"
    if settings.floor == "provider" and demanded(to.contract.floor, place):
        return True, "required"
    # BR-005: strip comes first, so it is the rule that is named where both say no.
    return False, "include" if left else "strip"


def _loss(rule: Rule, settings: ReasoningSettings, place: Place, to: Target) -> Warning | None:
    """Return the warning where the provider demands what is not sent."""
    if not demanded(to.contract.floor, place):
        return None
    who = to.provider or "the provider"
    if rule in ("strip", "include"):
        return Warning(
            code="floor_off",
            text=f"{who} may refuse this request: it demands the reasoning of messages with tool "
            "calls back, and reasoning.floor is off; set reasoning.floor to provider",
        )
    return Warning(
        code="floor_unmet",
        text=f"{who} demands reasoning back that cannot be sent to it: {REASONS[rule]}",
    )


def viewed(messages: Iterable[Message], counts: Iterable[Counts]) -> list[Viewed]:
    """Return a plain list of messages as a view; verdicts name them by their index."""
    return [
        Viewed(message, count, n)
        for n, (message, count) in enumerate(zip(messages, counts, strict=True))
    ]
