"""The tokens of a body as it would be sent, by our own count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import reasoning_store as rs
from reasoning_store.formats import split_messages
from reasoning_store.integrations.client_bodies import BodyForm
from reasoning_store.results import Contracts

_INSTRUCTIONS = ("instructions", "system")
_AS_IT_IS = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"}
"""The policy has chosen the thinking in the body."""


def count_body(
    form: BodyForm,
    body: Mapping[str, Any],
    *,
    provider: str | None = None,
    base_url: str | None = None,
    contracts: Contracts | None = None,
) -> int:
    """Return the tokens of a request's messages, thinking, instructions and tools."""
    model = body.get("model")
    messages = _read_messages(form, body)
    return rs.effective_tokens(
        messages,
        settings=_AS_IT_IS,
        provider=provider,
        base_url=base_url,
        model=model if isinstance(model, str) else None,
        api=form.api,
        system=next((body[name] for name in _INSTRUCTIONS if body.get(name)), None),
        tools=body.get("tools"),
        contracts=contracts,
    ).effective


def _read_messages(form: BodyForm, body: Mapping[str, Any]) -> list[rs.Message]:
    key = form.messages_key
    given = body.get(key)
    # OpenAI's input may be absent; Anthropic's messages may not.
    if not isinstance(given, str | list) and (given is not None or key == "messages"):
        raise rs.InvalidCall(f"{key}: a list of messages is needed")
    parts = form.list_of(body)
    if any(one.role is None for one in split_messages(parts, api=form.api)):
        raise rs.InvalidCall(f"{key}: not in the form of the protocol, so it is not counted")
    return form.import_messages(parts)
