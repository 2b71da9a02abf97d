"""Gemini's generateContent, the writing direction: messages as a request body.

Theory. A user and a model take turns (``turns``), each turn a list of parts. A signature
goes back on the part that it came on, whatever that part is; two parts are never joined. A
model that demands a signature on the first call of a step takes the contract's
``dummy_signature`` where there is none. A call's answer is named like the call, and its value
stands under ``result`` or ``error``, so that it is an object whatever the tool gave.

The model stands in the address, so it is beside the body. The official SDK spells some names
in the JSON its own way (``mime_type``) and writes bytes in the letters of URLs; where that
would send other JSON than the body, ``sdk_arguments`` gives the body's own in ``extra_body``.
Interactions are read (``gemini_interactions``) and not written.

What is kept was decided before. This module must not know settings, tokens or SQL.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store.blocks import (
    Block,
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import asking, call_ids, neutral, turns
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of, without
from reasoning_store.wire.binary import from_base64
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.pages import Page

Part = dict[str, Any]

BUILT: Final = frozenset({"model", "contents", "systemInstruction", "tools"})

_SIGNATURE: Final = "thoughtSignature"
_ROLES: Final = {"user": "user", "assistant": "model"}
_BESIDE: Final[Mapping[str, str]] = {
    _SIGNATURE: _SIGNATURE,
    "mediaResolution": "mediaResolution",
    "media_resolution": "mediaResolution",
    "partMetadata": "partMetadata",
    "part_metadata": "partMetadata",
    "videoMetadata": "videoMetadata",
    "video_metadata": "videoMetadata",
}
"""What a part may say beside its data, in both spellings that responses come in."""
_SERVER_SIDE: Final = frozenset(
    {"executableCode", "codeExecutionResult", "toolCall", "toolResponse", _SIGNATURE, "thought"}
) | frozenset(_BESIDE)
"""What a part consists of that ingress kept whole; anything else was said of a candidate."""


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


class _Page(turns.Alternating):
    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._names: dict[str, str] = {}

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: Part = {"contents": self.messages(copies=copies)}
        if prompt := _system(system, self.begun):
            body["systemInstruction"] = prompt
        if tools:
            body["tools"] = _tools(tools)
        unsaid, held = asking.ask(asked, self.contract, body, self.turn)
        if _beyond_arguments(body):
            # The SDK sends this object with anything else, though it be empty.
            body.setdefault("generationConfig", {})
        return Written(
            body=body,
            unsaid=unsaid,
            held=held,
            left_out=tuple(self.left_out),
            beside={} if model is None else {"model": model},
        )

    def closed(self, turn: turns.Turn) -> Part:
        return {"role": _ROLES[turn.role], "parts": turn.content}

    def said(self, outgoing: Outgoing) -> list[Part]:
        message = outgoing.message
        side = "assistant" if message.role == "assistant" else "user"
        self._names |= {call.id: call.name for call in message.tool_calls}
        parts = []
        for block in message.blocks:
            if isinstance(block, TextBlock) and not block.text and not _beside(block):
                continue
            if isinstance(block, RawBlock):
                own = turns.is_own(block, message, self.contract)
                part = dict(block.data) if own and _SERVER_SIDE.issuperset(block.data) else None
            else:
                render = _PARTS[side].get(type(block))
                part = render(block) if render is not None else None
            if part is None:
                self.left_out[name_of(block)] = None
            else:
                parts.append(part)
        if outgoing.owed and self.contract.dummy_signature is not None:
            first = next((part for part in parts if "functionCall" in part), {})
            first.setdefault(_SIGNATURE, self.contract.dummy_signature)
        return parts

    def answer(self, block: ToolResponseBlock) -> Part:
        value = {"error" if block.is_error else "result": block.result}
        name = self._names.get(block.call_id) or block.tool_name
        response = {**_id(block.call_id), "name": name, "response": value}
        return {"functionResponse": response}


def _system(system: Any, begun: Iterable[str]) -> Part | None:
    texts = neutral.system_texts(system)
    if texts is None:
        given = system.get("parts", ()) if isinstance(system, Mapping) else system
        about = without(system, ("parts",)) if isinstance(system, Mapping) else {}
    else:
        given, about = [{"text": text} for text in texts], {}
    parts = [*given, *({"text": text} for text in begun)]
    return {**about, "parts": parts} if parts else None


def _tools(tools: Iterable[Mapping[str, Any]]) -> list[Part]:
    """Return the tools, all functions in one; others stay as they are."""
    functions: list[Part] = []
    others: list[Part] = []
    for tool in tools:
        about = neutral.function(tool)
        if about is not None:
            schema = (
                {"parametersJsonSchema": about["parameters"]} if about.get("parameters") else {}
            )
            functions.append({**without(about, ("parameters", "strict")), **schema})
        else:
            (functions if "name" in tool else others).append(dict(tool))
    return [*([{"functionDeclarations": functions}] if functions else []), *others]


# Parts


def _beside(block: Block) -> Part:
    about = block.provider_metadata or {}
    return {_BESIDE[name]: about[name] for name in about if name in _BESIDE and about[name]}


def _id(call_id: str) -> Part:
    return {} if call_ids.is_made(call_id) or not call_id else {"id": call_id}


def _text(block: TextBlock) -> Part:
    return {"text": block.text, **_beside(block)}


def _thinking(block: ThinkingBlock) -> Part | None:
    if block.redacted or block.encrypted:
        return None
    part = {"text": block.thought, "thought": True}
    if block.signature:
        part[_SIGNATURE] = block.signature
    return part


def _call(block: ToolCallBlock) -> Part:
    call = {**_id(block.id), "name": block.name, "args": neutral.arguments(block)}
    return {"functionCall": call, **_beside(block)}


def _media(block: MediaBlock) -> Part | None:
    if block.data is not None:
        data = {"mimeType": block.mime_type, "data": neutral.base64_of(block)}
        return {"inlineData": data, **_beside(block)}
    if block.url is not None:
        return {
            "fileData": {"mimeType": block.mime_type, "fileUri": block.url},
            **_beside(block),
        }
    return None


_PARTS: Final[Mapping[str, Mapping[type, Callable[[Any], Part | None]]]] = {
    "user": {TextBlock: _text, MediaBlock: _media},
    "assistant": {
        TextBlock: _text,
        ThinkingBlock: _thinking,
        ToolCallBlock: _call,
        MediaBlock: _media,
    },
}
"""Who may say what."""


# The official SDK


_SPELT_ALIKE: Final = frozenset({"text", "thought", _SIGNATURE, "functionCall", "functionResponse"})
"""The members of a part that the SDK writes into its JSON as they stand."""


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the SDK's ``generate_content``."""
    out: dict[str, Any] = {"contents": [*map(_said_to_sdk, body["contents"])]}
    if exact := _beyond_arguments(body):
        out["config"] = {"http_options": {"extra_body": exact}}
    return out


