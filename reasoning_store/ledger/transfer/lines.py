"""The lines of an export: their values, as text and back.

An export is JSON lines. The first names the format; then come the settings profiles; then each
session: its own line, each branch with its messages after it, its compactions and drafts, and a
line that ends it; and a last line, so that a file that was cut off shows. A field that a line
leaves out has its default; the fields that only a store knows (position, id, time, counts) can be
left out of lines that were written by hand.

A line of another program is read strictly (``strict``), each field of its type and in its range;
the error names the place and never its value.

Pure: knows JSON and values; knows no SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from reasoning_store.conversation import codec, json_values
from reasoning_store.conversation.blocks import (
    EXACTNESS,
    MOST_TOKENS,
    Counts,
    Exactness,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.records import MOST, MOST_NUMBER

VERSION = 2
"""In the first, a usage is as ``first_usage`` reads it."""


class Line:
    """The base of every line."""

    kind: ClassVar[str]


AT_ONCE = 256
CHARACTERS = 4_000_000
"""How many messages are held at a time, on their way out or in, and about how many characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLine(Line):
    kind: ClassVar[str] = "reasoning-store"
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLine(Line):
    kind: ClassVar[str] = "profile"
    owner: str
    name: str = ""
    """Empty of the owner's default."""
    settings: dict[str, Any]
    updated_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine(Line):
    kind: ClassVar[str] = "session"
    owner: str = ""
    id: str
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    profile: str | None = None
    encoding: str
    archived: bool = False
    current_branch: int = 1
    reported: int | None = None
    """The reasoning budget that it has used, erased messages included."""
    counted: int | None = None
    unreported: int | None = None
    crossed: list[str] = field(default_factory=list)
    created_at: int | None = None
    updated_at: int | None = None
    erased_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine(Line):
    kind: ClassVar[str] = "branch"
    number: int
    parent: int | None = None
    first: int = 1
    next_compaction: int = 1
    created_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsLine:
    visible: int = 0
    thinking: list[int] = field(default_factory=list)
    exactness: Exactness = "exact"
    clearable: int = 0
    """How much of ``visible`` is left out if its tool results are cleared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLine(Line):
    kind: ClassVar[str] = "message"
    branch: int = 1
    position: int | None = None
    id: str | None = None
    created_at: int | None = None
    message: dict[str, Any]
    counts: CountsLine | None = None
    sent: dict[str, Any] | None = None
    repeat: str | None = None
    """The column of its idempotency key, where it is the first of what was appended so."""
    batch: int | None = None
    erased_at: int | None = None
    annotations: dict[str, Any] | None = None
    """The data that the application keeps with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionLine(Line):
    kind: ClassVar[str] = "compaction"
    branch: int
    number: int
    first: int
    last: int
    message: dict[str, Any] | None = None
    """The message that replaces the range; a clearing has no message."""
    clears: bool = False
    """It clears the tool results of its range, which begins at 1."""
    counts: CountsLine | None = None
    effective: int | None = None
    """The tokens of the next request once this was in force."""
    supersedes: list[int] = field(default_factory=list)
    superseded_by: int | None = None
    copied_from: int | None = None
    created_at: int | None = None
    undone_at: int | None = None
    along: dict[str, Any] | None = None
    """The changes made with it: the number of a `clearing`, `settings` with their values before and
    then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLine(Line):
    kind: ClassVar[str] = "draft"
    branch: int
    id: str
    origin: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    sent: dict[str, Any] | None = None
    repeat: str | None = None
    parts: list[str]
    """The parts that have arrived; without any, there is no line."""
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEndLine(Line):
    kind: ClassVar[str] = "session_end"
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLine(Line):
    kind: ClassVar[str] = "end"
    sessions: int


_KINDS: tuple[type[Line], ...] = (
    HeaderLine,
    ProfileLine,
    SessionLine,
    BranchLine,
    MessageLine,
    CompactionLine,
    DraftLine,
    SessionEndLine,
    EndLine,
)
_BY_NAME = {kind.kind: kind for kind in _KINDS}
_OF_SESSION = (f'"{SessionLine.kind}"'.encode(), b"\\u")
LONGEST = 1 << 29
"""Characters. A text of a gigabyte is more than either engine holds."""
_TIME = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds: the years 1 to 9999, which is what a datetime holds."""
_ERASED = (_TIME[0], _TIME[1] - 86_400_000_000)
"""It is counted on from, a microsecond for each erasure of that moment or before it."""
_TOKENS = (0, MOST_TOKENS)
_SUM = (0, MOST)
_NUMBER = (1, MOST_NUMBER)
_COUNTED_ON = (1, (MOST_NUMBER + 1) // 2)
"""Of what is numbered on from here: as many again can follow."""
_POSITION = (1, MOST)
_RANGES: Mapping[str, tuple[int, int]] = {
    "version": (1, VERSION),
    "created_at": _TIME,
    "updated_at": _TIME,
    "undone_at": _TIME,
    "erased_at": _ERASED,
    "current_branch": _NUMBER,
    "reported": _SUM,
    "counted": _SUM,
    "unreported": _SUM,
    "number": _COUNTED_ON,
    "parent": _NUMBER,
    "next_compaction": _COUNTED_ON,
    "branch": _NUMBER,
    "superseded_by": _NUMBER,
    "copied_from": _NUMBER,
    "first": _POSITION,
    "last": _POSITION,
    "position": _POSITION,
    "batch": _NUMBER,
    "visible": _TOKENS,
    "thinking": _TOKENS,
    "clearable": _TOKENS,
    "effective": _SUM,
    "supersedes": _NUMBER,
    "messages": _SUM,
    "sessions": _SUM,
}
_REPEAT = re.compile("[0-9a-f]{32}")


def _of_fields(kind: Any) -> dict[str, Any]:
    return {
        item.name: item.default_factory() if item.default_factory is not MISSING else item.default
        for item in fields(kind)
    }


def _of_types(kind: Any) -> dict[str, tuple[str, tuple[Any, ...]]]:
    found: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is not ClassVar:
            types = get_args(hint) if NoneType in get_args(hint) else (hint,)
            found[codec.camel(name)] = (name, (str,) if hint == Exactness else types)
    return found


_FORMS: tuple[Any, ...] = (*_KINDS, CountsLine)
_DEFAULTS: Mapping[Any, dict[str, Any]] = {kind: _of_fields(kind) for kind in _FORMS}
_TYPES: Mapping[Any, dict[str, tuple[str, tuple[Any, ...]]]] = {
    kind: _of_types(kind) for kind in _FORMS
}
"""Of each field's name in JSON: its own name, and the types that it may have."""


def counts_line(counts: Counts) -> CountsLine:
    return CountsLine(
        visible=counts.visible,
        thinking=list(counts.thinking),
        exactness=counts.exactness,
        clearable=counts.clearable,
    )


def counts_of(line: CountsLine) -> Counts:
    return Counts(
        visible=line.visible,
        thinking=tuple(line.thinking),
        exactness=line.exactness,
        clearable=line.clearable,
    )


# To text


def written(line: Line) -> str:
    """Return a line as text, its end included."""
    return codec.dumps(_json(line)) + "\n"


def _json(line: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"type": line.kind} if isinstance(line, Line) else {}
    for name, default in _DEFAULTS[type(line)].items():
        value = getattr(line, name)
        if isinstance(value, CountsLine):
            value = _json(value)
        elif value == default and type(value) is type(default):
            continue
        out[codec.camel(name)] = value
    return out


# From text


def may_be_session(text: bytes) -> bool:
    """Whether this can be the line of a session: few others have to be read to know.

    Its type is there as it is, or is written with escapes.
    """
    return any(mark in text for mark in _OF_SESSION)


def read(text: str | bytes) -> Line:
    """Return the value of a line; refuse one that is malformed, with the place."""
    text = json_values.decoded(text) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    value = _object(text)
    name = value.pop("type", None)
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidCall("type: no line of an export has it")
    line: Line = _made(kind, value, "")
    return line


def _object(text: str) -> dict[str, Any]:
    if len(text) > LONGEST:
        raise InvalidCall(f"longer than {LONGEST} characters")
    value = json_values.parse(text)
    if not isinstance(value, dict):
        raise InvalidCall("not an object")
    return value


_NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def _made(kind: Any, value: dict[str, Any], place: str) -> Any:
    given: dict[str, Any] = {}
    known = _TYPES[kind]
    for key, item in value.items():
        if key not in known:
            what = place.removesuffix(".") or "the line"
            raise InvalidCall(f"{what}: has an unknown field")
        name, types = known[key]
        given[name] = _fitting(item, types, name, f"{place}{key}")
    missing = [
        codec.camel(name)
        for name, default in _DEFAULTS[kind].items()
        if default is MISSING and name not in given
    ]
    if missing:
        raise InvalidCall(f"{place}{missing[0]}: is missing")
    return kind(**given)


def _fitting(item: Any, types: tuple[Any, ...], name: str, place: str) -> Any:
    for wanted in types:
        plain = get_origin(wanted) or wanted
        if plain is CountsLine and isinstance(item, dict):
            return _made(CountsLine, item, f"{place}.")
        if type(item) is plain:
            if plain is list and not all(type(one) is get_args(wanted)[0] for one in item):
                raise InvalidCall(f"{place}: is not a list of {_NAMES[get_args(wanted)[0]]} each")
            _check_range(item, name, place)
            return item
    raise InvalidCall(
        f"{place}: is not {_NAMES.get(get_origin(types[0]) or types[0], 'an object')}"
    )


def _check_range(item: Any, name: str, place: str) -> None:
    if item is None:
        return  # it says nothing, as if it were left out
    if name == "exactness" and item not in EXACTNESS:
        raise InvalidCall(f"{place}: is not one of {', '.join(EXACTNESS)}")
    if name == "repeat" and not _REPEAT.fullmatch(item):
        raise InvalidCall(f"{place}: is not 32 hexadecimal digits")
    if name in _RANGES:
        least, most = _RANGES[name]
        for number in item if isinstance(item, list) else [item]:
            if not least <= number <= most:
                raise InvalidCall(f"{place}: is not between {least} and {most}")
