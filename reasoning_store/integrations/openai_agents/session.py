"""A session of the Agents SDK whose items are messages of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from agents import OpenAIChatCompletionsModel, SessionSettings
from agents.run import CallModelData, ModelInputData

import reasoning_store as rs
from reasoning_store.integrations.openai_agents.items import Item, read_items, write_items
from reasoning_store.integrations.store_access import (
    Settings,
    check_owner,
    find_session,
    mark_recorded,
    read_settings,
    resolve_settings,
    run_in_thread,
    withheld_blocks,
)
from reasoning_store.results import Owner, Stored


class StoredSession:
    """The history of one session, made with its first item: ``Runner.run(..., session=...)``.

    Items come back equal to those that were added. ``pop_item`` moves to a branch without the
    item; ``clear_session`` deletes the messages, and the session stays. ``provider``, ``model``
    and ``base_url`` name the host whose reasoning it is, for items and for ``filter_input``, and
    ``api`` its protocol where it has several. ``settings`` are laid over the session's.
    """

    def __init__(
        self,
        session_id: str,
        store: Owner,
        *,
        session_settings: SessionSettings | None = None,
        settings: Settings = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self._store = check_owner(store)
        self._settings = read_settings(settings)
        self._made_by = {"provider": provider, "model": model, "base_url": base_url}
        self._api = api
        self._popping = Lock()

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the latest items, oldest first; all without a limit."""
        mark_recorded(self._store, self.session_id)
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await run_in_thread(self._get, limit)

    async def add_items(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Store items at the end, all or none."""
        mark_recorded(self._store, self.session_id)
        if items:
            await run_in_thread(self._add, items)

    async def pop_item(self) -> Item | None:
        """Take back the last item and return it; its old branch keeps it."""
        return await run_in_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete the messages; title, settings and metadata of the session stay."""
        await run_in_thread(self._clear)

    async def filter_input(self, data: CallModelData[Any]) -> ModelInputData:
        """Leave out the reasoning that the settings and the host do not send.

        For ``RunConfig(call_model_input_filter=session.filter_input)``. Nothing that is stored
        changes.
        """
        given = data.model_data
        items = await run_in_thread(self._choose, given.input, data.agent.model)
        return ModelInputData(input=items, instructions=given.instructions)

    def _get(self, limit: int | None) -> list[Item]:
        session = find_session(self._store, self.session_id)
        if session is None or limit == 0:
            return []
        if limit is None or limit < 0:
            return _items_of(session.history())
        count = limit
        while True:
            history = session.history(limit=count)
            items = _items_of(history)
            if len(items) >= limit or not history or history[0].position == 1:
                return items[-limit:]
            count *= 2  # an erased message has no items

    def _add(self, items: Sequence[Mapping[str, Any]]) -> None:
        self._store.session(self.session_id, create=True).append(self._read(items))

    def _read(self, items: Sequence[Mapping[str, Any]]) -> list[rs.Message]:
        return read_items(items, **self._made_by)

    def _pop(self) -> Item | None:
        with self._popping:
            session = find_session(self._store, self.session_id)
            for position in range(0 if session is None else session.head(), 0, -1):
                assert session is not None
                message = session.get(position).message
                items = write_items(message)
                if not items:
                    continue
                left = self._read(items[:-1])
                if len(left) == 1:
                    shorter = replace(
                        left[0], role=message.role, origin=message.origin, usage=message.usage
                    )
                    session.edit(position, shorter)
                else:
                    session.drop_tail(at=position)
                return items[-1]
        return None

    def _clear(self) -> None:
        session = find_session(self._store, self.session_id)
        if session is not None:
            session.delete(only="messages")

    def _choose(self, items: Sequence[Mapping[str, Any]], model: Any) -> list[Any]:
        session = find_session(self._store, self.session_id)
        settings = resolve_settings(session, self._settings)
        named = model if isinstance(model, str) else getattr(model, "model", None)
        to = {**self._made_by, "api": self._api}
        to["model"] = to["model"] or (named if isinstance(named, str) else None)
        if isinstance(model, OpenAIChatCompletionsModel):
            to["api"] = self._api or "openai.chat"
            to["base_url"] = to["base_url"] or str(model._client.base_url)
        elif to["provider"] in (None, "openai"):
            to["provider"], to["api"] = "openai", self._api or "openai.responses"
        messages = self._read(items)
        chosen = rs.select(messages, settings=settings, contracts=self._store.contracts, **to)
        withheld = withheld_blocks(chosen)
        return [
            item
            for place, message in enumerate(messages)
            for item in write_items(message, withheld=withheld.get(place, ()))
        ]


def _items_of(history: Sequence[Stored]) -> list[Item]:
    messages = [stored.message for stored in history]
    return [
        item
        for message in messages
        if message.status != "streaming"
        for item in write_items(message)
    ]
