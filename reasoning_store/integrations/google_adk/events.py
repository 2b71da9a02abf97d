"""Events of the Agent Development Kit as messages of the store, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from google.adk.events import Event
from google.adk.sessions import State
from google.genai import types

import reasoning_store as rs
from reasoning_store.formats import call_arguments, read_medium
from reasoning_store.integrations import foreign_forms
from reasoning_store.integrations.foreign_forms import from_base64, in_base64

_NAME: Final = "googleAdk"
_API: Final = "gemini.generate_content"


def event_form(event: Event) -> dict[str, Any]:
    """Return the fields of an event that are stored; state that is only ``temp:`` is not."""
    form: dict[str, Any] = event.model_dump(mode="json", exclude_none=True)
    actions = form.pop("actions", {})
    delta = actions.pop("state_delta", {})
    actions["state_delta"] = {
        key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)
    }
    if actions := {key: value for key, value in actions.items() if value != {}}:
        form["actions"] = actions
    if event.content is not None:
        form["content"] = _plain(event.content.model_dump(exclude_none=True))
    return form


def read_event(event: Event) -> rs.Message:
    """Return an event as a message to be stored; all of it can be written again."""
    parts = (event.content.parts if event.content is not None else None) or ()
    blocks = [_read_part(part) for part in parts]
    role: Any = "user" if event.author == "user" and blocks else "assistant"
    if blocks and all(isinstance(block, rs.ToolResponseBlock) for block in blocks):
        role = "tool"
    elif any(isinstance(block, rs.ToolResponseBlock) for block in blocks):
        role = "user"
    message = rs.Message(role=role, blocks=tuple(blocks))
    if role == "assistant":
        finish = event.finish_reason
        message = rs.assistant(
            *blocks,
            status="interrupted" if event.interrupted else "complete",
            origin=_origin(event.model_version),
            usage=_usage(event.usage_metadata),
            finish_reason=None if finish is None else str(getattr(finish, "value", finish)),
        )
    return foreign_forms.with_form(message, _NAME, event_form(event), _is_thought)


def write_event(message: rs.Message) -> Event | None:
    """Return a stored message as an event; ``None`` for one that was erased."""
    if message.status == "erased":
        return None
    rebuilt = foreign_forms.rebuild(message, _NAME)
    if rebuilt is not None:
        return Event.model_validate(rebuilt.form)
    parts = [part for block in message.blocks if (part := _write_block(block)) is not None]
    is_reply = message.role == "assistant"
    return Event(
        author="model" if is_reply else "user",
        content=types.Content(role="model" if is_reply else "user", parts=parts),
        model_version=None if message.origin is None else message.origin.model,
    )


def _plain(value: Any) -> Any:
    """Return JSON with bytes in it: names in place of the members of an enumeration."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return value


def _is_thought(path: foreign_forms.Path, value: Any) -> bool:
    is_part = len(path) == 3 and path[:2] == ("content", "parts")
    return is_part and isinstance(value, Mapping) and value.get("thought") is True


def _origin(model: str | None) -> rs.Origin | None:
    if model is None:
        return None
    is_gemini = "gemini" in model
    return rs.Origin(
        provider="google" if is_gemini else None, api=_API if is_gemini else None, model=model
    )


def _usage(usage: Any) -> rs.Usage | None:
    if usage is None:
        return None
    spoken, thought = usage.candidates_token_count, usage.thoughts_token_count
    return rs.Usage(
        input=usage.prompt_token_count,
        output=None if spoken is None and thought is None else (spoken or 0) + (thought or 0),
        reasoning=thought,
        cached=usage.cached_content_token_count,
    )


def _read_part(part: types.Part) -> rs.Block:
    seal = part.thought_signature
    signature = None if seal is None else in_base64(seal)
    about = {"thoughtSignature": signature} if signature else None
    if part.thought and part.text is not None:
        return rs.ThinkingBlock(
            thought=part.text,
            source_field="thought",
            signature=signature,
            is_hidden=not part.text,
        )
    if part.text is not None:
        return rs.TextBlock(text=part.text, provider_metadata=about)
    if (call := part.function_call) is not None:
        return rs.ToolCallBlock(
            id=call.id or "",
            name=call.name or "",
            parameters=call.args or {},
            provider_metadata=about,
        )
    if (answer := part.function_response) is not None and not answer.parts:
        return rs.ToolResponseBlock(
            call_id=answer.id or "", tool_name=answer.name or "", result=answer.response
        )
    data, file = part.inline_data or types.Blob(), part.file_data or types.FileData()
    mime = data.mime_type or file.mime_type or "application/octet-stream"
    medium = read_medium(mime, data=data.data, url=file.file_uri)
    if medium is not None:
        return replace(medium, provider_metadata=about)
    return rs.RawBlock(data=part.model_dump(mode="json", by_alias=True, exclude_none=True))


def _write_block(block: rs.Block) -> types.Part | None:
    """Return the part of a block of a message that was recorded otherwise."""
    match block:
        case rs.ThinkingBlock() if block.thought:
            return types.Part(
                text=block.thought, thought=True, thought_signature=from_base64(block.signature)
            )
        case rs.TextBlock():
            return types.Part(text=block.text, thought_signature=_seal_of(block))
        case rs.ToolCallBlock():
            call = types.FunctionCall(id=block.id, name=block.name, args=call_arguments(block))
            return types.Part(function_call=call, thought_signature=_seal_of(block))
        case rs.ToolResponseBlock():
            is_object = isinstance(block.result, Mapping)
            result = dict(block.result) if is_object else {"result": block.result}
            answer = types.FunctionResponse(id=block.call_id, name=block.tool_name, response=result)
            return types.Part(function_response=answer)
        case rs.MediaBlock(data=bytes(data)):
            return types.Part(inline_data=types.Blob(data=data, mime_type=block.mime_type))
        case rs.MediaBlock(url=str(url)):
            return types.Part(file_data=types.FileData(file_uri=url, mime_type=block.mime_type))
        case _:
            return None


def _seal_of(block: rs.TextBlock | rs.ToolCallBlock) -> bytes | None:
    return from_base64((block.provider_metadata or {}).get("thoughtSignature"))
