"""Writes Amazon Bedrock's Converse protocol.

Each content block has one member. In the JSON of the HTTP request bytes are base64; boto3
takes bytes, so ``sdk_arguments`` decodes them. The model is in the address, and ``modelId`` in
the SDK's call. Parameters of one maker's models (Claude's ``thinking``) are in
``additionalModelRequestFields``, where the contract has them. A budget of thinking needs a
limit above it; without a budget the host's own limit holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.json_values import BYTES
from reasoning_store.wire import alternating
from reasoning_store.wire.body_path import put_at, value_at
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.media import (
    as_base64,
    from_base64,
)
from reasoning_store.wire.message_writer import Part, Tools
from reasoning_store.wire.provider_turns import OpenTurn
from reasoning_store.wire.tools import (
    NO_PARAMETERS,
    call_arguments,
    media_base64,
    neutral_function,
)

_ANSWER_TOKENS: Final = 4_096
"""The tokens of an answer in addition to a budget, where the contract has none."""
_FAILED: Final = "error"
"""The text of a tool that failed without one: an error must not be empty."""


class BedrockWriter(alternating.AlternatingWriter):
    """Writes the messages of one request."""

    system_is_users = True
    refuses_blank_text = True
    model_key = "modelId"
    model_is_in_address = True

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._documents = 0
        self._called: dict[str, None] = {}

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        body["messages"] = self.messages()
        if prompt := self.system_parts(system):
            body["system"] = prompt
        # Calls without tools are refused.
        if offered := tools or [{"name": name} for name in self._called]:
            body["toolConfig"] = {"tools": [_write_tool(tool) for tool in offered]}

    def complete_body(self, body: Part, turn: OpenTurn) -> None:
        if budget := value_at(body, self.contract.reasoning.budget_at):
            limit = (self.contract.messages.answer_tokens or _ANSWER_TOKENS) + budget
            put_at(body, "inferenceConfig.maxTokens", limit)

    def write_turn(self, turn: alternating.Turn) -> Part:
        return {"role": turn.role, "content": turn.content}

    def write_raw(self, data: Mapping[str, Any]) -> Part:
        sent: Part = _as_sent(data)
        return sent

    def write_block(self, block: Block, *, is_reply: bool) -> Part | None:
        match block:
            case TextBlock():
                return _write_text(block)
            case ThinkingBlock() if is_reply:
                return _write_thinking(block)
            case ToolCallBlock() if is_reply:
                self._called[block.name] = None
                use = {"toolUseId": block.id, "name": block.name, "input": call_arguments(block)}
                return {"toolUse": use}
            case MediaBlock() if not is_reply:
                return self._write_media(block)
        return None

    def write_result_part(self, part: TextBlock | MediaBlock) -> Part | None:
        if isinstance(part, MediaBlock):
            return None if part.kind == "audio" else self._write_media(part)
        return {"text": part.text} if part.text.strip() else None

    def write_result(self, block: ToolResponseBlock) -> Part:
        content = self.result_content(block)
        if isinstance(content, str):
            text = _FAILED if block.is_error and not content.strip() else content
            # Blank text is refused, and a tool may well return nothing.
            content = [{"text": text}] if text.strip() else []
        result: Part = {"toolUseId": block.call_id, "content": content}
        if block.is_error:
            result["status"] = "error"
        return {"toolResult": result}

    def _write_media(self, block: MediaBlock) -> Part | None:
        source = _source(block)
        kind, form = _form(block)
        if source is None or form is None:
            return None
        about: Part = {"format": form, "source": source}
        if kind == "document":
            self._documents += 1
            about["name"] = _document_name(block.name, self._documents)
        return {kind: about}


def _write_text(block: TextBlock) -> Part:
    citations = (block.provider_metadata or {}).get("citations")
    if isinstance(citations, list) and citations:
        about = {"content": [{"text": block.text}], "citations": _as_sent(citations)}
        return {"citationsContent": about}
    return {"text": block.text}


def _write_thinking(block: ThinkingBlock) -> Part | None:
    if block.redacted or (block.encrypted and not block.signature):
        if not block.encrypted:
            return None
        return {"reasoningContent": {"redactedContent": block.encrypted}}
    about = {"text": block.thought}
    if block.signature:
        about["signature"] = block.signature
    return {"reasoningContent": {"reasoningText": about}}


def _write_tool(tool: Mapping[str, Any]) -> Part:
    about = neutral_function(tool)
    if about is None:
        return dict(tool)
    schema = about.get("parameters") or dict(NO_PARAMETERS)
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
"""The service's names of formats; an image's, film's or sound's is else its subtype."""
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
        return {"bytes": media_base64(block)}
    if block.url is not None and block.url.startswith("s3://"):
        return {"s3Location": {**(block.provider_metadata or {}), "uri": block.url}}
    return None


def _document_name(name: str | None, number: int) -> str:
    """Return a name of characters that the service accepts; no two documents have one name."""
    clean = " ".join(_NAME.sub(" ", name or "").split())
    return f"{clean[:180]} {number}".strip() if clean else f"document {number}"


# Bytes


def _as_sent(value: Any) -> Any:
    """Return stored JSON with its marked bytes as base64."""
    if isinstance(value, Mapping):
        if value.keys() == {BYTES}:
            return as_base64(value)
        return {name: _as_sent(item) for name, item in value.items()}
    return [_as_sent(item) for item in value] if isinstance(value, list) else value


_BYTES: Final = frozenset({"bytes", "redactedContent"})
"""The members of a content block that hold bytes."""
_JSON: Final = frozenset({"input", "json"})
"""The members that hold JSON of the application, or of the model."""


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of boto3's ``converse``."""
    parts = {name: _with_bytes(body[name]) for name in ("messages", "system") if name in body}
    return {**body, **parts}


def _with_bytes(value: Any, name: str = "") -> Any:
    """Return parts of a body with bytes where the SDK takes bytes."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if isinstance(value, Mapping) and name not in _JSON:
        return {key: _with_bytes(item, key) for key, item in value.items()}
    data = from_base64(value) if name in _BYTES else None
    # Invalid base64 is sent as it is, for the service to refuse.
    return value if data is None else data
