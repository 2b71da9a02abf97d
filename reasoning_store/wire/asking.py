"""How a request of messages with signed thoughts asks for the next ones.

Theory. ``reasoning_parameters`` puts what is asked where the contract says; here is what
asking depends on beside that. A turn goes on as it began: where its messages carry thoughts,
thinking stays on, and where its first message with a call carries none, a host may refuse to
have it on (``off_when_unmet``). Who asks for effort or a budget asks for thinking. A budget
lies within bounds, and an effort may be a number of tokens.

It knows the open turn and the contract. It must not know a protocol's shapes or providers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from reasoning_store.blocks import TextBlock, ThinkingBlock, ToolCallBlock
from reasoning_store.wire import reasoning_parameters
from reasoning_store.wire.base import Asked, Outgoing
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.reasoning_parameters import put

_NOTHING: Final = Asked()
_FIELDS: Final = ("enabled", "effort", "budget_tokens")


def ask(
    asked: Asked, contract: Contract, body: dict[str, Any], messages: Sequence[Outgoing]
) -> tuple[str, ...]:
    """Put what is asked into a body; return the fields of ``Asked`` that are not said."""
    if asked.enabled is False:  # BR-006: nothing else is said of reasoning
        asked = Asked(enabled=False)
    wanted = _in_turn(_sayable(asked, contract), contract, messages)
    lost = {name for name in _FIELDS if getattr(asked, name) != getattr(wanted, name)}
    if _is_off(wanted) and contract.budgets[:1] == (0,) and contract.budget_at:
        put(body, contract.budget_at, 0)
    else:
        wanted = _with_switch(_as_budget(wanted, contract), contract)
        lost |= set(reasoning_parameters.say(wanted, contract, body))
    if contract.on is not None and at(body, contract.enabled_at) == contract.on:
        if contract.shown_at:
            put(body, contract.shown_at, contract.shown, over=False)
        if contract.budget_at and contract.budget is not None:
            put(body, contract.budget_at, contract.budget, over=False)
    return tuple(name for name in _FIELDS if name in lost and getattr(asked, name) is not None)


def at(body: Mapping[str, Any], path: str | None) -> Any:
    """Return what stands at a path, or ``None``."""
    value: Any = body
    for name in path.split(".") if path else ():
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if path else None


_SYSTEM_IS_THE_USERS = frozenset({"anthropic.messages", "bedrock.converse"})


def open_turn(messages: Sequence[Outgoing], contract: Contract) -> Sequence[Outgoing]:
    """Return the last real user message and all that follows it, as the provider sees them.

    Where a system message inside the conversation is rendered on the user's side, the
    provider takes it for the user's.
    """
    aside = contract.api in _SYSTEM_IS_THE_USERS and not contract.system_inside
    starts = [
        n
        for n, item in enumerate(messages)
        if item.message.starts_turn or (aside and item.message.role == "system")
    ]
    return messages[starts[-1] :] if starts else messages


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


def _in_turn(asked: Asked, contract: Contract, messages: Sequence[Outgoing]) -> Asked:
    """Return what can be asked in the middle of a turn, which goes on as it began."""
    if not (contract.fixed_in_turn or contract.off_when_unmet):
        return asked
    said = [
        block
        for item in open_turn(messages, contract)
        if item.message.role == "assistant"
        for block in item.message.blocks
        if not (isinstance(block, TextBlock) and not block.text.strip())
    ]
    calls = any(isinstance(block, ToolCallBlock) for block in said)
    if contract.off_when_unmet and calls and not isinstance(said[0], ThinkingBlock):
        return Asked(enabled=False) if asked.enabled is False or contract.thinks else _NOTHING
    carries = any(isinstance(block, ThinkingBlock) for block in said)
    if not (contract.fixed_in_turn and carries):
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
