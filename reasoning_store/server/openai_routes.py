"""Routes of OpenAI's on the store: the body is read, the work done in a thread, a list paged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import write_json
from reasoning_store.server.access import request_owner
from reasoning_store.server.bodies import read_body
from reasoning_store.server.conversation_items import StoredItem
from reasoning_store.server.problems import problem
from reasoning_store.server.threads import run_waiting, run_work

Query: TypeAlias = Mapping[str, str]
Work: TypeAlias = Callable[..., dict[str, Any] | Response]
"""Called with the owner, the body, the query and the names in the path."""
_MOST_LISTED: Final = 100


class Absent(Exception):
    """There is no such conversation, response or item here."""


def make_route(
    path: str,
    method: str,
    work: Work,
    *,
    waits: bool = False,
    absent: Callable[[Request, dict[str, Any] | None], Awaitable[Response]] | None = None,
) -> Route:
    """Return a route; ``absent`` answers for what is not stored here, with the body, if any.

    The work of a route that ``waits`` for a reply has a thread of its own.
    """

    async def answer(request: Request) -> Response:
        body = await read_body(request, may_be_empty=True) if method == "POST" else {}
        asked = request_owner(request), body, request.query_params
        try:
            if waits:
                found = await run_waiting(work, *asked, **request.path_params)
            else:
                found = await run_work(request, work, *asked, **request.path_params)
        except Absent as error:
            if absent is not None:
                return await absent(request, body or None)
            return problem(request.url.path, 404, str(error), code="not_found")
        if isinstance(found, Response):
            return found
        return Response(write_json(found), media_type="application/json")

    return Route(path, answer, methods=[method])


def list_items(stored: Iterable[StoredItem], query: Query) -> dict[str, Any]:
    """Return the page of items, the oldest first, that a query asks for."""
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= _MOST_LISTED):
        raise rs.InvalidCall(f"limit: a number from 1 to {_MOST_LISTED}")
    if order not in ("asc", "desc"):
        raise rs.InvalidCall("order: asc or desc")
    items = [one.item for one in stored]
    if order == "desc":
        items.reverse()
    after = query.get("after")
    if after is not None:
        ids = [item.get("id") for item in items]
        if after not in ids:
            raise Absent(f"Item with id '{after[:100]}' not found.")
        items = items[ids.index(after) + 1 :]
    return make_page(items[: int(limit)], has_more=len(items) > int(limit))


def make_page(items: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """Return items as a list of OpenAI's."""
    ids = [item.get("id") for item in items]
    return {
        "object": "list",
        "data": list(items),
        "first_id": ids[0] if ids else "",
        "last_id": ids[-1] if ids else "",
        "has_more": has_more,
    }
