"""The text of one choice, split into visible text and thoughts.

Theory. Three stages, each with a bounded memory but for the last:

1. The tag filter (``tags``) takes delimiters out and trims nothing.
2. Line ends directly around a delimiter belong to it: those after one that opens or closes a
   block, those before one that closes it, and those before the first visible character where a
   delimiter comes first. An answer keeps the line ends before a block, so that its lines stay
   apart. At most ``LONGEST_RUN`` line ends are held; a longer run is text.
3. A thought that may be a copy of a native one, or an answer after a stray delimiter, is
   held back until its block is closed.

If another block of the message begins, the text that the first two stages hold is text
(``release``), so nothing is moved past a block and every chunking gives the same result.

Once a native field had a thought, a block that opens after it is a copy and is left out, unless
``merge`` asks for it. A block that is never closed has no known end (an answer may write about
delimiters): it is an interrupted thought, unless it repeats a native one. A model that writes
an open delimiter that means nothing (``stray_opens``) has answered if it ends its turn in that
block. A native thought also means that the server took the prompt's block out of the text, so
the text begins outside.
"""

from __future__ import annotations

from collections.abc import Iterable

from reasoning_store.ingress.duplicates import Pieces, find_copies
from reasoning_store.ingress.markers import LONGEST_RUN
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.tags import Kind, Run, TagFilter

TAG_SOURCE = "think_tags"
"""``sourceField`` of a thought that was taken out of the text."""

_LINE_ENDS = "\r\n"


class TextChannel:
    """Splits text into runs: visible text, pieces of a thought, and the end of a thought.

    The filter gives its events (``events=True``); None leaves the text as it is.
    """

    __slots__ = (
        "_after_delimiter",
        "_counters",
        "_filter",
        "_has_native",
        "_is_blank",
        "_is_copy",
        "_line_ends",
        "_merge",
        "_shown",
        "_stray_opens",
        "held_back",
    )

    def __init__(
        self,
        tag_filter: TagFilter | None,
        counters: Counters,
        *,
        merge: bool = False,
        stray_opens: bool = False,
    ) -> None:
        self._filter = tag_filter
        self._counters = counters
        self._merge = merge
        self._stray_opens = stray_opens
        self._has_native = False
        self.held_back: list[str] = []
        """The pieces of a thought that waits for the end of its block."""
        self._is_copy = False  # the open block began after a native thought
        self._is_blank = True  # the open block has nothing but white space
        self._begin_text()

    def _begin_text(self) -> None:
        self._shown = False  # something visible has come
        self._after_delimiter = False
        self._line_ends = ""  # held for the next delimiter, in the channel that is open

    @property
    def is_open(self) -> bool:
        """Whether text is held, or a block is open."""
        waiting = self._filter
        return waiting is not None and bool(self._line_ends or waiting.held or waiting.interrupted)

    @property
    def holds_visible(self) -> bool:
        """Whether text is held that is visible if no delimiter comes of it."""
        waiting = self._filter
        return waiting is not None and not waiting.inside and bool(self._line_ends or waiting.held)

    def feed(self, text: str) -> list[Run]:
        """Return what this piece of text, and what was held before it, come to."""
        if self._filter is None:
            return [Run("visible", text, 0)]
        return self._read(self._filter.feed(text))

    def note_native(self) -> list[Run]:
        """Note that a native field has a thought: the server separates thought and answer."""
        self._has_native = True
        return [] if self._filter is None else self._read(self._filter.begin_outside())

    def release(self) -> list[Run]:
        """Return the held text as text of its channel: another block begins."""
        if self._filter is None:
            return []
        out = self._read(self._filter.release())
        self._add_line_ends(self._filter, out)
        return out

    def finish(self, native: Iterable[Pieces], *, turn_ended: bool = False) -> list[Run]:
        """Return the rest of one text; the next piece begins another, outside of any block."""
        if self._filter is None:
            return []
        out = self._read(self._filter.finish())
        self._add_line_ends(self._filter, out)
        if self.held_back:
            (repeats,) = find_copies([self.held_back], native)
            if repeats:
                self._leave_out()
            elif self._stray_opens and turn_ended:
                self._counters.extracted_blocks -= not self._is_blank
                self._give_held_back("visible", out)
            else:
                self._give_held_back("thinking", out)
        is_first = self._filter.leading
        self._filter.reset()
        if not is_first:
            self._filter.begin_outside()  # the prompt opens a block before the first text only
        self._begin_text()
        return out

    def _read(self, runs: list[Run]) -> list[Run]:
        if len(runs) == 1 and self._shown and not self._after_delimiter:
            (run,) = runs
            if run.kind == "visible" and run.phase == "delta":
                return runs
        out: list[Run] = []
        for run in runs:
            if run.phase != "delta":
                self._read_delimiter(run, out)
            elif text := self._after_line_ends(run.text):
                if run.kind == "visible":
                    self._read_visible(text, out)
                else:
                    self._read_thought(text, out)
        return out

    def _read_delimiter(self, run: Run, out: list[Run]) -> None:
        self._after_delimiter = run.phase != "removed" or not self._shown
        self._line_ends = ""
        self._counters.stripped_delimiters += bool(run.text)
        if run.phase == "start":
            self._is_copy = self._has_native and not self._merge
            self._is_blank = True
        elif run.phase == "end":
            if self.held_back and self._is_copy:
                self._leave_out()
            elif self.held_back:
                self._give_held_back("thinking", out)
            out.append(run)

    def _after_line_ends(self, text: str) -> str:
        if self._after_delimiter:
            text = text.lstrip(_LINE_ENDS)
            self._after_delimiter = not text
        return text

    def _read_visible(self, text: str, out: list[Run]) -> None:
        if not self._shown:
            text, self._line_ends = self._line_ends + text, ""
            if not text.strip(_LINE_ENDS) and len(text) <= LONGEST_RUN:
                self._line_ends = text
                return
            self._shown = True
        out.append(Run("visible", text, 0))

    def _read_thought(self, text: str, out: list[Run]) -> None:
        text = self._line_ends + text
        self._line_ends = text[len(text.rstrip(_LINE_ENDS)) :][-LONGEST_RUN:]
        self._add_thought(text.removesuffix(self._line_ends), out)

    def _add_thought(self, text: str, out: list[Run]) -> None:
        if self._is_blank and text and not text.isspace():
            self._is_blank = False
            self._counters.extracted_blocks += 1
        if text and (self._is_copy or self._stray_opens):
            self.held_back.append(text)
        elif text:
            out.append(Run("thinking", text, 0))

    def _add_line_ends(self, tag_filter: TagFilter, out: list[Run]) -> None:
        ends, self._line_ends = self._line_ends, ""
        if tag_filter.inside:
            self._add_thought(ends, out)
        elif ends:
            self._shown = True
            out.append(Run("visible", ends, 0))

    def _leave_out(self) -> None:
        self._counters.suppressed_duplicates += 1
        self.held_back.clear()

    def _give_held_back(self, kind: Kind, out: list[Run]) -> None:
        out.append(Run(kind, "".join(self.held_back), 0))
        self.held_back.clear()
