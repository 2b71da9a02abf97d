"""Blocks and messages as JSON, and back.

The names in JSON are the camel case of the fields in ``blocks``, and both directions are read
off the dataclasses. A field at its default is left out. A block of a type that this code does
not know is kept whole in a ``RawBlock``.

Stored rows are decoded by table; JSON from elsewhere is checked whole by ``validate_message``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
)
from reasoning_store.conversation.errors import CorruptRow, InvalidCall
from reasoning_store.conversation.json_values import ALLOWED

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z]\w{0,39}", re.ASCII)
_NO_MESSAGE = "not a message: "
_WORDS = {
    "missing": "is missing",
    "unexpected_keyword_argument": "is an unknown field",
    "string_type": "is not a string",
    "int_type": "is not a whole number",
    "bool_type": "is not true or false",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "dataclass_type": "is not an object",
}
"""The errors of pydantic whose own words are Python's; others keep theirs."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dumps(value: Any) -> str:
    """Return a value as JSON text: keys in their order, non-ASCII as itself."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidCall(
            f"a value cannot be written as JSON: {type(error).__name__}", hint=ALLOWED
        ) from None


def loads(text: str) -> Any:
    """Return the value of JSON text that ``dumps`` wrote."""
    return json.loads(text)


def camel(name: str) -> str:
    """Return a field's name as JSON has it."""
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


def _names(kind: type) -> dict[str, str]:
    return {item.name: camel(item.name) for item in fields(kind)}


def _optional(kind: type) -> dict[str, Any]:
    """The fields that JSON leaves out at their default."""
    return {
        item.name: item.default
        for item in fields(kind)
        if item.default is not MISSING and item.name != "type"
    }


_BLOCKS: dict[str, type] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "tool_call": ToolCallBlock,
    "tool_response": ToolResponseBlock,
    "media": MediaBlock,
    "raw": RawBlock,
}
KINDS: tuple[type, ...] = (*_BLOCKS.values(), Origin, Usage, Message)
"""The types that are written field by field."""
_TO_JSON: dict[type, dict[str, str]] = {kind: _names(kind) for kind in KINDS}
_FROM_JSON: dict[type, dict[str, str]] = {
    kind: {json_name: name for name, json_name in names.items()} for kind, names in _TO_JSON.items()
}
_DEFAULTS: dict[type, dict[str, Any]] = {kind: _optional(kind) for kind in KINDS}
_ALWAYS = frozenset({"thought"})
"""Written even at its default: a thinking block always has its thought."""


def to_json(value: Any) -> dict[str, Any]:
    """Return the JSON object of a value whose fields are JSON."""
    kind = type(value)
    defaults = _DEFAULTS[kind]
    out: dict[str, Any] = {"type": value.type} if hasattr(value, "type") else {}
    for name, json_name in _TO_JSON[kind].items():
        if name == "type":
            continue
        item = getattr(value, name)
        if name in defaults and name not in _ALWAYS:
            default = defaults[name]
            if item is default or (
                item is not None and type(item) is type(default) and item == default
            ):
                continue
        out[json_name] = item
    return out


