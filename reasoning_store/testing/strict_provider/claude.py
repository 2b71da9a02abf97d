"""The checks of Claude's models on thinking, on every host that serves them.

The table has the kinds of thinking that each model takes, whether it thinks unasked, and whether
its thoughts are bound to what stood before them. The checks work on a ``Talk``: the conversation in
the blocks of the Messages protocol, which ``anthropic`` and ``bedrock`` make of their own bodies.

The open turn is the last user message with more than tool results, and all after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from reasoning_store.testing.strict_provider.record import (
    Record,
    conversation_blocks,
    prefix_digests,
)
from reasoning_store.testing.strict_provider.rules import BASE64, is_text, matches_pattern, value_at

Block: TypeAlias = Mapping[str, Any]

THINKING = ("thinking", "redacted_thinking")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Model:
    """The values of ``thinking.type`` for one family of Claude, by its documentation."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    thinks_unasked: bool = False
    off_upto_high: bool = False
    """It can be switched off only where the effort is not above high."""
    is_bound: bool = False
    """Each thought is bound to the exact conversation before it."""
    never_forced: bool = False
    """A forced tool choice is refused, asked for thinking or not."""

    @property
    def is_manual(self) -> bool:
        """It thinks only where a budget is given."""
        return "enabled" in self.types and "adaptive" not in self.types


MODELS = (
    Model(
        ("claude-fable-5-[12]*", "claude-mythos-5-[12]*"), ("adaptive",), True, False, True, True
    ),
    Model(("claude-fable-5*", "claude-mythos-5*"), ("adaptive",), True, never_forced=True),
    Model(("claude-opus-5-5*",), ("adaptive",), True, False, True, True),
    Model(("claude-sonnet-5-5*",), ("adaptive", "between_tools"), True, is_bound=True),
    Model(("claude-haiku-5-5*",), ("adaptive", "disabled"), True, True, True),
    Model(("claude-opus-5*",), ("adaptive", "disabled"), True, True),
    Model(("claude-sonnet-5*",), ("adaptive", "disabled"), True),
    Model(("claude-opus-4-[78]*",), ("adaptive", "disabled")),
    Model(("claude-opus-4-6*", "claude-sonnet-4-6*"), ("adaptive", "enabled", "disabled")),
    Model(
        ("claude-3-7*", "claude-opus-4*", "claude-sonnet-4*", "claude-haiku-4*"),
        ("enabled", "disabled"),
    ),
    Model(("claude-3*", "claude-2*", "claude-v2*", "claude-instant*"), ("disabled",)),
)
_ANY = Model(("*",), ("adaptive", "enabled", "disabled", "between_tools"), True)


def known(name: str) -> Model:
    """Return what holds for a model, by any of its names; of an unknown one nothing is known."""
    lower = name.lower().replace(".", "-")
    bare = lower[lower.find("claude") :] if "claude" in lower else lower
    return next(
        (model for model in MODELS if any(fnmatchcase(bare, pattern) for pattern in model.names)),
        _ANY,
    )


@dataclass(frozen=True, slots=True)
class Talk:
    """A request for a Claude, in the blocks of the Messages protocol."""

    body: Mapping[str, Any]
    """As it came."""
    contents: Sequence[tuple[str, Sequence[Block]]]
    """Role and blocks of each message."""
    model: Model
    thinking: Any
    effort: Any
    max_tokens: Any
    is_forced: bool
    record: Record | None

    @property
    def kind(self) -> str | None:
        """Return the type of ``thinking``; None if it is missing."""
        kind = value_at(self.thinking, "type")
        return str(kind) if kind is not None else None

    @property
    def is_off(self) -> bool:
        return self.kind == "disabled" or (self.kind is None and not self.model.thinks_unasked)

    def messages(self, *, open_only: bool = False) -> Iterator[tuple[int, str, Sequence[Block]]]:
        found = [(n, role, content) for n, (role, content) in enumerate(self.contents)]
        starts = [
            n
            for n, role, content in found
            if role == "user" and any(block["type"] != "tool_result" for block in content)
        ]
        yield from found[starts[-1] :] if open_only and starts else found

    def thoughts(self, *, open_only: bool = False) -> Iterator[tuple[int, int, Block]]:
        for n, role, content in self.messages(open_only=open_only):
            for b, block in enumerate(content):
                if role == "assistant" and block["type"] in THINKING:
                    yield n, b, block


