"""Items of the Responses API as stored messages, and the same items again.

The items of one reply are one message, as a recorded reply is. An item that a client wrote is
given back as it was; the items of a recorded reply are those that its provider would be sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import FORMS
from reasoning_store.integrations.foreign_forms import rebuild, with_form
from reasoning_store.results import Stored

FORM: Final = FORMS["/responses"]
_NAME: Final = "openaiItems"
_PREFIXES: Final = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_TEXTS: Final = {"assistant": "output_text"}


class StoredItem(NamedTuple):
    """An item, and the message that holds it."""

    item: dict[str, Any]
    stored: Stored


def read_items(given: Sequence[Mapping[str, Any]]) -> list[rs.Message]:
    """Return items of a client as messages to be stored."""
    for at, item in enumerate(given):
        if not isinstance(item.get("type", "message"), str):
            raise rs.InvalidCall(f"items[{at}].type: a string")
        if not isinstance(item.get("id"), str | None):
            raise rs.InvalidCall(f"items[{at}].id: a string")
    try:
        return _read(given)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, rs.ReasoningStoreError):
            raise
        raise rs.InvalidCall("items: one has a part in no form of the API") from None


def _read(given: Sequence[Mapping[str, Any]]) -> list[rs.Message]:
    items = [_with_defaults(item) for item in given]
    groups = {one.first: one.last for one in FORM.read(items)}
    messages: list[rs.Message] = []
    at = 0
    while at < len(items):
        last = groups.get(at, at)
        group = items[at : last + 1]
        imported = FORM.import_messages(group)
        if len(imported) != 1:
            raise rs.InvalidCall(
                f"items[{at}]: the type {group[0].get('type')} cannot be stored",
                hint="messages, reasoning, calls and their outputs can",
            )
        messages.append(with_form(imported[0], _NAME, group, _is_thought))
        at = last + 1
    return messages


def write_items(history: Sequence[Stored]) -> Iterator[StoredItem]:
    """Yield the items of stored messages, the oldest first."""
    for stored in history:
        message = stored.message
        if message.status == "erased":
            continue
        rebuilt = rebuild(message, _NAME)
        if rebuilt is not None:
            items = [item for item in rebuilt.form if isinstance(item, dict)]
        else:
            items = [
                {"id": f"{_prefix(item)}_{stored.id}_{number}", **_long_form(item)}
                for number, item in enumerate(_written(message))
            ]
        for item in items:
            yield StoredItem(item, stored)


def item_ids(messages: Iterable[rs.Message]) -> list[set[str]]:
    """Return the ids of the items of each message that ``read_items`` made."""
    forms = [rebuild(message, _NAME) for message in messages]
    return [
        {str(item["id"]) for item in rebuilt.form if isinstance(item, dict)} if rebuilt else set()
        for rebuilt in forms
    ]


def make_id(prefix: str) -> str:
    """Return a new id."""
    return f"{prefix}_{uuid.uuid4().hex}"


def _written(message: rs.Message) -> list[dict[str, Any]]:
    origin = message.origin
    model = origin.model if origin is not None else None
    return rs.write_message(message, provider="openai", model=model, api="openai.responses")


def _with_defaults(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item with what the API adds: a type, an id, a status, parts for a text."""
    long = _long_form(item)
    return {**long, "id": item.get("id") or make_id(_prefix(item))}


def _long_form(item: Mapping[str, Any]) -> dict[str, Any]:
    long = {"type": "message", **item}
    if long["type"] == "message":
        content = long.get("content")
        if isinstance(content, str):
            kind = _TEXTS.get(str(long.get("role")), "input_text")
            more: dict[str, Any] = {}
            if kind == "output_text":
                more = {"annotations": [], "logprobs": []}
            long["content"] = [{"type": kind, "text": content, **more}]
    elif long["type"] == "reasoning":
        long.setdefault("summary", [])
        return long
    return {**long, "status": long.get("status") or "completed"}


def _prefix(item: Mapping[str, Any]) -> str:
    return _PREFIXES.get(str(item.get("type", "message")), "item")


def _is_thought(place: tuple[str | int, ...], value: Any) -> bool:
    return len(place) == 1 and isinstance(value, dict) and value.get("type") == "reasoning"
