"""Hypothesis strategies for the values of this package, odd ones first.

``messages`` makes any message at all. ``carried`` makes assistant messages that one
protocol has a place for, so that what is read from its wire can be compared with them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
)
from reasoning_store.testing import carries

ODD = [
    *("<", "</", "<think", "think>", "</thi", "<think-step>", "[", "[THI", "<|", "|>", "\u25c1"),
    *("data: x\n\n", "[DONE]", "event: ping", "\r\n", "\n", "\\n", "\\u0041", '"', "\\", "{}"),
    *("\0", "\x1b", "\u2028", "\ufeff", "\ufdd0", "\u202e", "\u00a0", "e\u0301", "\u00e9"),
    *("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U00010000", "\U0010ffff", "\u6f22\u5b57"),
]


def texts(*, min_size: int = 0, max_size: int = 8) -> st.SearchStrategy[str]:
    """Text with what is most often handled wrongly in it; sizes are in pieces."""
    pieces = st.sampled_from(ODD) | st.text("abc \n<>/think", min_size=1, max_size=12)
    words = st.text(min_size=1, max_size=8)
    return st.lists(pieces | words, min_size=min_size, max_size=max_size).map("".join)


def json_values() -> st.SearchStrategy[Any]:
    """Any JSON value, without NaN and without floats that are whole numbers."""
    strings = texts(max_size=3)
    leaves = (
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False, width=32)
        | strings
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
        max_leaves=8,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts(max_size=3), json_values(), max_size=4)


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
SEALS = st.binary(min_size=1, max_size=24).map(lambda data: base64.b64encode(data).decode())
COUNTS = st.integers(0, 10**9)


@st.composite
def tool_calls(draw: st.DrawFn, *, objects: bool = False, broken: bool = True) -> ToolCallBlock:
    """A call: its arguments as a string of any spelling, or as an ``objects`` alone."""
    name, call_id = draw(NAMES), "call_" + draw(st.uuids()).hex
    value = draw(json_objects())
    if objects:
        return ToolCallBlock(id=call_id, name=name, parameters=value)
    spelling = draw(st.sampled_from(["close", "wide", "escaped", *(["broken"] if broken else [])]))
    if spelling == "broken":
        text = draw(st.sampled_from(["{", '{"city": "Os', "nul", '{"a":1}}', "\u6f22"]))
        return ToolCallBlock(id=call_id, name=name, parameters=None, arguments=text)
    text = json.dumps(
        value,
        ensure_ascii=spelling == "escaped",
        indent=2 if spelling == "wide" else None,
        separators=(",", ":") if spelling == "close" else None,
    )
    return ToolCallBlock(id=call_id, name=name, parameters=value, arguments=text)


def thoughts(
    source: str | None,
    *,
    sealed: str | None = None,
    readable: bool = True,
    metadata: Callable[[str], dict[str, Any]] | None = None,
    redacted: bool = False,
) -> st.SearchStrategy[ThinkingBlock]:
    """A thought of one form: ``sealed`` names the field that holds what seals it."""

    def block(thought: str, data: str) -> ThinkingBlock:
        return ThinkingBlock(
            thought=thought,
            source_field=source,
            is_hidden=not thought,
            signature=data if sealed == "signature" else None,
            encrypted=data if sealed == "encrypted" else None,
            redacted=redacted,
            provider_metadata=metadata(thought) if metadata else None,
        )

    said = texts(min_size=0 if sealed else 1) if readable else st.just("")
    return st.builds(block, said, SEALS).filter(lambda made: bool(made.thought or sealed))


def text_blocks(**metadata: st.SearchStrategy[Any]) -> st.SearchStrategy[TextBlock]:
    """Text, with these keys in its metadata, or with none."""
    about: st.SearchStrategy[dict[str, Any] | None] = st.none()
    if metadata:
        about = about | st.fixed_dictionaries(metadata)
    return st.builds(TextBlock, text=texts(min_size=1), provider_metadata=about)


def usages(*names: str) -> st.SearchStrategy[Usage]:
    """Usage with all of these counts; reasoning is a part of output, the cache one of input."""

    def usage(counts: dict[str, int]) -> Usage:
        if "reasoning" in counts:
            counts = {**counts, "output": counts["output"] + counts["reasoning"]}
        cache = counts.get("cached", 0) + counts.get("cache_write", 0)
        return Usage(**{**counts, "input": counts["input"] + cache})

    return st.fixed_dictionaries(dict.fromkeys(names, COUNTS)).map(usage)


# Messages that a protocol carries


def _redacted(kind: str, **about: str) -> Callable[[str], dict[str, Any]]:
    return lambda thought: {"block_type": kind, **about}


_ALL = ("input", "output", "reasoning", "cached", "cache_write")
_SEAL = {"thoughtSignature": SEALS}
_BEDROCK = "reasoningContent.reasoningText"
_CHAT = ["reasoning", "reasoning_content", "thinking", "reasoning_text"]


def _thoughts(api: str) -> list[st.SearchStrategy[ThinkingBlock]]:
    """The forms of thought that a protocol has a place for."""
    match api:
        case "anthropic.messages":
            return [
                thoughts("thinking"),
                thoughts(None),
                thoughts("thinking", sealed="signature"),
                thoughts(
                    "redacted_thinking",
                    sealed="encrypted",
                    readable=False,
                    redacted=True,
                    metadata=_redacted("redacted_thinking"),
                ),
            ]
        case "bedrock.converse":
            return [
                thoughts(_BEDROCK),
                thoughts(_BEDROCK, sealed="signature"),
                thoughts(
                    "reasoningContent.redactedContent",
                    sealed="encrypted",
                    readable=False,
                    redacted=True,
                    metadata=_redacted("redactedContent", encoding="base64"),
                ),
            ]
        case "cohere.chat":
            return [thoughts("content.thinking"), thoughts(None), thoughts("tool_plan")]
        case "gemini.generate_content":
            return [thoughts("thought"), thoughts("thought", sealed="signature")]
        case "mistral.chat":
            return [thoughts("content.thinking"), thoughts("content.thinking", sealed="signature")]
        case "ollama.chat":
            return [thoughts("thinking"), thoughts("think_tags")]
        case "openai.responses":
            return [
                thoughts("reasoning.summary"),
                thoughts("reasoning.content"),
                thoughts("reasoning.summary", sealed="encrypted").filter(lambda b: bool(b.thought)),
                thoughts("reasoning.encrypted_content", sealed="encrypted", readable=False),
            ]
        case "thinking_events":
            return [
                thoughts("thinking"),
                thoughts("thinking", sealed="signature"),
                thoughts("thinking", sealed="encrypted", readable=False, redacted=True),
            ]
        case _:
            return [
                *(thoughts(source) for source in _CHAT),
                thoughts(None),
                thoughts("think_tags"),
                thoughts("reasoning_details", sealed="signature"),
                thoughts("reasoning_details", sealed="encrypted", readable=False),
                thoughts("thinking_blocks", sealed="signature"),
                thoughts(None, sealed="signature"),
                thoughts(None, sealed="encrypted", readable=False, redacted=True),
                # What a field next to the plain string seals, where a host has one.
                thoughts("reasoning_content", sealed="encrypted").filter(lambda b: bool(b.thought)),
                thoughts("reasoning_text", sealed="signature").filter(lambda b: bool(b.thought)),
            ]


_TEXTS = {
    "gemini.generate_content": text_blocks(**_SEAL),
    "openai.responses": text_blocks(phase=st.sampled_from(["commentary", "final_answer"])),
}
_OBJECTS = {"gemini.generate_content", "ollama.chat"}
_USAGE = {
    "bedrock.converse": ("input", "output", "cached", "cache_write"),
    "cohere.chat": ("input", "output", "cached"),
    "gemini.generate_content": ("input", "output", "reasoning", "cached"),
    "mistral.chat": ("input", "output"),
    "ollama.chat": ("input", "output"),
}
REASONS = {
    "anthropic.messages": ["end_turn", "tool_use", "max_tokens", "refusal"],
    "bedrock.converse": ["end_turn", "tool_use", "max_tokens", "guardrail_intervened"],
    "cohere.chat": ["COMPLETE", "TOOL_CALL", "MAX_TOKENS"],
    "gemini.generate_content": ["STOP", "MAX_TOKENS", "SAFETY"],
    "mistral.chat": ["stop", "tool_calls", "length"],
    "ollama.chat": ["stop", "length"],
    "openai.chat": ["stop", "tool_calls", "length", "content_filter"],
    "openai.responses": ["completed", "max_output_tokens", "content_filter"],
    "thinking_events": ["stop", "toolUse", "length"],
}
_RAW: dict[str, Any] = {
    "anthropic.messages": {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "Oslo"},
    },
    "gemini.generate_content": {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
    "openai.responses": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
}


def _others(api: str) -> list[st.SearchStrategy[Block]]:
    found: list[st.SearchStrategy[Block]] = []
    if api in _RAW:
        found.append(st.just(RawBlock(data=_RAW[api])))
    if api == "gemini.generate_content":
        found.append(
            st.builds(
                MediaBlock,
                kind=st.just("image"),
                mime_type=st.just("image/png"),
                data=st.binary(min_size=1, max_size=9),
                name=st.none() | NAMES,
            )
        )
    return found


def blocks_of(api: str, *, whole: bool = False) -> st.SearchStrategy[Block]:
    """A block that a protocol has a place for."""
    objects = api in _OBJECTS or (whole and api in _WHOLE_OBJECTS)
    calls: st.SearchStrategy[Block] = tool_calls(objects=objects)
    if api == "gemini.generate_content":
        about = st.none() | st.fixed_dictionaries(_SEAL)
        calls = st.builds(
            lambda call, data: replace(call, provider_metadata=data),
            tool_calls(objects=True),
            about,
        )
    said = _TEXTS.get(api, text_blocks())
    return st.one_of(*_thoughts(api), said, said, calls, *_others(api))


_WHOLE_OBJECTS = {"anthropic.messages", "bedrock.converse", "thinking_events"}
_RANKS = {"thinking": 0, "text": 1, "tool_call": 2}


@st.composite
def carried(
    draw: st.DrawFn,
    api: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    whole: bool = False,
) -> Message:
    """A message that one protocol carries, in its stream or in its ``whole`` body."""

    def fits(blocks: list[Block]) -> bool:
        message = Message(role="assistant", blocks=tuple(blocks))
        return carries(message, api, provider=provider, model=model, whole=whole)

    drawn = draw(st.lists(blocks_of(api, whole=whole), max_size=7))
    if whole:
        drawn.sort(key=lambda block: _RANKS.get(block.type, 1))
    # What would merge, or does not go together, is left out one by one; the rest is kept.
    blocks: list[Block] = []
    for block in drawn:
        if fits([*blocks, block]):
            blocks.append(block)
    message = Message(role="assistant", blocks=tuple(blocks))
    for said in (
        {"usage": draw(st.none() | usages(*_USAGE.get(api, _ALL)))},
        {"finish_reason": draw(st.sampled_from(REASONS[api]))},
    ):
        more = replace(message, **said)
        if carries(more, api, provider=provider, model=model, whole=whole):
            message = more
    return message


# Any message


def _any_block() -> st.SearchStrategy[Block]:
    said, data = texts(), json_values()
    about = st.none() | json_objects()
    return st.one_of(
        st.builds(TextBlock, text=said, provider_metadata=about),
        st.builds(
            ThinkingBlock,
            thought=said,
            source_field=st.none() | NAMES,
            is_hidden=st.booleans(),
            signature=st.none() | SEALS,
            encrypted=st.none() | SEALS,
            redacted=st.booleans(),
            interrupted=st.booleans(),
            provider_metadata=about,
        ),
        tool_calls(),
        st.builds(
            ToolResponseBlock,
            call_id=NAMES,
            tool_name=NAMES,
            result=data,
            is_error=st.booleans(),
            provider_metadata=about,
        ),
        st.builds(
            MediaBlock,
            kind=st.sampled_from(["image", "audio", "video", "file"]),
            mime_type=st.just("application/octet-stream"),
            name=st.none() | said,
            data=st.none() | st.binary(max_size=9),
            url=st.none() | said,
            ref=st.none() | said,
        ),
        st.builds(RawBlock, data=data, provider_metadata=about),
    )


def messages() -> st.SearchStrategy[Message]:
    """Any message of any role."""
    return st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool", "system"]),
        blocks=st.lists(_any_block(), max_size=6).map(tuple),
        status=st.sampled_from(["complete", "interrupted"]),
        origin=st.none() | st.builds(Origin, provider=st.none() | NAMES, model=st.none() | NAMES),
        usage=st.none() | usages(*_ALL),
        finish_reason=st.none() | NAMES,
        metadata=st.none() | json_objects(),
    )
