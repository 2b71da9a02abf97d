"""Whether a message that an application made is one: each field of the type that it says.

A dataclass takes whatever it is given, and what is stored cannot be taken back: a role that
there is not would be found by whoever reads the session, and by then it is too late. So the
faces look once at what comes from outside, before it is counted or written. The rules are
read off the fields of ``blocks``; whether a value is JSON is seen when it is written, but for
its keys, which would be written as strings.

Pure: knows ``blocks``. It must not know SQL, or what a provider takes. It is on the way of
every append: what is right is seen by its exact type, and only what is not is looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    Message,
    Metadata,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
)
from reasoning_store.errors import UsageError

_V = TypeVar("_V", bound=Any)
_NAMES: Mapping[Any, str] = {
    str: "a string",
    bool: "True or False",
    int: "a whole number",
    bytes: "bytes",
    Mapping: "a mapping",
    tuple: "a tuple of blocks",
    Origin: "an Origin",
    Usage: "a Usage",
}
_ALIKE: Mapping[Any, tuple[type, ...]] = {Mapping: (dict,), tuple: (tuple, list)}
"""What is taken for each without a second look, where that is not the type alone."""

_SEVERAL = (Iterator, Collection)
_ONE = (str, bytes, Mapping)


class _Rule(NamedTuple):
    """What one field holds."""

    field: str
    exact: frozenset[type]
    """Types that are right as they stand."""
    also: tuple[type, ...]
    """Types whose subclasses are right as well."""
    values: tuple[str, ...]
    """The strings that it may be; empty: any."""


class _Rules(NamedTuple):
    """What a kind of value holds."""

    typed: tuple[_Rule, ...]
    json: tuple[str, ...]
    """The fields with an application's own JSON, or a provider's."""


def _rules(kind: type) -> _Rules:
    hints = get_type_hints(kind)
    typed = {name: _rule(name, hint) for name, hint in hints.items() if hint is not Any}
    json = [name for name in hints if name not in typed or Mapping in typed[name].also]
    return _Rules(tuple(typed.values()), tuple(json))


def _rule(name: str, hint: Any) -> _Rule:
    if get_origin(hint) is Literal:
        return _Rule(name, frozenset([str]), (), get_args(hint))
    choices = get_args(hint) if NoneType in get_args(hint) else (hint,)
    types = [get_origin(choice) or choice for choice in choices]
    exact = frozenset(one for kind in types for one in _ALIKE.get(kind, (kind,)))
    return _Rule(name, exact, tuple(types), ())


_MESSAGE = _rules(Message)
_ORIGIN = _rules(Origin)
_USAGE = _rules(Usage)
_BLOCKS: Mapping[type, _Rules] = {
    kind: _rules(kind)
    for kind in (
        TextBlock,
        ThinkingBlock,
        ToolCallBlock,
        ToolResponseBlock,
        MediaBlock,
        RawBlock,
    )
}


def tool(*content: Block, metadata: Metadata | None = None) -> Message:
    """What tools answered: one or more ``ToolResponseBlock``, each of which names its call."""
    # The other makers take a text; here it would belong to no call, and be told by nobody.
    for number, block in enumerate(content):
        if type(block) not in _BLOCKS:
            raise _wrong(f"blocks.{number}", "a block", block)
    return Message(role="tool", blocks=content, metadata=metadata)


def are_several(given: Any) -> bool:
    """Whether something is several values, and not one that happens to give its fields.

    A text and a mapping can be gone through, and so can a message of other libraries.
    """
    return isinstance(given, _SEVERAL) and not isinstance(given, _ONE)


def type_name(value: Any) -> str:
    """Return the name of a value's type, told from ours and Python's where it is another's."""
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    bare = home in ("builtins", Message.__module__.partition(".")[0])
    return kind.__name__ if bare else f"{kind.__module__}.{kind.__name__}"


def checked(message: Message, place: str = "") -> Message:
    """Return a message, of dicts where it had other mappings.

    Refuses one in which something is not of its type, by its place. ``place`` is where the
    message itself stands, with what parts it from what is in it.
    """
    message = _checked(message, _MESSAGE, place)
    for number, block in enumerate(message.blocks):
        rules = _BLOCKS.get(type(block))
        if rules is None:
            raise _wrong(f"{place}blocks.{number}", "a block", block)
        plain = _checked(block, rules, f"{place}blocks.{number}.")
        if plain is not block:
            others = message.blocks
            message = replace(message, blocks=(*others[:number], plain, *others[number + 1 :]))
    if message.origin is not None:
        _checked(message.origin, _ORIGIN, f"{place}origin.")
    if message.usage is not None:
        usage = _checked(message.usage, _USAGE, f"{place}usage.")
        message = message if usage is message.usage else replace(message, usage=usage)
    return message


def _checked(value: _V, rules: _Rules, place: str) -> _V:
    for field, exact, also, values in rules.typed:
        item = getattr(value, field)
        if type(item) in exact:
            if values and item not in values:
                raise UsageError(f"not a message: {place}{field}: one of {', '.join(values)}")
        elif isinstance(item, bool) or not isinstance(item, also):
            names = [_NAMES[kind] for kind in also if kind is not NoneType] or ["a string"]
            raise _wrong(f"{place}{field}", names[0], item)
    for field in rules.json:
        item = getattr(value, field)
        if item is not None and codec.not_json(item) is not None:
            item = codec.with_dicts(item)
            if (wrong := codec.not_json(item)) is not None:
                raise UsageError(f"not a message: {place}{field}: {wrong}", hint=codec.JSON)
            value = replace(value, **{field: item})
    return value


def _wrong(place: str, wanted: str, item: Any) -> UsageError:
    given = "None" if item is None else type(item).__name__
    return UsageError(
        f"not a message: {place}: {wanted}, not {given}",
        hint='rs.user("text"), rs.assistant(block, "text"), rs.tool(block)',
    )
