"""Writes into a request how the model shall reason: on or off, how hard, how long.

Hosts have the same few parameters in different places and words; the contract's
``ReasoningSwitches`` names them. Off is sent once: as the switch's word, else as the effort
``none``. A turn continues as it began: if its messages have thoughts, thinking stays on, and if its
first message with a call has no thought, a host may refuse to have it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

from reasoning_store.wire.body_path import put_at, value_at
from reasoning_store.wire.contract import ReasoningSwitches
from reasoning_store.wire.provider_turns import OpenTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningOptions:
    """The reasoning that a request asks for; ``None`` is not sent."""

    enabled: bool | None = None
    effort: str | None = None
    budget_tokens: int | None = None

    @property
    def is_off(self) -> bool:
        return self.enabled is False or self.effort == _NONE or self.budget_tokens == 0


OPTIONS: Final = tuple(item.name for item in fields(ReasoningOptions))
_NONE: Final = "none"
_UNSET: Final = ReasoningOptions()


class NotSent(NamedTuple):
    """The names of options that were asked for and are not sent."""

    without_parameter: tuple[str, ...] = ()
    """The host has no parameter for them."""
    until_next_turn: tuple[str, ...] = ()
    """The host refuses them in this turn."""


def write_options(
    options: ReasoningOptions,
    switches: ReasoningSwitches,
    body: dict[str, Any],
    turn: OpenTurn | None = None,
) -> NotSent:
    """Put the options into a body where the host has them, as far as the turn allows."""
    if options.enabled is False:  # BR-006: without reasoning no other parameter of it is sent
        options = ReasoningOptions(enabled=False)
    possible = _possible(options, switches)
    wanted = _in_turn(possible, switches, turn) if turn is not None else possible
    unsent = _differing(options, possible) | _write(wanted, switches, body)
    # An option that takes the place of another was not asked for.
    held = {name for name in _differing(possible, wanted) if getattr(options, name) is not None}
    if held:
        # Some of them may have no parameter in the next turn either.
        unsent |= _write(possible, switches, {})
    if switches.on is not None and value_at(body, switches.enabled_at) == switches.on:
        if switches.shown_at:
            put_at(body, switches.shown_at, switches.shown_as, over=False)
        if switches.budget_at and switches.default_budget is not None:
            put_at(body, switches.budget_at, switches.default_budget, over=False)
    given = [name for name in OPTIONS if getattr(options, name) is not None]
    return NotSent(
        tuple(name for name in given if name in unsent),
        tuple(name for name in given if name in held - unsent),
    )


def switches_off(options: ReasoningOptions, switches: ReasoningSwitches) -> bool:
    """Whether the options switch reasoning off, in words that the host has."""
    return options.is_off and not _write_off(options, switches, {})


def write_earlier_turns(switches: ReasoningSwitches, body: dict[str, Any]) -> None:
    """Put into a body that the host is to read the reasoning of earlier turns."""
    path = switches.earlier_turns_at
    if path is None:
        return
    switch = switches.enabled_at
    if switch and switch.rpartition(".")[0] == path.rpartition(".")[0]:
        # One object holds both, and is not whole without its type.
        if switches.off is not None and value_at(body, switch) == switches.off:
            return
        if switch.endswith(".type") and switches.on is not None:
            put_at(body, switch, switches.on, over=False)
    put_at(body, path, switches.earlier_turns_as)


def _differing(one: ReasoningOptions, other: ReasoningOptions) -> set[str]:
    return {name for name in OPTIONS if getattr(one, name) != getattr(other, name)}


def _possible(options: ReasoningOptions, switches: ReasoningSwitches) -> ReasoningOptions:
    """Return the options that the host has a parameter for, and accepts."""
    effort, budget, enabled = options.effort, options.budget_tokens, options.enabled
    if budget and switches.budget_range:
        least, most = switches.budget_range
        budget = budget if least <= budget <= most else None
    if _effort_tokens(effort, switches) is not None:
        effort = effort if budget is None else None  # the budget is the more exact
    elif effort != _NONE and not switches.effort_at:
        effort = None
    if enabled and not switches.enabled_at and not switches.on_by_default:
        enabled = None
    return ReasoningOptions(enabled=enabled, effort=effort, budget_tokens=budget)


def _in_turn(
    options: ReasoningOptions, switches: ReasoningSwitches, turn: OpenTurn
) -> ReasoningOptions:
    """Return the options that are accepted in the middle of a turn, which continues as it began."""
    always_on = switches.on_by_default
    # A host looks at the beginning of the turn; one that thinks unasked looks at each call.
    looks_at_calls = always_on and not switches.fixed_in_turn
    is_unmet = (turn.has_calls and turn.begins_without) or (looks_at_calls and turn.has_bare_calls)
    if switches.off_when_unmet and is_unmet:
        is_off = options.enabled is False or always_on
        return ReasoningOptions(enabled=False) if is_off else _UNSET
    if not (switches.fixed_in_turn and turn.has_thoughts):
        return options
    if options.is_off:
        return _UNSET if always_on else ReasoningOptions(enabled=True)
    return options if always_on else replace(options, enabled=True)


def _write(
    options: ReasoningOptions, switches: ReasoningSwitches, body: dict[str, Any]
) -> set[str]:
    """Put options into a body as they are; return those that have no parameter."""
    if options.is_off:
        return _write_off(options, switches, body)
    options = _with_switch(_effort_as_budget(options, switches), switches)
    unsent = set()
    budget = options.budget_tokens if switches.budget_at else None
    if budget is not None and switches.budget_at:
        put_at(body, switches.budget_at, budget)
    elif options.budget_tokens is not None:
        unsent.add("budget_tokens")
    if options.effort is not None:
        word = _effort_words(switches).get(options.effort)
        if word is None or (switches.effort_or_budget and budget is not None):
            unsent.add("effort")
        elif switches.effort_at:
            put_at(body, switches.effort_at, word)
    if switches.enabled_at and switches.on is not None:
        if options.enabled or budget is not None:
            put_at(body, switches.enabled_at, switches.on, over=False)
    elif options.enabled and not (
        switches.effort_at or switches.budget_at or switches.on_by_default
    ):
        unsent.add("enabled")
    return unsent


def _write_off(
    options: ReasoningOptions, switches: ReasoningSwitches, body: dict[str, Any]
) -> set[str]:
    word = _effort_words(switches).get(_NONE)
    if switches.budget_range[:1] == (0,) and switches.budget_at:
        put_at(body, switches.budget_at, 0)
    elif switches.enabled_at and switches.off is not None:
        put_at(body, switches.enabled_at, switches.off)
    elif word is not None and switches.effort_at:
        put_at(body, switches.effort_at, word)
    elif options.enabled is False:
        return {"enabled"}
    else:
        return {"effort" if options.effort == _NONE else "budget_tokens"}
    return set()


def _with_switch(options: ReasoningOptions, switches: ReasoningSwitches) -> ReasoningOptions:
    """Switch thinking on where effort or a budget is asked of a model that is off by default."""
    needs_switch = not switches.on_by_default and switches.on is not None
    asks = options.effort is not None or options.budget_tokens is not None
    if needs_switch and options.enabled is None and asks:
        return replace(options, enabled=True)
    return options


def _effort_as_budget(options: ReasoningOptions, switches: ReasoningSwitches) -> ReasoningOptions:
    """Return an effort as the budget that the contract gives for it."""
    tokens = _effort_tokens(options.effort, switches)
    return options if tokens is None else replace(options, effort=None, budget_tokens=tokens)


def _effort_tokens(effort: str | None, switches: ReasoningSwitches) -> int | None:
    pairs = (item.partition("=") for item in switches.efforts)
    tokens = (theirs for ours, _, theirs in pairs if ours == effort and theirs.isdecimal())
    return next(map(int, tokens), None)


def _effort_words(switches: ReasoningSwitches) -> Mapping[str, str]:
    """Return the host's word for each effort of ours that it knows."""
    if switches.effort_at is None:
        return {}
    if not switches.efforts:
        return _ALL_EFFORTS
    pairs = (item.partition("=") for item in switches.efforts)
    return {ours: theirs or ours for ours, _, theirs in pairs}


_ALL_EFFORTS: Final = {
    effort: effort for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")
}
