"""The order in which a provider wants what is said, where it has one of its own.

    no_answer          where only the model may speak after a tool, a reply is put between
    system_as_user     where system messages stand at the beginning, a later one is a user's
    turn_begun         reasoning in a turn that began without starts a turn of its own

Each depends on nothing but what stands before it, so a longer conversation is ordered
alike. It knows roles and contracts; it must not know a protocol's shapes or any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from operator import eq
from typing import Final

from reasoning_store.blocks import (
    Block,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResponseBlock,
)
from reasoning_store.egress.verdicts import WarningCode
from reasoning_store.wire import asking
from reasoning_store.wire.base import Outgoing, Plain
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.neutral import NO_ANSWER
from reasoning_store.wire.turns import OPENING

TEXTS: Final[Mapping[WarningCode, str]] = {
    "no_answer": "the provider wants a reply straight after a tool's response; "
    f"{NO_ANSWER!r} is sent as one",
    "system_as_user": "the provider wants system messages at the beginning; a later one is sent "
    "as the user's",
    "turn_begun": "the provider takes no reasoning in a turn that began without; "
    f"{OPENING!r} is sent as the user's before it, so that a turn begins there",
}


class Order:
    """What was said so far, as far as the order of the rest depends on it."""

    __slots__ = ("_answered", "_bare", "_contract", "_spoken", "wants")

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._spoken = False
        self._answered = False
        """The last message holds nothing but answers of tools."""
        self._bare: bool | None = None
        """The turn began without reasoning; None: the model has not spoken in it."""
        self.wants = contract.strict_order or _is_refused_either_way(contract)
        """Whether the provider has an order of its own; most have none."""

    def fork(self) -> Order:
        """Return the same, to go on with apart from this one."""
        return copy(self)

    def lets_pass(self, roles: Sequence[Role], *, thinking: bool) -> bool:
        """Whether plain messages, of a user and a model, are in order as they are."""
        if not self.wants:
            return True
        if self._answered and roles[0] != "assistant":
            return False
        if not thinking or not _is_refused_either_way(self._contract):
            return True
        # Where the model speaks once in each turn, none of them goes on otherwise than it began.
        goes_on = self._bare and roles[0] == "assistant"
        return not goes_on and not any(map(eq, roles, roles[1:]))

    def pass_over(self, messages: Plain) -> None:
        """Go on behind plain messages that were let pass."""
        self._spoken = True
        self._answered = False
        if "user" in messages.roles:
            self._bare = None
        if self._bare is None and messages.roles[-1] == "assistant":
            first = next(asking.said(messages.last().message, self._contract), None)
            self._bare = not isinstance(first, ThinkingBlock)

    def put(self, item: Outgoing, note: Callable[[WarningCode], None]) -> Iterator[Outgoing]:
        """Yield a message, and before it what the provider wants there."""
        for one in self._in_turn(item, note) if self._contract.strict_order else (item,):
            message = one.message
            if _is_refused_either_way(self._contract) and self._begins(message):
                note("turn_begun")
                yield _said("user", OPENING)
            self._spoken = self._spoken or message.role != "system"
            self._answered = all(map(_is_response, message.blocks))
            yield one

    def _in_turn(self, item: Outgoing, note: Callable[[WarningCode], None]) -> Iterator[Outgoing]:
        """Only the model speaks after a tool, and a system message at the beginning."""
        message = item.message
        if message.role == "system" and self._spoken:
            note("system_as_user")
            message = replace(message, role="user")
        answers = tuple(block for block in message.blocks if _is_response(block))
        rest = tuple(block for block in message.blocks if not _is_response(block))
        if answers and rest and message.role != "assistant":
            yield Outgoing(replace(message, blocks=answers))
            message = replace(message, blocks=rest)
        speaks = bool(rest) and message.role != "assistant"
        if speaks and (answers or self._answered):
            note("no_answer")
            yield _said("assistant", NO_ANSWER)
        yield Outgoing(message, item.owed)

    def _begins(self, message: Message) -> bool:
        """Whether a turn has to begin with this message that does not yet.

        A turn that began without reasoning and has some is refused with thinking on, for
        what it began without, and with thinking off, for what it has.
        """
        if asking.starts_turn(message, self._contract):
            self._bare = None
        elif message.role == "assistant":
            first = next(asking.said(message, self._contract), None)
            thinks = isinstance(first, ThinkingBlock)
            if self._bare and thinks:
                self._bare = False
                return True
            if self._bare is None and first is not None:
                self._bare = not thinks
        return False


def _is_refused_either_way(contract: Contract) -> bool:
    return contract.off_when_unmet and contract.fixed_in_turn


def _said(role: Role, text: str) -> Outgoing:
    return Outgoing(Message(role=role, blocks=(TextBlock(text=text),)))


def _is_response(block: Block) -> bool:
    return isinstance(block, ToolResponseBlock)
