"""Secrets taken out of what is stored, before anything is.

Theory. A masker turns a text into one without its secrets, and says how far a match may
reach (``lookback``). Nothing else is asked of it, so an application can bring its own;
``SecretMasker`` is the one that ships. Three things are built on that: a whole text is
masked as it stands; a growing text hands out only what no later character can change
(``StreamMasker``); a message is masked block by block, except where a provider would refuse
a changed one (``masked``).

This module knows text and blocks. It must not know SQL, policy or a provider's protocol;
which keys of a provider's metadata are opaque is a table of names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.errors import UsageError

__all__ = ["ArgumentsMasker", "Masker", "StreamMasker", "masked"]


class Masker(Protocol):
    """Takes secrets out of text. The same text gives the same result, always."""

    lookback: int
    """The characters that a match may span, with whatever it looks at around itself."""

    def mask(self, text: str) -> str:
        """Return the text without its secrets; masking the result changes nothing."""
        ...


def check(masker: Masker | None) -> None:
    """Refuse what cannot mask, before there is anything that it should have masked."""
    if masker is None:
        return
    lookback = getattr(masker, "lookback", None)
    if not callable(getattr(masker, "mask", None)) or type(lookback) is not int or lookback < 0:
        raise UsageError(
            f"a masker has mask(text) and a number lookback, and {type(masker).__name__} has not",
            hint='rs.SecretMasker(values=["..."]) is one',
        )


# A text that grows


class StreamMasker:
    """Hands out, of a text that grows, what is masked for good; the pieces join to the whole.

    ``feed`` answers with what may be written now: nothing of the newest ``lookback``
    characters, and never a part of a match. It looks again only when enough is new, so that
    pieces of any size cost the same; ``finish`` gives the rest.
    """

    __slots__ = ("_held", "_masker", "_new", "_room")

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""
        self._new: list[str] = []
        self._room = masker.lookback

    def feed(self, text: str) -> str:
        """Return the next piece of the masked text, often empty."""
        self._new.append(text)
        self._room -= len(text)
        if self._room >= 0:
            return ""
        self._hold()
        piece, self._held = self._cut()
        self._room = max(self._masker.lookback, len(self._held) // 4)
        return piece

    def finish(self) -> str:
        """Return what is left; the next piece fed begins another text."""
        self._hold()
        piece = self._masker.mask(self._held)
        self._held = ""
        self._room = self._masker.lookback
        return piece

    def _hold(self) -> None:
        self._held = "".join([self._held, *self._new])
        self._new.clear()

    def _cut(self) -> tuple[str, str]:
        """Return the settled part, masked, and the text that is still needed.

        A match that begins before ``settled`` can be seen to its end, so a place where the
        two parts, each masked alone, make the masked whole is a place that no match crosses,
        whatever comes.
        """
        mask, text = self._masker.mask, self._held
        settled = len(text) - self._masker.lookback
        whole, back = mask(text), 0
        while back < settled:
            place = settled - back
            before = mask(text[:place])
            if whole.startswith(before) and before + mask(text[place:]) == whole:
                return before, text[place:]
            # A part of a match shows as what it is: that much further back the match begins.
            shown = len(before) - _agreeing(before, whole)
            back = back + shown if shown else 2 * back + 1
        return "", text


class ArgumentsMasker(StreamMasker):
    """The same for JSON that grows, in which an escape may hide a secret.

    From the first escape on nothing is handed out until the whole is there, masked as the
    message will be. Where that is written otherwise from the beginning, the rest stays out:
    what was handed out cannot be taken back.
    """

    __slots__ = ("_came", "_escaped", "_went")

    def __init__(self, masker: Masker) -> None:
        super().__init__(masker)
        self._came: list[str] = []
        self._went: list[str] = []
        self._escaped = False

    def feed(self, text: str) -> str:
        self._came.append(text)
        self._escaped = self._escaped or "\\" in text
        if self._escaped:
            return ""
        self._went.append(super().feed(text))
        return self._went[-1]

    def finish(self) -> str:
        rest = super().finish()
        if self._escaped:
            whole = _Hiding(self._masker).json_text("".join(self._came)) or ""
            went = "".join(self._went)
            rest = whole[len(went) :] if whole.startswith(went) else ""
        self._came.clear()
        self._went.clear()
        self._escaped = False
        return rest


def _agreeing(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# Messages

_OPENS = ("{", "[")
"""How a tool's answer begins that is JSON, not the plain text of an answer."""

_SEALS = frozenset(
    """
    signature thinkingSignature textSignature thoughtSignature thought_signature
    thoughtSignatures thought_signatures reasoning_opaque
    encrypted encryptedContent encrypted_content reasoningEncryptedContent
    redactedData redacted_data redactedContent redacted_content
    """.split()
)
"""Keys under which providers put what only they can read, or what proves the rest."""

_IDS = frozenset(
    """
    id itemId item_id callId call_id toolCallId tool_call_id toolUseId responseId response_id
    """.split()
)
_AS_IT_CAME = _SEALS | _IDS
_OPAQUE = _AS_IT_CAME | {"data"}
"""Keys of a block's metadata whose values the provider wants back exactly as they were."""


