"""Cohere's v2 chat: events for each content item and tool call, or a whole message.

A content item is thinking or text and has an index. Older models write their plan into
``tool_plan`` before their calls: that is thinking too. Citations belong to the text that they name,
or to the last one; those of other content are a block of their own. A whole message is read as the
events that would have streamed it.

In a request a model's message is a list of thoughts and texts in their order, with its plan
(``tool_plan``), its calls and the citations of its texts in fields of their own. A tool's result is
a document. ``stream`` is in every body, as the official client sends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
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
    Phase,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    event_type,
    index_field,
    mapping_field,
    optional_index_field,
    optional_mapping,
    optional_string_field,
    plain_value,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.message_writer import (
    MessageWriter,
    Outgoing,
    Part,
    Tools,
    join_thoughts,
)
from reasoning_store.wire.openai_chat.reply import is_part, join_parts
from reasoning_store.wire.openai_chat.writer import (
    Medium,
    system_messages,
    write_content,
    write_function_tool,
    write_image,
)
from reasoning_store.wire.protocol import Event, Protocol

_THINKING: Final[Mapping[str, Any]] = {"sourceField": "content.thinking"}
_PLANNING: Final[Mapping[str, Any]] = {"sourceField": "tool_plan"}
_COUNTS: Final = {
    "input": ("tokens.input_tokens", "billed_units.input_tokens"),
    "output": ("tokens.output_tokens", "billed_units.output_tokens"),
    "cached": ("cached_tokens",),
}
_OF_TEXT: Final = frozenset({None, "TEXT_CONTENT"})


class CohereReader(EventReader):
    """The reader of one stream."""

    id = "cohere.chat"

    def reset(self) -> None:
        self._calls: set[int] = set()
        self._last_text = -1
        self._citations: dict[int, list[Any]] = {}  # of each text
        self._apart: list[Any] = []
        self._is_named = False

    def _message_start(self, event: Event) -> list[Chunk]:
        named = self.read_origin(event)
        was_named, self._is_named = self._is_named, self._is_named or bool(named)
        return [] if was_named else named

    def _content_start(self, event: Event) -> list[Chunk]:
        index, content = index_field(event, "index"), mapping_field(_message(event), "content")
        kind = content.get("type", next(iter(content.keys() & {"thinking", "text"}), None))
        if kind == "thinking":
            text = optional_string_field(content, "thinking") or ""
            return [self._thinking_chunk(index, "start", text)]
        if kind == "text":
            return self._text(index, optional_string_field(content, "text") or "")
        if not isinstance(kind, str):
            raise Malformed
        return [BlockChunk(block=RawBlock(data=content))]

    def _content_delta(self, event: Event) -> list[Chunk]:
        index, content = index_field(event, "index"), mapping_field(_message(event), "content")
        thought, text = (optional_string_field(content, name) for name in ("thinking", "text"))
        if thought is None and text is None:
            raise Malformed
        thoughts = [self._thinking_chunk(index, "delta", thought)] if thought else []
        return [*thoughts, *self._text(index, text or "")]

    def _content_end(self, event: Event) -> list[Chunk]:
        index = index_field(event, "index")
        return [] if index in self._citations else [self._thinking_chunk(index, "end", "")]

    def _thinking_chunk(self, index: int, phase: Phase, text: str) -> Chunk:
        return ReasoningChunk(
            provider=self._provider,
            phase=phase,
            text=text,
            content_index=index,
            metadata=_THINKING,
        )

    def _text(self, index: int, text: str) -> list[Chunk]:
        if not text:
            return []
        self._citations.setdefault(index, [])
        self._last_text = index
        return [TextChunk(text=text, content_index=index)]

    def _tool_plan(self, event: Event) -> list[Chunk]:
        plan = optional_string_field(_message(event), "tool_plan")
        if plan is None:
            raise Malformed
        if not plan:
            return []
        return [ReasoningChunk(provider=self._provider, text=plan, metadata=_PLANNING)]

    def _call_start(self, event: Event) -> list[Chunk]:
        index, call = index_field(event, "index"), mapping_field(_message(event), "tool_calls")
        function = mapping_field(call, "function")
        call_id, name = optional_string_field(call, "id"), optional_string_field(function, "name")
        if not name:
            raise Malformed
        arguments = optional_string_field(function, "arguments") or ""
        self._calls.add(index)
        return [ToolCallChunk(index=index, id=call_id, name=name, arguments=arguments)]

    def _call_delta(self, event: Event) -> list[Chunk]:
        index, call = index_field(event, "index"), mapping_field(_message(event), "tool_calls")
        arguments = optional_string_field(mapping_field(call, "function"), "arguments")
        if arguments is None or index not in self._calls:
            raise Malformed
        return [ToolCallChunk(index=index, arguments=arguments)] if arguments else []

    def _call_end(self, event: Event) -> list[Chunk]:
        index = index_field(event, "index")
        if index not in self._calls:
            raise Malformed
        self._calls.discard(index)
        return [ToolCallChunk(index=index, is_complete=True)]

    def _read_citation(self, event: Event) -> list[Chunk]:
        citation = mapping_field(_message(event), "citations")
        kind = optional_string_field(citation, "type")
        index = optional_index_field(citation, "content_index")
        index = self._last_text if index is None else index
        fits = kind in _OF_TEXT and index in self._citations
        (self._citations[index] if fits else self._apart).append(citation)
        return []

    def flush(self) -> list[Chunk]:
        """Return the citations: of each text, and of other content."""
        cited, self._citations = self._citations, {}
        apart, self._apart = self._apart, []
        out: list[Chunk] = [
            TextChunk(text="", content_index=index, metadata={"citations": listed})
            for index, listed in cited.items()
            if listed
        ]
        return [*out, BlockChunk(block=RawBlock(data={"citations": apart}))] if apart else out

    def _message_end(self, event: Event) -> list[Chunk]:
        named = self._message_start(event)
        delta = optional_mapping(event.get("delta"), "delta", self.wrong) or {}
        out = [*named, *self.flush(), *self.read_usage(delta.get("usage"), _COUNTS)]
        if delta.get("error") is not None:
            out.append(ErrorChunk(raw=event))
        reason = delta.get("finish_reason")
        if isinstance(reason, str) or delta.get("error") is None:
            out.append(FinishChunk(reason=reason if isinstance(reason, str) else None))
        return out

    events: ClassVar = {
        "message-start": _message_start,
        "content-start": _content_start,
        "content-delta": _content_delta,
        "content-end": _content_end,
        "tool-plan-delta": _tool_plan,
        "tool-call-start": _call_start,
        "tool-call-delta": _call_delta,
        "tool-call-end": _call_end,
        "citation-start": _read_citation,
        "citation-end": EventReader.read_nothing,
        "message-end": _message_end,
        "debug": EventReader.read_nothing,
    }


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event carries a mark that no other protocol has."""
    is_ours = event_type(event) in ("message-start", "content-start", "content-delta")
    return is_ours and isinstance(plain_value(event.get("delta")), Mapping)


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks."""
    response = plain_value(body)
    message = response.get("message") if isinstance(response, Mapping) else None
    if not isinstance(message, Mapping):
        raise WireError("cohere.chat: the response has no message")
    if not isinstance(message.get("content"), list | str | None):
        raise WireError("cohere.chat: the message's content is neither a list nor a string")
    adapter = CohereReader(contract)
    return [
        chunk for event in _events_of(response, message) for chunk in adapter.parse_chunk(event)
    ]


def _events_of(response: Event, message: Event) -> Iterator[Event]:
    """Yield the events that would have streamed the same."""
    yield {"type": "message-start", "id": response.get("id")}
    if message.get("tool_plan"):
        yield _make_event("tool-plan-delta", 0, {"tool_plan": message["tool_plan"]})
    content = message.get("content")
    items = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    for index, item in enumerate(items):
        yield _make_event("content-start", index, {"content": item})
        yield _make_event("content-end", index, {})
    for index, call in enumerate(_list_field(message, "tool_calls")):
        yield _make_event("tool-call-start", index, {"tool_calls": call})
        yield _make_event("tool-call-end", index, {})
    for citation in _list_field(message, "citations"):
        yield _make_event("citation-start", 0, {"citations": citation})
    delta = {name: response.get(name) for name in ("finish_reason", "usage")}
    yield {"type": "message-end", "delta": delta}


def _make_event(kind: str, index: int, message: Event) -> Event:
    return {"type": kind, "index": index, "delta": {"message": message}}


def _list_field(message: Event, name: str) -> list[Any]:
    value = message.get(name)
    return value if isinstance(value, list) else []


def _message(event: Event) -> Event:
    return mapping_field(mapping_field(event, "delta"), "message")


# Requests


SDK_PARAMETERS: Final = frozenset(
    "citation_options documents frequency_penalty k logprobs max_tokens messages model p "
    "presence_penalty priority response_format safety_mode seed stop_sequences strict_tools "
    "temperature thinking tool_choice tools".split()
)
"""The parameters of the official SDK's call; other keys are additional parameters."""

