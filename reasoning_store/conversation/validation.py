"""Arguments and messages that an application gives, checked before they are counted or stored.

Each check returns its argument; a refusal names the place and the values allowed there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import NoneType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from reasoning_store.conversation.blocks import (
    MOST_TOKENS,
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
from reasoning_store.conversation.codec import block_to_json
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.json_values import (
    ALLOWED,
    NotJson,
    is_valid_text,
    json_value,
    valid_text,
)

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
_EXACT_TYPES: Mapping[Any, tuple[type, ...]] = {Mapping: (dict,), tuple: (tuple, list)}
"""The exact types that are right for an abstract one, so that most values need one look."""
_MADE = 'rs.user("text"), rs.assistant(block, "text"), rs.tool(block)'
_SEVERAL = (Iterator, Collection)
_ONE = (str, bytes, Mapping)


_LONGEST = 40
_MENDED = 'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
_EXAMPLES: Final = {
    "provider": 'provider="openai"',
    "model": 'model="gpt-5.1"',
    "api": 'api="openai.chat"',
    "base_url": 'base_url="https://host/v1"',
}


def describe(value: Any) -> str:
    """Return the repr of a value for an error message, cut to 40 characters."""
    try:
        text = repr(value)
    except Exception:  # a foreign object's own fault, or an integer of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def type_name(value: Any) -> str:
    """Return the name of a value's type, with its module unless it is Python's or ours."""
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    bare = home in ("builtins", Message.__module__.partition(".")[0])
    return kind.__name__ if bare else f"{kind.__module__}.{kind.__name__}"


def are_several(given: Any) -> bool:
    """Whether an argument is several values: an iterable, but no text, mapping or model object."""
    return isinstance(given, _SEVERAL) and not isinstance(given, _ONE)


def check_number(
    name: str, value: Any, *, least: int | None = None, hint: str | None = None
) -> int:
    """Return a whole number of at least ``least``; True is not a number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidCall(f"{name}: a whole number, not {_kind(value)}", hint=hint)
    if least is not None and value < least:
        raise InvalidCall(f"{name}: {least} or more, not {describe(value)}", hint=hint)
    return value


def check_position(name: str, value: Any) -> int | str:
    """Return a position, which is a whole number, or the id of a message, which is a string."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidCall(f"{name}: a position or the id of a message, not {_kind(value)}")
    return value


def check_tokens(name: str, value: Any, *, least: int = 0, optional: bool = False) -> None:
    """Refuse a value that is not a number of tokens."""
    if optional and value is None:
        return
    hint = f"it is in tokens, as {name}=8_192"
    if check_number(name, value, least=least, hint=hint) > MOST_TOKENS:
        raise InvalidCall(f"{name}: {MOST_TOKENS} or less, not {describe(value)}", hint=hint)


def check_share(name: str, value: Any, *, optional: bool = False, zero: bool = False) -> None:
    """Refuse a value that is not a share of a whole: above 0, or 0 with ``zero``, up to 1."""
    if optional and value is None:
        return
    is_number = type(value) in (int, float)
    if not is_number or not (0 < value <= 1 or (zero and value == 0)):
        raise InvalidCall(
            f"{name}: a share, not {describe(value) if is_number else _kind(value)}",
            hint=f"more than 0 and at most 1, as in {name}=0.85",
        )


def check_seconds(
    name: str, value: Any, *, least: float, most: float, optional: bool = False
) -> None:
    """Refuse a value that is not a number of seconds from ``least`` to ``most``."""
    if optional and value is None:
        return
    is_number = type(value) in (int, float)
    if not is_number or not least <= value <= most:
        raise InvalidCall(
            f"{name}: seconds, not {describe(value) if is_number else _kind(value)}",
            hint=f"from {least:g} to {most:g}, as in {name}=0.5",
        )


def check_text(name: str, value: Any, *, hint: str | None = None) -> str:
    """Return a string that UTF-8 can write; a name is refused where a text is mended."""
    if not isinstance(value, str):
        raise InvalidCall(f"{name}: a string, not {_kind(value)}", hint=hint)
    if not is_valid_text(value):
        raise InvalidCall(
            f"{name}: a string that UTF-8 can write, without half of a character", hint=_MENDED
        )
    return value


def check_truth(name: str, value: Any) -> bool:
    """Return True or False; neither 1 nor "no" is allowed."""
    if not isinstance(value, bool):
        raise InvalidCall(f"{name}: True or False, not {_kind(value)}")
    return value


def check_mapping(name: str, value: Any) -> dict[str, Any]:
    """Return a mapping that JSON can hold as dicts."""
    if not isinstance(value, Mapping):
        raise InvalidCall(f"{name}: a mapping, not {_kind(value)}")
    try:
        held: dict[str, Any] = json_value(dict(value))
    except NotJson as error:
        raise InvalidCall(f"{name}: {error.what}", hint=ALLOWED) from None
    return held


def check_names(**names: Any) -> None:
    """Refuse a provider, model, api or base_url that is not a string."""
    for name, value in names.items():
        if value is not None:
            check_text(name, value, hint=f"e.g. {_EXAMPLES[name]}")


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


# Messages. A dataclass takes any value, and a stored one cannot be taken back. The rules are
# read off the fields of `blocks`.


class _Rule(NamedTuple):
    """The values that one field may have."""

    field: str
    exact: frozenset[type]
    """Types that are right without a second look."""
    also: tuple[type, ...]
    """Types whose subclasses are right as well."""
    values: tuple[str, ...]
    """The strings that are allowed; empty: any."""


class _Rules(NamedTuple):
    """The values that the fields of a dataclass may have."""

    typed: tuple[_Rule, ...]
    json: tuple[str, ...]
    """The fields that hold any JSON."""


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
    exact = frozenset(one for kind in types for one in _EXACT_TYPES.get(kind, (kind,)))
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
    """A tool's message: one or more ``ToolResponseBlock``, each of which names its call."""
    # The other makers take a text; here a text would belong to no call.
    for number, block in enumerate(content):
        if type(block) not in _BLOCKS:
            raise _wrong(f"blocks.{number}", "a block", block)
    return Message(role="tool", blocks=content, metadata=metadata)


