"""LlamaIndex on the store: a chat store for its ``Memory``.

    from reasoning_store.integrations.llama_index import StoredChatStore

    memory = Memory.from_defaults(session_id="chat-42", chat_store=StoredChatStore(store))

A key is a session. Messages that are archived stay in the session; ones that are taken out stay
on another branch of it, until ``delete_messages`` deletes them all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import reasoning_store as rs
from reasoning_store.importers.frameworks import llama_index as dumps
from reasoning_store.importers.reply_parts import THOUGHT_FIELDS
from reasoning_store.integrations import foreign_forms
from reasoning_store.integrations.store_access import (
    all_sessions,
    check_owner,
    explain_import,
    find_session,
    mark_recorded,
    run_in_thread,
)
from reasoning_store.results import Owner

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
except ImportError as error:
    raise explain_import(error, "llama_index.core", extra="llama-index") from None

__all__ = ["StoredChatStore", "read_message", "write_message"]

_NAME: Final = "llamaIndex"
_STATUS: Final = "llamaIndexStatus"
_ARCHIVED: Final = "llamaIndexArchived:"
"""How the key of the last archived position of a branch begins, in the session's metadata."""


class StoredChatStore(AsyncDBChatStore):  # type: ignore[misc]  # its types are not here
    """The chat store of a store or an owner. Messages come back equal to those that were added."""

    _store: Any = PrivateAttr()

    def __init__(self, store: Owner) -> None:
        super().__init__()
        self._store = check_owner(store)

    @classmethod
    def class_name(cls) -> str:
        return "StoredChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return messages, the oldest first; with ``status=None`` those of each status."""
        mark_recorded(self._store, key)
        found = await run_in_thread(self._read, key, status)
        first = offset or 0
        return found[first : None if limit is None else first + limit]

    async def count_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> int:
        """Return the number of messages."""
        return len(await run_in_thread(self._read, key, status))

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Store a message at the end."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self,
        key: str,
        messages: list[ChatMessage],
        status: MessageStatus = MessageStatus.ACTIVE,
    ) -> None:
        """Store messages at the end, all or none."""
        await run_in_thread(self._add, key, messages, status)

    async def set_messages(
        self,
        key: str,
        messages: list[ChatMessage],
        status: MessageStatus = MessageStatus.ACTIVE,
    ) -> None:
        """Begin a branch with these messages, in the place of those of that status."""
        await run_in_thread(self._set, key, messages, status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Take out the active message of an index, and return it."""
        taken = await run_in_thread(self._take, key, idx, 1)
        return taken[0] if taken else None

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete all messages of a key; with a status take those of that status out."""
        await run_in_thread(self._delete, key, status)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Take out the oldest active messages, and return them."""
        return await run_in_thread(self._take, key, 0, n)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and return them."""
        return await run_in_thread(self._archive, key, n)

    async def get_keys(self) -> list[str]:
        """Return the ids of the sessions that have messages."""
        return await run_in_thread(self._keys)

    # The same, in a thread

    def _read(self, key: str, status: MessageStatus | None) -> list[ChatMessage]:
        session = find_session(self._store, key)
        if session is None:
            return []
        return [
            one.message
            for one in _messages(session)
            if status is None or one.status == MessageStatus(status)
        ]

    def _add(self, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        if messages:
            session = self._store.session(key, create=True)
            session.append([_with_status(read_message(one), status) for one in messages])

    def _set(self, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        session = self._store.session(key, create=True)
        kept = [one.stored for one in _messages(session) if one.status != MessageStatus(status)]
        _replace(session, [*kept, *(_with_status(read_message(one), status) for one in messages)])

    def _delete(self, key: str, status: MessageStatus | None) -> None:
        session = find_session(self._store, key)
        if session is None:
            return
        if status is None:
            session.delete(only="messages")
        else:
            self._set(key, (), status)

    def _take(self, key: str, first: int, count: int) -> list[ChatMessage]:
        session = find_session(self._store, key)
        if session is None or count < 1 or first < 0:
            return []
        every = _messages(session)
        active = [one for one in every if one.status == MessageStatus.ACTIVE]
        taken = active[first : first + count]
        if taken:
            gone = {one.position for one in taken}
            _replace(session, [one.stored for one in every if one.position not in gone])
        return [one.message for one in taken]

    def _archive(self, key: str, count: int) -> list[ChatMessage]:
        session = find_session(self._store, key)
        if session is None or count < 1:
            return []
        name = f"{_ARCHIVED}{session.branch_id}"
        before = session.metadata.get(name)
        active = [one for one in _messages(session) if one.status == MessageStatus.ACTIVE]
        archived = active[:count]
        if archived:
            try:
                session.update_metadata({name: archived[-1].position}, expected={name: before})
            except rs.Conflict:
                return self._archive(key, count)
        return [one.message for one in archived]

    def _keys(self) -> list[str]:
        return [one.id for one in all_sessions(self._store) if one.message_count]


class _Kept(NamedTuple):
    """A message of a session."""

    message: ChatMessage
    status: MessageStatus
    position: int
    stored: rs.Message
    """The message as it is stored again."""


def _messages(session: rs.Session) -> list[_Kept]:
    """Return the messages of a session that were not erased, each with its status."""
    archived = session.metadata.get(f"{_ARCHIVED}{session.branch_id}") or 0
    found = []
    for one in session.history():
        written = write_message(one.message)
        if written is not None:
            stated = (one.message.metadata or {}).get(_STATUS, "active")
            status = MessageStatus("archived" if one.position <= archived else stated)
            stored = _with_status(one.message, status)
            found.append(_Kept(written, status, one.position, stored))
    return found


def _with_status(message: rs.Message, status: MessageStatus) -> rs.Message:
    about = {key: item for key, item in (message.metadata or {}).items() if key != _STATUS}
    if MessageStatus(status) != MessageStatus.ACTIVE:
        about[_STATUS] = MessageStatus(status).value
    return replace(message, metadata=about or None)


def _replace(session: rs.Session, messages: Sequence[rs.Message]) -> None:
    """Give a session other messages, on a branch that becomes current when it has them."""
    if not session.head():
        if messages:
            session.append(list(messages))
        return
    branch = session.fork(at=1)
    if messages:
        branch.append(list(messages))
    branch.activate(branch.branch_id)


# Messages


def read_message(message: ChatMessage) -> rs.Message:
    """Return a message of LlamaIndex as one to be stored; all of it can be written again."""
    form: dict[str, Any] = message.model_dump(mode="json", exclude_none=True)
    plain = _read_plain(form)
    written = _write(plain)
    if written.model_dump(mode="json", exclude_none=True) == form:
        return plain
    return foreign_forms.with_form(plain, _NAME, form, _is_thought)


def _read_plain(form: Mapping[str, Any]) -> rs.Message:
    role = dumps.role_of(form) or "user"
    if role == "assistant":
        return foreign_forms.read_reply(dumps.read_reply(form))
    if role == "tool":
        about = form.get("additional_kwargs") or {}
        answer = rs.ToolResponseBlock(
            call_id=str(about.get("tool_call_id") or ""),
            tool_name=str(about.get("name") or ""),
            result=dumps.read_result(form),
        )
        return rs.tool(answer)
    blocks = dumps.read_content(form)
    return rs.Message(role=role, blocks=tuple(blocks) or (rs.TextBlock(text=""),))


def write_message(message: rs.Message) -> ChatMessage | None:
    """Return a stored message as LlamaIndex's; ``None`` for one that was erased."""
    if message.status == "erased":
        return None
    rebuilt = foreign_forms.rebuild(message, _NAME)
    return _write(message) if rebuilt is None else ChatMessage.model_validate(rebuilt.form)


def _is_thought(path: foreign_forms.Path, value: Any) -> bool:
    if len(path) != 2:
        return False
    if path[0] == "additional_kwargs":
        return path[1] in THOUGHT_FIELDS
    is_block = path[0] == "blocks" and isinstance(value, Mapping)
    return is_block and value.get("block_type") == "thinking"


def _write(message: rs.Message) -> ChatMessage:
    blocks = [made for block in message.blocks if (made := _write_block(block)) is not None]
    about = {}
    for block in message.blocks:
        if isinstance(block, rs.ToolResponseBlock):
            about = {"tool_call_id": block.call_id}
            if block.tool_name:
                about["name"] = block.tool_name
    return ChatMessage(role=message.role, blocks=blocks, additional_kwargs=about)


def _write_block(block: rs.Block) -> dict[str, Any] | None:
    match block:
        case rs.TextBlock():
            return {"block_type": "text", "text": block.text}
        case rs.ThinkingBlock():
            seals = {"signature": block.signature, "encrypted_content": block.encrypted}
            return {
                "block_type": "thinking",
                "content": block.thought,
                "additional_information": {key: seal for key, seal in seals.items() if seal},
            }
        case rs.ToolCallBlock():
            given = foreign_forms.given_arguments(block)
            return {
                "block_type": "tool_call",
                "tool_call_id": block.id,
                "tool_name": block.name,
                "tool_kwargs": given if isinstance(given, str | dict) else {},
            }
        case rs.ToolResponseBlock():
            is_text = isinstance(block.result, str)
            text = block.result if is_text else json.dumps(block.result, ensure_ascii=False)
            return {"block_type": "text", "text": text}
        case rs.RawBlock():
            is_own = isinstance(block.data, Mapping) and "block_type" in block.data
            return dict(block.data) if is_own else None
        case rs.MediaBlock(kind="image", data=bytes(data)):
            return {
                "block_type": "image",
                "image": foreign_forms.in_base64(data),
                "image_mimetype": block.mime_type,
            }
        case _:
            return None