_PLAN: Final = "tool_plan"
_CITATIONS: Final = "citations"
_MEDIA: Final[Mapping[str, Medium]] = {"image": write_image}


class CohereWriter(MessageWriter):
    """Writes the messages of one request."""

    def write_message(self, outgoing: Outgoing) -> None:
        message = outgoing.message
        if message.role == "assistant":
            self.rendered.append(self._write_reply(message))
            return
        for block in message.blocks:
            if isinstance(block, ToolResponseBlock):
                document = {"type": "document", "document": {"data": self.result_content(block)}}
                answer = {"role": "tool", "tool_call_id": block.call_id}
                self.rendered.append({**answer, "content": [document]})
        content = write_content(message, _MEDIA, self.leave_out)
        if content is not None:
            role = "user" if message.role == "tool" else message.role
            self.rendered.append({"role": role, "content": content})

    def _write_reply(self, message: Message) -> dict[str, Any]:
        returned = self.contract.returning.returns_in_own_field
        parts: list[str | dict[str, Any]] = []
        plan: list[ThinkingBlock] = []
        calls: list[dict[str, Any]] = []
        citations: list[Any] = []
        for block in message.blocks:
            about = block.provider_metadata or {}
            if isinstance(block, ThinkingBlock):
                if block.source_field == _PLAN and _PLAN in returned:
                    plan += [block] if block.thought else []
                elif block.thought:
                    parts.append({"type": "thinking", "thinking": block.thought})
            elif isinstance(block, TextBlock):
                citations += about.get(_CITATIONS) or ()
                if block.text:
                    parts.append(block.text)
            elif isinstance(block, ToolCallBlock):
                calls.append(_write_call(block))
            elif isinstance(block, RawBlock) and is_part(block.data):
                parts.append(dict(block.data))
            elif isinstance(block, RawBlock) and _has_citations(block.data):
                citations += block.data[_CITATIONS]
            else:
                self.leave_out(block)
        out: dict[str, Any] = {"role": "assistant"}
        content = join_parts(parts)
        if content or not calls:
            out["content"] = content
        if plan:
            out[_PLAN] = join_thoughts(plan, message.blocks, (_PLAN,))
        if calls:
            out["tool_calls"] = calls
        if citations:
            out[_CITATIONS] = citations
        return out

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        body["messages"] = [*system_messages(system), *self.messages()]
        if tools:
            body["tools"] = [write_function_tool(tool) for tool in tools]
        body["stream"] = False


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as arguments of ``chat``, or of ``chat_stream``."""
    known = {name: value for name, value in body.items() if name in SDK_PARAMETERS}
    rest = {
        name: value
        for name, value in body.items()
        if name not in SDK_PARAMETERS and name != "stream"
    }
    if rest:
        known["request_options"] = {"additional_body_parameters": rest}
    return known


def _has_citations(data: Any) -> bool:
    return isinstance(data, Mapping) and isinstance(data.get(_CITATIONS), list)


def _write_call(block: ToolCallBlock) -> dict[str, Any]:
    function = {"name": block.name, "arguments": codec.argument_text(block)}
    return {"id": block.id, "type": "function", "function": function}


PROTOCOL: Final = Protocol(
    reader=CohereReader,
    parse=parse_response,
    writer=CohereWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "messages", "tools"}),
    has_mark=has_mark,
)
