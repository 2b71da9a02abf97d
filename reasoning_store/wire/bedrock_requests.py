"""Amazon Bedrock's Converse protocol, the writing direction: messages as a request body.

Theory. A user and a model take turns (``turns``), each turn a list of content blocks with
one member each. In the JSON of the HTTP request bytes are base64; boto3 takes them as bytes
and makes that JSON of them, so ``sdk_arguments`` turns them back where the service model has
bytes. The model stands in the address, so it is beside the body: ``modelId`` for the SDK.

What only one maker's models know (Claude's ``thinking``) stands in
``additionalModelRequestFields``, where the contract says so. A budget of thinking needs a
limit above it; without one the host's own limit holds.

What is kept was decided before. The reading direction is ``bedrock``; this module must not
know settings, tokens or SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store import codec
from reasoning_store.blocks import (
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import asking, call_ids, neutral, turns
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of
from reasoning_store.wire.binary import BYTES, as_base64, from_base64
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.pages import Page
from reasoning_store.wire.reasoning_parameters import at, put

Part = dict[str, Any]

BUILT: Final = frozenset({"modelId", "messages", "system", "toolConfig"})

_ANSWER_TOKENS: Final = 4_096
"""The room for an answer beside a budget, where the contract names none."""
_FAILED: Final = "error"
"""What a tool says that failed without a word: an error must not be empty."""


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


class _Page(turns.Alternating):
    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._documents = 0
        self._called: dict[str, None] = {}

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: Part = {"messages": self.messages(copies=copies)}
        if prompt := _system(system, self.begun):
            body["system"] = prompt
        if specs := [_tool(tool) for tool in tools] if tools else self.called:
            body["toolConfig"] = {"tools": specs}
        unsaid, held = asking.ask(asked, self.contract, body, self.turn)
        if budget := at(body, self.contract.budget_at):
            limit = (self.contract.answer_tokens or _ANSWER_TOKENS) + budget
            put(body, "inferenceConfig.maxTokens", limit)
        return Written(
            body=body,
            unsaid=unsaid,
            held=held,
            left_out=tuple(self.left_out),
            beside={} if model is None else {"modelId": model},
        )

    def closed(self, turn: turns.Turn) -> Part:
        return {"role": turn.role, "content": turn.content}

    @property
    def called(self) -> list[Part]:
        """The tools that the conversation calls: without any such calls are refused."""
        return [_tool({"name": name}) for name in self._called]

    def said(self, outgoing: Outgoing) -> list[Part]:
        message = outgoing.message
        side = "assistant" if message.role == "assistant" else "user"
        parts = []
        for block in message.blocks:
            if isinstance(block, TextBlock) and not block.text.strip():
                continue
            if isinstance(block, RawBlock):
                own = turns.is_own(block, message, self.contract)
                part = _as_sent(block.data) if own else None
            else:
                render = _PARTS[side].get(type(block))
                part = render(self, block) if render is not None else None
            if part is None:
                self.left_out[name_of(block)] = None
            else:
                parts.append(part)
        return parts

    def answer(self, block: ToolResponseBlock) -> Part:
        text = codec.result_text(block)
        if block.is_error and not text.strip():
            text = _FAILED
        result: Part = {
            "toolUseId": call_ids.accepted(block.call_id, self.contract.call_id),
            # Blank text is refused, and nothing is what a tool may well answer.
            "content": [{"text": text}] if text.strip() else [],
        }
        if block.is_error:
            result["status"] = "error"
        return {"toolResult": result}

    def text(self, block: TextBlock) -> Part:
        citations = (block.provider_metadata or {}).get("citations")
        if isinstance(citations, list) and citations:
            about = {"content": [{"text": block.text}], "citations": _as_sent(citations)}
            return {"citationsContent": about}
        return {"text": block.text}

    def thinking(self, block: ThinkingBlock) -> Part | None:
        if block.redacted or (block.encrypted and not block.signature):
            if not block.encrypted:
                return None
            return {"reasoningContent": {"redactedContent": block.encrypted}}
        about = {"text": block.thought}
        if block.signature:
            about["signature"] = block.signature
        return {"reasoningContent": {"reasoningText": about}}

    def call(self, block: ToolCallBlock) -> Part:
        self._called[block.name] = None
        use = {
            "toolUseId": call_ids.accepted(block.id, self.contract.call_id),
            "name": block.name,
            "input": neutral.arguments(block),
        }
        return {"toolUse": use}

    def media(self, block: MediaBlock) -> Part | None:
        source = _source(block)
        kind, form = _form(block)
        if source is None or form is None:
            return None
        about: Part = {"format": form, "source": source}
        if kind == "document":
            self._documents += 1
            about["name"] = _document_name(block.name, self._documents)
        return {kind: about}


_PARTS: Final[Mapping[str, Mapping[type, Callable[[_Page, Any], Part | None]]]] = {
    "user": {TextBlock: _Page.text, MediaBlock: _Page.media},
    "assistant": {
        TextBlock: _Page.text,
        ThinkingBlock: _Page.thinking,
        ToolCallBlock: _Page.call,
    },
}
"""Who may say what."""


def _system(system: Any, begun: Iterable[str]) -> list[Any]:
    texts = neutral.system_texts(system)
    if texts is None:
        given = [system] if isinstance(system, Mapping) else system
    else:
        given = [{"text": text} for text in texts]
    return [*given, *({"text": text} for text in begun)]


def _tool(tool: Mapping[str, Any]) -> Part:
    about = neutral.function(tool)
    if about is None:
        return dict(tool)
    schema = about.get("parameters") or dict(neutral.NO_PARAMETERS)
    spec: Part = {"name": about["name"], "inputSchema": {"json": schema}}
    for name in ("description", "strict"):
        if about.get(name):
            spec[name] = about[name]
    return {"toolSpec": spec}


# Media


_FORMATS: Final[Mapping[str, str]] = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "audio/mpeg": "mp3",
    "video/3gpp": "three_gp",
    "video/quicktime": "mov",
    "video/x-flv": "flv",
    "video/x-matroska": "mkv",
    "video/x-ms-wmv": "wmv",
}
"""What the service calls a format; an image's, film's or sound's is else its subtype."""
_KINDS: Final[Mapping[str, str]] = {
    "image": "png jpeg gif webp",
    "video": "mkv mov mp4 webm flv mpeg mpg wmv three_gp",
    "audio": "mp3 opus wav aac flac mp4 ogg mkv mka x-aac m4a mpeg mpga pcm webm",
    "file": "pdf csv doc docx xls xlsx html txt md",
}
_NAME: Final = re.compile(r"[^A-Za-z0-9\s\-()\[\]]+")


