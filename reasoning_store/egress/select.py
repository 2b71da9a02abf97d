"""Which thinking goes back to a model, block by block, and by which rule.

    kept = admissible and (demanded or (left by strip and included))

*Admissible* asks the contract: is there a place for it, was it made there, is it signed
where a signature is demanded. *Demanded* is the provider's floor, which holds whatever the
settings say, unless ``reasoning.floor`` is off, and never overrides admissible. Strip
filters first, then include (BR-005). ``isHidden`` and ``includeInResponse`` are about
display and decide nothing here (BR-003).

What is withheld is absent: not as text, not as a fake block. The stored blocks are not
touched (BR-009). This module knows blocks, contracts and policy; it must not know a
protocol's shapes, tokens' origins or SQL. What a sender should be told is worded in
``concerns``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reasoning_store.blocks import (
    Block,
    Counts,
    Message,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.egress.admission import (
    Obstacles,
    obstacle,
    opaque_obstacle,
    portable_obstacle,
)
from reasoning_store.egress.concerns import Concerns
from reasoning_store.egress.policy import Place, demanded, left_by_strip
from reasoning_store.egress.verdicts import (
    REASONS,
    Rule,
    Selection,
    Target,
    Verdict,
    Viewed,
    Warning,
)
from reasoning_store.errors import UsageError
from reasoning_store.settings import ReasoningSettings
from reasoning_store.wire import contracts
from reasoning_store.wire.contracts import Contract

__all__ = [
    "REASONS",
    "Rule",
    "Selection",
    "Target",
    "Verdict",
    "Viewed",
    "Warning",
    "decide",
    "obstacle",
    "opaque_obstacle",
    "places",
    "portable_obstacle",
    "select",
    "target",
    "viewed",
]

_UNFINISHED = "the reply is still being written"
_NOT_A_REPLY = "only a model's message has a field for it"


def target(
    provider: str | None, model: str | None, api: str | None, base_url: str | None
) -> Target:
    """Return whom a request is for; an unknown host gets its api's own row."""
    names = {"provider": provider, "model": model, "api": api, "base_url": base_url}
    for name, value in names.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} is a string, not {type(value).__name__}")
    return Target(
        contract=contracts.resolve(provider, model, api, base_url),
        provider=contracts.provider_id(provider, base_url),
        model=model,
        base_url=base_url,
    )


def select(
    view: Sequence[Viewed],
    settings: ReasoningSettings,
    to: Target,
    *,
    asked_with: str | None = None,
) -> Selection:
    """Decide about every thinking block of a view.

    ``asked_with`` is the digest of the system and tools that will be sent along.
    """
    contract = to.contract
    obstacles = Obstacles(to)
    concerns = Concerns(settings, to, asked_with)
    owes = settings.floor == "provider" and concerns.demanding
    verdicts: list[Verdict] = []
    messages: list[Message] = []
    owed: list[bool] = []
    open_reasoning = False
    for item, place in zip(view, places(view), strict=True):
        message = item.message
        blocks: Sequence[Block] = message.blocks
        rules: list[Rule] = []
        if item.counts.thinking:
            found = _verdicts(item, settings, place, to, obstacles)
            verdicts += found
            rules = [verdict.rule for verdict in found]
            gone = {verdict.block for verdict in found if not verdict.kept}
            blocks = [block for number, block in enumerate(blocks) if number not in gone]
            open_reasoning = open_reasoning or (place.open and len(gone) < len(found))
        if concerns.demanding:
            concerns.note(item, place, rules)
        if blocks:  # a message with nothing left to say is dropped
            whole = len(blocks) == len(message.blocks)
            messages.append(message if whole else _left(message, blocks))
            owed.append(owes and message.role == "assistant" and _is_owed(contract, place))
    return Selection(
        messages=tuple(messages),
        verdicts=tuple(verdicts),
        warnings=concerns.warnings(open_reasoning=open_reasoning),
        owed=tuple(owed),
        open_reasoning=open_reasoning,
    )


def _is_owed(contract: Contract, place: Place) -> bool:
    """Whether something has to stand in a message, in whose turn it may be long since.

    A placeholder is not taken back when its turn ends: what was sent stays as it was sent.
    """
    return (
        demanded(contract.floor, place)
        or demanded(contract.empty_field, place)
        or (contract.dummy_seal is not None and place.call)
    )


def _left(message: Message, blocks: Sequence[Block]) -> Message:
    """Return a message with these of its blocks. ``replace`` would cost as much as the rest."""
    return Message(
        role=message.role,
        blocks=tuple(blocks),
        status=message.status,
        origin=message.origin,
        usage=message.usage,
        finish_reason=message.finish_reason,
        metadata=message.metadata,
    )


def _verdicts(
    item: Viewed, settings: ReasoningSettings, place: Place, to: Target, obstacles: Obstacles
) -> list[Verdict]:
    """Decide about the thinking blocks of one message."""
    message = item.message
    why = None if message.role == "assistant" else _NOT_A_REPLY
    if message.status == "streaming":
        why = _UNFINISHED
    tokens = iter(item.counts.thinking)
    found = []
    for number, block in enumerate(message.blocks):
        if isinstance(block, ThinkingBlock):
            hindrance: Rule | None = "no_place" if why else obstacles.of(block, message.origin)
            kept, rule = decide(hindrance, settings, place, to)
            found.append(
                Verdict(
                    message=item.name,
                    block=number,
                    kept=kept,
                    rule=rule,
                    tokens=next(tokens),
                    reason=why or REASONS[rule],
                )
            )
    return found


def places(view: Sequence[Viewed]) -> list[Place]:
    """Return where each message of a view stands."""
    start = max((n for n, item in enumerate(view) if _starts_turn(item)), default=0)
    last = max((n for n, item in enumerate(view) if item.counts.thinking), default=-1)
    calls = [_has_call(item.message) for item in view]
    open_call = any(calls[start:])
    return [_PLACES[n == last, n >= start, call, open_call] for n, call in enumerate(calls)]


_FLAGS = (False, True)
_PLACES = {
    (last, open, call, open_call): Place(last, open, call, open_call)
    for last in _FLAGS
    for open in _FLAGS
    for call in _FLAGS
    for open_call in _FLAGS
}


def _has_call(message: Message) -> bool:
    return ToolCallBlock in map(type, message.blocks)


def _starts_turn(item: Viewed) -> bool:
    return item.message.role == "user" and not item.summary and item.message.starts_turn


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


def viewed(messages: Iterable[Message], counts: Iterable[Counts]) -> list[Viewed]:
    """Return a plain list of messages as a view; verdicts name them by their index."""
    return [
        Viewed(message, count, n)
        for n, (message, count) in enumerate(zip(messages, counts, strict=True))
    ]
