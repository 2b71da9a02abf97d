"""The ``reasoning.*`` settings: names, types, defaults, messages, layers.

One table, the fields of ``SettingValues``, has them all. A value comes in by its field's name in
Python, by its key in JSON and on the command line, or by a variable of the environment; a bad one
is refused whole with the allowed values named, and the current value stays (ERR-001).

Settings are resolved anew for every request (BR-008): each key comes from the first of ``LAYERS``
that sets it, and records that layer. ``egress`` decides about the effect of a setting; this module
knows no message, no provider and no SQL.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from reasoning_store.conversation.errors import SettingError
from reasoning_store.conversation.validation import describe

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Strip: TypeAlias = Literal["all", "allButLast", "none", "priorTurns"]
Layer: TypeAlias = Literal["call", "session", "profile", "owner", "environment", "default"]

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""The layers that may set a key, the strongest first."""

PREFIX = "reasoning."
LEAST_BUDGET = 0
"""The smallest ``budget_tokens``."""


@dataclass(frozen=True, kw_only=True)
class SettingValues:
    """Every setting: its name, the values that it takes, its default.

    ``ReasoningSettings`` inherits the fields, so it has no slots.
    """

    enabled: bool = True
    """Ask the provider for reasoning. Reasoning that comes unasked is stored, too (BR-006)."""
    effort: Effort | None = None
    """How hard to think, where the provider takes a word for it."""
    budget_tokens: int | None = None
    """The most tokens to think for, where the provider takes a number."""
    include_in_context: bool = False
    """Send reasoning back to models. Off by default (BR-001)."""
    include_in_response: bool = True
    """Show reasoning to the user. It does not decide about requests (BR-003)."""
    strip_from_context: Strip = "none"
    """The reasoning that is left out of the history before ``include_in_context`` (BR-005)."""
    format: Literal["field", "native"] = "field"
    """``native`` is accepted and means ``field`` (BR-007)."""
    floor: Literal["provider", "off"] = "provider"
    """Whether reasoning that a provider demands back is sent whatever the other settings are."""
    tags: Literal["auto", "always", "never"] = "auto"
    """Whether answers are searched for inline delimiters: ``auto`` as the host demands and outside
    of code, ``always`` in all text."""

    def by_key(self) -> dict[str, Any]:
        """Return every value by its name in JSON."""
        return {key: getattr(self, name) for name, key in KEY_OF.items()}


def _key_of(name: str) -> str:
    first, *rest = name.split("_")
    return PREFIX + first + "".join(map(str.capitalize, rest))


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(SettingValues)}
KEY_OF: dict[str, str] = {name: _key_of(name) for name in _DEFAULTS}
"""Each field's name in JSON."""
_FIELDS: dict[str, str] = {key: name for name, key in KEY_OF.items()}
KEYS: tuple[str, ...] = tuple(KEY_OF.values())
"""Every key, in the order in which they are shown."""


def _allowed(annotation: Any) -> tuple[Any, ...]:
    """Return the values that a field takes; none, where it takes any number."""
    if annotation is bool:
        return (True, False)
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(value for part in get_args(annotation) for value in _allowed(part))


_ALLOWED: dict[str, tuple[Any, ...]] = {
    name: _allowed(annotation) for name, annotation in get_type_hints(SettingValues).items()
}


