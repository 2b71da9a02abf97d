"""The text of one choice, split into visible text and thoughts.

Theory. Three stages, each with a bounded memory but for the last:

1. The tag filter (``tags``) takes delimiters out and trims nothing.
2. Line ends directly around a delimiter belong to it: those after one that opens or closes a
   block, those before one that closes it, and those before the first visible character where a
   delimiter comes first. An answer keeps the line ends before a block, so that its lines stay
   apart. At most ``LONGEST_RUN`` line ends are held; a longer run is text.
3. A thought that may be a copy of a native one, or an answer after a stray delimiter, is
   held back until its block is closed.

A delimiter is passed on with the line ends that belong to it, so that the block can keep both; one
of no block, or of an empty one inside the text, is noted with its place (``removed``).

If another block of the message begins, the text that the first two stages hold is text
(``release``), so nothing is moved past a block and every chunking gives the same result.

Once a native field had a thought, a block that opens after it is a copy and is left out, unless
``merge`` asks for it. A block that is never closed has no known end (an answer may write about
delimiters): it is an interrupted thought, unless it repeats a native one. A model that writes
an open delimiter that means nothing (``stray_opens``) has answered if it ends its turn in that
block. A native thought also means that the server took the prompt's block out of the text, so
the text begins outside.

A server without a parser may send an answer whose template opened the thought in the prompt. In a
whole text (``may_lack_open``) what is before a first ``</think>`` is then a thought, if a
line end and text follow; a stream has shown it before the close comes, and moves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reasoning_store.ingress.duplicates import Pieces, find_copies
from reasoning_store.ingress.markers import LONGEST_RUN
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.tags import Kind, Run, TagFilter

TAG_SOURCE = "think_tags"
"""``sourceField`` of a thought that was taken out of the text."""

_LINE_ENDS = "\r\n"
_CLOSE: Final = re.compile(r"<\s*/\s*think\s*>", re.IGNORECASE)
_ANSWER: Final = re.compile(r"[ \t]*[\r\n]\s*\S")
_MOST_REMOVED: Final = 64
"""The delimiters of no block whose place is noted."""


class TextChannel:
    """Splits text into runs: visible text, pieces of a thought, its start and its end.

    The filter gives its events (``events=True``); None leaves the text as it is.
    """

    def __init__(
        self,
        tag_filter: TagFilter | None,
        counters: Counters,
        *,
        merge: bool = False,
        stray_opens: bool = False,
        may_lack_open: bool = False,
    ) -> None:
        self._filter = tag_filter
        self.counters = counters
        self._merge = merge
        self._stray_opens = stray_opens
        self._may_lack_open = may_lack_open
        self._has_native = False
        self.held_back: list[str] = []
        """The pieces of a thought that waits for the end of its block."""
        self._is_copy = False  # the open block began after a native thought
        self._is_blank = True  # the open block has nothing but white space
        self._opened_by = ""  # while the open block is empty
        self._pending: Run | None = None  # a delimiter, of which line ends may follow
        self._length = 0  # of the visible text so far
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
        runs = self._filter.feed(text)
        if self._may_lack_open and not self._has_native:
            runs = _begin_unopened(runs, self._filter.held)
        self._may_lack_open = False
        return self._read(runs)

    def note_native(self) -> list[Run]:
        """Note that a native field has a thought: the server separates thought and answer."""
        self._has_native = True
        return [] if self._filter is None else self._read(self._filter.begin_outside())

    def release(self) -> list[Run]:
        """Return the held text as text of its channel: another block begins."""
        if self._filter is None:
            return []
        out = self._read(self._filter.release())
        self._pass_delimiter(out)
        self._add_line_ends(self._filter, out)
        return out

    def finish(self, native: Iterable[Pieces], *, turn_ended: bool = False) -> list[Run]:
        """Return the rest of one text; the next piece begins another, outside of any block."""
        if self._filter is None:
            return []
        out = self._read(self._filter.finish())
        self._pass_delimiter(out)
        self._add_line_ends(self._filter, out)
        self._note_removed(self._opened_by)
        self._opened_by = ""
        if self.held_back:
            (repeats,) = find_copies([self.held_back], native)
            if repeats:
                self._leave_out()
            elif self._stray_opens and turn_ended:
                self.counters.extracted_blocks -= not self._is_blank
                self._give_held_back("visible", out)
            else:
                self._give_held_back("thinking", out)
        self._filter.begin_next()  # the prompt opens a block before the first text only
        self._begin_text()
        return out

    def _read(self, runs: list[Run]) -> list[Run]:
        if len(runs) == 1 and self._shown and not self._after_delimiter:
            (run,) = runs
            if run.kind == "visible" and run.phase == "delta":
                self._length += len(run.text)
                return runs
        out: list[Run] = []
        for run in runs:
            if run.phase != "delta":
                self._read_delimiter(run, out)
            elif text := self._after_line_ends(run.text):
                self._pass_delimiter(out)
                if run.kind == "visible":
                    self._read_visible(text, out)
                else:
                    self._read_thought(text, out)
        return out

    def _read_delimiter(self, run: Run, out: list[Run]) -> None:
        self._after_delimiter = run.phase != "removed" or not self._shown
        text, self._line_ends = self._line_ends + run.text, ""
        self.counters.stripped_delimiters += bool(run.text)
        if run.phase == "removed" and self._pending is not None:
            self._pending = self._pending._replace(text=self._pending.text + text)
            return
        self._pass_delimiter(out)
        self._pending = run._replace(text=text)
        if run.phase == "start":
            self._is_copy = self._has_native and not self._merge
            self._is_blank = True
        elif run.phase == "end":
            if self.held_back and self._is_copy:
                self._leave_out()
            elif self.held_back:
                self._give_held_back("thinking", out)
        if not self._after_delimiter:
            self._pass_delimiter(out)

    def _pass_delimiter(self, out: list[Run]) -> None:
        """Pass on the last delimiter: no further line end belongs to it."""
        run, self._pending = self._pending, None
        if run is None:
            return
        if run.phase == "removed":
            self._note_removed(run.text)
            return
        out.append(run)
        opened_by, self._opened_by = self._opened_by, run.text if run.phase == "start" else ""
        if run.phase == "end" and opened_by and self._length:
            self._note_removed(opened_by + run.text)

    def _note_removed(self, text: str) -> None:
        if text and len(self.counters.removed) < _MOST_REMOVED:
            self.counters.removed.append({"at": self._length, "text": text})

    def _after_line_ends(self, text: str) -> str:
        if self._after_delimiter:
            rest = text.lstrip(_LINE_ENDS)
            if self._pending is not None:
                before = self._pending.text
                room = LONGEST_RUN - len(before) + len(before.rstrip(_LINE_ENDS))
                ends = text[: len(text) - len(rest)][: max(room, 0)]
                self._pending = self._pending._replace(text=before + ends)
            text, self._after_delimiter = rest, not rest
        return text

    def _read_visible(self, text: str, out: list[Run]) -> None:
        if not self._shown:
            text, self._line_ends = self._line_ends + text, ""
            if not text.strip(_LINE_ENDS) and len(text) <= LONGEST_RUN:
                self._line_ends = text
                return
            self._shown = True
        self._show(text, out)

    def _show(self, text: str, out: list[Run]) -> None:
        self._length += len(text)
        out.append(Run("visible", text, 0))

    def _read_thought(self, text: str, out: list[Run]) -> None:
        text = self._line_ends + text
        self._line_ends = text[len(text.rstrip(_LINE_ENDS)) :][-LONGEST_RUN:]
        self._add_thought(text.removesuffix(self._line_ends), out)

    def _add_thought(self, text: str, out: list[Run]) -> None:
        if self._is_blank and text and not text.isspace():
            self._is_blank = False
            self.counters.extracted_blocks += 1
        self._opened_by = "" if text else self._opened_by
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
            self._show(ends, out)

    def _leave_out(self) -> None:
        self.counters.suppressed_duplicates += 1
        self.held_back.clear()

    def _give_held_back(self, kind: Kind, out: list[Run]) -> None:
        out.append(Run(kind, "".join(self.held_back), 0))
        self.held_back.clear()


def _begin_unopened(runs: list[Run], held: str) -> list[Run]:
    """Return the runs of a whole text; a thought that only the prompt opened is one of them."""
    at = next((number for number, run in enumerate(runs) if run.phase != "delta"), None)
    if at is None or runs[at].phase != "removed" or not _CLOSE.fullmatch(runs[at].text):
        return runs
    begun, close, rest = runs[:at], runs[at], runs[at + 1 :]
    if not _ANSWER.match("".join(run.text for run in rest) + held):
        return runs
    thought = [run._replace(kind="thinking") for run in begun]
    end = close._replace(kind="thinking", phase="end")
    return [Run("thinking", "", 0, "start"), *thought, end, *rest]


def has_delimiter(text: str) -> bool:
    """Whether a text holds a delimiter that it does not quote in code."""
    tag_filter = TagFilter(events=True, code_is_text=True)
    return any(run.phase != "delta" for run in tag_filter.feed(text) + tag_filter.finish())
