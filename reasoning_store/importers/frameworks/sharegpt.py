"""ShareGPT's form of training data: ``conversations`` of ``from`` and ``value``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reasoning_store import tool
from reasoning_store.formats import parse_arguments, tool_response
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.documents import Entry, refuse
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import Part, call_part, text_part
from reasoning_store.importers.source_messages import (
    SourceConversation,
    SourceMessage,
    list_field,
    other_fields,
    text_field,
)

_ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "chatgpt", "bing", "bard"), "assistant"),
    "system": "system",
    "function_call": "call",
    **dict.fromkeys(("tool", "observation", "function_response"), "tool"),
}
_READ: Final = ("from", "value")


def _unpack(entry: Entry) -> Iterator[Entry]:
    value = entry.value
    if not (isinstance(value, dict) and isinstance(value.get("conversations"), list)):
        refuse(entry.line, "not a conversation of ShareGPT: an object with conversations is due")
    kept = {key: item for key, item in value.items() if key not in ("conversations", "role")}
    yield Entry(line=entry.line, value={"messages": list_field(value, "conversations"), **kept})


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    if text := text_field(one.about, "system"):
        place = f"line {one.line}: system"
        _add_plain("system", text, SourceMessage(place=place, line=one.line, value={}), into)
    for placed in one.messages:
        role = _ROLES.get(text_field(placed.value, "from") or "")
        text = text_field(placed.value, "value") or ""
        unread = other_fields(placed.value, _READ)
        if role == "assistant" or role == "call":
            reply = KeptReply(parts=[text_part(text) if role == "assistant" else _call(text)])
            into.add_kept_reply(reply, placed, source=placed.value, unread=unread)
        elif role == "tool":
            into.add(tool(tool_response(None, text)), placed, unread=unread)
        elif role is not None:
            _add_plain(role, text, placed, into)
        else:
            into.skip(placed.place, UNKNOWN_ROLE)


read = partial(read_conversations, "sharegpt", _read_conversation, unpack=_unpack)


def _add_plain(role: Any, text: str, placed: SourceMessage, into: ConversationBuilder) -> None:
    said = replace(placed, value={**placed.value, "content": text})
    into.add_plain(role, said, source=[role, text])


def _call(text: str) -> Part:
    """Return a call that is written as JSON; of another text, a call of no name."""
    found = parse_arguments(text)
    if not isinstance(found, dict):
        return call_part(None, None, {"text": text})
    return call_part(None, text_field(found, "name"), found.get("arguments", {}))
