"""Pydantic AI's messages as messages of the store, and the same messages back.

One message is one message: the parts of a request or of a response are its blocks. Each has the
form of its JSON (``foreign_forms``), so that it comes back equal.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

import reasoning_store as rs
from reasoning_store.integrations import foreign_forms

Part = Mapping[str, Any]

_NAME: Final = "pydantic_ai"
_RESPONSES: Final = "openai.responses"
_APIS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic.messages",
    "bedrock": "bedrock.converse",
    "cohere": "cohere.chat",
    "google": "gemini.generate_content",
    "google-gla": "gemini.generate_content",
    "google-vertex": "gemini.generate_content",
    "mistral": "mistral.chat",
}
"""The protocol of a provider that has one alone."""
_PROVIDERS: Final[Mapping[str, str]] = {"google-gla": "google", "google-vertex": "google"}
_NOT_DONE: Final = frozenset({"failed", "denied", "interrupted", "retried"})
"""The outcomes of a call that are errors."""
_TO_PLAIN: Final = str.maketrans("-_", "+/")
_TO_URL_SAFE: Final = str.maketrans("+/", "-_")
_FIELDS: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking"})


def read_message(message: ModelMessage) -> rs.Message:
    """Return a message of Pydantic AI as one of the store; ``write_message`` gives it back."""
    (form,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    form = _respelled(form, _TO_PLAIN)
    read = _read_response if form["kind"] == "response" else _read_request
    return foreign_forms.with_form(read(form), _NAME, form, _is_thinking)


def _respelled(value: Any, spelling: Mapping[int, int]) -> Any:
    """Return JSON with the bytes of its media in the base64 that a media block has, or back."""
    if isinstance(value, list):
        return [_respelled(one, spelling) for one in value]
    if not isinstance(value, Mapping):
        return value
    made = {key: _respelled(one, spelling) for key, one in value.items()}
    if made.get("kind") == "binary" and isinstance(made.get("data"), str):
        made["data"] = made["data"].translate(spelling)
    return made


def _is_thinking(path: foreign_forms.Path, value: Any) -> bool:
    is_part = len(path) == 2 and path[0] == "parts" and isinstance(value, Mapping)
    return is_part and value.get("part_kind") == "thinking"


def _read_request(form: Part) -> rs.Message:
    kinds = {part["part_kind"] for part in form["parts"]}
    if kinds == {"system-prompt"}:
        blocks = [rs.TextBlock(text=part["content"]) for part in form["parts"]]
        return rs.Message(role="system", blocks=tuple(blocks))
    found = [block for part in form["parts"] for block in _request_blocks(part)]
    if not found:
        return rs.Message(role="user", blocks=(rs.RawBlock(data={"parts": sorted(kinds)}),))
    is_tool = all(isinstance(block, rs.ToolResponseBlock) for block in found)
    return rs.Message(role="tool" if is_tool else "user", blocks=tuple(found))


def _request_blocks(part: Part) -> Iterator[rs.Block]:
    """Yield the messages of a user or a tool, without the system prompt of a first request."""
    kind, content = part["part_kind"], part.get("content")
    if kind == "user-prompt":
        for one in [content] if isinstance(content, str) else content or ():
            yield from _content_block(one)
    elif kind == "tool-return":
        yield rs.ToolResponseBlock(
            call_id=part["tool_call_id"],
            tool_name=part["tool_name"],
            result=content,
            is_error=part.get("outcome") in _NOT_DONE,
        )
    elif kind in ("retry-prompt", "retry-feedback"):
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        if part.get("tool_name"):
            yield rs.ToolResponseBlock(
                call_id=part["tool_call_id"],
                tool_name=part["tool_name"],
                result=text,
                is_error=True,
            )
        else:
            yield rs.TextBlock(text=text)


def _content_block(one: Any) -> Iterator[rs.Block]:
    if isinstance(one, str):
        if one:
            yield rs.TextBlock(text=one)
        return
    kind, mime = one.get("kind"), one.get("media_type") or ""
    family = mime.partition("/")[0]
    of: Any = family if family in ("image", "audio", "video") else "file"
    if kind == "text-content":
        yield rs.TextBlock(text=one["content"])
    elif kind == "binary":
        data = base64.b64decode(one["data"])
        yield rs.MediaBlock(kind=of, mime_type=mime, data=data)
    elif isinstance(one.get("url"), str):
        yield rs.MediaBlock(kind=of, mime_type=mime, url=one["url"])


def _read_response(form: Part) -> rs.Message:
    parts: Sequence[Part] = form["parts"]
    blocks: list[rs.Block] = []
    is_of_responses = False
    for number, part in enumerate(parts):
        named = part.get("id")
        if part["part_kind"] == "thinking":
            made_by = part.get("provider_name") or form.get("provider_name")
            if _is_item(part, made_by):
                is_of_responses = True
                before = parts[number - 1] if number else {}
                if named and before.get("id") == named and before["part_kind"] == "thinking":
                    blocks[-1] = _longer(blocks[-1], part)
                    continue
            blocks.append(_thinking(part, made_by))
        elif part["part_kind"] == "text" and part["content"]:
            about = {"item_id": named} if named else None
            blocks.append(rs.TextBlock(text=part["content"], provider_metadata=about))
        elif part["part_kind"] == "tool-call":
            blocks.append(_call(part))
    provider = form.get("provider_name")
    origin = rs.Origin(
        provider=_PROVIDERS.get(provider or "", provider),
        api=_RESPONSES if is_of_responses else _APIS.get(provider or ""),
        model=form.get("model_name"),
        base_url=form.get("provider_url"),
        response_id=form.get("provider_response_id"),
    )
    return rs.assistant(
        *blocks,
        origin=None if origin == rs.Origin() else origin,
        usage=_usage(form.get("usage") or {}),
        finish_reason=form.get("finish_reason"),
    )


def _is_item(part: Part, made_by: str | None) -> bool:
    """Whether a thought is an item of the Responses protocol."""
    return str(part.get("id") or "").startswith("rs_") or (
        made_by in ("openai", "azure") and part.get("signature") is not None
    )


def _thinking(part: Part, made_by: str | None) -> rs.ThinkingBlock:
    thought, named, seal = part["content"], part.get("id"), part.get("signature")
    if _is_item(part, made_by):
        raw = (part.get("provider_details") or {}).get("raw_content")
        about: dict[str, Any] = {"item_type": "reasoning", **({"item_id": named} if named else {})}
        about["summary"] = [thought] if thought else []
        if isinstance(raw, list):
            about["content"] = raw
            thought = "\n\n".join(
                text for text in (thought, *raw) if isinstance(text, str) and text
            )
        field = "reasoning.summary" if thought else "reasoning.encrypted_content"
        return rs.ThinkingBlock(
            thought=thought,
            source_field=field,
            encrypted=seal or None,
            is_hidden=not thought,
            provider_metadata=about,
        )
    if named == "redacted_thinking":
        return rs.ThinkingBlock(source_field=named, encrypted=seal, redacted=True, is_hidden=True)
    return rs.ThinkingBlock(
        thought=thought,
        source_field=named if named in _FIELDS else None,
        signature=seal or None,
        is_hidden=not thought,
    )


def _longer(block: rs.Block, part: Part) -> rs.Block:
    """Return a thought with one more part of its summary."""
    assert isinstance(block, rs.ThinkingBlock)
    about = dict(block.provider_metadata or {})
    about["summary"] = [*about["summary"], part["content"]]
    said = (*about["summary"], *about.get("content", ()))
    return replace(
        block,
        thought="\n\n".join(text for text in said if text),
        source_field="reasoning.summary",
        is_hidden=False,
        provider_metadata=about,
    )


def _call(part: Part) -> rs.ToolCallBlock:
    details = part.get("provider_details") or {}
    about = {"item_id": part["id"]} if part.get("id") else {}
    if isinstance(seal := details.get("thought_signature"), str):
        about["thoughtSignature"] = seal
    return foreign_forms.read_call(part["tool_call_id"], part["tool_name"], part.get("args"), about)


def _usage(usage: Part) -> rs.Usage | None:
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "reasoning": "output_reasoning_tokens",
        "cached": "cache_read_tokens",
        "cache_write": "cache_write_tokens",
    }
    found = {ours: usage.get(theirs) for ours, theirs in names.items()}
    return (
        rs.Usage(**{ours: n or None for ours, n in found.items()}) if any(found.values()) else None
    )


def write_message(message: rs.Message, *, withheld: Collection[int] = ()) -> ModelMessage | None:
    """Return a message as Pydantic AI's; ``None`` for an erased one.

    It is equal to the message that it was read from. ``withheld`` are the indexes of thinking
    blocks to leave out. If reasoning is left out, or was erased, the texts and calls that it led to
    have no id: OpenAI refuses such an id without the reasoning before it.
    """
    if message.status == "erased":
        return None
    rebuilt = foreign_forms.rebuild(message, _NAME, withheld=withheld)
    if rebuilt is None:
        kept = [block for n, block in enumerate(message.blocks) if n not in withheld]
        write = _write_response if message.role == "assistant" else _write_request
        return write(message, kept)
    form = rebuilt.form
    if not rebuilt.is_whole:
        kinds = ("text", "tool-call")
        form["parts"] = [
            {**part, "id": None} if part["part_kind"] in kinds else part
            for part in form.get("parts", ())
        ]
    form = _respelled(form, _TO_URL_SAFE)
    made: ModelMessage = ModelMessagesTypeAdapter.validate_python([form])[0]
    return made


def _write_request(message: rs.Message, blocks: Sequence[rs.Block]) -> ModelRequest:
    texts = [block.text for block in blocks if isinstance(block, rs.TextBlock)]
    parts: list[Any] = [
        ToolReturnPart(block.tool_name, block.result, tool_call_id=block.call_id)
        for block in blocks
        if isinstance(block, rs.ToolResponseBlock)
    ]
    return ModelRequest(parts=[*parts, *[UserPromptPart(text) for text in texts]])


def _write_response(message: rs.Message, blocks: Sequence[rs.Block]) -> ModelResponse:
    origin = message.origin or rs.Origin()
    parts: list[Any] = []
    for block in blocks:
        write = _PARTS.get(type(block))
        parts += [] if write is None else [write(block, origin)]
    return ModelResponse(parts=parts, model_name=origin.model, provider_name=origin.provider)


def _write_text(block: rs.TextBlock, _: rs.Origin) -> TextPart:
    return TextPart(block.text)


def _write_thinking(block: rs.ThinkingBlock, origin: rs.Origin) -> ThinkingPart:
    named = (block.provider_metadata or {}).get("item_id")
    named = "redacted_thinking" if block.redacted else named or block.source_field
    seal = block.signature or block.encrypted
    return ThinkingPart(block.thought, id=named, signature=seal, provider_name=origin.provider)


def _write_call(block: rs.ToolCallBlock, _: rs.Origin) -> ToolCallPart:
    given = block.parameters if block.arguments is None else block.arguments
    return ToolCallPart(block.name, given, tool_call_id=block.id)


_PARTS: Final[Mapping[type, Callable[[Any, rs.Origin], Any]]] = {
    rs.TextBlock: _write_text,
    rs.ThinkingBlock: _write_thinking,
    rs.ToolCallBlock: _write_call,
}
