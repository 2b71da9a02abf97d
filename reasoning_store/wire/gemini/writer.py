"""Writes Gemini's generateContent; Interactions are only read.

A signature is sent on the part that it came on; two parts are never joined. A model that demands a
signature on the first call of a step gets the contract's ``dummy_signature`` where there is no
other. A call's result has the call's name and is an object: its value is under ``result`` or
``error``. The model is in the address, and an argument of the SDK's call. The official SDK spells
some names in the JSON its own way (``mime_type``) and writes bytes in the alphabet of URLs; where
that would send other JSON than the body, ``sdk_arguments`` gives the body's own in ``extra_body``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import (
    alternating,
    call_ids,
    content_parts,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.gemini.spellings import spellings
from reasoning_store.wire.media import from_base64
from reasoning_store.wire.message_writer import Outgoing, Part, Tools
from reasoning_store.wire.provider_turns import OpenTurn
from reasoning_store.wire.tools import call_arguments, media_base64, neutral_function

_SIGNATURE: Final = "thoughtSignature"
_ROLES: Final = {"user": "user", "assistant": "model"}
_PART_FIELDS: Final[Mapping[str, str]] = {
    spelling: name
    for name in (_SIGNATURE, "mediaResolution", "partMetadata", "videoMetadata")
    for spelling in spellings(name)
}
"""The fields of a part in addition to its data, in both spellings of responses."""
_SERVER_SIDE: Final = frozenset(
    {"executableCode", "codeExecutionResult", "toolCall", "toolResponse", _SIGNATURE, "thought"}
) | frozenset(_PART_FIELDS)
"""The members of a part that ingress stored raw; other raw data was of a candidate."""


class GeminiWriter(alternating.AlternatingWriter):
    """Writes the messages of one request."""

    model_is_in_address = True

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._names: dict[str, str] = {}

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        body["contents"] = self.messages()
        about = other_fields(system, ("parts",)) if isinstance(system, Mapping) else {}
        prompt = system.get("parts", ()) if isinstance(system, Mapping) else system
        if parts := self.system_parts(prompt):
            body["systemInstruction"] = {**about, "parts": parts}
        if tools:
            body["tools"] = _write_tools(tools)

    def complete_body(self, body: Part, turn: OpenTurn) -> None:
        if _beyond_arguments(body):
            # The SDK sends this object with any other argument, even empty.
            body.setdefault("generationConfig", {})

    def write_turn(self, turn: alternating.Turn) -> Part:
        return {"role": _ROLES[turn.role], "parts": turn.content}

    def is_blank(self, block: TextBlock) -> bool:
        return not block.text and not _part_fields(block)

    def write_parts(self, outgoing: Outgoing) -> list[Part]:
        self._names |= {call.id: call.name for call in outgoing.message.tool_calls}
        parts = super().write_parts(outgoing)
        if outgoing.owed and self.contract.returning.dummy_signature is not None:
            first = next((part for part in parts if "functionCall" in part), {})
            first.setdefault(_SIGNATURE, self.contract.returning.dummy_signature)
        return parts

    def write_raw(self, data: Mapping[str, Any]) -> Part | None:
        return dict(data) if _SERVER_SIDE.issuperset(data) else None

    def write_block(self, block: Block, *, is_reply: bool) -> Part | None:
        match block:
            case TextBlock():
                return {"text": block.text, **_part_fields(block)}
            case MediaBlock():
                return _write_media(block)
            case ThinkingBlock() if is_reply:
                return _write_thinking(block)
            case ToolCallBlock() if is_reply:
                call = {**_id(block.id), "name": block.name, "args": call_arguments(block)}
                return {"functionCall": call, **_part_fields(block)}
        return None

    def write_result_part(self, part: TextBlock | MediaBlock) -> Part | None:
        if isinstance(part, TextBlock):
            return {"text": part.text} if part.text else None
        is_taken = part.kind in ("image", "file") and part.data is not None
        return _write_media(part) if is_taken else None

    def write_result(self, block: ToolResponseBlock) -> Part:
        value, media = block.result, {}
        if content_parts.result_parts(block) is not None:
            value = self.result_content(block)
            if not isinstance(value, str):
                media = {"parts": [part for part in value if "inlineData" in part]}
                value = "\n\n".join(part["text"] for part in value if "text" in part)
        response = {"error" if block.is_error else "result": value}
        name = self._names.get(block.call_id) or block.tool_name
        about = {**_id(block.call_id), "name": name, "response": response}
        return {"functionResponse": {**about, **media}}


def _write_tools(tools: Iterable[Mapping[str, Any]]) -> list[Part]:
    """Return the tools, all functions in one; others as they are."""
    functions: list[Part] = []
    others: list[Part] = []
    for tool in tools:
        about = neutral_function(tool)
        if about is not None:
            schema = (
                {"parametersJsonSchema": about["parameters"]} if about.get("parameters") else {}
            )
            functions.append({**other_fields(about, ("parameters", "strict")), **schema})
        else:
            (functions if "name" in tool else others).append(dict(tool))
    return [*([{"functionDeclarations": functions}] if functions else []), *others]


# Parts


def _part_fields(block: Block) -> Part:
    about = block.provider_metadata or {}
    return {
        _PART_FIELDS[name]: about[name] for name in about if name in _PART_FIELDS and about[name]
    }


def _id(call_id: str) -> Part:
    return {} if call_ids.is_made_here(call_id) or not call_id else {"id": call_id}


def _write_thinking(block: ThinkingBlock) -> Part | None:
    if block.redacted or block.encrypted:
        return None
    part = {"text": block.thought, "thought": True}
    if block.signature:
        part[_SIGNATURE] = block.signature
    return part


def _write_media(block: MediaBlock) -> Part | None:
    if block.data is not None:
        data = {"mimeType": block.mime_type, "data": media_base64(block)}
        return {"inlineData": data, **_part_fields(block)}
    if block.url is not None:
        return {
            "fileData": {"mimeType": block.mime_type, "fileUri": block.url},
            **_part_fields(block),
        }
    return None


# The official SDK


_SPELT_ALIKE: Final = frozenset({"text", "thought", _SIGNATURE, "functionCall", "functionResponse"})
"""The members of a part that the SDK writes into its JSON unchanged."""


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the SDK's ``generate_content``."""
    contents = [
        {**content, "parts": [*map(_part_for_sdk, content["parts"])]}
        for content in body["contents"]
    ]
    out: dict[str, Any] = {"contents": contents}
    if exact := _beyond_arguments(body):
        out["config"] = {"http_options": {"extra_body": exact}}
    return out


def _beyond_arguments(body: Mapping[str, Any]) -> Part:
    """Return the parts of a body that the SDK would send otherwise from its own arguments."""
    exact = other_fields(body, ("contents",))
    if not all(_is_alike(part) for content in body["contents"] for part in content["parts"]):
        exact["contents"] = body["contents"]
    return exact


def _is_alike(part: Part) -> bool:
    if (signature := part.get(_SIGNATURE)) is not None:
        data = from_base64(signature)
        if data is None or urlsafe_b64encode(data).decode("ascii") != signature:
            return False
    return _SPELT_ALIKE.issuperset(part)


def _part_for_sdk(part: Part) -> Part:
    """Return a part with bytes where the SDK takes bytes."""
    out = dict(part)
    if _SIGNATURE in part:
        data = from_base64(out.pop(_SIGNATURE))
        if data is not None:
            out[_SIGNATURE] = data
    blob = part.get("inlineData")
    if isinstance(blob, Mapping):
        out["inlineData"] = {**blob, "data": from_base64(blob["data"])}
    about = part.get("functionResponse", {})
    if "parts" in about:
        out["functionResponse"] = {**about, "parts": [*map(_part_for_sdk, about["parts"])]}
    return out
