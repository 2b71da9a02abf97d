"""A reply as the AI SDK's UI message stream, while it arrives.

One stream is one UI message. A reply of several steps (a call, its result, the answer) is given
as one iterable: the chunks of each recording and, between them, the tool messages that you stored.
"""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from typing import Any, Final, TypeAlias, overload

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.reasoning_settings import ReasoningSettings
from reasoning_store.conversation.validation import Holder, message_of
from reasoning_store.display.ui_parts import (
    CUT_OFF,
    UIObject,
    add_usage,
    file_part,
    finish_reason,
    is_whole,
    own_part,
    response_fields,
)
from reasoning_store.display.visible_parts import is_visible, shows_thinking
from reasoning_store.wire.tools import call_arguments
from reasoning_store.wire.ui_messages.messages import usage_object

Piece: TypeAlias = Chunk | Message | Holder
_Settings: TypeAlias = ReasoningSettings | Mapping[str, Any] | None

_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
STOPPED: Final = "stopped"
"""The finish reason of a reply that a user stopped."""
_ERROR_TEXT: Final = "The reply ended with an error."
_DONE: Final = "data: [DONE]\n\n"


@overload
def ui_events(
    chunks: AsyncIterable[Piece], settings: _Settings = None, *, message_id: str | None = None
) -> AsyncIterator[dict[str, Any]]: ...


@overload
def ui_events(
    chunks: Iterable[Piece], settings: _Settings = None, *, message_id: str | None = None
) -> Iterator[dict[str, Any]]: ...


def ui_events(
    chunks: Iterable[Piece] | AsyncIterable[Piece],
    settings: _Settings = None,
    *,
    message_id: str | None = None,
) -> Iterator[dict[str, Any]] | AsyncIterator[dict[str, Any]]:
    """Yield the events of the AI SDK's UI message stream for the chunks of a reply.

    Asynchronous chunks give asynchronous events. Between chunks there may be messages: tool
    messages give the outputs of calls, and an assistant message is a whole step. Thinking follows
    ``settings`` as in ``visible_parts``. If ``chunks`` raises, open parts are ended, an ``error``
    is sent without the exception's text, and the exception goes on.
    """
    stream = _Stream(message_id, with_thinking=shows_thinking(settings))
    if isinstance(chunks, AsyncIterable):
        return _each_async(chunks, stream)
    if isinstance(chunks, Iterable) and not isinstance(chunks, str | bytes | Mapping):
        return _each(chunks, stream)
    raise InvalidCall(
        f"ui_events() reads chunks, not {type(chunks).__name__}",
        hint="for event in rs.ui_events(session.record(stream))",
    )


@overload
def ui_sse(events: AsyncIterable[Mapping[str, Any]]) -> AsyncIterator[str]: ...


@overload
def ui_sse(events: Iterable[Mapping[str, Any]]) -> Iterator[str]: ...


def ui_sse(
    events: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]],
) -> Iterator[str] | AsyncIterator[str]:
    """Yield the body of the HTTP response for ``ui_events``: server-sent events, then ``[DONE]``.

    ``ui_headers`` has the response's headers.
    """
    return _lines_async(events) if isinstance(events, AsyncIterable) else _lines(events)


def ui_headers() -> dict[str, str]:
    """Return the headers of the HTTP response whose body is ``ui_sse``."""
    return dict(_HEADERS)


def _each(chunks: Iterable[Piece], stream: _Stream) -> Generator[UIObject]:
    pieces = iter(chunks)
    try:
        yield stream.begin()
        for piece in pieces:
            yield from stream.feed(piece)
    except Exception:
        yield from stream.fail()
        raise
    finally:
        close = getattr(pieces, "close", None)
        if callable(close):
            close()
    yield from stream.finish()


async def _each_async(chunks: AsyncIterable[Piece], stream: _Stream) -> AsyncGenerator[UIObject]:
    pieces = aiter(chunks)
    try:
        yield stream.begin()
        async for piece in pieces:
            for event in stream.feed(piece):
                yield event
    except Exception:
        for event in stream.fail():
            yield event
        raise
    finally:
        close = getattr(pieces, "aclose", None)
        if callable(close):
            await close()
    for event in stream.finish():
        yield event


def _lines(events: Iterable[Mapping[str, Any]]) -> Generator[str]:
    for event in events:
        yield _line(event)
    yield _DONE


async def _lines_async(events: AsyncIterable[Mapping[str, Any]]) -> AsyncGenerator[str]:
    pieces = aiter(events)
    try:
        async for event in pieces:
            yield _line(event)
        yield _DONE
    finally:
        close = getattr(pieces, "aclose", None)
        if callable(close):
            await close()


