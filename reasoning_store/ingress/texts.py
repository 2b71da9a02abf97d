"""The text of one choice: what of it is visible, what was thought in it, where both stand.

Text goes on with the block before it, or with the one that the protocol numbers. What may
yet become a delimiter is held back, and when it turns out to be text, something else may
have begun since: then it stands where it arrived (``places``). What was thought in the text
is a unit like any other; once a native field spoke it is a copy, taken out and not added,
unless ``merge`` asks for it.

This module knows text and its delimiters. It must not know which native field counts, nor
what else a message is made of: that is ``channels``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasoning_store.blocks import Metadata
from reasoning_store.chunks import Chunk, TextChunk
from reasoning_store.ingress.places import PlacedTagFilter
from reasoning_store.ingress.tags import Run
from reasoning_store.ingress.units import Unit, Units

TAG_SOURCE = "think_tags"
"""``sourceField`` of a thought that was taken out of the text."""

_TAGGED: Mapping[str, Any] = {"sourceField": TAG_SOURCE}


class TextChannel:
    """The text of one choice, between an adapter and the accumulator."""

    __slots__ = (
        "_choice",
        "_current",
        "_extracted",
        "_filter",
        "_key",
        "_last",
        "_last_copy",
        "_merge",
        "_numbered",
        "_places",
        "_stretch",
        "_stripped",
        "_tagged",
        "_units",
        "copies",
        "native",
    )

    def __init__(
        self, units: Units, tag_filter: PlacedTagFilter | None, *, merge: bool, choice: int
    ) -> None:
        self._units = units
        self._filter = tag_filter
        self._merge = merge
        self._choice = choice
        self.native = False
        """Whether a native field has spoken."""
        self.copies = 0
        """How many thoughts were not added, for that."""
        self._stretch = 0
        self._places: dict[int, int] = {}
        self._current: int | None = None
        self._last: int | None = None
        self._key: int | None = None
        self._numbered: dict[int, int] = {}
        self._tagged: Unit | None = None
        self._stripped = 0
        self._extracted = 0
        self._last_copy: tuple[int, int] | None = None

    @property
    def stripped(self) -> int:
        """How many delimiters were taken out of the text."""
        return self._stripped + (self._filter.stripped if self._filter is not None else 0)

    @property
    def extracted(self) -> int:
        """How many thoughts were found in the text."""
        return self._extracted + (self._filter.extracted if self._filter is not None else 0)

    def take(self, chunk: TextChunk, out: list[Chunk]) -> None:
        """Take in one piece of text."""
        key = chunk.content_index
        if self._filter is None:
            self._show(chunk.text, key, chunk.metadata, out)
            return
        if key != self._key:
            # Another text of the protocol's: no delimiter reaches from one into the next.
            if self._filter.held or self._filter.interrupted:
                self._drain(self._filter, out)
            self._key = key
        if chunk.metadata:
            if chunk.text:
                self._place(key, out)  # the note is on the text that comes with it
            self._show("", key, chunk.metadata, out)
        if chunk.text:
            self._read(self._filter, chunk.text, key, out)

    def pause(self) -> None:
        """Note that something comes which visible text does not go on behind."""
        waiting = self._filter
        if waiting is not None and (waiting.joining or (waiting.held and not waiting.inside)):
            self._places[self._stretch] = self._reserved(self._key)
        self._stretch += 1
        self._current = None

    def end(self, out: list[Chunk]) -> None:
        """Give out what is held: nothing more comes."""
        if self._filter is not None:
            self._drain(self._filter, out)

    def _read(
        self, tag_filter: PlacedTagFilter, text: str, key: int | None, out: list[Chunk]
    ) -> None:
        """Take in text, or its end."""
        tag_filter.mark = self._stretch
        for run in tag_filter.feed(text) if text else tag_filter.finish():
            if tag_filter.older and run.kind == "visible" and run.phase == "delta":
                run = self._where_it_arrived(run, tag_filter.older, out)
            if run.text or run.phase != "delta":
                self._run(run, key, out)
        if not tag_filter.held:
            self._places.clear()

    def _where_it_arrived(self, run: Run, older: list[tuple[int, int]], out: list[Chunk]) -> Run:
        """Say what was held before what came between, and return the rest of the run."""
        text = run.text
        while older and text:
            stretch, count = older.pop(0)
            piece, text = text[:count], text[count:]
            if len(piece) < count:
                older.insert(0, (stretch, count - len(piece)))
            place = self._last = self._places[stretch]
            loose = self._units.loose
            if loose is not None and loose.number < place:
                self._units.end_loose(out)
            out.append(TextChunk(text=piece, content_index=place, choice=self._choice))
        return run._replace(text=text)

    def _run(self, run: Run, key: int | None, out: list[Chunk]) -> None:
        kind, text, block, phase = run
        if phase != "delta":
            if phase == "end":
                self._end_tagged(out)
            return
        if kind == "visible":
            self._show(text, key, None, out)
        elif self.native and not self._merge:
            # The native field is authoritative; the tagged copy is not added.
            if (place := (self._stripped, block)) != self._last_copy:
                self._last_copy = place
                self.copies += 1
        else:
            if self._tagged is None:
                self._units.end_loose(out)
                self._current = None
                self._numbered.clear()
                self._tagged = self._units.begin(_TAGGED, out)
            out.append(self._units.piece("delta", self._tagged.number, text, _TAGGED))

    def _end_tagged(self, out: list[Chunk], *, interrupted: bool = False) -> None:
        if self._tagged is not None:
            self._units.end(self._tagged, out, interrupted=interrupted)
            self._tagged = None

    def _drain(self, tag_filter: PlacedTagFilter, out: list[Chunk]) -> None:
        """End one text: what was held goes out, and the filter is as new for the next."""
        self._read(tag_filter, "", self._key, out)
        # An unclosed block is never visible and never lost.
        self._end_tagged(out, interrupted=tag_filter.interrupted)
        self._stripped += tag_filter.stripped
        self._extracted += tag_filter.extracted
        tag_filter.reset()

    def _show(
        self, text: str, key: int | None, metadata: Metadata | None, out: list[Chunk]
    ) -> None:
        if text or metadata:
            if not text and key is None and self._current is None and self._last is not None:
                place = self._last  # a note on text that has been said
            else:
                place = self._place(key, out)
            out.append(
                TextChunk(text=text, content_index=place, metadata=metadata, choice=self._choice)
            )

    def _place(self, key: int | None, out: list[Chunk]) -> int:
        """Return the block that visible text of this key goes to, begun here if need be."""
        self._units.end_loose(out)
        self._last = place = self._reserved(key)
        return place

    def _reserved(self, key: int | None) -> int:
        """Return the place of that block, of which nothing may ever be visible."""
        place = self._current if key is None else self._numbered.get(key)
        if place is None:
            place = self._units.number()
            if key is not None:
                self._numbered[key] = place
        self._current = place
        return place
