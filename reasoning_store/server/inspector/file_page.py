"""A session's page as one file: it loads nothing, runs no script, and has no controls."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from markupsafe import Markup

from reasoning_store import Session
from reasoning_store.results import Stored
from reasoning_store.server.inspector.conversation import (
    Part,
    Shown,
    count_thoughts,
    show_conversation,
)
from reasoning_store.server.inspector.next_request import (
    VIEWS,
    request_text,
    show_panel,
    try_requests,
)
from reasoning_store.server.inspector.questions import Question
from reasoning_store.server.inspector.rendering import template

Thinking: TypeAlias = Literal["full", "short", "none"]
_SHORT: Final = 72


def file_page(
    session: Session,
    history: Sequence[Stored],
    *,
    limit: int | None = None,
    thinking: Thinking = "full",
    is_whole: bool = True,
) -> str:
    """Return the page of some messages of a session.

    The next request holds all messages with their thinking: it is on the page only where the
    page is of the whole session, and shows the thinking in full.
    """
    question = Question(session=session.id, limit=limit)
    requests, problem = try_requests(session, question)
    conversation = show_conversation(session, history, requests)
    has_request = is_whole and thinking == "full"
    style = files("reasoning_store.server.inspector").joinpath("static", "inspector.css")
    css = style.read_text("utf-8")
    return template("session.html").render(
        is_file=True,
        style=Markup(css),  # our own file
        style_digest=base64.b64encode(hashlib.sha256(css.encode()).digest()).decode(),
        session=session,
        id_word=shlex.quote(session.id),
        question=question,
        head=session.head(),
        conversation=replace(
            conversation,
            messages=tuple(_with_thinking(one, thinking) for one in conversation.messages),
        ),
        thoughts="" if requests is None else count_thoughts(requests.now),
        problem=problem,
        panel=show_panel(session, requests, question) if requests and has_request else None,
        has_request=has_request,
        views=[(label, name, *request_text(requests, name)) for name, label in VIEWS.items()]
        if requests and has_request
        else [],
    )


def _with_thinking(shown: Shown, thinking: Thinking) -> Shown:
    """Return a message with as much of its thoughts as is asked for."""
    if thinking == "full":
        return shown
    if thinking == "none":
        return replace(shown, parts=tuple(one for one in shown.parts if one.kind != "thought"))
    return replace(shown, parts=tuple(map(_shortened, shown.parts)))


def _shortened(part: Part) -> Part:
    line = " ".join(part.text.split())
    if part.kind != "thought" or len(line) <= _SHORT:
        return part
    return replace(part, text=f"{line[: _SHORT - 3]}...")
