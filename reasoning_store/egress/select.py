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
from copy import copy

from reasoning_store.blocks import Counts, Message, ThinkingBlock, with_blocks
from reasoning_store.egress.admission import Obstacles
from reasoning_store.egress.concerns import Concerns
from reasoning_store.egress.course import places
from reasoning_store.egress.policy import Place, demanded, left_by_strip
from reasoning_store.egress.stretch import Rulings, Stretch, ThoughtKind, Verdicts
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
from reasoning_store.rope import Rope
from reasoning_store.settings import ReasoningSettings
from reasoning_store.surrogates import is_encodable
from reasoning_store.wire import contracts

_UNFINISHED = "the reply is still being written"
_NOT_A_REPLY = "only a model's message has a field for it"


def target(
    provider: str | None, model: str | None, api: str | None, base_url: str | None
) -> Target:
    """Return whom a request is for; an unknown host gets its api's own row."""
    names = {"provider": provider, "model": model, "api": api, "base_url": base_url}
    contracts.check_names(**names)
    for name, value in names.items():
        if value is not None and not is_encodable(value):
            raise UsageError(f"{name} holds half of a character, which cannot be sent")
    if base_url is not None and not contracts.is_address(base_url):
        raise UsageError("base_url cannot be read as an address", hint="e.g. https://host/v1")
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
    selecting = Selecting(settings, to, asked_with)
    messages, _ = selecting.next(view, places(view))
    return Selection(
        messages=tuple(messages),
        verdicts=tuple(selecting.verdicts),
        warnings=selecting.warnings,
    )


