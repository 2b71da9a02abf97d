"""A contract: one row of ``contracts.toml``, in four parts.

How a host sends reasoning, which of it the host takes back, what it wants of a request's
messages, and how its reasoning is switched. ``contract_lookup`` finds the row that holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from reasoning_store.conversation.blocks import MediaKind

Floor: TypeAlias = Literal["none", "open_calls", "all_calls", "open_turn_with_call", "all"]
"""The messages whose reasoning a provider demands back."""
PrefixCheck: TypeAlias = Literal["refuse", "drop"]
"""A provider's answer to reasoning after a changed prefix: refuse the request, or drop it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    """How a host sends reasoning; ingress reads by it."""

    fields: tuple[str, ...] = ()
    """The fields that carry reasoning, best first; they mirror each other, so one is stored."""
    tags: bool | Literal["leading"] = True
    """Whether the text may hold inline tags, or ``leading``: only at its begin, where the prompt
    asks for them; ``reasoning.tags=auto`` follows it."""
    unparsed: bool = False
    """Whether the server may leave the text as the model wrote it, with a thought that only the
    prompt opened."""
    markers: tuple[str, ...] = ()
    """Literal marker families in the text; a template names them."""
    stray_opens: bool = False
    """Whether an open delimiter that nothing closes is stray where the model ended its turn."""
    output_excludes_reasoning: bool = False
    """Whether the reported output count leaves the reasoning out."""
    cumulative: bool = False
    """Whether each reasoning delta may repeat all that came before it."""
    sealed_by: str | None = None
    """The field whose ciphertext or signature belongs to the plain reasoning string, which is
    then one block a message, whatever comes between its pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnRules:
    """The reasoning that is sent back to a host, and its place."""

    returns_in: str | None = None
    """The place in which portable reasoning is sent back: a field, ``think_tags``, or nowhere."""
    returns_in_own_field: tuple[str, ...] = ()
    """The fields that take back the reasoning that came in them; all other is sent in
    ``returns_in``."""
    padded_tags: bool = False
    """Whether a tagged thought is sent with a line end on either side and one after it."""
    opaque: bool = False
    """Whether opaque reasoning has a place."""
    known_sources: tuple[str, ...] = ()
    """The ``sourceField`` of opaque reasoning that is accepted though it has no origin, in
    addition to ``fields`` and ``returns_in``."""
    signed: bool = False
    """Whether unsigned reasoning is refused."""
    floor: Floor = "none"
    """The messages whose reasoning is demanded back."""
    refusal: str | None = None
    """The error where it is missing; ``None``: it is asked for and not enforced."""
    demanded_only_thinking: bool = False
    """Whether it is demanded only while the model thinks."""
    empty_field_in: Floor = "none"
    """The messages in which the field must be present, though empty (against EC-007)."""
    call_signature_at: str | None = None
    """The place of a call's signature, if that and no thought is demanded."""
    dummy_signature: str | None = None
    """The documented signature for a call that has lost its own."""
    prefix_bound: PrefixCheck | None = None
    """The provider's answer to a changed prefix, if reasoning is bound to it."""
    prefix_bound_hint: str = (
        "keep reasoning.stripFromContext at none or all, and system and tools as they are"
    )
    """The remedy for bound reasoning."""
    reads_earlier_turns: bool = True
    """Whether the model reads reasoning of earlier turns at all."""
    reasoning_needs_follower: bool = False
    """Whether reasoning with an id must be followed by the items it led to, which may name their
    ids only then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRules:
    """The form that a host wants of a request's messages."""

    protocol_version: str | None = None
    """The protocol's version, which the body names where the model is in the address."""
    content_required: bool = False
    """Whether a message of calls alone has an empty text, where others want none."""
    blank_text_as: str | None = None
    """The text sent in place of an empty one, where that is refused."""
    json_arguments_only: bool = False
    """Whether arguments of a call that are not JSON are refused."""
    continuation_mark: str | None = None
    """The key without which the model's own message may not be the last."""
    user_last_when_thinking: bool = False
    """Whether a model that thinks refuses a conversation that ends with its own message."""
    call_id_pattern: str | None = None
    """The ids of calls that are accepted, as a regular expression."""
    unique_call_ids: bool = False
    """Whether an id may name only one call of the conversation."""
    system_first: bool = False
    """Whether a system message may only be at the beginning."""
    system_inside: bool = False
    """Whether a system message may follow a user's inside the conversation."""
    calls_last: bool = False
    """Whether a message's texts must come before its calls."""
    answer_tokens: int | None = None
    """How long an answer may be, in addition to a budget of thinking, where the protocol wants a
    limit and ``extra`` gives none."""
    media: tuple[MediaKind, ...] = get_args(MediaKind)
    """The kinds of media that the model takes; others are left out."""
    image_side: int | None = None
    """The most pixels that a side of an image may have."""
    many_images: tuple[int, ...] = ()
    """A number of images, and the most pixels of a side where a request has more of them."""
    most_images: int | None = None
    """How many images a request may have."""
    image_base64: int | None = None
    """How many characters of base64 an image may have."""
    result_media: bool = True
    """Whether a tool's result may have media, where the protocol has a place for them."""
    takes_tools: bool = True
    """Whether the model can be offered tools."""
    tools_api: str | None = None
    """The only api in which the model takes tools, where that is another one."""
    stateless: bool = False
    """Whether the host is asked to store nothing and to return its ciphertext."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningSwitches:
    """How a host's reasoning is switched. A path names an object's field by dots."""

    on_by_default: bool = False
    """Whether the model reasons when the request has no parameter for it."""
    enabled_at: str | None = None
    """The place in which reasoning is switched."""
    on: str | bool | None = None
    off: str | bool | None = None
    """The values there; a switch without a value for off cannot be turned off."""
    shown_at: str | None = None
    shown_as: str | bool | None = None
    """The parameter that makes the host return the reasoning it would otherwise hide."""
    effort_at: str | None = None
    efforts: tuple[str, ...] = ()
    """The efforts that the host knows, ``ours=theirs`` where the names differ; none: all."""
    budget_at: str | None = None
    default_budget: int | None = None
    """The budget that is sent with the switch where none is asked for."""
    budget_range: tuple[int, ...] = ()
    """The least and the largest budget that the host takes; none: any."""
    effort_or_budget: bool = False
    """Whether effort and budget exclude each other; the budget, more exact, is sent."""
    earlier_turns_at: str | None = None
    earlier_turns_as: str | bool | None = None
    """The parameter that makes the host read the reasoning of earlier turns."""
    off_with_tools: bool = False
    """Whether tools are refused while the model reasons, so that reasoning is switched off."""
    off_when_unmet: bool = False
    """Whether reasoning is switched off where the floor cannot be met."""
    fixed_in_turn: bool = False
    """Whether it cannot be switched off in a turn whose messages carry reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """How one provider's api carries reasoning, for some of its models."""

    api: str
    provider: str | None = None
    models: tuple[str, ...] = ("*",)
    family: str | None = None
    """Models that can read each other's opaque reasoning; by default all of the row."""
    demanded_by: str | None = None
    """The maker whose demands hold at an unknown host, by the name of the model alone."""
    reading: ReadingRules = field(default_factory=ReadingRules)
    returning: ReturnRules = field(default_factory=ReturnRules)
    messages: MessageRules = field(default_factory=MessageRules)
    reasoning: ReasoningSwitches = field(default_factory=ReasoningSwitches)
    source: str = ""
    checked: str = ""

    def with_rules(self, rules: Mapping[str, Any]) -> Contract:
        """Return the same contract with these rules, each by its name in its part."""
        parts: dict[str, dict[str, Any]] = {}
        for name, value in rules.items():
            parts.setdefault(RULES[name], {})[name] = value
        changed = {part: replace(getattr(self, part), **own) for part, own in parts.items()}
        return replace(self, **changed)


DEMANDS: Final = (
    "floor",
    "refusal",
    "demanded_only_thinking",
    "empty_field_in",
    "call_signature_at",
    "dummy_signature",
    "returns_in",
    "padded_tags",
)
"""The rules of a maker that hold for its models wherever they are served, with the place of a
thought that came in no field."""
PARTS: Final[Mapping[str, type]] = {
    "reading": ReadingRules,
    "returning": ReturnRules,
    "messages": MessageRules,
    "reasoning": ReasoningSwitches,
}
RULES: Final[Mapping[str, str]] = {
    item.name: part for part, kind in PARTS.items() for item in fields(kind)
}
"""The part of each rule; a row of ``contracts.toml`` names a rule without it."""
