"""The parts of a reply that a history keeps: thoughts, texts and calls, one after the other.

Data that a provider wants back is in ``provider_metadata``, under the name of the provider's form.
``reply_forms`` reads the parts as a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from reasoning_store.formats import parse_arguments
from reasoning_store.importers.source_messages import list_field, object_field, text_field

TAGS: Final = ("think", "thinking", "thought", "reasoning", "reflection")
"""The names of the delimiters between which programs write thoughts."""
DETAILS: Final = "reasoning_details"
"""The name under which a part has reasoning details; the provider is not known by them."""

_TEXT_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
THOUGHT_FIELDS: Final = frozenset({*_TEXT_FIELDS, DETAILS, "thinking_blocks"})
"""The fields next to its content in which a reply has its thoughts."""

Part: TypeAlias = dict[str, Any]
"""``type`` is reasoning or text, with ``text``; tool_call, with ``tool_call_id``, ``name`` and
``arguments``; item, which is an item of Responses; or tool_result, which ends the reply. Another
type is left out."""


def reasoning_part(text: Any, field: str | None = None) -> Part:
    """Return a thought; ``field`` is the one in which its provider sent it."""
    said = text if isinstance(text, str) else ""
    return {"type": "reasoning", "text": said, "source_field": field}


def text_part(text: Any, **own: Mapping[str, Any]) -> Part:
    """Return a text, with data that a provider wants back under the provider's name."""
    return _with_own({"type": "text", "text": text if isinstance(text, str) else ""}, own)


def item_part(item: Mapping[str, Any]) -> Part:
    """Return an item of Responses that is neither a thought nor a text nor a call."""
    return {"type": "item", "provider_metadata": {"openai": dict(item)}}


def _with_own(part: Part, own: Mapping[str, Mapping[str, Any]]) -> Part:
    kept = {provider: dict(data) for provider, data in own.items() if data}
    return {**part, "provider_metadata": kept} if kept else part


def sealed_part(text: Any, provider: str, seal: Mapping[str, Any]) -> Part:
    """Return a thought with the data that its provider wants back."""
    return _with_own(reasoning_part(text), {provider: seal})


def reasoning_item_part(item: Mapping[str, Any]) -> Part:
    """Return a thought that is an item of Responses."""
    names = ("id", "summary", "content", "encrypted_content")
    about = {name: item[name] for name in names if item.get(name) is not None}
    summary = (one for one in list_field(about, "summary") if isinstance(one, dict))
    texts = (text for one in summary if (text := text_field(one, "text")))
    return sealed_part("\n\n".join(texts), "openai", about)


def add_reasoning_item(parts: list[Part], item: Mapping[str, Any]) -> None:
    """Add a thought that is an item of Responses; several parts of one item are one."""
    before = metadata_of(parts[-1], "openai") if parts and parts[-1]["type"] == "reasoning" else {}
    if before and before.get("id") == item.get("id") is not None:
        parts.pop()
        item = {
            **{name: item.get(name) or before.get(name) for name in before.keys() | item.keys()},
            "summary": [*list_field(before, "summary"), *list_field(item, "summary")],
        }
    parts.append(reasoning_item_part(item))


def call_part(id: str | None, name: str | None, arguments: Any, **own: Mapping[str, Any]) -> Part:
    """Return a call; ``arguments`` are an object, or its JSON. See ``text_part``."""
    call = {"type": "tool_call", "tool_call_id": id, "name": name, "arguments": arguments}
    return _with_own(call, own)


def as_object(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object; any other value is its ``text``."""
    found = parse_arguments(arguments) if isinstance(arguments, str) else arguments
    return found if isinstance(found, dict) else {"text": arguments} if arguments else {}


def result_part(id: str | None, name: str | None, result: Any, *, is_error: bool = False) -> Part:
    """Return what a tool answered, as a part between those of its reply."""
    about = {"tool_call_id": id, "name": name, "output": result, "is_error": is_error}
    return {"type": "tool_result", **about}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBy:
    """The model that answered, as far as the caller knows, and the rule for inline delimiters."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    tags: str | Iterable[str] = TAGS  # programs write thoughts into text, whoever answered

    def ingress_options(
        self, *, provider: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """Return the keywords with which ingress reads a reply of a history.

        ``provider`` and ``model`` are those that the history names.
        """
        return {
            "provider": self.provider or provider,
            "model": self.model or model,
            "base_url": self.base_url,
            "tags": self.tags,
        }


def is_thought(part: Part) -> bool:
    """Whether a part holds reasoning, and not only the note that there was some."""
    if part["type"] != "reasoning":
        return False
    about = [value for value in provider_metadata(part).values() if isinstance(value, dict)]
    sealed = ("signature", "thoughtSignature", "encrypted_content", "data", "details")
    return bool(part.get("text")) or any(known.get(name) for known in about for name in sealed)


def provider_metadata(part: Part) -> Mapping[str, Any]:
    return object_field(part, "provider_metadata")


def metadata_of(part: Part, provider: str) -> Mapping[str, Any]:
    return object_field(provider_metadata(part), provider)


def thoughts_in_fields(more: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the thoughts that a reply has outside of its content, in the first field with some."""
    blocks = [one for one in list_field(more, "thinking_blocks") if isinstance(one, dict)]
    if details := list_field(more, DETAILS):
        said = (text_field(one, "text") for one in details if isinstance(one, dict))
        yield sealed_part("".join(text for text in said if text), DETAILS, {"details": details})
    elif item := object_field(more, "reasoning"):
        yield reasoning_item_part(item)
    elif blocks:
        yield from map(thinking_block_part, blocks)
    elif found := next(
        ((text, one) for one in _TEXT_FIELDS if (text := text_field(more, one))), None
    ):
        yield reasoning_part(*found)


def thinking_block_part(block: Mapping[str, Any]) -> Part:
    """Return a thought that is a block of the Messages protocol."""
    if block.get("type") == "redacted_thinking":
        seal = {"type": "redacted_thinking", "data": block.get("data")}
        return sealed_part("", "anthropic", seal)
    signature = text_field(block, "signature")
    return sealed_part(
        block.get("thinking"), "anthropic", {"signature": signature} if signature else {}
    )
