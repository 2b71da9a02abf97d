"""Microsoft's Agent Framework on the store: a history provider.

from reasoning_store.integrations.agent_framework import StoredHistoryProvider

agent = Agent(client=..., context_providers=[StoredHistoryProvider(store)])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import reasoning_store as rs
from reasoning_store.formats import parse_arguments
from reasoning_store.integrations import foreign_forms
from reasoning_store.integrations.store_access import (
    check_owner,
    explain_import,
    find_session,
    mark_recorded,
    run_in_thread,
)
from reasoning_store.results import Owner

try:
    from agent_framework import HistoryProvider, Message
except ImportError as error:
    raise explain_import(error, "agent_framework", extra="agent-framework") from None

__all__ = ["StoredHistoryProvider", "read_message", "write_message"]

_NAME: Final = "agentFramework"
_ROLES: Final = frozenset({"user", "assistant", "system", "tool"})
_SIGNED: Final = frozenset({"anthropic.messages", "bedrock.converse", "gemini.generate_content"})
"""The protocols that seal a readable thought with a signature."""


class StoredHistoryProvider(HistoryProvider):  # type: ignore[misc]  # its types are not here
    """The history of agents in the sessions of a store or an owner.

    Messages come back equal to those that were saved. ``provider``, ``model`` and ``api`` name
    the host that seals the thoughts: a request of the store sends a sealed thought only there.
    ``options`` are those of ``HistoryProvider``.
    """

    def __init__(
        self,
        store: Owner,
        *,
        source_id: str = "reasoning_store",
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._store = check_owner(store)
        named = provider or model or api
        self._origin = rs.Origin(provider=provider, model=model, api=api) if named else None

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **more: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first; none of a session that is absent."""
        if session_id is not None:
            mark_recorded(self._store, session_id)
        return await run_in_thread(self._read, session_id)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Store messages at the end of a session, all or none."""
        await run_in_thread(self._add, session_id, list(messages))

    def _read(self, session_id: str | None) -> list[Message]:
        session = None if session_id is None else find_session(self._store, session_id)
        written = (write_message(one.message) for one in (session.history() if session else ()))
        return [message for message in written if message is not None]

    def _add(self, session_id: str | None, messages: Sequence[Message]) -> None:
        if not messages:
            return
        if session_id is None:
            raise rs.InvalidCall(
                "save_messages: messages without a session", hint="agent.create_session()"
            )
        read = [read_message(one, origin=self._origin) for one in messages]
        self._store.session(session_id, create=True).append(read)


def read_message(message: Message, *, origin: rs.Origin | None = None) -> rs.Message:
    """Return a message of the framework as one to be stored; all of it can be written again."""
    form: dict[str, Any] = message.to_dict()
    named = str(form.get("role", "user"))
    role: Any = named if named in _ROLES else "user"
    api = None if origin is None else origin.api
    blocks = [_read_content(content, api) for content in form.get("contents", ())]
    if not blocks and role != "assistant":
        blocks = [rs.TextBlock(text="")]
    plain = rs.Message(
        role=role, blocks=tuple(blocks), origin=origin if role == "assistant" else None
    )
    return foreign_forms.with_form(plain, _NAME, form, _is_thought)


def write_message(message: rs.Message) -> Message | None:
    """Return a stored message as the framework's; ``None`` for one that was erased."""
    if message.status == "erased":
        return None
    rebuilt = foreign_forms.rebuild(message, _NAME)
    if rebuilt is not None:
        return Message.from_dict(rebuilt.form)
    contents = [made for block in message.blocks if (made := _write_block(block)) is not None]
    return Message.from_dict({"type": "message", "role": message.role, "contents": contents})


def _is_thought(path: foreign_forms.Path, value: Any) -> bool:
    is_content = len(path) == 2 and path[0] == "contents" and isinstance(value, Mapping)
    return is_content and value.get("type") == "text_reasoning"


def _read_content(content: Mapping[str, Any], api: str | None) -> rs.Block:
    match content.get("type"):
        case "text":
            return rs.TextBlock(text=content.get("text") or "")
        case "text_reasoning":
            thought, seal = content.get("text") or "", content.get("protected_data")
            is_signed = api in _SIGNED and bool(thought)
            return rs.ThinkingBlock(
                thought=thought,
                source_field="text_reasoning",
                signature=seal if is_signed else None,
                encrypted=None if is_signed else seal,
                is_hidden=not thought,
            )
        case "function_call":
            given = content.get("arguments")
            return rs.ToolCallBlock(
                id=content.get("call_id") or "",
                name=content.get("name") or "",
                parameters=parse_arguments(given) if isinstance(given, str) else given,
                arguments=given if isinstance(given, str) else None,
            )
        case "function_result":
            return rs.ToolResponseBlock(
                call_id=content.get("call_id") or "",
                result=content.get("result"),
                is_error=bool(content.get("exception")),
            )
    return rs.RawBlock(data=dict(content))


def _write_block(block: rs.Block) -> dict[str, Any] | None:
    match block:
        case rs.TextBlock():
            return {"type": "text", "text": block.text}
        case rs.ThinkingBlock():
            seal = block.signature or block.encrypted
            sealed = {"protected_data": seal} if seal else {}
            return {"type": "text_reasoning", "text": block.thought, **sealed}
        case rs.ToolCallBlock():
            given = foreign_forms.given_arguments(block)
            call = {"call_id": block.id, "name": block.name, "arguments": given}
            return {"type": "function_call", **call}
        case rs.ToolResponseBlock():
            return {"type": "function_result", "call_id": block.call_id, "result": block.result}
        case rs.MediaBlock(data=bytes(data)):
            uri = f"data:{block.mime_type};base64,{foreign_forms.in_base64(data)}"
            return {"type": "data", "uri": uri, "media_type": block.mime_type}
        case rs.MediaBlock(url=str(url)):
            return {"type": "uri", "uri": url, "media_type": block.mime_type}
        case rs.RawBlock():
            is_own = isinstance(block.data, Mapping) and "type" in block.data
            return dict(block.data) if is_own else None
        case _:
            return None
