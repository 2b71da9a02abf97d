"""What the sender of a request should know about its reasoning, in words.

    floor_off         what the provider demands is withheld, for reasoning.floor is off
    floor_unmet       what it demands cannot be sent to it, and what stands in for it
    binding           reasoning is bound to a prefix that is no longer what it was
    unknown_provider  the provider's name is not one that is known here

It watches a selection being made, message by message, and decides nothing about it. It
knows contracts and the policy's words; it must not know a protocol's shapes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from reasoning_store.blocks import Message
from reasoning_store.clearing import is_cleared
from reasoning_store.egress.admission import is_foreign, is_made_at
from reasoning_store.egress.policy import Place, demanded
from reasoning_store.egress.verdicts import REASONS, Rule, Target, Viewed, Warning
from reasoning_store.quoting import shown
from reasoning_store.settings import ReasoningSettings
from reasoning_store.wire import contracts
from reasoning_store.wire.contracts import Contract, Floor

_WHERE: dict[Floor, str] = {
    "none": "no message",
    "open_calls": "messages with tool calls in the open turn",
    "all_calls": "messages with tool calls",
    "open_turn_with_call": "every message of the open turn once a tool was called",
    "all": "every message",
}


def is_mended(contract: Contract) -> bool:
    """Whether something stands in for demanded reasoning that cannot be sent."""
    return (
        contract.empty_field != "none"
        or contract.dummy_signature is not None
        or contract.off_when_unmet
    )


class Concerns:
    """What there is to warn of in one selection, each code once."""

    def __init__(self, settings: ReasoningSettings, to: Target, asked_with: str | None) -> None:
        self._to = to
        self._floor = settings.floor
        self._floor_off = False
        """What is demanded stays home, for the settings say so."""
        self._unmet: str | None = None
        """Why a message is sent without what is demanded of it; the first reason counts."""
        self._asked_with = asked_with
        self._prefix = _Prefix(settings) if to.contract.bound is not None else None
        contract = to.contract
        self.demanding = (
            contract.floor != "none" or contract.empty_field != "none" or contract.bound is not None
        )
        """Whether there is anything to note: most hosts demand nothing."""
        self.minds_all = self._prefix is not None
        """Whether what others than the model say is to be noted, too."""

    def minds(self, place: Place) -> bool:
        """Whether there may be something to note of a plain message at a place."""
        wanted = self._floor == "off" or demanded(self._to.contract.floor, place)
        return self.demanding and (self.minds_all or wanted)

    def fork(self) -> Concerns:
        """Return the same, to go on with apart from this one."""
        other = copy(self)
        other._prefix = copy(self._prefix)
        return other

    def note(self, item: Viewed, place: Place, rules: Sequence[Rule]) -> None:
        """Note one message, and the rules that decided about its reasoning."""
        if self._prefix is not None:
            self._prefix.note(item, place, rules, self._asked_with)
        contract = self._to.contract
        wanted = demanded(contract.floor, place)
        if not wanted and self._floor != "off":
            return
        is_reply = item.message.role == "assistant"
        if contract.call_signature is not None:
            if wanted and is_reply and place.call and not self._is_sealed(item.message):
                if self._floor == "off":
                    self._floor_off = True
                else:
                    self._unmet = self._unmet or "a tool call has lost its seal"
            return
        kept = "kept" in rules or "required" in rules
        if self._floor == "off":
            empty = is_reply and demanded(contract.empty_field, place)
            self._floor_off |= not kept and bool(empty or (wanted and rules))
            return
        hindered = next((rule for rule in rules if rule in _HINDRANCES), None)
        if wanted and hindered is not None:
            self._unmet = self._unmet or REASONS[hindered]
        elif wanted and place.call and not kept and self._is_anothers(item.message):
            self._unmet = self._unmet or "a tool was called by another model, without any"

    def warnings(self, *, open_reasoning: bool) -> tuple[Warning, ...]:
        """Return what there is to say; ``open_reasoning``: the open turn carries some."""
        return tuple(self._said(open_reasoning))

    def _said(self, open_reasoning: bool) -> Iterator[Warning]:
        contract = self._to.contract
        who = self._to.provider or "the provider"
        unknown = _unknown(self._to.provider)
        if unknown is not None:
            yield Warning(code="unknown_provider", text=unknown)
        if self._floor_off:
            floor = contract.floor if contract.floor != "none" else contract.empty_field
            text = (
                f"{who} wants back the reasoning of {_WHERE[floor]}, and reasoning.floor is off: "
                f"{self._without(open_reasoning)}; set reasoning.floor to provider"
            )
            yield Warning(code="floor_off", text=text)
        if self._unmet is not None:
            text = (
                f"{who} wants reasoning back that cannot be sent to it: {self._unmet}; "
                + self._instead(open_reasoning)
            )
            yield Warning(code="floor_unmet", text=text)
        if self._prefix is not None and self._prefix.broken is not None:
            text = (
                f"{who} binds reasoning to all that stands before it, and "
                f"{self._prefix.broken}; {contract.bound}"
            )
            yield Warning(code="binding", text=text)

    def _instead(self, open_reasoning: bool) -> str:
        """Return what stands in for the reasoning, or what follows."""
        contract = self._to.contract
        if contract.empty_field != "none":
            return f"{contract.echo} is sent empty in its place"
        if contract.dummy_signature is not None:
            return "a documented placeholder is sent in its place"
        return self._without(open_reasoning)

    def _without(self, open_reasoning: bool) -> str:
        """Return what follows where nothing stands in for it."""
        contract = self._to.contract
        if contract.off_when_unmet and not open_reasoning:
            return "no reasoning is asked for in this turn"
        if contract.off_when_unmet and contract.fixed_in_turn:
            return "what comes after it begins a turn of its own"
        if contract.refusal is not None:
            return f"it answers with {contract.refusal}"
        return "its answers may get worse"

    def _is_sealed(self, message: Message) -> bool:
        """Whether the first call of a message has the seal that its provider put on it."""
        if is_foreign(message.origin, self._to):
            return False
        value: Any = message.tool_calls[0].provider_metadata
        for name in (self._to.contract.call_signature or "").split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return bool(value)

    def _is_anothers(self, message: Message) -> bool:
        """Whether a call without reasoning is one that the provider will not take for its own."""
        return self._to.contract.off_when_unmet and not is_made_at(message.origin, self._to)


_HINDRANCES: frozenset[Rule] = frozenset({"no_place", "origin", "unsigned"})
_WITHHELD: frozenset[Rule] = frozenset({"strip", "include"})


class _Prefix:
    """Whether what stands before the reasoning that is sent is what it was made behind.

    Reasoning of finished turns that is withheld now was withheld before, too, for as long
    as the settings are the same; only ``allButLast`` sends a block and then withholds it.
    """

    __slots__ = ("_altered", "_rolling", "_stripped", "_stripped_in_turn", "broken")

    def __init__(self, settings: ReasoningSettings) -> None:
        self._rolling = settings.strip_from_context == "allButLast" and settings.include_in_context
        self._altered: str | None = None
        self._stripped = False
        self._stripped_in_turn = False
        self.broken: str | None = None

    def note(
        self, item: Viewed, place: Place, rules: Sequence[Rule], asked_with: str | None
    ) -> None:
        message = item.message
        if message.starts_turn and not item.summary:
            self._stripped_in_turn = False
        if item.summary or message.status == "erased":
            what = "compacted" if item.summary else "erased"
            self._altered = self._altered or f"an earlier message was {what}"
        elif is_cleared(message):
            self._altered = self._altered or "an earlier tool result was cleared"
        for rule in rules:
            if rule in _WITHHELD:
                self._stripped = self._stripped_in_turn = True
            elif rule not in _HINDRANCES and self.broken is None:
                self.broken = self._altered or self._why(item, place, asked_with)

    def _why(self, item: Viewed, place: Place, asked_with: str | None) -> str | None:
        if self._stripped_in_turn or (self._stripped and (self._rolling or not place.open)):
            return "other reasoning before it is withheld"
        if asked_with and item.asked_with and item.asked_with != asked_with:
            return "system or tools are not those that it was made with"
        return None


def _unknown(name: str | None) -> str | None:
    """Say of a provider that its name is unknown: nothing follows from it, which may surprise."""
    if name is None or contracts.host(name) is not None:
        return None
    known = [word for host in contracts.hosts() for word in (host.id, *host.aliases)]
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return (
        f"no provider is known as {shown(name)}: it is treated as an unknown host, to which "
        f"nothing is owed and no reasoning parameter is said{meant}"
    )
