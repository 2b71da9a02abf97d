"""OpenAI's routes of stored responses: one that is not stored here is the provider's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import reasoning_store as rs
from reasoning_store.results import Owner
from reasoning_store.server.access import request_owner
from reasoning_store.server.conversation_items import FORM, write_items
from reasoning_store.server.counting import count_body
from reasoning_store.server.gateway import Gateway
from reasoning_store.server.openai_routes import Absent, Query, Work, list_items, make_route
from reasoning_store.server.options import ServerOptions
from reasoning_store.server.problems import problem
from reasoning_store.server.stored_responses import (
    NOT_OWN,
    as_response,
    expand_body,
    find_reply,
    find_response_session,
    finish_response,
    is_begun_here,
    write_events,
)
from reasoning_store.server.threads import run_work
from reasoning_store.server.upstream import NO_ROUTE


class Responses:
    """The routes of stored responses."""

    def __init__(self, options: ServerOptions, gateway: Gateway | None) -> None:
        self._options = options
        self._gateway = gateway

    def routes(self) -> list[BaseRoute]:
        one = "/v1/responses/{id}"
        return [
            self._route("/v1/responses/input_tokens", "POST", _count),
            self._route(one, "GET", _retrieve, waits=True),
            Route(one, self._delete, methods=["DELETE"]),
            self._route(f"{one}/cancel", "POST", _cancel, waits=True),
            self._route(f"{one}/input_items", "GET", _list_input),
        ]

    def _route(self, path: str, method: str, work: Work, *, waits: bool = False) -> Route:
        if self._gateway is None:
            return make_route(path, method, work, waits=waits)
        absent = self._ask_provider if work is _retrieve else self._pass_on
        return make_route(path, method, work, waits=waits, absent=absent)

    async def _pass_on(self, request: Request, body: Mapping[str, Any] | None = None) -> Response:
        """Ask the provider, where its answer can be this owner's alone."""
        assert self._gateway is not None
        if self._options.shares_key:
            id = request.path_params.get("id")
            owner = request_owner(request)
            if id is None or not await asyncio.to_thread(is_begun_here, owner, id):
                return problem(request.url.path, 404, NOT_OWN, code="not_found")
        return await self._gateway.pass_on(request, body)

    async def _ask_provider(self, request: Request, body: Mapping[str, Any] | None) -> Response:
        """Return the provider's response; where it is one that began here, store its reply."""
        assert self._gateway is not None
        answer = await self._pass_on(request)
        if answer.status_code == 200 and answer.body:
            id = request.path_params["id"]
            # A store that fails does not keep the answer from the client.
            with suppress(Absent, ValueError, rs.ReasoningStoreError):
                found = json.loads(bytes(answer.body))
                owner, names = request_owner(request), self._gateway.names
                await asyncio.to_thread(finish_response, owner, id, found, **names)
        return answer

    async def _delete(self, request: Request) -> Response:
        """Erase a reply here, and have the provider delete its own copy."""
        id = request.path_params["id"]
        try:
            await run_work(request, _erase, request_owner(request), id)
        except Absent as error:
            if self._gateway is not None:
                return await self._pass_on(request)
            return problem(request.url.path, 404, str(error), code="not_found")
        if self._gateway is not None:
            there = await self._gateway.pass_on(request)
            if there.status_code >= 400 and there.status_code not in NO_ROUTE:
                return there
        return JSONResponse({"id": id, "object": "response", "deleted": True})


def _retrieve(owner: Owner, body: Any, query: Query, id: str) -> dict[str, Any] | Response:
    session, stored = find_reply(owner, id)
    if query.get("stream") != "true":
        return as_response(id, session, stored)
    after = query.get("starting_after", "-1")
    if not after.removeprefix("-").isdecimal():
        raise rs.InvalidCall("starting_after: the number of an event")
    if stored.message.status == "streaming":
        _wait_until_ended(session)
        session, stored = find_reply(owner, id)
    events = b"".join(write_events(as_response(id, session, stored), int(after)))
    return Response(events, media_type="text/event-stream")


def _cancel(owner: Owner, body: Any, query: Query, id: str) -> dict[str, Any]:
    """Stop a reply that is being recorded; one that has ended is returned as it is."""
    session = find_response_session(owner, id)
    if _is_arriving(session, id) and session.stop("client"):
        _wait_until_ended(session)
    return as_response(id, *find_reply(owner, id))


def _is_arriving(session: rs.Session, id: str) -> bool:
    try:
        return session.get(id).message.status == "streaming"
    except rs.NotFound:
        return True  # nothing of it has arrived


def _wait_until_ended(session: rs.Session) -> None:
    for _ in session.follow():
        pass  # it ends with the reply


def _list_input(owner: Owner, body: Any, query: Query, id: str) -> dict[str, Any]:
    session, stored = find_reply(owner, id)
    return list_items(write_items(session.history(before=stored.id)), query)


def _erase(owner: Owner, id: str) -> None:
    session, stored = find_reply(owner, id)
    session.erase(stored.id)


def _count(owner: Owner, body: Mapping[str, Any], query: Query) -> dict[str, Any]:
    expanded, _ = expand_body(owner, body)
    counted = count_body(FORM, expanded, provider="openai")
    return {"object": "response.input_tokens", "input_tokens": counted}
