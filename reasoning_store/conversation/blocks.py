"""Blocks, and the messages that hold them in order.

Identity (session, position, id, time, digest) belongs to ``Stored``, so two equal messages are
equal. Snake case here is camel case in JSON (``codec``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

Metadata: TypeAlias = Mapping[str, Any]
Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
Status: TypeAlias = Literal["complete", "streaming", "interrupted", "erased"]
Exactness: TypeAlias = Literal["exact", "reported", "estimated"]
"""How exact a stored number is, from the best to the worst."""
CountExactness: TypeAlias = Literal["exact", "calibrated", "approximate", "reported", "estimated"]
"""How exact the count of a request is, from the best to the worst."""
EXACTNESS: Final[tuple[Exactness, ...]] = get_args(Exactness)
MOST_TOKENS: Final = (1 << 40) - 1
"""The largest number of tokens that a report can hold."""
MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """Visible text."""

    text: str
    provider_metadata: Metadata | None = None
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingBlock:
    """A thought, kept whole.

    ``signature`` seals a readable thought; ``encrypted`` is ciphertext, or the data of a
    redacted block. A block with either, or a redacted one, is *opaque*: it means
    something only to the provider that made it. The others are *portable*.
    """

    thought: str = ""
    source_field: str | None = None
    is_hidden: bool = False
    signature: str | None = None
    encrypted: str | None = None
    redacted: bool = False
    interrupted: bool = False
    provider_metadata: Metadata | None = None
    type: Literal["thinking"] = "thinking"

    @property
    def opaque(self) -> bool:
        return self.signature is not None or self.encrypted is not None or self.redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallBlock:
    """A call the model asks for. ``arguments`` is the string as it came, and is sent so."""

    id: str
    name: str
    parameters: Any = None
    arguments: str | None = None
    provider_metadata: Metadata | None = None
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResponseBlock:
    """The response of a tool to the call ``call_id``."""

    call_id: str
    tool_name: str = ""
    result: Any = None
    is_error: bool = False
    provider_metadata: Metadata | None = None
    type: Literal["tool_response"] = "tool_response"


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaBlock:
    """An image, sound, film or file: its bytes, its address, or the application's own name."""

    kind: MediaKind
    mime_type: str
    name: str | None = None
    data: bytes | None = None
    url: str | None = None
    ref: str | None = None
    provider_metadata: Metadata | None = None
    type: Literal["media"] = "media"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBlock:
    """A part without a block of its own, stored as it came.

    ``data`` is JSON. ``kind`` is ``raw`` for a provider's part that has no block here;
    for a block whose JSON is newer than this code it is that block's own type, and
    ``data`` is the whole of it.
    """

    data: Any
    kind: str = "raw"
    provider_metadata: Metadata | None = None
    type: Literal["raw"] = "raw"

    @property
    def answered_call(self) -> str | None:
        """The id of the call that a provider's own item answers; None for any other item."""
        return answered_call(self.data) if self.kind == "raw" else None


_ANSWERS_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "mcp_approval_response": ("approval_request_id",),
    "local_shell_call_output": ("call_id", "id"),
}


def answered_call(item: Any) -> str | None:
    """Return the id of the call that an item of the Responses protocol answers."""
    kind = item.get("type") if isinstance(item, Mapping) else None
    if not isinstance(kind, str):
        return None
    names = _ANSWERS_BY.get(kind, ("call_id",) if kind.endswith("_output") else ())
    found = (item.get(name) for name in names)
    return next((value for value in found if isinstance(value, str)), None)


Block: TypeAlias = (
    TextBlock | ThinkingBlock | ToolCallBlock | ToolResponseBlock | MediaBlock | RawBlock
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Which provider, api, model and address a message came from, or a request is for.

    The address is a place and no login: a user and password in it, and a query, which may
    hold a key, are left out.
    """

    provider: str | None = None
    api: str | None = None
    model: str | None = None
    base_url: str | None = None
    response_id: str | None = None

    def __post_init__(self) -> None:
        url = self.base_url
        if url is not None and _MORE_THAN_A_PLACE.search(url):
            object.__setattr__(self, "base_url", _MORE_THAN_A_PLACE.sub("", url))


_PAUSED: Final = "pause_turn"
_MORE_THAN_A_PLACE = re.compile(r"(?:(?<=//)|^(?!/))[^/?#]*@|[?#].*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage that the provider reported. ``None`` means not reported, which is not zero.

    ``input`` always includes ``cached`` (read from a cache) and ``cache_write`` (written to
    one), ``output`` always includes ``reasoning``, whatever the provider's habit; ``raw`` is
    the object as it came.
    """

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    raw: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: its blocks in the order in which they happened."""

    role: Role
    blocks: tuple[Block, ...] = ()
    status: Status = "complete"
    origin: Origin | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    metadata: Metadata | None = None

    @property
    def starts_turn(self) -> bool:
        """Whether it is a real user message: it holds more than tool responses."""
        if self.role != "user":
            return False
        for block in self.blocks:
            if isinstance(block, RawBlock):
                if not block.answered_call:
                    return True
            elif not isinstance(block, ToolResponseBlock):
                return True
        return False

    @property
    def is_paused(self) -> bool:
        """Whether the provider paused its own tools in it, and continues it as it is."""
        return self.finish_reason == _PAUSED

    @property
    def has_call(self) -> bool:
        """Whether its turn continues: it calls a tool, or is paused."""
        for block in self.blocks:
            if type(block) is ToolCallBlock:
                return True
        return self.finish_reason == _PAUSED

    @property
    def text(self) -> str:
        """The visible text, block after block, nothing between."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def thinking(self) -> tuple[ThinkingBlock, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ThinkingBlock))

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCallBlock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The tokens of one message, block by block, each counted by itself when it is appended.

    ``visible`` is the sum over everything but thinking; ``thinking`` has one number for
    each thinking block, in order. The 4 tokens of a message's framing are in ``visible``,
    or in the first thinking number of a message that has nothing visible.
    """

    visible: int = 0
    thinking: tuple[int, ...] = ()
    exactness: Exactness = "exact"
    clearable: int = field(default=0, compare=False)
    """The part of ``visible`` that clearing its results frees. It is 0 in a stored message that
    is read."""


def _blocks(content: tuple[Block | str, ...]) -> tuple[Block, ...]:
    return tuple(TextBlock(text=item) if isinstance(item, str) else item for item in content)


def with_blocks(message: Message, blocks: Sequence[Block]) -> Message:
    """Return a message with other blocks."""
    return Message(
        role=message.role,
        blocks=tuple(blocks),
        status=message.status,
        origin=message.origin,
        usage=message.usage,
        finish_reason=message.finish_reason,
        metadata=message.metadata,
    )


def user(*content: Block | str, metadata: Metadata | None = None) -> Message:
    """A user's message, of text or blocks."""
    return Message(role="user", blocks=_blocks(content), metadata=metadata)


def assistant(
    *content: Block | str,
    status: Status = "complete",
    origin: Origin | None = None,
    usage: Usage | None = None,
    finish_reason: str | None = None,
    metadata: Metadata | None = None,
) -> Message:
    """A model's message, of text or blocks in the order in which they happened."""
    return Message(
        role="assistant",
        blocks=_blocks(content),
        status=status,
        origin=origin,
        usage=usage,
        finish_reason=finish_reason,
        metadata=metadata,
    )


def system(*content: Block | str, metadata: Metadata | None = None) -> Message:
    """A system message that is part of the conversation."""
    return Message(role="system", blocks=_blocks(content), metadata=metadata)
