"""Messages of a request read to be stored, messages written, kept JSON and usage read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reasoning_store.conversation import json_values, validation
from reasoning_store.conversation.blocks import Message, Usage
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.egress.functions import write_message
from reasoning_store.ingress.markers import DEFAULT_TAGS
from reasoning_store.ingress.normalizer import Tags, normalize_response
from reasoning_store.ingress.reply_counters import read_counters
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.request_message import (
    CallLinks,
    RequestMessage,
)
from reasoning_store.wire.request_messages import split_messages
from reasoning_store.wire.usage_counts import Places, make_usage, read_counts


def read_messages(
    parts: Sequence[Any],
    *,
    api: str,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
) -> list[Message]:
    """Return the messages of the list in a request's body, ready to be stored.

    The names are those of the model that answered. A part in no form of the protocol is left out.
    """
    links = CallLinks()
    found = [
        read_message(one, links, provider=provider, model=model, base_url=base_url)
        for one in split_messages(parts, api=api, provider=provider, model=model)
        if one.role is not None
    ]
    return [message for message in found if message.blocks]


def read_message(
    one: RequestMessage,
    links: CallLinks | None = None,
    *,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    tags: Tags = DEFAULT_TAGS,
    usage: Mapping[str, Any] | None = None,
) -> Message:
    """Return a message of a request, whose role is one of the protocol's.

    A reply is read like one that arrives now, and kept whole. Fields that no protocol reads are in
    the metadata, under ``source``. ``links`` name its calls; a reply reported ``usage``.
    """
    if one.role == "assistant":
        body = {**one.response(), **({"usage": usage} if usage else {})}
        message = normalize_response(
            body,
            provider=provider,
            model=model,
            api=one.api,
            base_url=base_url,
            tags=tags,
            starts_inside=False,  # kept text is an answer, whatever opened it once
            merge=True,  # a history keeps each thought that is no copy of another
        )
    else:
        assert one.role is not None, "a part of no form"
        message = Message(role=one.role, blocks=tuple(one.blocks()))
    unread = _unread_fields(one, message)
    return replace(
        message,
        blocks=message.blocks if links is None else tuple(links.link(message.blocks)),
        metadata={**(message.metadata or {}), **({"source": unread} if unread else {})} or None,
    )


def _unread_fields(one: RequestMessage, message: Message) -> dict[str, Any]:
    """Return the fields that the message lacks, or all if it does not keep what was unreadable."""
    value = one.parts[0]
    kept = (message.metadata or {}).get("unknownEvents", ())
    if read_counters(message.metadata).unknown_chunks > len(kept):
        return dict(value)
    parts = [part for event in kept for part in (event if isinstance(event, list) else [event])]
    kept_names = {name for part in parts if isinstance(part, Mapping) for name in part}
    return other_fields(value, {*one.read_fields, *kept_names})


def parse_json(text: str, *, line: int = 1) -> Any:
    """Return the value of JSON text that begins on a line; the error names the place in it.

    A number that JSON does not have becomes a string, and the last value of a key counts.
    """
    try:
        return json_values.parse(text, strict=False)
    except json_values.Malformed as error:
        at = 0 if error.at is None else error.at
        begun = text.rfind("\n", 0, at) + 1
        where = "" if error.at is None else f" at character {at - begun + 1}"
        number = line + text.count("\n", 0, begun)
        raise InvalidCall(f"line {number}: {error.what}{where}") from None


def read_usage(
    report: Mapping[str, Any],
    places: Places,
    *,
    cache_apart: bool = False,
    reasoning_apart: bool = False,
) -> Usage | None:
    """Return the usage of a report, by the dotted paths of each count; ``None`` without any.

    With ``cache_apart`` the report's input excludes what was read from and written to a cache, and
    with ``reasoning_apart`` its output the reasoning.
    """
    counts = read_counts(report, places)
    if not any(counts.values()):
        return None
    return make_usage(counts, report, cache_apart=cache_apart, reasoning_apart=reasoning_apart)


def write_messages(
    messages: Iterable[Message | validation.Holder],
    *,
    api: str,
    provider: str | None = None,
    model: str | None = None,
) -> list[dict[str, Any]]:
    """Return the parts of a request's list that carry messages, all of their thinking included."""
    return [
        part
        for message in messages
        for part in write_message(message, provider=provider, model=model, api=api)
    ]