class Selecting:
    """What was decided so far, and what has to be known of it to go on."""

    def __init__(self, settings: ReasoningSettings, to: Target, asked_with: str | None) -> None:
        self._settings = settings
        self._to = to
        self._asked_with = asked_with
        self._obstacles = Obstacles(to)
        self._concerns = Concerns(settings, to, asked_with)
        self._owes = settings.floor == "provider" and self._concerns.demanding
        # There are few kinds of places and of hindrances, however long the conversation.
        self._rulings: dict[tuple[Rule | None, Place], tuple[bool, Rule]] = {}
        self._owed: dict[Place, bool] = {}
        self.verdicts: Rope[Verdict] = Rope()
        self.withheld = 0
        """What the thinking counts that stays home."""
        self.open_reasoning = False
        """Whether a message of the open turn carries reasoning."""

    def fork(self) -> Selecting:
        """Return the same, to go on with apart from this one."""
        other = copy(self)
        other._concerns = self._concerns.fork()
        other.verdicts = self.verdicts.fork()
        return other

    @property
    def warnings(self) -> tuple[Warning, ...]:
        return self._concerns.warnings(open_reasoning=self.open_reasoning)

    def next(
        self, view: Sequence[Viewed], places: Sequence[Place]
    ) -> tuple[list[Message], list[bool]]:
        """Return what is left of the next messages, and of which the provider demands some."""
        concerns = self._concerns
        messages: list[Message] = []
        owed: list[bool] = []
        for item, place in zip(view, places, strict=True):
            message = item.message
            rules: Sequence[Rule] = ()
            if item.counts.thinking:  # EC-001: most messages have none, and need no verdict
                found = self._verdicts(item, place)
                self.verdicts += found
                self.withheld += sum([one.tokens for one in found if not one.kept])
                rules = [verdict.rule for verdict in found]
                gone = [verdict.block for verdict in found if not verdict.kept]
                self.open_reasoning |= place.open and len(gone) < len(found)
                if gone:
                    left = [one for n, one in enumerate(message.blocks) if n not in gone]
                    message = with_blocks(message, left)
            is_reply = message.role == "assistant"
            if concerns.demanding and (is_reply or rules or concerns.minds_all):
                concerns.note(item, place, rules)
            if message.blocks:  # a message with nothing left to say is dropped
                messages.append(message)
                owed.append(self._owes and is_reply and self._is_owed(place))
        return messages, owed

    def rulings(self, stretch: Stretch, place: Place) -> Rulings | None:
        """Return what is decided of each kind of thoughts in plain messages at such a place.

        None where each message has to be looked at by itself.
        """
        if self._owes and self._is_owed(place):
            return None
        return {
            name: self._ruling(self.hindrance(kind), place) for name, kind in stretch.named.items()
        }

    def pass_over(self, stretch: Stretch, place: Place, rulings: Rulings) -> None:
        """Go on behind plain messages of which this was decided."""
        if self._concerns.minds(place):
            # At one place all is kept that nothing hinders, or nothing is: so there is as much
            # to say of them as of the first of each.
            for item in stretch.examples():
                self.note(item, place, self.hindrances(item.message))
        self.verdicts.join(Verdicts(stretch, rulings))
        stays = {name for name, (kept, _) in rulings.items() if not kept}
        self.withheld += stretch.tokens_of(stays)

    def hindrances(self, message: Message) -> list[Rule | None]:
        """Return what hinders each thinking block of a message, whatever the settings."""
        if _why_none(message):
            return ["no_place" for _ in message.thinking]
        return [self._obstacles.of(block, message.origin) for block in message.thinking]

    def hindrance(self, kind: ThoughtKind) -> Rule | None:
        """Return the same of a kind of thoughts in plain messages."""
        return self._obstacles.of(kind.block, kind.origin)

    def weigh(self, hindrance: Rule | None, place: Place, tokens: int) -> bool:
        """Count thinking that one thing hinders at one kind of place; say whether it is kept."""
        kept, _ = self._ruling(hindrance, place)
        if not kept:
            self.withheld += tokens
        self.open_reasoning |= place.open and kept
        return kept

    def minds(self, place: Place) -> bool:
        """Whether there may be something to say of a message at a place."""
        return self._concerns.minds(place)

    @property
    def minds_all(self) -> bool:
        """Whether that depends on each message before it, and not on what it is like alone."""
        return self._concerns.minds_all

    def note(self, item: Viewed, place: Place, hindrances: Sequence[Rule | None]) -> None:
        """Note what there is to say of a message, and nothing else of it."""
        rules = [self._ruling(hindrance, place)[1] for hindrance in hindrances]
        if item.message.role == "assistant" or rules or self._concerns.minds_all:
            self._concerns.note(item, place, rules)

    def _ruling(self, hindrance: Rule | None, place: Place) -> tuple[bool, Rule]:
        ruling = self._rulings.get((hindrance, place))
        if ruling is None:
            ruling = decide(hindrance, self._settings, place, self._to)
            self._rulings[hindrance, place] = ruling
        return ruling

    def _verdicts(self, item: Viewed, place: Place) -> list[Verdict]:
        """Decide about the thinking blocks of one message."""
        message = item.message
        why = _why_none(message)
        tokens = iter(item.counts.thinking)
        found = []
        for number, block in enumerate(message.blocks):
            if isinstance(block, ThinkingBlock):
                hindrance: Rule | None = (
                    "no_place" if why else self._obstacles.of(block, message.origin)
                )
                kept, rule = self._ruling(hindrance, place)
                reason = why or REASONS[rule]
                found.append(Verdict(item.name, number, kept, rule, next(tokens), reason))
        return found

    def _is_owed(self, place: Place) -> bool:
        """Whether something has to stand in a message, in whose turn it may be long since.

        A placeholder is not taken back when its turn ends: what was sent stays as it was sent.
        """
        if place not in self._owed:
            contract = self._to.contract
            self._owed[place] = (
                demanded(contract.floor, place)
                or demanded(contract.empty_field, place)
                or (contract.dummy_signature is not None and place.call)
            )
        return self._owed[place]


def _why_none(message: Message) -> str | None:
    """Return why no thinking of a message has a place anywhere."""
    if message.status == "streaming":
        return _UNFINISHED
    return None if message.role == "assistant" else _NOT_A_REPLY


def decide(
    hindrance: Rule | None, settings: ReasoningSettings, place: Place, to: Target
) -> tuple[bool, Rule]:
    """Return whether reasoning at a place is kept, and the rule that decided."""
    if hindrance is not None:
        return False, hindrance
    left = left_by_strip(settings.strip_from_context, place)
    if left and settings.include_in_context:
        return True, "kept"
    # Where a call's own signature is what is demanded, the thought before it is not: that is
    # no reasoning, and goes with its call.
    sealed = to.contract.call_signature is not None
    if settings.floor == "provider" and not sealed and demanded(to.contract.floor, place):
        return True, "required"
    # BR-005: strip comes first, so it is the rule that is named where both say no.
    return False, "include" if left else "strip"


def viewed(messages: Iterable[Message], counts: Iterable[Counts]) -> list[Viewed]:
    """Return a plain list of messages as a view; verdicts name them by their index."""
    return [
        Viewed(message, count, n)
        for n, (message, count) in enumerate(zip(messages, counts, strict=True))
    ]