def blocks(content: Any) -> Sequence[Block]:
    """Return a message's content as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def expected(n: int, found: str) -> str:
    return (
        f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        f"`{found}`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    )


def kind_is_supported(talk: Talk) -> str | None:
    kind = talk.kind
    if talk.thinking is None or kind in talk.model.types:
        if kind == "disabled" and talk.model.off_upto_high and talk.effort in EFFORTS[3:]:
            return (
                f'"thinking.type.disabled" is not supported for this model at effort {talk.effort}'
            )
        return None
    return f'"thinking.type.{kind}" is not supported for this model.'


def budget_fits(talk: Talk) -> str | None:
    budget = value_at(talk.thinking, "budget_tokens")
    if talk.kind != "enabled":
        if budget is None:
            return None
        return f"thinking.{talk.kind}.budget_tokens: Extra inputs are not permitted"
    if type(budget) is not int:
        return "thinking.enabled.budget_tokens: Field required"
    if budget < 1024:
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if isinstance(talk.max_tokens, int) and talk.max_tokens <= budget:
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    return None


def effort_is_known(talk: Talk) -> str | None:
    if talk.effort is None or talk.effort in EFFORTS:
        return None
    return f"output_config.effort: Input should be one of {', '.join(EFFORTS)}"


def choice_is_free(talk: Talk) -> str | None:
    if talk.is_forced and (talk.kind == "enabled" or talk.model.never_forced):
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None


def seals_hold(talk: Talk) -> str | None:
    for n, b, block in talk.thoughts():
        where = f"messages.{n}.content.{b}"
        field = "signature" if block["type"] == "thinking" else "data"
        wrong = f"{where}: Invalid `{field}` in `{block['type']}` block"
        seal = block[field]
        if not is_text(seal) or not matches_pattern(BASE64, seal):
            return wrong
        if talk.record is not None:
            sealed = talk.record.sealed(seal)
            if sealed is None or sealed.text not in (None, block.get("thinking")):
                return wrong
    return None


def prefix_is_unchanged(talk: Talk) -> str | None:
    """A bound thought must follow exactly the messages that it followed when it was made."""
    drops = value_at(talk.thinking, "block_binding", "prefix_mismatch_behavior") == "drop_block"
    if talk.record is None or not talk.model.is_bound or drops:
        return None
    flat = [(n, b, block) for n, _, bs in talk.messages() for b, block in enumerate(bs)]
    before = prefix_digests(talk.body, conversation_blocks(talk.body))
    for (n, b, block), prefix in zip(flat, before, strict=False):
        if block["type"] in THINKING:
            sealed = talk.record.sealed(block["signature" if "signature" in block else "data"])
            if sealed is not None and sealed.prefix != prefix:
                return (
                    f"messages.{n}.content.{b}: Invalid signature in thinking block. "
                    "The block is bound to a different conversation."
                )
    return None


def open_loop_starts_with_thinking(talk: Talk) -> str | None:
    """With manual thinking, what led to the first call of the open turn comes back."""
    if talk.kind != "enabled":
        return None
    for n, role, content in talk.messages(open_only=True):
        if role == "assistant" and any(block["type"] == "tool_use" for block in content):
            kind = content[0]["type"]
            return None if kind in THINKING else expected(n, kind)
    return None


def nothing_is_thought_while_off(talk: Talk) -> str | None:
    if talk.is_off:
        for n, b, _ in talk.thoughts(open_only=True):
            return (
                f"messages.{n}.content.{b}: When thinking is disabled, an `assistant` message in "
                "the final position cannot contain `thinking`. To use thinking blocks, enable "
                "`thinking` in your request."
            )
    return None


CHECKS = (
    kind_is_supported,
    budget_fits,
    effort_is_known,
    choice_is_free,
    seals_hold,
    prefix_is_unchanged,
    open_loop_starts_with_thinking,
    nothing_is_thought_while_off,
)
