"""The routes of the inspector: each reads a question, asks the store, and renders a page."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib.resources import files
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from reasoning_store import (
    Conflict,
    InvalidCall,
    NotFound,
    ReasoningStoreError,
    Session,
    SettingError,
)
from reasoning_store.server.access import request_owner
from reasoning_store.server.inspector.compaction import apply_plan
from reasoning_store.server.inspector.conversation import count_thoughts, show_conversation
from reasoning_store.server.inspector.live_events import live_events
from reasoning_store.server.inspector.next_request import read_requests, show_panel, try_requests
from reasoning_store.server.inspector.pages import HEADERS, pairs, read_form, render_page
from reasoning_store.server.inspector.questions import (
    Question,
    default_limit,
    named,
    read_number,
    read_question,
)
from reasoning_store.server.inspector.session_list import (
    WITHIN,
    read_sessions,
    session_address,
)
from reasoning_store.server.threads import run_work

_MOST_MESSAGES: Final = 100
_STATIC: Final = {
    "inspector.css": "text/css",
    "inspector.js": "text/javascript",
    "htmx.min.js": "text/javascript",
}


async def _list_sessions(request: Request) -> Response:
    given = pairs(request)
    found = await run_work(
        request,
        read_sessions,
        request_owner(request),
        text=named(given, "q"),
        within=named(given, "within"),
        after=named(given, "after") or None,
        archived=named(given, "archived") == "1",
    )
    return render_page(request, "sessions.html", {"list": found, "within": WITHIN})


async def _show_session(request: Request) -> Response:
    question = _question(request)
    around = read_number("around", named(pairs(request), "around"))

    def read() -> dict[str, object]:
        session = _session(request, question)
        requests, problem = try_requests(session, question)
        head, before = session.head(), question.before
        if around is not None and around + _MOST_MESSAGES // 2 <= head:
            before = around + _MOST_MESSAGES // 2
        history = session.history(limit=_MOST_MESSAGES, before=before)
        return {
            "session": session,
            "question": question,
            "head": head,
            "panel": None if requests is None else show_panel(session, requests, question),
            "problem": problem,
            "thoughts": "" if requests is None else count_thoughts(requests.now),
            "conversation": show_conversation(session, history, requests),
        }

    return render_page(request, "session.html", await run_work(request, read))


async def _send_request(request: Request) -> Response:
    """Send the whole body of the next request."""
    question = _question(request)

    def read() -> str:
        found = read_requests(_session(request, question), question)
        return json.dumps(found.now.body, ensure_ascii=False, indent=2)

    text = await run_work(request, read)
    return Response(f"{text}\n", media_type="application/json", headers=HEADERS)


async def _stream_live(request: Request) -> Response:
    question = _question(request)
    session = await run_work(request, _session, request, question)
    head = read_number("head", named(pairs(request), "head"))
    return StreamingResponse(
        live_events(session, head or 0),
        media_type="text/event-stream",
        headers={**HEADERS, "X-Accel-Buffering": "no"},
    )


async def _save_settings(request: Request) -> Response:
    """Save the settings of the form for the session, or unset one."""
    form = await read_form(request)
    question = read_question(form)
    unset = named(form, "unset")

    def save() -> None:
        session = _session(request, question)
        if unset:
            session.settings.unset(f"reasoning.{unset}")
            return
        for key, value in question.changes(session.settings.resolved()).items():
            session.settings.set(key, value)

    await run_work(request, save)
    return _go_back(question, "settings")


async def _compact(request: Request) -> Response:
    """Carry out the plan that the form was shown with."""
    form = await read_form(request)
    question, summary = read_question(form), named(form, "summary")

    def apply() -> None:
        apply_plan(_session(request, question), question, named(form, "steps"), summary)

    try:
        await run_work(request, apply)
    except (Conflict, InvalidCall) as error:
        status = 409 if isinstance(error, Conflict) else 400
        page = f"{question.saved_address()}#shorter"
        return _error_page(request, error, status, written=summary, back=page)
    return _go_back(question, "shorter")


async def _undo(request: Request) -> Response:
    form = await read_form(request)
    question, number = read_question(form), read_number("compaction", named(form, "compaction"))
    if number is None:
        raise InvalidCall("compaction: no compaction is named")
    await run_work(request, lambda: _session(request, question).undo(number))
    return _go_back(question, "shorter")


async def _activate_branch(request: Request) -> Response:
    question = read_question(await read_form(request))
    branch = question.branch
    if branch is None:
        raise InvalidCall("branch: no branch is named")
    await run_work(request, lambda: _session(request, question).activate(branch))
    return RedirectResponse(session_address(question.session), 303, headers=HEADERS)


def _session(request: Request, question: Question) -> Session:
    session = request_owner(request).session(question.session)
    return session if question.branch is None else session.branch(question.branch)


def _go_back(question: Question, place: str) -> Response:
    """Lead a browser from a form to a place of the session's page."""
    return RedirectResponse(f"{question.saved_address()}#{place}", 303, headers=HEADERS)


def _question(request: Request) -> Question:
    return read_question(pairs(request), default_limit())


Endpoint = Callable[[Request], Awaitable[Response]]


def _answering_errors(endpoint: Endpoint) -> Endpoint:
    """Answer an error of the store, or of a form, with a page."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except NotFound as error:
            return _error_page(request, error, 404)
        except (InvalidCall, SettingError) as error:
            return _error_page(request, error, 400)
        except ReasoningStoreError as error:
            return _error_page(request, error, 503)
        except HTTPException as error:
            text, hint = _FORM_ERRORS[error.status_code]
            return _error_page(request, InvalidCall(text, hint=hint), error.status_code)

    return answer


_FORM_ERRORS: Final = {
    403: ("the form is not one of this page, or is too old", "go back, reload, and send it again"),
    413: ("the form is too large", "go back and shorten it"),
}


def _error_page(
    request: Request, error: ReasoningStoreError, status: int, *, written: str = "", back: str = ""
) -> Response:
    """Return the page of an error, with the text that a person has written."""
    if request.url.path.endswith((".json", "/live")):
        return JSONResponse({"error": str(error)}, status, headers=HEADERS)
    values = {"error": error, "is_page": request.method != "POST", "written": written, "back": back}
    return render_page(request, "error.html", values, status)


async def _send_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404)
    data = files("reasoning_store.server.inspector").joinpath("static", name).read_bytes()
    headers = {**HEADERS, "Cache-Control": "no-cache"}
    return Response(data, media_type=_STATIC[name], headers=headers)


ROUTES: Final[tuple[BaseRoute, ...]] = (
    Route("/", _answering_errors(_list_sessions)),
    Route("/session", _answering_errors(_show_session)),
    Route("/session/request.json", _answering_errors(_send_request)),
    Route("/session/live", _answering_errors(_stream_live)),
    Route("/session/settings", _answering_errors(_save_settings), methods=["POST"]),
    Route("/session/compact", _answering_errors(_compact), methods=["POST"]),
    Route("/session/undo", _answering_errors(_undo), methods=["POST"]),
    Route("/session/branch", _answering_errors(_activate_branch), methods=["POST"]),
    Route("/static/{name}", _send_static),
)
