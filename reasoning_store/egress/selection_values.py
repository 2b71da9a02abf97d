"""The values of a selection: the view that it reads, and the verdicts that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from reasoning_store.conversation.blocks import (
    Block,
    Counts,
    Message,
    Origin,
    Role,
    Status,
    ThinkingBlock,
)
from reasoning_store.conversation.thinking_header import ThinkingHeader
from reasoning_store.conversation.withholding import WithheldPart

VerdictRule: TypeAlias = Literal[
    "kept", "required", "withheld", "bound", "origin", "no_place", "unsigned", "strip", "include"
]

WarningCode: TypeAlias = Literal[
    # reasoning
    "unknown_provider",
    "by_model_name",
    "no_model",
    "floor_off",
    "floor_unmet",
    "binding",
    "earlier_unread",
    "parameter_unsent",
    "parameter_held",
    "reasoning_off",
    "needs_responses",
    "reply_last",
    "turn_begun",
    # repairs
    "no_result",
    "response_moved",
    "response_orphan",
    "response_repeated",
    "call_cut_off",
    "call_unusable",
    "arguments_wrapped",
    "text_added",
    "system_as_user",
    "block_left_out",
    "media_left_out",
    "image_refused",
    "tools_left_out",
    "block_foreign",
    "block_unknown",
    "draft",
    "nothing_to_send",
]

SENT: frozenset[VerdictRule] = frozenset({"kept", "required"})
LEFT_OUT_BY_SETTING: frozenset[VerdictRule] = frozenset({"strip", "include"})
INADMISSIBLE: frozenset[VerdictRule] = frozenset(
    {"withheld", "bound", "origin", "no_place", "unsigned"}
)

REASONS: dict[VerdictRule, str] = {
    "kept": "includeInContext is on",
    "required": "{host} demands it back",
    "withheld": "{cause}",
    "bound": "{host} binds it to all that precedes it, and that has changed",
    "origin": "{cause}",
    "no_place": "{host} has no field for it in {api}",
    "unsigned": "{host} takes back signed thoughts only",
    "strip": "stripFromContext is {strip}",
    "include": "includeInContext is off",
}
"""The cause of each rule; names in braces are those of the block and its target."""


class Verdict(NamedTuple):
    """The decision about one thinking block, and the rule that made it."""

    message: int
    """The message's position in the session, or its index in the list that was given."""
    block: int
    """The block's index in that message."""
    kept: bool
    rule: VerdictRule
    tokens: int
    reason: str

    def __str__(self) -> str:
        return f"{self.message}.{self.block} {self.rule}: {self.reason} ({self.tokens} tokens)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWarning:
    """A fact about a request that its sender should know; ``code`` is for programs."""

    code: WarningCode
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


class JudgedMessage(Protocol):
    """A message of a view as a selection judges it: read whole, or without any block."""

    @property
    def number(self) -> int: ...
    @property
    def role(self) -> Role: ...
    @property
    def status(self) -> Status: ...
    @property
    def origin(self) -> Origin | None: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def thinking(self) -> Sequence[tuple[int, ThinkingBlock | ThinkingHeader]]: ...
    @property
    def withheld(self) -> Sequence[WithheldPart]: ...
    @property
    def digest(self) -> bytes | None: ...
    @property
    def chain(self) -> str | None: ...


class ViewedMessage(NamedTuple):
    """One message of a view, with its counts and the number that verdicts give it."""

    message: Message
    counts: Counts
    number: int
    summary: bool = False
    """It replaces a compacted range; no turn starts with it."""
    inputs_digest: str | None = None
    """The digest of system and tools of the request that it answered, where that is known."""
    unread: Sequence[ThinkingHeader] = ()
    """Its thinking blocks, where they were not read."""
    withheld: Sequence[WithheldPart] = ()
    """Its parts that are left out, because a provider refused them."""
    digest: bytes | None = None
    """Of its content; None outside of a store."""
    chain: str | None = None
    """That of the selection which its request sent (``PrefixChain``), where it is known."""

    @property
    def starts_turn(self) -> bool:
        return not self.summary and self.message.starts_turn

    @property
    def has_call(self) -> bool:
        return self.message.has_call

    @property
    def has_thinking(self) -> bool:
        return bool(self.counts.thinking)

    @property
    def role(self) -> Role:
        return self.message.role

    @property
    def status(self) -> Status:
        return self.message.status

    @property
    def origin(self) -> Origin | None:
        return self.message.origin

    @property
    def thinking(self) -> Sequence[tuple[int, ThinkingBlock | ThinkingHeader]]:
        """Its thinking, read or not, with its place among the blocks."""
        if self.unread:
            return [(header.place, header) for header in self.unread]
        return [
            (number, block) for number, block in self.blocks if isinstance(block, ThinkingBlock)
        ]

    @property
    def blocks(self) -> list[tuple[int, Block]]:
        """Its blocks that were read, each with its place among all."""
        if not self.unread:
            return [*enumerate(self.message.blocks)]
        unread = {header.place for header in self.unread}
        every = range(len(self.message.blocks) + len(unread))
        places = [place for place in every if place not in unread]
        return [*zip(places, self.message.blocks, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The part of a view that is sent, a verdict for each thinking block, and warnings."""

    messages: tuple[Message, ...]
    numbers: tuple[int, ...]
    """For each of ``messages``: its position, or its index in the list that was given."""
    owed: tuple[bool, ...]
    """For each of ``messages``: the provider demands reasoning of it, or a stand-in for some."""
    verdicts: tuple[Verdict, ...]
    warnings: tuple[RequestWarning, ...]
    left_out: tuple[int, int] = (0, 0)
    """The tokens of the thoughts that are left out, and those of other blocks."""
    chain: str | None = None
    """Of all that is sent, where the host binds thoughts to it."""
    is_whole: bool = True
    """All thinking that is kept was read; else ``messages`` lack some, and only counts hold."""
