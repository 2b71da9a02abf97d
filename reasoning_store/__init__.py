"""Keep every thought, send only what you choose, and see it before you send it.

The names below are the promise; nothing else is. Each is loaded when it is first used, so
that importing the package costs nothing but this file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "AsyncContext",
    "AsyncRecording",
    "AsyncSession",
    "AsyncStore",
    "Block",
    "BlockChunk",
    "Chunk",
    "Conflict",
    "Context",
    "CorruptRow",
    "ErrorChunk",
    "FinishChunk",
    "InvalidCall",
    "JSONEvents",
    "Masker",
    "MediaBlock",
    "Message",
    "MissingExtra",
    "NDJSONDecoder",
    "NotFound",
    "Origin",
    "OriginChunk",
    "Plan",
    "RawBlock",
    "ReasoningChunk",
    "ReasoningRenderer",
    "ReasoningSettings",
    "ReasoningStoreError",
    "ReasoningStreamAdapter",
    "Recording",
    "Request",
    "SchemaError",
    "SecretMasker",
    "Session",
    "SettingError",
    "Store",
    "StoreBusy",
    "StoreFull",
    "StreamNormalizer",
    "TagFilter",
    "TextBlock",
    "TextChunk",
    "ThinkingBlock",
    "ToolCallBlock",
    "ToolCallChunk",
    "ToolResponseBlock",
    "UnknownChunk",
    "Usage",
    "UsageChunk",
    "WireError",
    "adapters",
    "assistant",
    "build_request",
    "effective_tokens",
    "explain_refusal",
    "normalize_response",
    "select",
    "split_reasoning",
    "system",
    "tool",
    "ui_events",
    "ui_headers",
    "ui_messages",
    "ui_sse",
    "user",
    "visible_parts",
    "what_if",
    "write_message",
]

if TYPE_CHECKING:
    from reasoning_store import formats as formats
    from reasoning_store import results as results
    from reasoning_store.aio.recording import AsyncRecording
    from reasoning_store.aio.session import AsyncContext, AsyncSession
    from reasoning_store.aio.store import AsyncStore
    from reasoning_store.conversation.blocks import (
        Block,
        MediaBlock,
        Message,
        Origin,
        RawBlock,
        TextBlock,
        ThinkingBlock,
        ToolCallBlock,
        ToolResponseBlock,
        Usage,
        assistant,
        system,
        user,
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
    from reasoning_store.conversation.errors import (
        Conflict,
        CorruptRow,
        InvalidCall,
        MissingExtra,
        NotFound,
        ReasoningStoreError,
        SchemaError,
        SettingError,
        StoreBusy,
        StoreFull,
        WireError,
    )
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.conversation.validation import tool
    from reasoning_store.display.text_renderer import ReasoningRenderer
    from reasoning_store.display.ui_events import ui_events, ui_headers, ui_sse
    from reasoning_store.display.ui_messages import ui_messages
    from reasoning_store.display.visible_parts import visible_parts
    from reasoning_store.egress.compaction_plan import Plan
    from reasoning_store.egress.functions import (
        build_request,
        effective_tokens,
        select,
        what_if,
        write_message,
    )
    from reasoning_store.egress.refusals import explain_refusal
    from reasoning_store.egress.request import Request
    from reasoning_store.ingress.masking import Masker
    from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
    from reasoning_store.ingress.secrets import SecretMasker
    from reasoning_store.ingress.tags import TagFilter, split_reasoning
    from reasoning_store.recording.recording import Recording
    from reasoning_store.sessions.context import Context
    from reasoning_store.sessions.session import Session
    from reasoning_store.store import Store
    from reasoning_store.wire.protocol import ReasoningStreamAdapter
    from reasoning_store.wire.registry import adapters
    from reasoning_store.wire.sse import JSONEvents, NDJSONDecoder

_MODULES = ("formats", "results")
_HOMES = {
    "aio.recording": "AsyncRecording",
    "aio.session": "AsyncContext AsyncSession",
    "aio.store": "AsyncStore",
    "conversation.blocks": """Block MediaBlock Message Origin RawBlock TextBlock ThinkingBlock
        ToolCallBlock ToolResponseBlock Usage assistant system user""",
    "conversation.chunks": """BlockChunk Chunk ErrorChunk FinishChunk OriginChunk ReasoningChunk
        TextChunk ToolCallChunk UnknownChunk UsageChunk""",
    "conversation.errors": """Conflict CorruptRow InvalidCall MissingExtra NotFound
        ReasoningStoreError SchemaError SettingError StoreBusy StoreFull WireError""",
    "conversation.reasoning_settings": "ReasoningSettings",
    "conversation.validation": "tool",
    "display.text_renderer": "ReasoningRenderer",
    "display.ui_events": "ui_events ui_headers ui_sse",
    "display.ui_messages": "ui_messages",
    "display.visible_parts": "visible_parts",
    "egress.compaction_plan": "Plan",
    "egress.functions": "build_request effective_tokens select what_if write_message",
    "egress.refusals": "explain_refusal",
    "egress.request": "Request",
    "ingress.masking": "Masker",
    "ingress.normalizer": "StreamNormalizer normalize_response",
    "ingress.secrets": "SecretMasker",
    "ingress.tags": "TagFilter split_reasoning",
    "recording.recording": "Recording",
    "sessions.session": "Session",
    "sessions.context": "Context",
    "store": "Store",
    "wire.protocol": "ReasoningStreamAdapter",
    "wire.registry": "adapters",
    "wire.sse": "JSONEvents NDJSONDecoder",
}


def load_when_used(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose names are defined in other modules."""
    home = {name: place for place, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{home[name]}"), name)
        setattr(sys.modules[module], name, value)
        return value

    return find


if not TYPE_CHECKING:  # to a type checker every name would be one of ours then
    _find = load_when_used(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        return import_module(f"{__name__}.{name}") if name in _MODULES else _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
