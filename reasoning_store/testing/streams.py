"""Any assistant message as any protocol's own events, or as its whole body.

    stream(assistant("Hello"), api="anthropic.messages", pieces=3)

The dicts are what a connection's decoder would give, in order. What a protocol has no place
for is left out, as it would be missing from the wire; ``strict=True`` refuses it instead,
and ``carries`` tells beforehand. A message that was interrupted gives a stream that breaks
off. A message without usage gives events without one, also where a real server always
sends it; one without a finish reason ends for the protocol's usual reason.

Knows which module speaks which api. It must not know a protocol's words.
"""

from __future__ import annotations

from typing import Any, Final

from reasoning_store.blocks import Message
from reasoning_store.errors import UsageError
from reasoning_store.testing import (
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini_generate_content,
    mistral_chat,
    ollama_chat,
    openai_chat,
    openai_responses,
    thinking_events,
)
from reasoning_store.testing.carriage import losses
from reasoning_store.testing.script import Cut, Protocol, Script
from reasoning_store.wire import contracts

_PROTOCOLS: Final[dict[str, Protocol]] = {
    "anthropic.messages": anthropic_messages.PROTOCOL,
    "bedrock.converse": bedrock_converse.PROTOCOL,
    "cohere.chat": cohere_chat.PROTOCOL,
    "gemini.generate_content": gemini_generate_content.PROTOCOL,
    "mistral.chat": mistral_chat.PROTOCOL,
    "ollama.chat": ollama_chat.PROTOCOL,
    "openai.chat": openai_chat.PROTOCOL,
    "openai.responses": openai_responses.PROTOCOL,
    "thinking_events": thinking_events.PROTOCOL,
}


def stream(
    message: Message,
    *,
    api: str,
    pieces: int = 1,
    provider: str | None = None,
    model: str | None = None,
    seed: int | None = None,
    include_usage: bool = True,
    strict: bool = False,
) -> list[dict[str, Any]]:
    """Return the events with which a provider would stream this message.

    ``pieces``: into how many pieces each text, thought and argument string is cut, evenly,
    or with a ``seed`` anywhere. ``provider`` and ``model`` choose the names of fields where
    hosts of one protocol differ.
    """
    script = _script(message, api, provider, model, include_usage, Cut(pieces, seed))
    protocol = _protocol(script, strict=strict, whole=False)
    return list(protocol.events(script))


def response(
    message: Message,
    *,
    api: str,
    provider: str | None = None,
    model: str | None = None,
    include_usage: bool = True,
    strict: bool = False,
) -> dict[str, Any]:
    """Return the body with which a provider would answer with this message at once."""
    script = _script(message, api, provider, model, include_usage, Cut())
    return _protocol(script, strict=strict, whole=True).body(script)


def carries(
    message: Message,
    api: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    whole: bool = False,
) -> bool:
    """Whether a stream of the protocol, or a ``whole`` body, says all that the message says.

    What it may add is its own: ids, source fields, metadata that says of what kind a block
    was. It is not asked of it to carry the spelling of arguments that it sends as objects.
    """
    script = _script(message, api, provider, model, True, Cut())
    return not _lost(script, whole=whole)


def _script(
    message: Message,
    api: str,
    provider: str | None,
    model: str | None,
    include_usage: bool,
    cut: Cut,
) -> Script:
    origin = message.origin
    named = model or (origin.model if origin else None)
    return Script(
        message=message,
        contract=contracts.resolve(provider, model, api),
        model=named or "model",
        response_id=origin.response_id if origin else None,
        usage=message.usage if include_usage else None,
        cut=cut,
    )


def _protocol(script: Script, *, strict: bool, whole: bool) -> Protocol:
    if strict and (lost := _lost(script, whole=whole)):
        raise UsageError(
            f"{script.contract.api} has no place for {lost[0]}",
            hint="without strict=True it is left out",
        )
    return _PROTOCOLS[script.contract.api]


def _lost(script: Script, *, whole: bool) -> list[str]:
    carriage = _PROTOCOLS[script.contract.api].carriage(script.contract)
    return list(losses(script.message, script.usage, carriage, script.contract, whole=whole))
