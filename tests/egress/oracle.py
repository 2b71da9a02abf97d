"""What a request counts, found out from nothing but the body that would be sent.

It knows each protocol's shapes from the providers' documentation, and the definition
of effective tokens; it imports neither egress nor wire, so it cannot share their mistakes.
What it cannot see is passed to it, for no body has it: which tokens a provider reported for
what a seal hides.

It reads what can be told apart in a body: one text a message of the user's, one response a
message of a tool's, no two replies in a row, and thoughts without line ends around them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reasoning_store.tokens import counter

FRAMING = 4
PRIMING = 3
PLACEHOLDERS = ("skip_thought_signature_validator", ".", "no answer was recorded")
"""What stands for a lost seal, a user who said nothing and a model that did not: put in by a
repair, and not counted."""

Body = Mapping[str, Any]


def tokens(text: str) -> int:
    return counter("o200k_base").count(text).tokens


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True)
class Said:
    """What stands in a body for one message."""

    visible: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    seals: list[str] = field(default_factory=list)
    """Ciphertext, and the seals of thoughts that cannot be read."""
    marks: list[str] = field(default_factory=list)
    """Every seal, of readable thoughts too."""

    def think(self, thought: str, signature: str = "", encrypted: str = "") -> None:
        if thought:
            self.thoughts.append(thought)
        if encrypted in PLACEHOLDERS:
            return
        hidden = encrypted or ("" if thought else signature)
        self.seals += [hidden] if hidden else []
        self.marks += [mark for mark in (signature, encrypted) if mark]

    def call(self, name: str, arguments: Any) -> None:
        self.visible.append(name)
        self.visible.append(arguments if isinstance(arguments, str) else compact(arguments))

    def count(self, reported: Mapping[str, int]) -> tuple[int, int]:
        """Return what is visible and what is thinking; the framing is with the visible."""
        visible = [text for text in self.visible if text not in PLACEHOLDERS]
        if not (visible or self.thoughts or self.marks):
            return 0, 0
        readable = sum(map(tokens, self.thoughts))
        hidden = 0
        if self.marks:
            known = [reported[mark] for mark in self.marks if mark in reported]
            hidden = (
                max(0, known[0] - readable)
                if known
                else -(-sum(len(seal) for seal in self.seals) // 4)
            )
        framing = (FRAMING, 0) if visible else (0, FRAMING)
        return sum(map(tokens, visible)) + framing[0], readable + hidden + framing[1]


def effective(
    body: Body,
    api: str,
    *,
    system: str | None = None,
    tools: Sequence[Any] = (),
    reported: Mapping[str, int] | None = None,
) -> int:
    """Return what a body counts. ``system`` and ``tools`` are what was asked to go with it."""
    return sum(by_kind(body, api, system=system, tools=tools, reported=reported).values())


def by_kind(
    body: Body,
    api: str,
    *,
    system: str | None = None,
    tools: Sequence[Any] = (),
    reported: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the parts of that count; the opening of the answer is one of the messages'."""
    counts = [message.count(reported or {}) for message in WALKS[api](body)]
    return {
        "system": tokens(system) if system else 0,
        "tools": tokens(compact(list(tools))) if tools else 0,
        "messages": PRIMING + sum(visible for visible, _ in counts),
        "thinking": sum(thinking for _, thinking in counts),
    }


def chat(body: Body) -> Iterator[Said]:
    for message in body["messages"]:
        if message["role"] in ("system", "developer"):
            continue
        said = Said()
        content = message.get("content")
        for item in content if isinstance(content, list) else [content]:
            _chat_content(said, item)
        if message["role"] == "assistant":
            _chat_reasoning(said, message)
        for call in message.get("tool_calls") or ():
            said.call(call["function"]["name"], call["function"]["arguments"])
        if message["role"] == "tool" and not said.visible:
            said.visible.append("")
        yield said


def _chat_content(said: Said, item: Any) -> None:
    if isinstance(item, str):
        thought, text = _tagged(item)
        said.think(thought)
        said.visible += [text] if text else []
    elif isinstance(item, Mapping) and item["type"] == "text":
        said.visible.append(item["text"])
    elif isinstance(item, Mapping) and item["type"] == "thinking":
        inner = item["thinking"]
        parts = [inner] if isinstance(inner, str) else [part["text"] for part in inner]
        said.think("".join(parts), signature=item.get("signature", ""))
    elif isinstance(item, Mapping) and item["type"] == "document":
        said.visible.append(item["document"]["data"])


