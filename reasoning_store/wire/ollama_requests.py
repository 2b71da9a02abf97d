"""Ollama's own chat API, the writing direction: messages as a request body.

Theory. A message has its text, its thoughts, its pictures and its calls in one field each;
a call's arguments are an object, and calls have no ids: a tool's answer names the tool. The
body says what the official client always says, ``tools`` and ``stream``, so that both send
the same.

The reading direction is ``ollama``; this module must not know settings, tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store import codec
from reasoning_store.blocks import (
    MediaBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import neutral, reasoning_parameters
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_requests import function_tool, system_messages
from reasoning_store.wire.pages import Page

BUILT: Final = frozenset({"model", "messages", "tools"})


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


class _Page(Page):
    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._names: dict[str, str] = {}

    def write(self, messages: Iterable[Outgoing]) -> None:
        for outgoing in messages:
            self.rendered += _messages(outgoing.message, self.contract, self._names, self.left_out)

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: dict[str, Any] = {}
        if model is not None:
            body["model"] = model
        begun = [_plain(item) for item in system_messages(system)]
        body["messages"] = [*begun, *self.messages(copies=copies)]
        body["tools"] = [function_tool(tool) for tool in tools or ()]
        body["stream"] = False
        unsaid = reasoning_parameters.say(asked, self.contract, body)
        return Written(body=body, unsaid=unsaid, left_out=tuple(self.left_out))


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official client's ``chat``."""
    messages = [
        {**item, "content": _Empty()} if item.get("content") == "" else item
        for item in body.get("messages", ())
    ]
    return {**body, "messages": messages}


class _Empty(str):
    """An empty text for a client that leaves out of a message whatever is not true."""

    def __bool__(self) -> bool:
        return True


def _messages(
    message: Message, contract: Contract, names: dict[str, str], left_out: dict[str, None]
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    texts: list[str] = []
    thoughts: list[str] = []
    images: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ThinkingBlock):
            thoughts.append(block.thought)
        elif isinstance(block, ToolCallBlock):
            names[block.id] = block.name
            calls.append({"function": {"name": block.name, "arguments": neutral.arguments(block)}})
        elif isinstance(block, ToolResponseBlock):
            name = block.tool_name or names.get(block.call_id, "")
            text = codec.result_text(block)
            out.append({"role": "tool", "tool_name": name, "content": text})
        elif isinstance(block, MediaBlock) and block.kind == "image" and block.data is not None:
            images.append(neutral.base64_of(block))
        else:
            left_out[name_of(block)] = None
    if not (texts or thoughts or images or calls):
        return out
    role = "user" if message.role == "tool" else message.role
    said: dict[str, Any] = {"role": role, "content": "".join(texts)}
    if contract.echo is not None and any(thoughts):
        # EC-007: empty reasoning is an omitted field.
        said[contract.echo] = "".join(thoughts)
    if images:
        said["images"] = images
    if calls:
        said["tool_calls"] = calls
    return [*out, said]


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose text is a string: parts of text become one."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text", "") if isinstance(part, Mapping) else part for part in content]
        if all(isinstance(text, str) for text in texts):
            return {**message, "content": "\n\n".join(texts)}
    return dict(message)
