"""The tokens of a body as it would be sent, by our own count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import BodyForm

_INSTRUCTIONS = ("instructions", "system")
_AS_IT_IS = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"}
"""The policy has chosen what stands in the body."""


def count_body(
    form: BodyForm,
    body: Mapping[str, Any],
    *,
    provider: str | None = None,
    base_url: str | None = None,
) -> int:
    """Return the tokens of a request's messages, thinking, instructions and tools."""
    model = body.get("model")
    try:
        messages = form.import_messages(form.list_of(body))
        return rs.effective_tokens(
            messages,
            settings=_AS_IT_IS,
            provider=provider,
            base_url=base_url,
            model=model if isinstance(model, str) else None,
            api=form.api,
            system=next((body[name] for name in _INSTRUCTIONS if body.get(name)), None),
            tools=body.get("tools"),
        ).effective
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, rs.ReasoningStoreError):
            raise
        raise rs.InvalidCall(
            f"{form.messages_key}: not in the form of the protocol, and cannot be counted"
        ) from None
