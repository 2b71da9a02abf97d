"""The asynchronous face: the verbs of the store, of owners and sessions, awaited."""

from __future__ import annotations

from reasoning_store.aio.store import (
    AsyncFoundConversation,
    AsyncOwner,
    AsyncOwnerSettings,
    AsyncProfiles,
    AsyncStore,
)

__all__ = [
    "AsyncFoundConversation",
    "AsyncOwner",
    "AsyncOwnerSettings",
    "AsyncProfiles",
    "AsyncStore",
]
