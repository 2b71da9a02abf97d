"""The selection: which thinking is sent to a model, block by block, and by which rule.

    kept = not withheld and not bound and admissible
           and (demanded or (allowed by strip and included))

*Withheld*: a provider refused this block, and ``session.withhold`` or ``recover`` left it out.
*Bound*: the host binds it to all that precedes it, and something else was sent before it when it
was made (``prefix_chain``). *Admissible*: the contract has a place for it, the target made it, and
it is signed where a signature is demanded. *Demanded*: the provider's floor, whatever the settings
say, unless ``reasoning.floor`` is off; it never overrides the three before. Strip filters first,
then include (BR-005). ``isHidden`` and ``includeInResponse`` concern display and decide nothing
here (BR-003). Thinking that is left out is absent: not sent as text, not as a fake block. Stored
blocks do not change (BR-009).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reasoning_store.conversation.blocks import Counts, Message, Origin, with_blocks
from reasoning_store.conversation.settings import SettingValues
from reasoning_store.conversation.turns import TurnPosition
from reasoning_store.conversation.withholding import WithheldPart
from reasoning_store.egress.admissibility import Admissibility, origin_cause
from reasoning_store.egress.policy import is_demanded, strip_policy
from reasoning_store.egress.prefix_chain import begin_chain
from reasoning_store.egress.request_warnings import SelectedMessage, selection_warnings
from reasoning_store.egress.selection_values import (
    REASONS,
    JudgedMessage,
    Selection,
    Verdict,
    VerdictRule,
    ViewedMessage,
)
from reasoning_store.egress.target import Target
from reasoning_store.egress.withheld_parts import parts_left_out, sent_blocks, visible_verdicts
from reasoning_store.wire.contract import Contract


class Decision(NamedTuple):
    """Whether reasoning is kept, and the rule that decided."""

    kept: bool
    rule: VerdictRule


def select(
    view: Sequence[ViewedMessage],
    positions: Sequence[TurnPosition],
    settings: SettingValues,
    to: Target,
    inputs_digest: str | None = None,
) -> Selection:
    """Decide about every thinking block of a view.

    ``inputs_digest`` is the digest of the system and tools that will be sent.
    """
    verdicts_of_each, chain = _judge(view, positions, settings, to, inputs_digest)
    owes = settings.floor == "provider" and _owes_any(to.contract)
    messages: list[Message] = []
    numbers: list[int] = []
    owed: list[bool] = []
    verdicts: list[Verdict] = []
    is_whole = True
    for item, position, own_verdicts in zip(view, positions, verdicts_of_each, strict=True):
        message = item.message
        if own_verdicts:
            verdicts += own_verdicts
            left_out = {verdict.block for verdict in own_verdicts if not verdict.kept}
            parts = parts_left_out(item, to)
            if item.unread:
                is_whole &= left_out.issuperset(header.place for header in item.unread)
            if parts or (left_out and not item.unread):
                message = with_blocks(message, sent_blocks(item.blocks, left_out, parts))
        if message.blocks:  # a message without blocks is left out
            messages.append(message)
            numbers.append(item.number)
            owed.append(owes and _is_owed(message, position, to.contract))
    selected = map(SelectedMessage, view, positions, verdicts_of_each)
    return Selection(
        messages=tuple(messages),
        numbers=tuple(numbers),
        owed=tuple(owed),
        is_whole=is_whole,
        verdicts=tuple(verdicts),
        warnings=selection_warnings(selected, settings, to, inputs_digest),
        left_out=left_out_tokens(view, verdicts_of_each),
        chain=chain,
    )


def judge(
    view: Sequence[JudgedMessage],
    positions: Sequence[TurnPosition],
    settings: SettingValues,
    to: Target,
    inputs_digest: str | None = None,
) -> list[Sequence[Verdict]]:
    """Return the verdicts of each message of a view: what a request and every count is made of.

    Those of thoughts come first. Without ``inputs_digest`` none is bound to what precedes it.
    """
    return _judge(view, positions, settings, to, inputs_digest)[0]


def left_out_tokens(
    view: Iterable[JudgedMessage], verdicts: Iterable[Sequence[Verdict]]
) -> tuple[int, int]:
    """Return the tokens of the thoughts that are left out of a view, and those of other blocks."""
    thoughts = others = 0
    for item, own in zip(view, verdicts, strict=True):
        number = len(item.counts.thinking)
        thoughts += sum([verdict.tokens for verdict in own[:number] if not verdict.kept])
        others += sum([verdict.tokens for verdict in own[number:]])
    return thoughts, others


def _judge(
    view: Sequence[JudgedMessage],
    positions: Sequence[TurnPosition],
    settings: SettingValues,
    to: Target,
    inputs_digest: str | None,
) -> tuple[list[Sequence[Verdict]], str | None]:
    """Return the verdicts of each message, and the chain of all that is sent."""
    admissibility = Admissibility(to)
    reasons = _Reasons(settings, to)
    chain = begin_chain(to, inputs_digest)
    verdicts: list[Sequence[Verdict]] = []
    for item, position in zip(view, positions, strict=True):
        own: Sequence[Verdict] = ()
        parts = parts_left_out(item, to)
        if item.counts.thinking:  # EC-001: no thinking, no verdict.
            is_bound = chain is not None and chain.breaks(item)
            own = _block_verdicts(
                item, position, settings, admissibility, reasons, parts, is_bound=is_bound
            )
        if parts:
            own = [*own, *visible_verdicts(item, parts)]
        if chain is not None:
            chain.add(item, own)
        verdicts.append(own)
    return verdicts, None if chain is None else chain.value


def decide(
    inadmissible_because: VerdictRule | None,
    settings: SettingValues,
    position: TurnPosition,
    to: Target,
) -> Decision:
    """Decide about reasoning of a message at one position."""
    if inadmissible_because is not None:
        return Decision(False, inadmissible_because)
    contract = to.contract
    survives_strip = strip_policy(settings).keeps(position)
    if survives_strip and settings.include_in_context:
        return Decision(True, "kept")
    # A provider that demands a call's own signature does not demand the thought before it.
    demands_thoughts = settings.floor == "provider" and contract.returning.call_signature_at is None
    if demands_thoughts and is_demanded(contract.returning.floor, position):
        return Decision(True, "required")
    # BR-005: strip comes first, so it is the rule that is named where both say no.
    return Decision(False, "include" if survives_strip else "strip")


class _Reasons:
    """The words of each rule at one target."""

    def __init__(self, settings: SettingValues, to: Target) -> None:
        host = to.provider or to.contract.demanded_by or "the host"
        words = {
            "host": host,
            "api": to.contract.api,
            "strip": settings.strip_from_context,
            "cause": "",
        }
        self._texts = {rule: text.format(**words) for rule, text in REASONS.items()}
        self._to = to

    def find(self, rule: VerdictRule, origin: Origin | None) -> str:
        return self._texts[rule] if rule != "origin" else origin_cause(origin, self._to)


def make_view(messages: Iterable[Message], counts: Iterable[Counts]) -> list[ViewedMessage]:
    """Return a plain list of messages as a view; verdicts number them by their index."""
    return [
        ViewedMessage(message, count, number)
        for number, (message, count) in enumerate(zip(messages, counts, strict=True))
    ]


def _block_verdicts(
    item: JudgedMessage,
    position: TurnPosition,
    settings: SettingValues,
    admissibility: Admissibility,
    reasons: _Reasons,
    parts: Sequence[WithheldPart],
    *,
    is_bound: bool,
) -> list[Verdict]:
    """Decide about the thinking blocks of one message."""
    refused = {part.block: part.reason for part in parts}
    unsendable = _unsendable_because(item)
    tokens = iter(item.counts.thinking)
    origin = item.origin
    verdicts = []
    for number, thinking in item.thinking:
        inadmissible: VerdictRule | None = "no_place"
        if unsendable is None:
            inadmissible = admissibility.inadmissible_because(thinking, origin)
        if number in refused:
            inadmissible = "withheld"
        kept, rule = decide(inadmissible, settings, position, admissibility.to)
        if kept and is_bound and thinking.opaque:
            kept, rule = False, "bound"
        reason = refused.get(number) or unsendable or reasons.find(rule, origin)
        verdicts.append(Verdict(item.number, number, kept, rule, next(tokens), reason))
    return verdicts


def _unsendable_because(message: JudgedMessage) -> str | None:
    """Return why no thinking of a message can be sent to any target."""
    if message.status == "streaming":
        return "the reply is still being written"
    return None if message.role == "assistant" else "only a model's message has a field for it"


def _owes_any(contract: Contract) -> bool:
    """Whether a message can owe this provider reasoning, or a stand-in for it."""
    rules = contract.returning
    return rules.floor != "none" or rules.empty_field_in != "none"


def _is_owed(message: Message, position: TurnPosition, contract: Contract) -> bool:
    """Whether a message, of any turn, must have reasoning or a stand-in for it.

    A stand-in stays when its turn ends: a message that was sent is sent the same way again.
    """
    return message.role == "assistant" and (
        is_demanded(contract.returning.floor, position)
        or is_demanded(contract.returning.empty_field_in, position)
        or (
            contract.returning.floor != "none"
            and contract.returning.dummy_signature is not None
            and position.has_call
        )
    )
