"""One reply of a model as a message of Chat Completions: what it said, called and thought.

Theory. A thought goes back to where it came from, where the host reads it there (``echo``
and ``echoes``), and else to the host's usual place. There are four kinds of places:

* a plain string beside the text; several thoughts are one string, in order;
* an array of entries beside the text, whole and in order (``reasoning_details``);
* a part of the content, in its place among the texts;
* between delimiters inside the text, in its place.

What seals a plain string stands in a field of its own (``sealed_by``). A block that was
not read from an array and has a seal becomes an entry of the host's array. Opaque data on
texts and calls stands where it was found.

Knows one message. It must not know the others, and decides nothing about what is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.wire import reasoning_details
from reasoning_store.wire.base import Outgoing, name_of
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_content import THINKING
from reasoning_store.wire.reasoning_parameters import put

TAGS: Final = "think_tags"
"""The place of hosts that want reasoning inside the text, between delimiters."""

_BESIDE: Final = ("extra_content", "provider_specific_fields", "audio")
"""What stands beside the text of a message and was kept with it."""

_DETAILS: Final = "reasoning_details"
_SEALED: Final = "reasoning.encrypted"


@dataclass(slots=True)
class _Reply:
    """What is known of the message while its blocks are read."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    arrays: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    parts: list[str | dict[str, Any]] = field(default_factory=list)
    """What was said, in order: texts, and parts that are something else."""
    seals: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)


def reply(outgoing: Outgoing, contract: Contract, left_out: dict[str, None]) -> dict[str, Any]:
    """Return the message of one reply; kinds that have no place are noted in ``left_out``."""
    made = _Reply()
    for block in outgoing.message.blocks:
        if isinstance(block, ThinkingBlock):
            _think(block, contract, made)
        elif isinstance(block, ToolCallBlock):
            made.calls.append(_call(block))
        elif not _say(block, made):
            left_out[name_of(block)] = None
    content = together(made.parts)
    if not content:
        # Text beside calls is never lost; without any most hosts want null.
        bare = made.calls or "refusal" in made.beside or "audio" in made.beside
        content = None if bare and not contract.content_required else ""
    out: dict[str, Any] = {"role": "assistant", "content": content}
    # EC-007: empty reasoning is an omitted field, except where the host demands the field.
    out |= {name: "".join(thoughts) for name, thoughts in made.fields.items()}
    out |= made.arrays
    if made.seals and contract.sealed_by:
        out[contract.sealed_by] = "".join(made.seals)
    if outgoing.owed:
        _fill(contract, made, out)
    out |= made.beside
    if made.calls:
        out["tool_calls"] = made.calls
    return out


def _think(block: ThinkingBlock, contract: Contract, made: _Reply) -> None:
    place = _place(block, contract)
    if place in reasoning_details.ALIASES and (entries := _entries(block, place)):
        made.arrays.setdefault(place, []).extend(entries)
        return
    if place == THINKING:
        made.parts += _thinking_parts(block)
        return
    if contract.sealed_by:
        made.seals += [seal for seal in (block.encrypted, block.signature) if seal]
    if not block.thought:
        return
    if place == TAGS:
        edge = "\n" if contract.padded_tags else ""
        text = f"<think>{edge}{block.thought}{edge}</think>{edge}"
        made.parts.append(text)
    elif place is not None:
        made.fields.setdefault(place, []).append(block.thought)


def _place(block: ThinkingBlock, contract: Contract) -> str | None:
    """Return where a thought goes: where it came from, if the host reads it there."""
    source = block.source_field
    own = source is not None and source in (contract.echo, *contract.echoes)
    arrays = [name for name in contract.echoes if name in reasoning_details.ALIASES]
    if block.opaque and arrays and not (own and source in arrays):
        return arrays[0]
    return source if own else contract.echo