ENVIRONMENT: dict[str, str] = {
    "REASONING_STORE_" + name.upper(): key for name, key in KEY_OF.items()
}
"""The variable of the environment that sets each key."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """One key's value, and the layer it came from."""

    value: Any
    layer: Layer


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of one request: each value, and the layer that it came from."""

    settings: SettingValues
    layers: Mapping[str, Layer]

    def resolved(self) -> dict[str, Resolved]:
        return {
            key: Resolved(getattr(self.settings, name), self.layers[key])
            for key, name in _FIELDS.items()
        }


def resolve_settings(
    call: ReasoningSettings | Mapping[str, Any] | None = None,
    *,
    session: Mapping[str, Any] | None = None,
    profile: Mapping[str, Any] | None = None,
    owner: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> Policy:
    """Return what holds now (BR-008): for each key, the strongest layer that sets it.

    The settings of a session, a profile, an owner and the environment were checked when they
    were set; those of a call are checked here.
    """
    by_layer: dict[Layer, Mapping[str, Any]] = {
        "call": checked(call),
        "session": session or {},
        "profile": profile or {},
        "owner": owner or {},
        "environment": environment or {},
    }
    values: dict[str, Any] = {}
    layers: dict[str, Layer] = {}
    for layer in reversed(LAYERS[:-1]):
        for key, value in by_layer[layer].items():
            values[key], layers[key] = value, layer
    return Policy(
        SettingValues(**{_FIELDS[key]: value for key, value in checked(values).items()}),
        {key: layers.get(key, "default") for key in KEYS},
    )


def _is_allowed(key: str, value: Any) -> bool:
    name = _FIELDS.get(key)
    if name is None:
        return False
    if name == "budget_tokens":
        return value is None or (type(value) is int and value >= LEAST_BUDGET)
    return value is _DEFAULTS[name] or (type(value) in (bool, str) and value in _ALLOWED[name])


def checked(settings: ReasoningSettings | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the keys that are set, by their names in JSON; refuse a bad one (ERR-001)."""
    if settings is None:
        return {}
    if type(settings) is dict and all(map(_is_allowed, settings, settings.values())):
        return dict(settings)
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings

    if isinstance(settings, ReasoningSettings):
        return settings.given()
    if not isinstance(settings, Mapping):
        raise SettingError(
            f"settings are a mapping or ReasoningSettings, not {type(settings).__name__}"
        )
    return ReasoningSettings.model_validate(dict(settings)).given()


def parse(key: str, text: str) -> Any:
    """Return the value that a person wrote for a key, on a command line or in a variable."""
    name = _FIELDS.get(key)
    if name is None:
        raise refusal(key, {"type": "extra_forbidden"})
    word = text.strip()
    value: Any = word
    if _ALLOWED.get(name) == (True, False):
        value = _WORDS.get(word.lower(), word)
    elif name == "budget_tokens" and word.isdecimal():
        with suppress(ValueError):  # Python reads no number of thousands of digits
            value = int(word)
    return checked({key: value})[key]


def words(key: str) -> tuple[str, ...]:
    """Return the values that a key takes, as a person writes them; none for any number."""
    return tuple(map(_word, _ALLOWED.get(_FIELDS.get(key, ""), ())))


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that an environment's variables make; a bad one is named."""
    made: dict[str, Any] = {}
    for variable, key in ENVIRONMENT.items():
        if word := environ.get(variable):
            try:
                made[key] = parse(key, word)
            except SettingError as error:
                raise SettingError(
                    f"the variable {variable}: {error}", key=key, hint="set it to one, or unset it"
                ) from None
    return made


_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def refusal(place: str, wrong: Mapping[str, Any]) -> SettingError:
    """Make the message of ERR-001 out of what pydantic found."""
    name = _FIELDS.get(place, place)
    if wrong.get("type") in ("extra_forbidden", "invalid_key"):
        if name in KEY_OF:
            twice = f"{KEY_OF[name]} is set twice, by both its names"
            return SettingError(twice, key=KEY_OF[name], hint="leave one of them out")
        meant = _meant(place)
        did_you_mean = f"did you mean {meant}?" if meant else f"the keys are: {', '.join(KEYS)}"
        return SettingError(f"unknown setting {describe(place)}; {did_you_mean}", key=place)
    key = KEY_OF.get(name, place)
    if name == "budget_tokens":
        allowed = f"a whole number, {LEAST_BUDGET} or more"
    else:
        allowed = "one of: " + ", ".join(_word(item) for item in _ALLOWED.get(name, ()))
    value = wrong.get("input")
    text = value if isinstance(value, str) else describe(value)
    near = difflib.get_close_matches(text, [_word(v) for v in _ALLOWED.get(name, ())], n=1)
    quoted = ", without quotes" if near and near[0] == text.lower() in ("true", "false") else ""
    return SettingError(
        f"{key} cannot be {describe(value)}; {allowed}"
        + (f"; did you mean {near[0]}{quoted}?" if near else ""),
        key=key,
        hint="the current value stays",
    )


def _meant(key: str) -> str | None:
    """Return the key that was probably meant, with or without its prefix."""

    def plain(word: str) -> str:
        return word.removeprefix(PREFIX).replace("_", "").lower()

    names = {plain(name): name for name in KEYS}
    written = plain(key)
    begun = [name for name in names if len(written) > 2 and name.startswith(written)]
    near = begun or difflib.get_close_matches(written, names, n=1)
    return names[near[0]] if near else None


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
