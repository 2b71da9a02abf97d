"""The text of one choice: what of it is visible, what was thought in it, where both stand.

Text goes on with the block before it, or with the one that the protocol numbers. What may
yet become a delimiter is held back, and when it turns out to be text, something else may
have begun since: then it stands where it arrived (``places``). What was thought in the text
is a unit like any other.

Once a native field spoke, what stands between delimiters is a copy, taken out and not added,
unless ``merge`` asks for it. That it is one is known when its block is closed, and it is
withheld until then: of a block that never is closed nobody knows where it should have ended
(an answer may speak of delimiters), and it is kept as what it looks like, an interrupted
thought, unless it repeats the native one.

Where the prompt opened the block, a native field that speaks first says that the server may
have told thought and answer apart, so that the text is the answer from its first character.
It is in doubt for as long as it repeats the native thought: if the block is closed then, it
was a copy; otherwise it is the answer, and read as such from where it began.

This module knows text and its delimiters. It must not know which native field counts, nor
what else a message is made of: that is ``channels``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reasoning_store.blocks import Metadata
from reasoning_store.chunks import Chunk, TextChunk
from reasoning_store.ingress.copies import Copies, Echo
from reasoning_store.ingress.places import PlacedTagFilter
from reasoning_store.ingress.tags import Run
from reasoning_store.ingress.units import Unit, Units

TAG_SOURCE = "think_tags"
"""``sourceField`` of a thought that was taken out of the text."""

_TAGGED: Mapping[str, Any] = {"sourceField": TAG_SOURCE}


@dataclass(slots=True)
class _Doubt:
    """The text since a native field spoke: the prompt's block, or the answer."""

    outside: PlacedTagFilter
    """As it was when the text began."""
    echo: Echo
    came: list[str] = field(default_factory=list)


