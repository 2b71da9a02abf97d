"""The columns of a message's own, each described once; every list of them is derived here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from reasoning_store.conversation.blocks import EXACTNESS, MOST_TOKENS, Counts, Message
from reasoning_store.conversation.echoes import message_echo
from reasoning_store.conversation.thinking_header import ThinkingHeader, shape_of


class MessageParts(NamedTuple):
    """The sources of a message's columns."""

    id: str
    created_at: int
    message: Message
    counts: Counts
    headers: Sequence[ThinkingHeader]
    origin: int | None
    """The number of its origin."""
    digest: bytes
    annotations: str | None

    def reported(self, name: str) -> int | None:
        """Return a number of the usage that sums can use: more would overflow them."""
        usage = self.message.usage
        value = None if usage is None else getattr(usage, name)
        return value if isinstance(value, int) and 0 <= value <= MOST_TOKENS else None


class MessageColumn(NamedTuple):
    """One column of ``messages``."""

    name: str
    kind: Literal["number", "small", "text", "bytes"]
    encode: Callable[[MessageParts], Any]
    is_required: bool = True
    is_read: bool = False
    """Whether a history reads it; ``decode`` takes these in their order."""
    is_totalled: bool = False
    """Whether the message's own totals are made of it."""
    is_checked: bool = True
    """Whether an audit compares it with what would be written now."""
    survives_erasure: bool = False
    """Whether a message whose reasoning is erased has it as before."""
    exported_as: str | None = None
    """The field of an export's line, where it is part of neither message nor counts."""


def _reported(name: str) -> MessageColumn:
    """Return a column of what the provider reported, also in the JSON of ``bodies``, for sums."""
    return MessageColumn(name, "number", lambda parts: parts.reported(name), is_required=False)


def _nothing(_: MessageParts) -> None:
    """Return what a column holds that is set after a message was encoded."""


_DESCRIBED = (
    MessageColumn("id", "text", lambda parts: parts.id, is_read=True, survives_erasure=True),
    MessageColumn(
        "role", "text", lambda parts: parts.message.role, is_read=True, survives_erasure=True
    ),
    MessageColumn("status", "text", lambda parts: parts.message.status, is_read=True),
    MessageColumn(
        "created_at",
        "number",
        lambda parts: parts.created_at,
        is_read=True,
        survives_erasure=True,
    ),
    MessageColumn(
        "origin",
        "number",
        lambda parts: parts.origin,
        is_required=False,
        is_read=True,
        is_totalled=True,
    ),
    MessageColumn(
        "visible", "number", lambda parts: parts.counts.visible, is_read=True, is_totalled=True
    ),
    MessageColumn("thinking", "number", lambda parts: sum(parts.counts.thinking)),
    # How much of "visible" goes where its tool results are cleared; an erasure sets it to 0.
    MessageColumn(
        "clearable",
        "number",
        lambda parts: parts.counts.clearable,
        is_totalled=True,
        survives_erasure=True,
    ),
    MessageColumn(
        "exactness",
        "small",
        lambda parts: EXACTNESS.index(parts.counts.exactness),
        is_read=True,
        is_totalled=True,
    ),
    MessageColumn("has_call", "small", lambda parts: int(parts.message.has_call), is_totalled=True),
    MessageColumn(
        "shape",  # [ThinkingHeader, ...]
        "text",
        lambda parts: shape_of(parts.headers),
        is_required=False,
        is_read=True,
        is_totalled=True,
    ),
    MessageColumn("digest", "bytes", lambda parts: parts.digest, is_read=True, is_checked=False),
    # keys.key_digest, on the first row of what was appended under it, and how many rows that is
    MessageColumn(
        "idempotency_key",
        "text",
        _nothing,
        is_required=False,
        is_checked=False,
        survives_erasure=True,
        exported_as="repeat",
    ),
    MessageColumn(
        "batch",
        "small",
        _nothing,
        is_required=False,
        is_checked=False,
        survives_erasure=True,
        exported_as="batch",
    ),
    _reported("input"),
    _reported("output"),
    _reported("reasoning"),
    _reported("cached"),
    MessageColumn(
        "erased_at",  # when the message, or its reasoning, was
        "number",
        _nothing,
        is_required=False,
        is_checked=False,
        survives_erasure=True,
        exported_as="erased_at",
    ),
    _reported("cache_write"),
    MessageColumn("echo", "number", lambda parts: message_echo(parts.message), is_required=False),
    # JSON: what an application keeps with a message. It changes, and no digest holds it.
    MessageColumn(
        "annotations",
        "text",
        lambda parts: parts.annotations,
        is_required=False,
        is_read=True,
        is_checked=False,
        survives_erasure=True,
    ),
)

COLUMNS: Mapping[str, MessageColumn] = {column.name: column for column in _DESCRIBED}
"""By name, in the order of the table, where the running totals follow ``digest``."""
NAMES = tuple(COLUMNS)
READ = tuple(column.name for column in _DESCRIBED if column.is_read)
TOTALLED = tuple(column.name for column in _DESCRIBED if column.is_totalled)
CHECKED = tuple(column.name for column in _DESCRIBED if column.is_checked)
CHANGED_BY_ERASURE = tuple(column.name for column in _DESCRIBED if not column.survives_erasure)
EXPORTED = {column.name: column.exported_as for column in _DESCRIBED if column.exported_as}
"""Of each column that is exported by itself: the field of the line."""

_ENCODERS = [(column.name, column.encode) for column in _DESCRIBED]


def encode_columns(parts: MessageParts) -> dict[str, Any]:
    """Return the columns of a message, in their order."""
    return {name: encode(parts) for name, encode in _ENCODERS}
