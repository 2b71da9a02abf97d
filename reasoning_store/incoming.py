"""What of a line on its way in the ledger cannot judge: settings, encodings, drafts, requests.

The ledger takes these as they come, and it is at their next use that they are read. An
import that let them in would leave a session that nobody can go on with, so the face looks at
them while the line still has its number. Nothing here is asked of what the store wrote itself.

Glue: what is right is said by the room that reads it, and must not be known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from reasoning_store import checking, codec
from reasoning_store import settings as _settings
from reasoning_store.blocks import Origin
from reasoning_store.errors import CorruptRow, SettingError, UsageError
from reasoning_store.ingress import drafting
from reasoning_store.ledger.lines import DraftLine, Line, MessageLine, ProfileLine, SessionLine
from reasoning_store.sending import known_target
from reasoning_store.tokenizers import ENCODINGS

_TO = ("provider", "model", "api", "baseUrl")


def check(line: Line) -> None:
    """Refuse a line that says what could not be read again, by its field."""
    if isinstance(line, MessageLine):
        if line.sent is not None:
            _check_sent(line.sent)
    elif isinstance(line, SessionLine):
        _check_settings("settings", line.settings)
        if line.encoding not in ENCODINGS:
            raise UsageError(f"encoding: is none of {', '.join(ENCODINGS)}")
    elif isinstance(line, ProfileLine):
        _check_settings("settings", line.settings)
    elif isinstance(line, DraftLine):
        _check_parts(line.parts)
        if line.sent is not None:
            _check_sent(line.sent)


def _check_settings(place: str, given: Any) -> None:
    try:
        _settings.checked(given)
    except SettingError as error:
        raise UsageError(f"{place}: {error}") from None


def _check_sent(sent: Mapping[str, Any]) -> None:
    names = [sent.get(name) for name in _TO]
    for place, name in zip(_TO, names, strict=True):
        if not isinstance(name, str | None):
            raise UsageError(f"sent.{place}: is not a string")
    try:
        known_target(*names)
    except UsageError as error:
        raise UsageError(f"sent: {error}", hint=error.hint) from None
    if "digest" in sent or "settings" in sent:
        if not isinstance(sent.get("digest"), str):
            raise UsageError("sent.digest: is not a string")
        _check_resolved(codec.dumps(sent.get("settings")))


@lru_cache(maxsize=256)  # those of a conversation are nearly always the same
def _check_resolved(text: str) -> None:
    given = codec.loads(text)
    if not isinstance(given, dict):
        raise UsageError("sent.settings: is not an object")
    _check_settings("sent.settings", given)


def _check_parts(parts: list[str]) -> None:
    try:
        checking.checked(drafting.message(parts, origin=Origin()))
    except (CorruptRow, UsageError, ValueError, TypeError, KeyError, AttributeError):
        raise UsageError("parts: are not as drafts are") from None