def _tagged(text: str) -> tuple[str, str]:
    """Return the thought at the beginning of a text, between delimiters, and the text."""
    found = re.fullmatch(r"<think>\n?(.*?)\n?</think>\n?(.*)", text, re.DOTALL)
    return (found[1], found[2]) if found else ("", text)


def _chat_reasoning(said: Said, message: Body) -> None:
    sealed = message.get("encrypted_content") or message.get("reasoning_opaque") or ""
    for name in ("reasoning_content", "reasoning", "thinking", "reasoning_text"):
        if message.get(name):
            said.think(message[name], encrypted=sealed)
    for item in message.get("reasoning_details") or ():
        thought = item.get("text") or item.get("summary") or ""
        said.think(thought, item.get("signature") or "", item.get("data") or "")
    for item in message.get("thinking_blocks") or ():
        said.think(item.get("thinking", ""), item.get("signature", ""), item.get("data", ""))


def anthropic(body: Body) -> Iterator[Said]:
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "user":
            for block in blocks:
                text = block["text"] if block["type"] == "text" else block.get("content", "")
                yield Said(visible=[text])
            continue
        said = Said()
        for block in blocks:
            if block["type"] == "text":
                said.visible.append(block["text"])
            elif block["type"] == "tool_use":
                said.call(block["name"], block["input"])
            else:
                said.think(
                    block.get("thinking", ""), block.get("signature", ""), block.get("data", "")
                )
        yield said


def bedrock(body: Body) -> Iterator[Said]:
    for message in body["messages"]:
        said = Said()
        for block in message["content"]:
            ((kind, value),) = block.items()
            if message["role"] == "user":
                yield Said(visible=[value if kind == "text" else _result(value)])
            elif kind == "text":
                said.visible.append(value)
            elif kind == "toolUse":
                said.call(value["name"], value["input"])
            else:
                text = value.get("reasoningText", {})
                said.think(
                    text.get("text", ""),
                    text.get("signature", ""),
                    value.get("redactedContent", ""),
                )
        if message["role"] == "assistant":
            yield said


def _result(value: Body) -> str:
    return "".join(part["text"] for part in value["content"])


def gemini(body: Body) -> Iterator[Said]:
    for content in body["contents"]:
        said = Said()
        for part in content["parts"]:
            seal = part.get("thoughtSignature", "")
            if "functionResponse" in part:
                yield Said(visible=[part["functionResponse"]["response"]["result"]])
            elif content["role"] == "user":
                yield Said(visible=[part["text"]])
            elif part.get("thought"):
                said.think(part["text"], signature=seal)
            elif "functionCall" in part:
                said.call(part["functionCall"]["name"], part["functionCall"].get("args", {}))
            else:
                said.visible.append(part["text"])
        if content["role"] == "model":
            yield said


def responses(body: Body) -> Iterator[Said]:
    reply = Said()
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "reasoning":
            texts = [part["text"] for part in (*item["summary"], *(item.get("content") or ()))]
            reply.think("\n\n".join(texts), encrypted=item.get("encrypted_content", ""))
        elif kind == "function_call":
            reply.call(item["name"], item["arguments"])
        elif kind == "message" and item["role"] == "assistant":
            content = item["content"]
            parts = [content] if isinstance(content, str) else [part["text"] for part in content]
            reply.visible += parts
        else:
            yield reply
            reply = Said()
            yield Said(visible=[item["output"] if "output" in item else item["content"]])
    yield reply


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def model_messages(body: Body) -> Iterator[Said]:
    for message in body["messages"]:
        content = message["content"]
        said = Said()
        parts: list[Any] = content if isinstance(content, list) else [text_part(content)]
        for part in parts:
            options = part.get("providerOptions", {}).get("anthropic", {})
            if part["type"] == "tool-result":
                yield Said(visible=[part["output"]["value"]])
            elif part["type"] == "tool-call":
                said.call(part["toolName"], part["input"])
            elif part["type"] == "reasoning":
                seals = options.get("signature", ""), options.get("redactedData", "")
                said.think(part["text"], *seals)
            else:
                said.visible.append(part["text"])
        yield said


WALKS: Mapping[str, Callable[[Body], Iterator[Said]]] = {
    "anthropic.messages": anthropic,
    "bedrock.converse": bedrock,
    "cohere.chat": chat,
    "gemini.generate_content": gemini,
    "mistral.chat": chat,
    "ollama.chat": chat,
    "openai.chat": chat,
    "openai.responses": responses,
    "thinking_events": model_messages,
}
