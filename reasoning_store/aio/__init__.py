"""The asynchronous face: the verbs of the store, of owners and sessions, awaited."""

from __future__ import annotations

from reasoning_store.aio.store import (
    AsyncOwner,
    AsyncOwnerSettings,
    AsyncPage,
    AsyncProfiles,
    AsyncStore,
)

__all__ = ["AsyncOwner", "AsyncOwnerSettings", "AsyncPage", "AsyncProfiles", "AsyncStore"]
