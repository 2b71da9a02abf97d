"""The messages that are one conversation, and the fields of a file about it.

Theory. A value is a conversation (a list of messages, or an object that holds one) or a message.
Messages that name a conversation belong to that one, in any place of the file; others belong
together with those around them: the elements of one array, or the lines of one file. The messages
of a conversation that follow one another are read together.

The names of fields are those that exports, request logs and training files use. This module must
not know the content of a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from reasoning_store.importers.documents import Entry, refuse

LISTS: Final = ("messages", "input", "items")
"""The keys of an object that may hold the messages of a conversation; the first that is there
counts."""
_IDS: Final = ("conversation_id", "session_id", "thread_id", "chat_id")
_OWN_IDS: Final = ("id", *_IDS, "custom_id")
_TITLES: Final = ("title", "name")
_TIMES: Final = (
    *("created_at", "createdAt", "created", "create_time", "createTime"),
    *("timestamp", "ts", "datetime", "date", "sent_at", "sentAt"),
)
OF_MESSAGE: Final = frozenset((*_IDS, *_TIMES))
"""The fields of a message that name its conversation or its time."""
_EPOCH: Final = re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}", re.ASCII)
_MILLISECONDS: Final = 1e11
"""A number of seconds beyond this is more than three thousand years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMessage:
    """A message of the source, and how an error names it."""

    place: str
    line: int
    value: Mapping[str, Any]
    id: str | None = None
    """The id that the source gives the message."""


@dataclass(slots=True, kw_only=True)
class SourceConversation:
    """Messages of one conversation that follow each other. ``about`` is the object around them."""

    line: int
    id: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    messages: list[SourceMessage] = field(default_factory=list)
    array: int | None = None

    @property
    def title(self) -> str | None:
        found = (self.about.get(name) for name in _TITLES)
        return next((item for item in found if isinstance(item, str) and item), None)


def group_messages(entries: Iterable[Entry]) -> Iterator[SourceConversation]:
    """Yield the conversations of a source, or their parts that follow each other."""
    open_one: SourceConversation | None = None
    for entry in entries:
        whole = _parse_conversation(entry)
        if whole is None:
            message = _parse_message(entry.line, f"line {entry.line}", entry.value)
            name = _first_text(message.value, _IDS)
            if open_one is not None and (open_one.id, open_one.array) != (name, entry.array):
                yield open_one
                open_one = None
            if open_one is None:
                open_one = SourceConversation(line=entry.line, id=name, array=entry.array)
            open_one.messages.append(message)
            continue
        if open_one is not None:
            yield open_one
            open_one = None
        yield whole
    if open_one is not None:
        yield open_one


def _parse_conversation(entry: Entry) -> SourceConversation | None:
    """Return the conversation that a value is, ``None`` where it is a message of one."""
    value, line = entry.value, entry.line
    if isinstance(value, list):
        return SourceConversation(
            line=line, messages=_parse_messages(line, f"line {line}: ", value)
        )
    if not isinstance(value, dict):
        refuse(line, "neither a message nor a conversation: an object or a list is due")
    if "role" in value:
        return None
    name = next((name for name in LISTS if isinstance(value.get(name), list)), None)
    if name is None and _is_request(value):
        name = "input"
    if name is None:
        return None
    listed = value[name]
    if isinstance(listed, str):
        listed = [{"role": "user", "content": listed}]
    messages = _parse_messages(line, f"line {line}: {name}", listed)
    about = {key: item for key, item in value.items() if key != name}
    return SourceConversation(
        line=line, id=_first_text(value, _OWN_IDS), about=about, messages=messages
    )


def _is_request(value: Mapping[str, Any]) -> bool:
    """Whether an object is a request of Responses whose input is a text alone.

    A call of a custom tool has a type, and a pair of a question and an answer another output.
    """
    output = value.get("output", [])
    return isinstance(value.get("input"), str) and "type" not in value and isinstance(output, list)


def _parse_messages(line: int, place: str, listed: list[Any]) -> list[SourceMessage]:
    return [_parse_message(line, f"{place}[{number}]", item) for number, item in enumerate(listed)]


def _parse_message(line: int, place: str, value: Any) -> SourceMessage:
    if not isinstance(value, dict):
        refuse(line, f"{place.removeprefix(f'line {line}: ')} is not an object")
    is_message = value.get("type", "message") == "message"  # and no other item of Responses
    id = text_field(value, "id") if is_message else None
    return SourceMessage(place=place, line=line, value=value, id=id)


def place_messages(
    line: int, messages: Mapping[str, Mapping[str, Any]]
) -> dict[str, SourceMessage]:
    """Return the messages of one value by their ids."""
    return {
        id: SourceMessage(
            place=f"line {line}: message {id}",
            line=line,
            value=value,
            id=text_field(value, "id") or text_field(value, "messageId"),
        )
        for id, value in messages.items()
    }


def text_field(value: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a text and not empty."""
    item = value.get(name)
    return item if isinstance(item, str) and item else None


def object_field(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field that is an object; another is empty."""
    item = value.get(name)
    return item if isinstance(item, dict) else {}


def list_field(value: Mapping[str, Any], name: str) -> list[Any]:
    """Return a field that is a list; another is empty."""
    item = value.get(name)
    return item if isinstance(item, list) else []


def other_fields(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields that are not in ``names`` and not ``None``."""
    return {key: item for key, item in value.items() if key not in names and item is not None}


def _first_text(value: Mapping[str, Any], names: Iterable[str]) -> str | None:
    for name in names:
        item = value.get(name)
        if isinstance(item, str) and item:
            return item
        if type(item) is int:
            return str(item)
    return None


def stated_time(value: Mapping[str, Any]) -> datetime | None:
    """Return the time that an object states, as far as it can be read."""
    times = (parse_time(value[name]) for name in _TIMES if name in value)
    return next((time for time in times if time is not None), None)


def states_time(value: Mapping[str, Any]) -> bool:
    """Whether an object states a time, readable or not."""
    return any(value.get(name) not in (None, "") for name in _TIMES)


def parse_time(value: Any) -> datetime | None:
    """Return a time given in ISO 8601, or in seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str) and _EPOCH.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, str):
            time = datetime.fromisoformat(value.strip())
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _MILLISECONDS else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
