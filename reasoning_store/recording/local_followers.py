"""The readers in this process that follow a reply: each entry is passed on to them in memory."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Protocol

from reasoning_store.ingress.draft_parts import DraftParts, Entry


class LocalFollower(Protocol):
    """A reader in this process that follows a reply."""

    def receive(self, entry: Entry | None) -> None:
        """Take the next entry; None means that the reply has ended. Waits for nothing."""
        ...


class LocalFollowers:
    """The followers of one reply, which keeps no follower alive."""

    def __init__(self, parts: DraftParts) -> None:
        self._parts = parts
        self._all: list[weakref.ref[LocalFollower]] = []

    def add(self, follower: LocalFollower) -> Sequence[str]:
        """Pass each entry on from now; return the part of those that no part has yet."""
        self._all.append(weakref.ref(follower))
        self._parts.pass_on = self._pass_on
        waiting = self._parts.next_part()
        return () if waiting is None else (waiting,)

    def end(self) -> None:
        """Tell the followers that the reply has ended."""
        self._pass_on(None)

    def _pass_on(self, entry: Entry | None) -> None:
        alive = [follower for one in self._all if (follower := one()) is not None]
        for follower in alive:
            follower.receive(entry)
        if len(alive) < len(self._all):
            self._all = [one for one in self._all if one() is not None]
