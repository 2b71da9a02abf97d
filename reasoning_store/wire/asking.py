"""How a request of messages with signed thoughts asks for the next ones.

Theory. ``reasoning_parameters`` puts what is asked where the contract says; here is what
asking depends on beside that. A turn goes on as it began: where its messages carry thoughts,
thinking stays on, and where its first message with a call carries none, a host may refuse to
have it on (``off_when_unmet``). To ask for effort or a budget is to ask for thinking. A budget
lies within bounds, and an effort may be a number of tokens.

It knows the open turn, the contract, and which protocols take a system message for the user's.
It must not know a protocol's shapes or providers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from reasoning_store.blocks import Block, Message, TextBlock, ThinkingBlock, ToolCallBlock
from reasoning_store.wire import reasoning_parameters
from reasoning_store.wire.base import ASKED, Asked, Outgoing, Plain
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.reasoning_parameters import at, put

_NOTHING: Final = Asked()


class OpenTurn:
    """The last real user message and all that follows it, as the provider sees them."""

    __slots__ = ("_begins", "_contract", "calls", "matters", "thinks", "thought_before")

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._begins: bool | None = None
        self.calls = False
        """It has a tool call."""
        self.thinks = False
        """It carries thoughts."""
        self.thought_before = False
        """A turn before it carries thoughts."""
        self.matters = (
            contract.fixed_in_turn or contract.off_when_unmet or contract.keep_at is not None
        )
        """Whether the host has a rule that depends on it; most have none."""

    @property
    def begins_without(self) -> bool:
        """The first that the model said in it is no thought."""
        return self._begins is False

    def note(self, item: Outgoing) -> None:
        """Note the next message."""
        message = item.message
        if starts_turn(message, self._contract):
            self.thought_before |= self.thinks
            self.calls = self.thinks = False
            self._begins = None
        elif message.role == "assistant":
            for block in said(message, self._contract):
                thought = isinstance(block, ThinkingBlock)
                if self._begins is None:
                    self._begins = thought
                self.thinks |= thought
                self.calls |= isinstance(block, ToolCallBlock)

    def note_plain(self, messages: Plain) -> None:
        """Note the next messages, which are plain."""
        roles, goes = messages.roles, messages.goes
        last = len(roles) - 1
        turn = next((n for n in range(last, -1, -1) if roles[n] == "user"), 0)
        # Of what stands before the last turn in them it is told whether anything was thought.
        self.thinks |= not goes.keys().isdisjoint(messages.kinds[:turn])
        for number in range(turn, last + 1):
            self.note(messages.value(number))


def ask(
    asked: Asked, contract: Contract, body: dict[str, Any], turn: OpenTurn
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put what is asked into a body.

    Returns the fields of ``Asked`` that this host has no words for, and those that are left
    unsaid in this turn only.
    """
    if asked.enabled is False:  # BR-006: nothing else is said of reasoning
        asked = Asked(enabled=False)
    sayable = _sayable(asked, contract)
    wanted = _in_turn(sayable, contract, turn)
    unsaid = _given_up(asked, sayable) | _say(wanted, contract, body)
    # What takes the place of something else was not asked for.
    held = {name for name in _given_up(sayable, wanted) if getattr(asked, name) is not None}
    if held:
        # For some of it there may be no words in the next turn either.
        unsaid |= _say(sayable, contract, {})
    if contract.on is not None and at(body, contract.enabled_at) == contract.on:
        if contract.shown_at:
            put(body, contract.shown_at, contract.shown, over=False)
        if contract.budget_at and contract.budget is not None:
            put(body, contract.budget_at, contract.budget, over=False)
    given = [name for name in ASKED if getattr(asked, name) is not None]
    return (
        tuple(name for name in given if name in unsaid),
        tuple(name for name in given if name in held - unsaid),
    )


def _say(asked: Asked, contract: Contract, body: dict[str, Any]) -> set[str]:
    """Put what is asked into a body as it stands; return what there is no word for."""
    if _is_off(asked) and contract.budgets[:1] == (0,) and contract.budget_at:
        put(body, contract.budget_at, 0)
        return set()
    asked = _with_switch(_as_budget(asked, contract), contract)
    return set(reasoning_parameters.say(asked, contract, body))


def _given_up(asked: Asked, instead: Asked) -> set[str]:
    return {name for name in ASKED if getattr(asked, name) != getattr(instead, name)}


_SYSTEM_IS_THE_USERS = _BLANK_IS_REFUSED = frozenset({"anthropic.messages", "bedrock.converse"})


def starts_turn(message: Message, contract: Contract) -> bool:
    """Whether a turn starts with a message, as the provider sees it.

    Where a system message inside the conversation is rendered on the user's side, the
    provider takes it for the user's.
    """
    if message.role == "system":
        return contract.api in _SYSTEM_IS_THE_USERS and not contract.system_inside
    return message.starts_turn


def said(message: Message, contract: Contract) -> Iterator[Block]:
    """Yield what a model said in a message, as far as it is sent."""
    blank_goes = contract.api not in _BLANK_IS_REFUSED
    for block in message.blocks:
        if not isinstance(block, TextBlock) or block.text.strip() or (block.text and blank_goes):
            yield block


def _sayable(asked: Asked, contract: Contract) -> Asked:
    """Return what of it the host has a place for, and takes."""
    effort, budget, enabled = asked.effort, asked.budget_tokens, asked.enabled
    if budget and contract.budgets and not contract.budgets[0] <= budget <= contract.budgets[1]:
        budget = None
    if _tokens(effort, contract) is not None:
        effort = effort if budget is None else None  # the budget is the more exact
    elif effort != "none" and not contract.effort_at:
        effort = None
    if enabled and not contract.enabled_at and not contract.thinks:
        enabled = None
    return Asked(enabled=enabled, effort=effort, budget_tokens=budget)


def _as_budget(asked: Asked, contract: Contract) -> Asked:
    """Return an effort as the budget that the contract knows it by."""
    tokens = _tokens(asked.effort, contract)
    return asked if tokens is None else replace(asked, effort=None, budget_tokens=tokens)


def _tokens(effort: str | None, contract: Contract) -> int | None:
    for item in contract.efforts:
        ours, _, theirs = item.partition("=")
        if ours == effort and theirs.isdecimal():
            return int(theirs)
    return None


def _in_turn(asked: Asked, contract: Contract, turn: OpenTurn) -> Asked:
    """Return what can be asked in the middle of a turn, which goes on as it began."""
    if contract.off_when_unmet and turn.calls and turn.begins_without:
        return Asked(enabled=False) if asked.enabled is False or contract.thinks else _NOTHING
    if not (contract.fixed_in_turn and turn.thinks):
        return asked
    if _is_off(asked):
        return _NOTHING if contract.thinks else Asked(enabled=True)
    return asked if contract.thinks else replace(asked, enabled=True)


def _with_switch(asked: Asked, contract: Contract) -> Asked:
    """Ask for thinking where effort or a budget is asked of a model that has to be told."""
    silent = contract.thinks or contract.on is None or asked.enabled is not None
    if silent or _is_off(asked) or (asked.effort is None and asked.budget_tokens is None):
        return asked
    return replace(asked, enabled=True)


def _is_off(asked: Asked) -> bool:
    return asked.enabled is False or asked.effort == "none" or asked.budget_tokens == 0