def _form(block: MediaBlock) -> tuple[str, str | None]:
    mime = block.mime_type.lower()
    form = _FORMATS.get(mime, mime.rpartition("/")[2])
    kind = "document" if block.kind == "file" else block.kind
    return kind, form if form in _KINDS[block.kind].split() else None


def _source(block: MediaBlock) -> Part | None:
    if block.data is not None:
        return {"bytes": neutral.base64_of(block)}
    if block.url is not None and block.url.startswith("s3://"):
        return {"s3Location": {**(block.provider_metadata or {}), "uri": block.url}}
    return None


def _document_name(name: str | None, number: int) -> str:
    """Return a name in the letters that the service takes; two documents have two names."""
    clean = " ".join(_NAME.sub(" ", name or "").split())
    return f"{clean[:180]} {number}".strip() if clean else f"document {number}"


# Bytes


def _as_sent(value: Any) -> Any:
    """Return JSON that ingress kept, its marked bytes as the base64 that the wire has."""
    if isinstance(value, Mapping):
        if value.keys() == {BYTES}:
            return as_base64(value)
        return {name: _as_sent(item) for name, item in value.items()}
    return [_as_sent(item) for item in value] if isinstance(value, list) else value


_BLOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("source", "bytes"),
    "video": ("source", "bytes"),
    "audio": ("source", "bytes"),
    "document": ("source", "bytes"),
    "reasoningContent": ("redactedContent",),
    "guardContent": ("image", "source", "bytes"),
}
"""Where bytes stand in a content block."""
_HAVE_BYTES: Final = frozenset({*_BLOBS, "toolResult"})


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of boto3's ``converse``."""
    out = dict(body)
    out["messages"] = [
        {**message, "content": [_with_bytes(part) for part in message["content"]]}
        for message in body["messages"]
    ]
    if "system" in body:
        out["system"] = [_with_bytes(part) for part in body["system"]]
    return out


def _with_bytes(part: Part) -> Part:
    """Return a part with bytes where the SDK takes bytes: itself, where it has none."""
    if _HAVE_BYTES.isdisjoint(part):
        return part
    out = dict(part)
    for kind, value in part.items():
        if kind in _BLOBS and isinstance(value, Mapping):
            out[kind] = _decoded(value, _BLOBS[kind])
        elif kind == "toolResult":
            content = [_with_bytes(item) for item in value.get("content", ())]
            out[kind] = {**value, "content": content}
    return out


def _decoded(value: Mapping[str, Any], path: tuple[str, ...]) -> Part:
    name, *rest = path
    inner = value.get(name)
    if rest and isinstance(inner, Mapping):
        return {**value, name: _decoded(inner, tuple(rest))}
    data = None if rest else from_base64(inner)
    # What is no base64 stays, for the service to refuse.
    return dict(value) if data is None else {**value, name: data}
