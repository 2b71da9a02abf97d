"""The items of the Responses protocol: a run of the model's items is one message.

Theory. Reasoning, its answer and its calls are items of their own, one after the other; a message
of the user or the result of a tool ends the run. A run is read as the output of one response. An
assistant's message in the short form that requests allow (a role and a text) is given the long one
first.

Knows items; must not know files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store.conversation.blocks import answered_call
from reasoning_store.importers import content_parts
from reasoning_store.importers.history_reader import HistoryReader
from reasoning_store.importers.source_messages import (
    OF_MESSAGE,
    SourceConversation,
    SourceMessage,
    list_field,
)
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.openai_responses import typed_calls

_API: Final = "openai.responses"
_PARTS: Final = ("input_text", "output_text", "input_image", "input_file")
ROLES: Final[Mapping[str, str]] = {"user": "user", "system": "system", "developer": "system"}
_APPROVAL: Final = "mcp_approval_response"
_KINDS: Final = re.compile(
    r"message|reasoning|compaction|item_reference|mcp_\w+|\w+(_call|_output)"
)
"""The types of items that there are: a list with one of them may have others that are newer."""
_READ: Final = (*OF_MESSAGE, "type", "role", "content", "status")


def are_items(values: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list is one of items, and not of messages."""
    return any(_is_item(value) for value in values)


def _is_item(value: Mapping[str, Any]) -> bool:
    if "role" not in value:
        return isinstance(kind := value.get("type"), str) and bool(_KINDS.fullmatch(kind))
    content = value.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") in _PARTS for part in content
    )


def output_items(one: SourceConversation, listed: Any) -> list[SourceMessage]:
    """Return the items that a kept response adds to those of its request."""
    return [
        SourceMessage(place=f"line {one.line}: output[{number}]", line=one.line, value=value)
        for number, value in enumerate(listed if isinstance(listed, list) else ())
        if isinstance(value, dict)
    ]


def read_items(
    placed: Sequence[SourceMessage],
    reader: HistoryReader,
    *,
    usage: Mapping[str, Any] | None = None,
) -> None:
    """Add the messages that items make; ``usage`` is what the last reply of them reported."""
    run: list[SourceMessage] = []
    hosted: set[Any] = set()
    for item in placed:
        take = role_of(item.value)
        if item.value.get("type") == "shell_call" and not typed_calls.is_typed(item.value):
            hosted.add(item.value.get("call_id"))
        elif take == "tool" and item.value.get("call_id") in hosted:
            take = "assistant"  # the service ran the command, and this is what it says of it
        if take == "assistant":
            run.append(item)
            continue
        _add_reply(run, reader)
        run = []
        if take == "tool":
            _add_tool_response(item, reader)
        elif take is None:
            reader.into.skip(item.place, "neither its type nor its role is the format's")
        else:
            same = item.value["role"] == take
            read_ = _READ if same else [name for name in _READ if name != "role"]
            reader.add_plain(take, item, unread=other_fields(item.value, read_))
    _add_reply(run, reader, usage)


def role_of(item: Mapping[str, Any]) -> str | None:
    """Return the role of an item, ``None`` if it is unknown."""
    kind, role = item.get("type", "message"), item.get("role")
    if not isinstance(kind, str):
        return None
    if kind == "message":
        return "assistant" if role == "assistant" else ROLES.get(str(role))
    return "assistant" if answered_call(item) is None else "tool"


def _add_reply(
    run: Sequence[SourceMessage], reader: HistoryReader, usage: Mapping[str, Any] | None = None
) -> None:
    if not run:
        return
    items = [_complete_message(placed.value) for placed in run]
    message = reader.read_reply({"output": items, "usage": usage}, _API, run[0].value)
    reader.add(
        message,
        run[0],
        texts=[text for item in items for text in _visible_texts(item)],
        thoughts=sum(map(_is_thought, items)),
        source=[placed.value for placed in run],
    )


def _complete_message(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if "role" not in item:
        return dict(item)
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content}]
    return {**item, "type": "message", "content": content}


def _visible_texts(item: Mapping[str, Any]) -> list[str]:
    if item.get("type") != "message" or not isinstance(content := item.get("content"), list):
        return []
    return [*content_parts.visible_texts(content), *content_parts.refusal_texts(content)]


def _is_thought(item: Mapping[str, Any]) -> bool:
    said = [*list_field(item, "summary"), *list_field(item, "content")]
    return item.get("type") == "reasoning" and bool(
        item.get("encrypted_content")
        or item.get("signature")
        or any(part.get("text") if isinstance(part, dict) else part for part in said)
    )


def _add_tool_response(placed: SourceMessage, reader: HistoryReader) -> None:
    value = placed.value
    kind, call_id = value["type"], answered_call(value)
    if kind == _APPROVAL:
        content: Any = other_fields(value, ("type", "id", "approval_request_id"))
        block = reader.tool_response(placed, call_id, content, metadata={"item_type": kind})
        reader.add_tool_message(block, content, placed, {})
        return
    content = value.get("tools" if kind == "tool_search_output" else "output")
    metadata = {} if kind in _CALLS else {"item_type": kind}
    block = reader.tool_response(placed, call_id, content, metadata=metadata)
    reader.add_tool_message(
        block, content, placed, other_fields(value, (*_READ, "call_id", "output", "tools"))
    )


_CALLS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
