"""OpenAI Chat Completions, the writing direction: messages as a request body.

Knows the protocol's shapes and, from the contract, where a host wants reasoning: in a
field of the assistant message, inside its text, or nowhere. What is kept was decided
before: every thinking block that stands in a message here is written. The reading
direction is ``openai_chat``; this module must not know settings, tokens or SQL.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire.base import Asked, Outgoing, Written
from reasoning_store.wire.contracts import Contract

THINK_TAGS = "think_tags"
"""The ``echo`` of hosts that want reasoning inside the text, between delimiters."""

SDK_PARAMETERS = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages metadata modalities model n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key reasoning_effort response_format safety_identifier seed "
    "service_tier stop store stream stream_options temperature tool_choice tools top_logprobs "
    "top_p user verbosity web_search_options".split()
)
"""What the official SDK's call takes by name; the rest goes through its ``extra_body``."""

BUILT = frozenset({"model", "messages", "tools"})
"""The keys of the body that are made here and that nobody else may set."""


def write(
    messages: Sequence[Outgoing],
    contract: Contract,
    *,
    model: str | None,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    asked: Asked,
) -> Written:
    """Return the request's JSON body."""
    body: dict[str, Any] = {}
    if model is not None:
        body["model"] = model
    body["messages"] = [
        *([{"role": "system", "content": system}] if system else []),
        *(item for message in messages for item in _message(message, contract)),
    ]
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    unsaid = [
        name
        for name, is_set in (
            ("enabled", asked.enabled is False),
            ("effort", asked.effort is not None),
            ("budget_tokens", asked.budget_tokens is not None),
        )
        if is_set
    ]
    return Written(body=body, unsaid=tuple(unsaid))


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official SDK's call."""
    known = {key: value for key, value in body.items() if key in SDK_PARAMETERS}
    rest = {key: value for key, value in body.items() if key not in SDK_PARAMETERS}
    return {**known, "extra_body": rest} if rest else known


def _message(outgoing: Outgoing, contract: Contract) -> list[dict[str, Any]]:
    message = outgoing.message
    answers = [block for block in message.blocks if isinstance(block, ToolResponseBlock)]
    rest = tuple(block for block in message.blocks if not isinstance(block, ToolResponseBlock))
    out = [_answer(block) for block in answers]
    if message.role == "assistant":
        out.append(_assistant(message, contract, owed=outgoing.owed))
    elif rest:
        role = "user" if message.role == "tool" else message.role
        out.append({"role": role, "content": _content(rest)})
    return out


def _assistant(message: Message, contract: Contract, *, owed: bool) -> dict[str, Any]:
    thought = "".join(block.thought for block in message.thinking)
    text = message.text
    calls = message.tool_calls
    if thought and contract.echo == THINK_TAGS:
        text = f"<think>{thought}</think>{text}"
    # Text beside calls is never lost; without any the protocol wants null.
    out: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None}
    if contract.echo not in (None, THINK_TAGS):
        # EC-007: empty reasoning is an omitted field, except where the host demands the field.
        if thought:
            out[contract.echo] = thought
        elif contract.empty_field and owed:
            out[contract.echo] = ""
    if calls:
        out["tool_calls"] = [_call(call) for call in calls]
    return out


def _call(block: ToolCallBlock) -> dict[str, Any]:
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": block.name, "arguments": codec.argument_text(block)},
    }


def _answer(block: ToolResponseBlock) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": block.call_id,
        "content": codec.result_text(block),
    }


def _content(blocks: Iterable[Block]) -> Any:
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(block: Block) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, MediaBlock):
        return _MEDIA[block.kind](block)
    return None


def _image(block: MediaBlock) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": block.url or _data_url(block)}}


def _audio(block: MediaBlock) -> dict[str, Any]:
    data = base64.b64encode(block.data or b"").decode("ascii")
    return {
        "type": "input_audio",
        "input_audio": {"data": data, "format": block.mime_type.rsplit("/", 1)[-1]},
    }


def _file(block: MediaBlock) -> dict[str, Any]:
    about = {"filename": block.name} if block.name else {}
    return {"type": "file", "file": {**about, "file_data": block.url or _data_url(block)}}


def _data_url(block: MediaBlock) -> str:
    data = base64.b64encode(block.data or b"").decode("ascii")
    return f"data:{block.mime_type};base64,{data}"


_MEDIA: dict[str, Callable[[MediaBlock], dict[str, Any]]] = {
    "image": _image,
    "audio": _audio,
    "video": _file,
    "file": _file,
}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the protocol's form; one that already has it stays as it is."""
    if "type" in tool:
        return dict(tool)
    return {"type": "function", "function": dict(tool)}
