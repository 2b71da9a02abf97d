"""UIMessages of the AI SDK: a list of messages with ``parts``, as an application stores them.

A UI message is all that the model did in a turn. At ``step-start`` a reply of its own begins, and
the result of a tool is in the part of its call: here these are messages, as they were sent. The
``providerMetadata`` is read in its provider's form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message
from reasoning_store.formats import read_blocks, read_medium
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    Part,
    add_reasoning_item,
    call_part,
    reasoning_part,
    result_part,
    sealed_part,
    text_part,
)
from reasoning_store.importers.source_messages import (
    SourceConversation,
    SourceMessage,
    list_field,
    object_field,
    text_field,
)

_TIMES: Final = ("createdAt", "created_at", "timestamp")
_STEP: Final = "step-start"


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    for placed in one.messages:
        value = placed.value
        parts: list[Mapping[str, Any]] = [
            part for part in list_field(value, "parts") if isinstance(part, dict)
        ]
        if not parts and (text := text_field(value, "content")):
            parts = [{"type": "text", "text": text}]
        role, source = value.get("role"), [value.get("id"), value.get("role"), parts]
        about = object_field(value, "metadata")
        stated = {name: of[name] for of in (about, value) for name in _TIMES if name in of}
        made = replace(
            placed,
            value={**stated, "model": text_field(about, "model")},
        )
        if role == "assistant":
            for number, step in enumerate(_steps(parts)):
                _read_step(step, made, [source, number], into)
        elif role == "user" or role == "system":
            blocks = [block for part in parts for block in _content_blocks(part)]
            into.add(Message(role=role, blocks=tuple(blocks)), made, source=source)
        else:
            into.skip(placed.place, UNKNOWN_ROLE)


read = partial(read_conversations, "ai-sdk", _read_conversation)


def _steps(parts: list[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the parts of each reply."""
    step: list[Mapping[str, Any]] = []
    for part in parts:
        if part.get("type") == _STEP:
            if step:
                yield step
            step = []
        else:
            step.append(part)
    if step:
        yield step


def _content_blocks(part: Mapping[str, Any]) -> list[Block]:
    made = _media(part)
    return [made] if made is not None else read_blocks([part])


def _media(part: Mapping[str, Any]) -> MediaBlock | None:
    mime = text_field(part, "mediaType") or text_field(part, "mimeType")
    url = text_field(part, "url")
    if part.get("type") != "file" or mime is None or url is None:
        return None
    return read_medium(mime, url=url, name=text_field(part, "filename"))


def _read_step(
    step: list[Mapping[str, Any]], placed: SourceMessage, source: Any, into: ConversationBuilder
) -> None:
    reply, answers = KeptReply(), list[Part]()
    for part in step:
        kind = text_field(part, "type") or ""
        if kind == "text":
            data = object_field(part, "providerMetadata")
            reply.parts.append({**text_part(part.get("text")), **_own_data(data)})
        elif kind == "reasoning":
            _add_thought(part, reply.parts)
        elif kind in ("dynamic-tool", "tool-invocation") or kind.startswith("tool-"):
            call = {**part, **object_field(part, "toolInvocation")}
            if call.get("providerExecuted") is True:
                reply.others.append(part)
            else:
                reply.parts.append(_call(call, kind))
                answers += _answer(call, kind)
        elif (medium := _media(part)) is not None:
            reply.media.append(medium)
        else:
            reply.others.append(part)
    into.add_kept_reply(reply, placed, source=[source, "reply"])
    if answers:
        into.add_steps(KeptReply(parts=answers), placed, source=[source, "answers"])


def _add_thought(part: Mapping[str, Any], parts: list[Part]) -> None:
    """Add a thought; several parts of one reasoning item are one."""
    text = text_field(part, "text") or text_field(part, "reasoning") or ""
    data = object_field(part, "providerMetadata") or object_field(part, "providerOptions")
    about = object_field(data, "anthropic")
    if redacted := text_field(about, "redactedData"):
        seal = {"type": "redacted_thinking", "data": redacted}
        parts.append(sealed_part("", "anthropic", seal))
    elif signature := text_field(about, "signature"):
        parts.append(sealed_part(text, "anthropic", {"signature": signature}))
    elif seal_of_google := text_field(object_field(data, "google"), "thoughtSignature"):
        parts.append(sealed_part(text, "gemini", {"thoughtSignature": seal_of_google}))
    elif id := text_field(object_field(data, "openai"), "itemId"):
        cipher = text_field(object_field(data, "openai"), "reasoningEncryptedContent")
        summary = [{"type": "summary_text", "text": text}] if text else []
        add_reasoning_item(parts, {"id": id, "encrypted_content": cipher, "summary": summary})
    else:
        parts.append(reasoning_part(text))


def _tool_name(call: Mapping[str, Any], kind: str) -> str:
    return text_field(call, "toolName") or kind.removeprefix("tool-")


def _call(call: Mapping[str, Any], kind: str) -> Part:
    given: Any = next((call[name] for name in ("input", "args", "rawInput") if name in call), {})
    made = call_part(text_field(call, "toolCallId"), _tool_name(call, kind), given)
    return {**made, **_own_data(object_field(call, "callProviderMetadata"))}


def _own_data(data: Mapping[str, Any]) -> Part:
    """Return what the provider wants back of a text or a call."""
    if seal := text_field(object_field(data, "google"), "thoughtSignature"):
        return {"provider_metadata": {"gemini": {"thoughtSignature": seal}}}
    if id := text_field(object_field(data, "openai"), "itemId"):
        return {"provider_metadata": {"openai": {"id": id}}}
    return {}


def _answer(call: Mapping[str, Any], kind: str) -> list[Part]:
    """Return what a tool answered, if it did."""
    id, name = text_field(call, "toolCallId"), _tool_name(call, kind)
    if (error := call.get("errorText")) is not None:
        return [result_part(id, name, error, is_error=True)]
    outputs = [call[key] for key in ("output", "result") if key in call]
    done = bool(outputs) and call.get("preliminary") is not True
    return [result_part(id, name, outputs[0])] if done else []
