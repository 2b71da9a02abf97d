"""OpenAI's Conversations API on the store: a conversation is a session, its items are messages.

A conversation has its items as soon as the call that wrote them has returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.results import Owner
from reasoning_store.server.conversation_items import (
    StoredItem,
    item_ids,
    make_id,
    read_items,
    write_items,
)
from reasoning_store.server.openai_routes import (
    Absent,
    Query,
    Work,
    list_items,
    make_page,
    make_route,
)

_MOST_ITEMS: Final = 20


def conversation_routes() -> list[Route]:
    """Return the routes of conversations and of their items."""
    one, items = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
    works: tuple[tuple[str, str, Work], ...] = (
        ("/v1/conversations", "POST", _create),
        (one, "GET", _retrieve),
        (one, "POST", _update),
        (one, "DELETE", _delete),
        (items, "POST", _add_items),
        (items, "GET", _list_items),
        (f"{items}/{{item}}", "GET", _retrieve_item),
        (f"{items}/{{item}}", "DELETE", _delete_item),
    )
    return [make_route(*work) for work in works]


def find_session(owner: Owner, id: str) -> rs.Session:
    """Return the session that is the conversation of this id."""
    try:
        return owner.session(id)
    except (rs.NotFound, rs.InvalidCall):
        raise Absent(f"Conversation with id '{id[:100]}' not found.") from None


def _as_conversation(session: rs.Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "object": "conversation",
        "created_at": int(session.created_at.timestamp()),
        "metadata": session.metadata,
    }


def _checked_metadata(body: Mapping[str, Any]) -> dict[str, str]:
    metadata = {} if body.get("metadata") is None else body["metadata"]
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise rs.InvalidCall("metadata: an object of strings", hint="at most 16 keys")
    if len(metadata) > 16 or any(len(k) > 64 or len(v) > 512 for k, v in metadata.items()):
        raise rs.InvalidCall("metadata: 16 keys of 64 characters, values of 512, at most")
    return metadata


def _checked_items(body: Mapping[str, Any]) -> list[rs.Message]:
    items = [] if body.get("items") is None else body["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise rs.InvalidCall("items: a list of objects")
    if len(items) > _MOST_ITEMS:
        raise rs.InvalidCall(f"items: at most {_MOST_ITEMS} in one call")
    return read_items(items)


def _create(owner: Owner, body: Mapping[str, Any], query: Query) -> dict[str, Any]:
    metadata, messages = _checked_metadata(body), _checked_items(body)
    session = owner.session(make_id("conv"), create=True, metadata=metadata)
    if messages:
        session.append(messages)
    return _as_conversation(session)


def _retrieve(owner: Owner, body: Any, query: Query, id: str) -> dict[str, Any]:
    return _as_conversation(find_session(owner, id))


def _update(owner: Owner, body: Mapping[str, Any], query: Query, id: str) -> dict[str, Any]:
    find_session(owner, id).set_metadata(_checked_metadata(body))
    return _as_conversation(find_session(owner, id))


def _delete(owner: Owner, body: Any, query: Query, id: str) -> dict[str, Any]:
    find_session(owner, id).delete()
    return {"id": id, "object": "conversation.deleted", "deleted": True}


def _add_items(owner: Owner, body: Mapping[str, Any], query: Query, id: str) -> dict[str, Any]:
    session, messages = find_session(owner, id), _checked_items(body)
    messages = _without_stored(owner, session, messages)
    stored = session.append(messages) if messages else []
    return make_page([one.item for one in write_items(stored)], has_more=False)


def _without_stored(
    owner: Owner, session: rs.Session, messages: list[rs.Message]
) -> list[rs.Message]:
    """Return the messages that are new to a conversation.

    A client whose model asks this server, too, adds the items of a reply that is stored already:
    their ids show it. The other items that it sends may have been in the model's request.
    """
    ids = item_ids(messages)
    stored = {str(one.item.get("id")) for one in write_items(session.history())}
    last = max((place for place, own in enumerate(ids) if own & stored), default=-1)
    if last < 0:
        return messages
    known = owner.identify(messages[: last + 1], session_id=session.id).first_new
    return [
        message
        for place, message in enumerate(messages)
        if place > last or not (ids[place] & stored or place < known)
    ]


def _list_items(owner: Owner, body: Any, query: Query, id: str) -> dict[str, Any]:
    return list_items(write_items(find_session(owner, id).history()), query)


def _find_item(session: rs.Session, item: str) -> tuple[StoredItem, list[StoredItem]]:
    """Return an item, and all items of its message."""
    everything = list(write_items(session.history()))
    for one in everything:
        if one.item.get("id") == item:
            return one, [each for each in everything if each.stored.id == one.stored.id]
    raise Absent(f"Item with id '{item[:100]}' not found.")


def _retrieve_item(owner: Owner, body: Any, query: Query, id: str, item: str) -> dict[str, Any]:
    found, _ = _find_item(find_session(owner, id), item)
    return found.item


def _delete_item(owner: Owner, body: Any, query: Query, id: str, item: str) -> dict[str, Any]:
    session = find_session(owner, id)
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
    return _as_conversation(find_session(owner, id))
