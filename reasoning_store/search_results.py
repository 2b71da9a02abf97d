"""The results of a search: hits with their snippets, and thoughts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reasoning_store.conversation import search_query
from reasoning_store.conversation.blocks import Role
from reasoning_store.ledger.searching.search import FoundRow
from reasoning_store.ledger.searching.search_lookup import ANSWER, THINKING, TITLE
from reasoning_store.ledger.searching.thoughts import ThoughtRow
from reasoning_store.stored_values import time_of

Kind = Literal["answer", "thinking", "title"]
_KIND: dict[int, Kind] = {ANSWER: "answer", THINKING: "thinking", TITLE: "title"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A text that a search found: a message's text, its thinking, or a title."""

    session: str
    """The id of its session."""
    title: str | None
    kind: Kind
    branch: int
    """A branch that has it: the current one, if that has it."""
    is_current: bool
    """Whether it is on the current branch of its session."""
    position: int | None
    """None for a title, as are ``id`` and ``role``."""
    id: str | None
    role: Role | None
    created_at: datetime
    snippet: str
    """The piece of the text around the first words that were found, on one line."""
    marks: tuple[tuple[int, int], ...]
    """The places of the words in the snippet: first character, and the one after the last."""

    def marked(self, before: str = "**", after: str = "**") -> str:
        """Return the snippet with each place that was found between two marks."""
        out, at = [], 0
        for start, end in self.marks:
            out += [self.snippet[at:start], before, self.snippet[start:end], after]
            at = end
        return "".join([*out, self.snippet[at:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """The readable thinking of one message."""

    session: str
    """The id of its session."""
    title: str | None
    branch: int
    """The branch that it was written on."""
    position: int
    id: str
    created_at: datetime
    provider: str | None
    model: str | None
    text: str
    """The readable thoughts of the message, with a blank line between them."""
    tokens: int
    """Of all its thinking."""


def hit_of(found: FoundRow) -> Hit:
    """Return the hit of a text that was found."""
    piece, marks = search_query.snippet(found.text, found.places)
    row = found.row
    return Hit(
        session=found.session.id,
        title=found.session.title,
        kind=_KIND[found.place.kind],
        branch=found.branch,
        is_current=found.is_current,
        position=None if row is None else row.position,
        id=None if row is None else row.id,
        role=None if row is None else row.message.role,
        created_at=time_of(found.session.created_at if row is None else row.created_at),
        snippet=piece,
        marks=marks,
    )


def thought_of(found: ThoughtRow) -> Thought:
    """Return the thought of a message."""
    row, session = found.row, found.session
    origin = row.message.origin
    return Thought(
        session=session.id,
        title=session.title,
        branch=row.branch,
        position=row.position,
        id=row.id,
        created_at=time_of(row.created_at),
        provider=None if origin is None else origin.provider,
        model=None if origin is None else origin.model,
        text="\n\n".join(one.thought for one in row.message.thinking if one.thought),
        tokens=sum(row.counts.thinking),
    )
