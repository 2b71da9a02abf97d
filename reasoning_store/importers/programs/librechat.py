"""The export of LibreChat: a conversation a file, as a list of messages or as nested ones.

Each message names the one before it (``parentMessageId``). A reply holds its thoughts, texts and
calls as parts (``content``), or in older versions as one text, with its thoughts in front of it
between ``:::thinking`` and ``:::``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message, TextBlock
from reasoning_store.formats import Conversation, read_medium
from reasoning_store.importers.conversation_builder import ConversationBuilder, digest_values
from reasoning_store.importers.conversation_readers import add_tree
from reasoning_store.importers.documents import Entry, Source, read_objects
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    AnsweredBy,
    Part,
    as_object,
    call_part,
    reasoning_part,
    result_part,
    text_part,
)
from reasoning_store.importers.source_messages import (
    SourceMessage,
    list_field,
    object_field,
    parse_time,
    place_messages,
    text_field,
)
from reasoning_store.results import Status

_THOUGHT: Final = re.compile(r"\s*:::thinking\n(.*?)\n?:::\n*", re.DOTALL)
_NO_MODEL: Final = "it is an error and no reply of a model"


_REFUSAL: Final = "not a conversation of LibreChat: messages are due"


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the conversations of an export."""
    for entry in read_objects(source, _REFUSAL, messages=list, messagesTree=list):
        yield _read_conversation(entry, who, name)


def _read_conversation(entry: Entry, who: AnsweredBy, name: str) -> Conversation:
    value = entry.value
    every = list(_flattened(list_field(value, "messagesTree") or list_field(value, "messages")))
    begun = every[0] if every else {}
    id = text_field(value, "conversationId")
    into = ConversationBuilder(
        id or f"librechat-{digest_values(name, begun.get('messageId'), value.get('title'))}",
        who,
        title=text_field(value, "title"),
        created_at=parse_time(begun.get("createdAt")),
        model=text_field(object_field(value, "options"), "model"),
    )
    messages = {text_field(one, "messageId") or str(at): one for at, one in enumerate(every)}
    parents = {id: text_field(one, "parentMessageId") for id, one in messages.items()}
    keys = add_tree(place_messages(entry.line, messages), parents, into, _add_message)
    latest = max(messages, key=lambda id: text_field(messages[id], "createdAt") or "", default="")
    return into.conversation(current=keys.get(latest))


def _flattened(messages: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield nested messages one after the other, each before those that follow it."""
    waiting = messages[::-1]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += reversed(list_field(one, "children"))


def _add_message(placed: SourceMessage, into: ConversationBuilder) -> None:
    value = placed.value
    text = text_field(value, "text") or ""
    is_user = value.get("isCreatedByUser") is True
    parts = list(_parts(list_field(value, "content"))) or list(_text_parts(text, is_user=is_user))
    source = [value.get("messageId"), text, value.get("content")]
    made = replace(
        placed,
        value={"createdAt": value.get("createdAt"), "model": text_field(value, "model")},
    )
    media = list(_files(value))
    if is_user:
        texts = [part["text"] for part in parts if part["type"] == "text" and part["text"]]
        blocks: list[Block] = [*(TextBlock(text=one) for one in texts), *media]
        into.add(Message(role="user", blocks=tuple(blocks)), made, source=source)
    elif value.get("error") is True:
        into.skip(placed.place, _NO_MODEL)
    else:
        status: Status = "interrupted" if value.get("unfinished") is True else "complete"
        reply = KeptReply(parts=parts, media=media, status=status)
        into.add_steps(reply, made, source=source)


def _text_parts(text: str, *, is_user: bool) -> Iterator[Part]:
    found = None if is_user else _THOUGHT.match(text)
    if found is not None:
        yield reasoning_part(found[1])
    yield text_part(text[found.end() :] if found else text)


def _parts(content: list[Any]) -> Iterator[Part]:
    for part in content:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if kind == "think":
            yield reasoning_part(_text(part, "think"))
        elif kind == "text":
            yield text_part(_text(part, "text"))
        elif kind == "tool_call":
            call = object_field(part, "tool_call")
            # Calls of OpenAI's assistants hold their function.
            of = object_field(call, "function") or call
            id, name = text_field(call, "id"), text_field(of, "name")
            arguments = of.get("args", of.get("arguments"))
            yield call_part(id, name, as_object(arguments))
            if (output := of.get("output")) is not None:
                yield result_part(id, name, output)


def _text(part: Mapping[str, Any], name: str) -> str:
    """Return the text of a part: itself, or the value of an object."""
    return text_field(part, name) or text_field(object_field(part, name), "value") or ""


def _files(value: Mapping[str, Any]) -> Iterator[MediaBlock]:
    for one in list_field(value, "files"):
        if isinstance(one, dict) and (ref := text_field(one, "file_id")):
            mime = text_field(one, "type") or "application/octet-stream"
            made = read_medium(mime, name=text_field(one, "filename"), ref=ref)
            yield from [made] if made else []
