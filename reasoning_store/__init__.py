"""Keep every thought, send only what you choose, and see it before you send it.

The names below are the promise; nothing else is. Each is loaded when it is first used, so
that importing the package costs nothing but this file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Alternative",
    "AsyncOwner",
    "AsyncOwnerSettings",
    "AsyncPage",
    "AsyncProfiles",
    "AsyncRecording",
    "AsyncSession",
    "AsyncSessionSettings",
    "AsyncStore",
    "BackedUp",
    "Block",
    "BlockChunk",
    "Branch",
    "Budget",
    "Chunk",
    "Compaction",
    "Conflict",
    "ContextUsage",
    "CorruptRow",
    "Erased",
    "ErrorChunk",
    "Explanation",
    "FinishChunk",
    "Holder",
    "Imported",
    "Masker",
    "MediaBlock",
    "Message",
    "MissingExtra",
    "NotFound",
    "Origin",
    "OriginChunk",
    "Owner",
    "OwnerSettings",
    "Page",
    "Plan",
    "Problem",
    "Profile",
    "Profiles",
    "Range",
    "RawBlock",
    "ReasoningChunk",
    "ReasoningRenderer",
    "ReasoningSettings",
    "ReasoningStoreError",
    "Recording",
    "ReportRow",
    "Request",
    "RequestSettings",
    "Resolved",
    "Run",
    "SchemaError",
    "SecretMasker",
    "Selection",
    "Session",
    "SessionSettings",
    "SettingError",
    "Split",
    "Step",
    "Store",
    "StoreBusy",
    "StoreFull",
    "Stored",
    "StreamNormalizer",
    "TagFilter",
    "TextBlock",
    "TextChunk",
    "ThinkingBlock",
    "TokenCount",
    "ToolCallBlock",
    "ToolCallChunk",
    "ToolResponseBlock",
    "UnknownChunk",
    "Usage",
    "UsageChunk",
    "UsageError",
    "Verdict",
    "Verified",
    "Warning",
    "WhatIf",
    "WireError",
    "assistant",
    "build_request",
    "effective_tokens",
    "explain_refusal",
    "normalize_response",
    "select",
    "split_reasoning",
    "system",
    "tool",
    "user",
    "visible_parts",
    "what_if",
]

if TYPE_CHECKING:
    from reasoning_store.aio import (
        AsyncOwner,
        AsyncOwnerSettings,
        AsyncPage,
        AsyncProfiles,
        AsyncStore,
    )
    from reasoning_store.aio_recorder import AsyncRecording
    from reasoning_store.aio_session import AsyncSession, AsyncSessionSettings
    from reasoning_store.blocks import (
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
    from reasoning_store.checking import tool
    from reasoning_store.chunks import (
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
    from reasoning_store.egress.budget import Budget
    from reasoning_store.egress.compression import Step
    from reasoning_store.egress.cuts import Range
    from reasoning_store.egress.display import visible_parts
    from reasoning_store.egress.free import build_request, effective_tokens, select, what_if
    from reasoning_store.egress.headend import ReasoningRenderer
    from reasoning_store.egress.refusal import Explanation, explain_refusal
    from reasoning_store.egress.request import Request, RequestSettings
    from reasoning_store.egress.tokens import TokenCount
    from reasoning_store.egress.usage import ContextUsage
    from reasoning_store.egress.verdicts import Holder, Selection, Verdict, Warning
    from reasoning_store.egress.what_if import Alternative, WhatIf
    from reasoning_store.errors import (
        Conflict,
        CorruptRow,
        MissingExtra,
        NotFound,
        ReasoningStoreError,
        SchemaError,
        SettingError,
        StoreBusy,
        StoreFull,
        UsageError,
        WireError,
    )
    from reasoning_store.ingress.masking import Masker
    from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
    from reasoning_store.ingress.secrets import SecretMasker
    from reasoning_store.ingress.tags import Run, Split, TagFilter, split_reasoning
    from reasoning_store.layers import OwnerSettings, Profile, Profiles, SessionSettings
    from reasoning_store.ledger.values import (
        BackedUp,
        Erased,
        Imported,
        Problem,
        ReportRow,
        Verified,
    )
    from reasoning_store.recorder import Recording
    from reasoning_store.session import Session
    from reasoning_store.settings import ReasoningSettings, Resolved
    from reasoning_store.shortening import Plan
    from reasoning_store.store import Owner, Page, Store
    from reasoning_store.stored import Branch, Compaction, Stored

_HOMES = {
    "aio": "AsyncOwner AsyncOwnerSettings AsyncPage AsyncProfiles AsyncStore",
    "aio_recorder": "AsyncRecording",
    "aio_session": "AsyncSession AsyncSessionSettings",
    "blocks": """Block MediaBlock Message Origin RawBlock TextBlock ThinkingBlock ToolCallBlock
        ToolResponseBlock Usage assistant system user""",
    "checking": "tool",
    "chunks": """BlockChunk Chunk ErrorChunk FinishChunk OriginChunk ReasoningChunk TextChunk
        ToolCallChunk UnknownChunk UsageChunk""",
    "egress.budget": "Budget",
    "egress.compression": "Step",
    "egress.cuts": "Range",
    "egress.display": "visible_parts",
    "egress.free": "build_request effective_tokens select what_if",
    "egress.headend": "ReasoningRenderer",
    "egress.refusal": "Explanation explain_refusal",
    "egress.request": "Request RequestSettings",
    "egress.tokens": "TokenCount",
    "egress.usage": "ContextUsage",
    "egress.verdicts": "Holder Selection Verdict Warning",
    "egress.what_if": "Alternative WhatIf",
    "errors": """Conflict CorruptRow MissingExtra NotFound ReasoningStoreError SchemaError
        SettingError StoreBusy StoreFull UsageError WireError""",
    "ingress.masking": "Masker",
    "ingress.normalizer": "StreamNormalizer normalize_response",
    "ingress.secrets": "SecretMasker",
    "ingress.tags": "Run Split TagFilter split_reasoning",
    "layers": "OwnerSettings Profile Profiles SessionSettings",
    "ledger.values": "BackedUp Erased Imported Problem ReportRow Verified",
    "recorder": "Recording",
    "session": "Session",
    "settings": "ReasoningSettings Resolved",
    "shortening": "Plan",
    "store": "Owner Page Store",
    "stored": "Branch Compaction Stored",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # to a type checker every name would be one of ours then

    def __getattr__(name: str) -> Any:
        module = _HOME.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
