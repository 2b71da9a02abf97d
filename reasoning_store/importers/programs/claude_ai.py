"""The export of Claude.ai: ``conversations.json``, a list of conversations.

Newer exports name the message before each one, so they hold branches; in older ones the messages
follow each other. A reply holds its thoughts (without their signatures), its texts, and the calls
of tools with what these answered: an answer ends a message here, as in the Messages protocol.

Of a file that was attached the text is kept where the export has it; else only its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message
from reasoning_store.formats import Conversation, read_blocks
from reasoning_store.importers import anthropic
from reasoning_store.importers.conversation_builder import (
    UNKNOWN_ROLE,
    ConversationBuilder,
    digest_values,
)
from reasoning_store.importers.conversation_readers import add_tree
from reasoning_store.importers.documents import Entry, Source, read_objects, refuse
from reasoning_store.importers.reply_parts import AnsweredBy
from reasoning_store.importers.source_messages import (
    SourceMessage,
    list_field,
    parse_time,
    text_field,
)

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "name", "content", "is_error"),
}
"""The types of parts that the Messages protocol has, and their fields there."""
_NO_PARTS: Final = frozenset({"token_budget", "flag"})


_REFUSAL: Final = "not a conversation of Claude.ai: chat_messages are due"


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the conversations of an export."""
    for entry in read_objects(source, _REFUSAL, chat_messages=list):
        yield _read_conversation(entry, who, name)


def _read_conversation(entry: Entry, who: AnsweredBy, name: str) -> Conversation:
    value = entry.value
    id = text_field(value, "uuid") or f"claude-ai-{digest_values(name, value.get('created_at'))}"
    into = ConversationBuilder(
        id,
        who,
        title=text_field(value, "name"),
        created_at=parse_time(value.get("created_at")),
        model=text_field(value, "model"),
    )
    into.provider = "anthropic"
    messages: dict[str, SourceMessage] = {}
    parents: dict[str, str | None] = {}
    before: str | None = None
    for number, message in enumerate(value["chat_messages"]):
        place = f"chat_messages[{number}]"
        if not isinstance(message, dict):
            refuse(entry.line, f"{place} is not an object")
        key = text_field(message, "uuid") or place
        parents[key] = text_field(message, "parent_message_uuid") if _is_tree(message) else before
        messages[key] = SourceMessage(
            place=f"line {entry.line}: {place}",
            line=entry.line,
            value=message,
            id=text_field(message, "uuid"),
        )
        before = key
    keys = add_tree(messages, parents, into, _add_message)
    current = text_field(value, "current_leaf_message_uuid") or before
    return into.conversation(current=keys.get(current or ""))


def _is_tree(message: Mapping[str, Any]) -> bool:
    """Whether a message names the one before it; the first one names one that is not there."""
    return text_field(message, "parent_message_uuid") is not None


def _add_message(placed: SourceMessage, into: ConversationBuilder) -> None:
    value = placed.value
    sender = value.get("sender")
    parts = [part for part in list_field(value, "content") if isinstance(part, dict)]
    if not parts and (text := text_field(value, "text")):
        parts = [{"type": "text", "text": text}]
    kept = [_without_times(part) for part in parts if text_field(part, "type") not in _NO_PARTS]
    source = [value.get("uuid"), sender, kept]
    at = {"created_at": value.get("created_at")}
    if sender == "human":
        blocks: list[Block] = [*read_blocks(kept), *_attachments(value)]
        said = replace(placed, value=at)
        into.add(Message(role="user", blocks=tuple(blocks)), said, source=source)
    elif sender == "assistant":
        runs = groupby(kept, lambda part: part.get("type") == "tool_result")
        for number, (is_answer, run) in enumerate(runs):
            role = "user" if is_answer else "assistant"
            made = replace(
                placed,
                value={"role": role, "content": list(run), **at},
            )
            into.add_request([made], anthropic.API, source=[*source, number])
    else:
        into.skip(placed.place, UNKNOWN_ROLE)


def _without_times(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part with the fields that its protocol has; one of another type as it came."""
    kind = text_field(part, "type")
    names = _FIELDS.get(kind or "")
    if names is None:
        return dict(part)
    found = {name: part[name] for name in names if part.get(name) is not None}
    content = found.get("content")
    if kind == "tool_result" and isinstance(content, list):
        found["content"] = [
            _without_times(one) if isinstance(one, dict) else one for one in content
        ]
    return {"type": kind, **found}


def _attachments(value: Mapping[str, Any]) -> Iterator[MediaBlock]:
    """Yield the files of a message, with their text where that is kept."""
    for one in list_field(value, "attachments"):
        if isinstance(one, dict):
            text, name = text_field(one, "extracted_content"), text_field(one, "file_name")
            data = None if text is None else text.encode(errors="replace")
            if data or name:
                yield MediaBlock(
                    kind="file",
                    mime_type="text/plain" if data else "application/octet-stream",
                    name=name,
                    data=data,
                    ref=None if data else name,
                )
    for one in list_field(value, "files"):
        if isinstance(one, dict) and (name := text_field(one, "file_name")):
            yield MediaBlock(
                kind="file",
                mime_type="application/octet-stream",
                name=name,
                ref=text_field(one, "file_uuid") or name,
            )
