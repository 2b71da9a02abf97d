"""The AI SDK's UI messages: the events that stream one, and the parts of a whole one.

Events name their part by ``id``; a number is made from it without remembering it, so an event
is read alike anywhere in a stream. A part of a message has the content of all its events.
Parts that were only shown (transient data, preliminary results) are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias, get_args

from reasoning_store.conversation.blocks import (
    MediaBlock,
    MediaKind,
    RawBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    Phase,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.wire.event_fields import Malformed
from reasoning_store.wire.media import from_base64
from reasoning_store.wire.usage_counts import make_usage, read_counts

Event: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[Event, str], list[Chunk]]
PartReader: TypeAlias = Callable[[Event, str, int], list[Chunk]]
"""A part has a place in its message; an event names what it belongs to."""

_ENVELOPE: Final = "vercel"
"""The key of ``providerMetadata`` under which a host's own form is stored."""

_SEAL_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "signature": ("signature",),
    "thoughtSignature": ("signature",),
    "redactedData": ("encrypted", "redacted"),
    "reasoningEncryptedContent": ("encrypted",),
}
"""The field of a thinking block that a key in a provider's metadata is."""

_USAGE: Final = {
    "input": ("inputTokens", "promptTokens", "input"),
    "output": ("outputTokens", "completionTokens", "output"),
    "reasoning": ("reasoningTokens", "reasoning"),
    "cached": (
        "cachedInputTokens",
        "cacheReadTokens",
        "inputTokenDetails.cacheReadTokens",
        "cacheRead",
    ),
    "cache_write": ("cacheWriteTokens", "inputTokenDetails.cacheWriteTokens", "cacheWrite"),
}
_CALL_DATA: Final = ("providerMetadata", "callProviderMetadata", "providerOptions")
_CALL_FLAGS: Final = ("thoughtSignature", "providerExecuted", "dynamic")
_CALL_ID: Final = ("toolCallId", "id")
_CALL_INPUT: Final = ("input", "arguments", "args", "rawInput")
_UNFINISHED: Final = frozenset({"input-streaming", "partial-call"})


# Shared by both vocabularies


def first_string(event: Event, *names: str, default: str | None = None) -> str:
    """Return the first of ``names`` that is there; it must be a string."""
    for name in names:
        value = event.get(name)
        if isinstance(value, str):
            return value
        if value is not None:
            raise Malformed
    if default is None:
        raise Malformed
    return default


def number_of(kind: str, name: str) -> int:
    """Return a number for an id: always the same one, so no table of ids is needed."""
    digest = blake2b(f"{kind}:{name}".encode("utf-8", "surrogatepass"), digest_size=6)
    return int.from_bytes(digest.digest(), "big")


def usage_chunks(value: Any) -> list[Chunk]:
    if not isinstance(value, Mapping):
        return []
    # A host of thinking events has ``input``: without its cache, as Anthropic's.
    usage = make_usage(read_counts(value, _USAGE), value, cache_apart="input" in value)
    return [UsageChunk(usage=usage)]


def usage_object(usage: Usage | None) -> dict[str, int]:
    """Return the reported numbers under the AI SDK's names."""
    if usage is None:
        return {}
    counts = {names[0]: getattr(usage, field) for field, names in _USAGE.items()}
    return {name: count for name, count in counts.items() if count is not None}


def origin_chunks(response_id: Any, model: Any = None) -> list[Chunk]:
    response_id = response_id if isinstance(response_id, str) and response_id else None
    model = model if isinstance(model, str) and model else None
    return [OriginChunk(response_id=response_id, model=model)] if response_id or model else []


def call_metadata(event: Event) -> dict[str, Any] | None:
    metadata = _metadata(event, *_CALL_DATA)
    metadata |= {name: event[name] for name in _CALL_FLAGS if event.get(name)}
    return metadata or None


def whole_thought(text: str, place: int | None, provider: str, metadata: dict[str, Any]) -> Chunk:
    """Return a whole thought; the text of a redacted one is a placeholder, not a thought."""
    text = "" if metadata.get("redacted") else text
    return ReasoningChunk(provider=provider, text=text, content_index=place, metadata=metadata)


def thought_chunks(
    provider: str, phase: Phase, text: str, place: int | None, metadata: dict[str, Any]
) -> list[Chunk]:
    """Return a piece of a thought; none for a delta that has nothing but its source."""
    if phase == "delta" and not text and len(metadata) == 1:
        return []
    return [
        ReasoningChunk(
            provider=provider,
            phase=phase,
            # A redacted block's text is the host's placeholder, not a thought.
            text="" if metadata.get("redacted") else text,
            content_index=place,
            is_complete=phase == "end",
            metadata=metadata,
        )
    ]


