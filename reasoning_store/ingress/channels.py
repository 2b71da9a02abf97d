"""One choice's chunks put in order: native thoughts first, and one lifecycle for each block.

An adapter gives deltas without a start, ends that repeat the whole text, one thought in two
fields, delimiters inside the answer. For every input, these promises hold of what comes out:

1. A thinking block has one start, then its deltas, then one end; ``content_index`` is its place
   among the message's blocks in the order in which they began. A seal that comes after the end is
   one more delta, without text.
2. Visible text holds no supported delimiter (``text_channel``).
3. A thought that comes in several fields is taken from the first that has more than white space
   (``duplicates``); from then on tagged copies in the text are taken out and not added.
4. The finish comes last, when the stream has ended: a host may name its reason in every event. A
   reason that content follows is replaced by the next one.

A block that the protocol numbers is open until the protocol ends it; one without a number is
ended by the next piece of another kind (EC-003).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.duplicates import (
    MirroredFields,
    WaitingThought,
    contains_in_order,
    without_white_space,
)
from reasoning_store.ingress.open_blocks import OpenBlocks, OpenThought
from reasoning_store.ingress.tags import Run
from reasoning_store.ingress.text_channel import TAG_SOURCE, TextChannel
from reasoning_store.wire import call_ids

_OF_REAL_BLOCKS = ("signature", "encrypted", "redacted", "providerMetadata")
"""The metadata that make a block real that has no text: EC-002."""
_TURN_ENDED = ("end_turn", "stop")
"""The finish reasons of a model that has answered."""
_TAGGED: Mapping[str, Any] = {"sourceField": TAG_SOURCE}
_USUAL_DELIMITERS = (["<think>", "</think>"], ["<think>", ""])
"""Those of a block that notes none."""


@dataclass(slots=True)
class _Call:
    """A tool call: its place among the blocks, and among the calls."""

    index: int
    number: int
    id: str | None
    complete: bool = False


class Channels:
    """One choice of a reply, between an adapter and the message that its chunks come to."""

    def __init__(
        self, text: TextChannel, mirrors: MirroredFields, *, provider: str, choice: int = 0
    ) -> None:
        self.accumulator = Accumulator()
        self.counters = text.counters
        self._choice = choice
        self._out: list[Chunk] = []
        self._finish: FinishChunk | None = None
        self._goes_on = False  # content came after the finish
        # Thoughts
        self._blocks = OpenBlocks(provider, choice, self._out)
        self._mirrors = mirrors
        self._last_mirrored: OpenThought | None = None
        self._native: list[list[str]] = []
        # Text, and the thoughts in it
        self._text = text
        self._text_key: int | None = None
        self._text_at: dict[int | None, int] = {}
        self._last_text: int | None = None
        self._tagged: OpenThought | None = None
        self._opened_by = ""
        self._reserved: int | None = None
        # Tool calls
        self._calls: list[_Call] = []
        self._calls_by_index: dict[int, _Call] = {}

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """Return the chunks that one chunk of an adapter comes to."""
        match chunk:
            case ReasoningChunk():
                self._take_reasoning(chunk)
            case TextChunk():
                self._take_text(chunk)
            case ToolCallChunk():
                self._take_call(chunk)
            case BlockChunk():
                self._take_block(chunk)
            case FinishChunk():
                self._take_finish(chunk)
                return self._drain()
            case _:
                self._out.append(chunk)
                return self._drain()
        self._goes_on = True
        return self._drain()

    @property
    def has_block_or_end(self) -> bool:
        """Whether a block, an end or an error came: more than the origin and the usage."""
        return self._finish is not None or self.accumulator.has_block_or_end

    def _take_finish(self, chunk: FinishChunk) -> None:
        """Show the held text; what is open stays open, because more of it may come."""
        if self._finish is None or self._goes_on:
            self._finish, self._goes_on = chunk, False
        self._settle_mirrors()
        self._end_text(turn_ended=chunk.reason in _TURN_ENDED)

    def close(self, *, interrupted: bool = False) -> list[Chunk]:
        """End all that is open; return the final chunks to show, the finish last."""
        finish, self._finish = self._finish, None
        self._end_all(interrupted=interrupted and (finish is None or self._goes_on))
        if finish is not None:
            self._out.append(finish)
        return self._drain()

    def _drain(self) -> list[Chunk]:
        out = self._out.copy()
        self._out.clear()
        for chunk in out:
            self.accumulator.add(chunk)
        return out

    def _end_all(self, *, interrupted: bool) -> None:
        self._settle_mirrors()
        self._end_text()
        self._blocks.end_all(interrupted=interrupted)
        for call in self._calls:
            if not call.complete and not interrupted:
                call.complete = True
                self._out.append(
                    ToolCallChunk(
                        index=call.number,
                        id=call.id or call_ids.make_call_id(self._choice, call.index),
                        content_index=call.index,
                        is_complete=True,
                        choice=self._choice,
                    )
                )

    # The blocks of the message

    def _begin_block(self, *, ends_thought: bool = True) -> int:
        """Return the index of a block that begins; text that is held stays before it."""
        self._add_runs(self._text.release())
        if self._text.held_back and self._reserved is None:
            self._reserved = self._blocks.next_index()
        if ends_thought:
            self._blocks.end_unnumbered()
        self._text_at.pop(None, None)
        return self._blocks.next_index()

    def _begin_thought(self, key: int | None, metadata: Mapping[str, Any]) -> OpenThought:
        """Begin the block of a native thought."""
        index = self._begin_block(ends_thought=key is None)
        thought = self._blocks.begin(index, metadata, key=key)
        self._native.append(thought.pieces)
        return thought

    # Native thoughts

    def _take_reasoning(self, chunk: ReasoningChunk) -> None:
        text, metadata, key = chunk.text, chunk.metadata, chunk.content_index
        source, mirrors = metadata.get("sourceField"), self._mirrors
        if source in mirrors.names:
            if mirrors.first == source:
                mirrors.add_first(text)
            elif self._must_wait(source, chunk):
                self._let_wait(source, chunk)
                return
            else:
                text = self._take_earlier(source, chunk) + text
        thought = self._blocks.find(key)
        if thought and key is None and thought.metadata.get("sourceField") != source:
            self._blocks.end(thought)
            thought = None
        if chunk.phase == "end":
            self._take_end(thought, text, chunk)
        elif text or chunk.phase == "start":
            self._take_piece(thought, text, chunk)
        elif _makes_block(metadata):
            past = self._blocks.past_index(key)
            if thought is None and past is not None:
                # A seal that comes after the end of its block still belongs to it.
                self._out.append(self._blocks.piece("delta", past, "", metadata))
            else:
                self._take_piece(thought, text, chunk)

    def _take_piece(self, thought: OpenThought | None, text: str, chunk: ReasoningChunk) -> None:
        """Add a piece to the open block, or begin another one with it."""
        metadata, key = chunk.metadata, chunk.content_index
        self._note_native(text, metadata)
        if thought and key is None and self._text.holds_visible:
            self._blocks.end(thought)  # EC-003: text has come since
            thought = None
        if thought is None:
            thought = self._begin_thought(key, metadata)
        elif chunk.phase == "start" and not text:
            return
        if metadata.get("sourceField") in self._mirrors.names:
            self._last_mirrored = thought
        if text or _makes_block(metadata):
            self._blocks.grow(thought, text, metadata)

    def _take_end(self, thought: OpenThought | None, text: str, chunk: ReasoningChunk) -> None:
        metadata = chunk.metadata
        makes_block = _makes_block(metadata)
        if thought is None:
            if not text and not makes_block:
                return
            thought = self._begin_thought(chunk.content_index, metadata)
        whole, before = "", "".join(thought.pieces)
        if text or makes_block:
            self._note_native(text, metadata)
            # The end repeats the whole text: only the part that the deltas lacked is new.
            if text.startswith(before):
                text = text.removeprefix(before)
            elif contains_in_order(text, thought.pieces):
                whole, text = text, ""
            elif contains_in_order(before, [text]):
                text = ""
            else:  # two statements of one thought that differ
                self._blocks.end(thought)
                thought = self._begin_thought(chunk.content_index, metadata)
            if text or makes_block:
                self._blocks.grow(thought, text, metadata)
        if metadata.get("sourceField") in self._mirrors.names:
            self._last_mirrored = thought
        self._blocks.end(thought, whole=whole)

    def _note_native(self, text: str, metadata: Mapping[str, Any]) -> None:
        """Note a thought that the text may repeat; a blank field has no thought."""
        if (text and not text.isspace()) or _makes_block(metadata):
            self._add_runs(self._text.note_native())

    def _must_wait(self, source: str, chunk: ReasoningChunk) -> bool:
        """Whether a piece of a field that is not the first may be a copy of the first."""
        if self._mirrors.first is None:
            return chunk.text.isspace() and not self._is_real(source, chunk)
        # Ciphertext is no copy: it has no text that another field could repeat.
        return bool(chunk.text) or not chunk.metadata.get("encrypted")

    def _take_earlier(self, source: str, chunk: ReasoningChunk) -> str:
        """Return the blank text that came in a field before a piece that counts."""
        mirrors, text = self._mirrors, chunk.text
        if mirrors.first is not None:
            return ""
        if text and not text.isspace():
            return mirrors.choose_first(source, text)
        if self._is_real(source, chunk):
            return mirrors.take_blank(source, chunk.content_index, text)
        return ""

    def _is_real(self, source: str, chunk: ReasoningChunk) -> bool:
        """Whether a blank piece belongs to a block that its field has begun, or makes one."""
        thought = self._blocks.find(chunk.content_index)
        has_begun = thought is not None and thought.metadata.get("sourceField") == source
        return has_begun or _makes_block(chunk.metadata)

    def _let_wait(self, source: str, chunk: ReasoningChunk) -> None:
        """Let a piece wait that may be a copy; the thought gets the seal of its copy."""
        key, thought = chunk.content_index, self._last_mirrored
        makes_block = _makes_block(chunk.metadata)
        if not chunk.text and not makes_block:
            return
        waiting = self._mirrors.add_waiting(
            source, key, chunk.text, chunk.metadata, whole=chunk.phase == "end"
        )
        if thought is None or not makes_block:
            return
        if without_white_space(waiting.pieces) in without_white_space(thought.pieces):
            self._mirrors.drop_waiting(source, key)
            self._move_seal(waiting, thought)

    def _move_seal(self, copy: WaitingThought, thought: OpenThought) -> None:
        """Give a thought the metadata that only its copy has, e.g. the signature."""
        seal = {name: value for name, value in copy.metadata.items() if name != "sourceField"}
        self._out.append(self._blocks.piece("delta", thought.index, "", seal))

    def _settle_mirrors(self) -> None:
        """Decide about the fields that wait: something other than reasoning comes."""
        for waiting, is_copy in self._mirrors.settle():
            if is_copy:
                if self._last_mirrored is not None and _makes_block(waiting.metadata):
                    self._move_seal(waiting, self._last_mirrored)
                continue
            text = "".join(waiting.pieces)
            self._note_native(text, waiting.metadata)
            thought = self._begin_thought(None, waiting.metadata)
            self._blocks.grow(thought, text, waiting.metadata)
            self._blocks.end(thought)

    # Text

    def _take_text(self, chunk: TextChunk) -> None:
        key, text, metadata = chunk.content_index, chunk.text, chunk.metadata
        if text and self._mirrors.has_news:
            self._settle_mirrors()
        if key != self._text_key:
            if self._text.is_open:
                self._end_text()  # no delimiter reaches from one text of the protocol to the next
            self._text_key = key
        if metadata:
            index = self._last_text  # where it is a note on earlier text
            if index is None or text or key is not None or None in self._text_at:
                index = self._text_index()
            self._add_text("", index, metadata)
        if text:
            self._add_runs(self._text.feed(text))

    def _end_text(self, *, turn_ended: bool = False) -> None:
        self._add_runs(self._text.finish(self._native, turn_ended=turn_ended))
        self._end_tagged(interrupted=True)  # an unclosed block is never visible and never lost

    def _add_runs(self, runs: Iterable[Run]) -> None:
        for run in runs:
            if run.kind == "visible":
                self._add_text(run.text, self._text_index())
            elif run.phase == "start":
                self._opened_by = run.text
            elif run.phase == "end":
                self._end_tagged(closed_by=run.text)
            else:
                self._add_tagged(run.text)

    def _add_text(self, text: str, index: int, metadata: Mapping[str, Any] | None = None) -> None:
        self._out.append(
            TextChunk(text=text, content_index=index, metadata=metadata, choice=self._choice)
        )

    def _text_index(self) -> int:
        """Return the index of the block for visible text; one is begun if need be."""
        self._blocks.end_unnumbered()
        index = self._text_at.get(self._text_key)
        if index is None:
            index = self._text_at[self._text_key] = self._blocks.next_index()
        self._last_text = index
        return index

    def _add_tagged(self, text: str) -> None:
        if self._tagged is None:
            self._blocks.end_unnumbered()
            self._text_at.clear()
            index = self._blocks.next_index() if self._reserved is None else self._reserved
            self._tagged = self._blocks.begin(index, _TAGGED, continues=False)
        self._blocks.grow(self._tagged, text, _TAGGED)

    def _end_tagged(self, *, closed_by: str = "", interrupted: bool = False) -> None:
        self._reserved = None
        if self._tagged is not None:
            delimiters = [self._opened_by, closed_by]
            if delimiters not in _USUAL_DELIMITERS:  # kept, so that a wrong cut can be undone
                noted = {**_TAGGED, "providerMetadata": {"delimiters": delimiters}}
                self._blocks.grow(self._tagged, "", noted)
            self._blocks.end(self._tagged, interrupted=interrupted)
            self._tagged = None

    # Calls and whole blocks

    def _take_call(self, chunk: ToolCallChunk) -> None:
        self._settle_mirrors()
        call = self._calls_by_index.get(chunk.index)
        # Some hosts number every call of a message alike; then the ids tell them apart.
        if call is None or (chunk.id and call.id and chunk.id != call.id):
            call = _Call(self._begin_block(), len(self._calls), chunk.id)
            self._calls.append(call)
            self._calls_by_index[chunk.index] = call
        call.id = call.id or chunk.id
        call.complete = call.complete or chunk.is_complete
        if call.complete and not call.id:
            # The application has to name it in its answer.
            call.id = call_ids.make_call_id(self._choice, call.index)
            chunk = replace(chunk, id=call.id)
        self._out.append(replace(chunk, index=call.number, content_index=call.index))

    def _take_block(self, chunk: BlockChunk) -> None:
        self._settle_mirrors()
        self._out.append(replace(chunk, content_index=self._begin_block()))


def _makes_block(metadata: Mapping[str, Any]) -> bool:
    """Whether metadata alone makes a block real."""
    return len(metadata) > 1 and any(metadata.get(name) for name in _OF_REAL_BLOCKS)