class Holder(Protocol):
    """A message with its identity, as ``history()`` gives it."""

    @property
    def message(self) -> Message: ...


def message_of(item: Message | Holder) -> Message:
    """Return a message, or the message that a holder has."""
    message = item if isinstance(item, Message) else getattr(item, "message", None)
    if not isinstance(message, Message):
        raise InvalidCall(
            f"a message, not {type_name(item)}",
            hint="make one with user(), assistant(), tool() or system()",
        )
    return message


def check_message(message: Message, place: str = "") -> Message:
    """Return a message with valid text, with dicts and lists in its JSON, and no empty thought.

    A field of a wrong type is refused by its place, and so is half of a character in a block
    with a signature or encrypted data; ``place`` is that of the message, with the separator
    after it.
    """
    message = _check_fields(message, _MESSAGE, place)
    for number, block in enumerate(message.blocks):
        rules = _BLOCKS.get(type(block))
        if rules is None:
            raise _wrong(f"{place}blocks.{number}", "a block", block)
        plain = _check_fields(_with_json_result(block), rules, f"{place}blocks.{number}.")
        if plain is not block:
            if isinstance(block, ThinkingBlock) and block.opaque:
                _check_sealed(block, f"{place}blocks.{number}.")
            others = message.blocks
            message = replace(message, blocks=(*others[:number], plain, *others[number + 1 :]))
    if any(map(_is_empty_thought, message.blocks)):  # EC-002: as where replies are read
        kept = [block for block in message.blocks if not _is_empty_thought(block)]
        message = replace(message, blocks=tuple(kept))
    if message.origin is not None:
        origin = _check_fields(message.origin, _ORIGIN, f"{place}origin.")
        message = message if origin is message.origin else replace(message, origin=origin)
    if message.usage is not None:
        usage = _check_fields(message.usage, _USAGE, f"{place}usage.")
        message = message if usage is message.usage else replace(message, usage=usage)
    return message


def _with_json_result(block: Block) -> Block:
    """Return a tool's result whose parts are blocks with the JSON of these."""
    if type(block) is not ToolResponseBlock or type(block.result) not in (list, tuple):
        return block
    if not any(type(part) in _BLOCKS for part in block.result):
        return block
    parts = [block_to_json(part) if type(part) in _BLOCKS else part for part in block.result]
    return replace(block, result=parts)


def check_content(message: Message, place: str = "") -> None:
    """Refuse an empty message of anyone but a model, and media without data, url or ref."""
    if not message.blocks and message.role != "assistant" and message.status != "erased":
        raise InvalidCall(
            f"not a message: {place}blocks: the {message.role} message is empty",
            hint=_MADE,
        )
    for number, block in enumerate(message.blocks):
        if isinstance(block, MediaBlock) and all(
            source is None for source in (block.data, block.url, block.ref)
        ):
            raise InvalidCall(
                f"not a message: {place}blocks.{number}: media with one of data, url and ref",
                hint='rs.MediaBlock(kind="image", mime_type="image/png", data=...)',
            )


def _check_fields(value: _V, rules: _Rules, place: str) -> _V:
    for field, exact, also, values in rules.typed:
        item = getattr(value, field)
        if type(item) in exact:
            if type(item) is str and not (item.isascii() or is_valid_text(item)):
                value = replace(value, **{field: valid_text(item)})
            elif values and item not in values:
                raise InvalidCall(f"not a message: {place}{field}: one of {', '.join(values)}")
        elif isinstance(item, bool) or not isinstance(item, also):
            names = [_NAMES[kind] for kind in also if kind is not NoneType] or ["a string"]
            raise _wrong(f"{place}{field}", names[0], item)
    for field in rules.json:
        item = getattr(value, field)
        if item is None:
            continue
        try:
            held = json_value(item)
        except NotJson as error:
            what = f"not a message: {place}{field}: {error.what}"
            raise InvalidCall(what, hint=ALLOWED) from None
        if held is not item:
            value = replace(value, **{field: held})
    return value


def _is_empty_thought(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and not (
        block.thought or block.signature or block.encrypted
    )


def _check_sealed(block: ThinkingBlock, place: str) -> None:
    """Refuse half of a character in a text that a signature seals, and in the seal."""
    for field in ("thought", "signature", "encrypted"):
        try:
            valid_text(getattr(block, field) or "", errors="strict")
        except UnicodeDecodeError:
            raise InvalidCall(
                f"not a message: {place}{field}: half of a character in a sealed block",
                hint="store the block as the provider sent it",
            ) from None


def _wrong(place: str, wanted: str, item: Any) -> InvalidCall:
    return InvalidCall(f"not a message: {place}: {wanted}, not {_kind(item)}", hint=_MADE)
