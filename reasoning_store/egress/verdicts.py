"""What a selection is given and what it says: views, targets, verdicts, warnings.

Pure values, shared by the modules that decide and those that explain. They know blocks and
contracts; they must not know how anything is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from reasoning_store import checking
from reasoning_store.blocks import Counts, Message, Origin
from reasoning_store.errors import UsageError
from reasoning_store.wire.contracts import Contract

Rule: TypeAlias = Literal["kept", "required", "no_place", "origin", "unsigned", "strip", "include"]

WarningCode: TypeAlias = Literal[
    # its reasoning
    "unknown_provider",
    "floor_off",
    "floor_unmet",
    "binding",
    "parameter_unsent",
    "parameter_held",
    "reply_last",
    "turn_begun",
    # what was mended
    "no_result",
    "response_moved",
    "response_orphan",
    "response_repeated",
    "call_cut_off",
    "call_unusable",
    "arguments_wrapped",
    "no_answer",
    "system_as_user",
    "block_left_out",
    "block_foreign",
    "block_unknown",
    "draft",
    "number_unknown",
    "half_character",
    "seal_broken",
    "nothing_to_send",
]

REASONS: dict[Rule, str] = {
    "kept": "the settings keep it",
    "required": "the provider demands it back",
    "no_place": "the protocol has no field for it",
    "origin": "it belongs to another provider, api, model family or address",
    "unsigned": "the provider takes back signed reasoning only",
    "strip": "reasoning.stripFromContext strips it",
    "include": "reasoning.includeInContext is false",
}


class Verdict(NamedTuple):
    """What was decided about one thinking block, and by which rule."""

    message: int
    """Which message: its place in the list that was given, or its position in the session."""
    block: int
    """Which block of that message."""
    kept: bool
    rule: Rule
    tokens: int
    reason: str

    def __str__(self) -> str:
        return f"{self.message}.{self.block} {self.rule}: {self.reason} ({self.tokens} tokens)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning:
    """Something about a request that its sender should know; ``code`` is for programs."""

    code: WarningCode
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


class Holder(Protocol):
    """What a session's ``history()`` gives: a message with its identity."""

    @property
    def message(self) -> Message: ...


def message_of(item: Message | Holder) -> Message:
    """Return a message, or the one that something holds."""
    found = item if isinstance(item, Message) else getattr(item, "message", None)
    if not isinstance(found, Message):
        raise UsageError(
            f"a message, not {checking.type_name(item)}",
            hint="make one with user(), assistant(), tool() or system()",
        )
    return found


@dataclass(frozen=True, slots=True)
class Viewed:
    """One message of a view, with what it counts and the name that verdicts give it."""

    message: Message
    counts: Counts
    name: int
    summary: bool = False
    """It stands for a compacted range; no turn starts with it."""
    asked_with: str | None = None
    """The digest of system and tools of the request that it answered, where that is known."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for."""

    contract: Contract
    provider: str | None
    model: str | None
    base_url: str | None

    @property
    def origin(self) -> Origin:
        """Who it is, as the origin of what comes from there."""
        return Origin(
            provider=self.provider,
            api=self.contract.api,
            model=self.model,
            base_url=self.base_url,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is left of a view to send, a verdict for each thinking block, and warnings."""

    messages: tuple[Message, ...]
    verdicts: tuple[Verdict, ...]
    warnings: tuple[Warning, ...]
