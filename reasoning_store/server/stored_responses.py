"""Stored replies as responses of OpenAI's, and the requests that continue them.

The settings of its request are not stored: a response has the defaults of the API there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import referenced_ids, write_json
from reasoning_store.results import Contracts, Owner, Stored
from reasoning_store.server.conversation_items import FORM, StoredItem, write_items
from reasoning_store.server.conversations import find_session
from reasoning_store.server.openai_routes import Absent

_SEALS: Final = "reasoning.encrypted_content"
_NAMING: Final = ("conversation", "previous_response_id")
_REQUESTED: Final = "openaiRequest"
"""The annotation of a reply that holds which conversation its request named."""
NOT_OWN: Final = "there is no such response or conversation of this owner"
_UNFINISHED: Final = frozenset({"queued", "in_progress"})
"""The ends of a background response's first answer: only its provider knows the rest."""
_STATUSES: Final = {"streaming": "in_progress", "interrupted": "incomplete"}
_OWN_STATUSES: Final = {"failed": "failed", "cancelled": "cancelled", "stopped": "cancelled"}
_LAST_EVENTS: Final = {"completed": "completed", "failed": "failed"}
_DEFAULTS: Final[Mapping[str, Any]] = {
    "background": False,
    "conversation": None,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}


def ask_for_seals(
    body: Mapping[str, Any], contracts: Contracts, *, provider: str | None, base_url: str | None
) -> Mapping[str, Any]:
    """Return a body whose reply brings its sealed thinking, where the model takes it back so.

    A reply that the provider stores has none by itself, and the store would have nothing to send.
    """
    model, included = body.get("model"), body.get("include") or []
    if not isinstance(model, str) or not isinstance(included, list) or _SEALS in included:
        return body
    is_stateless = contracts.is_stateless(provider, model, FORM.api, base_url)
    return {**body, "include": [*included, _SEALS]} if is_stateless else body


def find_reply(owner: Owner, id: str) -> tuple[rs.Session, Stored]:
    """Return the session of a response, and its reply, which may still be arriving."""
    session = find_response_session(owner, id)
    with suppress(rs.NotFound):  # nothing of the reply has arrived
        found: Stored | None = session.get(id)
        if found is not None and _is_unfinished(found):
            found = _find_finished(session, found)
        if found and found.message.role == "assistant" and found.message.status != "erased":
            return session, found
    raise _absent(id)


def is_begun_here(owner: Owner, id: str) -> bool:
    """Whether a response is one of the owner's, though its reply may not be stored yet."""
    try:
        find_response_session(owner, id)
    except Absent:
        return False
    return True


def finish_response(owner: Owner, id: str, response: Any, **names: Any) -> None:
    """Store the reply of a background response, now that its provider has it."""
    if not isinstance(response, dict):
        return
    session = find_response_session(owner, id)
    begun = session.get(id)
    is_finished = response.get("id") == id and response.get("status") not in _UNFINISHED
    if is_finished and _is_unfinished(begun) and _find_finished(session, begun) is None:
        session.edit(
            id, rs.normalize_response(response, api=FORM.api, contracts=owner.contracts, **names)
        )


def _is_unfinished(stored: Stored) -> bool:
    return stored.message.finish_reason in _UNFINISHED


def _find_finished(session: rs.Session, begun: Stored) -> Stored | None:
    """Return the reply that took the place of a background response's first answer."""
    for branch in reversed(session.branches()):
        with suppress(rs.NotFound):
            found = session.branch(branch.id).get(begun.position)
            origin = found.message.origin
            if origin and origin.response_id == begun.id and not _is_unfinished(found):
                return found
    return None


def find_response_session(owner: Owner, id: str) -> rs.Session:
    """Return the session of a response, on its branch."""
    session = None if "\0" in id else owner.find_session(id, latest=True)
    if session is None:
        raise _absent(id)
    return session


def _absent(id: str) -> Absent:
    return Absent(f"Response with id '{id[:100]}' not found.")


def as_response(id: str, session: rs.Session, stored: Stored) -> dict[str, Any]:
    """Return a reply as the response of an id."""
    message = stored.message
    reason = message.finish_reason
    status = _STATUSES.get(message.status, "completed")
    if message.status != "streaming":
        status = _OWN_STATUSES.get(str(reason), status)
    if status == "completed" and reason not in (None, "completed", "stop", "tool_calls"):
        status = "incomplete"
    created = int(stored.created_at.timestamp())
    found = {
        **_DEFAULTS,
        "id": id,
        "object": "response",
        "created_at": created,
        "completed_at": created if status == "completed" else None,
        "status": status,
        "model": (message.origin and message.origin.model) or "",
        "output": [one.item for one in write_items([stored])],
        "usage": _as_usage(message.usage),
        **(stored.annotations or {}).get(_REQUESTED, {}),
    }
    if status == "failed":
        found["error"] = {"code": "server_error", "message": "the provider ended it with an error"}
    elif status == "incomplete":
        found["incomplete_details"] = {"reason": reason or message.status}
    return found


