"""The parts of one Gemini candidate, in the order in which they come, as chunks.

A part is a thought if it has ``thought``; a signature does not make it one. A signature may be
on any part and belongs to that part alone: consecutive unsigned parts of one kind are one
block, a signed part is a block of its own; a signature that comes alone, on empty text, is
that of the unsigned block just before it. Names come in camel case (the wire) or snake case
(the SDK), signatures in base64 or bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.blocks import (
    MediaBlock,
    RawBlock,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.wire import call_ids
from reasoning_store.wire.content_parts import media_kind
from reasoning_store.wire.event_fields import Malformed
from reasoning_store.wire.gemini.arguments import ArgumentPieces
from reasoning_store.wire.gemini.spellings import as_json, field, spellings, text_of
from reasoning_store.wire.media import as_base64, as_bytes

Part: TypeAlias = Mapping[str, Any]

_THOUGHT: Final[Mapping[str, Any]] = {"sourceField": "thought"}
_ABOUT: Final = frozenset({"text", "thought", "thoughtSignature", "thought_signature"})
"""The fields of a part in addition to its data."""
_UNSTATED: Final = "application/octet-stream"


@dataclass(slots=True)
class _Run:
    """The block of text or thought that the next part of its kind would continue."""

    thought: bool
    place: int
    signed: bool


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments are still arriving."""

    index: int
    pieces: ArgumentPieces


