"""Secrets are masked before anything is stored.

Theory. A masker turns a text into one without its secrets, and names the most characters that a
match may span (``lookback``). It needs nothing else, so an application can bring its own;
``SecretMasker`` is the one that ships. Three things are built on that: a whole text is masked as
it is; of a growing text only that part is given out which no later character can change
(``StreamMasker``); a message is masked block by block, except where a provider would refuse a
changed one (``mask_message``).
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from reasoning_store.conversation import codec, seals
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
from reasoning_store.conversation.errors import InvalidCall

_T = TypeVar("_T", bound=Message | Origin | Usage | Block)


class Masker(Protocol):
    """Takes secrets out of text. The same text gives the same result, always.

    It may also have ``settled(text) -> int``: how many characters at the beginning can be masked
    alone, whatever the text that follows. Then a reader of a live reply waits for less.
    """

    lookback: int
    """The most characters that a match may span, with those that it looks at around itself."""

    def mask(self, text: str) -> str:
        """Return the text without its secrets; masking the result changes nothing."""
        ...


def check_masker(masker: Masker) -> None:
    """Refuse an object that cannot mask, before anything is stored."""
    lookback = getattr(masker, "lookback", None)
    if not callable(getattr(masker, "mask", None)) or type(lookback) is not int or lookback < 0:
        raise InvalidCall(
            f"a masker has mask(text) and a number lookback; {type(masker).__name__} has not",
            hint='rs.SecretMasker(values=["..."]) is one',
        )


# A text that grows


class StreamMasker:
    """Masks a text that grows; the pieces that it returns join to the whole masked text.

    ``feed`` returns the text that may be written now, and never a part of a match: what the masker
    calls settled, else nothing of the newest ``lookback`` characters. For these it looks again only
    when enough is new, so that pieces of any size cost the same; ``finish`` returns the rest.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._settled: Callable[[str], int] | None = getattr(masker, "settled", None)
        self._held = ""
        self._new: list[str] = []
        self._room = masker.lookback
        self.is_changed = False
        """Whether a piece that was returned is not as it came."""

    def feed(self, text: str) -> str:
        """Return the next piece of the masked text, often empty."""
        self._new.append(text)
        self._room -= len(text)
        if self._settled is not None and len(self._held) <= self._masker.lookback:
            self._collect()
            if at := self._settled(self._held):
                piece = self._give(self._masker.mask(self._held[:at]), at)
                self._room = self._masker.lookback - len(self._held)
                return piece
        if self._room >= 0:
            return ""
        self._collect()
        piece = self._give(*self._split())
        self._room = max(self._masker.lookback, len(self._held) // 4)
        return piece

    def _give(self, piece: str, length: int) -> str:
        """Return the masked text of so many held characters, which are held no more."""
        self.is_changed = self.is_changed or piece != self._held[:length]
        self._held = self._held[length:]
        return piece

    def finish(self) -> str:
        """Return the rest; the next piece fed begins another text."""
        self._collect()
        self._room = self._masker.lookback
        return self._give(self._masker.mask(self._held), len(self._held))

    def _collect(self) -> None:
        self._held = "".join([self._held, *self._new])
        self._new.clear()

    def _split(self) -> tuple[str, int]:
        """Return the settled part, masked, and its length as it came.

        A match that begins before ``settled`` has its end in the text, so a place where the
        two parts, each masked alone, make the masked whole is a place that no match crosses,
        whatever follows.
        """
        mask, text = self._masker.mask, self._held
        settled = len(text) - self._masker.lookback
        whole, back = mask(text), 0
        while back < settled:
            place = settled - back
            before = mask(text[:place])
            if whole.startswith(before) and before + mask(text[place:]) == whole:
                return before, place
            # The two differ from where the match begins: so much further back is the next try.
            pairs = enumerate(zip(before, whole, strict=False))
            same = next((at for at, (one, other) in pairs if one != other), len(before))
            back = back + len(before) - same if same < len(before) else 2 * back + 1
        return "", 0


class ArgumentsMasker(StreamMasker):
    """Masks JSON that grows, in which an escape may hide a secret: all of it, at its end."""

    def feed(self, text: str) -> str:
        self._new.append(text)
        return ""

    def finish(self) -> str:
        self._collect()
        whole, self._held = self._held, ""
        return _Parts(self._masker).json_text(whole) or ""


# Messages

_OPENS_JSON = ("{", "[")
"""How a tool's answer begins that is JSON, not the plain text of an answer."""

_IDS = frozenset(
    """
    id itemId item_id callId call_id toolCallId tool_call_id toolUseId responseId response_id
    """.split()
)
_AS_IT_CAME = seals.ALL | _IDS
_OPAQUE = _AS_IT_CAME | {"data"}
"""Keys of a block's metadata whose values the provider wants back exactly as they were."""


def mask_message(message: Message, masker: Masker) -> Message:
    """Return the message without its secrets; the same object where there were none.

    A thinking block with a signature or ciphertext, or a redacted one, stays as it is, and
    so does every opaque value elsewhere: a provider refuses a changed one. Names of tools,
    ids and the bytes of media stay too.
    """
    parts = _Parts(masker)
    blocks = tuple(mask_block(block, masker) for block in message.blocks)
    usage, origin = message.usage, message.origin
    return _replace_changed(
        message,
        blocks=blocks if any(map(operator.is_not, blocks, message.blocks)) else message.blocks,
        usage=None if usage is None else _replace_changed(usage, raw=parts.value(usage.raw)),
        metadata=parts.value(message.metadata),
        origin=None if origin is None else mask_origin(origin, masker),
        finish_reason=parts.text(message.finish_reason),
    )


def mask_origin(origin: Origin, masker: Masker) -> Origin:
    """Return the origin with its model and its address masked."""
    parts = _Parts(masker)
    return _replace_changed(
        origin, model=parts.text(origin.model), base_url=parts.text(origin.base_url)
    )


def mask_block(block: Block, masker: Masker) -> Block:
    """Return the block without its secrets; the same object where there were none."""
    if isinstance(block, ThinkingBlock) and block.opaque:
        return block
    if isinstance(block, RawBlock) and _is_sealed(block.data):
        return block
    parts = _Parts(masker)
    fields = _FIELDS[type(block)].items()
    masked = {name: mask(parts, getattr(block, name)) for name, mask in fields}
    metadata = parts.metadata(block.provider_metadata)
    return _replace_changed(block, **masked, provider_metadata=metadata)


def mask_metadata(metadata: Any, masker: Masker) -> Any:
    """Return a block's metadata without its secrets; opaque values stay."""
    return _Parts(masker).metadata(metadata)


def mask_value(value: Any, masker: Masker) -> Any:
    """Return a JSON value without its secrets."""
    return _Parts(masker).value(value)


def _is_sealed(data: Any) -> bool:
    return isinstance(data, Mapping) and any(data.get(name) for name in seals.ALL)


def _replace_changed(holder: _T, **values: Any) -> _T:
    """Return a copy with these values; the same object where each is the one that it has."""
    changed = {name: new for name, new in values.items() if new is not getattr(holder, name)}
    return replace(holder, **changed) if changed else holder


@dataclass(frozen=True, slots=True)
class _Parts:
    """One masker, over the values that messages are made of."""

    masker: Masker

    def text(self, text: str | None) -> str | None:
        if text is None:
            return None
        new = self.masker.mask(text)
        return text if new == text else new

    def result(self, result: Any) -> Any:
        if not isinstance(result, str):
            return self.value(result)
        return (self.json_text if result.lstrip()[:1] in _OPENS_JSON else self.text)(result)

    def json_text(self, text: str | None) -> str | None:
        """Mask a string that may be JSON, so that JSON stays JSON.

        If masking the text is not enough (an escape hides a secret, a number is one), the value is
        masked and written anew.
        """
        if text is None:
            return None
        new = self.masker.mask(text)
        if new == text and "\\" not in text:
            return text
        try:
            wanted = self.value(json.loads(text))
        except (ValueError, RecursionError):
            return text if new == text else new
        try:
            if json.loads(new) == wanted:
                return text if new == text else new
        except (ValueError, RecursionError):
            pass  # masking the text broke it
        written = codec.dumps(wanted)
        # A secret that spans the JSON's own punctuation: the rest of the text becomes a string.
        return written if self.masker.mask(written) == written else codec.dumps(new)

    def metadata(self, value: Any) -> Any:
        return self.value(value, skip=_OPAQUE)

    def value(self, value: Any, *, skip: frozenset[str] = frozenset()) -> Any:
        """Mask every string, key and number of a JSON value; the same one if nothing changes."""
        if not isinstance(value, Mapping | list | tuple):
            return self._mask_leaf(value)
        # One frame for each level: a value may be nested deep.
        items: list[Any] = []
        is_changed = False
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            items.append(item if key in skip else self.value(item, skip=skip))
            is_changed = is_changed or items[-1] is not item
        if not isinstance(value, Mapping):
            return items if is_changed else value
        names = self._mask_keys(value)
        is_changed = is_changed or names != list(value)
        return dict(zip(names, items, strict=True)) if is_changed else value

    def _mask_leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if type(value) is int or type(value) is float:
            written = codec.dumps(value)
            hidden = self.masker.mask(written)
            return value if hidden == written else hidden
        return value

    def _mask_keys(self, mapping: Mapping[Any, Any]) -> list[Any]:
        """Return masked keys; two that masking made alike are kept apart."""
        names: dict[Any, None] = {}
        for key in mapping:
            name = hidden = self.text(key) if isinstance(key, str) else key
            copies = 1
            while name in names or (name != key and name in mapping):
                copies += 1
                name = f"{hidden} ({copies})"
            names[name] = None
        return list(names)


_FIELDS: Final[Mapping[type[Block], Mapping[str, Callable[[_Parts, Any], Any]]]] = {
    TextBlock: {"text": _Parts.text},
    ThinkingBlock: {"thought": _Parts.text},
    ToolCallBlock: {"parameters": _Parts.value, "arguments": _Parts.json_text},
    ToolResponseBlock: {"result": _Parts.result},
    MediaBlock: {"name": _Parts.text, "url": _Parts.text, "ref": _Parts.text},
    RawBlock: {"data": partial(_Parts.value, skip=_AS_IT_CAME), "kind": _Parts.text},
}
"""The fields of a block that may hold secrets; in addition to its metadata."""
