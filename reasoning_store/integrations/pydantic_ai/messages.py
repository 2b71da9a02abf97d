"""Pydantic AI's messages as messages of the store, and the same messages back.

One message is one message: the parts of a request or of a response are its blocks. Each has the
form of its JSON (``foreign_forms``), so that it comes back equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
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
from reasoning_store.importers.frameworks import pydantic_ai as dumps
from reasoning_store.integrations import foreign_forms

Part = Mapping[str, Any]

_NAME: Final = "pydantic_ai"
_TO_PLAIN: Final = str.maketrans("-_", "+/")
_TO_URL_SAFE: Final = str.maketrans("+/", "-_")


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
    is_prompt = kinds == {"system-prompt"}
    # A first request has the system prompt with the words of the user.
    read = [part for part in form["parts"] if is_prompt or part["part_kind"] != "system-prompt"]
    blocks = [block for part in read for block in _request_blocks(part)]
    if not blocks:
        blocks = [rs.RawBlock(data={"parts": sorted(kinds)})]
    is_tool = all(isinstance(block, rs.ToolResponseBlock) for block in blocks)
    role: Any = "system" if is_prompt else "tool" if is_tool else "user"
    return rs.Message(role=role, blocks=tuple(blocks))


def _request_blocks(part: Part) -> Sequence[rs.Block]:
    content = part.get("content")
    if part["part_kind"] not in ("tool-return", "retry-prompt", "retry-feedback"):
        return dumps.read_content(content)
    if part["part_kind"] != "tool-return" and not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False)
    if not part.get("tool_name"):
        return [rs.TextBlock(text=str(content))]
    response = rs.ToolResponseBlock(
        call_id=part["tool_call_id"],
        tool_name=part["tool_name"],
        result=content,
        is_error=dumps.is_error(part),
    )
    return [response]


def _read_response(form: Part) -> rs.Message:
    # Parts that are no blocks are in the form alone: no provider has them.
    message = foreign_forms.read_reply(replace(dumps.read_response(form), others=[]))
    if form.get("provider_url"):
        origin = replace(message.origin or rs.Origin(), base_url=form["provider_url"])
        return replace(message, origin=origin)
    return message


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
    return ToolCallPart(block.name, foreign_forms.given_arguments(block), tool_call_id=block.id)


_PARTS: Final[Mapping[type, Callable[[Any, rs.Origin], Any]]] = {
    rs.TextBlock: _write_text,
    rs.ThinkingBlock: _write_thinking,
    rs.ToolCallBlock: _write_call,
}
