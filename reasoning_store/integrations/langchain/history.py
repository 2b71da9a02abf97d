"""A chat history of LangChain in a session of the store."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from reasoning_store.integrations.langchain.messages import read_message, write_messages
from reasoning_store.integrations.store_access import find_session
from reasoning_store.results import Owner


class StoredMessageHistory(BaseChatMessageHistory):  # type: ignore[misc]  # its types are not here
    """The history of one session, made with its first message.

    Messages come back equal to those that were added. An erased message is left out.
    """

    def __init__(self, store: Owner, session_id: str) -> None:
        self._store = store
        self.session_id = session_id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override, unused-ignore]
        """The messages, oldest first."""
        session = find_session(self._store, self.session_id)
        history = [] if session is None else session.history()
        return [message for stored in history for message in write_messages(stored.message)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages at the end, all or none."""
        read = [read_message(message) for message in messages]
        if read:
            self._store.session(self.session_id, create=True).append(read)

    def clear(self) -> None:
        """Delete the messages; the session stays, with its title, settings and metadata."""
        session = find_session(self._store, self.session_id)
        if session is not None:
            session.delete(only="messages")
