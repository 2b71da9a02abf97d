"""The parts of llm's messages, made into blocks.

Theory. What a model said goes through ingress, and should come out as if it had arrived from
the provider. llm keeps what a provider wants back under the provider's name
(``provider_metadata``); where there is such a name, the parts are written in that provider's
own form and read by its reader, so that ciphertext and signatures stand where its protocol
looks for them. Parts without one are read as neutral events.

What a hosted tool did is the provider's own: it is kept with the message's metadata, but for
an item that the provider itself can take back.

The fields of a part are those of llm's own JSON; ``attachment`` and ``attachments`` are rows.

Knows parts and forms; must not know tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    MediaBlock,
    MediaKind,
    Message,
    Usage,
)
from reasoning_store.importers.history_reader import AnsweredBy
from reasoning_store.importers.neutral_replies import Part, read_neutral_reply
from reasoning_store.ingress.normalizer import normalize_response
from reasoning_store.wire.event_fields import other_fields, whole_number

_TYPES: Final = frozenset({"text", "reasoning", "tool_call", "tool_result", "attachment"})
_ROUTED: Final = "openrouter/"
_MEDIA: Final[Mapping[str, MediaKind]] = {"image": "image", "audio": "audio", "video": "video"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A provider's own form: who it is, its protocol, and how parts are written in it."""

    provider: str
    api: str
    body: Callable[[Sequence[Part]], Any]


def read_reply(parts: Sequence[Part], who: AnsweredBy, model: str | None) -> Message:
    """Return what a model said, through ingress."""
    marks = (
        name
        for part in parts
        for name in _provider_metadata(part)
        if name in _FORMS and _metadata_of(part, name)
    )
    name = next(marks, None)
    spoken = [part for part in parts if not part.get("server_executed")]
    if name is None:
        return read_neutral_reply(spoken, who.ingress_options(model=model))
    form = _FORMS[name]
    if form is _FORMS["openai"] and model is not None and model.startswith(_ROUTED):
        form = _FORMS["openrouter"]  # its plugin is built upon OpenAI's, names included
    ingress_options = who.ingress_options(provider=form.provider, model=model)
    return normalize_response(form.body(parts), api=form.api, **ingress_options)


def _provider_metadata(part: Part) -> Mapping[str, Any]:
    about = part.get("provider_metadata")
    return about if isinstance(about, dict) else {}


def _metadata_of(part: Part, provider: str) -> Mapping[str, Any]:
    about = _provider_metadata(part).get(provider)
    return about if isinstance(about, dict) else {}


# Forms


def _items(parts: Sequence[Part]) -> dict[str, Any]:
    """Output items of the Responses protocol."""
    items: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], _metadata_of(part, "openai")
        hosted = _metadata_of(part, "openrouter").get("response_item")
        if isinstance(hosted, dict):
            items.append(hosted)
        elif part.get("server_executed"):
            continue
        elif kind == "reasoning":
            items.append({"type": "reasoning", **_reasoning(part, about)})
        elif kind == "text":
            content = [{"type": "output_text", "text": part.get("text") or ""}]
            items.append(
                {
                    **other_fields(about, ()),
                    "type": "message",
                    "role": "assistant",
                    "content": content,
                }
            )
        elif kind == "tool_call":
            items.append(
                {
                    **other_fields(about, ()),
                    "type": "function_call",
                    "call_id": part.get("tool_call_id"),
                    "name": part.get("name") or "",
                    "arguments": part.get("arguments"),
                }
            )
    return {"output": items}


def _reasoning(part: Part, about: Mapping[str, Any]) -> dict[str, Any]:
    """The text of the part is that of the summary and the content, where the item has them."""
    text = part.get("text")
    if about.get("summary") or not text:
        return {"summary": [], **about}
    return {**about, "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def _content(parts: Sequence[Part]) -> dict[str, Any]:
    """Content blocks of the Messages protocol."""
    content: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], _metadata_of(part, "anthropic")
        if part.get("server_executed"):
            continue
        if kind == "reasoning" and about.get("type") == "redacted_thinking":
            content.append({"type": "redacted_thinking", "data": about.get("data") or ""})
        elif kind == "reasoning":
            text = part.get("text") or ""
            seal = {"signature": about["signature"]} if about.get("signature") else {}
            content.append({"type": "thinking", "thinking": text, **seal})
        elif kind == "text":
            content.append({"type": "text", "text": part.get("text") or ""})
        elif kind == "tool_call":
            content.append(
                {
                    "type": "tool_use",
                    "id": part.get("tool_call_id") or "",
                    "name": part.get("name") or "",
                    "input": part.get("arguments"),
                }
            )
    return {"role": "assistant", "content": content}


