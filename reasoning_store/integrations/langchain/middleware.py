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
    continue_conversation,
    find_conversation,
    read_settings,
    resolve_settings,
    run_in_thread,
    stored_messages,
    withheld_blocks,
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
        session, request = self._begin(request)
        response = handler(request)
        self._store_reply(session, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """See ``wrap_model_call``."""
        session, request = await run_in_thread(self._begin, request)
        response = await handler(request)
        await run_in_thread(self._store_reply, session, response)
        return response

    def _begin(self, request: ModelRequest) -> tuple[rs.Session, ModelRequest]:
        given: Sequence[BaseMessage] = request.messages
        read = [_read(message) for message in given]
        session, positions = self._find(read, self._session_id or _thread(request))
        first_new = max(
            (index + 1 for index, at in enumerate(positions) if at is not None), default=0
        )
        whole = stored_messages(session, read, positions)
        messages = self._choose(session, request, given, whole)
        if read[first_new:]:
            session.append(read[first_new:])
        return session, request.override(messages=messages)

    def _find(
        self, messages: Sequence[rs.Message], session_id: str | None
    ) -> tuple[rs.Session, Sequence[int | None]]:
        """Return the session, on the branch that these messages continue, and their positions."""
        found = find_conversation(self._store, messages, session_id)
        if found is None:
            return self._store.session(session_id, create=True), [None] * len(messages)
        return continue_conversation(found)[0], found.positions

    def _choose(
        self,
        session: rs.Session,
        request: ModelRequest,
        given: Sequence[BaseMessage],
        whole: Sequence[rs.Message],
    ) -> list[BaseMessage]:
        """Return the messages with the thoughts that the settings and the host choose."""
        settings = resolve_settings(session, self._settings)
        names = {**_names(request), **{k: v for k, v in self._named.items() if v is not None}}
        withheld = withheld_blocks(rs.select(whole, settings=settings, **names))
        messages: list[BaseMessage] = []
        for index, (message, one) in enumerate(zip(given, whole, strict=True)):
            if not isinstance(message, AIMessage) or not one.thinking:
                messages.append(message)
                continue
            messages += write_messages(one, withheld=withheld.get(index, ()))
        return messages

    def _store_reply(self, session: rs.Session, response: Any) -> None:
        whole = getattr(response, "model_response", response)
        result = [whole] if isinstance(whole, BaseMessage) else whole.result
        session.append([_read(message) for message in result])


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
