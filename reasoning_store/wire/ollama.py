"""Ollama's own chat API.

A stream is lines of JSON, each a response with the next piece of its message. A whole response is
one such line. Tool calls come complete, their arguments as an object and most often without an id;
one is then made from the line and the call's place. The last line is ``done`` and counts tokens;
thinking is counted with the rest and not apart.

In a request text, thoughts, pictures and calls of a message are in one field each; a call's
arguments are an object, and calls have no ids: a tool's result names the tool. The body has the
official client's defaults, ``tools`` and ``stream``, so that both send the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    MediaBlock,
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
    UsageChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire import call_ids
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    other_fields,
    plain_value,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.media import from_base64
from reasoning_store.wire.message_writer import (
    MessageWriter,
    Outgoing,
    Part,
    Tools,
    join_thoughts,
)
from reasoning_store.wire.openai_chat.writer import system_messages, write_function_tool
from reasoning_store.wire.protocol import Event, Protocol
from reasoning_store.wire.tools import call_arguments, media_base64
from reasoning_store.wire.usage_counts import make_usage, read_counts

_THINKING: Final[Mapping[str, Any]] = {"sourceField": "thinking"}
_COUNTS: Final = {"input": ("prompt_eval_count",), "output": ("eval_count",)}
_NOT_USAGE: Final = ("message", "model", "created_at", "done", "done_reason", "logprobs")
_PICTURES: Final[Mapping[bytes, str]] = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How a picture begins: it comes without a name for its kind."""


class OllamaReader(EventReader):
    """The reader of one stream."""

    id = "ollama.chat"

    def reset(self) -> None:
        self._model: str | None = None
        self._calls = 0

    def read_event(self, event: Event) -> list[Chunk]:
        if isinstance(event.get("type"), str):
            return super().read_event(event)
        if event.get("error") is not None:
            return [ErrorChunk(raw=event)]
        message = event.get("message")
        if not isinstance(message, Mapping) and not (message is None and event.get("done") is True):
            raise Malformed
        return self._read_line(event, message or {})

    def _read_line(self, event: Event, message: Event) -> list[Chunk]:
        out: list[Chunk] = []
        for name, read in _FIELDS.items():
            if value := message.get(name):
                try:
                    read(self, value, event, out)
                except Malformed:
                    self.wrong.append({name: value})
        out += _read_usage(event)
        if event.get("done") is True:
            reason = event.get("done_reason")
            out.append(FinishChunk(reason=reason if isinstance(reason, str) else None))
        named = self._read_model(event) if out or not self.wrong else []
        return [*named, *out]

    def _read_model(self, event: Event) -> list[Chunk]:
        model = event.get("model")
        if self._model is not None or not isinstance(model, str) or not model:
            return []
        self._model = model
        return [OriginChunk(model=model)]

    def _read_thinking(self, value: Any, event: Event, out: list[Chunk]) -> None:
        chunk = ReasoningChunk(provider=self._provider, text=_text(value), metadata=_THINKING)
        out.append(chunk)

    def _read_content(self, value: Any, event: Event, out: list[Chunk]) -> None:
        out.append(TextChunk(text=_text(value)))

    def _read_images(self, value: Any, event: Event, out: list[Chunk]) -> None:
        for image in _list(value):
            data = from_base64(image)
            if data is None:
                raise Malformed
            kind = next((mime for start, mime in _PICTURES.items() if data.startswith(start)), None)
            mime = kind or "application/octet-stream"
            out.append(BlockChunk(block=MediaBlock(kind="image", mime_type=mime, data=data)))

    def _read_tool_calls(self, value: Any, event: Event, out: list[Chunk]) -> None:
        good = True
        for item in _list(value):
            try:
                out.append(self._tool_call(item, event))
            except Malformed:
                good = False
        if not good:
            raise Malformed

    def _tool_call(self, item: Any, event: Event) -> Chunk:
        function = item.get("function") if isinstance(item, Mapping) else None
        if not isinstance(function, Mapping):
            raise Malformed
        name, call_id, arguments = _text(function.get("name")), item.get("id"), None
        parameters = function.get("arguments")
        if isinstance(parameters, str):
            arguments, parameters = parameters, None
        if not isinstance(parameters, Mapping | None) or not isinstance(call_id, str | None):
            raise Malformed
        index = self._calls
        self._calls += 1
        return ToolCallChunk(
            index=index,
            id=call_id or call_ids.make_call_id(event.get("created_at"), event.get("model"), index),
            name=name,
            arguments=arguments or "",
            parameters=dict(parameters) if parameters is not None else None,
            is_complete=True,
        )


