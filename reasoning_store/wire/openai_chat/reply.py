"""One reply of a model as a message of Chat Completions: texts, calls and thoughts.

A thought is sent in the field it came from if the host reads it there (``returns_in_own_field``),
and else in ``returns_in``. There are four kinds of places:

* a plain string with the text; several thoughts are one string (``join_thoughts``);
* an array of entries with the text, whole and in order (``reasoning_details``);
* a part of the content, in its place among the texts;
* between delimiters inside the text, in its place.

The seal of a plain string has a field of its own (``sealed_by``). A sealed block that was not read
from an array becomes an entry of the host's array. Opaque data on texts and calls is sent in the
place it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.body_path import put_at
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.message_writer import LeaveOut, Outgoing, join_thoughts
from reasoning_store.wire.openai_chat import reasoning_arrays
from reasoning_store.wire.openai_chat.content import THINKING

TAGS: Final = "think_tags"
"""The place of hosts that want reasoning inside the text, between delimiters."""

_BESIDE: Final = ("extra_content", "provider_specific_fields", "audio")
"""Fields next to a message's text that are stored with it."""

_DETAILS: Final = "reasoning_details"
_SEALED: Final = "reasoning.encrypted"


@dataclass(slots=True)
class _ReplyFields:
    """The fields of a message while its blocks are read."""

    fields: dict[str, list[ThinkingBlock]] = field(default_factory=dict)
    arrays: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    parts: list[str | dict[str, Any]] = field(default_factory=list)
    """The content in order: texts, and parts of other types."""
    seals: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


def write_reply(outgoing: Outgoing, contract: Contract, leave_out: LeaveOut) -> dict[str, Any]:
    """Return one reply as a message; blocks without a place are given to ``leave_out``."""
    collected = _ReplyFields()
    for block in outgoing.message.blocks:
        if isinstance(block, ThinkingBlock):
            _add_thought(block, contract, collected)
        elif isinstance(block, ToolCallBlock):
            collected.calls.append(_write_call(block))
        elif not _add_content(block, collected):
            leave_out(block)
    content = join_parts(collected.parts)
    if not content:
        # Text with calls is never lost; without any most hosts want null.
        bare = collected.calls or "refusal" in collected.extra or "audio" in collected.extra
        content = None if bare and not contract.messages.content_required else ""
    out: dict[str, Any] = {"role": "assistant", "content": content}
    # EC-007: empty reasoning is an omitted field, except where the host demands the field.
    blocks = outgoing.message.blocks
    out |= {
        name: join_thoughts(thoughts, blocks, contract_lookup.mirrored_fields(contract))
        if len(thoughts) > 1
        else thoughts[0].thought
        for name, thoughts in collected.fields.items()
    }
    out |= collected.arrays
    if collected.seals and contract.reading.sealed_by:
        out[contract.reading.sealed_by] = "".join(collected.seals)
    if outgoing.owed:
        _add_placeholders(contract, collected, out)
    out |= collected.extra
    if collected.calls:
        out["tool_calls"] = collected.calls
    return out


def _add_thought(block: ThinkingBlock, contract: Contract, collected: _ReplyFields) -> None:
    place = _field_of(block, contract)
    if place in reasoning_arrays.ALIASES and (entries := _array_entries(block, place)):
        collected.arrays.setdefault(place, []).extend(entries)
        return
    if place == THINKING:
        collected.parts += _write_thinking_parts(block)
        return
    if contract.reading.sealed_by:
        collected.seals += [seal for seal in (block.encrypted, block.signature) if seal]
    if not block.thought:
        return
    if place == TAGS:
        edge = "\n" if contract.returning.padded_tags else ""
        text = f"<think>{edge}{block.thought}{edge}</think>{edge}"
        collected.parts.append(text)
    elif place is not None:
        collected.fields.setdefault(place, []).append(block)


def _field_of(block: ThinkingBlock, contract: Contract) -> str | None:
    """Return the field of a thought: the one it came from, if the host reads it there."""
    source, rules = block.source_field, contract.returning
    own = source is not None and (
        source == rules.returns_in or source in rules.returns_in_own_field
    )
    if block.opaque:
        arrays = [name for name in rules.returns_in_own_field if name in reasoning_arrays.ALIASES]
        if arrays and not (own and source in arrays):
            return arrays[0]
    return source if own else rules.returns_in


def _array_entries(block: ThinkingBlock, alias: str) -> list[dict[str, Any]]:
    """Return the entries of a block in an array: the one it was read from, or new ones."""
    if block.source_field == alias and "detail" in (block.provider_metadata or {}):
        pieces = [block]
    else:
        # Most arrays have one type for what can be read, and another for what cannot.
        entry = replace(block, source_field=alias, provider_metadata=None)
        readable = replace(entry, encrypted=None, redacted=False)
        sealed = replace(entry, thought="", signature=None)
        pieces = [piece for piece in (readable, sealed) if piece.thought or piece.opaque]
    entries = (reasoning_arrays.entry(piece) for piece in pieces)
    return [entry for entry in entries if entry is not None]


def _write_thinking_parts(block: ThinkingBlock) -> list[dict[str, Any]]:
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


def _add_content(block: Block, collected: _ReplyFields) -> bool:
    """Add visible content; return whether the protocol has a place for it."""
    about = block.provider_metadata or {}
    if isinstance(block, TextBlock):
        collected.extra |= {name: about[name] for name in _BESIDE if name in about}
        if about.get("refusal"):
            collected.extra["refusal"] = collected.extra.get("refusal", "") + block.text
        elif "audio" not in about and block.text:
            collected.parts.append(block.text)
        return True
    if isinstance(block, RawBlock) and is_part(block.data):
        collected.parts.append(dict(block.data))
        return True
    if isinstance(block, MediaBlock) and block.kind == "audio" and about.get("id"):
        collected.extra["audio"] = {"id": about["id"]}  # the host has the sound itself
        return True
    return False


def is_part(data: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether raw data is a part of a content."""
    return isinstance(data, Mapping) and isinstance(data.get("type"), str)


def join_parts(parts: Sequence[str | dict[str, Any]]) -> Any:
    """Return a string where all parts are texts, else the list of parts."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "".join(texts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _write_call(block: ToolCallBlock) -> dict[str, Any]:
    about = dict(block.provider_metadata or {})
    arguments = codec.argument_text(block)
    if about.pop("type", None) == "custom":
        body = {"type": "custom", "custom": {"name": block.name, "input": arguments}}
    else:
        body = {"type": "function", "function": {"name": block.name, "arguments": arguments}}
    return {**about, "id": block.id, **body}


def _add_placeholders(contract: Contract, collected: _ReplyFields, out: dict[str, Any]) -> None:
    """Add the placeholders that the host demands where there is no reasoning."""
    if (
        contract.returning.empty_field_in != "none"
        and contract.returning.returns_in
        and not collected.fields
        and not collected.arrays
    ):
        out[contract.returning.returns_in] = ""
    if contract.returning.dummy_signature is None or not collected.calls:
        return
    if contract.returning.call_signature_at is not None:
        put_at(
            collected.calls[0],
            contract.returning.call_signature_at,
            contract.returning.dummy_signature,
            over=False,
        )
        return
    details = collected.arrays.get(_DETAILS, [])
    if not any(entry.get("type") == _SEALED for entry in details):
        dummy = {
            "type": _SEALED,
            "id": collected.calls[0]["id"],
            "data": contract.returning.dummy_signature,
        }
        out[_DETAILS] = [*details, {**dummy, "format": "google-gemini-v1", "index": len(details)}]
