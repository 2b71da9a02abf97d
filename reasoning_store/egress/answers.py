"""Which response answers which call, and which do not stand where they have to.

A response belongs to the last call before it of its id that has no answer yet; of several
calls with one id in one message the first is answered first, and a call whose id was used
again, and answered there, has none any more. A response stands well where nothing
but other responses is between it and its call.

A conversation can be read in pieces: ``Matching`` knows what the next one needs of those
before. Pure: it knows calls and responses. It must not know providers, or what is done
about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from reasoning_store.blocks import Message, Role, ToolCallBlock, ToolResponseBlock
from reasoning_store.egress.verdicts import WarningCode

Spot: TypeAlias = tuple[int, int]
"""A block: which message, which block of it."""


@dataclass(slots=True)
class Answers:
    """The pairs of calls and responses, and the responses that have none or stand elsewhere."""

    calls: dict[Spot, ToolCallBlock] = field(default_factory=dict)
    """Every call, in order."""
    of: dict[Spot, Spot] = field(default_factory=dict)
    """Each answered call's response."""
    to: dict[Spot, Spot] = field(default_factory=dict)
    """Each response's call."""
    astray: dict[Spot, WarningCode] = field(default_factory=dict)
    """The responses and calls that stay out, and why."""
    away: set[Spot] = field(default_factory=set)
    """The responses that do not stand behind their call."""

    def unpaired(self) -> set[int]:
        """Return the messages in which something of these is not in order."""
        return {
            *(number for number, _ in self.calls.keys() - self.of.keys()),
            *(number for number, _ in self.astray),
            *(number for number, _ in self.away),
            *(self.to[spot][0] for spot in self.away),
        }


_PAIRED = frozenset({ToolCallBlock, ToolResponseBlock})


@dataclass(slots=True)
class Matching:
    """What was read of a conversation, as far as the answers in the rest depend on it."""

    read: int = 0
    """How many messages; the next one has this number."""
    _waiting: dict[str, tuple[Spot, ...]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _behind: int | None = None

    def fork(self) -> Matching:
        """Return the same, to go on with apart from this one."""
        return Matching(self.read, dict(self._waiting), set(self._known), self._behind)

    def next(self, messages: Sequence[Message]) -> Answers:
        """Return the answers in the next piece; they may be to calls before it."""
        answers = Answers()
        for number, message in enumerate(messages, self.read):
            if message.status == "streaming":
                continue
            if _PAIRED.isdisjoint(map(type, message.blocks)):
                self._behind = number if message.role == "assistant" else None
            else:
                self._pair(number, message, answers)
        self.read += len(messages)
        return answers

    def pass_over(self, roles: Sequence[Role]) -> None:
        """Go on behind messages in which nothing is called and nothing answered."""
        self.read += len(roles)
        self._behind = self.read - 1 if roles[-1] == "assistant" else None

    def _pair(self, number: int, message: Message, answers: Answers) -> None:
        calls = message.role == "assistant"
        others = False
        for place, block in enumerate(message.blocks):
            spot = (number, place)
            if isinstance(block, ToolCallBlock):
                if not (block.name and message.role == "assistant"):
                    # Nobody can call it, or nobody's it is: there is nothing to answer.
                    answers.astray[spot] = "call_unusable"
                    continue
                calls = True
                self._known.add(block.id)
                answers.calls[spot] = block
                self._waiting[block.id] = (*self._waiting.get(block.id, ()), spot)
            elif not isinstance(block, ToolResponseBlock):
                others = True
            else:
                self._answer(block, spot, answers)
        if calls:
            self._behind = number
        elif others:
            self._behind = None

    def _answer(self, block: ToolResponseBlock, spot: Spot, answers: Answers) -> None:
        calls = self._waiting.pop(block.call_id, ())
        if not calls:
            known = block.call_id in self._known
            answers.astray[spot] = "response_repeated" if known else "response_orphan"
            return
        # Of several calls with one id in one message the first is answered first.
        last = calls[-1][0]
        call, *others = [item for item in calls if item[0] == last]
        # Whoever used the id before will not be answered any more.
        if others:
            self._waiting[block.call_id] = tuple(others)
        answers.of[call], answers.to[spot] = spot, call
        if call[0] != self._behind:
            answers.away.add(spot)
