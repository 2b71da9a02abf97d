"""Writes the messages of one request in a protocol; each protocol's writer extends it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeAlias

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import content_parts
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.provider_turns import OpenTurn, TurnRules
from reasoning_store.wire.reasoning_options import (
    NotSent,
    ReasoningOptions,
    write_earlier_turns,
    write_options,
)

Part: TypeAlias = dict[str, Any]
LeaveOut: TypeAlias = Callable[[Block], None]
"""Notes a block that the protocol has no place for."""


NO_MEDIA = "an attachment was left out"
"""The text that is sent where only media that are left out would be sent."""


class Outgoing(NamedTuple):
    """One message to write, selected and repaired: each of its thinking blocks is sent."""

    message: Message
    owed: bool = False
    """The provider demands reasoning of this message; if it has no reasoning, the contract may name
    a placeholder."""


Tools: TypeAlias = Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A request's body, and the parts of the request that it does not carry."""

    body: dict[str, Any]
    options_not_sent: NotSent
    left_out: tuple[str, ...]
    """Kinds of blocks that the protocol has no place for, each once."""
    has_added_text: bool
    """Whether a text is sent that no message holds, because an empty one is refused."""
    address_arguments: Mapping[str, Any]
    """Arguments of the SDK's call that are no part of the body: a model in the address."""


class MessageWriter(ABC):
    """The messages written so far; one instance writes one request."""

    system_is_users: ClassVar[bool] = False
    """Whether a system message inside the conversation is sent as the user's."""
    refuses_blank_text: ClassVar[bool] = False
    """Whether blank text is refused, and so left out."""
    model_key: ClassVar[str] = "model"
    """The key of the model in the body, or among the arguments of the SDK's call."""
    model_is_in_address: bool = False
    """Whether the body does not name the model."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.rendered: list[Part] = []
        self.left_out: dict[str, None] = {}
        """The kinds of blocks that found no place."""
        self.has_added_text = False

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
        tools: Tools = None,
        options: ReasoningOptions,
    ) -> Written:
        """Return the whole JSON body of the HTTP request."""
        outgoing = list(messages)
        for item in outgoing:
            self.write_message(item)
        model_parameter = {} if model is None else {self.model_key: model}
        body = {} if self.model_is_in_address else model_parameter.copy()
        self.write_body(body, system, tools)
        turn = self.turn_rules(self.contract).open_turn([item.message for item in outgoing])
        not_sent = write_options(options, self.contract.reasoning, body, turn)
        self.complete_body(body, turn)
        return Written(
            body=body,
            options_not_sent=not_sent,
            left_out=tuple(self.left_out),
            has_added_text=self.has_added_text,
            address_arguments=model_parameter if self.model_is_in_address else {},
        )

    @abstractmethod
    def write_message(self, outgoing: Outgoing) -> None:
        """Write one message."""

    @abstractmethod
    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        """Put the written messages, the system prompt and the tools into a body."""

    def complete_body(self, body: Part, turn: OpenTurn) -> None:
        """Put the fields into a body that depend on its parameters of reasoning."""
        if turn.thoughts_before:
            write_earlier_turns(self.contract.reasoning, body)

    def messages(self) -> list[Part]:
        """Return the written messages."""
        return self.rendered

    def leave_out(self, block: Block, where: str = "") -> None:
        """Note that the protocol has no place for a block."""
        kind = block.kind if isinstance(block, MediaBlock) else block.type
        self.left_out[kind + where] = None

    def write_result_part(self, part: TextBlock | MediaBlock) -> Part | None:
        """Return a part of a tool's result; ``None`` where the protocol has no place for it."""
        return None

    def result_content(self, block: ToolResponseBlock) -> str | list[Part]:
        """Return a tool's result as text, or as parts if media of it are sent."""
        parts = content_parts.result_parts(block)
        if parts is None:
            return codec.result_text(block)
        written, has_media = [], False
        for part in parts:
            is_medium = isinstance(part, MediaBlock)
            made = self.write_result_part(part) if not is_medium or self._takes(part) else None
            has_media = has_media or (is_medium and made is not None)
            if made is not None:
                written.append(made)
            elif is_medium:
                self.leave_out(part, " in a tool result")
        if has_media:
            return written
        texts = [part.text for part in parts if isinstance(part, TextBlock) and part.text]
        return "\n\n".join(texts) or NO_MEDIA

    def _takes(self, part: TextBlock | MediaBlock) -> bool:
        rules = self.contract.messages
        return isinstance(part, MediaBlock) and rules.result_media and part.kind in rules.media


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
