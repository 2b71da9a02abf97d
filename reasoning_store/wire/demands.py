"""What a request has to be for a host: the part of a contract that egress reads.

Which reasoning goes back and where, what the host wants of its messages, and how it is told
to reason. Ingress reads none of it. The rows stand in ``contracts.toml``; this module knows
what they may say, and not what is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Floor: TypeAlias = Literal["none", "open_calls", "all_calls", "open_turn_with_call", "all"]
"""In which messages a provider demands reasoning back: the rule ``required``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a request has to be for a host: the part of a contract that egress reads."""

    # Which reasoning goes back, and where.
    echo: str | None = None
    """Where portable reasoning goes back: a field, ``think_tags``, or nowhere."""
    echoes: tuple[str, ...] = ()
    """Where reasoning goes back that came from there; all other goes to ``echo``."""
    opaque: bool = False
    """Whether opaque reasoning has a place."""
    sources: tuple[str, ...] = ()
    """The ``sourceField`` of opaque reasoning that belongs here though it has no origin, beside
    ``fields`` and ``echo``."""
    signed: bool = False
    """Whether unsigned reasoning is refused."""
    floor: Floor = "none"
    """The messages whose reasoning is demanded back."""
    refusal: str | None = None
    """What is answered where it is missing; ``None``: it is asked for and not enforced."""
    empty_field: Floor = "none"
    """The messages in which the field must be present, though empty (against EC-007)."""
    call_signature: str | None = None
    """Where the signature of a call stands on it, if that and no thought is what is demanded."""
    dummy_signature: str | None = None
    """The documented signature for a call that has lost its own."""
    off_when_unmet: bool = False
    """Whether reasoning is switched off where what is demanded cannot be sent."""
    fixed_in_turn: bool = False
    """Whether it cannot be switched off in a turn whose messages carry reasoning."""
    bound: str | None = None
    """Where reasoning is bound to the exact prefix it was made behind: what helps."""

    # What the host wants of its messages.
    version: str | None = None
    """The protocol's version, which the body names where the model stands in the address."""
    content_required: bool = False
    """Whether a message of calls alone has an empty text, where others want none."""
    blank: str | None = None
    """What stands for a text that is empty, where that is refused."""
    json_arguments: bool = False
    """Whether arguments of a call that are not JSON are refused."""
    continued_by: str | None = None
    """The mark without which the model's own message may not be the last."""
    user_last: bool = False
    """Whether a model that thinks refuses a conversation that ends with its own message."""
    call_id: str | None = None
    """The ids of calls that are taken, as a regular expression."""
    unique_call_ids: bool = False
    """Whether an id may name one call only in all of the conversation."""
    strict_order: bool = False
    """Whether only the model may speak straight after a tool, and a system message only at the
    beginning."""
    paired: bool = False
    """Whether reasoning must be followed by what it led to, which must not name it without."""
    system_inside: bool = False
    """Whether a system message may stand in the conversation, behind a user's."""
    answer_tokens: int | None = None
    """How long an answer may become, beside a budget of thinking, where the protocol wants a
    limit and ``extra`` gives none."""
    stateless: bool = False
    """Whether the host is asked to keep nothing and to give back what it would have kept."""

    # How the host is told to reason. A path names an object's field by dots.
    enabled_at: str | None = None
    """Where reasoning is switched."""
    on: str | bool | None = None
    off: str | bool | None = None
    """What is said there; a switch without a word for off cannot be turned off."""
    thinks: bool = False
    """Whether the model reasons when nothing is said there."""
    shown_at: str | None = None
    shown: str | bool | None = None
    """What makes the host show the reasoning that it is asked for, where it else hides it."""
    effort_at: str | None = None
    efforts: tuple[str, ...] = ()
    """The efforts that the host knows, ``ours=theirs`` where the names differ; none: all."""
    budget_at: str | None = None
    budget: int | None = None
    """The budget that is said with the switch where none is asked for."""
    budgets: tuple[int, ...] = ()
    """The least and the largest budget that the host takes; none: any."""
    one_of_both: bool = False
    """Whether effort and budget exclude each other; the budget is the more exact."""
    keep_at: str | None = None
    keep: str | bool | None = None
    """What makes the host read the reasoning of earlier turns, which it else leaves out."""