def masked(message: Message, masker: Masker) -> Message:
    """Return the message without its secrets; the same object where there were none.

    A thinking block with a signature or ciphertext, or a redacted one, stays as it is, and
    so does every opaque value elsewhere: a provider refuses a changed one. Names of tools,
    ids, ``ref`` and the bytes of media stay too.
    """
    hide = _Hiding(masker)
    blocks = tuple(hide.block(block) for block in message.blocks)
    usage = message.usage
    if usage is not None and (raw := hide.value(usage.raw)) is not usage.raw:
        usage = replace(usage, raw=raw)
    metadata = hide.value(message.metadata)
    same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
    if same and usage is message.usage and metadata is message.metadata:
        return message
    return replace(message, blocks=blocks, usage=usage, metadata=metadata)


@dataclass(frozen=True, slots=True)
class _Hiding:
    """One masker, over the parts that messages are made of."""

    masker: Masker

    def block(self, block: Block) -> Block:
        if isinstance(block, ThinkingBlock) and block.opaque:
            return block
        if isinstance(block, RawBlock) and _sealed(block.data):
            return block
        changes = {
            name: new
            for name, hide in _PARTS[type(block)].items()
            if (new := hide(self, old := getattr(block, name))) is not old
        }
        return replace(block, **changes) if changes else block

    def text(self, text: str | None) -> str | None:
        if text is None:
            return None
        new = self.masker.mask(text)
        return text if new == text else new

    def result(self, result: Any) -> Any:
        if not isinstance(result, str):
            return self.value(result)
        return (self.json_text if result.lstrip()[:1] in _OPENS else self.text)(result)

    def json_text(self, text: str | None) -> str | None:
        """Mask a string that may be JSON, so that what was JSON still is.

        Where masking the text itself would not do - an escape hides a secret, a number is
        one - the value is masked and written anew.
        """
        if text is None:
            return None
        new = self.masker.mask(text)
        if new == text and "\\" not in text:
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text if new == text else new
        wanted = self.value(value)
        try:
            if json.loads(new) == wanted:
                return text if new == text else new
        except (ValueError, RecursionError):
            pass  # masking the text broke it
        written = codec.dumps(wanted)
        # A secret that spans the JSON's own punctuation: what is left of it is a string.
        return written if self.masker.mask(written) == written else codec.dumps(new)

    def metadata(self, value: Any) -> Any:
        return self.value(value, skip=_OPAQUE)

    def raw(self, value: Any) -> Any:
        return self.value(value, skip=_AS_IT_CAME)

    def value(self, value: Any, *, skip: frozenset[str] = frozenset()) -> Any:
        """Mask every string, key and number of a JSON value, however deep it is."""
        changed = False
        top: list[Any] = [value]
        above: set[int] = set()
        pending: list[tuple[Any, Any, Any]] = [(top, 0, value)]
        while pending:
            into, place, old = pending.pop()
            if into is None:
                above.discard(place)
                continue
            if not isinstance(old, Mapping | list | tuple):
                into[place] = leaf = self._leaf(old)
                changed = changed or leaf is not old
                continue
            if id(old) in above:
                raise UsageError("a value cannot be written as JSON: it holds itself")
            above.add(id(old))
            pending.append((None, id(old), None))
            if not isinstance(old, Mapping):
                into[place] = items = [None] * len(old)
                pending += [(items, number, item) for number, item in enumerate(old)]
                continue
            names = self._names(old)
            changed = changed or names != list(old)
            into[place] = entries = dict.fromkeys(names)
            for name, (key, item) in zip(names, old.items(), strict=True):
                if key in skip:
                    entries[name] = item
                else:
                    pending.append((entries, name, item))
        return top[0] if changed else value

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if type(value) is int or type(value) is float:
            written = codec.dumps(value)
            hidden = self.masker.mask(written)
            return value if hidden == written else hidden
        return value

    def _names(self, mapping: Mapping[Any, Any]) -> list[Any]:
        """Keys may be secrets as well; two that come to be alike are kept apart."""
        names: dict[Any, None] = {}
        for key in mapping:
            name = hidden = self.text(key) if isinstance(key, str) else key
            copies = 1
            while name in names or (name != key and name in mapping):
                copies += 1
                name = f"{hidden} ({copies})"
            names[name] = None
        return list(names)


def _sealed(data: Any) -> bool:
    return isinstance(data, Mapping) and any(data.get(name) for name in _SEALS)


_ABOUT: dict[str, Callable[[_Hiding, Any], Any]] = {"provider_metadata": _Hiding.metadata}
_PARTS: dict[type, dict[str, Callable[[_Hiding, Any], Any]]] = {
    TextBlock: {"text": _Hiding.text, **_ABOUT},
    ThinkingBlock: {"thought": _Hiding.text, **_ABOUT},
    ToolCallBlock: {"parameters": _Hiding.value, "arguments": _Hiding.json_text, **_ABOUT},
    ToolResponseBlock: {"result": _Hiding.result, **_ABOUT},
    MediaBlock: {"name": _Hiding.text, "url": _Hiding.text, **_ABOUT},
    RawBlock: {"data": _Hiding.raw, **_ABOUT},
}
"""What is masked of each kind of block, and how."""