def _line(event: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(event, separators=(',', ':'))}\n\n"


class _Call:
    """A call that is arriving."""

    __slots__ = ("arguments", "id", "is_begun", "is_over", "name", "parameters")

    def __init__(self) -> None:
        self.id = self.name = self.arguments = ""
        self.parameters: Any = None
        self.is_begun = self.is_over = False


class _Stream:
    """The events of one UI message: chunks in, events out. Computes only."""

    def __init__(self, message_id: str | None, *, with_thinking: bool) -> None:
        self._message_id = message_id
        self._with_thinking = with_thinking
        self._count = 0
        self._used: dict[str, int] = {}
        """The usage of the steps before this one."""
        self._reason: str | None = None
        self._is_aborted = False
        self._clear_step()

    def _clear_step(self) -> None:
        self._in_step = self._is_ended = False
        self._metadata: UIObject = {}
        self._usage: dict[str, int] = {}
        self._text: tuple[int | None, str] | None = None
        self._thoughts: dict[int | None, list[str]] = {}
        """Each thought that is open and has text: its id, and the pieces that were sent."""
        self._calls: dict[int, _Call] = {}

    def begin(self) -> UIObject:
        """Return the first event."""
        named = {"messageId": self._message_id} if self._message_id else {}
        return {"type": "start", **named}

    def feed(self, piece: Piece) -> list[UIObject]:
        """Return the events of a chunk, of a tool's message or of a whole step."""
        match piece:
            case UsageChunk():
                self._usage |= usage_object(piece.usage)
            case OriginChunk():
                self._metadata |= {"model": piece.model} if piece.model else {}
            case FinishChunk():
                return self._take_finish(piece)
            case ErrorChunk():
                self._reason = "error"
                return [*self._end_parts(), {"type": "error", "errorText": _ERROR_TEXT}]
            case TextChunk() | ReasoningChunk() | ToolCallChunk() | BlockChunk():
                return [] if piece.choice else [*self._begin_step(), *self._take_block(piece)]
            case UnknownChunk():
                pass  # an event that was not understood is shown nowhere
            case _:
                return self._take_message(message_of(piece))
        return []

    def finish(self) -> list[UIObject]:
        """Return the events after the last chunk."""
        out = self._end_step()
        if self._is_aborted:
            return [*out, {"type": "abort"}]
        reason = {"finishReason": self._reason} if self._reason else {}
        return [*out, {"type": "finish", **reason}]

    def fail(self) -> list[UIObject]:
        """Return the events after the last chunk of a stream that broke off."""
        return [*self._end_step(), {"type": "error", "errorText": _ERROR_TEXT}]

    # Steps

    def _begin_step(self) -> list[UIObject]:
        out = self._end_step() if self._is_ended else []
        if not self._in_step:
            self._in_step = True
            out.append({"type": "start-step"})
        return out

    def _end_step(self) -> list[UIObject]:
        out = self._end_parts()
        if self._usage:
            self._used = add_usage(self._used, self._usage)
            self._metadata["usage"] = self._used
        if self._metadata:
            out.append({"type": "message-metadata", "messageMetadata": self._metadata})
        if self._in_step:
            out.append({"type": "finish-step"})
        self._clear_step()
        return out

    def _take_finish(self, chunk: FinishChunk) -> list[UIObject]:
        if chunk.choice:
            return []
        self._is_ended = True
        self._is_aborted = chunk.reason == STOPPED
        self._reason = finish_reason(chunk.reason)
        return self._end_parts()

    # Parts

    def _take_block(
        self, chunk: TextChunk | ReasoningChunk | ToolCallChunk | BlockChunk
    ) -> list[UIObject]:
        match chunk:
            case TextChunk():
                return self._take_text(chunk)
            case ReasoningChunk():
                return self._take_thought(chunk) if self._with_thinking else []
            case ToolCallChunk():
                return [*self._end_text(), *self._take_call(chunk)]
            case BlockChunk():
                return [*self._end_text(), *_whole_block(chunk.block)]

    def _take_text(self, chunk: TextChunk) -> list[UIObject]:
        if not chunk.text:
            return []
        out: list[UIObject] = []
        if self._text is None or self._text[0] != chunk.content_index:
            out = self._end_text()
            self._text = (chunk.content_index, self._make_id("text"))
            out.append({"type": "text-start", "id": self._text[1]})
        return [*out, {"type": "text-delta", "id": self._text[1], "delta": chunk.text}]

    def _end_text(self) -> list[UIObject]:
        ended, self._text = self._text, None
        return [] if ended is None else [{"type": "text-end", "id": ended[1]}]

    def _take_thought(self, chunk: ReasoningChunk) -> list[UIObject]:
        index, text = chunk.content_index, chunk.text
        part = self._thoughts.get(index)
        out: list[UIObject] = []
        if chunk.phase == "end" and part is not None:
            # The text of an end is the whole thought: a part of its own if the pieces differ.
            if "".join(text.split()) == "".join("".join(part[1:]).split()):
                text = ""
            elif text:
                out.append({"type": "reasoning-end", "id": part[0]})
                part = None
        if text:
            if part is None:
                part = self._thoughts[index] = [self._make_id("reasoning")]
                out += [*self._end_text(), {"type": "reasoning-start", "id": part[0]}]
            part.append(text)
            out.append({"type": "reasoning-delta", "id": part[0], "delta": text})
        if chunk.phase == "end" and part is not None:
            del self._thoughts[index]
            out.append({"type": "reasoning-end", "id": part[0]})
        return out

    def _take_call(self, chunk: ToolCallChunk) -> list[UIObject]:
        place = chunk.index if chunk.content_index is None else chunk.content_index
        call = self._calls.setdefault(place, _Call())
        if call.is_over:
            return []
        call.id, call.name = call.id or chunk.id or "", call.name or chunk.name or ""
        call.arguments += chunk.arguments
        if chunk.parameters is not None:
            call.parameters = chunk.parameters
        if not call.id:
            return []  # ingress gives it one at its end
        out: list[UIObject] = []
        delta = chunk.arguments if call.is_begun else call.arguments
        if not call.is_begun and call.name:
            call.is_begun = True
            out.append({"type": "tool-input-start", "toolCallId": call.id, "toolName": call.name})
        if delta and call.is_begun:
            out.append({"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": delta})
        return [*out, *_end_call(call)] if chunk.is_complete else out

    def _end_parts(self) -> list[UIObject]:
        out = [{"type": "reasoning-end", "id": part} for part, *_ in self._thoughts.values()]
        self._thoughts.clear()
        out += self._end_text()
        for call in self._calls.values():
            out += _end_call(call)
        return out

    def _make_id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"

    # Messages

    def _take_message(self, message: Message) -> list[UIObject]:
        if message.role == "assistant":
            return self._take_step(message)
        out = self._end_parts()
        for block in message.blocks:
            if isinstance(block, ToolResponseBlock):
                fields = response_fields(block)
                kind = f"tool-{fields.pop('state')}"
                out.append({"type": kind, "toolCallId": block.call_id, **fields})
        self._is_ended = self._in_step
        return out

    def _take_step(self, message: Message) -> list[UIObject]:
        self._is_ended = self._in_step
        out = self._begin_step()
        for place, block in enumerate(message.blocks):
            chunk = _as_chunk(block, place)
            if chunk is not None and is_visible(block, with_thinking=self._with_thinking):
                out += self._take_block(chunk)
        if message.origin is not None and message.origin.model:
            self._metadata["model"] = message.origin.model
        if message.usage is not None:
            self._usage = usage_object(message.usage)
        return [*out, *self._take_finish(FinishChunk(reason=message.finish_reason))]


