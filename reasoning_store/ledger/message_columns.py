"""The columns of a message's own, each described once; every list of them is derived here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from reasoning_store.conversation.blocks import EXACTNESS, MOST_TOKENS, Counts, Message
from reasoning_store.conversation.message_flags import flags_of
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
    is_recorded: bool = False
    """Its request is stored with it."""


Fact: TypeAlias = Literal["read", "narrow", "unchecked", "survives", "optional"]
"""About a column:

- read: a history reads it; ``decode`` takes these in their order.
- narrow: a count reads it, which reads no text.
- unchecked: no audit compares it with what would be written now.
- survives: a message whose reasoning is erased has it as before.
- optional: it may be NULL.
"""


class MessageColumn(NamedTuple):
    """One column of ``messages``."""

    name: str
    kind: Literal["number", "small", "text", "bytes"]
    encode: Callable[[MessageParts], Any] | None
    """Returns its value; None: it is set after a message was encoded."""
    facts: Set[Fact] = frozenset()
    exported_as: str | None = None
    """The field of an export's line, where it is part of neither message nor counts."""


def _reported(name: str) -> MessageColumn:
    """Return a column of what the provider reported, also in the JSON of ``bodies``, for sums."""

    def encode(of: MessageParts) -> int | None:
        usage = of.message.usage
        value = None if usage is None else getattr(usage, name)
        # More would overflow the sums.
        return value if isinstance(value, int) and 0 <= value <= MOST_TOKENS else None

    return MessageColumn(name, "number", encode, {"optional"})


_LATER: Set[Fact] = {"unchecked", "survives", "optional"}
_DESCRIBED = (
    MessageColumn("id", "text", attrgetter("id"), {"read", "survives"}),
    MessageColumn("role", "text", attrgetter("message.role"), {"read", "narrow", "survives"}),
    MessageColumn("status", "text", attrgetter("message.status"), {"read", "narrow"}),
    MessageColumn("created_at", "number", attrgetter("created_at"), {"read", "survives"}),
    MessageColumn("origin", "number", attrgetter("origin"), {"read", "narrow", "optional"}),
    MessageColumn("visible", "number", attrgetter("counts.visible"), {"read", "narrow"}),
    MessageColumn("thinking", "number", lambda of: sum(of.counts.thinking)),
    # How much of "visible" goes where its tool results are cleared; an erasure sets it to 0.
    MessageColumn("clearable", "number", attrgetter("counts.clearable"), {"narrow", "survives"}),
    MessageColumn(
        "exactness",
        "small",
        lambda of: EXACTNESS.index(of.counts.exactness),
        {"read", "narrow"},
    ),
    # message_flags: what an erasure of reasoning leaves of it is set by it
    MessageColumn(
        "flags",
        "small",
        lambda of: flags_of(of.message, is_recorded=of.is_recorded),
        {"narrow"},
    ),
    # [ThinkingHeader, ...]
    MessageColumn("shape", "text", lambda of: shape_of(of.headers), {"read", "narrow", "optional"}),
    MessageColumn("digest", "bytes", attrgetter("digest"), {"read", "unchecked"}),
    # keys.key_digest, on the first row of what was appended under it, and how many rows that is
    MessageColumn("idempotency_key", "text", None, _LATER, exported_as="repeat"),
    MessageColumn("batch", "small", None, _LATER, exported_as="batch"),
    _reported("input"),
    _reported("output"),
    _reported("reasoning"),
    _reported("cached"),
    # when the message, or its reasoning, was
    MessageColumn("erased_at", "number", None, _LATER, exported_as="erased_at"),
    _reported("cache_write"),
    # JSON: what an application keeps with a message. It changes, and no digest holds it.
    MessageColumn("annotations", "text", attrgetter("annotations"), {"read", *_LATER}),
)


def _names(*, having: Fact) -> tuple[str, ...]:
    return tuple(column.name for column in _DESCRIBED if having in column.facts)


COLUMNS: Mapping[str, MessageColumn] = {column.name: column for column in _DESCRIBED}
"""By name, in the order of the table."""
NAMES = tuple(COLUMNS)
READ = _names(having="read")
NARROW = _names(having="narrow")
CHECKED = tuple(name for name in NAMES if "unchecked" not in COLUMNS[name].facts)
CHANGED_BY_ERASURE = tuple(name for name in NAMES if "survives" not in COLUMNS[name].facts)
EXPORTED = {column.name: column.exported_as for column in _DESCRIBED if column.exported_as}
"""Of each column that is exported by itself: the field of the line."""

_ENCODERS = [(column.name, column.encode) for column in _DESCRIBED]


def encode_columns(parts: MessageParts) -> dict[str, Any]:
    """Return the columns of a message, in their order."""
    return {name: encode and encode(parts) for name, encode in _ENCODERS}
