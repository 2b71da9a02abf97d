"""Chat Completions and its kin, spoken: one delta after another, then usage alone.

From the official SDK's types and the hosts' documentation. Reasoning is in a field that differs
from host to host (the contract names it): a plain string, or an array of entries that carry
signatures and ciphertext, which the plain string then mirrors. Without such a field a model thinks
inside its content, between tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.testing import reasoning_arrays
from reasoning_store.testing.capabilities import TAGS, Capabilities, form
from reasoning_store.testing.reasoning_arrays import ARRAYS, FORMS
from reasoning_store.testing.script import (
    Event,
    Protocol,
    Script,
    arguments_text,
    stored_metadata,
    tagged_losses,
    tagged_message_text,
    tagged_text,
    without_none,
)
from reasoning_store.wire.contract import Contract

_PLAIN: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The fields that are a string, best known first."""

_SEALED: Final = {"encrypted_content": "summary", "reasoning_opaque": "signed"}
"""The plain string in the form of a field that seals it."""

_BESIDE_CALLS: Final = ("extra_content", "provider_specific_fields")
"""The fields in which Google and LiteLLM put the signature of a call."""


def _events(script: Script) -> Iterator[Event]:
    script = _placed(script)
    yield _chunk(script, {"role": "assistant", "content": ""})
    calls = entries = 0
    for block in script.message.blocks:
        if isinstance(block, TextBlock):
            for piece in script.cut(block.text):
                yield _chunk(script, {"content": piece})
        elif isinstance(block, ToolCallBlock):
            for fragment in _fragments(block, calls, script):
                yield _chunk(script, {"tool_calls": [fragment]})
            calls += 1
        elif isinstance(block, ThinkingBlock):
            for delta in _thoughts(block, entries, script):
                yield _chunk(script, delta)
            entries += 1
    if script.is_broken_off:
        return
    yield _chunk(script, {}, _reason(script))
    if script.usage is not None:
        usage = {"usage": _usage(script.usage, script.contract)}
        yield {**_envelope(script, "chat.completion.chunk"), "choices": [], **usage}


def _thoughts(block: ThinkingBlock, number: int, script: Script) -> Iterator[Event]:
    field = block.source_field or ""
    if field == TAGS:
        for piece in script.cut(tagged_text(block, script)):
            yield {"content": piece}
    elif field in ARRAYS:
        mirror = plain_field(script.contract)
        for fragment, text in reasoning_arrays.fragments(block, field, number, script.cut):
            # The plain string next to an array repeats the array's text.
            yield {**({mirror: text} if mirror and text else {}), field: [fragment]}
    else:
        for piece in script.cut(block.thought):
            yield {field: piece}
        yield from ({name: value} for name, value in _seal(block, script.contract).items())


def _body(script: Script) -> Event:
    script = _placed(script)
    message: dict[str, Any] = {"role": "assistant", "content": _content(script)}
    for number, block in enumerate(script.message.thinking):
        field = block.source_field or ""
        if field == TAGS:
            continue
        if field in ARRAYS:
            entry = reasoning_arrays.entry(block, field, number)
            message[field] = [*message.get(field, ()), entry]
            field = plain_field(script.contract) or ""
        message |= _seal(block, script.contract)
        if field and block.thought:
            message[field] = message.get(field, "") + block.thought
    calls = [_call(block) for block in script.message.tool_calls]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _reason(script)}
    usage = script.usage
    return {
        **_envelope(script, "chat.completion"),
        "choices": [choice],
        **({"usage": _usage(usage, script.contract)} if usage is not None else {}),
    }


def _content(script: Script) -> str | None:
    texts = (isinstance(block, TextBlock) for block in script.message.blocks)
    tags = (block.source_field == TAGS for block in script.message.thinking)
    return tagged_message_text(script) if any((*texts, *tags)) else None


def _envelope(script: Script, kind: str) -> Event:
    return {
        "id": script.response_id_or("chatcmpl-1"),
        "object": kind,
        "created": 1,
        "model": script.model,
    }


def _chunk(script: Script, delta: Event, reason: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**_envelope(script, "chat.completion.chunk"), "choices": [choice]}


def _call(block: ToolCallBlock) -> Event:
    function = {"name": block.name, "arguments": arguments_text(block)}
    return {
        "id": block.id,
        "type": "function",
        "function": function,
        **stored_metadata(block, *_BESIDE_CALLS),
    }


def _fragments(block: ToolCallBlock, index: int, script: Script) -> Iterator[Event]:
    begun = {"name": block.name, "arguments": ""}
    yield {"index": index, **_call(block), "function": begun}
    for piece in script.cut(arguments_text(block)):
        yield {"index": index, "function": {"arguments": piece}}


def _reason(script: Script) -> str:
    return script.reason(calls="tool_calls", otherwise="stop")


def _usage(usage: Usage, contract: Contract) -> Event:
    output = usage.output
    if output is not None and contract.reading.output_excludes_reasoning:
        output -= usage.reasoning or 0
    counts: dict[str, Any] = without_none(prompt_tokens=usage.input, completion_tokens=output)
    if usage.input is not None and usage.output is not None:
        counts["total_tokens"] = usage.input + usage.output
    if usage.reasoning is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    details = without_none(cached_tokens=usage.cached, cache_write_tokens=usage.cache_write)
    if details:
        counts["prompt_tokens_details"] = details
    return counts


