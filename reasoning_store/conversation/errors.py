"""The tree of errors.

    ReasoningStoreError
    |-- SettingError     a reasoning.* key or value, or another option, not allowed (ERR-001)
    |-- WireError        a provider's answer, or a request to one, in the wrong form
    |-- InvalidCall      a call that does not fit the state of the thing it was made on
    |-- NotFound         no such session, position, branch, profile: or not yours
    |-- Conflict         something was written first: an idempotency key, a position, a draft
    |-- SchemaError      the database is not ours, or of another version
    |-- CorruptRow       a row that was not written by us, or was changed since
    |-- StoreFull        the disk refused the write; nothing of it was kept
    |-- StoreBusy        another writer held the store for longer than we wait
    `-- MissingExtra     an optional part that is not installed

Everything is raised or returned; only token counting degrades (ERR-002). A message
names the place of a bad value and the values allowed there. It never holds the text of a
conversation and never a secret. ``hint`` is the command or the setting that helps; a
traceback shows it, as a note.
"""

from __future__ import annotations

from typing import Any


class ReasoningStoreError(Exception):
    """Anything this package raises on purpose; every other exception is a bug in it."""

    hint: str | None = None

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or type(self).__doc__ or type(self).__name__)
        if hint is not None:
            self.hint = hint
        if self.hint is not None:
            self.add_note(f"hint: {self.hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process pickles it; ``__init__`` may take more than the message.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class SettingError(ReasoningStoreError):
    """A setting has a name or a value that is not allowed; the current value stays."""

    def __init__(
        self, message: str | None = None, *, key: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.key = key


class WireError(ReasoningStoreError):
    """A provider's answer, or a request to one, does not have the protocol's form."""


class InvalidCall(ReasoningStoreError):
    """The call does not fit: wrong argument, wrong order, or after the end."""


class NotFound(ReasoningStoreError):
    """There is no such thing here for this owner."""


class Conflict(ReasoningStoreError):
    """Something else was written first."""

    def __init__(
        self, message: str | None = None, *, stored: Any = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.stored = stored
        """The rows that were written first, if the caller may see them."""


class SchemaError(ReasoningStoreError):
    """The database is not one of ours, or its schema is older or newer than this package."""


class CorruptRow(ReasoningStoreError):
    """A stored row cannot be read back; it is never skipped."""

    hint = "run: reasoning-store verify"


_AGAIN = "try again: a write with an idempotency key is stored only once"


class StoreFull(ReasoningStoreError):
    """The disk has no room for the write; nothing of it was kept, and reads go on."""

    hint = f"free some space, then {_AGAIN}"


class StoreBusy(ReasoningStoreError):
    """Another writer held the store for longer than the busy timeout."""

    hint = _AGAIN


class MissingExtra(ReasoningStoreError):
    """An optional part of the package is not installed."""

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(message, hint=f"run: pip install 'reasoning-store[{extra}]'")
        self.extra = extra
