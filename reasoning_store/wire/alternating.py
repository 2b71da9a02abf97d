"""Writes messages as two sides that take turns: Anthropic's, Bedrock's and Gemini's protocols.

User and model alternate, and the user begins. Tool results are the user's: one message holds
all results of the calls before it, ahead of anything else. Messages of one side that follow
each other become one, their parts in order. A user's message without a part that can be sent
begins a turn too, because the selection counted it. System messages at the beginning belong
to the system prompt; a later one is sent in its place, on the user's side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.message_writer import MessageWriter, Outgoing, Part
from reasoning_store.wire.tools import system_texts

OPENING = "."
"""The text of a user message that begins a turn and has no other: the shortest that is taken."""


@dataclass(slots=True)
class Turn:
    """The consecutive messages of one side, as one message."""

    role: Literal["user", "assistant", "system"]
    results: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    @property
    def content(self) -> list[Part]:
        return [*self.results, *self.parts]


class AlternatingWriter(MessageWriter):
    """Writes messages of a user and a model who take turns, none of them empty."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.leading_system: list[str] = []
        """The texts of the system messages that the conversation begins with."""
        self._is_leading = True
        self._turn: Turn | None = None
        """The last turn: the next message may belong to it."""
        self._system_after: list[Part] = []
        """The parts of system messages that follow it."""

    @abstractmethod
    def write_block(self, block: Block, *, is_reply: bool) -> Part | None:
        """Return a block as a part; ``None`` where the protocol has no place for it."""

    @abstractmethod
    def write_result(self, block: ToolResponseBlock) -> Part:
        """Return a tool's result as a part."""

    @abstractmethod
    def write_turn(self, turn: Turn) -> Part:
        """Return a turn as a message of the protocol."""

    def write_raw(self, data: Mapping[str, Any]) -> Part | None:
        """Return a raw block of this host as a part; ``None`` where it is part of no message."""
        return dict(data)

    def is_blank(self, block: TextBlock) -> bool:
        """Whether a text is left out, because blank text is refused."""
        return not block.text.strip()

    def write_parts(self, outgoing: Outgoing) -> list[Part]:
        """Return the parts of a message that has no tool results."""
        message = outgoing.message
        is_reply = message.role == "assistant"
        parts = []
        for block in message.blocks:
            if isinstance(block, TextBlock) and self.is_blank(block):
                continue
            if isinstance(block, RawBlock):
                own = is_own(block, message, self.contract)
                part = self.write_raw(block.data) if own else None
            else:
                part = self.write_block(block, is_reply=is_reply)
            if part is None:
                self.leave_out(block)
            else:
                parts.append(part)
        return parts

    def system_parts(self, system: Any, **kind: str) -> list[Any]:
        """Return a prompt, and the system messages that the conversation begins with, as parts."""
        texts = system_texts(system)
        parts = [system] if isinstance(system, Mapping) else [*(system or ())]
        if texts is not None:
            parts = [{**kind, "text": text} for text in texts]
        return [*parts, *({**kind, "text": text} for text in self.leading_system)]

    def write_message(self, outgoing: Outgoing) -> None:
        role = outgoing.message.role
        if self._is_leading and role == "system":
            self.leading_system += _texts(outgoing.message)
            return
        self._is_leading = False
        results, others = _split_results(outgoing)
        parts = self.write_parts(others)
        is_users = self._turn is not None and self._turn.role == "user"
        has_asked = self._turn is not None and is_users and bool(self._turn.parts)
        if role == "assistant":
            if parts:
                self._turn_of("assistant").parts += parts
        elif role == "system" and self.contract.messages.system_inside and is_users:
            self._system_after += parts
        elif parts:
            self._turn_of("user").parts += parts
        elif role == "user" and others.message.blocks and not has_asked:
            # Blank, or of a kind that has no place: the turn begins here all the same.
            self._turn_of("user").parts += self._opening()
        if results:
            self._turn_of("user").results += [self.write_result(block) for block in results]

    def _opening(self) -> list[Part]:
        """Return the text of a user's message that has none."""
        self.has_added_text = True
        return self.write_parts(_OPENED)

    def messages(self) -> list[Part]:
        last = [self._turn] if self._turn is not None else []
        if self._system_after:
            last.append(Turn("system", parts=self._system_after))
        return [*super().messages(), *map(self.write_turn, last)]

    def _turn_of(self, role: Literal["user", "assistant"]) -> Turn:
        """Return the last turn where it is this side's, else a new one."""
        turn = self._turn
        if turn is None and role == "assistant":
            turn = Turn("user", parts=self._opening())
        if turn is not None and turn.role == role:
            return turn
        if turn is not None:
            self.rendered.append(self.write_turn(turn))
        if self._system_after:
            self.rendered.append(self.write_turn(Turn("system", parts=self._system_after)))
            self._system_after = []
        self._turn = Turn(role)
        return self._turn


def is_own(block: RawBlock, message: Message, contract: Contract) -> bool:
    """Whether a raw block came from the host and the protocol that it is sent to."""
    origin = message.origin
    if origin is None or block.kind != "raw" or not isinstance(block.data, Mapping):
        return False
    known = contract_lookup.find_host(origin.provider)
    host = origin.provider if known is None and contract.provider else known and known.id
    return host == contract.provider and origin.api == contract.api


_OPENED = Outgoing(message=Message(role="user", blocks=(TextBlock(text=OPENING),)))


def _split_results(item: Outgoing) -> tuple[list[ToolResponseBlock], Outgoing]:
    """Return the tool results of a message, and the message without them."""
    blocks = item.message.blocks
    results = [block for block in blocks if isinstance(block, ToolResponseBlock)]
    if not results:
        return [], item
    rest = tuple(block for block in blocks if not isinstance(block, ToolResponseBlock))
    return results, Outgoing(replace(item.message, blocks=rest), item.owed)


def _texts(message: Message) -> list[str]:
    return [
        block.text
        for block in message.blocks
        if isinstance(block, TextBlock) and block.text.strip()
    ]
