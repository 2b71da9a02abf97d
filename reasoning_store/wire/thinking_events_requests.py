"""Hosts of the AI SDK, the writing direction: messages as the model messages they send on.

Theory. A host that normalises streams takes history in a form of its own and makes each
provider's request of it. So a thought, a text and a call are parts of a message, and what a
provider put beside them goes back in ``providerOptions`` under that provider's name: there
the host's own adapter looks for a signature. What is an answer of a tool stands in a message
of the role ``tool``, its value marked as text, JSON or an error.

There is no call of an official Python SDK to make: the arguments are the body. What is kept
was decided before. The reading direction is ``thinking_events`` and ``ui_messages``; this
module must not know settings, tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import asking, neutral
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.pages import Page, Part

BUILT: Final = frozenset({"model", "system", "messages", "tools"})

_ENVELOPE: Final = "vercel"
"""Under which ingress keeps what stood in ``providerMetadata``."""


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


class _Page(Page):
    def write(self, messages: Iterable[Outgoing]) -> None:
        for outgoing in messages:
            self.rendered += _messages(outgoing, self.left_out)

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: Part = {}
        if model is not None:
            body["model"] = model
        if system:
            body["system"] = system
        body["messages"] = self.messages(copies=copies)
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        unsaid, held = asking.ask(asked, self.contract, body, self.turn)
        return Written(body=body, unsaid=unsaid, held=held, left_out=tuple(self.left_out))


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body as it is: the host's own code makes the call."""
    return dict(body)


def _messages(outgoing: Outgoing, left_out: dict[str, None]) -> list[Part]:
    message = outgoing.message
    answers: list[Part] = []
    parts: list[Part] = []
    for block in message.blocks:
        if isinstance(block, ToolResponseBlock):
            answers.append(_answer(block))
            continue
        render = _PARTS.get(type(block))
        part = render(block) if render is not None else None
        if part is None:
            left_out[name_of(block)] = None
        else:
            parts.append(part)
    role = "user" if message.role == "tool" else message.role
    out = []
    if parts:
        plain = role != "assistant" and [part.keys() for part in parts] == [{"type", "text"}]
        out.append({"role": role, "content": parts[0]["text"] if plain else parts})
    if answers:
        said = {"role": "tool", "content": answers}
        out = [*out, said] if role == "assistant" else [said, *out]
    return out


def _options(block: Block) -> Part:
    """Return what a provider put beside a part, under its name."""
    options = (block.provider_metadata or {}).get(_ENVELOPE)
    return {"providerOptions": dict(options)} if isinstance(options, Mapping) and options else {}


def _text(block: TextBlock) -> Part:
    return {"type": "text", "text": block.text, **_options(block)}


def _thinking(block: ThinkingBlock) -> Part:
    options = _options(block)
    if not options and block.encrypted:
        return {"type": "redacted-reasoning", "data": block.encrypted}
    # Without a provider's name beside it a signature stands where older hosts look for it.
    signature = {"signature": block.signature} if not options and block.signature else {}
    return {"type": "reasoning", "text": block.thought, **signature, **options}


def _call(block: ToolCallBlock) -> Part:
    return {
        "type": "tool-call",
        "toolCallId": block.id,
        "toolName": block.name,
        "input": neutral.arguments(block),
        **_options(block),
    }


def _answer(block: ToolResponseBlock) -> Part:
    kind = "text" if isinstance(block.result, str) else "json"
    output = {"type": f"error-{kind}" if block.is_error else kind, "value": block.result}
    return {
        "type": "tool-result",
        "toolCallId": block.call_id,
        "toolName": block.tool_name,
        "output": output,
        **_options(block),
    }


def _media(block: MediaBlock) -> Part | None:
    if block.data is None and block.url is None:
        return None  # the application's own name for it means nothing to others
    name = {"filename": block.name} if block.name else {}
    data = block.url or neutral.base64_of(block)
    return {"type": "file", "mediaType": block.mime_type, "data": data, **name, **_options(block)}


_PARTS: Final[Mapping[type, Callable[[Any], Part | None]]] = {
    TextBlock: _text,
    ThinkingBlock: _thinking,
    ToolCallBlock: _call,
    MediaBlock: _media,
}


def _tool(tool: Mapping[str, Any]) -> Part:
    about = neutral.function(tool)
    if about is None:
        return dict(tool)
    schema = about.get("parameters") or dict(neutral.NO_PARAMETERS)
    described = {"description": about["description"]} if about.get("description") else {}
    return {"type": "function", "name": about["name"], **described, "inputSchema": schema}
