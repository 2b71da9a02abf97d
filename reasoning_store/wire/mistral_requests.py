"""Mistral's chat, the writing direction: Chat Completions with thoughts among the content.

The body is that of Chat Completions, but for media: a document is an address, sound is bare
data, and there are no films. The official client puts into every message what its types
have for a default; given a ``None`` there it leaves it out, so that what is sent is the body.

This module knows what is Mistral's own; everything else is ``openai_chat_requests``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store.blocks import MediaBlock
from reasoning_store.wire import neutral
from reasoning_store.wire.base import Asked, Written
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_requests import BUILT, ChatPage, Medium, address, image
from reasoning_store.wire.pages import Page

__all__ = ["BUILT", "page", "sdk_arguments"]


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract, _MEDIA)


class _Page(ChatPage):
    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        """Return the body. It says what the official client always says."""
        written = super().finish(
            model=model, system=system, tools=tools, asked=asked, copies=copies
        )
        written.body["stream"] = False
        return written


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as arguments of ``chat.complete``, or of ``chat.stream``."""
    arguments = {name: value for name, value in body.items() if name != "stream"}
    arguments["messages"] = [
        _without_defaults(item) if item.get("role") == "assistant" else item
        for item in body.get("messages", ())
    ]
    return arguments


def _without_defaults(message: Mapping[str, Any]) -> dict[str, Any]:
    out = {"prefix": None, **message}
    if "tool_calls" in message:
        out["tool_calls"] = [{"index": None, **call} for call in message["tool_calls"]]
    return out


def _audio(block: MediaBlock) -> dict[str, Any] | None:
    if block.data is None and block.url is None:
        return None
    return {"type": "input_audio", "input_audio": block.url or neutral.base64_of(block)}


def _file(block: MediaBlock) -> dict[str, Any] | None:
    url = address(block)
    if url is None:
        return None
    about = {"document_name": block.name} if block.name else {}
    return {"type": "document_url", "document_url": url, **about}


_MEDIA: Final[Mapping[str, Medium]] = {"image": image, "audio": _audio, "file": _file}
