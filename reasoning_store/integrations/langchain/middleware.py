"""A middleware for LangChain's agents: their threads are sessions, the settings choose thoughts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage, BaseMessage

import reasoning_store as rs
from reasoning_store.integrations.langchain.messages import read_message, write_messages
from reasoning_store.integrations.store_access import (
    Settings,
    check_owner,
    read_settings,
    recording_replies,
    run_in_thread,
)
from reasoning_store.results import Owner


class ReasoningMiddleware(AgentMiddleware):  # type: ignore[misc]  # its types are not here
    """Stores what an agent's model gets and answers, and sends the thoughts that settings choose.

    The session has the id of the thread, or ``session_id``; without either, the conversation is
    found by its messages. ``settings`` are laid over the session's. ``provider``, ``model`` and
    ``api`` name the host where the chat model does not. The state of the graph is not changed.
    """

    def __init__(
        self,
        store: Owner,
        *,
        session_id: str | None = None,
        settings: Settings = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
    ) -> None:
        super().__init__()
        self._store = check_owner(store)
        self._session_id = session_id
        self._settings = read_settings(settings)
        self._named = {"provider": provider, "model": model, "api": api}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Store the new messages, call the model with the chosen thoughts, store its reply."""
        session, store_reply, request = self._begin(request)
        with recording_replies(self._store, session.id):
            response = handler(request)
        store_reply(response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """See ``wrap_model_call``."""
        session, store_reply, request = await run_in_thread(self._begin, request)
        with recording_replies(self._store, session.id):
            response = await handler(request)
        await run_in_thread(store_reply, response)
        return response

    def _begin(
        self, request: ModelRequest
    ) -> tuple[rs.Session, Callable[[Any], None], ModelRequest]:
        given: Sequence[BaseMessage] = request.messages
        read = [_read(message) for message in given]
        found = self._store.identify(
            read,
            system=[request.system_prompt] if request.system_prompt else [],
            session_id=self._session_id or _thread(request),
        )
        names = {**_names(request), **{k: v for k, v in self._named.items() if v is not None}}
        replies = [index for index, one in enumerate(given) if isinstance(one, AIMessage)]
        sent = found.restore(replies, settings=self._settings, **names)
        messages: list[BaseMessage] = []
        for index, message in enumerate(given):
            stored = sent.get(index)
            if stored and stored.is_left_out:
                thoughts = {n for n, one in enumerate(read[index].blocks) if one.type == "thinking"}
                messages += write_messages(read[index], withheld=thoughts)
            elif stored and stored.message and stored.message.thinking:
                messages += write_messages(stored.message)
            else:
                messages.append(message)
        session = found.store(read[found.first_new :])

        def store_reply(response: Any) -> None:
            whole = getattr(response, "model_response", response)
            result = [whole] if isinstance(whole, BaseMessage) else whole.result
            for message in map(_read, result):
                if message.role == "assistant":
                    found.append_reply(session, message)
                else:
                    session.append(message)

        return session, store_reply, request.override(messages=messages)


def _read(message: BaseMessage) -> rs.Message:
    """Return a message to be stored; an artifact that is no JSON is the graph's alone."""
    artifact = getattr(message, "artifact", None)
    if artifact is not None:
        try:
            json.dumps(message.model_dump()["artifact"])
        except (TypeError, ValueError):
            message = message.model_copy(update={"artifact": None})
    return read_message(message)


def _thread(request: ModelRequest) -> str | None:
    """Return the id of the graph's thread; ``None`` without a checkpointer."""
    info = getattr(request.runtime, "execution_info", None)
    found = getattr(info, "thread_id", None)
    return found if isinstance(found, str) else None


def _names(request: ModelRequest) -> dict[str, Any]:
    """Return provider, model and protocol, as far as the chat model names them."""
    model = request.model
    try:
        named = model._get_ls_params()
    except (AttributeError, NotImplementedError):
        return {}
    provider, name = named.get("ls_provider"), named.get("ls_model_name")
    found = {"provider": provider, "model": name}
    if provider == "openai" and hasattr(model, "_use_responses_api"):
        tools = [tool for tool in request.tools or () if isinstance(tool, dict)]
        asked = {**model._default_params, **request.model_settings, "tools": tools}
        is_responses = model._use_responses_api(asked)
        found["api"] = "openai.responses" if is_responses else "openai.chat"
    return {key: item for key, item in found.items() if isinstance(item, str)}
