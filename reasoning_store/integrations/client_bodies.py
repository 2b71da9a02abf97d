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
from reasoning_store.formats import CallLinks, read_message, split_messages
from reasoning_store.integrations import gemini_bodies
from reasoning_store.integrations.client_messages import ClientMessage, weave


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyForm:
    """How the requests of one protocol carry a conversation."""

    api: str
    messages_key: str
    restore: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
    """Returns the parts of a message with the thinking of its written parts put back."""
    replace_text: Callable[[Sequence[Any], str], list[Any]]
    """Returns the parts of a message with another text."""
    unbind: Callable[[Sequence[Any]], list[Any]]
    """Returns the parts of a message that is sent without its thinking."""
    system_key: str | None
    """The key of the body that holds the system prompt; its first messages may, too."""
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

    def read(self, parts: Sequence[Any]) -> Iterator[ClientMessage]:
        """Yield the messages of a body, but for items that the host has, and we do not."""
        for one in split_messages(parts, api=self.api):
            if one.role is not None and not all(map(is_reference, one.parts)):
                plain = rs.Message(role=one.role, blocks=tuple(one.blocks()))
                yield ClientMessage(plain, one.first, one.last, one.has_thinking)

    def import_messages(self, parts: Sequence[Any], after: Sequence[Any] = ()) -> list[rs.Message]:
        """Return these parts of a body as messages to be stored.

        ``after`` are the parts of the reply before them, whose calls they answer.
        """
        links = CallLinks()
        found = [
            (one.first, read_message(one, links))
            for one in split_messages([*after, *parts], api=self.api)
            if one.role is not None
        ]
        return [message for at, message in found if at >= len(after) and message.blocks]


_SYSTEM: Final = ("system", "developer")


def _is_system(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("role") in _SYSTEM


def _text(content: Any) -> str:
    """Return the text of a content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    content = content.get("parts") if isinstance(content, Mapping) else content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


_CHAT_FIELDS: Final = frozenset({"role", "content", "tool_calls", "refusal", "name", "audio"})


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


def _is_anthropic_thinking(part: Mapping[str, Any]) -> bool:
    return part.get("type") in ("thinking", "redacted_thinking")


def _restore_anthropic(parts: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    (message,), content = parts, written[0]["content"]
    own = message.get("content")
    own = list(own) if isinstance(own, list) else [{"type": "text", "text": own}]
    woven = weave(own, [*content] if isinstance(content, list) else [], _is_anthropic_thinking)
    return [{**message, "content": woven}]


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
        restore=_restore_chat,
        replace_text=_replace_chat_text,
        unbind=list,
        system_key=None,
        ends=lambda event: False,  # [DONE] ends it
    ),
    "/responses": BodyForm(
        api="openai.responses",
        messages_key="input",
        restore=_restore_responses,
        replace_text=lambda parts, text: list(parts),  # its replies are not rendered
        unbind=_unbind_responses,
        system_key="instructions",
        ends=lambda event: isinstance(event, Mapping) and event.get("type") in _LAST_RESPONSE,
    ),
    "/messages": BodyForm(
        api="anthropic.messages",
        messages_key="messages",
        restore=_restore_anthropic,
        replace_text=_replace_anthropic_text,
        unbind=list,
        system_key="system",
        ends=_ends_messages,
    ),
    "enerateContent": BodyForm(
        api=gemini_bodies.API,
        messages_key="contents",
        restore=gemini_bodies.restore_contents,
        replace_text=lambda parts, text: list(parts),  # its replies are not rendered
        unbind=list,
        system_key="systemInstruction",
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
