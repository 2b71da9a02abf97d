"""The bytes of a connection: events as each api frames them.

Server-sent events, with names where the provider sends names and ``[DONE]`` where it ends
so; JSON lines for Ollama. The bytes may be cut anywhere: a decoder has to put up with it.
JSON has one spelling for a character beyond the BMP and for two surrogates that stand side by
side, so the second come back as the first.

Knows frames. It must not know what the events say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from reasoning_store.errors import UsageError
from reasoning_store.wire import contracts


class _Frame(NamedTuple):
    names: bool = False
    done: bool = False
    line_end: bytes = b"\n"


_FRAMES: Final[Mapping[str, _Frame]] = {
    "anthropic.messages": _Frame(names=True),
    "cohere.chat": _Frame(names=True, done=True),
    "gemini.generate_content": _Frame(line_end=b"\r\n"),
    "mistral.chat": _Frame(done=True),
    "openai.chat": _Frame(done=True),
    "openai.responses": _Frame(names=True),
    "thinking_events": _Frame(done=True),
}


def sse(events: Iterable[Mapping[str, Any]], *, api: str) -> bytes:
    """Return the body of the streamed answer that holds these events."""
    name = contracts.api_name(api)
    if name == "ollama.chat":
        return b"".join(_json(event) + b"\n" for event in events)
    frame = _FRAMES.get(name)
    if frame is None:
        raise UsageError(
            f"{name} frames its stream in a binary form",
            hint="give the events themselves to what is tested, as its SDK would",
        )
    out = [_event(event, frame) for event in events]
    if frame.done:
        out.append(_lines([b"data: [DONE]"], frame))
    return b"".join(out)


def _event(event: Mapping[str, Any], frame: _Frame) -> bytes:
    data = b"data: " + _json(event)
    kind = event.get("type")
    if frame.names and isinstance(kind, str):
        return _lines([b"event: " + kind.encode("utf-8"), data], frame)
    return _lines([data], frame)


def _lines(lines: list[bytes], frame: _Frame) -> bytes:
    return frame.line_end.join([*lines, b"", b""])


def _json(event: Mapping[str, Any]) -> bytes:
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate can only be sent as an escape
        return json.dumps(event, separators=(",", ":")).encode("ascii")