def plain_place(source_field: str | None, contract: Contract) -> str | None:
    """Return the field in which a thought of nothing but words is a string of its own.

    None where it is anything else: an entry, a part of the content, a piece of the text.
    """
    place = _place(ThinkingBlock(thought="-", source_field=source_field), contract)
    return None if place in (THINKING, TAGS, *reasoning_details.ALIASES) else place


def _entries(block: ThinkingBlock, alias: str) -> list[dict[str, Any]]:
    """Return the entries of an array that a block is: the one it was read from, or new ones."""
    if block.source_field == alias and "detail" in (block.provider_metadata or {}):
        pieces = [block]
    else:
        # Most arrays have one type for what can be read, and another for what cannot.
        made = replace(block, source_field=alias, provider_metadata=None)
        readable = replace(made, encrypted=None, redacted=False)
        sealed = replace(made, thought="", signature=None)
        pieces = [piece for piece in (readable, sealed) if piece.thought or piece.opaque]
    entries = (reasoning_details.entry(piece) for piece in pieces)
    return [entry for entry in entries if entry is not None]


def _thinking_parts(block: ThinkingBlock) -> list[dict[str, Any]]:
    """Return a thought as parts of the content, in Mistral's form: a list of pieces.

    A part has room for one seal, and none for a thought that cannot be read.
    """
    references = (block.provider_metadata or {}).get("references") or ()
    pieces = [{"type": "text", "text": block.thought}] if block.thought else []
    seals: list[str | None] = [seal for seal in (block.signature, block.encrypted) if seal]
    out: list[dict[str, Any]] = []
    for seal in seals or [None]:
        part = {"type": "thinking", "thinking": [*pieces, *references]}
        if seal or part["thinking"]:
            out.append({**part, "signature": seal} if seal else part)
        pieces, references = [], ()
    return out


def _say(block: Block, made: _Reply) -> bool:
    """Add what was said; return whether the protocol has a place for it."""
    about = block.provider_metadata or {}
    if isinstance(block, TextBlock):
        made.beside |= {name: about[name] for name in _BESIDE if name in about}
        if about.get("refusal"):
            made.beside["refusal"] = made.beside.get("refusal", "") + block.text
        elif "audio" not in about and block.text:
            made.parts.append(block.text)
        return True
    if isinstance(block, RawBlock) and is_part(block.data):
        made.parts.append(dict(block.data))
        return True
    if isinstance(block, MediaBlock) and block.kind == "audio" and about.get("id"):
        made.beside["audio"] = {"id": about["id"]}  # the host has the sound itself
        return True
    return False


def is_part(data: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether what was kept as it came is a part of a content."""
    return isinstance(data, Mapping) and isinstance(data.get("type"), str)


def together(parts: Sequence[str | dict[str, Any]]) -> Any:
    """Return a string where there is nothing but text, which are the strings, else the parts.

    A part that was kept as it came is whatever somebody made of it, and is never looked into.
    """
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "".join(texts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _call(block: ToolCallBlock) -> dict[str, Any]:
    about = dict(block.provider_metadata or {})
    arguments = codec.argument_text(block)
    if about.pop("type", None) == "custom":
        body = {"type": "custom", "custom": {"name": block.name, "input": arguments}}
    else:
        body = {"type": "function", "function": {"name": block.name, "arguments": arguments}}
    return {**about, "id": block.id, **body}


def _fill(contract: Contract, made: _Reply, out: dict[str, Any]) -> None:
    """Put what the host demands where there is nothing to put there."""
    if contract.empty_field != "none" and contract.echo and not made.fields and not made.arrays:
        out[contract.echo] = ""
    if contract.dummy_signature is None or not made.calls:
        return
    if contract.call_signature is not None:
        put(made.calls[0], contract.call_signature, contract.dummy_signature, over=False)
        return
    details = made.arrays.get(_DETAILS, [])
    if not any(entry.get("type") == _SEALED for entry in details):
        dummy = {"type": _SEALED, "id": made.calls[0]["id"], "data": contract.dummy_signature}
        out[_DETAILS] = [*details, {**dummy, "format": "google-gemini-v1", "index": len(details)}]
