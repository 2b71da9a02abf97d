"""The export of ChatGPT: ``conversations.json``, a list of conversations.

The messages of one are a tree (``mapping``), and ``current_node`` is the end of the branch that is
shown. ChatGPT writes a reply as several nodes: its thoughts, a note on how long it thought, the
call of a tool (a message to a ``recipient``) and its text; those that follow each other without a
branch are one message here. No id joins a call and its response, so they are joined by their order.

Files are named and not exported with it: they are references. Custom instructions are a system
prompt. Marks of citations stay in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message, RawBlock, TextBlock, tool
from reasoning_store.formats import Conversation, tool_response
from reasoning_store.importers.conversation_builder import (
    UNKNOWN_ROLE,
    ConversationBuilder,
    digest_values,
)
from reasoning_store.importers.conversation_readers import add_tree, in_order
from reasoning_store.importers.documents import Entry, Source, read_objects
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    AnsweredBy,
    as_object,
    call_part,
    reasoning_part,
    text_part,
)
from reasoning_store.importers.source_messages import (
    SourceMessage,
    list_field,
    object_field,
    parse_time,
    text_field,
)

_REFUSAL: Final = "not a conversation of ChatGPT: an object with a mapping is due"


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the conversations of an export."""
    for entry in read_objects(source, _REFUSAL, mapping=dict):
        yield _read_conversation(entry, who, name)


def _read_conversation(entry: Entry, who: AnsweredBy, name: str) -> Conversation:
    value = entry.value
    id = text_field(value, "conversation_id") or text_field(value, "id")
    into = ConversationBuilder(
        id or f"chatgpt-{digest_values(name, value.get('create_time'), value.get('title'))}",
        who,
        title=text_field(value, "title"),
        created_at=parse_time(value.get("create_time")),
        archived=value.get("is_archived") is True,
    )
    nodes, parents, group_of = _group_nodes(value["mapping"])
    keys = add_tree(nodes, parents, into, partial(_add_message, entry.line))
    current = group_of.get(text_field(value, "current_node") or "")
    return into.conversation(current=keys.get(current or ""))


_Node = Mapping[str, Any]


def _group_nodes(
    mapping: Mapping[str, Any],
) -> tuple[dict[str, list[_Node]], dict[str, str | None], dict[str, str]]:
    """Return the nodes of each message under the first one's id, and which each follows.

    The third value is the message that each node is of, or follows if it is empty.
    """
    nodes: dict[str, list[_Node]] = {}
    parents: dict[str, str | None] = {}
    group_of: dict[str, str] = {}
    tree = {id: node if isinstance(node, dict) else {} for id, node in mapping.items()}
    ways = in_order(
        {id: text_field(node, "parent") for id, node in tree.items()},
        {id: list_field(node, "children") for id, node in tree.items()},
    )
    siblings = Counter(ways.values())
    for id, parent in ways.items():
        before = group_of.get(parent or "")
        message = object_field(tree[id], "message")
        if not message or not _says_something(message):
            if before is not None:
                group_of[id] = before
            continue
        if (
            before is not None
            and siblings[parent] < 2
            and _role(nodes[before][-1]) == "assistant" == _role(message)
        ):
            nodes[before].append(message)
            group_of[id] = before
            continue
        nodes[id], parents[id], group_of[id] = [message], before, id
    return nodes, parents, group_of


def _role(message: _Node) -> str | None:
    return text_field(object_field(message, "author"), "role")


def _says_something(message: _Node) -> bool:
    content = object_field(message, "content")
    if content.get("content_type") in ("text", "multimodal_text"):
        return any(part for part in list_field(content, "parts")) or bool(_attachments(message))
    return len(content) > 1


# Messages


def _add_message(line: int, nodes: Sequence[_Node], into: ConversationBuilder) -> None:
    first = nodes[0]
    metadata = object_field(nodes[-1], "metadata")
    placed = SourceMessage(
        place=f"line {line}: message {first.get('id')}",
        line=line,
        id=text_field(nodes[-1], "id"),
        value={
            "create_time": first.get("create_time"),
            "model": metadata.get("model_slug"),
        },
    )
    role = _role(first)
    source = [[node.get("id"), _role(node), node.get("content")] for node in nodes]
    if role == "assistant":
        _add_reply(nodes, placed, source, into)
    elif role == "tool":
        name = text_field(object_field(first, "author"), "name")
        blocks, texts = _read_content(first)
        plain = all(isinstance(block, TextBlock) for block in blocks)
        result = "\n".join(texts) if plain else first.get("content")
        into.add(tool(tool_response(None, result, name=name)), placed, source=source)
    elif role in ("user", "system"):
        blocks, _ = _read_content(first)
        content = object_field(first, "content")
        is_context = content.get("content_type") == "user_editable_context"
        kept = Message(role="system" if is_context or role == "system" else "user", blocks=blocks)
        into.add(kept, placed, source=source)
    else:
        into.skip(placed.place, UNKNOWN_ROLE)


