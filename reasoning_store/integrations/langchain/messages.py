"""LangChain's messages as messages of the store, and back.

A message that was read from LangChain is written as it was; one that was recorded otherwise, in
LangChain's standard blocks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

import reasoning_store as rs
from reasoning_store.formats import call_arguments, tool_response
from reasoning_store.importers.frameworks import langchain as dumps
from reasoning_store.importers.reply_parts import THOUGHT_FIELDS
from reasoning_store.integrations import foreign_forms

_NAME: Final = "langchain"
_PROVIDERS: Final[Mapping[str, str]] = {
    "aws": "bedrock_converse",
    "google": "google_genai",
    "mistral": "mistralai",
    "vertex": "google_vertexai",
}
"""LangChain's names of providers, where they are others than the store's."""
_RESPONSES: Final = "openai.responses"
_THOUGHT_FIELDS: Final = THOUGHT_FIELDS | {dumps.SIGNATURES}
"""The keys in which model classes put a thought, or its seal, that is no part of the content."""
_THOUGHT_PARTS: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content"}
)


def read_message(message: BaseMessage) -> rs.Message:
    """Return a message of LangChain as one to be stored; all of it can be written again."""
    if message.type == "remove":
        raise rs.InvalidCall(
            "a RemoveMessage is an order to a graph, and no message", hint="leave it out"
        )
    form = _form(message)
    plain = _read_plain(message_to_dict(message))
    if not isinstance(message, AIMessage) and _is_written_so(plain, form):
        return plain
    return foreign_forms.with_form(plain, _NAME, form, _is_thought)


def _read_plain(dumped: Mapping[str, Any]) -> rs.Message:
    """Return the blocks of a message, its origin and its usage."""
    data = dumped["data"]
    role = dumps.role_of(dumped["type"], data) or "user"
    if role == "assistant":
        return foreign_forms.read_reply(dumps.read_reply(data))
    if role == "tool":
        return rs.tool(
            tool_response(
                data.get("tool_call_id"),
                data["content"],
                name=data.get("name"),
                is_error=data.get("status") == "error",
            )
        )
    blocks = dumps.read_content(data["content"])
    return rs.Message(role=role, blocks=tuple(blocks) or (rs.TextBlock(text=""),))


def write_messages(message: rs.Message, *, withheld: Collection[int] = ()) -> list[BaseMessage]:
    """Return a stored message as LangChain's: a message for each tool response, else one.

    ``withheld`` are the indexes of thinking blocks to leave out. An erased message gives none.
    """
    if message.status == "erased":
        return []
    rebuilt = foreign_forms.rebuild(message, _NAME, withheld=withheld)
    if rebuilt is not None:
        data = {"content": "", **rebuilt.form["data"]}  # of a reply all thought, erased
        if not rebuilt.is_whole and (message.origin or rs.Origin()).api == _RESPONSES:
            data["content"] = _unbound(data["content"])
        made: list[BaseMessage] = messages_from_dict([{**rebuilt.form, "data": data}])
        return made
    kept = [block for number, block in enumerate(message.blocks) if number not in withheld]
    return _write_plain(message, kept)


def _unbound(content: Any) -> Any:
    """Return content without the ids of its items: they name reasoning that is not sent."""
    if not isinstance(content, list):
        return content
    return [
        {key: item for key, item in part.items() if key != "id"}
        if isinstance(part, Mapping) and part.get("type") not in _THOUGHT_PARTS
        else part
        for part in content
    ]


def _form(message: BaseMessage) -> dict[str, Any]:
    """Return the JSON of a message, without the fields that have their default."""
    whole = message_to_dict(message)
    fields = type(message).model_fields
    data = {
        name: value
        for name, value in whole["data"].items()
        if name == "content"
        or name not in fields
        or value != fields[name].get_default(call_default_factory=True)
    }
    return {"type": whole["type"], "data": data}


def _is_written_so(plain: rs.Message, form: Mapping[str, Any]) -> bool:
    written = write_messages(plain)
    return len(written) == 1 and _form(written[0]) == form


def _is_thought(path: foreign_forms.Path, value: Any) -> bool:
    if path[:2] == ("data", "additional_kwargs"):
        return len(path) == 3 and path[2] in _THOUGHT_FIELDS
    if path[:2] != ("data", "content") or len(path) != 3 or not isinstance(value, Mapping):
        return False
    part = value.get("value") if value.get("type") == "non_standard" else value
    return isinstance(part, Mapping) and part.get("type") in _THOUGHT_PARTS


def _write_plain(message: rs.Message, blocks: Sequence[rs.Block]) -> list[BaseMessage]:
    """Return the messages of these blocks of a message."""
    if message.role == "tool":
        return _write_results(blocks)
    if message.role == "assistant":
        return [_write_reply(message, blocks)]
    kind = HumanMessage if message.role == "user" else SystemMessage
    return [kind(content=_content(blocks))]


def _content(blocks: Sequence[rs.Block]) -> Any:
    """Return a text where the blocks are one, else standard blocks."""
    if len(blocks) == 1 and isinstance(blocks[0], rs.TextBlock):
        return blocks[0].text
    return [part for block in blocks if (part := _standard(block)) is not None]


def _write_results(blocks: Sequence[rs.Block]) -> list[BaseMessage]:
    return [
        ToolMessage(
            content=_result(block.result),
            tool_call_id=block.call_id,
            **({"name": block.tool_name} if block.tool_name else {}),
            status="error" if block.is_error else "success",
        )
        for block in blocks
        if isinstance(block, rs.ToolResponseBlock)
    ]


def _result(result: Any) -> Any:
    is_content = isinstance(result, str) or (
        isinstance(result, list) and all(isinstance(part, str | dict) for part in result)
    )
    return result if is_content else json.dumps(result, ensure_ascii=False)


def _write_reply(message: rs.Message, blocks: Sequence[rs.Block]) -> BaseMessage:
    origin = message.origin or rs.Origin()
    provider = _PROVIDERS.get(origin.provider or "", origin.provider)
    about = {"model_provider": provider, "model_name": origin.model}
    calls = [
        {"name": block.name, "args": call_arguments(block), "id": block.id, "type": "tool_call"}
        for block in blocks
        if isinstance(block, rs.ToolCallBlock)
    ]
    thinking = [block for block in blocks if isinstance(block, rs.ThinkingBlock)]
    rest = [one for one in blocks if not isinstance(one, rs.ThinkingBlock | rs.ToolCallBlock)]
    kwargs: dict[str, Any] = {}
    content: Any
    if any(one.opaque for one in thinking) or not all(map(_is_text, rest)):
        content = [part for block in blocks if (part := _standard(block)) is not None]
        about["output_version"] = "v1"
    else:
        content = "".join(one.text for one in rest if isinstance(one, rs.TextBlock))
        if thinking:
            kwargs["reasoning_content"] = "\n\n".join(one.thought for one in thinking)
    return AIMessage(
        content=content,
        tool_calls=calls,
        additional_kwargs=kwargs,
        response_metadata={key: item for key, item in about.items() if item},
    )


def _is_text(block: rs.Block) -> bool:
    return isinstance(block, rs.TextBlock)


def _standard(block: rs.Block) -> dict[str, Any] | None:
    """Return the standard block of LangChain."""
    match block:
        case rs.TextBlock():
            return {"type": "text", "text": block.text}
        case rs.ThinkingBlock():
            return _write_thought(block)
        case rs.ToolCallBlock():
            return {
                "type": "tool_call",
                "id": block.id,
                "name": block.name,
                "args": call_arguments(block),
            }
        case rs.MediaBlock():
            return _write_media(block)
        case rs.RawBlock():
            return {"type": "non_standard", "value": block.data}
        case _:
            return None


def _write_thought(block: rs.ThinkingBlock) -> dict[str, Any]:
    if block.redacted:
        value = {"type": "redacted_thinking", "data": block.encrypted or ""}
        return {"type": "non_standard", "value": value}
    seals = {"signature": block.signature, "encrypted_content": block.encrypted}
    extras = {key: item for key, item in seals.items() if item is not None}
    named = (block.provider_metadata or {}).get("item_id")
    return {
        "type": "reasoning",
        "reasoning": block.thought,
        **({"id": named} if named else {}),
        **({"extras": extras} if extras else {}),
    }


def _write_media(block: rs.MediaBlock) -> dict[str, Any] | None:
    made: dict[str, Any] = {"type": block.kind, "mime_type": block.mime_type}
    if block.data is not None:
        return {**made, "base64": foreign_forms.in_base64(block.data)}
    if block.url is not None:
        return {**made, "url": block.url}
    return None
