"""The messages of a request's body, as the clients of each protocol send them.

A reply in a body is read like a response of its protocol: ``response`` gives it the form of one, so
with every field that some host has for reasoning. All else in a body is stored unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from reasoning_store.conversation.blocks import Block, RawBlock, Role, TextBlock
from reasoning_store.conversation.chunks import BlockChunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.wire import content_parts, contract_lookup, request_items
from reasoning_store.wire.event_fields import Malformed, other_fields
from reasoning_store.wire.gemini.parts import Candidate
from reasoning_store.wire.request_message import (
    ROLES,
    THOUGHTS,
    RequestMessage,
    read_call,
    read_content,
    read_texts,
    tool_response,
)

# Chat Completions

_CHAT: Final = "openai.chat"
_ARRAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_details": ("text", "summary", "data", "signature"),
    "thinking_blocks": ("thinking", "data", "signature"),
    "reasoning_items": ("summary", "content", "encrypted_content"),
}
"""Fields that are lists of entries, and what of an entry is reasoning."""
_SEALED: Final[Mapping[str, str]] = {
    "encrypted_content": "reasoning_content",
    "reasoning_opaque": "reasoning_text",
}
"""Each seal, and the string that it seals, if that is there."""
_NESTED: Final = "provider_specific_fields"
_OF_REPLY: Final = (
    *"role content refusal audio images annotations extra_content function_call".split(),
    *("tool_calls", "usage", "model", "finish_reason", _NESTED, *_ARRAYS, *_SEALED),
)


@dataclass(frozen=True, slots=True)
class ChatMessage(RequestMessage):
    """A message of Chat Completions."""

    api: ClassVar[str] = _CHAT
    aliases: tuple[str, ...] = ()
    """The fields that may carry a thought."""

    @property
    def has_thinking(self) -> bool:
        return self.role == "assistant" and self.count_thoughts() > 0

    @property
    def read_fields(self) -> Iterable[str]:
        if self.role == "assistant":
            return (*_OF_REPLY, *self.aliases)
        if self.role == "tool":
            return ("role", "content", "tool_call_id", "name")
        return ("content", *(("role",) if self.parts[0]["role"] == self.role else ()))

    def blocks(self) -> list[Block]:
        value = self.parts[0]
        content = value.get("content")
        if self.role == "tool":
            return [tool_response(value.get("tool_call_id"), content, name=value.get("name"))]
        if self.role != "assistant":
            return read_content(content)
        asked = value.get("tool_calls")
        listed = asked if isinstance(asked, list) else ()
        calls = (call for call in listed if isinstance(call, Mapping))
        return [
            *read_texts(content),
            *(
                read_call(call.get("id"), of.get("name"), of.get("arguments"))
                for call in calls
                if isinstance(of := call.get("function"), Mapping)
            ),
        ]

    def response(self) -> dict[str, Any]:
        value = self.parts[0]
        content = content_parts.without_cache_marks(value.get("content"))
        choice = {
            "message": {**value, "content": content},
            "finish_reason": value.get("finish_reason"),
        }
        usage = value.get("usage")
        return {"choices": [choice], "usage": usage if isinstance(usage, dict) else None}

    def texts(self) -> list[str]:
        value = self.parts[0]
        audio = value.get("audio")
        spoken = audio.get("transcript") if isinstance(audio, dict) else None
        found = [*content_parts.visible_texts(value.get("content")), value.get("refusal"), spoken]
        return [text for text in found if isinstance(text, str)]

    def count_thoughts(self) -> int:
        """Count each entry of a list, each field, each part."""
        value = self.parts[0]
        nested = value.get(_NESTED)
        value = {**nested, **other_fields(value, ())} if isinstance(nested, dict) else value
        count, listed = 0, False
        for alias in self.aliases:
            held = value.get(alias)
            if alias in _ARRAYS and isinstance(held, list):
                entries = sum(_holds_thought(entry, _ARRAYS[alias]) for entry in held)
                count += min(entries, 1) if listed else entries  # a second list is one copy
                listed = listed or bool(entries)
            elif held:
                count += 1
        count += sum(bool(value.get(seal)) for seal, of in _SEALED.items() if not value.get(of))
        content = value.get("content")
        parted = content if isinstance(content, list) else []
        return count + sum(isinstance(one, dict) and one.get("type") in THOUGHTS for one in parted)


def _holds_thought(entry: Any, fields: tuple[str, ...]) -> bool:
    return isinstance(entry, dict) and any(entry.get(field) for field in fields)


def _split_chat(
    parts: Sequence[Mapping[str, Any]], *, provider: str | None = None, model: str | None = None
) -> Iterator[RequestMessage]:
    """Yield the message of each part of a request; the names are those of the host."""
    contract = contract_lookup.find_contract(provider, model, _CHAT)
    aliases = contract_lookup.mirrored_fields(contract)
    for index, part in enumerate(parts):
        role = part.get("role")
        ours = ROLES.get(role) if isinstance(role, str) else None
        yield ChatMessage(ours, [part], index, aliases)


# Messages

_ANSWER: Final = "tool_result"
_OF_ANSWER: Final = ("type", "tool_use_id", "content", "is_error")
_READ: Final = ("role", "content")


@dataclass(frozen=True, slots=True)
class AnthropicMessage(RequestMessage):
    """A message of the Messages protocol."""

    api: ClassVar[str] = "anthropic.messages"

    @property
    def has_thinking(self) -> bool:
        return self.role == "assistant" and any(
            part.get("type") in THOUGHTS for part in _content_parts(self.parts[0])
        )

    @property
    def read_fields(self) -> Iterable[str]:
        of_reply = ("type", "id", "model", "stop_reason", "usage")
        return (*_READ, *of_reply) if self.role == "assistant" else _READ

    def blocks(self) -> list[Block]:
        listed = _listed(self.parts[0])
        made = (_read_anthropic_part(part, is_reply=self.role == "assistant") for part in listed)
        return [block for block in made if block is not None]

    def response(self) -> dict[str, Any]:
        value = self.parts[0]
        named = {name: value.get(name) for name in ("id", "model", "stop_reason")}
        return {
            **{name: text for name, text in named.items() if isinstance(text, str) and text},
            "role": "assistant",
            "content": content_parts.without_cache_marks(_listed(value)),
            "usage": value.get("usage"),
        }

    def count_thoughts(self) -> int:
        return sum(map(_is_anthropic_thought, _content_parts(self.parts[0])))


def _listed(value: Mapping[str, Any]) -> list[Any]:
    content = value.get("content")
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _content_parts(value: Mapping[str, Any]) -> list[Any]:
    return [part for part in _listed(value) if isinstance(part, Mapping)]


def _read_anthropic_part(part: Any, *, is_reply: bool) -> Block | None:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == _ANSWER:
        return tool_response(
            part.get("tool_use_id"),
            part.get("content"),
            is_error=part.get("is_error") is True,
            metadata=other_fields(content_parts.without_cache_marks(part), _OF_ANSWER),
        )
    if is_reply and kind == "tool_use":
        return read_call(part.get("id"), part.get("name"), part.get("input"))
    return None if is_reply and kind in THOUGHTS else content_parts.read_block(part)


def _is_anthropic_thought(part: Mapping[str, Any]) -> bool:
    """EC-002: a thought without text is one where it has a signature."""
    if part.get("type") == "redacted_thinking":
        return bool(part.get("data"))
    return part.get("type") == "thinking" and bool(part.get("thinking") or part.get("signature"))


def _split_anthropic(
    parts: Sequence[Mapping[str, Any]], *, provider: str | None = None, model: str | None = None
) -> Iterator[RequestMessage]:
    """Yield the message of each part of a request."""
    for index, part in enumerate(parts):
        yield AnthropicMessage(_anthropic_role(part), [part], index)


def _anthropic_role(part: Mapping[str, Any]) -> Role | None:
    role = part.get("role")
    if role == "user":
        kinds = [one.get("type") if isinstance(one, Mapping) else None for one in _listed(part)]
        return "tool" if kinds and all(kind == _ANSWER for kind in kinds) else "user"
    return role if role in ("assistant", "system") else None


# generateContent


@dataclass(frozen=True, slots=True)
class GeminiContent(RequestMessage):
    """A content of generateContent."""

    api: ClassVar[str] = "gemini.generate_content"

    @property
    def has_thinking(self) -> bool:
        return self.role == "assistant" and any(
            part.get("thought") or part.get("thoughtSignature")
            for part in _gemini_parts(self.parts[0])
        )

    @property
    def read_fields(self) -> Iterable[str]:
        return ("role", "parts")

    def blocks(self) -> list[Block]:
        said = [part for part in _gemini_parts(self.parts[0]) if part.get("thought") is not True]
        return [_read_gemini_part(part) for part in said if part.get("text") != ""]

    def response(self) -> dict[str, Any]:
        content = {"role": "model", "parts": _gemini_parts(self.parts[0])}
        return {"candidates": [{"index": 0, "content": content}]}

    def texts(self) -> list[str]:
        return [block.text for block in self.blocks() if isinstance(block, TextBlock)]

    def count_thoughts(self) -> int:
        return sum(part.get("thought") is True for part in _gemini_parts(self.parts[0]))


def _gemini_parts(content: Mapping[str, Any]) -> list[Any]:
    parts = content.get("parts")
    return [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []


def _read_gemini_part(part: Mapping[str, Any]) -> Block:
    if isinstance(text := part.get("text"), str):
        return TextBlock(text=text)
    if isinstance(call := part.get("functionCall"), Mapping):
        return read_call(call.get("id"), call.get("name"), call.get("args") or {})
    if isinstance(answer := part.get("functionResponse"), Mapping):
        return _read_function_response(answer)
    try:
        (chunk,) = Candidate(0, "").read(part)
    except (Malformed, ValueError):
        return RawBlock(data=dict(part))
    return chunk.block if isinstance(chunk, BlockChunk) else RawBlock(data=dict(part))


def _read_function_response(answer: Mapping[str, Any]) -> Block:
    result, is_error = answer.get("response"), False
    if isinstance(result, Mapping) and len(result) == 1:
        ((key, value),) = result.items()
        is_error = key == "error"
        result = value if key in ("result", "error") else dict(result)
    return tool_response(answer.get("id"), result, name=answer.get("name"), is_error=is_error)


def _split_gemini(
    parts: Sequence[Mapping[str, Any]], *, provider: str | None = None, model: str | None = None
) -> Iterator[RequestMessage]:
    """Yield the message of each content of a request."""
    for index, content in enumerate(parts):
        yield GeminiContent(_gemini_role(content), [content], index)


def _gemini_role(content: Mapping[str, Any]) -> Role:
    if content.get("role") == "model":
        return "assistant"
    listed = _gemini_parts(content)
    are_answers = all(isinstance(part.get("functionResponse"), Mapping) for part in listed)
    return "tool" if listed and are_answers else "user"


# Every protocol

_SPLIT: Final[Mapping[str, Callable[..., Iterator[RequestMessage]]]] = {
    "openai.chat": _split_chat,
    "openai.responses": request_items.split_items,
    "anthropic.messages": _split_anthropic,
    "gemini.generate_content": _split_gemini,
}


def split_messages(
    parts: Sequence[Any],
    *,
    api: str | None,
    provider: str | None = None,
    model: str | None = None,
) -> Iterator[RequestMessage]:
    """Return the messages of the list in a request's body, in their order.

    ``provider`` and ``model`` say which fields have a thought; a part that is no object is empty.
    Without an ``api`` the parts are OpenAI's: items of Responses, or messages of Chat Completions.
    """
    found = [part if isinstance(part, Mapping) else {} for part in parts]
    if api is None:
        api = "openai.responses" if request_items.are_items(found) else _CHAT
    if api not in _SPLIT:
        raise InvalidCall(
            f"the requests of {api!r} are not read", hint=f"one of: {', '.join(_SPLIT)}"
        )
    return _SPLIT[api](found, provider=provider, model=model)