def _beyond_arguments(body: Mapping[str, Any]) -> Part:
    """Return what of a body the SDK would not send so from its own arguments."""
    exact = without(body, ("contents",))
    if not all(_is_alike(part) for content in body["contents"] for part in content["parts"]):
        exact["contents"] = body["contents"]
    return exact


def _is_alike(part: Part) -> bool:
    if (signature := part.get(_SIGNATURE)) is not None:
        data = from_base64(signature)
        if data is None or urlsafe_b64encode(data).decode("ascii") != signature:
            return False
    return _SPELT_ALIKE.issuperset(part)


def _said_to_sdk(content: Part) -> Part:
    """Return what one side says, which is itself where it has no bytes."""
    parts = content["parts"]
    if not any(_SIGNATURE in part or "inlineData" in part for part in parts):
        return content
    return {**content, "parts": [_for_sdk(part) for part in parts]}


def _for_sdk(part: Part) -> Part:
    """Return a part with bytes where the SDK takes bytes."""
    out = dict(part)
    if _SIGNATURE in part:
        data = from_base64(out.pop(_SIGNATURE))
        if data is not None:
            out[_SIGNATURE] = data
    blob = part.get("inlineData")
    if isinstance(blob, Mapping):
        out["inlineData"] = {**blob, "data": from_base64(blob["data"])}
    return out
