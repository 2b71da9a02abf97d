"""Messages of llm's parts: what a model said through ingress, everything else as it stands.

Theory. A message's key is made of what was said, and of no row's own name; so a conversation
is known again when llm has taken it over into another layout. Where an old row keeps the
provider's own response beside the text, and the two agree, the response is read: it has the
signatures that the columns do not have.

Knows parts and the row of the call that they came from; must not know layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from reasoning_store.blocks import Block, Message, Origin, TextBlock
from reasoning_store.errors import UsageError, WireError
from reasoning_store.importers import llm_parts
from reasoning_store.importers.found import Placed, time_of
from reasoning_store.importers.llm_file import Row, value_of
from reasoning_store.importers.llm_parts import Part
from reasoning_store.importers.reading import UNKNOWN_ROLE, Reading, Who
from reasoning_store.ingress.normalizer import normalize_response
from reasoning_store.ingress.texts import TAG_SOURCE

_WHOLE: Final[Mapping[str, str]] = {
    "choices": "openai.chat",
    "output": "openai.responses",
    "content": "anthropic.messages",
    "candidates": "gemini.generate_content",
}
"""The list that a whole response of a protocol has."""
_KEYED: Final = frozenset({"text", "tool_call", "tool_result"})
_SAID: Final = ("type", "text", "name", "arguments", "output")


def placed_at(place: str, call: Row | None) -> Placed:
    """Return how an error names a message, with the time of the call it belongs to."""
    at: datetime | None = None if call is None else time_of(call["datetime_utc"])
    return Placed(place=place, line=0, value={} if at is None else {"created_at": at.isoformat()})


def _source(role: str, parts: Sequence[Part]) -> Any:
    """Return what a message's key is made of."""
    return [role, *([part.get(name) for name in _SAID] for part in parts if part["type"] in _KEYED)]


def _unread(parts: Sequence[Part], about: Any) -> dict[str, Any]:
    kept = llm_parts.unread(parts)
    return {**kept, "provider_metadata": about} if about else kept


def heard(
    role: Any, parts: Sequence[Part], placed: Placed, under_way: Reading, *, about: Any = None
) -> None:
    """Take in what was not said by a model, as it stands."""
    if role not in ("user", "tool", "system"):
        under_way.into.skip(placed.place, UNKNOWN_ROLE)
        return
    made: list[Block] = []
    texts: list[str] = []
    for part in parts:
        if part["type"] == "tool_result":
            output = part.get("output")
            made.append(
                under_way.answer(
                    placed,
                    part.get("tool_call_id"),
                    output,
                    name=part.get("name"),
                    is_error=bool(part.get("exception")),
                )
            )
            made += map(llm_parts.medium, part.get("attachments") or ())
            texts += [output] if isinstance(output, str) else []
        elif part["type"] == "attachment":
            made.append(llm_parts.medium(part.get("attachment") or {}))
        elif part.get("text"):
            made.append(TextBlock(text=part["text"]))
            texts.append(part["text"])
    message = Message(role=role, blocks=tuple(made))
    unread = _unread(parts, about)
    under_way.add(
        message,
        placed,
        texts=texts,
        beside=len(unread.get("parts", ())),
        source=_source(role, parts),
        unread=unread,
    )


def reply(
    parts: Sequence[Part],
    call: Row | None,
    placed: Placed,
    under_way: Reading,
    *,
    counted: bool = True,
    about: Any = None,
) -> None:
    """Take in what a model said; ``counted`` says that the call's usage is this message's."""
    call = call or {}
    model = call.get("resolved_model") or call.get("model")
    message = llm_parts.reply(parts, under_way.who, model)
    thoughts = sum(map(llm_parts.is_thought, parts))
    whole = _whole(call, message, under_way.who, model) if "response" in call else None
    if whole is not None:
        message = whole
        thoughts = sum(block.source_field != TAG_SOURCE for block in whole.thinking)
    media = [part.get("attachment") or {} for part in parts if part["type"] == "attachment"]
    message = replace(message, blocks=(*message.blocks, *map(llm_parts.medium, media)))
    if counted:
        details = value_of(call.get("token_details"), placed.place)
        message = replace(message, usage=llm_parts.usage(call, details))
    if not (under_way.who.provider or under_way.who.base_url or _is_known(message.origin)):
        # Nobody's protocol: only the model is known.
        message = replace(message, origin=Origin(model=model) if model else None)
    unread = _unread(parts, about)
    under_way.add(
        message,
        placed,
        texts=[part["text"] for part in parts if part["type"] == "text" and part.get("text")],
        thoughts=thoughts,
        beside=len(unread.get("parts", ())),
        source=_source("assistant", parts),
        unread=unread,
    )


def _is_known(origin: Origin | None) -> bool:
    return origin is not None and origin.api != "thinking_events"


def _whole(call: Row, message: Message, who: Who, model: str | None) -> Message | None:
    """Return the provider's own response, where it says the same and thinks more."""
    try:
        body = value_of(call.get("response_json"), "")
    except UsageError:
        return None  # the columns say all the same what was said
    named = [api for name, api in _WHOLE.items() if isinstance(body, dict) and _listed(body, name)]
    if not named:
        return None
    try:
        whole = normalize_response(body, api=named[0], **who.asked(model=model))
    except WireError:
        return None
    thinks_more = len(whole.thinking) > len(message.thinking) or any(
        block.opaque for block in whole.thinking
    )
    agrees = whole.text == message.text and _called(whole) == _called(message)
    return whole if agrees and thinks_more else None


def _listed(body: Mapping[str, Any], name: str) -> bool:
    return isinstance(body.get(name), list)


def _called(message: Message) -> list[str]:
    return [call.name for call in message.tool_calls]
