"""One choice of Chat Completions: the fields of its deltas, or of its one message.

A delta and a message have the same fields; a message has them all at once. Within one event
fields are read in one order: reasoning, best alias first, then content, then calls. Every
alias that arrives gives chunks under its own name; ingress decides which of them counts. A
value is checked before anything of it is remembered; a malformed one is handed back, and the
other fields count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from operator import itemgetter
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.blocks import Metadata
from reasoning_store.conversation.chunks import (
    Chunk,
    FinishChunk,
    OriginChunk,
    ReasoningChunk,
)
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import is_index, plain_value, shallow_dict
from reasoning_store.wire.openai_chat.content import (
    THINKING,
    Content,
    readable,
)
from reasoning_store.wire.openai_chat.reasoning_arrays import ALIASES, Entries
from reasoning_store.wire.openai_chat.snapshots import Snapshots
from reasoning_store.wire.openai_chat.tool_calls import Calls

FieldReader: TypeAlias = Callable[[str, Any, list[Chunk], list[Any]], None]
"""Adds the chunks of one field's value; a value of another form is put into the last list."""

_SEAL_FIELDS: Final = {
    "encrypted_content": ("reasoning_content", "encrypted"),
    "reasoning_opaque": ("reasoning_text", "signature"),
}
"""The seals of a plain string: the field each belongs to, and its name on the block."""

_NOTES: Final = ("content_filter_results", "native_finish_reason")
"""Fields of a choice as a whole; some hosts repeat them in every event."""
_NOTED: Final = frozenset({*_NOTES, "logprobs"})

_OF_NO_CONTENT: Final = frozenset(
    "channel cost id index name obfuscation object padding parsed prefix role status token_ids"
    " tool_call_id type weight".split()
)
"""Fields of a delta or a message that hold nothing that a model wrote."""

_NESTED: Final = "provider_specific_fields"
"""The field in which LiteLLM puts the fields that it has no name for."""