def write_events(response: Mapping[str, Any], after: int) -> Iterator[bytes]:
    """Yield a response as the events of a stream, those after a number."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(response["output"]):
        events += [
            {"type": f"response.output_item.{step}", "output_index": index, "item": item}
            for step in ("added", "done")
        ]
    last = _LAST_EVENTS.get(response["status"], "incomplete")
    events.append({"type": f"response.{last}", "response": dict(response)})
    for number, event in enumerate(events):
        if number > after:
            data = write_json({**event, "sequence_number": number})
            yield f"event: {event['type']}\ndata: ".encode() + data + b"\n\n"


def expand_body(owner: Owner, body: Mapping[str, Any]) -> tuple[dict[str, Any], rs.Session | None]:
    """Return a body of Responses with the items of the conversation that it names.

    The provider does not know the conversation: it is sent the items, without the thinking that
    the policy then adds. After an older reply than the last they end with that reply.
    """
    conversation, previous = (body.get(name) for name in _NAMING)
    if conversation is None and previous is None:
        return dict(body), None
    if conversation is not None and previous is not None:
        raise rs.InvalidCall("conversation and previous_response_id exclude each other")
    if conversation is not None:
        id = conversation.get("id") if isinstance(conversation, dict) else conversation
        session = find_session(owner, str(id))
        history = session.history()
    else:
        session, reply = find_reply(owner, str(previous))
        history = [*session.history(before=reply.id), reply]
    before = [
        _for_provider(one) for one in write_items(history) if one.item.get("type") != "reasoning"
    ]
    rest = {name: value for name, value in body.items() if name not in _NAMING}
    return {**rest, "input": [*before, *FORM.list_of(body)]}, session


class NamedConversation(NamedTuple):
    """A conversation of ours that a request names."""

    body: dict[str, Any]
    """The body to send."""
    session_id: str
    answered: dict[str, Any]
    """The fields of the response by which the API shows what the request named."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The annotation of the reply, from which ``as_response`` shows them again."""
        return {_REQUESTED: {name: self.answered[name] for name in _NAMING}}


class ResponseFields:
    """A response on its way, with the fields that its provider does not know."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._decoder = rs.JSONEvents()

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes of the events that this piece completes."""
        return self._write(self._decoder.feed(piece))

    def finish(self) -> bytes:
        """Return the rest of a stream that has ended."""
        return self._write(self._decoder.finish())

    def rewrite_whole(self, content: bytes) -> bytes:
        """Return a whole response."""
        try:
            body = json.loads(content)
        except ValueError:
            return content
        return write_json({**body, **self._fields}) if isinstance(body, dict) else content

    def _write(self, events: Iterable[Any]) -> bytes:
        pieces: list[bytes] = []
        for event in events:
            if isinstance(event, dict):
                if isinstance(found := event.get("response"), dict):
                    event = {**event, "response": {**found, **self._fields}}
                pieces.append(f"event: {event.get('type', 'message')}\n".encode())
            pieces += [b"data: ", write_json(event), b"\n\n"]
        return b"".join(pieces)


def find_named(
    owner: Owner, body: Mapping[str, Any], *, own_alone: bool = False
) -> NamedConversation | None:
    """Return the conversation of ours that a request's body names.

    ``None`` for one that is not stored here: the provider may know it. With ``own_alone`` it is
    refused, unless it began here, and so is an item that the owner does not hold.
    """
    named = referenced_ids(FORM.list_of(body)) if own_alone else []
    if not owner.find_items(named).keys() >= {*named}:
        raise rs.NotFound("input: an item_reference names no item of this owner")
    try:
        expanded, session = expand_body(owner, body)
    except Absent:
        if own_alone and not is_begun_here(owner, str(body.get("previous_response_id"))):
            raise rs.NotFound(NOT_OWN) from None
        return None
    if session is None:
        return None
    conversation = None if body.get("conversation") is None else {"id": session.id}
    previous = body.get("previous_response_id")
    answered = {"conversation": conversation, "previous_response_id": previous}
    # A response that is stored here is not stored at the provider, too.
    sent = {**expanded, "store": False}
    return NamedConversation(
        sent, session.id, {**answered, "store": body.get("store") is not False}
    )


def _for_provider(one: StoredItem) -> dict[str, Any]:
    """Return an item without the id of our making, which names nothing at the provider."""
    return {name: value for name, value in one.item.items() if name not in ("id", "status")}


def _as_usage(usage: rs.Usage | None) -> dict[str, Any] | None:
    if usage is None or usage.input is None or usage.output is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.input + usage.output,
    }
