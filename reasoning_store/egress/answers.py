"""Which response answers which call, and which do not stand where they have to.

A response belongs to the last call before it of its id that has no answer yet; of several
calls with one id in one message the first is answered first, and a call whose id was used
again, and answered there, has none any more. A response stands well where nothing
but other responses is between it and its call.

Pure: it knows calls and responses. It must not know providers, or what is done about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from reasoning_store.blocks import Message, ToolCallBlock, ToolResponseBlock

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
    astray: dict[Spot, str] = field(default_factory=dict)
    """The responses that stay out, and why."""
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


def matched(messages: Sequence[Message]) -> Answers:
    """Find each response's call."""
    answers = Answers()
    waiting: dict[str, list[Spot]] = {}
    known: set[str] = set()
    behind: int | None = None
    for number, message in enumerate(messages):
        if message.status == "streaming":
            continue
        if _PAIRED.isdisjoint(map(type, message.blocks)):
            behind = number if message.role == "assistant" else None
            continue
        calls = message.role == "assistant"
        others = False
        for place, block in enumerate(message.blocks):
            if isinstance(block, ToolCallBlock):
                calls = True
                known.add(block.id)
                answers.calls[number, place] = block
                waiting.setdefault(block.id, []).append((number, place))
            elif not isinstance(block, ToolResponseBlock):
                others = True
            else:
                _answer(block, (number, place), waiting, known, answers, behind)
        if calls:
            behind = number
        elif others:
            behind = None
    return answers


def _answer(
    block: ToolResponseBlock,
    spot: Spot,
    waiting: dict[str, list[Spot]],
    known: set[str],
    answers: Answers,
    behind: int | None,
) -> None:
    calls = waiting.get(block.call_id)
    if not calls:
        answers.astray[spot] = "response_repeated" if block.call_id in known else "response_orphan"
        return
    # Of several calls with one id in one message the first is answered first.
    last = calls[-1][0]
    call, *others = [item for item in calls if item[0] == last]
    # Whoever used the id before will not be answered any more.
    waiting[block.call_id] = others
    answers.of[call], answers.to[spot] = spot, call
    if call[0] != behind:
        answers.away.add(spot)
