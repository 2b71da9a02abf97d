"""Captured streams: the bytes of a file, read as the events that were streamed.

A capture holds server-sent events, JSON lines or a JSON list. Cutting a capture anew cuts its bytes
anywhere and a piece of its text into several events; the message must stay the same.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall, JSONEvents, NDJSONDecoder, TextChunk
from reasoning_store.cli.output import plural, print_note
from reasoning_store.conversation import json_values
from reasoning_store.wire import registry

if TYPE_CHECKING:
    from reasoning_store import Chunk, Message

CAPTURE = click.argument("capture", type=click.File("rb"), metavar="CAPTURE")
_PIECES = 4


def read_events(data: bytes, name: str, pieces: random.Random | None = None) -> list[Any]:
    """Return the events of a capture; ``pieces`` cuts its bytes at random first."""
    json_values.check_encoding(data, name)
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        found = _parse_list(text)
    else:
        decoder = NDJSONDecoder() if text.startswith(b"{") else JSONEvents()
        found = [event for piece in _cut_bytes(data, pieces) for event in decoder.feed(piece)]
        found += decoder.finish()
    if not any(isinstance(event, dict) for event in found):
        raise InvalidCall(
            f"{name} is not a captured stream",
            hint="pass server-sent events, JSON lines or a JSON list of events",
        )
    return found


def _parse_list(text: bytes) -> list[Any]:
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


def recut_events(found: list[Any], target: dict[str, Any], pieces: random.Random) -> list[Any]:
    """Return events with the same content, the answer's text cut elsewhere."""
    names = ("model", "provider", "api", "base_url")
    reader = registry.make_reader(**{name: target[name] for name in names})
    out: list[Any] = []
    for event in found:
        out += _cut_event(event, reader.parse_chunk, pieces)
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
    places = [path for path, value in _find_strings(event, ()) if value == text]
    if len(places) != 1 or len(text) < 2:
        return [event]
    count = pieces.randint(1, min(_PIECES, len(text)))
    cuts = sorted(pieces.sample(range(1, len(text)), count - 1))
    return [
        _replace_at(event, places[0], text[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]


def _find_strings(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _find_strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_strings(item, (*path, index))


def _replace_at(event: dict[str, Any], path: tuple[Any, ...], text: str) -> dict[str, Any]:
    made = copy.deepcopy(event)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = text
    return made


def read_reply(found: list[Any], target: dict[str, Any]) -> tuple[list[Chunk], Message, str]:
    """Return the chunks of a stream, its message, and the protocol that it was read in."""
    from reasoning_store import StreamNormalizer

    normalizer = StreamNormalizer(**target)
    chunks = [chunk for event in found for chunk in normalizer.feed(event)]
    chunks += normalizer.close()
    return chunks, normalizer.finish(), normalizer.api


def warn_of_unread(found: list[Any]) -> None:
    if bad := sum(not isinstance(event, dict) for event in found):
        print_note(f"warning: {plural(bad, 'event')} could not be read and changed nothing")