class Candidate:
    """How far one candidate has come. A part that is refused leaves no trace in it."""

    def __init__(self, choice: int, provider: str) -> None:
        self.response_id: str | None = None
        self._choice = choice
        self._provider = provider
        self._blocks = 0
        self._calls = 0
        self._run: _Run | None = None
        self._text: int | None = None
        self._call: _OpenCall | None = None

    def read(self, part: Any) -> list[Chunk]:
        """Return the chunks of one part, or raise ``Malformed``."""
        if not isinstance(part, Mapping):
            raise Malformed
        text = part.get("text")
        given = field(part, "thoughtSignature")
        signature = as_base64(given)
        if not isinstance(text, str | None) or (given is not None and signature is None):
            raise Malformed
        thought = part.get("thought") is True
        data = next((name for name in _READERS if field(part, name) is not None), None)
        if data is not None and not text and (data == "functionCall" or not thought):
            return _READERS[data](self, part, signature)
        # Several things in one part, a picture that was only thought (it is not of the answer),
        # or data of a kind that we do not know: kept as it came.
        if data is not None or (text is None and any(map(part.get, part.keys() - _ABOUT))):
            return self._add_whole_block(RawBlock(data=as_json(part)))
        if thought:
            return self._add_thought(text or "", signature)
        return self._add_text(text or "", _part_metadata(part, signature))

    def about_text(self, metadata: Mapping[str, Any]) -> list[Chunk]:
        """Return metadata of a candidate's whole text, with its last text."""
        if self._text is None:
            return [BlockChunk(block=RawBlock(data=metadata), choice=self._choice)]
        return [
            TextChunk(text="", content_index=self._text, metadata=metadata, choice=self._choice)
        ]

    def end_call(self) -> list[Chunk]:
        """Complete the call whose arguments were arriving, if there is one."""
        call, self._call = self._call, None
        if call is None:
            return []
        return [
            ToolCallChunk(
                index=call.index,
                parameters=call.pieces.value(),
                is_complete=True,
                choice=self._choice,
            )
        ]

    def cut_off_call(self) -> list[Chunk]:
        """Return what came of a call that was not completed, as JSON that breaks off."""
        call, self._call = self._call, None
        arrived = call.pieces.value() if call is not None else None
        if call is None or not arrived:
            return []
        text = json.dumps(arrived, ensure_ascii=False, separators=(",", ":"))
        return [ToolCallChunk(index=call.index, arguments=text[:-1], choice=self._choice)]

    def _add_thought(self, text: str, signature: str | None) -> list[Chunk]:
        if not text and not signature:
            return []
        out, run = self._continue_run(thought=True, alone=bool(text and signature))
        run.signed = signature is not None
        return [
            *out,
            ReasoningChunk(
                provider=self._provider,
                text=text,
                content_index=run.place,
                metadata={**_THOUGHT, "signature": signature} if signature else _THOUGHT,
                choice=self._choice,
            ),
        ]

    def _add_text(self, text: str, metadata: Mapping[str, Any] | None) -> list[Chunk]:
        if not text and not metadata:
            return []
        signed = metadata is not None
        out, run = self._continue_run(thought=False, alone=bool(text and signed))
        run.signed = signed
        self._text = run.place
        return [
            *out,
            TextChunk(text=text, content_index=run.place, metadata=metadata, choice=self._choice),
        ]

    def _continue_run(self, *, thought: bool, alone: bool) -> tuple[list[Chunk], _Run]:
        """Return the run that a part belongs to, and the end of the one before it."""
        run = self._run
        if run is not None and run.thought is thought and not run.signed and not alone:
            return [], run
        out = self._end_run()
        run = self._run = _Run(thought=thought, place=self._blocks, signed=False)
        self._blocks += 1
        return out, run

    def _end_run(self) -> list[Chunk]:
        run, self._run = self._run, None
        if run is None or not run.thought:
            return []
        return [
            ReasoningChunk(
                provider=self._provider,
                phase="end",
                content_index=run.place,
                metadata=_THOUGHT,
                choice=self._choice,
            )
        ]

    def _add_whole_block(self, block: MediaBlock | RawBlock) -> list[Chunk]:
        return [*self._end_run(), BlockChunk(block=block, choice=self._choice)]

    def _tool_call(self, part: Part, signature: str | None) -> list[Chunk]:
        call = field(part, "functionCall")
        if not isinstance(call, Mapping):
            raise Malformed
        name, call_id, arguments = call.get("name"), call.get("id"), call.get("args")
        pieces = field(call, "partialArgs")
        if (
            not isinstance(name, str | None)
            or not isinstance(call_id, str | None)
            or not isinstance(arguments, Mapping | None)
            or not isinstance(pieces, list | None)
        ):
            raise Malformed
        unfinished, metadata = field(call, "willContinue") is True, _part_metadata(part, signature)
        if not name:
            if arguments:
                raise Malformed  # of no call: only calls in pieces go on
            return self._more_of_call(pieces or [], unfinished, metadata)
        arrived = ArgumentPieces()
        arrived.add(pieces or [])
        index = self._calls
        out = [*self.end_call(), *self._end_run()]
        self._calls += 1
        if unfinished:
            self._call = _OpenCall(index=index, pieces=arrived)
        out.append(
            ToolCallChunk(
                index=index,
                id=call_id or self._call_id(index, name, arguments),
                name=name,
                parameters=None if unfinished else {**(arguments or {}), **arrived.value()},
                is_complete=not unfinished,
                metadata=metadata,
                choice=self._choice,
            )
        )
        return out

    def _more_of_call(
        self, pieces: list[Any], unfinished: bool, metadata: Mapping[str, Any] | None
    ) -> list[Chunk]:
        call = self._call
        if call is None:
            raise Malformed
        call.pieces.add(pieces)
        carrier = ToolCallChunk(index=call.index, metadata=metadata, choice=self._choice)
        return [*([carrier] if metadata else []), *([] if unfinished else self.end_call())]

    def _read_inline_data(self, part: Part, signature: str | None) -> list[Chunk]:
        blob = field(part, "inlineData")
        data = as_bytes(blob.get("data")) if isinstance(blob, Mapping) else None
        if data is None:
            raise Malformed
        return self._add_whole_block(_media(part, blob, signature, data=data))

    def _read_file_data(self, part: Part, signature: str | None) -> list[Chunk]:
        file = field(part, "fileData")
        url = field(file, "fileUri") if isinstance(file, Mapping) else None
        if not isinstance(url, str):
            raise Malformed
        return self._add_whole_block(_media(part, file, signature, url=url))

    def _call_id(self, index: int, name: str, arguments: Part | None) -> str:
        if self.response_id:
            return call_ids.make_call_id(self.response_id, self._choice, index)
        # Without a response id, calls differ by their name and arguments.
        asked = json.dumps(arguments, sort_keys=True, default=str)
        return call_ids.make_call_id(name, asked, self._choice, index)


def _part_metadata(part: Part, signature: str | None) -> dict[str, Any] | None:
    """Return the metadata that is sent back with a part."""
    found = {
        name: as_json(part[name])
        for name in part
        if name not in _ABOUT and name not in _DATA and part[name] is not None
    }
    if signature:
        found["thoughtSignature"] = signature
    return found or None


def _media(
    part: Part,
    about: Mapping[str, Any],
    signature: str | None,
    *,
    data: bytes | None = None,
    url: str | None = None,
) -> MediaBlock:
    mime = text_of(field(about, "mimeType")) or _UNSTATED
    return MediaBlock(
        kind=media_kind(mime),
        mime_type=mime,
        name=text_of(field(about, "displayName")),
        data=data,
        url=url,
        provider_metadata=_part_metadata(part, signature),
    )


_READERS: Final[Mapping[str, Callable[[Candidate, Part, str | None], list[Chunk]]]] = {
    "functionCall": Candidate._tool_call,
    "inlineData": Candidate._read_inline_data,
    "fileData": Candidate._read_file_data,
}
_DATA: Final = frozenset(spelling for name in _READERS for spelling in spellings(name))
"""The members of a part that are its data."""
