"""One choice's chunks put in order: two channels, well-formed lifecycles, native first.

What comes in is an adapter's: deltas without a start, ends that repeat the whole text,
the same thought in two fields, delimiters inside the answer. What goes out keeps these
promises for every input:

1. A reasoning block has one start, then its deltas, then one end; ``content_index`` is its
   place among the message's blocks in the order in which they began.
2. Visible text holds no supported delimiter.
3. A thought that arrives in several fields is taken from the first that speaks; once any
   field spoke, tagged copies in the text are taken out and not added, unless ``merge`` asks
   for them. A block that is never closed is no copy, unless it says what a field said.
4. Nothing follows the finish. What a provider still sends after it is kept for the message,
   in ``late``, and not shown.

A unit that the protocol numbers is open until the protocol ends it; one that it does not
number is ended by the next piece of another kind (EC-003). ``units`` keeps the lifecycles,
``texts`` the text; this module decides what counts. It knows channels. It must not know a
provider's field names, what a message is, or any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reasoning_store.chunks import (
    BlockChunk,
    Chunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.ingress.places import PlacedTagFilter
from reasoning_store.ingress.texts import TextChannel
from reasoning_store.ingress.units import Unit, Units
from reasoning_store.wire import call_ids

_SPEAKS = ("signature", "encrypted", "redacted")


class Channels:
    """The state of one choice between an adapter and the accumulator."""

    __slots__ = (
        "_alias",
        "_call_at",
        "_calls",
        "_choice",
        "_finished",
        "_last_alias",
        "_mirrored",
        "_mirrors",
        "_text",
        "_units",
        "late",
    )

    def __init__(
        self,
        *,
        provider: str,
        mirrors: frozenset[str],
        tag_filter: PlacedTagFilter | None,
        merge: bool = False,
        choice: int = 0,
    ) -> None:
        self._units = Units(provider, choice)
        self._text = TextChannel(self._units, tag_filter, merge=merge, choice=choice)
        self._mirrors = mirrors
        self._choice = choice
        self._alias: str | None = None
        self._last_alias: Unit | None = None
        self._mirrored: set[str | None] = set()
        self._calls: list[_Call] = []
        self._call_at: dict[int, _Call] = {}
        self._finished = False
        self.late: list[Chunk] = []
        """What belongs to the message and is no longer shown; the owner takes it away."""

    @property
    def suppressed(self) -> int:
        """How many copies of a thought were not stored a second time."""
        return len(self._mirrored) + self._text.copies

    @property
    def stripped(self) -> int:
        """How many delimiters were taken out of the text."""
        return self._text.stripped

    @property
    def extracted(self) -> int:
        """How many thoughts were found in the text."""
        return self._text.extracted

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """Return what one chunk of an adapter comes to."""
        out: list[Chunk] = []
        step = _STEPS.get(type(chunk))
        if step is None:
            return [chunk]
        step(self, chunk, out)
        if self._finished and not isinstance(chunk, FinishChunk):
            self.late += out
            return []
        return out

    def close(self, *, interrupted: bool = False) -> list[Chunk]:
        """End what is open; the pieces that are left belong to the application still."""
        out: list[Chunk] = []
        self._end_all(out, interrupted=interrupted)
        if self._finished:
            self.late += out
            return []
        self._finished = True
        return out

    # Reasoning

    def _reasoning(self, chunk: ReasoningChunk, out: list[Chunk]) -> None:
        metadata = chunk.metadata
        source = metadata.get("sourceField")
        if source in self._mirrors and not self._speaks_first(source, chunk):
            self._mirror(source, chunk, out)
            return
        key = chunk.content_index
        unit = self._units.find(key)
        if unit is not None and key is None and unit.metadata.get("sourceField") != source:
            self._units.end(unit, out)
            unit = None
        if chunk.phase == "end":
            self._protocol_end(unit, chunk, out)
            return
        if not chunk.text and chunk.phase == "delta":
            if not _says(metadata):
                return
            ended = self._units.ended(key)
            if unit is None and ended is not None:
                # A seal that comes after its block's end is that block's still.
                self.late.append(self._units.piece("delta", ended, "", metadata))
                return
        if unit is not None and key is None and self._text.waits:
            # EC-003: text came between, though it is not decided yet whether it is shown.
            self._units.end(unit, out)
            unit = None
        self._told(chunk)
        if unit is None:
            unit = self._begin(key, metadata, out)
        elif chunk.phase == "start" and not chunk.text:
            return
        if source in self._mirrors:
            self._last_alias = unit
        if chunk.text or _says(metadata):
            self._units.grow(unit, chunk.text, metadata, out)

    def _speaks_first(self, source: str | None, chunk: ReasoningChunk) -> bool:
        """Whether this field is the one that counts; the first with text locks the others out."""
        if self._alias is None and chunk.text:
            self._alias = source
        # Ciphertext is nobody's copy: it has no text that another field could repeat.
        return (
            self._alias is None
            or self._alias == source
            or (not chunk.text and bool(chunk.metadata.get("encrypted")))
        )

    def _mirror(self, source: str | None, chunk: ReasoningChunk, out: list[Chunk]) -> None:
        """Take from a copy only what the first field did not carry, e.g. the signature."""
        if chunk.text:
            self._mirrored.add(source)
        unit = self._last_alias
        if not _says(chunk.metadata) or unit is None:
            return
        extra = {name: item for name, item in chunk.metadata.items() if name != "sourceField"}
        piece = self._units.piece("delta", unit.number, "", extra)
        (self.late if unit.ended else out).append(piece)

    def _protocol_end(self, unit: Unit | None, chunk: ReasoningChunk, out: list[Chunk]) -> None:
        if unit is None:
            if not chunk.text and not _says(chunk.metadata):
                return
            unit = self._begin(chunk.content_index, chunk.metadata, out)
        if chunk.text or _says(chunk.metadata):
            self._told(chunk)
            # The end repeats the whole text: only what the deltas lacked is new.
            said = "".join(unit.said)
            rest = chunk.text[len(said) :] if chunk.text.startswith(said) else ""
            if rest or _says(chunk.metadata):
                self._units.grow(unit, rest, chunk.metadata, out)
        if chunk.metadata.get("sourceField") in self._mirrors:
            self._last_alias = unit
        self._units.end(unit, out)

    def _told(self, chunk: ReasoningChunk) -> None:
        """Note that something was thought that the text may repeat; a blank field says nothing."""
        if (chunk.text and not chunk.text.isspace()) or _says(chunk.metadata):
            self._text.native_begins()
            self._text.native = True

    def _begin(self, key: int | None, metadata: Mapping[str, Any], out: list[Chunk]) -> Unit:
        if key is None:
            self._units.end_loose(out)
        self._text.pause(out)
        unit = self._units.begin(metadata, out, key=key)
        self._text.natives.append(unit.said)
        if key is None:
            self._units.loose = unit
        return unit

    # Everything else

    def _tool_call(self, chunk: ToolCallChunk, out: list[Chunk]) -> None:
        call = self._call_at.get(chunk.index)
        # Some hosts number every call of a message alike; then the ids tell them apart.
        if call is None or (chunk.id and call.id and chunk.id != call.id):
            self._units.end_loose(out)
            self._text.pause(out)
            call = _Call(number=self._units.number(), index=len(self._calls), id=chunk.id)
            self._calls.append(call)
            self._call_at[chunk.index] = call
        call.id = call.id or chunk.id
        call.complete = call.complete or chunk.is_complete
        if call.complete and not call.id:
            # Whoever answers it has to name it.
            call.id = call_ids.made(self._choice, call.number)
            chunk = replace(chunk, id=call.id)
        out.append(replace(chunk, index=call.index, content_index=call.number))

    def _visible(self, chunk: TextChunk, out: list[Chunk]) -> None:
        self._text.take(chunk, out)

    def _whole(self, chunk: BlockChunk, out: list[Chunk]) -> None:
        self._units.end_loose(out)
        self._text.pause(out)
        out.append(replace(chunk, content_index=self._units.number()))

    def _finish(self, chunk: FinishChunk, out: list[Chunk]) -> None:
        self._end_all(out, interrupted=False)
        if self._finished:
            self.late += [*out, chunk]
            out.clear()
            return
        out.append(chunk)
        self._finished = True

    def _end_all(self, out: list[Chunk], *, interrupted: bool) -> None:
        self._text.end(out)
        for unit in self._units.opened():
            self._units.end(unit, out, interrupted=interrupted)
        for call in self._calls:
            if not call.complete and not interrupted:
                call.complete = True
                out.append(
                    ToolCallChunk(
                        index=call.index,
                        id=call.id or call_ids.made(self._choice, call.number),
                        content_index=call.number,
                        is_complete=True,
                        choice=self._choice,
                    )
                )


@dataclass(slots=True)
class _Call:
    number: int
    index: int
    id: str | None
    complete: bool = False


def _says(metadata: Mapping[str, Any]) -> bool:
    """Whether metadata alone makes a block real: EC-002."""
    return len(metadata) > 1 and any(metadata.get(name) for name in (*_SPEAKS, "providerMetadata"))


_STEPS: dict[type, Callable[[Channels, Any, list[Chunk]], None]] = {
    ReasoningChunk: Channels._reasoning,
    TextChunk: Channels._visible,
    ToolCallChunk: Channels._tool_call,
    BlockChunk: Channels._whole,
    FinishChunk: Channels._finish,
}
