"""One output item of the Responses protocol: the pieces that came, and those still to come.

An item arrives in deltas and then, once or more, as a whole. The text that the whole adds to
the deltas is one more piece, repeated text is ignored, and fields that only the whole has
(ciphertext, annotations, status) are attached. After that the item is done.

A reasoning item is one block, however many parts it has: their texts are joined by a blank
line, and their list is stored with it. A message gives one text block a part. A call gives a
tool call; a custom tool's free input is the one argument ``input``, so that it is JSON like
any other's; ``typed_calls`` has the calls of other types. Every other item is stored whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import RawBlock
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.wire.event_fields import StreamedText, other_fields, plain_value
from reasoning_store.wire.openai_responses import typed_calls

CALLS: Final = frozenset({"function_call", "custom_tool_call"})
"""The calls that have a name and arguments."""

_BETWEEN_PARTS: Final = "\n\n"
_SOURCES: Final = {
    "summary": "reasoning.summary",
    "content": "reasoning.content",
}
_ENCRYPTED: Final = "reasoning.encrypted_content"
_SEAL_FIELDS: Final = {"encrypted": "encrypted_content", "signature": "signature"}
_OPEN_INPUT: Final = '{"input": "'
_CLOSE_INPUT: Final = '"}'

_REASONING_FIELDS: Final = ("id", "type", "summary", "content", "encrypted_content", "signature")
_MESSAGE_FIELDS: Final = ("id", "type", "role", "content")
# parsed and parsed_arguments are made by the SDK from a text; the provider did not send them.
_CALL_FIELDS: Final = (
    "id",
    "type",
    "call_id",
    "name",
    "arguments",
    "input",
    "parsed_arguments",
)
_TEXTS: Final = ("output_text", "text", "refusal")
_PART_FIELDS: Final = ("type", "text", "refusal", "parsed")


class Part(StreamedText):
    """One text of an item: a summary part, a piece of content."""

    def __init__(self, name: str, place: int, number: int) -> None:
        super().__init__()
        self.name = name
        self.place = place
        self.number = number
        self.shown = False
        self.annotations: list[Any] = []


class Item:
    """One output item, as far as it has come."""

    def __init__(self, kind: str, number: int, item_id: str | None, provider: str) -> None:
        self.kind = kind
        self.number = number
        self.id = item_id
        self.announced = False
        self.done = False
        self.arguments = StreamedText()
        self._provider = provider
        self._about: Mapping[str, Any] = {}
        self._parts: dict[tuple[str, int], Part] = {}
        self._last: Part | None = None
        self._source: str | None = None
        self._sealed = False

    def part_of(self, name: str, place: int, unit: Callable[[], int]) -> Part:
        """Return one of the item's texts; a message's texts are blocks of their own."""
        part = self._parts.get((name, place))
        if part is None:
            number = self.number if self.kind == "reasoning" else unit()
            part = self._parts[name, place] = Part(name, place, number)
        return part

    # --- in pieces -------------------------------------------------------------------------

    def start(self) -> list[Chunk]:
        """Begin a thought of which nothing is known but its place.

        Its ciphertext may come with the last event only, and belongs before what it led to.
        """
        return [ReasoningChunk(provider=self._provider, phase="start", content_index=self.number)]

    def begin_call(self, data: Mapping[str, Any]) -> list[Chunk]:
        """Read the fields of an item that begins.

        Its ciphertext may be incomplete, and its texts come as deltas: neither is read here.
        """
        self._about = other_fields(data, ("content", "summary", "encrypted_content"))
        if self.kind == "reasoning":
            return self.start()
        if self.kind not in CALLS or self.announced:
            return []
        self.announced = True
        call_id = data.get("call_id")
        return [
            ToolCallChunk(
                index=self.number,
                id=call_id if isinstance(call_id, str) else None,
                name=data["name"],
                metadata=self._call_metadata({}),
            )
        ]

    def add_text(self, part: Part, text: str) -> list[Chunk]:
        """Return the chunks of one more piece of a text."""
        if not text:
            return []
        if self.kind == "reasoning":
            return self._add_thought(part, text)
        part.pieces.append(text)
        metadata = None if part.shown else self._text_metadata(part, {}, {})
        part.shown = True
        return [TextChunk(text=text, content_index=part.number, metadata=metadata or None)]

    def add_rest_of_text(self, part: Part, whole: str) -> list[Chunk]:
        """Return the text that a part's whole text adds to its pieces."""
        if self.kind == "reasoning" and part.pieces and self._last is not part:
            return []  # others followed it: what it lacks has no place in one thought any more
        return self.add_text(part, part.rest(whole))

    def _add_thought(self, part: Part, text: str) -> list[Chunk]:
        part.pieces.append(text)
        metadata: dict[str, Any] = {}
        if self._last is None:
            self._source = _SOURCES[part.name]
            metadata["providerMetadata"] = self._identity()
        elif self._last is not part:
            text = _BETWEEN_PARTS + text
        self._last = part
        return [
            ReasoningChunk(
                provider=self._provider,
                text=text,
                content_index=self.number,
                metadata={"sourceField": self._source, **metadata},
            )
        ]

    def add_annotation(self, part: Part, annotation: dict[str, Any]) -> list[Chunk]:
        """Keep an annotation with its text. The list itself is handed out, and grows."""
        part.annotations.append(annotation)
        if len(part.annotations) > 1:
            return []
        metadata = {**self._text_metadata(part, {}, {}), "annotations": part.annotations}
        return [TextChunk(text="", content_index=part.number, metadata=metadata)]

    def add_arguments(self, piece: str) -> list[Chunk]:
        """Return the chunks of one more piece of a call's arguments."""
        if not piece:
            return []
        begun = bool(self.arguments.pieces)
        self.arguments.pieces.append(piece)
        if self.kind == "custom_tool_call":
            piece = json.dumps(piece, ensure_ascii=False)[1:-1]
            piece = piece if begun else _OPEN_INPUT + piece
        return [ToolCallChunk(index=self.number, arguments=piece)]

    # --- as a whole ------------------------------------------------------------------------

    def complete(
        self, data: Mapping[str, Any], wrong: list[Any], unit: Callable[[], int]
    ) -> list[Chunk]:
        """Take in the whole item, which ends it. Parts that cannot be read go to ``wrong``.

        If nothing of it could be read, it gives no chunk.
        """
        good = len(wrong)
        if self.kind == "reasoning":
            chunks = self._complete_reasoning(data, wrong)
        elif self.kind == "message" and data.get("role", "assistant") == "assistant":
            chunks = self._complete_message(data, wrong, unit)
        elif self.kind in CALLS:
            chunks = self._complete_call(data, wrong)
        elif typed_calls.is_typed(data):
            chunks = [typed_calls.call_of(data, self.number)]
        else:
            chunks = [BlockChunk(block=RawBlock(data=dict(data)))]
        if not chunks and len(wrong) > good:
            return []
        self.done = True
        self._parts.clear()
        self.arguments.pieces.clear()
        return chunks

    def seal(self, data: Mapping[str, Any]) -> list[Chunk]:
        """Take from a repetition of a finished item the ciphertext that it lacked so far."""
        encrypted = data.get("encrypted_content")
        if self.kind != "reasoning" or self._sealed or not isinstance(encrypted, str):
            return []
        if not encrypted:
            return []
        self._sealed = True
        metadata: dict[str, Any] = {
            "sourceField": self._source or _ENCRYPTED,
            "encrypted": encrypted,
            "providerMetadata": self._identity(),
        }
        return [
            ReasoningChunk(provider=self._provider, content_index=self.number, metadata=metadata)
        ]

    def _complete_reasoning(self, data: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
        self.id = data.get("id") or self.id
        summary = self._texts("summary", data, wrong)
        content = self._texts("content", data, wrong)
        if self._source is None and any((*summary, *content)):
            self._source = _SOURCES["summary" if any(summary) else "content"]
        seals = {
            name: seal
            for name, field in _SEAL_FIELDS.items()
            if (seal := _string_or_nothing(data.get(field), wrong))
        }
        self._sealed = "encrypted" in seals
        metadata: dict[str, Any] = {"sourceField": self._source or _ENCRYPTED, **seals}
        thought = _BETWEEN_PARTS.join(text for text in (*summary, *content) if text)
        if not (thought or seals):
            # EC-002: it ends a block that never was, so far.
            return [*self.start(), self._end_chunk("", metadata)]
        several = len(content) > 1 or (any(summary) and any(content))
        metadata["providerMetadata"] = {
            **self._identity(),
            "summary": summary,
            **({"content": content} if several else {}),
            **_other_metadata(data, _REASONING_FIELDS),
        }
        return [self._end_chunk(thought, metadata)]

    def _end_chunk(self, thought: str, metadata: Mapping[str, Any]) -> Chunk:
        return ReasoningChunk(
            provider=self._provider,
            phase="end",
            text=thought,
            content_index=self.number,
            is_complete=True,
            metadata=metadata,
        )

    def _texts(self, name: str, data: Mapping[str, Any], wrong: list[Any]) -> list[str]:
        """Return the texts of a list; of one that a server leaves empty, the text of its deltas."""
        listed = plain_value(data.get(name))
        texts = []
        if isinstance(listed, list):
            for entry in listed:
                text = text_of(entry)
                if text is None:
                    wrong.append(entry)
                else:
                    texts.append(text)
        elif listed is not None:
            wrong.append(listed)
        if any(texts):
            return texts
        parts = sorted((key[1], part) for key, part in self._parts.items() if key[0] == name)
        return ["".join(part.pieces) for _, part in parts if part.pieces]

    def _complete_message(
        self, data: Mapping[str, Any], wrong: list[Any], unit: Callable[[], int]
    ) -> list[Chunk]:
        self.id = data.get("id") or self.id
        content = plain_value(data.get("content"))
        if not isinstance(content, list):
            if content is not None:
                wrong.append(content)
            content = []
        chunks: list[Chunk] = []
        entries = [plain_value(entry) for entry in content]
        for place, entry in zip(self._places(entries), entries, strict=True):
            chunk = self._complete_part(place, entry, data, unit)
            if chunk is None:
                wrong.append(entry)
            else:
                chunks.append(chunk)
        return chunks

    def _places(self, entries: list[Any]) -> list[int]:
        """Return under which ``content_index`` each entry's text came.

        Some servers count over the items of a response: where a text came under no place of the
        list, the texts are those of the list in their order.
        """
        came = sorted(place for name, place in self._parts if name == "text")
        if not came or came[-1] < len(entries):
            return list(range(len(entries)))
        return [
            came.pop(0) if came and text_of(entry) is not None else place
            for place, entry in enumerate(entries)
        ]

    def _complete_part(
        self, place: int, entry: Any, data: Mapping[str, Any], unit: Callable[[], int]
    ) -> Chunk | None:
        """Return the text of a part of a message; a part that is no text as it came."""
        kind = entry.get("type") if isinstance(entry, Mapping) else None
        if not isinstance(kind, str):
            return None
        if kind not in _TEXTS:
            return BlockChunk(
                block=RawBlock(data=entry, provider_metadata=self._identity() or None)
            )
        name = "refusal" if kind == "refusal" else "text"
        text = entry.get(name)
        if not isinstance(text, str):
            return None
        part = self.part_of(name, place, unit)
        metadata = self._text_metadata(part, data, entry)
        return TextChunk(text=part.rest(text), content_index=part.number, metadata=metadata)

    def _complete_call(self, data: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
        self.id = data.get("id") or self.id
        free = self.kind == "custom_tool_call"
        whole = data.get("input" if free else "arguments")
        begun = bool(self.arguments.pieces)
        # Some servers send a value where JSON text belongs.
        parameters = None if isinstance(whole, str | None) else whole
        if begun and parameters is not None and not isinstance(parameters, Mapping):
            wrong.append(parameters)
        arguments = self.arguments.rest(whole if isinstance(whole, str) else "")
        if free and parameters is None:
            arguments = json.dumps(arguments, ensure_ascii=False)[1:-1]
            arguments = (arguments if begun else _OPEN_INPUT + arguments) + _CLOSE_INPUT
        call_id = data.get("call_id")
        return [
            ToolCallChunk(
                index=self.number,
                id=call_id if isinstance(call_id, str) and call_id else self.id,
                name=data["name"],
                arguments=arguments,
                parameters=parameters,
                is_complete=True,
                metadata=self._call_metadata(data),
            )
        ]

    # --- metadata --------------------------------------------------------------------------

    def _identity(self) -> dict[str, Any]:
        identity = {"item_id": self.id} if self.id else {}
        return identity if self.kind != "reasoning" else {**identity, "item_type": self.kind}

    def _text_metadata(
        self, part: Part, data: Mapping[str, Any], entry: Mapping[str, Any]
    ) -> dict[str, Any]:
        metadata = {
            **self._identity(),
            **_other_metadata({**self._about, **data}, _MESSAGE_FIELDS),
            **_other_metadata(entry, _PART_FIELDS),
        }
        if part.name == "refusal":
            metadata["part_type"] = "refusal"
        return metadata

    def _call_metadata(self, data: Mapping[str, Any]) -> dict[str, Any]:
        metadata = {**self._identity(), **_other_metadata({**self._about, **data}, _CALL_FIELDS)}
        if self.kind == "custom_tool_call":
            metadata["item_type"] = self.kind
        return metadata


def _string_or_nothing(value: Any, wrong: list[Any]) -> str:
    """Return a string, or an empty one for None; anything else is put into ``wrong``."""
    if isinstance(value, str):
        return value
    if value is not None:
        wrong.append(value)
    return ""


def _other_metadata(data: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields without a place that must survive: no empty lists, no usual status."""
    return {
        name: value
        for name, value in other_fields(data, known).items()
        if value != [] and not (name == "status" and value in ("in_progress", "completed"))
    }


def text_of(value: Any) -> str | None:
    """Return a text that is plain or inside an object, as some servers send it."""
    if isinstance(value, str):
        return value
    value = plain_value(value)
    text = value.get("text") if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else None