class TextChannel:
    """The text of one choice, between an adapter and the accumulator."""

    __slots__ = (
        "_came",
        "_choice",
        "_current",
        "_doubt",
        "_extracted",
        "_filter",
        "_key",
        "_last",
        "_merge",
        "_numbered",
        "_places",
        "_stretch",
        "_stripped",
        "_tagged",
        "_units",
        "_withheld",
        "_withheld_at",
        "copies",
        "native",
        "natives",
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
        self.natives: list[Sequence[str]] = []
        """What the native fields have said so far, a block each."""
        self.copies = 0
        """How many thoughts were not added, for that."""
        self._withheld: list[str] = []
        self._withheld_at: int | None = None
        self._doubt: _Doubt | None = None
        self._stretch = 0
        self._came: int | None = None
        self._places: dict[int, int] = {}
        self._current: int | None = None
        self._last: int | None = None
        self._key: int | None = None
        self._numbered: dict[int, int] = {}
        self._tagged: Unit | None = None
        self._stripped = 0
        self._extracted = 0

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
                self._filter = self._drained(self._filter, out)
            self._key = key
        if chunk.metadata:
            if chunk.text:
                self._place(key, out)  # the note is on the text that comes with it
            self._show("", key, chunk.metadata, out)
        if chunk.text:
            self._came = self._stretch
            if self._doubt is not None:
                self._doubt.came.append(chunk.text)
            self._read(self._filter, chunk.text, key, out)

    def native_begins(self) -> None:
        """Note that a native field is about to speak, and may have spoken for the text."""
        if self._filter is not None and self._filter.leading and self._doubt is None:
            self._doubt = _Doubt(self._filter.fork(), Echo(self.natives))

    def pause(self, out: list[Chunk]) -> None:
        """Note that something comes which visible text does not go on behind."""
        if self._doubt is not None and self._doubt.came:
            self._answer(self._doubt, out)
        if self._withheld and self._withheld_at is None and self._tagged is None:
            self._withheld_at = self._units.number()
        waiting = self._filter
        if waiting is not None and (waiting.joining or self._may_show(waiting)):
            self._places[self._stretch] = self._reserved(self._key)
        self._stretch += 1
        self._current = None

    def end(self, out: list[Chunk]) -> None:
        """Give out what is held: nothing more comes."""
        if self._filter is not None:
            self._filter = self._drained(self._filter, out)

    @property
    def waits(self) -> bool:
        """Whether text has come since the last pause that the answer may yet show."""
        waiting = self._filter
        if waiting is None or not waiting.held or self._came != self._stretch:
            return False
        return not (waiting.inside or waiting.leading or self._doubt is not None)

    def _may_show(self, waiting: PlacedTagFilter) -> bool:
        """Whether something is held that may turn out to be visible text."""
        in_doubt = waiting.leading or self._doubt is not None
        return bool(waiting.held) and (in_doubt or not waiting.inside)

    def _answer(self, doubt: _Doubt, out: list[Chunk]) -> PlacedTagFilter:
        """Read what came as the answer: it does not go on as a copy of the thought would."""
        self._doubt = None
        self._withheld = []
        tag_filter = self._filter = doubt.outside
        for run in tag_filter.begin_outside():
            self._run(run, self._key, out)
        if doubt.came:
            self._read(tag_filter, "".join(doubt.came), self._key, out)
        return tag_filter

    def _is_there(self, out: list[Chunk]) -> None:
        """Note that the prompt's block is in the text: it is closed, or opened once more."""
        self._doubt = None
        if self._merge and self._withheld:
            self._think("".join(self._withheld), out)
            self._withheld = []

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
            if self._filter is not tag_filter:
                return  # read anew
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
        kind, text, _, phase = run
        if phase != "delta":
            if self._doubt is not None and phase != "start":
                self._is_there(out)
            if phase == "end":
                self._drop_withheld()
                self._end_tagged(out)
            return
        if kind == "visible":
            self._show(text, key, None, out)
        elif self._doubt is not None and not self._doubt.echo.goes_on(text):
            self._answer(self._doubt, out)
        elif self._doubt is not None or (self.native and not self._merge):
            self._withheld.append(text)
        else:
            self._think(text, out)

    def _think(self, text: str, out: list[Chunk], *, at: int | None = None) -> None:
        if self._tagged is None:
            self._units.end_loose(out)
            self._current = None
            self._numbered.clear()
            self._tagged = self._units.begin(_TAGGED, out, number=at)
        out.append(self._units.piece("delta", self._tagged.number, text, _TAGGED))

    def _drop_withheld(self) -> None:
        """Leave a copy out: the native field is authoritative."""
        if self._withheld:
            self.copies += 1
        self._withheld, self._withheld_at = [], None

    def _give_withheld(self, out: list[Chunk]) -> None:
        """Give out what was taken for a copy, and was never closed."""
        if self._withheld and self._withheld not in Copies(self.natives):
            self._think("".join(self._withheld), out, at=self._withheld_at)
            self._withheld = []
        self._drop_withheld()

    def _end_tagged(self, out: list[Chunk], *, interrupted: bool = False) -> None:
        if self._tagged is not None:
            self._units.end(self._tagged, out, interrupted=interrupted)
            self._tagged = None

    def _drained(self, tag_filter: PlacedTagFilter, out: list[Chunk]) -> PlacedTagFilter:
        """End one text: what was held goes out. Return the filter, as new for the next."""
        if self._doubt is not None:
            tag_filter = self._answer(self._doubt, out)
        self._read(tag_filter, "", self._key, out)
        # An unclosed block is never visible and never lost.
        self._give_withheld(out)
        self._end_tagged(out, interrupted=tag_filter.interrupted)
        self._stripped += tag_filter.stripped
        self._extracted += tag_filter.extracted
        is_first = tag_filter.leading
        tag_filter.reset()
        if not is_first:
            tag_filter.begin_outside()  # the prompt opens a block before the first text only
        return tag_filter

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