_FIELDS: Final[Mapping[str, Callable[[OllamaReader, Any, Event, list[Chunk]], None]]] = {
    "thinking": OllamaReader._read_thinking,
    "content": OllamaReader._read_content,
    "images": OllamaReader._read_images,
    "tool_calls": OllamaReader._read_tool_calls,
}
"""The fields of a message, in the order of their chunks."""


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event carries a mark that no other protocol has."""
    is_message = isinstance(plain_value(event.get("message")), Mapping)
    return is_message and isinstance(event.get("done"), bool)


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks."""
    response = plain_value(body)
    if not isinstance(response, Mapping):
        raise WireError("ollama.chat: the response is not an object")
    if not isinstance(response.get("message"), Mapping) and "error" not in response:
        raise WireError("ollama.chat: the response has no message")
    return OllamaReader(contract).parse_chunk(response)


def _read_usage(event: Event) -> list[Chunk]:
    counts = read_counts(event, _COUNTS)
    if set(counts.values()) == {None}:
        return []
    return [UsageChunk(usage=make_usage(counts, other_fields(event, _NOT_USAGE)))]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed
    return value


# Requests


class OllamaWriter(MessageWriter):
    """Writes the messages of one request."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._names: dict[str, str] = {}

    def write_message(self, outgoing: Outgoing) -> None:
        message = outgoing.message
        texts: list[str] = []
        thoughts: list[ThinkingBlock] = []
        images: list[str] = []
        calls: list[dict[str, Any]] = []
        for block in message.blocks:
            if isinstance(block, TextBlock):
                texts.append(block.text)
            elif isinstance(block, ThinkingBlock):
                thoughts += [block] if block.thought else []
            elif isinstance(block, ToolCallBlock):
                self._names[block.id] = block.name
                calls.append({"function": {"name": block.name, "arguments": call_arguments(block)}})
            elif isinstance(block, ToolResponseBlock):
                name = block.tool_name or self._names.get(block.call_id, "")
                text = self.result_content(block)
                self.rendered.append({"role": "tool", "tool_name": name, "content": text})
            elif isinstance(block, MediaBlock) and block.kind == "image" and block.data is not None:
                images.append(media_base64(block))
            else:
                self.leave_out(block)
        if not (texts or thoughts or images or calls):
            return
        role = "user" if message.role == "tool" else message.role
        written: dict[str, Any] = {"role": role, "content": "".join(texts)}
        place = self.contract.returning.returns_in
        if place is not None and thoughts:
            # EC-007: empty reasoning is an omitted field.
            written[place] = join_thoughts(thoughts, message.blocks, (place,))
        if images:
            written["images"] = images
        if calls:
            written["tool_calls"] = calls
        self.rendered.append(written)

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        begun = [_with_one_text(item) for item in system_messages(system)]
        body["messages"] = [*begun, *self.messages()]
        body["tools"] = [write_function_tool(tool) for tool in tools or ()]
        body["stream"] = False


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official client's ``chat``."""
    messages = [
        {**item, "content": _Empty()} if item.get("content") == "" else item
        for item in body.get("messages", ())
    ]
    return {**body, "messages": messages}


class _Empty(str):
    """An empty text that is true, for a client that leaves out false values."""

    def __bool__(self) -> bool:
        return True


def _with_one_text(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose text is a string: parts of text become one."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text", "") if isinstance(part, Mapping) else part for part in content]
        if all(isinstance(text, str) for text in texts):
            return {**message, "content": "\n\n".join(texts)}
    return dict(message)


PROTOCOL: Final = Protocol(
    reader=OllamaReader,
    parse=parse_response,
    writer=OllamaWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "messages", "tools"}),
    has_mark=has_mark,
)