# Which field a thought is in


def plain_field(contract: Contract) -> str | None:
    """Return the string field of a host: the one it wants back, else the first it has."""
    named = [name for name in contract.reading.fields if name in _PLAIN]
    return (
        contract.returning.returns_in
        if contract.returning.returns_in in named
        else next(iter(named), None)
    )


def _placed(script: Script) -> Script:
    """Return the script with each thought's source field set to its place.

    A thought that the host has no field for is left out.
    """
    fields = iter(places(script.message, script.contract))
    blocks: list[Block] = []
    for block in script.message.blocks:
        if not isinstance(block, ThinkingBlock):
            blocks.append(block)
        elif field := next(fields):
            blocks.append(replace(block, source_field=field))
    return replace(script, message=replace(script.message, blocks=tuple(blocks)))


def places(message: Message, contract: Contract) -> list[str | None]:
    """Return the field of each thought in turn, ``None`` where the host has none for it.

    A thought keeps the field it came from where that can hold it. The others go together:
    into one array where any of them needs one, else into the plain string.
    """
    kept = [_kept(block, contract, block is message.blocks[0]) for block in message.thinking]
    others = [block for block, field in zip(message.thinking, kept, strict=True) if not field]
    needed = {form(block) for block in others if not _fits_string(block, contract)}
    arrays = [name for name in contract.reading.fields if needed <= {*FORMS.get(name, ())}]
    named = [field for field in kept if field in arrays]
    array = next(iter((*named, *arrays)), None) if needed else None
    return [
        field or (array if array and form(block) in FORMS[array] else _plain_place(block, contract))
        for block, field in zip(message.thinking, kept, strict=True)
    ]


def _kept(block: ThinkingBlock, contract: Contract, begins: bool) -> str | None:
    source, tags = block.source_field, contract.reading.tags
    if source == TAGS:
        return TAGS if tags is True or (tags and begins) else None
    if source not in contract.reading.fields:
        return None
    fits = form(block) in FORMS.get(source, ())
    return source if fits or (source in _PLAIN and _fits_string(block, contract)) else None


def _fits_string(block: ThinkingBlock, contract: Contract) -> bool:
    """Whether a plain string, with a seal in another field, holds all of a thought."""
    return form(block) == "plain" or bool(plain_field(contract) and _seal(block, contract))


def _plain_place(block: ThinkingBlock, contract: Contract) -> str | None:
    """Return the field of a thought that no array takes, or none takes whole."""
    plain = plain_field(contract)
    if form(block) in ("encrypted", "redacted"):
        return next((n for n in contract.reading.fields if form(block) in FORMS.get(n, ())), None)
    if plain is None and contract.returning.returns_in == TAGS:
        return TAGS
    return plain if block.thought else None


def _seal(block: ThinkingBlock, contract: Contract) -> Event:
    """Return the seal of a plain string, which is in another field."""
    name = contract.reading.sealed_by
    if name is None or _SEALED.get(name) != form(block):
        return {}
    return {name: block.encrypted or block.signature}


def _further_losses(contract: Contract, message: Message) -> Iterator[str]:
    thoughts = message.thinking
    fields = places(message, contract)
    if len(set(fields)) > 1:
        yield "thoughts in different fields"
    if None in fields:
        yield "a thought, as the host has no field for it"
    for block, field in zip(thoughts, fields, strict=True):
        forms = FORMS.get(field or "", ("plain",))
        if form(block) not in forms and not _seal(block, contract):
            yield f"a thought that is {form(block)}"
        if block.source_field not in (None, field):
            yield f"the source field {block.source_field}"
        if block.provider_metadata and field not in ARRAYS:
            yield "the metadata of a thought"
    if contract.reading.sealed_by and len(thoughts) > 1:
        yield "several thoughts, each of which could own the seal"
    yield from tagged_losses(message, fields)
    array = next(iter({*fields} & ARRAYS), None)
    if array is not None:
        yield from reasoning_arrays.losses(message, array)
    else:
        yield from _merging(message.blocks)
    usage = message.usage
    excludes_reasoning = usage is not None and contract.reading.output_excludes_reasoning
    if usage and excludes_reasoning and (usage.reasoning or 0) > (usage.output or 0):
        yield "more tokens of reasoning than of output"


def _merging(blocks: tuple[Block, ...]) -> Iterator[str]:
    for before, after in pairwise(blocks):
        if isinstance(before, ThinkingBlock) and isinstance(after, ThinkingBlock):
            yield "where one thought ends and the next begins"


def _capabilities(contract: Contract) -> Capabilities:
    # Which forms and fields there are depends on all the thoughts of a message together.
    every = frozenset({"plain", "signed", "encrypted", "summary", "redacted"})
    fields = (*_PLAIN, *ARRAYS, TAGS)
    return Capabilities(
        forms=every,
        sources=dict.fromkeys(every, fields),
        thinking_metadata=frozenset({"detail"}),
        call_metadata=frozenset(_BESIDE_CALLS),
        usage=frozenset({"input", "output", "reasoning", "cached", "cache_write"}),
        merges=frozenset({"text"}),
        order=("thinking", "text", "tool_call"),
        more=lambda message, whole: _further_losses(contract, message),
    )


PROTOCOL = Protocol(events=_events, body=_body, capabilities=_capabilities)
