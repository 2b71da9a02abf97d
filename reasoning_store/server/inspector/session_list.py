"""The list of sessions, and what a search in them finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias
from urllib.parse import urlencode

from reasoning_store import InvalidCall, Session
from reasoning_store.results import Hit, Owner, Page
from reasoning_store.server.inspector.sub_agents import fold_sub_agents
from reasoning_store.server.inspector.texts import minute, plural

Within: TypeAlias = Literal["answers", "thinking", "all"]
WITHIN: Final[dict[Within, str]] = {
    "all": "answers and thinking",
    "answers": "answers",
    "thinking": "thinking",
}
_PAGE: Final = 50
_SHOWN: Final = ("client", "model")
"""The metadata of a session that its row shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One session, or one text that a search found in it."""

    title: str
    address: str
    facts: str
    pieces: tuple[tuple[str, bool], ...]
    """A piece of text, and whether it is one of the words that were searched."""
    folded: tuple[Row, ...] = ()
    """The sessions of its sub-agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList:
    """A page of the list."""

    text: str
    within: Within
    archived: bool
    rows: tuple[Row, ...]
    next: str | None
    """The address of the next page."""


def read_sessions(
    owner: Owner, *, text: str = "", within: str = "", after: str | None, archived: bool = False
) -> SessionList:
    """Return the latest sessions; with a text, the places where it is found."""
    places = _within(within or "all")
    found: Page[Session] | Page[Hit]
    if text.strip():
        found = owner.search(text, within=places, branches="all", limit=_PAGE, after=after)
        rows = tuple(map(_found_row, found.items))
    else:
        found = owner.sessions(limit=_PAGE, after=after, archived=archived)
        rows = tuple(map(_chat_row, fold_sub_agents(found.items)))
    parts = {"q": text, "within": places if text else "", "archived": "1" if archived else ""}
    given = {name: value for name, value in parts.items() if value}
    return SessionList(
        text=text,
        within=places,
        archived=archived,
        rows=rows,
        next=None if found.next is None else f"/?{urlencode({**given, 'after': found.next})}",
    )


def session_address(id: str, *, branch: int | None = None, position: int | None = None) -> str:
    """Return the address of a session's page, or of one message in it."""
    given: dict[str, str | int] = {"id": id}
    if branch is not None:
        given["branch"] = branch
    if position is not None:
        given["around"] = position
    place = "" if position is None else f"#m{position}"
    return f"/session?{urlencode(given)}{place}"


def _within(word: str) -> Within:
    for name in WITHIN:
        if name == word:
            return name
    raise InvalidCall("within: not a place of a search", hint=f"one of: {', '.join(WITHIN)}")


def _chat_row(sessions: Sequence[Session]) -> Row:
    """Return the row of a chat, which is the first, with those of its sub-agents folded."""
    chat, *others = map(_session_row, sessions)
    return replace(chat, folded=tuple(others))


def _session_row(session: Session) -> Row:
    return Row(
        title=session.title or session.id,
        address=session_address(session.id),
        facts=", ".join(
            [
                *([session.id] if session.title else []),
                *(str(session.metadata[name]) for name in _SHOWN if session.metadata.get(name)),
                plural(session.message_count or 0, "message"),
                minute(session.updated_at),
            ]
        ),
        pieces=((session.preview or "", False),),
    )


def _found_row(hit: Hit) -> Row:
    if hit.position is None:
        facts = "title"
    else:
        what = "thinking" if hit.kind == "thinking" else hit.role or ""
        facts = f"message {hit.position}, {what}, {minute(hit.created_at)}"
    branch = None if hit.is_current else hit.branch
    return Row(
        title=hit.title or hit.session,
        address=session_address(hit.session, branch=branch, position=hit.position),
        facts=facts if branch is None else f"{facts}, branch {branch}",
        pieces=tuple(_pieces(hit)),
    )


def _pieces(hit: Hit) -> Iterator[tuple[str, bool]]:
    at = 0
    for start, end in hit.marks:
        yield hit.snippet[at:start], False
        yield hit.snippet[start:end], True
        at = end
    yield hit.snippet[at:], False