def from_json(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """Return the value of a JSON object that ``to_json`` made."""
    names = _FROM_JSON[kind]
    try:
        return kind(**{names[key]: item for key, item in data.items()})
    except (KeyError, TypeError) as error:
        raise CorruptRow(
            f"stored JSON of a {kind.__name__} has a field missing or one too many: {error}"
        ) from None


def block_to_json(block: Block) -> dict[str, Any]:
    """Return the JSON object of one block."""
    if isinstance(block, RawBlock) and _is_newer(block):
        return dict(block.data)
    out = to_json(block)
    if isinstance(block, MediaBlock) and block.data is not None:
        out["data"] = base64.b64encode(block.data).decode("ascii")
    return out


def _is_newer(block: RawBlock) -> bool:
    """Whether a block is kept whole because its type is newer than this code."""
    data, kind = block.data, block.kind
    names_itself = isinstance(data, Mapping) and data.get("type") == kind
    return names_itself and kind not in _BLOCKS and block.provider_metadata is None


def block_from_json(data: Mapping[str, Any]) -> Block:
    """Return the block of one JSON object; a type that is not known here is kept whole."""
    type_name = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(type_name, str):
        raise CorruptRow("stored JSON of a block has no type")
    kind = _BLOCKS.get(type_name)
    if kind is None:
        return RawBlock(data=dict(data), kind=type_name)
    block: Block = from_json(kind, data)
    if isinstance(block, MediaBlock) and isinstance(block.data, str):
        try:
            data_bytes = base64.b64decode(block.data, validate=True)
        except (binascii.Error, ValueError):
            raise CorruptRow("stored JSON of a media block holds data that is not base64") from None
        return from_json(MediaBlock, {**data, "data": data_bytes})
    return block


def blocks_to_json(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    return [block_to_json(block) for block in blocks]


def blocks_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[Block, ...]:
    return tuple(block_from_json(item) for item in data)


def message_to_json(message: Message) -> dict[str, Any]:
    """Return the JSON object of one message, as exports carry it."""
    out = to_json(message)
    out["blocks"] = blocks_to_json(message.blocks)
    if message.origin is not None:
        out["origin"] = to_json(message.origin)
    if message.usage is not None:
        out["usage"] = to_json(message.usage)
    return out


def message_from_json(data: Mapping[str, Any]) -> Message:
    """Return the message of a JSON object that ``message_to_json`` made."""
    parts = dict(data)
    parts["blocks"] = blocks_from_json(parts.get("blocks", ()))
    if parts.get("origin") is not None:
        parts["origin"] = from_json(Origin, parts["origin"])
    if parts.get("usage") is not None:
        parts["usage"] = from_json(Usage, parts["usage"])
    return from_json(Message, parts)


def argument_text(block: ToolCallBlock) -> str:
    """Return a call's arguments as they came, or as JSON where they came as an object."""
    if block.arguments is not None:
        return block.arguments
    return dumps({} if block.parameters is None else block.parameters)


def result_text(block: ToolResponseBlock) -> str:
    """Return a tool's result as text: a string as it is, anything else as JSON."""
    return block.result if isinstance(block.result, str) else dumps(block.result)


def validate_message(data: Any) -> Message:
    """Return the message of a JSON object from elsewhere, checked whole.

    Raises ``InvalidCall`` with the places that are wrong, never with their values.
    """
    if isinstance(data, Mapping) and isinstance(data.get("blocks"), list):
        blocks = [_validate_block(item, f"blocks.{n}.") for n, item in enumerate(data["blocks"])]
        data = {**data, "blocks": blocks}
    message: Message = validate_fields(Message, data, what=_NO_MESSAGE)
    return message


def _validate_block(data: Any, place: str) -> Block:
    type_name = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(type_name, str):
        raise InvalidCall(f"not a message: {place}type: a block is an object with a type")
    kind = _BLOCKS.get(type_name)
    if kind is None:
        return RawBlock(data=dict(data), kind=type_name)
    if kind is MediaBlock and isinstance(data.get("data"), str):
        try:
            data = {**data, "data": base64.b64decode(data["data"], validate=True)}
        except (binascii.Error, ValueError):
            raise InvalidCall(f"not a message: {place}data: is not base64") from None
    block: Block = validate_fields(kind, data, place=place, what=_NO_MESSAGE)
    return block


def validate_fields(kind: type, data: Any, *, place: str = "", what: str = "") -> Any:
    """Return the value of a dataclass, given in JSON's names; refuse another by its fields.

    ``place`` is before the name of each field in the error, and ``what`` before all.
    """
    from pydantic import ValidationError

    try:
        return _border(kind).validate_python([data])[0]
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False, include_context=False)
        errors = "; ".join(_error_text(item, place) for item in wrong[:5])
        raise InvalidCall(f"{what}{errors}") from None


def _error_text(wrong: Mapping[str, Any], place: str) -> str:
    """Return the place of an error and its text; an unknown key is named only if it is a name."""
    path = [str(part) for part in wrong["loc"][1:]]
    what = _WORDS.get(wrong["type"], wrong["msg"].replace("Input should be", "must be"))
    if wrong["type"] == "unexpected_keyword_argument" and not _NAME.fullmatch(path[-1]):
        path.pop()
        what = "has an unknown field"
    field = (place + ".".join(path)).removesuffix(".")
    return f"{field}: {what}" if field else what


@cache
def _border(kind: type) -> TypeAdapter[list[Any]]:
    # A list, because pydantic takes JSON's names for a dataclass of ours only where the
    # outermost type is not itself one.
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(
        list[kind],  # type: ignore[valid-type]
        config=ConfigDict(alias_generator=camel, extra="forbid"),
    )
