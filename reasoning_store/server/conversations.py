"""OpenAI's Conversations API on the store: a conversation is a session, its items are messages.

A conversation has its items as soon as the call that wrote them has returned.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import reasoning_store as rs
from reasoning_store.results import Owner
from reasoning_store.server.access import request_owner
from reasoning_store.server.bodies import read_body
from reasoning_store.server.conversation_items import (
    FORM,
    StoredItem,
    make_id,
    read_items,
    write_items,
)
from reasoning_store.server.options import ServerOptions
from reasoning_store.server.problems import problem

_MOST_ITEMS: Final = 20
_MOST_LISTED: Final = 100
RESPONSE_KEY: Final = "lastResponse"
"""The key of a session's metadata that holds the id of its last response."""
_PAGED: Final = frozenset({"after", "limit", "order"})
_OWN_KEYS: Final = frozenset({RESPONSE_KEY})


class Conversations:
    """The routes of conversations and of their items."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    def routes(self) -> list[BaseRoute]:
        one, items = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
        return [
            self._route("/v1/conversations", "POST", _create),
            self._route(one, "GET", _retrieve),
            self._route(one, "POST", _update),
            self._route(one, "DELETE", _delete),
            self._route(items, "POST", _add_items),
            self._route(items, "GET", _list_items),
            self._route(f"{items}/{{item}}", "GET", _retrieve_item),
            self._route(f"{items}/{{item}}", "DELETE", _delete_item),
            self._route("/v1/responses/input_tokens", "POST", _count),
        ]

    def _route(self, path: str, method: str, work: Callable[..., dict[str, Any]]) -> Route:
        async def answer(request: Request) -> Response:
            body: dict[str, Any] = {}
            if method == "POST":
                given = await read_body(request, self._options.largest_body, may_be_empty=True)
                if isinstance(given, Response):
                    return given
                body = given.value
            asked = {key: request.query_params[key] for key in _PAGED & request.query_params.keys()}
            named = {**asked, **request.path_params} if work is _list_items else request.path_params
            try:
                found = await asyncio.to_thread(work, request_owner(request), body, **named)
            except _Absent as error:
                return problem(request.url.path, 404, str(error), code="not_found")
            return JSONResponse(found)

        return Route(path, answer, methods=[method])


class _Absent(Exception):
    """There is no such conversation or item."""


def _session(owner: Owner, id: str) -> rs.Session:
    try:
        return owner.session(id)
    except (rs.NotFound, rs.InvalidCall):
        raise _Absent(f"Conversation with id '{id[:100]}' not found.") from None


def _as_conversation(session: rs.Session) -> dict[str, Any]:
    metadata = {key: value for key, value in session.metadata.items() if key not in _OWN_KEYS}
    created = int(session.created_at.timestamp())
    return {
        "id": session.id,
        "object": "conversation",
        "created_at": created,
        "metadata": metadata,
    }


def _checked_metadata(body: Mapping[str, Any]) -> dict[str, str]:
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise rs.InvalidCall("metadata: an object of strings", hint="at most 16 keys")
    if len(metadata) > 16 or any(len(k) > 64 or len(v) > 512 for k, v in metadata.items()):
        raise rs.InvalidCall("metadata: 16 keys of 64 characters, values of 512, at most")
    if _OWN_KEYS & metadata.keys():
        raise rs.InvalidCall(f"metadata: the key {RESPONSE_KEY} is this server's")
    return metadata


def _checked_items(body: Mapping[str, Any]) -> list[rs.Message]:
    items = body.get("items") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise rs.InvalidCall("items: a list of objects")
    if len(items) > _MOST_ITEMS:
        raise rs.InvalidCall(f"items: at most {_MOST_ITEMS} in one call")
    return read_items(items)


def _create(owner: Owner, body: Mapping[str, Any]) -> dict[str, Any]:
    metadata, messages = _checked_metadata(body), _checked_items(body)
    session = owner.session(make_id("conv"), create=True, metadata=metadata)
    if messages:
        session.append(messages)
    return _as_conversation(session)


def _retrieve(owner: Owner, body: Any, id: str) -> dict[str, Any]:
    return _as_conversation(_session(owner, id))


def _update(owner: Owner, body: Mapping[str, Any], id: str) -> dict[str, Any]:
    session = _session(owner, id)
    kept = {key: session.metadata[key] for key in _OWN_KEYS & session.metadata.keys()}
    session.set_metadata({**_checked_metadata(body), **kept})
    return _as_conversation(_session(owner, id))


def _delete(owner: Owner, body: Any, id: str) -> dict[str, Any]:
    _session(owner, id).delete()
    return {"id": id, "object": "conversation.deleted", "deleted": True}


def _add_items(owner: Owner, body: Mapping[str, Any], id: str) -> dict[str, Any]:
    session, messages = _session(owner, id), _checked_items(body)
    stored = session.append(messages) if messages else []
    return _page([one.item for one in write_items(stored)], has_more=False)


def _page(items: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    ids = [item.get("id") for item in items]
    return {
        "object": "list",
        "data": list(items),
        "first_id": ids[0] if ids else "",
        "last_id": ids[-1] if ids else "",
        "has_more": has_more,
    }


def _list_items(
    owner: Owner,
    body: Any,
    id: str,
    after: str | None = None,
    limit: str = "20",
    order: str = "desc",
) -> dict[str, Any]:
    if not limit.isdigit() or not 1 <= int(limit) <= _MOST_LISTED:
        raise rs.InvalidCall(f"limit: a number from 1 to {_MOST_LISTED}")
    if order not in ("asc", "desc"):
        raise rs.InvalidCall("order: asc or desc")
    items = [one.item for one in write_items(_session(owner, id).history())]
    if order == "desc":
        items.reverse()
    if after is not None:
        ids = [item.get("id") for item in items]
        if after not in ids:
            raise _Absent(f"Item with id '{after[:100]}' not found.")
        items = items[ids.index(after) + 1 :]
    return _page(items[: int(limit)], has_more=len(items) > int(limit))


def _find_item(session: rs.Session, item: str) -> tuple[StoredItem, list[StoredItem]]:
    """Return an item, and all items of its message."""
    everything = list(write_items(session.history()))
    for one in everything:
        if one.item.get("id") == item:
            return one, [each for each in everything if each.stored.id == one.stored.id]
    raise _Absent(f"Item with id '{item[:100]}' not found.")


def _retrieve_item(owner: Owner, body: Any, id: str, item: str) -> dict[str, Any]:
    found, _ = _find_item(_session(owner, id), item)
    return found.item


def _delete_item(owner: Owner, body: Any, id: str, item: str) -> dict[str, Any]:
    session = _session(owner, id)
    found, together = _find_item(session, item)
    position = found.stored.position
    rest = [one.item for one in together if one is not found]
    if position == session.head():
        session.drop_tail(at=position)
        if rest:
            session.append(read_items(rest))
    elif rest:
        raise rs.Conflict(
            "an item within a reply cannot be deleted alone",
            hint="delete the whole conversation, or its items from the last one on",
        )
    else:
        session.erase(position)
    return _as_conversation(_session(owner, id))


def expand_body(owner: Owner, body: Mapping[str, Any]) -> tuple[dict[str, Any], rs.Session | None]:
    """Return a body of Responses with the items of the conversation that it names.

    The provider does not know the conversation: it is sent the items, without the thinking that
    the policy then adds.
    """
    conversation, previous = body.get("conversation"), body.get("previous_response_id")
    if conversation is None and previous is None:
        return dict(body), None
    if conversation is not None and previous is not None:
        raise rs.InvalidCall("conversation and previous_response_id exclude each other")
    if conversation is not None:
        id = conversation.get("id") if isinstance(conversation, dict) else conversation
        session = _session(owner, str(id))
    else:
        found = owner.sessions(metadata={RESPONSE_KEY: previous}, limit=1).items
        if not found:
            raise _Absent(f"Previous response with id '{str(previous)[:100]}' not found.")
        session = found[0]
    before = [
        _for_provider(one.item)
        for one in write_items(session.history())
        if one.item.get("type") != "reasoning"
    ]
    rest = {
        name: value
        for name, value in body.items()
        if name not in ("conversation", "previous_response_id")
    }
    return {**rest, "input": [*before, *FORM.list_of(body)], "store": False}, session


def find_named(owner: Owner, body: Mapping[str, Any]) -> tuple[bytes, str] | None:
    """Return the content to send for a body that names a conversation of ours, and its session.

    ``None`` for one that is not stored here: the provider may know it.
    """
    try:
        expanded, session = expand_body(owner, body)
    except _Absent:
        return None
    if session is None:
        return None
    return json.dumps(expanded, ensure_ascii=False).encode(), session.id


def _for_provider(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without the id of our making, which names nothing at the provider."""
    return {name: value for name, value in item.items() if name not in ("id", "status")}


def _count(owner: Owner, body: Mapping[str, Any]) -> dict[str, Any]:
    expanded, _ = expand_body(owner, body)
    messages = FORM.import_messages(FORM.list_of(expanded))
    instructions, model = body.get("instructions"), body.get("model")
    counted = rs.effective_tokens(
        messages,
        provider="openai",
        model=model if isinstance(model, str) else None,
        api="openai.responses",
        system=instructions if isinstance(instructions, str) else None,
        tools=body.get("tools"),
    )
    return {"object": "response.input_tokens", "input_tokens": counted.effective}


def remember_response(session: rs.Session, id: str) -> None:
    """Note the id of a session's last response, by which a client may name it next."""
    session.update_metadata({RESPONSE_KEY: id})
