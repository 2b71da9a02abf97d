"""The tokens of a message, and of a view of messages.

Each block is counted once, alone, when its message is appended. The count of a request is a
sum over the blocks that the selection keeps, so it is the same for every protocol that keeps the
same blocks. Keys, ids, roles, delimiters and signatures are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    MOST_TOKENS,
    Block,
    CountExactness,
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
from reasoning_store.conversation.placeholders import PLACEHOLDER, is_clearable
from reasoning_store.tokens import (
    Count,
    Counter,
    worst,
)
from reasoning_store.wire import content_parts, contract_lookup

FRAMING = 4
"""The tokens of a message apart from its blocks: its role, its beginning and its end."""
PRIMING = 3
"""The tokens of a request apart from its messages: the opening of the answer."""

MEDIA: Mapping[MediaKind, int] = {"image": 1_100, "audio": 1_600, "video": 8_000, "file": 2_000}
"""The stated estimate of each kind of media, which a text counter cannot count."""


_NOTHING = Count(0, "exact")


@dataclass(frozen=True, slots=True)
class FixedCount:
    """The tokens of a request that are not history: system, tools, the opening of the answer."""

    system: int
    tools: int
    exactness: Exactness

    @property
    def tokens(self) -> int:
        return self.system + self.tools + PRIMING


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensByKind:
    """The parts of a count.

    ``system + tools + messages + thinking`` is ``effective``; with ``withheld`` it is ``raw``.
    """

    system: int
    tools: int
    """The definitions of the tools."""
    messages: int
    """Texts, tool calls and their results, media, summaries, and the opening of the answer."""
    thinking: int
    """The thinking that is sent."""
    withheld: int
    """The thinking that is left out, and whatever a provider refused."""


def exactness_mark(counted: Any) -> str:
    """The sign that a page puts before a number: ``~``, or nothing where the count is exact."""
    return "" if counted.exactness == "exact" else "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """The tokens of a request.

    ``effective`` counts the request that will be sent (BR-004), ``raw`` the same with every
    thinking block kept, ``fixed`` the part that is not history: system, tools and the opening of
    the answer.
    """

    effective: int
    raw: int
    fixed: int
    by_kind: TokensByKind
    exactness: CountExactness
    encoding: str

    def __str__(self) -> str:
        return str(self.effective)

    mark = property(exactness_mark)


def count_message(message: Message, counter: Counter) -> Counts:
    """Return the tokens of each part of a message."""
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
            tokens, label, freed = _count_response(block, counter)
            visible += tokens
            clearable += freed
            framed = True
        else:
            tokens, label = _count_visible(block, counter)
            visible += tokens
            framed = True
        if label != "exact":
            labels.add(label)
    if first_opaque is not None:
        hidden, label = _count_unreadable(message, sum(thinking))
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


def _count_unreadable(message: Message, readable: int) -> tuple[int, Exactness]:
    """Return the tokens of a message's opaque reasoning, less those of its readable thoughts."""
    reported = message.usage.reasoning if message.usage is not None else None
    if reported is not None and 0 <= reported <= MOST_TOKENS:
        return max(0, reported - readable), "reported"
    size = sum(
        len(block.encrypted or "") or (0 if block.thought else len(block.signature or ""))
        for block in message.thinking
        if block.opaque
    )
    return -(-size // 4), "estimated"


def count_fixed(
    system: Any, tools: Sequence[Mapping[str, Any]] | None, counter: Counter
) -> FixedCount:
    """Return the tokens of a request that are not history."""

    def count(part: Any) -> Count:
        if not part:
            return _NOTHING
        return counter.count(part if isinstance(part, str) else codec.dumps(part))

    of_system, of_tools = count(system), count(tools)
    exactness = worst(of_system.exactness, of_tools.exactness)
    return FixedCount(of_system.tokens, of_tools.tokens, exactness)


def counted(
    counts: Iterable[Counts],
    left_out: tuple[int, int],
    fixed: FixedCount,
    encoding: str,
    model: str | None,
) -> dict[str, Any]:
    """Return the fields of the ``TokenCount`` of a view.

    ``left_out`` are the tokens of the thoughts that are left out, and those of other blocks.
    """
    visible = thinking = 0
    labels = {fixed.exactness, exactness_for(model, encoding)}
    for part in counts:
        visible += part.visible
        thinking += sum(part.thinking)
        labels.add(part.exactness)
    kinds = TokensByKind(
        system=fixed.system,
        tools=fixed.tools,
        messages=visible - left_out[1] + PRIMING,
        thinking=thinking - left_out[0],
        withheld=sum(left_out),
    )
    effective = kinds.system + kinds.tools + kinds.messages + kinds.thinking
    return {
        "effective": effective,
        "raw": effective + kinds.withheld,
        "fixed": fixed.tokens,
        "by_kind": kinds,
        "exactness": worst(*labels),
        "encoding": encoding,
    }


def exactness_for(model: str | None, encoding: str) -> CountExactness:
    """Return how good counts in an encoding are for a model: exact where it is the model's own."""
    return "exact" if contract_lookup.find_encoding(model) == encoding else "approximate"


def count_block(block: Block, counter: Counter) -> int:
    """Return the tokens of one block that is no thought."""
    if isinstance(block, ToolResponseBlock):
        return _count_response(block, counter)[0]
    return _count_visible(block, counter)[0]


def _count_visible(block: Block, counter: Counter) -> tuple[int, Exactness]:
    """Return the tokens of a block other than thinking and tool responses."""
    if isinstance(block, TextBlock):
        return counter.count(block.text)
    if isinstance(block, ToolCallBlock):
        name = counter.count(block.name)
        arguments = counter.count(codec.argument_text(block))
        return name.tokens + arguments.tokens, worst(name.exactness, arguments.exactness)
    if isinstance(block, MediaBlock):
        return MEDIA[block.kind], "estimated"
    assert isinstance(block, RawBlock)
    return counter.count(codec.dumps(block.data))[0], "estimated"


def _count_response(block: ToolResponseBlock, counter: Counter) -> tuple[int, Exactness, int]:
    """Return the tokens of a response, their label, and the tokens that clearing it frees."""
    text, parts = codec.result_text(block), content_parts.result_parts(block)
    if parts is None:
        tokens, label = counter.count(text)
    else:
        counts = [_count_visible(part, counter) for part in parts]
        tokens, label = sum(tokens for tokens, _ in counts), worst(*(label for _, label in counts))
    freed = tokens - counter.count(PLACEHOLDER)[0] if is_clearable(block, text) else 0
    return tokens, label, freed
