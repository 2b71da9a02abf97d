"""The verbs of settings profiles: kept for an owner, used by its sessions.

Knows names; what a setting means is the caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from reasoning_store.ledger import columns, profiles, sessions
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import ProfileRow, SessionRow


class ProfileVerbs(Opened):
    """Settings under a name."""

    def set_profile(self, owner: str, name: str, settings: Mapping[str, Any]) -> ProfileRow:
        """Keep settings under a name, in the place of what stood under it."""
        now = self._clock()
        row = profiles.columns_of(owner, name, settings, now=now)
        self._write(
            lambda connection: profiles.put(connection, row), single=True, again_when_lost=True
        )
        return ProfileRow(name, dict(settings), now)

    def change_profile(
        self, owner: str, name: str, changes: Mapping[str, Any], *, unset: Collection[str] = ()
    ) -> ProfileRow:
        """Change some of a profile's settings, and leave the others as they are.

        A profile that is not there is made, unless there is only something to take out.
        """
        now = self._clock()
        new = profiles.columns_of(owner, name, {}, now=now)

        def work(connection: Connection) -> ProfileRow:
            if changes:
                held = profiles.take(connection, new)
            else:
                held = profiles.touch(connection, owner, name, now)
            kept = {key: value for key, value in held.items() if key not in unset}
            merged = {**kept, **changes}
            profiles.put(connection, profiles.columns_of(owner, name, merged, now=now))
            return ProfileRow(name, merged, now)

        return self._write(work, again_when_lost=True)

    def profiles(self, owner: str) -> list[ProfileRow]:
        """Return the profiles of an owner, by name."""
        return self._read(lambda connection: profiles.all_of(connection, owner), single=True)

    def drop_profile(self, owner: str, name: str) -> None:
        """Remove a profile. Sessions that name it use none, until there is one again."""
        if not self._write(lambda connection: profiles.drop(connection, owner, name), single=True):
            raise profiles.no_profile()

    def use_profile(self, session_key: int, name: str | None) -> SessionRow:
        """Let a session use a profile of its owner's; None is no profile."""
        value = None if name is None else columns.name(name, "the name of a settings profile")

        def work(connection: Connection) -> SessionRow:
            found = sessions.change(connection, session_key, "profile", value)
            if name is not None and found.profile_settings is None:
                raise profiles.no_profile()
            return found

        return self._write(work)
