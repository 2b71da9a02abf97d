"""The items of the Responses protocol: a run of the model's items is one message.

Theory. Reasoning, its answer and its calls are items of their own, one after the other; a message
of the user or the result of a tool ends the run. A run is read as the output of one response. An
assistant's message in the short form that requests allow (a role and a text) is given the long one
first.

Knows items; must not know files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from reasoning_store import Message
from reasoning_store.conversation.blocks import Role, answered_call
from reasoning_store.importers.conversation_builder import ConversationBuilder
from reasoning_store.importers.source_messages import (
    OF_MESSAGE,
    SourceConversation,
    SourceMessage,
    list_field,
)
from reasoning_store.wire import content_parts
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.openai_responses import typed_calls

_API: Final = "openai.responses"
_PARTS: Final = ("input_text", "output_text", "input_image", "input_file")
ROLES: Final[Mapping[str, Role]] = {"user": "user", "system": "system", "developer": "system"}
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


def read_items(placed: Sequence[SourceMessage], into: ConversationBuilder) -> None:
    """Add the messages that items make."""
    for role, run in item_runs(placed):
        read_run(role, run, into)


Run: TypeAlias = list[SourceMessage]


def item_runs(placed: Sequence[SourceMessage]) -> Iterator[tuple[Role | None, Run]]:
    """Yield the items of each message, with its role; an unknown item is alone and has none."""
    run: Run = []
    hosted: set[Any] = set()
    for item in placed:
        role = role_of(item.value)
        if item.value.get("type") == "shell_call" and not typed_calls.is_typed(item.value):
            hosted.add(item.value.get("call_id"))
        elif role == "tool" and item.value.get("call_id") in hosted:
            role = "assistant"  # the service ran the command, and this is its result
        if role == "assistant":
            run.append(item)
            continue
        if run:
            yield "assistant", run
            run = []
        yield role, [item]
    if run:
        yield "assistant", run


def read_run(
    role: Role | None,
    run: Run,
    into: ConversationBuilder,
    *,
    usage: Mapping[str, Any] | None = None,
) -> Message | None:
    """Add the message of a run and return it, if it makes one; a reply reported ``usage``."""
    if role == "assistant":
        return _add_reply(run, into, usage)
    if role == "tool":
        return _add_tool_response(run[0], into)
    if role is None:
        into.skip(run[0].place, "neither its type nor its role is the format's")
        return None
    value = run[0].value
    read = _READ if value["role"] == role else [name for name in _READ if name != "role"]
    return into.add_plain(role, run[0], unread=other_fields(value, read))


def role_of(item: Mapping[str, Any]) -> Role | None:
    """Return the role of an item, ``None`` if it is unknown."""
    kind, role = item.get("type", "message"), item.get("role")
    if not isinstance(kind, str):
        return None
    if kind == "message":
        return "assistant" if role == "assistant" else ROLES.get(str(role))
    return "assistant" if answered_call(item) is None else "tool"


def _add_reply(
    run: Run, into: ConversationBuilder, usage: Mapping[str, Any] | None
) -> Message | None:
    items = [_complete_message(placed.value) for placed in run]
    message = into.read_reply({"output": items, "usage": usage}, _API, run[0].value)
    return into.add(
        message,
        replace(run[0], id=next((placed.id for placed in run if placed.id), None)),
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
    return content_parts.visible_texts(content)


def _is_thought(item: Mapping[str, Any]) -> bool:
    said = [*list_field(item, "summary"), *list_field(item, "content")]
    return item.get("type") == "reasoning" and bool(
        item.get("encrypted_content")
        or item.get("signature")
        or any(part.get("text") if isinstance(part, dict) else part for part in said)
    )


def _add_tool_response(placed: SourceMessage, into: ConversationBuilder) -> Message | None:
    value = placed.value
    kind, unread = value["type"], other_fields(value, (*_READ, "call_id", "output", "tools"))
    content = value.get("tools" if kind == "tool_search_output" else "output")
    if kind == _APPROVAL:
        content, unread = other_fields(value, ("type", "id", "approval_request_id")), {}
    metadata = {} if kind in _CALLS else {"item_type": kind}
    block = into.tool_response(answered_call(value), content, metadata=metadata)
    return into.add_tool_responses([block], placed, unread=unread)


_CALLS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
