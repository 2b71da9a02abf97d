"""The lines of an export: their values checked, as text and back.

An export is JSON lines. The first names the format; then come the settings profiles; then each
session: its own line, each branch with its messages after it, its compactions and drafts, and a
line that ends it; and a last line, so that a file that was cut off shows. A field that a line
leaves out has its default; the fields that only a store knows (position, id, time, counts) can be
left out of lines that were written by hand.

A line of another program is read strictly, each field of its type and in its range; the error names
the place and never its value.

Pure: knows JSON and values; knows no SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from reasoning_store.conversation import codec, json_values
from reasoning_store.conversation.blocks import Counts
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.withholding import BLOCK
from reasoning_store.ledger.records import MOST, MOST_NUMBER

VERSION = 2
"""Those of version 1 were written by development versions."""
_TIMES = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds: the years 1 to 9999, which is what a datetime holds."""
_DAY = 86_400_000_000


def _whole_number(least: int, most: int) -> Any:
    return Field(strict=True, ge=least, le=most)


Text: TypeAlias = Annotated[str, Field(strict=True)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Time: TypeAlias = Annotated[int, _whole_number(*_TIMES)]
ErasureTime: TypeAlias = Annotated[int, _whole_number(_TIMES[0], _TIMES[1] - _DAY)]
"""It is counted on from, a microsecond for each erasure of that moment or before it."""
Total: TypeAlias = Annotated[int, _whole_number(0, MOST)]
Position: TypeAlias = Annotated[int, _whole_number(1, MOST)]
Number: TypeAlias = Annotated[int, _whole_number(1, MOST_NUMBER)]
CountedOn: TypeAlias = Annotated[int, _whole_number(1, (MOST_NUMBER + 1) // 2)]
"""A number after which as many again can follow."""


def _strict_counts(given: Any) -> Any:
    """Refuse what pydantic would make a whole number of."""
    for name in ("visible", "thinking", "clearable"):
        value = given.get(name, 0) if isinstance(given, dict) else 0
        numbers = value if isinstance(value, list) else [value]
        if any(type(number) is not int for number in numbers):
            raise PydanticCustomError("counts", f"{name} is not a whole number")
    return given


StrictCounts: TypeAlias = Annotated[Counts, BeforeValidator(_strict_counts)]
KeyColumn: TypeAlias = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{32}$")]
"""The column of the idempotency key of an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldEntry:
    """A part of a message that requests leave out, or left out until ``undone_at``."""

    block: Annotated[int, _whole_number(0, MOST_NUMBER)]
    part: Text = BLOCK
    digest: KeyColumn
    tokens: Total = 0
    reason: Text = ""
    error: Text | None = None
    target: dict[str, Any] | None = None
    created_at: Time
    undone_at: Time | None = None


class Line:
    """The base of every line."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLine(Line):
    kind: ClassVar[str] = "reasoning-store"
    version: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLine(Line):
    kind: ClassVar[str] = "profile"
    owner: Text
    name: Text = ""
    """Empty of the owner's default."""
    settings: dict[str, Any]
    updated_at: Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine(Line):
    kind: ClassVar[str] = "session"
    owner: Text = ""
    id: Text
    title: Text | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    profile: Text | None = None
    encoding: Text
    archived: Flag = False
    current_branch: Number = 1
    reported: Total | None = None
    """The reasoning budget that it has used, erased messages included."""
    counted: Total | None = None
    unreported: Total | None = None
    crossed: list[Text] = field(default_factory=list)
    created_at: Time | None = None
    updated_at: Time | None = None
    erased_at: ErasureTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine(Line):
    kind: ClassVar[str] = "branch"
    number: CountedOn
    parent: Number | None = None
    first: Position = 1
    next_compaction: CountedOn = 1
    instead_of: Number | None = None
    """The branch that is current until something arrives on this one."""
    created_at: Time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLine(Line):
    kind: ClassVar[str] = "message"
    branch: Number = 1
    position: Position | None = None
    id: Text | None = None
    created_at: Time | None = None
    message: dict[str, Any]
    counts: StrictCounts | None = None
    sent: dict[str, Any] | None = None
    repeat: KeyColumn | None = None
    """The column of its idempotency key, where it is the first of what was appended so."""
    batch: Number | None = None
    erased_at: ErasureTime | None = None
    annotations: dict[str, Any] | None = None
    """The data that the application keeps with it."""
    withheld: list[WithheldEntry] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionLine(Line):
    kind: ClassVar[str] = "compaction"
    branch: Number
    number: CountedOn
    first: Position
    last: Position
    message: dict[str, Any] | None = None
    """The message that replaces the range; a clearing has no message."""
    clears: Flag = False
    """It clears the tool results of its range, which begins at 1."""
    counts: StrictCounts | None = None
    effective: Total | None = None
    """The tokens of the next request once this was in force."""
    supersedes: list[Number] = field(default_factory=list)
    superseded_by: Number | None = None
    copied_from: Number | None = None
    created_at: Time | None = None
    undone_at: Time | None = None
    along: dict[str, Any] | None = None
    """The changes made with it: the number of a `clearing`, `settings` with their values before and
    then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLine(Line):
    kind: ClassVar[str] = "draft"
    branch: Number
    id: Text
    origin: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    sent: dict[str, Any] | None = None
    repeat: KeyColumn | None = None
    parts: list[Text]
    """The parts that have arrived; without any, there is no line."""
    created_at: Time


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEndLine(Line):
    kind: ClassVar[str] = "session_end"
    messages: Total


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLine(Line):
    kind: ClassVar[str] = "end"
    sessions: Total


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
LONGEST = 1 << 29
"""Characters. A text of a gigabyte is more than either engine holds."""
_DEFAULTS: Mapping[type, dict[str, Any]] = {
    kind: {
        item.name: item.default if item.default_factory is MISSING else item.default_factory()
        for item in fields(kind)
    }
    for kind in (*_KINDS, Counts, WithheldEntry)
}


# To text


def to_text(line: Line) -> str:
    """Return a line as text, its end included."""
    return codec.dumps(_json(line)) + "\n"


def _json(line: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"type": line.kind} if isinstance(line, Line) else {}
    for name, default in _DEFAULTS[type(line)].items():
        value = getattr(line, name)
        if isinstance(value, Counts):
            value = _json(value)
        elif value == default:
            continue
        elif name == "withheld":
            value = [_json(entry) for entry in value]
        out[codec.camel(name)] = value
    return out


# From text


def read(text: str | bytes) -> Line:
    """Return the value of a line; refuse one that is malformed, with the place."""
    text = json_values.decoded(text) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    if len(text) > LONGEST:
        raise InvalidCall(f"longer than {LONGEST} characters")
    value = json_values.parse(text)
    if not isinstance(value, dict):
        raise InvalidCall("not an object")
    name = value.pop("type", None)
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidCall("type: no line of an export has it")
    line: Line = codec.validate_fields(kind, value)
    return line
