"""The bodies that clients send: their messages, and the thinking that is put back into them.

A body is read for what an echo needs: role, text, calls and results. Thinking is put back as the
parts that ``write_message`` gives; no other part of a body changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import reasoning_store as rs
from reasoning_store.formats import split_messages
from reasoning_store.importers import formats
from reasoning_store.integrations import gemini_bodies
from reasoning_store.integrations.client_messages import ClientMessage, weave
from reasoning_store.wire.content_parts import read_result


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyForm:
    """How the requests of one protocol carry a conversation."""

    api: str
    messages_key: str
    read: Callable[[Sequence[Any]], Iterator[ClientMessage]]
    restore: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
    """Returns the parts of a message with the thinking of its written parts put back."""
    replace_text: Callable[[Sequence[Any], str], list[Any]]
    """Returns the parts of a message with another text."""
    unbind: Callable[[Sequence[Any]], list[Any]]
    """Returns the parts of a message that is sent without its thinking."""
    system_key: str | None
    """The key of the body that holds the system prompt; its first messages may, too."""
    history: str | None
    """The format of the importer that reads messages whole; without one ``read`` does."""
    ends: Callable[[Any], bool]
    """Whether an event is the last one of a stream."""
    unkept: frozenset[str] = frozenset()
    """The fields of a response of which its client has no part in what it sends back."""

    def model_of(self, body: Mapping[str, Any], path: str) -> str | None:
        """Return the model that a request names, in its body or in its path."""
        named = body.get("model") or gemini_bodies.model_in(path)
        return named if isinstance(named, str) else None

    def list_of(self, body: Mapping[str, Any]) -> list[Any]:
        """Return the list of messages of a body; a text alone is one message."""
        found = body.get(self.messages_key)
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        return list(found) if isinstance(found, list) else []

    def system_of(self, body: Mapping[str, Any]) -> list[str]:
        """Return the system prompt of a body: of a field of its own, and of its first messages."""
        own = body.get(self.system_key) if self.system_key else None
        leading = [one.get("content") for one in takewhile(_is_system, self.list_of(body))]
        return [_text(content) for content in (own, *leading) if content]

    def import_messages(self, parts: Sequence[Any]) -> list[rs.Message]:
        """Return these parts of a body as messages to be stored."""
        if not parts:
            return []
        if self.history is None:
            return [one.message for one in self.read(parts)]
        lines = [json.dumps({"messages": list(parts)})]
        (conversation,) = formats.conversations(lines, format=self.history)
        return [item.message for item in conversation.items]


_SYSTEM: Final = ("system", "developer")


def _is_system(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("role") in _SYSTEM


def _user_blocks(content: Any) -> list[rs.TextBlock | rs.RawBlock]:
    """Return a user's text, and each part without text."""
    parts = content if isinstance(content, list) else []
    others = [part for part in parts if isinstance(part, Mapping) and "text" not in part]
    text = _text(content)
    texts = [rs.TextBlock(text=text)] if text else []
    return [*texts, *(rs.RawBlock(data=dict(part)) for part in others)]


def _text(content: Any) -> str:
    """Return the text of a content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    content = content.get("parts") if isinstance(content, Mapping) else content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def _answer(content: Any) -> str:
    """Return a reply's text without the thinking in tags."""
    text = _text(content)
    return rs.split_reasoning(text).visible if "<" in text else text


def _result(call_id: Any, content: Any) -> rs.ToolResponseBlock:
    return rs.ToolResponseBlock(call_id=str(call_id or ""), result=read_result(content))


def _call(call_id: Any, name: Any, arguments: Any) -> rs.ToolCallBlock:
    is_text = isinstance(arguments, str)
    return rs.ToolCallBlock(
        id=str(call_id or ""),
        name=str(name or ""),
        parameters=dict(arguments) if isinstance(arguments, Mapping) else None,
        arguments=arguments if is_text else None,
    )


def _read_chat(messages: Sequence[Any]) -> Iterator[ClientMessage]:
    for index, given in enumerate(messages):
        message = given if isinstance(given, Mapping) else {}
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            asked = message.get("tool_calls")
            calls = [
                _call(call.get("id"), function.get("name"), function.get("arguments"))
                for call in (asked if isinstance(asked, list) else ())
                if isinstance(call, Mapping) and isinstance(function := call.get("function"), dict)
            ]
            plain = rs.assistant(_answer(content), *calls)
            yield ClientMessage(plain, index, index, _chat_thinks(message))
        elif role in ("tool", "function"):
            block = _result(message.get("tool_call_id"), content)
            yield ClientMessage(rs.tool(block), index, index, False)
        elif role == "user":
            yield ClientMessage(rs.user(*_user_blocks(content)), index, index, False)
        elif role in _SYSTEM:
            yield ClientMessage(rs.system(_text(content)), index, index, False)


