"""The sessions of sub-agents, folded under their chat, for the page and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reasoning_store import Session


def fold_sub_agents(sessions: Sequence[Session]) -> list[list[Session]]:
    """Return each chat with the sessions of its sub-agents after it."""
    chats = {_name(one, "group"): one for one in reversed(sessions)}
    folded: dict[str, list[Session]] = {}
    for session in sessions:
        chat, passed = session, set[str | None]([None])
        while (parent := _name(chat, "parent")) in chats.keys() - passed:
            passed.add(parent)
            chat = chats[parent]
        folded.setdefault(chat.id, [chat]).append(session)
    return [[chat, *(one for one in rest if one.id != chat.id)] for chat, *rest in folded.values()]


def _name(session: Session, key: str) -> str | None:
    found = session.metadata.get(key)
    return found if isinstance(found, str) else None