def _end_call(call: _Call) -> list[UIObject]:
    """Return the event that has the arguments of a call that has come to its end."""
    if call.is_over or not call.id or not call.name:
        return []
    call.is_over = True
    block = ToolCallBlock(
        id=call.id, name=call.name, parameters=call.parameters, arguments=call.arguments or None
    )
    named = {"toolCallId": call.id, "toolName": call.name}
    if is_whole(block):
        return [{"type": "tool-input-available", **named, "input": call_arguments(block)}]
    error = {"input": call.arguments, "errorText": CUT_OFF}
    return [{"type": "tool-input-error", **named, **error}]


def _whole_block(block: MediaBlock | RawBlock) -> list[UIObject]:
    if isinstance(block, RawBlock):
        part = own_part(block)
        return [] if part is None else [part]
    part = file_part(block)
    part.pop("filename", None)  # a stored part has it, an event has no place for it
    return [part]


def _as_chunk(
    block: Block, place: int
) -> TextChunk | ReasoningChunk | ToolCallChunk | BlockChunk | None:
    match block:
        case TextBlock():
            return TextChunk(text=block.text, content_index=place)
        case ThinkingBlock():
            return ReasoningChunk(text=block.thought, phase="end", content_index=place)
        case ToolCallBlock():
            return ToolCallChunk(
                index=place,
                id=block.id,
                name=block.name,
                arguments=block.arguments or "",
                parameters=block.parameters,
                is_complete=True,
                content_index=place,
            )
        case MediaBlock() | RawBlock():
            return BlockChunk(block=block, content_index=place)
    return None
