"""The export of Open WebUI: a list of chats, each a tree of messages.

A model's thoughts are in the text, between ``<details type="reasoning">`` and ``</details>``, with
a mark of quotation in front of each line; calls of tools are there too, with their results. Newer
versions also keep a reply as its items (``output``), which are read where they are. Answers of
several models to one message are branches.

The system prompt of a chat is not stored: it belongs to a request.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message
from reasoning_store.formats import Conversation, read_blocks
from reasoning_store.importers.conversation_builder import (
    UNKNOWN_ROLE,
    ConversationBuilder,
    digest_values,
)
from reasoning_store.importers.conversation_readers import add_tree, in_order
from reasoning_store.importers.documents import Entry, Source, read_objects
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    DETAILS,
    AnsweredBy,
    Part,
    as_object,
    call_part,
    reasoning_part,
    result_part,
    sealed_part,
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

_DETAILS: Final = re.compile(
    r'\n?<details type="(reasoning|tool_calls|code_interpreter)"([^>]*)>\n?'
    r"(?:<summary>.*?</summary>\n?)?(.*?)\n?</details>\n?",
    re.DOTALL,
)
_ATTRIBUTE: Final = re.compile(r'([\w-]+)="([^"]*)"')
_CODE: Final = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_INTERPRETER: Final = "code_interpreter"


_REFUSAL: Final = "not a chat of Open WebUI: an object with a chat is due"


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the chats of an export."""
    for entry in read_objects(source, _REFUSAL, chat=dict):
        yield _read_chat(entry, who, name)


def _read_chat(entry: Entry, who: AnsweredBy, name: str) -> Conversation:
    value, chat = entry.value, entry.value["chat"]
    id = text_field(value, "id") or text_field(chat, "id")
    tags = [tag for tag in list_field(object_field(value, "meta"), "tags") if isinstance(tag, str)]
    into = ConversationBuilder(
        id or f"open-webui-{digest_values(name, value.get('created_at'), value.get('title'))}",
        who,
        title=text_field(value, "title") or text_field(chat, "title"),
        created_at=parse_time(value.get("created_at")) or parse_time(chat.get("timestamp")),
        archived=value.get("archived") is True,
        metadata={"tags": tags} if tags else {},
    )
    history = object_field(chat, "history")
    messages, parents = _messages(history, chat)
    keys = add_tree(place_messages(entry.line, messages), parents, into, _add_message)
    current = text_field(history, "currentId") or next(reversed(messages), "")
    return into.conversation(current=keys.get(current))


def _messages(
    history: Mapping[str, Any], chat: Mapping[str, Any]
) -> tuple[dict[str, Mapping[str, Any]], dict[str, str | None]]:
    """Return the messages by id, and what each follows."""
    kept = object_field(history, "messages")
    if kept:
        messages: dict[str, Mapping[str, Any]] = {
            id: one for id, one in kept.items() if isinstance(one, dict)
        }
        parents = {id: text_field(one, "parentId") for id, one in messages.items()}
        children = {id: list_field(one, "childrenIds") for id, one in messages.items()}
        return messages, in_order(parents, children)
    listed = [one for one in list_field(chat, "messages") if isinstance(one, dict)]
    ids = [text_field(one, "id") or str(number) for number, one in enumerate(listed)]
    return dict(zip(ids, listed, strict=True)), dict(zip(ids, [None, *ids], strict=False))


