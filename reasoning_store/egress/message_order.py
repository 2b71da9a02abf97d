"""The order of messages that a provider wants, where it has one of its own.

    system_as_user     a system message after the beginning is sent as a user message
    turn_begun         reasoning in a turn that began without it gets a turn of its own

Each depends only on earlier messages, so a longer conversation is ordered alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from reasoning_store.conversation.blocks import Message, TextBlock, ThinkingBlock
from reasoning_store.egress.selection_values import WarningCode
from reasoning_store.wire import registry
from reasoning_store.wire.alternating import OPENING
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.message_writer import Outgoing


def order_messages(
    messages: Sequence[Outgoing], contract: Contract, warn: Callable[[WarningCode], None]
) -> list[Outgoing]:
    """Return the messages in the order that the provider wants; most have none of their own."""
    ordered = [*messages]
    if contract.messages.system_first:
        ordered = [*_system_first(ordered, warn)]
    # Such a provider refuses the turn with thinking on, for its beginning, and off, for the rest.
    if contract.reasoning.off_when_unmet and contract.reasoning.fixed_in_turn:
        ordered = [*_turns_begun(ordered, contract, warn)]
    return ordered


def _system_first(
    messages: Sequence[Outgoing], warn: Callable[[WarningCode], None]
) -> Iterator[Outgoing]:
    begun = False
    for item in messages:
        if begun and item.message.role == "system":
            warn("system_as_user")
            item = item._replace(message=replace(item.message, role="user"))
        begun = begun or item.message.role != "system"
        yield item


def _turns_begun(
    messages: Sequence[Outgoing], contract: Contract, warn: Callable[[WarningCode], None]
) -> Iterator[Outgoing]:
    """Yield the messages, with a user message before reasoning in a turn that began without."""
    rules = registry.find_protocol(contract.api).writer.turn_rules(contract)
    began_with_reasoning: bool | None = None
    for item in messages:
        message = item.message
        if rules.starts_turn(message):
            began_with_reasoning = None
        elif message.role == "assistant":
            first = next(rules.sent_blocks(message), None)
            reasons = isinstance(first, ThinkingBlock)
            if began_with_reasoning is False and reasons:
                warn("turn_begun")
                yield Outgoing(Message(role="user", blocks=(TextBlock(text=OPENING),)))
                began_with_reasoning = True
            elif began_with_reasoning is None and first is not None:
                began_with_reasoning = reasons
        yield item
