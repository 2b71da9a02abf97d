"""One choice of Chat Completions: the fields of its deltas, or of its one message.

Theory. A delta and a message have the same fields; a message has them all at once. Each
field that says something has a reader, and within one event they go in one order: reasoning,
best alias first, then what is said, then the calls. Every alias that arrives is told, each
under its own name, so that it can be decided elsewhere which of them counts. A field that
nobody knows says nothing.

A reader checks a value before it remembers anything of it. What does not have its form is
handed back as bad, and the other fields count.

This module knows fields. It must not know events, usage, hosts or what a block becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from operator import itemgetter
from typing import Any, Final, TypeAlias

from reasoning_store.blocks import Metadata
from reasoning_store.chunks import Chunk, FinishChunk, ReasoningChunk
from reasoning_store.wire import contracts
from reasoning_store.wire.base import plain
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_calls import Calls
from reasoning_store.wire.openai_chat_content import THINKING, Content, readable
from reasoning_store.wire.reasoning_details import ALIASES, Entries
from reasoning_store.wire.sdk_objects import opened
from reasoning_store.wire.snapshots import Snapshots

Reader: TypeAlias = Callable[[str, Any, list[Chunk], list[Any]], None]
"""Adds the chunks of one field's value; what does not have its form goes to the last list."""

_SEALS: Final = {
    "encrypted_content": ("reasoning_content", "encrypted"),
    "reasoning_opaque": ("reasoning_text", "signature"),
}
"""What seals a plain string from beside it: whose it is, and what it is to the block."""

_NESTED: Final = "provider_specific_fields"
"""Where LiteLLM puts the fields that it has no name for."""


class Fields:
    """What a contract makes of the fields that carry reasoning."""

    __slots__ = ("aliases", "cumulative", "one_block", "provider", "sources")

    def __init__(self, contract: Contract) -> None:
        self.aliases = tuple(name for name in contracts.mirrors(contract) if name != THINKING)
        self.sources = {name: {"sourceField": name} for name in self.aliases}
        self.provider = contract.provider or ""
        self.cumulative = contract.cumulative
        self.one_block = _SEALS.get(contract.sealed_by or "", ("",))[0]
        """The plain string that is one block a message, because a seal may come for it."""


class Choice:
    """Reads one choice: a ``whole`` message, or deltas one by one."""

    __slots__ = (
        "_calls",
        "_content",
        "_entries",
        "_fields",
        "_numbers",
        "_one_block",
        "_readers",
        "_said",
        "_snapshots",
        "_whole",
        "index",
        "model",
        "response_id",
        "spoke",
    )

    def __init__(self, fields: Fields, index: int, *, whole: bool = False) -> None:
        self.index = index
        self.response_id: str | None = None
        self.model: str | None = None
        self.spoke = False
        """Whether a delta said something; a message behind it can only repeat it."""
        self._fields = fields
        self._whole = whole
        self._numbers = count()
        self._one_block: int | None = None
        self._snapshots: dict[str, Snapshots] = {}
        self._content = content = Content(fields.provider, index, whole=whole)
        self._calls = calls = Calls(index, whole=whole)
        self._entries = Entries(
            self._numbers,
            provider=fields.provider,
            choice=index,
            whole=whole,
            cumulative=fields.cumulative,
        )
        said: dict[str, Reader] = {
            "content": content.read,
            "refusal": content.refusal,
            "audio": content.audio,
            "images": content.images,
            "annotations": content.annotations,
            "extra_content": content.extra,
            _NESTED: content.about,
            "function_call": calls.legacy,
            "tool_calls": calls.read,
        }
        order: dict[str, Reader] = {
            name: self._entries.read if name in ALIASES else self._thought
            for name in fields.aliases
        }
        order |= dict.fromkeys(_SEALS, self._seal) | said
        self._said = said.keys()
        self._readers = {name: (rank, read) for rank, (name, read) in enumerate(order.items())}

    def read(self, delta: Mapping[str, Any], out: list[Chunk], bad: list[Any]) -> None:
        """Add what a delta or a message says, and to ``bad`` what of it has not its form."""
        readers = self._readers
        if _NESTED in delta:
            delta = self._unfolded(delta, bad)
        found: list[tuple[int, str, Any, Reader]] = []
        for name, value in delta.items():
            # Hosts send empty fields along all the time; they say nothing and switch nothing.
            if name in readers and value is not None and value != "" and value != []:
                rank, read = readers[name]
                found.append((rank, name, value, read))
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        waiting = self._snapshots or self._entries.waiting
        for _, name, value, read in found:
            if waiting and name in self._said:
                self._tell_waiting(out)
            read(name, value, out, bad)

    def name(self, response_id: str | None, model: str | None) -> None:
        """Note which response this is a choice of."""
        self.response_id = self._calls.response_id = response_id
        self.model = model

    def finish(self, reason: str | None, out: list[Chunk]) -> None:
        """Add what waited for the end of the choice, and the end itself."""
        self._tell_waiting(out)
        self._content.rest(out)
        if reason:
            out.append(FinishChunk(reason=reason, choice=self.index))

    def _thought(self, name: str, value: Any, out: list[Chunk], bad: list[Any]) -> None:
        """A plain string; a list is read where all of it is text."""
        text = value if isinstance(value, str) else _joined(value)
        if text is None:
            bad.append({name: value})
            return
        if self._fields.cumulative and not self._whole:
            text = self._snapshots.setdefault(name, Snapshots()).new(text)
        if text:
            out.append(self._piece(name, self._fields.sources[name], text))

    def _seal(self, name: str, value: Any, out: list[Chunk], bad: list[Any]) -> None:
        """What seals a plain string, which then is signed, or no more than a summary."""
        if not isinstance(value, str):
            bad.append({name: value})
            return
        source, kind = _SEALS[name]
        out.append(self._piece(source, {"sourceField": source, kind: value}, ""))

    def _piece(self, name: str, metadata: Metadata, text: str) -> ReasoningChunk:
        place = None
        if name == self._fields.one_block:
            if self._one_block is None:
                self._one_block = next(self._numbers)
            place = self._one_block
        return ReasoningChunk(
            provider=self._fields.provider,
            text=text,
            content_index=place,
            metadata=metadata,
            choice=self.index,
        )

    def _tell_waiting(self, out: list[Chunk]) -> None:
        """Add what waited for more of its kind: something else has come."""
        if self._entries.waiting:
            self._entries.rest(out)
        for name, snapshots in self._snapshots.items():
            if snapshots.waiting:
                out.append(self._piece(name, self._fields.sources[name], snapshots.rest()))

    def _unfolded(self, delta: Mapping[str, Any], bad: list[Any]) -> Mapping[str, Any]:
        """Return a delta with the reasoning of its nested fields among its own."""
        nested = opened(delta[_NESTED])
        own = {
            name: value for name, value in delta.items() if value is not None and name != _NESTED
        }
        if not isinstance(nested, dict):
            if nested is not None:
                bad.append({_NESTED: nested})
            return own
        if signatures := nested.get("thought_signatures"):
            own[_NESTED] = {"thought_signatures": signatures}
        return {name: nested[name] for name in nested if name not in self._said} | own


def _joined(value: Any) -> str | None:
    """Return the text of a list that holds nothing else."""
    texts = [readable(plain(piece)) for piece in value] if isinstance(value, list) else [None]
    return None if None in texts else "".join(text for text in texts if text)
