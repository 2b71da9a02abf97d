"""The settings that are stored: a session's own, an owner's default, and its profiles.

Each key is set once and read for every request (BR-008). A bad value is refused before anything
is stored (ERR-001).
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reasoning_store.conversation import settings as _settings
from reasoning_store.conversation.errors import SettingError
from reasoning_store.conversation.settings import Policy, Resolved
from reasoning_store.ledger.profiles import DEFAULT, column_of, no_profile
from reasoning_store.ledger.records import KeptSettings, ProfileRow, SessionRow
from reasoning_store.store_state import StoreState
from reasoning_store.stored_values import time_of

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings


def policy(
    state: StoreState,
    kept: KeptSettings,
    call: ReasoningSettings | Mapping[str, Any] | None = None,
) -> Policy:
    """Return the settings in force at this moment, for stored ones that were just read."""
    # EC-005: a profile that was loaded or changed applies from the next request on.
    return _settings.resolve_settings(
        call,
        session=kept.session,
        profile=kept.profile,
        owner=kept.owner,
        environment=state.environment(),
    )


class SessionSettings:
    """The settings of one session: set once, read for every request.

    Made by ``Session.settings``.
    """

    def __init__(self, state: StoreState, row: SessionRow) -> None:
        self._state = state
        self._row = row

    def set(self, key: str, value: Any) -> None:
        """Set one key for this session. A bad value changes nothing (ERR-001)."""
        change = _settings.checked({key: value})
        self._state.ledger.sessions.change_settings(self._row.key, change)

    def unset(self, key: str) -> None:
        """Let the weaker layers decide about this key again."""
        self._state.ledger.sessions.change_settings(self._row.key, {}, unset={_key(key)})

    def use(self, profile: str | None) -> None:
        """Take what this session does not set from a profile of its owner's; None: from none.

        The profile is named, not copied: its later changes hold here too.
        """
        self._state.ledger.sessions.use_profile(self._row.key, profile)

    def profile(self) -> str | None:
        """Return the name of the profile that is used."""
        return self._state.ledger.sessions.get(self._row.owner, self._row.id).profile

    def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that holds now, and the layer it comes from."""
        kept = self._state.ledger.sessions.kept_settings(self._row.owner, self._row.id)
        return policy(self._state, kept).resolved()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Settings under a name, for the sessions of one owner that use it."""

    name: str
    settings: dict[str, Any]
    updated_at: datetime


class Profiles:
    """The settings profiles of one owner. Made by ``Owner.settings``."""

    def __init__(self, state: StoreState, owner: str) -> None:
        self._state = state
        self._owner = owner

    def set(self, name: str, settings: ReasoningSettings | Mapping[str, Any]) -> Profile:
        """Store settings under a name; they replace the earlier ones of that name."""
        checked = _settings.checked(settings)
        return _profile(self._state.ledger.profiles.set(self._owner, name, checked))

    def change(
        self,
        name: str,
        settings: ReasoningSettings | Mapping[str, Any],
        *,
        unset: Collection[str] = (),
    ) -> Profile:
        """Change some keys of a profile, and leave the others as they are.

        In one step, so two who change two keys at once both get theirs. A profile that is
        not there is made, unless there is only something to unset: ``change(name, {})`` makes
        sure that it exists.
        """
        checked = _settings.checked(settings)
        if isinstance(unset, str) or not isinstance(unset, Collection):
            raise SettingError(
                f"unset: a list of keys, not {type(unset).__name__}",
                hint='as in unset=["reasoning.effort"]',
            )
        gone = {_key(key) for key in unset}
        column_of(name)
        return _profile(self._state.ledger.profiles.change(self._owner, name, checked, unset=gone))

    def get(self, name: str) -> Profile:
        """Return one profile."""
        profiles = self.all()
        for found in profiles:
            if found.name == name:
                return found
        near = difflib.get_close_matches(str(name), [found.name for found in profiles], n=1)
        raise no_profile(name, *near)

    def all(self) -> list[Profile]:
        """Return every profile, by name."""
        return [_profile(row) for row in self._state.ledger.profiles.all_of(self._owner)]

    def drop(self, name: str) -> None:
        """Remove a profile. Sessions that use it take nothing from it any more."""
        self._state.ledger.profiles.drop(self._owner, name)


class OwnerSettings:
    """An owner's default settings, and its profiles. Made by ``Owner.settings``.

    A session takes the default where neither it nor the profile that it uses sets a key.
    """

    profiles: Profiles

    def __init__(self, state: StoreState, owner: str) -> None:
        self.profiles = Profiles(state, owner)
        self._state = state
        self._owner = owner

    def set(self, key: str, value: Any) -> None:
        """Set one key for all sessions of this owner. A bad value changes nothing (ERR-001)."""
        change = _settings.checked({key: value})
        self._state.ledger.profiles.change(self._owner, DEFAULT, change)

    def unset(self, key: str) -> None:
        """Let the environment and the default decide about this key again."""
        self._state.ledger.profiles.change(self._owner, DEFAULT, {}, unset={_key(key)})

    def resolved(self) -> dict[str, Resolved]:
        """Return the settings of a session that sets none: each key, its value and its layer."""
        kept = KeptSettings({}, None, self._state.ledger.profiles.default_of(self._owner))
        return policy(self._state, kept).resolved()


def _key(key: str) -> str:
    """Return a key by its name in JSON; refuse one that there is not (ERR-001)."""
    if not isinstance(key, str):
        raise SettingError(
            f"a setting's key is a string, not {type(key).__name__}",
            hint="resolved() names every key",
        )
    name = _settings.KEY_OF.get(key, key)
    if name not in _settings.KEYS:
        _settings.checked({key: None})  # names the key that was meant
    return name


def _profile(row: ProfileRow) -> Profile:
    return Profile(name=row.name, settings=row.settings, updated_at=time_of(row.updated_at))
