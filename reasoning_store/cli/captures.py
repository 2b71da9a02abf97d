"""Captured streams: from a file's bytes to the events that were streamed.

A capture is what came over the wire, as it came: server-sent events, or JSON lines, or the
events as one JSON list. Whose protocol it is says the caller, or it is tried: the protocol
whose adapter knows the most of the events is taken.

Splitting cuts a capture otherwise than it came: the bytes of its events anywhere, and a
piece of the answer's text into several events, each a copy of the one that it was in. What
comes out must be the same. Where an event's text stands is found by what the adapter reads
from it, so this module knows no provider's words.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from reasoning_store import strict
from reasoning_store.chunks import TextChunk, UnknownChunk
from reasoning_store.errors import UsageError
from reasoning_store.wire import registry
from reasoning_store.wire.contracts import APIS, DEFAULT_API
from reasoning_store.wire.sse import JSONEvents, NDJSONDecoder

_TRIED = 50
_PIECES = 4


def events(data: bytes, name: str, pieces: random.Random | None = None) -> list[Any]:
    """Return the events of a capture; ``pieces`` cuts its bytes at random first."""
    strict.check_encoding(data, name)
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        found = _listed(text)
    else:
        decoder = NDJSONDecoder() if text.startswith(b"{") else JSONEvents()
        found = [event for piece in _cut_bytes(data, pieces) for event in decoder.feed(piece)]
        found += decoder.finish()
    if not any(isinstance(event, dict) for event in found):
        raise UsageError(
            f"{name} holds no captured stream",
            hint="server-sent events, JSON lines or a JSON list of events",
        )
    return found


def _listed(text: bytes) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _cut_bytes(data: bytes, pieces: random.Random | None) -> Iterator[bytes]:
    if pieces is None:
        yield data
        return
    at = 0
    while at < len(data):
        size = pieces.randint(1, 64)
        yield data[at : at + size]
        at += size


def unread(found: list[Any]) -> int:
    """Return how many events are no JSON objects."""
    return sum(not isinstance(event, dict) for event in found)


def api_of(found: list[Any]) -> str:
    """Return the protocol whose adapter knows the most of the events."""
    tried = [event for event in found if isinstance(event, dict)][:_TRIED]
    # The usual protocol first: of equals, which read the events alike, the first is taken.
    return min((DEFAULT_API, *APIS), key=lambda api: _unknown(api, tried))


def _unknown(api: str, tried: list[Any]) -> int:
    adapter = registry.resolve(model=None, provider=None, api=api)
    unknown = 0
    for event in tried:
        try:
            chunks = adapter.parse_chunk(copy.deepcopy(event))
        except Exception:  # the wrong adapter may stumble over anything
            chunks = [UnknownChunk(raw=None)]
        unknown += any(isinstance(chunk, UnknownChunk) for chunk in chunks)
    return unknown


def recut(found: list[Any], target: dict[str, Any], pieces: random.Random) -> list[Any]:
    """Return events that say the same, the answer's text cut elsewhere."""
    adapter = registry.resolve(**{k: target[k] for k in ("model", "provider", "api", "base_url")})
    out: list[Any] = []
    for event in found:
        out += _cut_event(event, adapter.parse_chunk, pieces)
    return out


def _cut_event(event: Any, parse: Callable[[Any], list[Any]], pieces: random.Random) -> list[Any]:
    if not isinstance(event, dict):
        return [event]
    try:
        chunks = parse(copy.deepcopy(event))
    except Exception:  # malformed: it goes on as it is
        return [event]
    if len(chunks) != 1 or not isinstance(chunks[0], TextChunk) or chunks[0].metadata:
        return [event]  # it says more than text: cut, it might say that twice
    text = chunks[0].text
    places = [path for path, value in _strings(event, ()) if value == text]
    if len(places) != 1 or len(text) < 2:
        return [event]
    count = pieces.randint(1, min(_PIECES, len(text)))
    cuts = sorted(pieces.sample(range(1, len(text)), count - 1))
    return [
        _with(event, places[0], text[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]


def _strings(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))


def _with(event: dict[str, Any], path: tuple[Any, ...], text: str) -> dict[str, Any]:
    made = copy.deepcopy(event)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = text
    return made
