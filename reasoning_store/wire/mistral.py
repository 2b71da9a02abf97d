"""Mistral's chat: Chat Completions with thoughts among the content, and other parts for media.

While a model thinks its content is a list of ``thinking`` chunks, and a plain string when it
answers. The official SDK wraps each event of a stream in ``data``. Usage has no count of
reasoning.

In a request a document is an address, sound is bare data, and there are no films. The official
client adds its types' defaults to every message; a ``None`` there keeps it from doing so, so that
the body is sent as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import MediaBlock
from reasoning_store.conversation.chunks import Chunk
from reasoning_store.wire.event_fields import shallow_dict
from reasoning_store.wire.message_writer import Part, Tools
from reasoning_store.wire.openai_chat import reader as openai_chat
from reasoning_store.wire.openai_chat.writer import (
    ChatWriter,
    Medium,
    media_address,
    write_image,
)
from reasoning_store.wire.protocol import Protocol
from reasoning_store.wire.tools import media_base64

parse_response = openai_chat.parse_response


class MistralReader(openai_chat.ChatReader):
    """The reader of one stream."""

    id = "mistral.chat"

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = shallow_dict(raw)
        if isinstance(event, dict) and "choices" not in event and "data" in event:
            event = event["data"]
        return super().parse_chunk(event)


# Requests


class MistralWriter(ChatWriter):
    """Writes Mistral's chat."""

    @property
    def media(self) -> Mapping[str, Medium]:
        return _MEDIA

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        super().write_body(body, system, tools)
        body["stream"] = False


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as arguments of ``chat.complete``, or of ``chat.stream``."""
    arguments = {name: value for name, value in body.items() if name != "stream"}
    arguments["messages"] = [
        _with_unset_defaults(item) if item.get("role") == "assistant" else item
        for item in body.get("messages", ())
    ]
    return arguments


def _with_unset_defaults(message: Mapping[str, Any]) -> dict[str, Any]:
    out = {"prefix": None, **message}
    if "tool_calls" in message:
        out["tool_calls"] = [{"index": None, **call} for call in message["tool_calls"]]
    return out


def _write_audio(block: MediaBlock) -> dict[str, Any] | None:
    if block.data is None and block.url is None:
        return None
    return {"type": "input_audio", "input_audio": block.url or media_base64(block)}


def _write_file(block: MediaBlock) -> dict[str, Any] | None:
    url = media_address(block)
    if url is None:
        return None
    about = {"document_name": block.name} if block.name else {}
    return {"type": "document_url", "document_url": url, **about}


_MEDIA: Final[Mapping[str, Medium]] = {
    "image": write_image,
    "audio": _write_audio,
    "file": _write_file,
}


PROTOCOL: Final = Protocol(
    reader=MistralReader,
    parse=parse_response,
    writer=MistralWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "messages", "tools"}),
)
