"""Checks of imported lines that the ledger cannot make: settings, encodings, drafts, requests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from reasoning_store.conversation import codec, validation
from reasoning_store.conversation import settings as _settings
from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import CorruptRow, InvalidCall, SettingError
from reasoning_store.egress.target import find_target
from reasoning_store.ingress import draft_parts
from reasoning_store.ledger.transfer.lines import (
    CompactionLine,
    DraftLine,
    Line,
    MessageLine,
    ProfileLine,
    SessionLine,
)
from reasoning_store.tokens import ENCODINGS

_ALONG = {"settings", "clearing"}
_TO = ("provider", "model", "api", "baseUrl")


def check_line(line: Line) -> None:
    """Refuse a line that could not be read again, by its field."""
    if isinstance(line, SessionLine | ProfileLine):
        _check_settings("settings", line.settings)
    if isinstance(line, SessionLine) and line.encoding not in ENCODINGS:
        raise InvalidCall(f"encoding: must be one of {', '.join(ENCODINGS)}")
    if isinstance(line, MessageLine | DraftLine) and line.sent is not None:
        _check_sent(line.sent)
    if isinstance(line, CompactionLine) and line.along is not None:
        _check_along(line.along)
    if isinstance(line, DraftLine):
        _check_parts(line.parts)


def _check_along(along: Mapping[str, Any]) -> None:
    changed, clearing = along.get("settings", {}), along.get("clearing", 1)
    pairs = isinstance(changed, dict) and all(
        isinstance(pair, list) and len(pair) == 2 for pair in changed.values()
    )
    if not pairs or type(clearing) is not int or clearing < 1 or along.keys() - _ALONG:
        raise InvalidCall("along: is not a step that goes with a compaction")
    for place in (0, 1):
        values = {key: pair[place] for key, pair in changed.items()}
        _check_settings("along.settings", {k: v for k, v in values.items() if v is not None})


def _check_settings(place: str, given: Any) -> None:
    try:
        _settings.checked(given)
    except SettingError as error:
        # The error of a setting quotes what was given, which here is the text of a file.
        if error.key is None:
            raise InvalidCall(f"{place}: are not an object") from None
        if error.key not in _settings.KEYS:
            hint = f"the keys are: {', '.join(_settings.KEYS)}"
            raise InvalidCall(f"{place}: unknown setting", hint=hint) from None
        allowed = ", ".join(_settings.words(error.key)) or "a whole number, 0 or more"
        raise InvalidCall(f"{place}: {error.key} cannot be this; it is one of: {allowed}") from None


def _check_sent(sent: Mapping[str, Any]) -> None:
    try:
        find_target(*(sent.get(name) for name in _TO))
    except InvalidCall as error:
        raise InvalidCall(f"sent: {error}", hint=error.hint) from None
    if "digest" in sent or "settings" in sent:
        if not isinstance(sent.get("digest"), str):
            raise InvalidCall("sent.digest: is not a string")
        _check_resolved(codec.dumps(sent.get("settings")))
        chosen = sent.get("chosen", [])
        if not isinstance(chosen, list) or not all(map([*sent["settings"]].__contains__, chosen)):
            raise InvalidCall("sent.chosen: is not a list of keys of sent.settings")


@lru_cache(maxsize=256)  # those of a conversation are nearly always the same
def _check_resolved(text: str) -> None:
    given = codec.loads(text)
    if not isinstance(given, dict):
        raise InvalidCall("sent.settings: is not an object")
    _check_settings("sent.settings", given)


def _check_parts(parts: list[str]) -> None:
    try:
        validation.check_message(draft_parts.build_message(parts, origin=Origin()))
    except (CorruptRow, InvalidCall, ValueError, TypeError, KeyError, AttributeError):
        raise InvalidCall("parts: are not parts of a draft") from None
