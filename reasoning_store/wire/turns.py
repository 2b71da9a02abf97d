"""A conversation as two sides that take turns, as Anthropic, Bedrock and Gemini want it.

Theory. These protocols know a user and a model, who alternate, and the user begins. What a
tool answered is said by the user, in one message with all other answers to the same calls,
and before anything else in it. So messages of one side that follow each other become one,
their parts in order, and nothing that is said is lost. System messages at the beginning
belong to the system prompt; a later one stands where it was said, on the user's side.

It knows roles and order. It must not know what a part looks like: ``Parts`` renders it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from reasoning_store.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import contracts
from reasoning_store.wire.base import Outgoing
from reasoning_store.wire.contracts import Contract

Part: TypeAlias = dict[str, Any]

OPENING = "."
"""What a user says who has not said anything before the model did: the least there is."""


class Parts(Protocol):
    """How a protocol renders what stands in a message."""

    def said(self, outgoing: Outgoing) -> list[Part]:
        """Return the parts of a message without its answers of tools."""
        ...

    def answer(self, block: ToolResponseBlock) -> Part:
        """Return the part that answers one call."""
        ...


@dataclass(slots=True)
class Turn:
    """What one side says in one go."""

    role: Literal["user", "assistant", "system"]
    answers: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    @property
    def content(self) -> list[Part]:
        return [*self.answers, *self.parts]


def beginning(messages: Sequence[Outgoing]) -> tuple[list[str], Sequence[Outgoing]]:
    """Return the texts of the system messages that a conversation begins with, and the rest."""
    texts: list[str] = []
    for place, item in enumerate(messages):
        if item.message.role != "system":
            return texts, messages[place:]
        texts += _texts(item.message)
    return texts, ()


def alternating(messages: Iterable[Outgoing], parts: Parts, contract: Contract) -> list[Turn]:
    """Return the turns of a conversation, none of them empty."""
    turns: list[Turn] = []
    later: list[Part] = []

    def turn(role: Literal["user", "assistant"]) -> Turn:
        if not turns or turns[-1].role != role:
            if later:
                turns.append(Turn("system", parts=list(later)))
                later.clear()
            turns.append(Turn(role))
        return turns[-1]

    for item in messages:
        answers, rest = _apart(item)
        said = parts.said(rest)
        if item.message.role == "assistant":
            if said:
                turn("assistant").parts += said
        elif item.message.role == "system" and contract.system_inside and _user_spoke(turns):
            later += said
        elif said:
            turn("user").parts += said
        if answers:
            turn("user").answers += [parts.answer(block) for block in answers]
    if later:
        turns.append(Turn("system", parts=later))
    if turns and turns[0].role == "assistant":
        turns.insert(0, Turn("user", parts=parts.said(_OPENED)))
    return turns


def is_own(block: RawBlock, message: Message, contract: Contract) -> bool:
    """Whether a block that was kept as it came goes back to where it came from."""
    origin = message.origin
    if origin is None or block.kind != "raw" or not isinstance(block.data, Mapping):
        return False
    known = contracts.host(origin.provider)
    same_host = (known.id if known is not None else None) == contract.provider
    return same_host and origin.api == contract.api


def kind_of(block: Block) -> str:
    """Return what a block is called that found no place."""
    return block.kind if isinstance(block, MediaBlock) else block.type


_OPENED = Outgoing(message=Message(role="user", blocks=(TextBlock(text=OPENING),)))


def _user_spoke(turns: Sequence[Turn]) -> bool:
    return bool(turns) and turns[-1].role == "user"


def _apart(item: Outgoing) -> tuple[list[ToolResponseBlock], Outgoing]:
    blocks = item.message.blocks
    answers = [block for block in blocks if isinstance(block, ToolResponseBlock)]
    if not answers:
        return [], item
    rest = tuple(block for block in blocks if not isinstance(block, ToolResponseBlock))
    return answers, replace(item, message=replace(item.message, blocks=rest))


def _texts(message: Message) -> list[str]:
    return [
        block.text
        for block in message.blocks
        if isinstance(block, TextBlock) and block.text.strip()
    ]
