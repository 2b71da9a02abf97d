"""How a view runs: where its open turn starts, and what the place of a message depends on.

A turn is a real user message and all that follows it up to the next one; a summary is no
real one, nor is an answer of a tool that a user's message holds. What a view comes to is
known after one look at it, and goes on from there with the messages behind.

It knows blocks and roles. It must not know settings, a provider or a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from reasoning_store.blocks import Message, ToolCallBlock, ToolResponseBlock
from reasoning_store.egress.policy import Place
from reasoning_store.egress.stretch import Stretch
from reasoning_store.egress.verdicts import Viewed
from reasoning_store.rope import pieces


def places(view: Sequence[Viewed]) -> list[Place]:
    """Return where each message of a view stands."""
    return Course().then(view).places(view)


@dataclass(frozen=True, slots=True)
class Course:
    """How a view runs: what the place of each of its messages depends on."""

    length: int = 0
    start: int = 0
    """Where the open turn starts."""
    last: int = -1
    """The last message that has any thinking."""
    open_call: bool = False
    """The open turn has a tool call."""

    def then(self, more: Sequence[Viewed]) -> Course:
        """Return how it runs with more messages behind it."""
        course = self
        for piece in pieces(more):
            course = course._plainly(piece) if isinstance(piece, Stretch) else course._each(piece)
        return course

    def _each(self, more: Sequence[Viewed]) -> Course:
        start, last, open_call = self.start, self.last, self.open_call
        for number, item in enumerate(more, self.length):
            message = item.message
            if message.role == "user" and not item.summary and _asks(message):
                start, open_call = number, False
            if item.counts.thinking:
                last = number
            if not open_call and ToolCallBlock in map(type, message.blocks):
                open_call = True
        return Course(self.length + len(more), start, last, open_call)

    def _plainly(self, more: Stretch) -> Course:
        """Return the same for plain messages: each of the user's asks, and none calls a tool."""
        asked = _last(role == "user" for role in reversed(more.roles))
        thought = _last(name is not None for name in reversed(more.kinds))
        end = self.length + len(more)
        return Course(
            end,
            self.start if asked is None else end - asked,
            self.last if thought is None else end - thought,
            self.open_call and asked is None,
        )

    def places(self, some: Sequence[Viewed], first: int = 0) -> list[Place]:
        """Return where some of its messages stand, from the one at ``first`` on."""
        return [
            _PLACES[
                number == self.last,
                number >= self.start,
                ToolCallBlock in map(type, item.message.blocks),
                self.open_call,
            ]
            for number, item in enumerate(some, first)
        ]


def _last(backwards: Iterable[bool]) -> int | None:
    """Return how far before the end something was last so."""
    return next((back for back, found in enumerate(backwards, 1) if found), None)


_PLACES = {flags: Place(*flags) for flags in product((False, True), repeat=4)}


_ANSWERS = frozenset({ToolResponseBlock})


def _asks(message: Message) -> bool:
    """Whether a user's message is one that starts a turn (``Message.starts_turn``)."""
    return not _ANSWERS.issuperset(map(type, message.blocks))
