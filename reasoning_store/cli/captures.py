"""Captured streams: the bytes of a file, read as the events that were streamed.

A capture holds server-sent events, JSON lines or a JSON list.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli.output import plural, print_note
from reasoning_store.conversation import json_values
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.wire.sse import JSONEvents, NDJSONDecoder

if TYPE_CHECKING:
    from reasoning_store.conversation.blocks import Message
    from reasoning_store.conversation.chunks import Chunk

CAPTURE = click.argument("capture", type=click.File("rb"), metavar="CAPTURE")


def read_events(data: bytes, name: str) -> list[Any]:
    """Return the events of a capture."""
    json_values.check_encoding(data, name)
    text = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        found = _parse_list(text)
    else:
        decoder = NDJSONDecoder() if text.startswith(b"{") else JSONEvents()
        found = [*decoder.feed(data), *decoder.finish()]
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


def read_reply(found: list[Any], target: dict[str, Any]) -> tuple[list[Chunk], Message]:
    """Return the chunks of a stream, and its message."""
    from reasoning_store.ingress.normalizer import StreamNormalizer

    normalizer = StreamNormalizer(**target)
    chunks = [chunk for event in found for chunk in normalizer.feed(event)]
    chunks += normalizer.close()
    return chunks, normalizer.finish()


def warn_of_unread(found: list[Any]) -> None:
    if bad := sum(not isinstance(event, dict) for event in found):
        print_note(f"warning: {plural(bad, 'event')} could not be read and changed nothing")
