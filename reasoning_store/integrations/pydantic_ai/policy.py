"""A capability of Pydantic AI that sends the reasoning which the settings choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, ThinkingPart
from pydantic_ai.models import ModelRequestContext

import reasoning_store as rs
from reasoning_store.integrations.pydantic_ai.messages import read_message, write_message
from reasoning_store.integrations.store_access import (
    Settings,
    find_session,
    read_settings,
    resolve_settings,
    run_in_thread,
    withheld_blocks,
)
from reasoning_store.results import Owner


@dataclass
class ReasoningPolicy(AbstractCapability[Any]):  # type: ignore[misc]  # its types are not here
    """Leaves out of each request the thinking that the settings and the host do not send.

    With a ``store`` the settings of the conversation's session count; ``settings`` are laid over
    them. ``provider``, ``model`` and ``api`` name the host where the model does not. A reply of
    which a host of Chat Completions demands thinking has the field, if need be empty. The history
    of the run and all that is stored stay as they are.
    """

    store: Owner | None = None
    settings: Settings = None
    provider: str | None = None
    model: str | None = None
    api: str | None = None

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Return the request with the chosen thinking."""
        messages = await run_in_thread(
            self._choose, request_context.messages, request_context.model, ctx.conversation_id
        )
        return replace(request_context, messages=messages)

    def _choose(
        self, given: list[ModelMessage], model: Any, conversation_id: str | None
    ) -> list[ModelMessage]:
        holder: Owner | rs.Session | None = self.store
        if self.store is not None and conversation_id is not None:
            holder = find_session(self.store, conversation_id) or self.store
        settings = resolve_settings(holder, read_settings(self.settings))
        api = self.api or ("openai.responses" if "Responses" in type(model).__name__ else None)
        read = [read_message(message) for message in given]
        selection = rs.select(
            read,
            settings=settings,
            provider=self.provider or getattr(model, "system", None),
            model=self.model or getattr(model, "model_name", None),
            api=api,
            base_url=getattr(model, "base_url", None),
            contracts=None if self.store is None else self.store.contracts,
        )
        withheld = withheld_blocks(selection)
        chosen = [
            message
            if place not in withheld or not isinstance(message, ModelResponse)
            else write_message(read[place], withheld=withheld[place])
            for place, message in enumerate(given)
        ]
        field = (getattr(model, "profile", None) or {}).get("openai_chat_thinking_field")
        for place, is_owed in zip(selection.numbers, selection.owed, strict=True):
            if is_owed and field and isinstance(chosen[place], ModelResponse):
                chosen[place] = _with_thinking(chosen[place], field, model.system)
        return chosen


def _with_thinking(message: ModelResponse, field: str, provider: str) -> ModelResponse:
    """Return a reply with the field that its host demands, empty where no thought is sent."""
    if any(isinstance(part, ThinkingPart) for part in message.parts):
        return message
    empty = ThinkingPart("", id=field, provider_name=provider)
    return replace(message, parts=[empty, *message.parts])
