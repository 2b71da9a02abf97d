"""The blocks of LangChain's messages.

A message is read by its parts, in the form that its model class gives them: the parts of
Anthropic, the items of the Responses API, LangChain's own standard blocks, a text with fields
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import BaseMessage

import reasoning_store as rs
from reasoning_store.importers import content_parts
from reasoning_store.integrations import foreign_forms

RESPONSES: Final = "openai.responses"
SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
THOUGHT_FIELDS: Final = frozenset(
    """
    reasoning_content reasoning reasoning_details reasoning_text thinking thinking_blocks
    """.split()
)
"""The keys in which model classes put a thought that is no part of the content."""
THOUGHT_PARTS: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content"}
)
_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "assistant": "assistant",
    "developer": "system",
}
_APIS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic.messages",
    "bedrock_converse": "bedrock.converse",
    "google_genai": "gemini.generate_content",
    "google_vertexai": "gemini.generate_content",
    "mistralai": "mistral.chat",
    "ollama": "ollama.chat",
}
"""The protocol of the classes that speak one; ``openai`` speaks two."""


def read_plain(message: BaseMessage) -> rs.Message:
    """Return the blocks of a message, its origin and its usage."""
    role: Any = _ROLES.get(_role(message), "user")
    if role == "assistant":
        return _read_reply(message)
    if role == "tool":
        result = content_parts.read_result(message.content)
        return rs.tool(
            rs.ToolResponseBlock(
                call_id=str(getattr(message, "tool_call_id", "") or ""),
                tool_name=message.name or "",
                result=result,
                is_error=getattr(message, "status", "success") == "error",
            )
        )
    blocks = [_read_part(part) for part in _parts(message.content)]
    return rs.Message(role=role, blocks=tuple(blocks) or (rs.TextBlock(text=""),))


def _role(message: BaseMessage) -> str:
    if message.type.startswith("Chat") or message.type == "chat":
        return str(getattr(message, "role", "")).lower()
    return str(message.type).removesuffix("MessageChunk").lower()


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [content] if content else []
    return list(content)


def _read_reply(message: BaseMessage) -> rs.Message:
    about = message.response_metadata
    provider, model = about.get("model_provider"), about.get("model_name") or about.get("model")
    blocks, api = _reply_blocks(message, provider, model)
    named = {block.id for block in blocks if isinstance(block, rs.ToolCallBlock)}
    seals = message.additional_kwargs.get(SIGNATURES)
    calls = [call for call in _calls(message) if call.id not in named]
    blocks = [_sealed(block, seals) for block in (*blocks, *calls)]
    finish = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    answered = about.get("id") if isinstance(about.get("id"), str) else None
    origin = rs.Origin(
        provider=provider, api=api or _APIS.get(str(provider)), model=model, response_id=answered
    )
    return rs.assistant(
        *blocks,
        origin=origin if provider or model or api else None,
        usage=_usage(getattr(message, "usage_metadata", None)),
        finish_reason=finish if isinstance(finish, str) else None,
    )


def _reply_blocks(
    message: BaseMessage, provider: Any, model: Any
) -> tuple[list[rs.Block], str | None]:
    """Return the blocks of a reply's content and of its thoughts, and the protocol if it shows."""
    fields = {key: item for key, item in message.additional_kwargs.items() if key in THOUGHT_FIELDS}
    parts = _parts(message.content)
    item = fields.get("reasoning")
    if isinstance(item, Mapping) and item.get("type") == "reasoning":
        parts, fields = [item, *parts], {**fields, "reasoning": None}
    if _are_items(parts):
        items = [_item(part) for part in parts if isinstance(part, Mapping | str)]
        read = rs.normalize_response(
            {"object": "response", "output": items}, api=RESPONSES, provider=provider
        )
        return [*_read_fields(fields, "", provider, model), *read.blocks], RESPONSES
    if isinstance(message.content, str):
        return [*_read_fields(fields, message.content, provider, model)], None
    thoughts = _read_fields(fields, "", provider, model)
    return [*thoughts, *(_read_part(part) for part in parts)], None


def _read_fields(
    fields: Mapping[str, Any], text: str, provider: Any, model: Any
) -> Sequence[rs.Block]:
    """Return the blocks of a text, and of the thoughts in fields, as a chat's reply has them."""
    reply = {"role": "assistant", "content": text, **fields}
    if not text and not any(fields.values()):
        return ()
    return rs.normalize_response(
        {"choices": [{"index": 0, "message": reply}]},
        api="openai.chat",
        provider=provider,
        model=model,
    ).blocks


def _are_items(parts: Sequence[Any]) -> bool:
    """Whether parts are items of the Responses API."""
    return any(
        isinstance(part, Mapping)
        and (
            (part.get("type") == "reasoning" and {"summary", "encrypted_content"} & part.keys())
            or (part.get("type") == "function_call" and "call_id" in part)
            or (part.get("type") == "text" and str(part.get("id", "")).startswith("msg_"))
        )
        for part in parts
    )


def _item(part: Any) -> Mapping[str, Any]:
    """Return a part as the item of the Responses API that it was."""
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    kind = part.get("type")
    plain = {key: item for key, item in part.items() if key not in ("index", "sub_index")}
    if kind == "reasoning":
        summary = [
            {key: item for key, item in one.items() if key != "index"}
            for one in plain.get("summary") or ()
            if isinstance(one, Mapping)
        ]
        return {**plain, "summary": summary}
    if kind not in ("text", "output_text", "refusal"):
        return plain
    outside = {key: plain.pop(key) for key in ("id", "phase") if key in plain}
    content = plain if kind == "refusal" else {"annotations": [], **plain, "type": "output_text"}
    return {"type": "message", "role": "assistant", **outside, "content": [content]}


