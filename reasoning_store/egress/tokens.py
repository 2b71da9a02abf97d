"""What a message counts, and what a view of messages does.

Each block is counted once, alone, when its message is appended. What a request counts is
a sum over the blocks that the selection keeps, so it is the same number for every protocol
that keeps the same blocks. Keys, ids, roles, delimiters and signatures are not
counted.

It knows blocks and a counter. It must not know a tokenizer's insides, a provider or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoning_store import codec
from reasoning_store.blocks import (
    MOST_TOKENS,
    Block,
    Counts,
    Exactness,
    MediaBlock,
    MediaKind,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.clearing import PLACEHOLDER, gains
from reasoning_store.tokenizers import Count, Counter, worst

FRAMING = 4
"""What a message costs beside its blocks: its role, and where it begins and ends."""
PRIMING = 3
"""What every request costs beside its messages: the answer it opens."""

MEDIA: Mapping[MediaKind, int] = {"image": 1_100, "audio": 1_600, "video": 8_000, "file": 2_000}
"""A stated estimate for media, whose cost no text counter can know."""


_NOTHING = Count(0, "exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """What a request counts.

    ``effective`` is what will be sent (BR-004), ``raw`` the same with every thinking block
    kept, ``fixed`` the part that is not history: system, tools and the answer's opening.
    """

    effective: int
    raw: int
    fixed: int
    exactness: Exactness
    encoding: str

    def __str__(self) -> str:
        return str(self.effective)


def count_message(message: Message, counter: Counter) -> Counts:
    """Return what each part of a message counts."""
    visible = clearable = 0
    thinking: list[int] = []
    labels: set[Exactness] = set()
    framed = False
    first_opaque: int | None = None
    for block in message.blocks:
        if isinstance(block, ThinkingBlock):
            tokens, label = counter.count(block.thought) if block.thought else _NOTHING
            if first_opaque is None and block.opaque:
                first_opaque = len(thinking)
            thinking.append(tokens)
        elif isinstance(block, ToolResponseBlock):
            tokens, label, freed = _answered(block, counter)
            visible += tokens
            clearable += freed
            framed = True
        else:
            tokens, label = _VISIBLE[type(block)](block, counter)
            visible += tokens
            framed = True
        if label != "exact":
            labels.add(label)
    if first_opaque is not None:
        hidden, label = _hidden(message, sum(thinking))
        thinking[first_opaque] += hidden
        labels.add(label)
    if framed:
        visible += FRAMING
    elif thinking:
        thinking[0] += FRAMING
    return Counts(
        visible=visible,
        thinking=tuple(thinking),
        exactness=worst(*labels) if labels else "exact",
        clearable=max(0, clearable),
    )


def _hidden(message: Message, readable: int) -> tuple[int, Exactness]:
    """What a message's opaque reasoning counts beyond what can be read of it."""
    reported = message.usage.reasoning if message.usage is not None else None
    if reported is not None and 0 <= reported <= MOST_TOKENS:
        return max(0, reported - readable), "reported"
    size = sum(
        len(block.encrypted or "") or (0 if block.thought else len(block.signature or ""))
        for block in message.thinking
        if block.opaque
    )
    return -(-size // 4), "estimated"


def fixed_tokens(
    system: Any, tools: Sequence[Mapping[str, Any]] | None, counter: Counter
) -> tuple[int, Exactness]:
    """Return what a request counts that is not history."""
    parts = [PRIMING]
    labels: list[Exactness] = ["exact"]
    for part in (system, tools):
        if part:
            tokens, label = counter.count(part if isinstance(part, str) else codec.dumps(part))
            parts.append(tokens)
            labels.append(label)
    return sum(parts), worst(*labels)


def total(
    counted: Iterable[Counts],
    withheld: int,
    fixed: tuple[int, Exactness],
    encoding: str,
) -> TokenCount:
    """Return the count of a view of which ``withheld`` tokens of thinking stay home."""
    raw = 0
    labels: set[Exactness] = set()
    for counts in counted:
        raw += counts.visible + sum(counts.thinking)
        labels.add(counts.exactness)
    return with_fixed(raw, withheld, labels, fixed, encoding)


def with_fixed(
    raw: int,
    withheld: int,
    labels: Iterable[Exactness],
    fixed: tuple[int, Exactness],
    encoding: str,
) -> TokenCount:
    """Return the count of a history with what is not of it."""
    tokens, label = fixed
    return TokenCount(
        effective=raw - withheld + tokens,
        raw=raw + tokens,
        fixed=tokens,
        exactness=worst(*labels, label),
        encoding=encoding,
    )


def _said(block: TextBlock, counter: Counter) -> tuple[int, Exactness]:
    return counter.count(block.text)


def _called(block: ToolCallBlock, counter: Counter) -> tuple[int, Exactness]:
    name, one = counter.count(block.name)
    arguments, other = counter.count(codec.argument_text(block))
    return name + arguments, worst(one, other)


def _answered(block: ToolResponseBlock, counter: Counter) -> tuple[int, Exactness, int]:
    """What an answer counts, and how much of that goes where it is cleared."""
    text = codec.result_text(block)
    tokens, label = counter.count(text)
    freed = tokens - counter.count(PLACEHOLDER)[0] if gains(text) else 0
    return tokens, label, freed


def _pictured(block: MediaBlock, counter: Counter) -> tuple[int, Exactness]:
    return MEDIA[block.kind], "estimated"


def _kept_raw(block: RawBlock, counter: Counter) -> tuple[int, Exactness]:
    return counter.count(codec.dumps(block.data))[0], "estimated"


_VISIBLE: Mapping[type[Block], Callable[[Any, Counter], tuple[int, Exactness]]] = {
    TextBlock: _said,
    ToolCallBlock: _called,
    MediaBlock: _pictured,
    RawBlock: _kept_raw,
}