def _add_message(placed: SourceMessage, into: ConversationBuilder) -> None:
    value = placed.value
    role, content = value.get("role"), value.get("content")
    source = [value.get("id"), role, content]
    made = replace(
        placed,
        value={"timestamp": value.get("timestamp"), "model": value.get("model")},
    )
    media = list(_files(value))
    if role == "assistant":
        parts = list(_output_parts(list_field(value, "output"))) or list(
            _text_parts(content if isinstance(content, str) else "")
        )
        unread = {"usage": value["usage"]} if isinstance(value.get("usage"), dict) else {}
        failed = value.get("error")
        if failed and not parts:
            into.skip(placed.place, "it is an error and no reply of a model")
            return
        reply = KeptReply(parts=parts, media=media)
        into.add_steps(reply, made, source=source, unread=unread)
    elif role in ("user", "system"):
        blocks: list[Block] = [*into.read_content(placed), *media]
        into.add(Message(role=role, blocks=tuple(blocks)), made, source=source)
    else:
        into.skip(placed.place, UNKNOWN_ROLE)


def _text_parts(text: str) -> Iterator[Part]:
    """Yield the thoughts, calls, answers and texts of a reply."""
    end = 0
    for found in _DETAILS.finditer(text):
        yield text_part(text[end : found.start()])
        end = found.end()
        kind, written, body = found.groups()
        about = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(written)}
        if kind == "reasoning":
            yield reasoning_part(_unquoted(body))
            continue
        if kind == _INTERPRETER:
            code = _CODE.fullmatch(body)
            arguments = {"code": code[1] if code else body}
            about = {"name": _INTERPRETER, "result": about.get("output", "")}
        else:
            arguments = as_object(_json(about.get("arguments", "")))
        id = about.get("id") or None
        yield call_part(id, about.get("name"), arguments)
        if about.get("result"):
            yield result_part(id, about.get("name"), _json(about["result"]))
    yield text_part(text[end:])


def _unquoted(body: str) -> str:
    """Return a thought without the marks of quotation in front of its lines."""
    if body.lstrip().startswith("&gt;"):
        body = html.unescape(body)
    return "\n".join(
        line.removeprefix("> ") if line.startswith("> ") else "" if line == ">" else line
        for line in body.split("\n")
    )


def _json(text: Any) -> Any:
    """Return the value of a text that is JSON; of another, itself."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _output_parts(items: list[Any]) -> Iterator[Part]:
    """Yield the parts of a reply that was kept as items."""
    for item in items:
        if not isinstance(item, dict):
            continue
        kind = text_field(item, "type") or ""
        id, name = text_field(item, "call_id"), text_field(item, "name")
        if kind == "message":
            yield text_part(_joined(item, "content"))
        elif kind == "reasoning":
            text = _joined(item, "content") or _joined(item, "summary")
            details = [one for one in list_field(item, DETAILS) if isinstance(one, dict)]
            yield (
                sealed_part(text, DETAILS, {"details": details})
                if details
                else (reasoning_part(text))
            )
        elif kind == "function_call":
            yield call_part(id, name, as_object(item.get("arguments")))
        elif kind == "function_call_output":
            output = item.get("output")
            plain_texts = all(
                isinstance(part, dict) and text_field(part, "type") == "input_text"
                for part in list_field(item, "output")
            )
            text = _joined(item, "output") if plain_texts else ""
            yield result_part(id, None, text or output)
        elif kind.endswith(_INTERPRETER):
            yield call_part(None, _INTERPRETER, {"code": item.get("code")})
            yield result_part(None, _INTERPRETER, item.get("output"))


def _joined(item: Mapping[str, Any], name: str) -> str:
    parts = [part for part in list_field(item, name) if isinstance(part, dict)]
    return "".join(text_field(part, "text") or "" for part in parts)


def _files(value: Mapping[str, Any]) -> Iterator[MediaBlock]:
    for one in list_field(value, "files"):
        if not isinstance(one, dict):
            continue
        url, id = text_field(one, "url"), text_field(one, "id")
        if one.get("type") == "image" and url:
            made = read_blocks([{"type": "image_url", "image_url": {"url": url}}])
            yield from (block for block in made if isinstance(block, MediaBlock))
        elif id or url:
            yield MediaBlock(
                kind="file",
                mime_type="application/octet-stream",
                name=text_field(one, "name"),
                ref=id or url,
            )