def _gemini(parts: Sequence[Part]) -> dict[str, Any]:
    """Parts of generateContent."""
    made: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], _metadata_of(part, "gemini")
        seal = about.get("thoughtSignature")
        sealed = {"thoughtSignature": seal} if isinstance(seal, str) else {}
        if part.get("server_executed"):
            continue
        if kind == "reasoning":
            made.append({"text": part.get("text") or "", "thought": True, **sealed})
        elif kind == "text":
            made.append({"text": part.get("text") or "", **sealed})
        elif kind == "tool_call":
            call = {"name": part.get("name") or "", "args": part.get("arguments") or {}}
            named = {"id": part["tool_call_id"]} if part.get("tool_call_id") else {}
            made.append({"functionCall": {**call, **named}, **sealed})
    return {"candidates": [{"content": {"role": "model", "parts": made}}]}


_FORMS: Final[Mapping[str, _Form]] = {
    "openai": _Form(provider="openai", api="openai.responses", body=_items),
    "openrouter": _Form(provider="openrouter", api="openai.responses", body=_items),
    "anthropic": _Form(provider="anthropic", api="anthropic.messages", body=_content),
    "gemini": _Form(provider="google", api="gemini.generate_content", body=_gemini),
}


# Messages that no model gave


def media_block(row: Mapping[str, Any]) -> MediaBlock:
    """Return an attachment: its bytes, its address, or the path that llm remembers."""
    mime = row.get("type") or "application/octet-stream"
    data = row.get("content") or None
    url = None if data else row.get("url")
    return MediaBlock(
        kind=_MEDIA.get(mime.partition("/")[0], "file"),
        mime_type=mime,
        data=data,
        url=url,
        ref=None if data or url else row.get("path") or row.get("id"),
    )


def is_thought(part: Part) -> bool:
    """Whether a part holds reasoning, and not only the note that there was some."""
    if part["type"] != "reasoning":
        return False
    about = [value for value in _provider_metadata(part).values() if isinstance(value, dict)]
    sealed = ("signature", "thoughtSignature", "encrypted_content", "data")
    return bool(part.get("text")) or any(known.get(name) for known in about for name in sealed)


def unread_parts(parts: Sequence[Part]) -> dict[str, Any]:
    """Return what of a message became no block: hosted tools, and how a tool failed."""
    hosted = [
        {name: value for name, value in part.items() if name != "attachments"}
        for part in parts
        if part["type"] not in _TYPES
        or (
            part.get("server_executed")
            and not _metadata_of(part, "openrouter").get("response_item")
        )
    ]
    failed = [part["exception"] for part in parts if part.get("exception")]
    return {**({"parts": hosted} if hosted else {}), **({"exceptions": failed} if failed else {})}


def read_usage(row: Mapping[str, Any], details: Any) -> Usage | None:
    """Return what a model call reported, as llm kept it."""
    counts = {name: whole_number(row.get(f"{name}_tokens")) for name in ("input", "output")}
    if all(number is None for number in counts.values()):
        return None
    reasoning = _detail(details, _REASONING)
    output = counts["output"]
    if output is not None and reasoning is not None and reasoning > output:
        output += reasoning  # it is not in the output yet
    cached, cache_write = _detail(details, _CACHED), _detail(details, _CACHE_WRITE)
    given = counts["input"]
    if given is not None and _detail(details, _OUTSIDE_INPUT) is not None:
        given += (cached or 0) + (cache_write or 0)
    return Usage(
        input=given,
        output=output,
        reasoning=reasoning,
        cached=cached,
        cache_write=cache_write,
        raw={**counts, **({"details": details} if details else {})},
    )


_REASONING: Final = (
    ("output_tokens_details", "reasoning_tokens"),
    ("completion_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
    ("thoughtsTokenCount",),
)
_CACHED: Final = (
    ("input_tokens_details", "cached_tokens"),
    ("prompt_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("cachedContentTokenCount",),
)
_CACHE_WRITE: Final = (
    ("input_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("cache_creation_input_tokens",),
)
_OUTSIDE_INPUT: Final = (("cache_read_input_tokens",), ("cache_creation_input_tokens",))
"""Anthropic's words: it counts as input only those outside of its cache."""


def _detail(details: Any, places: Sequence[Sequence[str]]) -> int | None:
    for place in places:
        value = details
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if (number := whole_number(value)) is not None:
            return number
    return None