def no_chunks(event: Event, provider: str, place: int = 0) -> list[Chunk]:
    return []


def raw_chunks(event: Event, provider: str, place: int = 0) -> list[Chunk]:
    """A part without a block of ours."""
    if event.get("transient") is True or event.get("preliminary") is True:
        return []
    return [BlockChunk(block=RawBlock(data=event))]


def media(event: Event, provider: str, place: int = 0) -> list[Chunk]:
    mime = first_string(event, "mediaType", "mimeType")
    kind: Any = mime.partition("/")[0]
    url = first_string(event, "url", default="")
    data = None if url else from_base64(first_string(event, "data"))
    if not url and data is None:
        raise Malformed
    block = MediaBlock(
        kind=kind if kind in get_args(MediaKind) else "file",
        mime_type=mime,
        name=first_string(event, "filename", default="") or None,
        url=url or None,
        data=data,
        provider_metadata=_metadata(event) or None,
    )
    return [BlockChunk(block=block)]


# Events


def _id_key(event: Event, kind: str) -> int | None:
    name = first_string(event, "id", default="")
    return number_of(kind, name) if name else None


def _metadata(event: Event, *names: str) -> dict[str, Any]:
    for name in names or ("providerMetadata", "providerOptions"):
        value = event.get(name)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            raise Malformed
        if value:
            return {_ENVELOPE: dict(value)}
    return {}


def _thinking_metadata(event: Event) -> dict[str, Any]:
    metadata: dict[str, Any] = {"sourceField": "reasoning"}
    providers = _metadata(event)
    for data in providers.get(_ENVELOPE, {}).values():
        for name, meanings in _SEAL_FIELDS.items():
            seal = data.get(name) if isinstance(data, Mapping) else None
            if isinstance(seal, str) and seal:
                metadata |= {meaning: seal for meaning in meanings}
    if "redacted" in metadata:
        metadata["redacted"] = True
    if providers:
        metadata["providerMetadata"] = providers
    return metadata


def _reasoning(event: Event, provider: str) -> list[Chunk]:
    phase: Any = event["type"].removeprefix("reasoning-")
    text = first_string(event, "delta", "text") if phase == "delta" else ""
    metadata = _thinking_metadata(event)
    return thought_chunks(provider, phase, text, _id_key(event, "reasoning"), metadata)


def _text(event: Event, provider: str) -> list[Chunk]:
    text = first_string(event, "delta", "text") if event["type"] == "text-delta" else ""
    metadata = _metadata(event) or None
    if not text and metadata is None:
        return []
    return [TextChunk(text=text, content_index=_id_key(event, "text"), metadata=metadata)]


def _input_start(event: Event, provider: str) -> list[Chunk]:
    call_id = first_string(event, *_CALL_ID)
    return [
        ToolCallChunk(
            index=number_of("call", call_id),
            id=call_id,
            name=first_string(event, "toolName"),
            metadata=call_metadata(event),
        )
    ]


def _input_delta(event: Event, provider: str) -> list[Chunk]:
    call_id = first_string(event, *_CALL_ID)
    piece = first_string(event, "inputTextDelta", "delta")
    return (
        [ToolCallChunk(index=number_of("call", call_id), id=call_id, arguments=piece)]
        if piece
        else []
    )


def _input_whole(event: Event, provider: str) -> list[Chunk]:
    call = _call(
        event, number_of("call", first_string(event, *_CALL_ID)), first_string(event, "toolName")
    )
    return [call, *raw_chunks(event, provider)] if event["type"] == "tool-input-error" else [call]


def _call(event: Event, index: int, name: str) -> Chunk:
    """Return a call that is there at once, or as far as it has come."""
    return ToolCallChunk(
        index=index,
        id=first_string(event, *_CALL_ID),
        name=name,
        parameters=next((event[key] for key in _CALL_INPUT if key in event), None),
        is_complete=event.get("state") not in _UNFINISHED,
        metadata=call_metadata(event),
    )


def _read_start(event: Event, provider: str) -> list[Chunk]:
    return origin_chunks(first_string(event, "messageId", default=""))


