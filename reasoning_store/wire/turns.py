"""A conversation as two sides that take turns, as Anthropic, Bedrock and Gemini want it.

Theory. These protocols know a user and a model, who alternate, and the user begins. What a
tool answered is said by the user, in one message with all other answers to the same calls,
and before anything else in it. So messages of one side that follow each other become one,
their parts in order, and nothing that is said is lost. A user's message of which nothing can
be said begins a turn too, for whoever chose what goes along has counted on it. System
messages at the beginning belong to the system prompt; a later one stands where it was said,
on the user's side.

It knows roles and order. It must not know what a part looks like: a protocol's page does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from operator import eq
from typing import Literal, Self

from reasoning_store.blocks import (
    Message,
    RawBlock,
    Role,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import contracts
from reasoning_store.wire.base import Outgoing, Plain
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.copying import copied
from reasoning_store.wire.pages import Page, Part

OPENING = "."
"""What a user says who says nothing where a turn begins with it: the least there is."""


@dataclass(slots=True)
class Turn:
    """What one side says in one go."""

    role: Literal["user", "assistant", "system"]
    answers: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    @property
    def content(self) -> list[Part]:
        return [*self.answers, *self.parts]

    def fork(self) -> Turn:
        """Return the same, to go on with apart from this one."""
        return Turn(self.role, list(self.answers), list(self.parts))


class Alternating(Page):
    """A page on which a user and a model take turns, none of them empty."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.begun: list[str] = []
        """The texts of the system messages that the conversation begins with."""
        self._begins = True
        self._turn: Turn | None = None
        """The last turn: what is said next may belong to it."""
        self._later: list[Part] = []
        """What the system said behind it."""

    @abstractmethod
    def said(self, outgoing: Outgoing) -> list[Part]:
        """Return the parts of a message without its answers of tools."""

    @abstractmethod
    def answer(self, block: ToolResponseBlock) -> Part:
        """Return the part that answers one call."""

    @abstractmethod
    def closed(self, turn: Turn) -> Part:
        """Return a turn as the message that it is."""

    def write(self, messages: Iterable[Outgoing]) -> None:
        for item in messages:
            role = item.message.role
            if self._begins and role == "system":
                self.begun += _texts(item.message)
                continue
            self._begins = False
            answers, rest = _apart(item)
            said = self.said(rest)
            if role == "assistant":
                if said:
                    self._take("assistant").parts += said
            elif role == "system" and self.contract.system_inside and self._user_spoke:
                self._later += said
            elif said:
                self._take("user").parts += said
            elif role == "user" and rest.message.blocks and not self._user_asked:
                # Blank, or of a kind that has no place: the turn begins here all the same.
                self._take("user").parts += self.said(_OPENED)
            if answers:
                self._take("user").answers += [self.answer(block) for block in answers]

    def may_follow(self, roles: Sequence[Role]) -> bool:
        """Whether they take turns, and the first does with what was said before."""
        before = self._turn.role if self._turn is not None else "assistant"
        sides = cycle(("user", "assistant") if before == "assistant" else ("assistant", "user"))
        return not self._later and all(map(eq, roles, sides))

    def put_plain(self, messages: Plain) -> None:
        if self._turn is not None:
            self.rendered.append(self.closed(self._turn))
        self._begins = False
        super().put_plain(messages.but_last())
        last = messages.last()
        self._turn = Turn(_side(last.message))
        self.write([last])

    def example(self, item: Outgoing) -> list[Part]:
        return [self.closed(Turn(_side(item.message), parts=self.said(item)))]

    def fork(self) -> Self:
        other = super().fork()
        other._turn = self._turn.fork() if self._turn is not None else None
        return other

    def messages(self, *, copies: bool, since: int = 0) -> list[Part]:
        out = super().messages(copies=copies, since=since)
        last = [self._turn] if self._turn is not None else []
        if self._later:
            last.append(Turn("system", parts=self._later))
        open_ended = [self.closed(turn) for turn in last]
        return out + (copied(open_ended) if copies else open_ended)

    @property
    def _user_spoke(self) -> bool:
        return self._turn is not None and self._turn.role == "user"

    @property
    def _user_asked(self) -> bool:
        """The user has spoken last, and not for tools alone."""
        return self._turn is not None and self._turn.role == "user" and bool(self._turn.parts)

    def _take(self, role: Literal["user", "assistant"]) -> Turn:
        """Return the turn in which this side speaks: the last one, or another behind it."""
        turn = self._turn
        if turn is None and role == "assistant":
            turn = Turn("user", parts=self.said(_OPENED))
        if turn is not None and turn.role == role:
            return turn
        if turn is not None:
            self.rendered.append(self.closed(turn))
        if self._later:
            self.rendered.append(self.closed(Turn("system", parts=self._later)))
            self._later = []
        self._turn = Turn(role)
        return self._turn


def _side(message: Message) -> Literal["user", "assistant"]:
    return "assistant" if message.role == "assistant" else "user"


def is_own(block: RawBlock, message: Message, contract: Contract) -> bool:
    """Whether a block that was kept as it came goes back to where it came from."""
    origin = message.origin
    if origin is None or block.kind != "raw" or not isinstance(block.data, Mapping):
        return False
    known = contracts.host(origin.provider)
    same_host = (known.id if known is not None else None) == contract.provider
    return same_host and origin.api == contract.api


_OPENED = Outgoing(message=Message(role="user", blocks=(TextBlock(text=OPENING),)))


def _apart(item: Outgoing) -> tuple[list[ToolResponseBlock], Outgoing]:
    blocks = item.message.blocks
    if ToolResponseBlock not in map(type, blocks):
        return [], item
    answers = [block for block in blocks if isinstance(block, ToolResponseBlock)]
    rest = tuple(block for block in blocks if not isinstance(block, ToolResponseBlock))
    return answers, Outgoing(replace(item.message, blocks=rest), item.owed)


def _texts(message: Message) -> list[str]:
    return [
        block.text
        for block in message.blocks
        if isinstance(block, TextBlock) and block.text.strip()
    ]