class ChoiceReader:
    """Reads one choice: a ``whole`` message, or deltas one by one."""

    def __init__(self, contract: Contract, index: int, *, whole: bool = False) -> None:
        self.index = index
        self.response_id: str | None = None
        self.model: str | None = None
        self.spoke = False
        """Whether a delta had content; a message after it can only repeat it."""
        mirrored = contract_lookup.mirrored_fields(contract)
        self._sources = {name: {"sourceField": name} for name in mirrored if name != THINKING}
        self._provider = provider = contract.provider or ""
        self._cumulative = contract.reading.cumulative and not whole
        self._sealed_field = _SEAL_FIELDS.get(contract.reading.sealed_by or "", ("",))[0]
        """The plain string that is one block a message, because a seal may come for it."""
        self._numbers = count()
        self._one_block: int | None = None
        self._snapshots: dict[str, Snapshots] = {}
        self._noted: dict[str, Any] = {}
        self._logprobs: dict[str, Any] = {}
        self._executed: dict[Any, dict[str, Any]] = {}
        self._content = content = Content(provider, index, whole=whole)
        self._calls = calls = Calls(index, whole=whole)
        self._entries = Entries(
            self._numbers,
            provider=provider,
            choice=index,
            whole=whole,
            cumulative=self._cumulative,
        )
        readers: dict[str, FieldReader] = {
            "content": content.read,
            "refusal": content.read_refusal,
            "audio": content.read_audio,
            "images": content.read_images,
            "annotations": content.read_annotations,
            "extra_content": content.read_extra_content,
            "executed_tools": self._read_executed_tools,
            _NESTED: content.read_nested_fields,
            "function_call": calls.read_function_call,
            "tool_calls": calls.read,
        }
        order: dict[str, FieldReader] = {
            name: self._entries.read if name in ALIASES else self._read_thought
            for name in self._sources
        }
        order |= dict.fromkeys(_SEAL_FIELDS, self._read_seal) | readers
        self._visible_names = readers.keys()
        self._readers = {name: (rank, read) for rank, (name, read) in enumerate(order.items())}

    def read(self, delta: Mapping[str, Any], out: list[Chunk], wrong: list[Any]) -> None:
        """Add the chunks of a delta or a message, and its malformed values to ``wrong``."""
        readers = self._readers
        if _NESTED in delta:
            delta = self._with_nested_fields(delta, wrong)
        to_read: list[tuple[int, str, Any, FieldReader]] = []
        for name, value in delta.items():
            # Hosts send empty fields all the time; they have no content and end nothing.
            if value is None or value == "" or value == []:
                continue
            if name in readers:
                rank, read = readers[name]
                to_read.append((rank, name, value, read))
            elif name not in _OF_NO_CONTENT and isinstance(value, str | list | dict):
                wrong.append({name: value})  # perhaps a thought, in a field that nobody named
        if len(to_read) > 1:
            to_read.sort(key=itemgetter(0))
        waiting = self._snapshots or self._entries.waiting
        for _, name, value, read in to_read:
            if waiting and name in self._visible_names:
                self._add_waiting(out)
            read(name, value, out, wrong)

    def set_response(self, response_id: str | None, model: str | None) -> None:
        """Note which response this is a choice of."""
        self.response_id = self._calls.response_id = response_id
        self.model = model

    def read_metadata(self, item: Mapping[str, Any], out: list[Chunk]) -> None:
        """Add the metadata of the choice that is new."""
        if _NOTED.isdisjoint(item):
            return
        for name in _NOTES:
            value = item.get(name)
            if value and value not in (self._noted.get(name), item.get("finish_reason")):
                self._noted[name] = value
                out.append(OriginChunk(metadata={name: plain_value(value)}, choice=self.index))
        if (given := item.get("logprobs")) and isinstance(logprobs := plain_value(given), dict):
            for name, value in logprobs.items():
                before = self._logprobs.get(name)
                if isinstance(before, list) and isinstance(value, list):
                    before += value
                elif value:
                    self._logprobs[name] = [*value] if isinstance(value, list) else value

    def finish(self, reason: str | None, out: list[Chunk]) -> None:
        """Add the chunks that waited for the end of the choice, and the end itself."""
        self._add_waiting(out)
        self._content.add_rest(out)
        if self._executed:
            tools = {"executed_tools": list(self._executed.values())}
            out.append(OriginChunk(metadata=tools, choice=self.index))
            self._executed = {}
        if self._logprobs:
            out.append(OriginChunk(metadata={"logprobs": self._logprobs}, choice=self.index))
            self._logprobs = {}
        if reason:
            out.append(FinishChunk(reason=reason, choice=self.index))

    def _read_thought(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """A plain string; a list is read where all of it is text."""
        text = value if isinstance(value, str) else _join_texts(value)
        if text is None:
            wrong.append({name: value})
            return
        if self._cumulative:
            text = self._snapshots.setdefault(name, Snapshots()).new_text(text)
        if text:
            out.append(self._thought_piece(name, self._sources[name], text))

    def _read_executed_tools(
        self, name: str, value: Any, out: list[Chunk], wrong: list[Any]
    ) -> None:
        """Read the tools that Groq's server called; a tool comes again when it has its output."""
        for place, raw in enumerate(value if isinstance(value, list) else [value]):
            tool = plain_value(raw)
            if not isinstance(tool, dict):
                wrong.append({name: raw})
                continue
            number = tool.get("index")
            key = number if is_index(number) else len(self._executed) + place
            self._executed[key] = self._executed.get(key, {}) | tool

    def _read_seal(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """Read the seal of a plain string, which then is signed, or only a summary."""
        if not isinstance(value, str):
            wrong.append({name: value})
            return
        source, kind = _SEAL_FIELDS[name]
        out.append(self._thought_piece(source, {"sourceField": source, kind: value}, ""))

    def _thought_piece(self, name: str, metadata: Metadata, text: str) -> ReasoningChunk:
        place = None
        if name == self._sealed_field:
            if self._one_block is None:
                self._one_block = next(self._numbers)
            place = self._one_block
        return ReasoningChunk(
            provider=self._provider,
            text=text,
            content_index=place,
            metadata=metadata,
            choice=self.index,
        )

    def _add_waiting(self, out: list[Chunk]) -> None:
        """Add the pieces that waited for more of their kind: another field has come."""
        if self._entries.waiting:
            self._entries.rest(out)
        for name, snapshots in self._snapshots.items():
            if snapshots.waiting:
                out.append(self._thought_piece(name, self._sources[name], snapshots.rest()))

    def _with_nested_fields(self, delta: Mapping[str, Any], wrong: list[Any]) -> Mapping[str, Any]:
        """Return a delta with the reasoning of its nested fields among its own."""
        nested = shallow_dict(delta[_NESTED])
        own = {
            name: value for name, value in delta.items() if value is not None and name != _NESTED
        }
        if not isinstance(nested, dict):
            if nested is not None:
                wrong.append({_NESTED: nested})
            return own
        if signatures := nested.get("thought_signatures"):
            own[_NESTED] = {"thought_signatures": signatures}
        return {name: nested[name] for name in nested if name not in self._visible_names} | own


def _join_texts(value: Any) -> str | None:
    """Return the text of a list that holds nothing else."""
    texts = [readable(plain_value(piece)) for piece in value] if isinstance(value, list) else [None]
    return None if None in texts else "".join(text for text in texts if text)
