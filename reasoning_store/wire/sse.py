"""Server-sent events and JSON lines, from bytes in any pieces to decoded values.

Theory. Both formats are lines, so one splitter serves both. It holds the bytes of the
unfinished line and looks at every byte once, so a line that arrives byte by byte costs no more
than one that arrives whole. Text is decoded a line at a time: a line end is never part of a
character, so a character split between two pieces is whole again by then, and bytes that are
no UTF-8 become U+FFFD.

A server's errors stay local. A line, and the data of one event, may have at most ``max_line``
bytes; a longer one is dropped while it arrives, is reported once as malformed, and the next
event is read as usual. Data that is not JSON is returned as the string it is, so that it counts
as an unknown chunk. ``finish`` gives the last event even where the blank line after it is
missing (a browser would drop it; providers do end so). Nothing raises because of the input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from reasoning_store.conversation.errors import InvalidCall

MAX_LINE = 32 * 1024 * 1024
"""The default bound: room for an image in base64, not for a server that never ends a line."""

OVERSIZED = ""
"""Replaces a payload over the bound; an empty payload is no JSON, so it is malformed."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ANY_LINE_END = re.compile(rb"\r\n|\r|\n")
_DONE = "[DONE]"


class _Lines:
    """Bytes in, whole lines out, without their ends.

    A line over the bound comes out as its first byte, marked as not whole.
    """

    def __init__(self, bound: int, *, cr_ends: bool) -> None:
        self._bound = bound
        self._cr_ends = cr_ends
        self._buffer = bytearray()
        self._after_cr = False
        self._over = False
        self._first = True
        self._finished = False

    def feed(self, piece: bytes) -> list[tuple[bytes, bool]]:
        if self._finished:
            raise InvalidCall("the decoder is finished", hint="a new stream needs a new decoder")
        if not piece:
            return []
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        if self._cr_ends:
            self._after_cr = piece.endswith(b"\r") if piece else False
            parts = _ANY_LINE_END.split(piece)
        else:
            parts = piece.split(b"\n")
        lines = []
        for part in parts[:-1]:
            self._add(part)
            lines.append(self._take())
        self._add(parts[-1])
        return lines

    def finish(self) -> list[tuple[bytes, bool]]:
        self._finished = True
        return [self._take()] if self._buffer else []

    def _add(self, part: bytes) -> None:
        if self._over:
            return
        if len(self._buffer) + len(part) > self._bound:
            self._over = True
            self._buffer += part[:1]
            del self._buffer[1:]
        else:
            self._buffer += part

    def _take(self) -> tuple[bytes, bool]:
        line = bytes(self._buffer)
        if self._first:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        taken = line, not self._over
        self._buffer.clear()
        self._over = self._first = False
        return taken


class JSONEvents:
    """Decodes a stream of server-sent events: the JSON of each event, up to ``[DONE]``.

    Feed it the bytes as they arrive, cut anywhere. Data that is no JSON comes out as the string
    that it is, an event of more than ``max_line`` bytes as an empty string; events without data
    (heartbeats) are left out. The names of events are left out, too: every provider that names
    them repeats the name in the JSON.
    """

    def __init__(self, *, max_line: int = MAX_LINE) -> None:
        self._lines = _Lines(max_line, cr_ends=True)
        self._bound = max_line
        self._done = False
        self._begin_event()

    @property
    def done(self) -> bool:
        """Whether the stream has sent its end; lines after it are not read."""
        return self._done

    def feed(self, piece: bytes) -> list[Any]:
        """Return the events that this piece completes."""
        return self._read(self._lines.feed(piece))

    def finish(self) -> list[Any]:
        """Return the last event, where the stream ended without the blank line after it."""
        return [*self._read(self._lines.finish()), *self._end_event()]

    def _begin_event(self) -> None:
        self._data: list[str] = []
        self._size = 0
        self._is_oversized = False

    def _read(self, lines: Iterable[tuple[bytes, bool]]) -> list[Any]:
        values: list[Any] = []
        for line, is_whole in lines:
            if not is_whole:
                self._is_oversized |= not line.startswith(b":")
            elif line:
                self._read_field(line)
            else:
                values += self._end_event()
        return values

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name != b"data":
            return
        self._size += len(value) + 1
        if self._size > self._bound:
            self._is_oversized = True
            self._data.clear()
        else:
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))

    def _end_event(self) -> list[Any]:
        text, is_oversized = "\n".join(self._data), self._is_oversized
        self._begin_event()
        self._done = self._done or (text.strip() == _DONE and not is_oversized)
        if self._done:
            return []
        if is_oversized:
            return [OVERSIZED]
        return [_value(text)] if text.strip() else []


class NDJSONDecoder:
    """Decodes a stream of JSON lines: one value a line.

    Feed it the bytes as they arrive, cut anywhere. A line that is no JSON comes out as the string
    that it is, one of more than ``max_line`` bytes as an empty string.
    """

    def __init__(self, *, max_line: int = MAX_LINE) -> None:
        self._lines = _Lines(max_line, cr_ends=False)

    def feed(self, piece: bytes) -> list[Any]:
        """Return the values of the lines that this piece completes."""
        return self._decode(self._lines.feed(piece))

    def finish(self) -> list[Any]:
        """Return the value of the last line, where the stream ended without a line end."""
        return self._decode(self._lines.finish())

    def _decode(self, lines: Iterable[tuple[bytes, bool]]) -> list[Any]:
        values: list[Any] = []
        for line, whole in lines:
            if not whole:
                values.append(OVERSIZED)
            elif line.strip():
                values.append(_value(line.decode("utf-8", "replace").removesuffix("\r")))
        return values


def _value(text: str) -> Any:
    """Decoded JSON, NaN and repeated keys taken as they come; anything else unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
