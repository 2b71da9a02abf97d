"""Chat Completions and its kin, spoken: one delta after another, then usage alone.

From the official SDK's types and the hosts' documentation. Reasoning is in a field that
differs from host to host (the contract names it): a plain string, or an array of entries
that carry signatures and ciphertext, which the plain string then mirrors. Where there is no
such field a model thinks inside its content, between tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from reasoning_store.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.testing import reasoning_arrays, tagged
from reasoning_store.testing.carriage import TAGS, Carriage, form
from reasoning_store.testing.script import Event, Protocol, Script, arguments_text, beside, known
from reasoning_store.wire.contracts import Contract

_PLAIN: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The fields that are a string, best known first."""

_SEALED: Final = {"encrypted_content": "summary", "reasoning_opaque": "signed"}
"""What a field that seals the plain string makes of it."""

_BESIDE_CALLS: Final = ("extra_content", "provider_specific_fields")
"""Where Google and LiteLLM put the signature of a call."""


def _events(script: Script) -> Iterator[Event]:
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
    if script.died:
        return
    yield _chunk(script, {}, _reason(script))
    if script.usage is not None:
        usage = {"usage": _usage(script.usage, script.contract)}
        yield {**_envelope(script, "chat.completion.chunk"), "choices": [], **usage}


def _thoughts(block: ThinkingBlock, number: int, script: Script) -> Iterator[Event]:
    field = place(block, script.contract)
    if field is None:
        return
    if field == TAGS:
        for piece in script.cut(tagged.written(block, script)):
            yield {"content": piece}
    elif field in reasoning_arrays.ARRAYS:
        mirror = plain_field(script.contract)
        for fragment, text in reasoning_arrays.fragments(block, field, number, script.cut):
            # The plain string beside an array repeats what the array says.
            yield {**({mirror: text} if mirror and text else {}), field: [fragment]}
    else:
        for piece in script.cut(block.thought):
            yield {field: piece}
        yield from ({name: value} for name, value in _seal(block, script.contract).items())


def _body(script: Script) -> Event:
    message: dict[str, Any] = {"role": "assistant", "content": _content(script)}
    for number, block in enumerate(script.message.thinking):
        field = place(block, script.contract)
        if field is None or field == TAGS:
            continue
        if field in reasoning_arrays.ARRAYS:
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
    said = (isinstance(block, TextBlock) for block in script.message.blocks)
    tags = (block.source_field == TAGS for block in script.message.thinking)
    return tagged.joined(script) if any((*said, *tags)) else None


def _envelope(script: Script, kind: str) -> Event:
    return {"id": script.named("chatcmpl-1"), "object": kind, "created": 1, "model": script.model}


def _chunk(script: Script, delta: Event, reason: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**_envelope(script, "chat.completion.chunk"), "choices": [choice]}


def _call(block: ToolCallBlock) -> Event:
    function = {"name": block.name, "arguments": arguments_text(block)}
    return {
        "id": block.id,
        "type": "function",
        "function": function,
        **beside(block, *_BESIDE_CALLS),
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
    if output is not None and contract.reasoning_beside_output:
        output -= usage.reasoning or 0
    counts: dict[str, Any] = known(prompt_tokens=usage.input, completion_tokens=output)
    if usage.input is not None and usage.output is not None:
        counts["total_tokens"] = usage.input + usage.output
    if usage.reasoning is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if usage.cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    return counts


# Which field a thought is in


def plain_field(contract: Contract) -> str | None:
    """Return the string field of a host: the one it wants back, else the first it has."""
    named = [name for name in contract.fields if name in _PLAIN]
    return contract.echo if contract.echo in named else next(iter(named), None)


def place(block: ThinkingBlock, contract: Contract) -> str | None:
    """Return the field that a thought comes in, ``None`` where the host has none for it."""
    source = block.source_field
    if source == TAGS:
        return TAGS if contract.tags else None
    if source in contract.fields and (source in _PLAIN or source in reasoning_arrays.ARRAYS):
        return source
    plain = plain_field(contract)
    sealed = form(block)
    if sealed != "plain" and not (plain and _SEALED.get(contract.sealed_by or "") == sealed):
        for name in contract.fields:
            if sealed in reasoning_arrays.FORMS.get(name, ()):
                return name
    if plain is None and contract.echo == TAGS:
        return TAGS
    return plain if block.thought else None


def _seal(block: ThinkingBlock, contract: Contract) -> Event:
    """Return what seals a plain string from beside it."""
    name = contract.sealed_by
    if name is None or _SEALED.get(name) != form(block):
        return {}
    return {name: block.encrypted or block.signature}


def _more(contract: Contract, message: Message) -> Iterator[str]:
    thoughts = message.thinking
    places = [place(block, contract) for block in thoughts]
    if len(set(places)) > 1:
        yield "thoughts in different fields"
    if None in places:
        yield "a thought, as the host has no field for it"
    for block, field in zip(thoughts, places, strict=True):
        forms = reasoning_arrays.FORMS.get(field or "", ("plain",))
        if form(block) not in forms and not _seal(block, contract):
            yield f"a thought that is {form(block)}"
        if block.source_field not in (None, field):
            yield f"the source field {block.source_field}"
        if block.provider_metadata and field not in reasoning_arrays.ARRAYS:
            yield "the metadata of a thought"
    if any(_seal(block, contract) for block in thoughts) and len(thoughts) > 1:
        yield "which of several thoughts is sealed"
    yield from tagged.losses(message, padded=contract.padded_tags)
    if places and places[0] in reasoning_arrays.ARRAYS:
        yield from reasoning_arrays.losses(message)
    else:
        yield from _merging(message.blocks)
    usage = message.usage
    beside_output = usage is not None and contract.reasoning_beside_output
    if usage and beside_output and (usage.reasoning or 0) > (usage.output or 0):
        yield "more tokens of reasoning than of output"


def _merging(blocks: tuple[Block, ...]) -> Iterator[str]:
    for before, after in pairwise(blocks):
        if isinstance(before, ThinkingBlock) and isinstance(after, ThinkingBlock):
            yield "where one thought ends and the next begins"


def _carriage(contract: Contract) -> Carriage:
    # Which forms and fields there are depends on all the thoughts of a message together.
    every = frozenset({"plain", "signed", "encrypted", "summary", "redacted"})
    fields = (*_PLAIN, *reasoning_arrays.ARRAYS, TAGS)
    return Carriage(
        forms=every,
        sources=dict.fromkeys(every, fields),
        thinking_metadata=frozenset({"detail"}),
        call_metadata=frozenset(_BESIDE_CALLS),
        usage=frozenset({"input", "output", "reasoning", "cached"}),
        merges=frozenset({"text"}),
        order=("thinking", "text", "tool_call"),
        more=lambda message, whole: _more(contract, message),
    )


PROTOCOL = Protocol(events=_events, body=_body, carriage=_carriage)
