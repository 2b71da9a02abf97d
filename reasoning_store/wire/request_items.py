"""The items of a request of the Responses protocol: a run of the model's items is one message.

Reasoning, its answer and its calls are items of their own, one after the other; a message of the
user or the result of a tool ends the run. A run is read as the output of one response. An
assistant's message in the short form that requests allow (a role and a text) is given the long one
first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from reasoning_store.conversation.blocks import Block, Role, TextBlock, answered_call
from reasoning_store.wire import content_parts
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.openai_responses import typed_calls
from reasoning_store.wire.request_message import (
    ROLES,
    RequestMessage,
    read_call,
    read_content,
    read_text,
    tool_response,
)

_PARTS: Final = ("input_text", "output_text", "input_image", "input_file")
_APPROVAL: Final = "mcp_approval_response"
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The field of each call that has its arguments."""
_ANSWERS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_REFERENCE: Final = "item_reference"
_KINDS: Final = re.compile(
    r"message|reasoning|compaction|item_reference|mcp_\w+|\w+(_call|_output)"
)
"""The types of items that there are: a list with one of them may have others that are newer."""


@dataclass(frozen=True, slots=True)
class ItemsMessage(RequestMessage):
    """The items that are one message."""

    api: ClassVar[str] = "openai.responses"

    @property
    def has_thinking(self) -> bool:
        kinds = (item.get("type") for item in self.parts)
        return self.role == "assistant" and any(kind in ("reasoning", _REFERENCE) for kind in kinds)

    @property
    def read_fields(self) -> Iterable[str]:
        value = self.parts[0]
        if self.role == "assistant" or value.get("type") == _APPROVAL:
            return value
        if self.role == "tool":
            return ("type", "role", "content", "status", "call_id", "output", "tools")
        return ("type", "content", "status", *(("role",) if value["role"] == self.role else ()))

    def blocks(self) -> list[Block]:
        if self.role == "tool":
            return [_read_answer(self.parts[0])]
        if self.role == "assistant":
            return [block for item in self.parts for block in _read_reply_item(item)]
        return read_content(self.parts[0].get("content"))

    def response(self) -> dict[str, Any]:
        return {"output": [_complete_message(item) for item in self.parts]}

    def texts(self) -> list[str]:
        items = map(_complete_message, self.parts)
        contents = (item.get("content") for item in items if item.get("type") == "message")
        return [
            text
            for content in contents
            if isinstance(content, list)
            for text in content_parts.visible_texts(content)
        ]

    def count_thoughts(self) -> int:
        return sum(map(_is_reasoning, self.parts))


def _read_reply_item(item: Mapping[str, Any]) -> list[Block]:
    kind = item.get("type", "message")
    if kind == "message":
        named = {"item_id": item["id"]} if isinstance(item.get("id"), str) else None
        return [TextBlock(text=read_text(item.get("content")), provider_metadata=named)]
    if kind in _CALLS:
        return [read_call(item.get("call_id"), item.get("name"), item.get(_CALLS[kind]))]
    return []


def _read_answer(item: Mapping[str, Any]) -> Block:
    kind = item["type"]
    content = item.get("tools" if kind == "tool_search_output" else "output")
    if kind == _APPROVAL:
        content = other_fields(item, ("type", "id", "approval_request_id"))
    metadata = {} if kind in _ANSWERS else {"item_type": kind}
    return tool_response(answered_call(item), content, metadata=metadata)


def _complete_message(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if "role" not in item:
        return dict(item)
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content}]
    return {**item, "type": "message", "content": content}


def _is_reasoning(item: Mapping[str, Any]) -> bool:
    lists = (item.get("summary"), item.get("content"))
    said = [part for listed in lists if isinstance(listed, list) for part in listed]
    return item.get("type") == "reasoning" and bool(
        item.get("encrypted_content")
        or item.get("signature")
        or any(part.get("text") if isinstance(part, Mapping) else part for part in said)
    )


def are_items(values: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list is one of items, and not of messages."""
    return any(map(_is_item, values))


def _is_item(value: Mapping[str, Any]) -> bool:
    if "role" not in value:
        return isinstance(kind := value.get("type"), str) and bool(_KINDS.fullmatch(kind))
    content = value.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") in _PARTS for part in content
    )


def split_items(
    parts: Sequence[Mapping[str, Any]], *, provider: str | None = None, model: str | None = None
) -> Iterator[RequestMessage]:
    """Yield the message of each run of items; an unknown item is alone and has no role."""
    run: list[Mapping[str, Any]] = []
    hosted: set[Any] = set()
    for index, item in enumerate(parts):
        role = _item_role(item)
        if item.get("type") == "shell_call" and not typed_calls.is_typed(item):
            hosted.add(item.get("call_id"))
        elif role == "tool" and item.get("call_id") in hosted:
            role = "assistant"  # the service ran the command, and this is its result
        if role == "assistant":
            run.append(item)
            continue
        if run:
            yield ItemsMessage("assistant", run, index - len(run))
            run = []
        yield ItemsMessage(role, [item], index)
    if run:
        yield ItemsMessage("assistant", run, len(parts) - len(run))


def _item_role(item: Mapping[str, Any]) -> Role | None:
    kind, role = item.get("type", "message"), item.get("role")
    if not isinstance(kind, str):
        return None
    if kind == "message":
        return ROLES.get(str(role)) if role not in ("tool", "function") else None
    return "assistant" if answered_call(item) is None else "tool"