_CHAT_FIELDS: Final = frozenset({"role", "content", "tool_calls", "refusal", "name", "audio"})
_THINKING_FIELDS: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "thinking",
    "thinking_blocks",
)


def _chat_thinks(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    kinds = [part.get("type") for part in parts if isinstance(part, Mapping)]
    return "thinking" in kinds or any(message.get(name) for name in _THINKING_FIELDS)


def _restore_chat(parts: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    (message,), first = parts, written[0]
    added = {name: value for name, value in first.items() if name not in _CHAT_FIELDS}
    content = first.get("content")
    if isinstance(content, list) and any(part.get("type") == "thinking" for part in content):
        added["content"] = content
    return [{**message, **added}]


def _replace_chat_text(parts: Sequence[Any], text: str) -> list[Any]:
    (message,) = parts
    return [{**message, "content": text or (None if message.get("tool_calls") else "")}]


def _replace_anthropic_text(parts: Sequence[Any], text: str) -> list[Any]:
    (message,) = parts
    content = message.get("content")
    if not isinstance(content, list):
        return [{**message, "content": text}]
    others = [part for part in content if part.get("type") != "text"]
    return [{**message, "content": [*([{"type": "text", "text": text}] if text else []), *others]}]


def _read_anthropic(messages: Sequence[Any]) -> Iterator[ClientMessage]:
    for index, given in enumerate(messages):
        message = given if isinstance(given, Mapping) else {}
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts = [part for part in parts if isinstance(part, Mapping)]
        thinks = any(_is_anthropic_thinking(part) for part in parts)
        blocks: list[Any] = []
        for part in parts:
            kind = part.get("type")
            if kind == "text":
                blocks.append(rs.TextBlock(text=_text([part])))
            elif kind == "tool_use":
                blocks.append(_call(part.get("id"), part.get("name"), part.get("input")))
            elif kind == "tool_result":
                blocks.append(_result(part.get("tool_use_id"), part.get("content")))
            elif not _is_anthropic_thinking(part):
                blocks.append(rs.RawBlock(data=dict(part)))
        role = message.get("role")
        if role == "assistant":
            yield ClientMessage(rs.assistant(*blocks), index, index, thinks)
        elif role == "user":
            answers = blocks and all(isinstance(block, rs.ToolResponseBlock) for block in blocks)
            plain = rs.Message(role="tool" if answers else "user", blocks=tuple(blocks))
            yield ClientMessage(plain, index, index, False)


def _is_anthropic_thinking(part: Mapping[str, Any]) -> bool:
    return part.get("type") in ("thinking", "redacted_thinking")


def _restore_anthropic(parts: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    (message,), content = parts, written[0]["content"]
    own = message.get("content")
    own = list(own) if isinstance(own, list) else [{"type": "text", "text": own}]
    woven = weave(own, [*content] if isinstance(content, list) else [], _is_anthropic_thinking)
    return [{**message, "content": woven}]


def _read_responses(items: Sequence[Any]) -> Iterator[ClientMessage]:
    for message in split_messages(items, api="openai.responses"):
        role, first, last, item = message.role, message.first, message.last, message.parts[0]
        kinds = [one.get("type", "message") for one in message.parts]
        if all(kind == "item_reference" for kind in kinds):
            continue  # the host has the item, and we do not
        if role == "assistant":
            thinks = "reasoning" in kinds or "item_reference" in kinds
            blocks = [block for one in message.parts for block in _reply_blocks(one)]
            yield ClientMessage(rs.assistant(*blocks), first, last, thinks)
        elif role == "tool":
            block = _result(item.get("call_id"), item.get("output"))
            yield ClientMessage(rs.tool(block), first, last, False)
        elif role == "user":
            yield ClientMessage(rs.user(*_user_blocks(item.get("content"))), first, last, False)
        elif role == "system":
            yield ClientMessage(rs.system(_text(item.get("content"))), first, last, False)


def is_reference(part: Any) -> bool:
    """Whether a part of a body is the id of an item that the provider holds."""
    return isinstance(part, Mapping) and part.get("type") == "item_reference"


def referenced_ids(parts: Sequence[Any]) -> list[str]:
    """Return the ids of the items that a body refers to."""
    return [str(part.get("id")) for part in parts if is_reference(part)]


def resolve_references(
    parts: Sequence[Any], replies: Mapping[str, rs.Message | None]
) -> Sequence[Any]:
    """Return the parts of a body with the items of stored replies in the places of their ids."""
    resolved = list(parts)
    for index, part in enumerate(parts):
        if is_reference(part) and (reply := replies.get(str(part.get("id")))) is not None:
            resolved[index] = _write_item(reply, str(part["id"])) or part
    return resolved


def _write_item(reply: rs.Message, id: str) -> dict[str, Any] | None:
    item: dict[str, Any] | None = None
    for block in reply.blocks:
        if (block.provider_metadata or {}).get("item_id") != id:
            continue
        if isinstance(block, rs.TextBlock):
            item = item or {"id": id, "type": "message", "role": "assistant", "content": []}
            item["content"].append({"type": "output_text", "text": block.text})
        elif isinstance(block, rs.ThinkingBlock):
            summary = [{"type": "summary_text", "text": block.thought}] if block.thought else []
            item = {"id": id, "type": "reasoning", "summary": summary}
            item |= {"encrypted_content": block.encrypted} if block.encrypted else {}
        elif isinstance(block, rs.ToolCallBlock):
            item = {"id": id, "type": "function_call", "call_id": block.id, "name": block.name}
            item["arguments"] = block.arguments or json.dumps(block.parameters)
    return item


def _reply_blocks(item: Mapping[str, Any]) -> list[Any]:
    kind = item.get("type", "message")
    if kind == "message":
        named = {"item_id": item["id"]} if isinstance(item.get("id"), str) else None
        return [rs.TextBlock(text=_answer(item.get("content")), provider_metadata=named)]
    if kind == "function_call":
        return [_call(item.get("call_id"), item.get("name"), item.get("arguments"))]
    if kind == "custom_tool_call":
        return [_call(item.get("call_id"), item.get("name"), item.get("input"))]
    return []


def _restore_responses(parts: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    return weave(parts, written, lambda item: item.get("type") == "reasoning")


def _unbind_responses(parts: Sequence[Any]) -> list[Any]:
    """The id of an item names the reasoning before it: without that the host refuses the id."""
    if any(map(is_reference, parts)):
        return list(parts)  # the host has the reasoning, and puts it back itself
    return [{name: value for name, value in item.items() if name != "id"} for item in parts]


_LAST_RESPONSE: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


def _ends_messages(event: Any) -> bool:
    """Whether a reply is whole: some clients read no further than its stop reason."""
    if not isinstance(event, Mapping):
        return False
    delta = event.get("delta")
    is_stopped = isinstance(delta, Mapping) and delta.get("stop_reason") is not None
    return event.get("type") == "message_stop" or is_stopped


FORMS: Final[Mapping[str, BodyForm]] = {
    "/chat/completions": BodyForm(
        api="openai.chat",
        messages_key="messages",
        read=_read_chat,
        restore=_restore_chat,
        replace_text=_replace_chat_text,
        unbind=list,
        system_key=None,
        history="openai",
        ends=lambda event: False,  # [DONE] ends it
    ),
    "/responses": BodyForm(
        api="openai.responses",
        messages_key="input",
        read=_read_responses,
        restore=_restore_responses,
        replace_text=lambda parts, text: list(parts),  # its replies are not rendered
        unbind=_unbind_responses,
        system_key="instructions",
        history="openai",
        ends=lambda event: isinstance(event, Mapping) and event.get("type") in _LAST_RESPONSE,
    ),
    "/messages": BodyForm(
        api="anthropic.messages",
        messages_key="messages",
        read=_read_anthropic,
        restore=_restore_anthropic,
        replace_text=_replace_anthropic_text,
        unbind=list,
        system_key="system",
        history="anthropic",
        ends=_ends_messages,
    ),
    "enerateContent": BodyForm(
        api=gemini_bodies.API,
        messages_key="contents",
        read=gemini_bodies.read_contents,
        restore=gemini_bodies.restore_contents,
        replace_text=lambda parts, text: list(parts),  # its replies are not rendered
        unbind=list,
        system_key="systemInstruction",
        history=None,
        ends=lambda event: False,  # the connection ends it
        unkept=frozenset({"responseId"}),
    ),
}
"""The form of the requests whose path ends so."""


def write_json(value: Any) -> bytes:
    """Return a value as JSON; half of a surrogate pair, which UTF-8 cannot hold, is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def find_form(path: str) -> BodyForm | None:
    """Return the form of a request by its path; ``None`` where it carries no conversation."""
    return next((form for end, form in FORMS.items() if path.rstrip("/").endswith(end)), None)