def _read_part(part: Any) -> rs.Block:
    """Return the block of one part of a content."""
    if isinstance(part, str):
        return rs.TextBlock(text=part)
    if not isinstance(part, Mapping):
        return rs.RawBlock(data=part)
    value = part.get("value")
    if part.get("type") == "non_standard" and isinstance(value, Mapping):
        part = value
    reader = _PARTS.get(str(part.get("type")))
    block = None if reader is None else reader(part)
    if block is None:
        block = content_parts.read_block(dict(part))
    return rs.RawBlock(data=dict(part)) if block is None else block


def _text(part: Mapping[str, Any]) -> rs.Block | None:
    text, about = part.get("text"), {}
    if not isinstance(text, str):
        return None
    if part.get("citations"):
        about["citations"] = part["citations"]
    if signature := _extra(part, "signature"):
        about["thoughtSignature"] = signature
    return rs.TextBlock(text=text, provider_metadata=about or None)


def _thinking(part: Mapping[str, Any]) -> rs.Block | None:
    thought = part.get("thinking")
    if isinstance(thought, list):  # Mistral's: a list of texts
        thought = "".join(content_parts.visible_texts(thought))
    if not isinstance(thought, str):
        return None
    seal = part.get("signature") or _extra(part, "signature")
    return rs.ThinkingBlock(
        thought=thought, source_field="thinking", signature=seal, is_hidden=not thought
    )


def _redacted(part: Mapping[str, Any]) -> rs.Block | None:
    return rs.ThinkingBlock(
        source_field="redacted_thinking",
        encrypted=part.get("data"),
        redacted=True,
        is_hidden=True,
    )


def _reasoning(part: Mapping[str, Any]) -> rs.Block | None:
    """Return the thought of LangChain's standard block."""
    thought = part.get("reasoning", "")
    if not isinstance(thought, str):
        return None
    sealed = part.get("encrypted_content") or _extra(part, "encrypted_content")
    about = {"item_id": part["id"]} if part.get("id") else {}
    return rs.ThinkingBlock(
        thought=thought,
        source_field="reasoning",
        signature=part.get("signature") or _extra(part, "signature"),
        encrypted=sealed,
        is_hidden=not thought,
        provider_metadata=about or None,
    )


def _converse(part: Mapping[str, Any]) -> rs.Block | None:
    """Return the thought of Bedrock's Converse."""
    about = part.get("reasoning_content")
    if not isinstance(about, Mapping):
        return None
    said = about.get("reasoning_text") if "reasoning_text" in about else about
    if isinstance(said, Mapping) and isinstance(said.get("text"), str):
        return rs.ThinkingBlock(
            thought=said["text"],
            source_field="reasoningContent.reasoningText.text",
            signature=said.get("signature"),
        )
    return None


def _call(part: Mapping[str, Any]) -> rs.Block | None:
    called = part.get("call_id") or part.get("id")
    given = next((part[key] for key in ("input", "args", "arguments") if key in part), None)
    if not isinstance(called, str) or not isinstance(part.get("name"), str):
        return None
    return foreign_forms.read_call(called, part["name"], given)


def _extra(part: Mapping[str, Any], name: str) -> str | None:
    extras = part.get("extras")
    found = extras.get(name) if isinstance(extras, Mapping) else None
    return found if isinstance(found, str) else None


_PARTS: Final[Mapping[str, Callable[[Mapping[str, Any]], rs.Block | None]]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "reasoning": _reasoning,
    "reasoning_content": _converse,
    "tool_use": _call,
    "tool_call": _call,
    "function_call": _call,
}


def _calls(message: BaseMessage) -> Iterator[rs.ToolCallBlock]:
    """Yield the calls of a reply; with their arguments as they came, where it has them."""
    raw = message.additional_kwargs.get("tool_calls")
    functions = {
        call.get("id"): call.get("function")
        for call in (raw if isinstance(raw, list) else ())
        if isinstance(call, Mapping)
    }
    for call in getattr(message, "tool_calls", ()):
        function = functions.get(call["id"])
        came = function.get("arguments") if isinstance(function, Mapping) else None
        yield rs.ToolCallBlock(
            id=call["id"] or "",
            name=call["name"],
            parameters=call["args"],
            arguments=came if isinstance(came, str) else None,
        )
    for call in getattr(message, "invalid_tool_calls", ()):
        yield rs.ToolCallBlock(id=call["id"] or "", name=call["name"] or "", arguments=call["args"])


def _sealed(block: rs.Block, seals: Any) -> rs.Block:
    """Return a call with the signature of its thought, which Gemini keeps apart."""
    if not isinstance(block, rs.ToolCallBlock) or not isinstance(seals, Mapping):
        return block
    if not isinstance(seal := seals.get(block.id), str):
        return block
    about = {**(block.provider_metadata or {}), "thoughtSignature": seal}
    return replace(block, provider_metadata=about)


def _usage(usage: Any) -> rs.Usage | None:
    if not isinstance(usage, Mapping):
        return None
    read, written = (usage.get(f"{side}_token_details") or {} for side in ("input", "output"))
    return rs.Usage(
        input=usage.get("input_tokens"),
        output=usage.get("output_tokens"),
        reasoning=written.get("reasoning"),
        cached=read.get("cache_read"),
        cache_write=read.get("cache_creation"),
    )