def _finish(event: Event, provider: str) -> list[Chunk]:
    reason = event.get("finishReason")
    if isinstance(reason, Mapping):
        reason = reason.get("raw", reason.get("unified"))
    if reason is not None and not isinstance(reason, str):
        raise Malformed
    reported = usage_chunks(event.get("totalUsage", event.get("usage")))
    return [*reported, FinishChunk(reason=reason)]


def _read_error(event: Event, provider: str) -> list[Chunk]:
    return [ErrorChunk(raw=event)]


EVENTS: Final[Mapping[str, Reader]] = {
    "start": _read_start,
    "start-step": no_chunks,
    "reasoning-start": _reasoning,
    "reasoning-delta": _reasoning,
    "reasoning-end": _reasoning,
    "reasoning-file": raw_chunks,
    "text-start": _text,
    "text-delta": _text,
    "text-end": _text,
    "tool-input-start": _input_start,
    "tool-input-delta": _input_delta,
    "tool-input-end": no_chunks,
    "tool-input-available": _input_whole,
    "tool-input-error": _input_whole,
    "tool-call": _input_whole,
    "tool-output-available": raw_chunks,
    "tool-output-error": raw_chunks,
    "tool-output-denied": raw_chunks,
    "tool-approval-request": raw_chunks,
    "tool-result": raw_chunks,
    "source": raw_chunks,
    "source-url": raw_chunks,
    "source-document": raw_chunks,
    "file": media,
    "message-metadata": no_chunks,
    "finish-step": no_chunks,
    "finish": _finish,
    "error": _read_error,
    "abort": _read_error,
}


# Parts of a whole message


def _reasoning_part(part: Event, provider: str, place: int) -> list[Chunk]:
    details = part.get("details")
    if isinstance(details, list) and details:
        return [
            _detail(item, number_of(f"{place}", f"{n}"), provider) for n, item in enumerate(details)
        ]
    text = first_string(part, "text", "reasoning", default="")
    return [whole_thought(text, place, provider, _thinking_metadata(part))]


def _detail(detail: Any, place: int, provider: str) -> Chunk:
    """One entry of version 4's ``details``: a block of its own, with a seal of its own."""
    kind = detail.get("type") if isinstance(detail, Mapping) else None
    metadata: dict[str, Any] = {"sourceField": "reasoning"}
    try:
        if kind == "redacted":
            metadata |= {"encrypted": first_string(detail, "data"), "redacted": True}
            return whole_thought("", place, provider, metadata)
        if kind == "text":
            if signature := first_string(detail, "signature", default=""):
                metadata["signature"] = signature
            return whole_thought(first_string(detail, "text"), place, provider, metadata)
    except Malformed:
        pass  # one bad entry leaves the others as they are
    return UnknownChunk(raw=detail)


def _text_part(part: Event, provider: str, place: int) -> list[Chunk]:
    metadata = _metadata(part)
    if seal := first_string(part, "textSignature", default=""):
        metadata["textSignature"] = seal
    return [
        TextChunk(text=first_string(part, "text"), content_index=place, metadata=metadata or None)
    ]


def _call_part(part: Event, provider: str, place: int) -> list[Chunk]:
    return [_call(part, place, first_string(part, "toolName", "name"))]


def tool_part(part: Event, provider: str, place: int) -> list[Chunk]:
    """Return a call and, where the host executed it, its result, as a stream gives them."""
    default = first_string(part, "type").removeprefix("tool-")
    call = _call(part, place, first_string(part, "toolName", default=default))
    outcome: dict[str, Any] = {"toolCallId": first_string(part, *_CALL_ID)}
    if part.get("errorText") is not None:
        outcome |= {"type": "tool-output-error", "errorText": part["errorText"]}
    elif "output" in part or "result" in part:
        value = part.get("output", part.get("result"))
        outcome |= {"type": "tool-output-available", "output": value}
    else:
        return [call]
    return [call] if part.get("preliminary") is True else [call, *raw_chunks(outcome, provider)]


def _invocation_part(part: Event, provider: str, place: int) -> list[Chunk]:
    call = part.get("toolInvocation")
    if not isinstance(call, Mapping):
        raise Malformed
    return tool_part({**call, "type": "tool-invocation"}, provider, place)


PARTS: Final[Mapping[str, PartReader]] = {
    "step-start": no_chunks,
    "reasoning": _reasoning_part,
    "text": _text_part,
    "tool-call": _call_part,
    "tool-result": raw_chunks,
    "tool-invocation": _invocation_part,
    "dynamic-tool": tool_part,
    "file": media,
    "image": media,
}
