"""An assistant message as any protocol's events, as its whole body, or as bytes.

    stream(assistant("Hello"), api="anthropic.messages", pieces=3)

Blocks without a place in the protocol are left out; ``strict=True`` refuses them, and ``carries``
checks it beforehand. An interrupted message gives a stream that breaks off. A message without usage
gives events without usage; one without a finish reason ends with the protocol's usual reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.testing import (
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini_generate_content,
    mistral_chat,
    ollama_chat,
    openai_chat,
    openai_responses,
    thinking_events,
)
from reasoning_store.testing.capabilities import losses
from reasoning_store.testing.script import Cut, Protocol, Script
from reasoning_store.wire import contract_lookup

_PROTOCOLS: Final[dict[str, Protocol]] = {
    "anthropic.messages": anthropic_messages.PROTOCOL,
    "bedrock.converse": bedrock_converse.PROTOCOL,
    "cohere.chat": cohere_chat.PROTOCOL,
    "gemini.generate_content": gemini_generate_content.PROTOCOL,
    "mistral.chat": mistral_chat.PROTOCOL,
    "ollama.chat": ollama_chat.PROTOCOL,
    "openai.chat": openai_chat.PROTOCOL,
    "openai.responses": openai_responses.PROTOCOL,
    "thinking_events": thinking_events.PROTOCOL,
}


def stream(
    message: Message,
    *,
    api: str,
    pieces: int = 1,
    provider: str | None = None,
    model: str | None = None,
    seed: int | None = None,
    include_usage: bool = True,
    strict: bool = False,
) -> list[dict[str, Any]]:
    """Return the events with which a provider would stream this message.

    ``pieces``: into how many pieces each text, thought and argument string is cut, evenly,
    or with a ``seed`` anywhere. ``provider`` and ``model`` choose the names of fields where
    hosts of one protocol differ.
    """
    script = _script(message, api, provider, model, include_usage, Cut(pieces, seed))
    protocol = _protocol(script, strict=strict, whole=False)
    return list(protocol.events(script))


def response(
    message: Message,
    *,
    api: str,
    provider: str | None = None,
    model: str | None = None,
    include_usage: bool = True,
    strict: bool = False,
) -> dict[str, Any]:
    """Return the body with which a provider would answer with this message at once."""
    script = _script(message, api, provider, model, include_usage, Cut())
    return _protocol(script, strict=strict, whole=True).body(script)


def carries(
    message: Message,
    api: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    whole: bool = False,
) -> bool:
    """Whether a stream of the protocol, or a ``whole`` body, can carry the whole message.

    The protocol may add its own ids, source fields, and metadata about the kind of a block. It need
    not carry the spelling of arguments that it sends as objects.
    """
    script = _script(message, api, provider, model, True, Cut())
    return not _lost(script, whole=whole)


def _script(
    message: Message,
    api: str,
    provider: str | None,
    model: str | None,
    include_usage: bool,
    cut: Cut,
) -> Script:
    origin = message.origin
    named = model or (origin.model if origin else None)
    return Script(
        message=message,
        contract=contract_lookup.find_contract(provider, model, api),
        model=named or "model",
        response_id=origin.response_id if origin else None,
        usage=message.usage if include_usage else None,
        cut=cut,
    )


def _protocol(script: Script, *, strict: bool, whole: bool) -> Protocol:
    if strict and (lost := _lost(script, whole=whole)):
        raise InvalidCall(
            f"{script.contract.api} has no place for {lost[0]}",
            hint="without strict=True it is left out",
        )
    return _PROTOCOLS[script.contract.api]


def _lost(script: Script, *, whole: bool) -> list[str]:
    capabilities = _PROTOCOLS[script.contract.api].capabilities(script.contract)
    return list(losses(script.message, script.usage, capabilities, script.contract, whole=whole))


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
    name = contract_lookup.api_name(api)
    if name == "ollama.chat":
        return b"".join(_json(event) + b"\n" for event in events)
    frame = _FRAMES.get(name)
    if frame is None:
        raise InvalidCall(
            f"{name} frames its stream in a binary form",
            hint="pass the events themselves to your code, as its SDK would",
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
