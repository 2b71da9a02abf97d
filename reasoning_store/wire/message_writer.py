"""Writes the messages of one request in a protocol; each protocol's writer extends it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    ThinkingBlock,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.provider_turns import OpenTurn, TurnRules
from reasoning_store.wire.reasoning_options import NotSent, ReasoningOptions

Part: TypeAlias = dict[str, Any]
LeaveOut: TypeAlias = Callable[[Block], None]
"""Notes a block that the protocol has no place for."""


class Outgoing(NamedTuple):
    """One message to write, selected and repaired: each of its thinking blocks is sent."""

    message: Message
    owed: bool = False
    """The provider demands reasoning of this message; if it has no reasoning, the contract may name
    a placeholder."""


class RequestFields(NamedTuple):
    """The fields of a request other than its messages."""

    model: str | None
    system: Any
    tools: Sequence[Mapping[str, Any]] | None
    options: ReasoningOptions

    @property
    def named_model(self) -> dict[str, Any]:
        """The model under its usual key, where one is named."""
        return {} if self.model is None else {"model": self.model}


_ALL_SENT: Final = NotSent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A request's body, and the parts of the request that it does not carry."""

    body: dict[str, Any]
    options_not_sent: NotSent = _ALL_SENT
    left_out: tuple[str, ...] = ()
    """Kinds of blocks that the protocol has no place for, each once."""
    added_follower: bool = False
    """Whether a text was sent after reasoning that nothing followed."""
    address_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the SDK's call that are no part of the body: a model in the address."""


class MessageWriter(ABC):
    """The messages written so far; one instance writes one request."""

    system_is_users: ClassVar[bool] = False
    """Whether a system message inside the conversation is sent as the user's."""
    refuses_blank_text: ClassVar[bool] = False
    """Whether blank text is refused, and so left out."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.rendered: list[Part] = []
        self.left_out: dict[str, None] = {}
        """The kinds of blocks that found no place."""
        self.turn = OpenTurn()

    @classmethod
    def turn_rules(cls, contract: Contract) -> TurnRules:
        """Return how the provider reads messages of this protocol as turns."""
        return TurnRules(
            system_is_users=cls.system_is_users and not contract.messages.system_inside,
            refuses_blank_text=cls.refuses_blank_text,
        )

    def write(
        self,
        messages: Iterable[Outgoing],
        *,
        model: str | None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        options: ReasoningOptions,
    ) -> Written:
        """Return the whole JSON body of the HTTP request."""
        outgoing = list(messages)
        rules = self.turn_rules(self.contract)
        self.turn = rules.open_turn([item.message for item in outgoing])
        for item in outgoing:
            self.write_message(item)
        return self.finish(RequestFields(model, system, tools, options))

    @abstractmethod
    def write_message(self, outgoing: Outgoing) -> None:
        """Write one message."""

    @abstractmethod
    def finish(self, fields: RequestFields) -> Written:
        """Return the body of the messages that are written."""

    def messages(self) -> list[Part]:
        """Return the written messages."""
        return self.rendered

    def leave_out(self, block: Block) -> None:
        """Note that the protocol has no place for a block."""
        kind = block.kind if isinstance(block, MediaBlock) else block.type
        self.left_out[kind] = None


def with_extra_body(body: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Return a body as arguments of a call that takes unknown keys as ``extra_body``."""
    known = {key: value for key, value in body.items() if key in parameters}
    rest = {key: value for key, value in body.items() if key not in parameters}
    return {**known, "extra_body": rest} if rest else known


def join_thoughts(
    thoughts: Sequence[ThinkingBlock], blocks: Sequence[Block], strings: Collection[str]
) -> str:
    """Return the thoughts of a message as one string, separate ones with a blank line between.

    A thought that arrived in one of the ``strings`` and was interrupted continues as it came.
    """
    places = {id(block): place for place, block in enumerate(blocks)}
    out = [thoughts[0].thought]
    for before, block in pairwise(thoughts):
        between = blocks[places[id(before)] + 1 : places[id(block)]]
        goes_on = before.source_field == block.source_field and block.source_field in strings
        interrupted = any(not isinstance(item, ThinkingBlock) for item in between)
        out += ["" if goes_on and interrupted else "\n\n", block.thought]
    return "".join(out)
