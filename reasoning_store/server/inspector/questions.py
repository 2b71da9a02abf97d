"""The question that a page answers: the session, the model and the settings in its address.

Each setting has a control. A control that is left as it is changes nothing: only the values that
differ from the session's own are laid over them, for this page alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlencode

from reasoning_store import InvalidCall, ReasoningSettings
from reasoning_store.results import Resolved

Kind: TypeAlias = Literal["switch", "choice", "number"]
Show: TypeAlias = Literal["json", "curl", "last", "saved"]

UNSET: Final = "unset"
"""The value of a control that asks for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The control of one setting."""

    name: str
    """The key without ``reasoning.``."""
    kind: Kind
    label: str
    help: str
    choices: tuple[tuple[str, str], ...] = ()
    """The values and their labels; of a switch the one that is off, then the one that is on."""
    is_main: bool = False
    """Whether it decides which thinking is sent."""

    @property
    def key(self) -> str:
        return f"reasoning.{self.name}"


_OFF_ON = (("false", "Off"), ("true", "On"))

_STRIP_WORDS: Final = {
    "none": "Leave out nothing",
    "priorTurns": "Of earlier turns",
    "allButLast": "All but the last",
    "all": "All",
}
_STRIPS: Final = get_args(ReasoningSettings.model_fields["strip_from_context"].annotation)
STRIP_LABELS: Final = {
    **_STRIP_WORDS,
    **{word: word for word in _STRIPS if word not in _STRIP_WORDS},
}
"""A policy without a label of its own has its name."""

CONTROLS: Final = (
    Control(
        name="includeInContext",
        kind="switch",
        label="Send thinking back",
        help="Off: only the thinking that the provider demands is sent.",
        choices=_OFF_ON,
        is_main=True,
    ),
    Control(
        name="stripFromContext",
        kind="choice",
        label="Leave out old thinking",
        help="Holds for the thinking that would be sent back.",
        choices=tuple(STRIP_LABELS.items()),
        is_main=True,
    ),
    Control(
        name="floor",
        kind="switch",
        label="Send what the provider demands",
        help="Off: the letter of the settings; the provider may refuse the request.",
        choices=(("off", "Off"), ("provider", "On")),
        is_main=True,
    ),
    Control(
        name="enabled",
        kind="switch",
        label="Ask the model to think",
        help="Thinking that comes unasked is stored, too.",
        choices=_OFF_ON,
    ),
    Control(
        name="effort",
        kind="choice",
        label="Effort",
        help="How hard to think, where the provider takes a word for it.",
        choices=tuple(
            (word, word)
            for word in (UNSET, "none", "minimal", "low", "medium", "high", "xhigh", "max")
        ),
    ),
    Control(
        name="budgetTokens",
        kind="number",
        label="Token budget for thinking",
        help="Where the provider takes a number.",
    ),
    Control(
        name="includeInResponse",
        kind="switch",
        label="Show thinking to users",
        help="For your application's pages. It changes no request.",
        choices=_OFF_ON,
    ),
    Control(
        name="tags",
        kind="choice",
        label="Search answers for inline tags",
        help="Holds for the next replies.",
        choices=(("auto", "auto"), ("always", "always"), ("never", "never")),
    ),
    Control(
        name="format",
        kind="choice",
        label="Format",
        help="Both mean the same.",
        choices=(("field", "field"), ("native", "native")),
    ),
)
"""Every setting, those that decide about thinking first."""

_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, UNSET: None, "": None}
TARGET: Final = ("provider", "model", "api", "base_url")
_SHOWS: Final[tuple[Show, ...]] = ("json", "curl", "last", "saved")
_LIMIT_VARIABLE: Final = "REASONING_STORE_LIMIT"
_MOST_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The parameters in the address of a page."""

    session: str
    branch: int | None = None
    before: int | None = None
    """Only messages before this position."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The values of the controls, by key."""
    target: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    reserve: int | None = None
    """The tokens that a plan keeps free for the answer."""
    threshold: int | None = None
    """The share above which a plan acts, in percent."""
    show: Show = "json"
    unfold: bool = False

    def changes(self, saved: Mapping[str, Resolved]) -> dict[str, Any]:
        """Return the settings that differ from those that are saved."""
        return {key: value for key, value in self.values.items() if value != saved[key].value}

    def address(self, path: str = "/session", **other: Any) -> str:
        """Return the address of this question, or of one that differs in some parts."""
        return f"{path}?{urlencode(self.fields(**other))}"

    def fields(self, **other: Any) -> list[tuple[str, Any]]:
        """Return the names and values of an address or a form; None leaves a name out."""
        values = {key.removeprefix("reasoning."): value for key, value in self.values.items()}
        parts: dict[str, Any] = {
            "id": self.session,
            "branch": self.branch,
            "before": self.before,
            **{name: word_of(value) for name, value in values.items()},
            **self.target,
            "limit": self.limit,
            "reserve": self.reserve,
            "threshold": self.threshold,
            "show": None if self.show == "json" else self.show,
            "unfold": "1" if self.unfold else None,
            **other,
        }
        return [(name, value) for name, value in parts.items() if value is not None]

    def saved_address(self) -> str:
        """Return the address of this question with the settings that are saved."""
        show = "json" if self.show == "saved" else self.show
        return replace(self, values={}, show=show).address()


def read_question(pairs: Iterable[tuple[str, str]], limit: int | None = None) -> Question:
    """Return the question of an address; refuse a value that no control has.

    Of several values of a name the last counts: a switch sends its value of off first. ``limit``
    holds where the address has none.
    """
    given = dict(pairs)
    values = {
        control.key: _value(control, given[control.name])
        for control in CONTROLS
        if control.name in given
    }
    ReasoningSettings.model_validate(values)
    show = given.get("show", "json")
    if show not in _SHOWS:
        raise InvalidCall("show: not a view of the request", hint=f"one of: {', '.join(_SHOWS)}")
    return Question(
        session=given.get("id", ""),
        branch=read_number("branch", given.get("branch")),
        before=read_number("before", given.get("before")),
        values=values,
        target={name: given[name] for name in TARGET if given.get(name)},
        limit=read_number("limit", given["limit"]) if "limit" in given else limit,
        reserve=read_number("reserve", given.get("reserve")),
        threshold=read_number("threshold", given.get("threshold")),
        show=next(one for one in _SHOWS if one == show),
        unfold=given.get("unfold") == "1",
    )


def default_limit() -> int | None:
    """Return the context window of the environment."""
    word = os.environ.get(_LIMIT_VARIABLE, "")
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS else None


def word_of(value: Any) -> str:
    """Return a value as its control sends it."""
    if value is None:
        return UNSET
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(control: Control, word: str) -> Any:
    if control.kind == "number" and word not in (UNSET, ""):
        return read_number(control.name, word)
    return _WORDS.get(word, word)


def read_number(name: str, word: str | None) -> int | None:
    """Return a whole number that an address has; None where it has none."""
    if not word:
        return None
    if not (word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS):
        raise InvalidCall(f"{name}: not a whole number", hint=f"as in {name}=1000")
    return int(word)


def named(pairs: Sequence[tuple[str, str]], name: str) -> str:
    """Return the value of a field; empty if it is missing."""
    return dict(pairs).get(name, "")