def _add_reply(
    nodes: Sequence[_Node], placed: SourceMessage, source: Any, into: ConversationBuilder
) -> None:
    reply, recaps = KeptReply(), list[str]()
    for node in nodes:
        content, recipient = object_field(node, "content"), text_field(node, "recipient")
        kind = content.get("content_type")
        if kind == "thoughts":
            reply.parts += [
                reasoning_part(_thought(one)) for one in list_field(content, "thoughts")
            ]
        elif kind == "reasoning_recap":
            recaps.append(text_field(content, "content") or "")
        elif recipient not in (None, "all"):
            _, texts = _read_content(node)
            reply.parts.append(call_part(None, recipient, as_object("\n".join(texts))))
        else:
            blocks, texts = _read_content(node)
            reply.parts += map(text_part, texts)
            reply.media += [block for block in blocks if isinstance(block, MediaBlock)]
            reply.others += [block.data for block in blocks if isinstance(block, RawBlock)]
    details = object_field(object_field(nodes[-1], "metadata"), "finish_details")
    reply.status = "interrupted" if details.get("type") == "interrupted" else "complete"
    unread = {"reasoningRecap": recaps[-1]} if recaps else {}
    into.add_kept_reply(reply, placed, source=source, unread=unread)


def _thought(one: Any) -> str:
    """Return a thought with its heading."""
    if not isinstance(one, dict):
        return ""
    texts = (text_field(one, "summary"), text_field(one, "content"))
    return "\n\n".join(text for text in texts if text)


def _read_content(message: _Node) -> tuple[tuple[Block, ...], list[str]]:
    """Return the blocks of a content, and its texts."""
    content = object_field(message, "content")
    blocks: list[Block] = []
    for part in _parts(content):
        if isinstance(part, str):
            blocks += [TextBlock(text=part)] if part else []
        else:
            blocks.append(_media(part) or RawBlock(data=part))
    attached = {block.ref: block for block in _attachments(message)}
    for place, block in enumerate(blocks):
        id = block.ref.rpartition("/")[2] if isinstance(block, MediaBlock) and block.ref else None
        if id in attached and isinstance(block, MediaBlock):
            about = attached.pop(id)
            blocks[place] = replace(block, mime_type=about.mime_type, name=about.name)
    blocks += attached.values()
    return tuple(blocks), [block.text for block in blocks if isinstance(block, TextBlock)]


def _parts(content: _Node) -> Iterator[Any]:
    """Yield the texts of a content, and what else it holds."""
    kind = content.get("content_type")
    if kind in ("text", "multimodal_text"):
        for part in list_field(content, "parts"):
            spoken = isinstance(part, dict) and part.get("content_type") == "audio_transcription"
            yield part.get("text") if spoken else part
    elif kind == "user_editable_context":
        yield from (text_field(content, name) for name in ("user_profile", "user_instructions"))
    else:
        names = ("text", "result", "content")
        text = next((found for name in names if (found := text_field(content, name))), None)
        yield content if text is None else text


_ASSETS: Final[Mapping[str, tuple[Any, str]]] = {
    "image_asset_pointer": ("image", "image/*"),
    "audio_asset_pointer": ("audio", "audio/*"),
    "video_container_asset_pointer": ("video", "video/*"),
}


def _media(part: Any) -> MediaBlock | None:
    """Return a file that a part points at."""
    if not isinstance(part, dict):
        return None
    inner = part.get("audio_asset_pointer")
    if isinstance(inner, dict):
        part = inner
    kind = _ASSETS.get(text_field(part, "content_type") or "")
    pointer = text_field(part, "asset_pointer")
    if kind is None or pointer is None:
        return None
    return MediaBlock(kind=kind[0], mime_type=kind[1], ref=pointer)


def _attachments(message: _Node) -> list[MediaBlock]:
    found = list_field(object_field(message, "metadata"), "attachments")
    return [
        MediaBlock(
            kind="file",
            mime_type=text_field(one, "mime_type")
            or text_field(one, "mimeType")
            or "application/octet-stream",
            name=text_field(one, "name"),
            ref=text_field(one, "id"),
        )
        for one in found
        if isinstance(one, dict) and text_field(one, "id")
    ]
