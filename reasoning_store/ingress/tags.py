"""Takes thinking out of text in which a model wrote it between delimiters.

Theory. The filter is two lexers in a row, each with a bounded memory.

The first reads the text as it arrives. Outside a block the next delimiter opens one, or is a
stray one and is removed; inside, only a delimiter that closes a block counts, so blocks are flat:
an open inside a block is thought text, and any supported close ends it. The text between is given
out at once, except for an end that may still grow into a delimiter. That is held, and a held
piece is never longer than a delimiter (``markers`` explains why this makes every chunking of a
text give the same result).

The second reads the visible text of the first, because a removal can bring two halves of a
delimiter together: ``<thi<think></think>nk>``. A delimiter that is re-formed so is removed too
and does nothing else: it opens no block and closes none. This is done once: a delimiter that
this removal re-forms in turn is text. The halves of such a delimiter are on either side of a
removal, so this lexer holds something only where a piece of visible text ends at a removal, or at
a candidate for one, and could itself be the beginning of a delimiter.

A piece held by the second lexer while a block goes by and then found to be text is given out
after that block. Nothing is trimmed, nothing is put between.

Blocks are counted from 0 in order of opening. Visible text has a number too: that of the block
that comes, or would come, next. So visible 0 is before thinking 0, and visible text with the
number n means that every block below n is closed.

This is for assistant text, never for a user's or a tool's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_truth
from reasoning_store.ingress.code_marks import CodeMarks
from reasoning_store.ingress.markers import NO_DELIMITERS, Scan, compile_grammar

Kind: TypeAlias = Literal["visible", "thinking"]
RunPhase: TypeAlias = Literal["delta", "start", "end", "removed"]
"""A run is text of its channel, or a delimiter that opened, ended or did neither."""


class Run(NamedTuple):
    """A piece of one channel: text of the thinking block, or visible stretch, ``block``.

    ``phase`` is always ``delta``, unless the filter was asked for its events.
    """

    kind: Kind
    text: str
    block: int
    phase: RunPhase = "delta"


_new = tuple.__new__  # where runs are many: Run(...) costs as much as the rest of feed


class TagFilter:
    """Splits a stream of text into visible text and thoughts.

    ``tags`` are the names to look for (none given: think, thinking, thought, reasoning,
    reflection), ``markers`` further literal families. ``starts_inside`` is for templates that
    open the block in the prompt; a redundant open of the model, before anything but white space, is
    then removed.

    With ``events`` there are also runs for the delimiters, with the phase ``start``, ``end`` or
    ``removed`` and the delimiter as it was written ("" where the prompt opened the block).
    The texts of all runs are then the whole input; only those with phase ``delta`` belong to
    a channel.

    With ``code_is_text`` delimiters in visible code are text; with ``leading_only`` all are but
    those of a block that begins the text.
    """

    def __init__(
        self,
        tags: Iterable[str] | None = None,
        starts_inside: bool = False,
        *,
        markers: Iterable[str] = (),
        events: bool = False,
        code_is_text: bool = False,
        leading_only: bool = False,
    ) -> None:
        self._grammar = compile_grammar(tags, markers)
        self._outside = (NO_DELIMITERS if leading_only else self._grammar).outside
        self._code = CodeMarks() if code_is_text else None
        self._leading_only = leading_only
        self._starts_inside = check_truth("starts_inside", starts_inside)
        self._events = events
        self.reset()

    def reset(self) -> None:
        """Forget the text, keep the options."""
        if self._code is not None:
            self._code.reset()
        self._needs_label = False  # a delimiter has come that a label may follow
        self._kind: Kind = "thinking" if self._starts_inside else "visible"
        self._block = 0
        self._carry = ""  # held by the first lexer, in the channel that is open
        self._rejoinable = ""  # held by the second lexer, always visible text
        self._is_leading = self._starts_inside or self._leading_only  # only white space has come
        self._is_untouched = self._starts_inside  # nothing of the prompt's block has come
        self._finished = False
        self._update_plain()

    def feed(self, delta: str) -> list[Run]:
        """Return the runs that are certain after this piece of text."""
        try:
            if self._is_plain and self._grammar.trigger not in delta:
                if self._code is not None and self._kind == "visible":
                    self._code.read(delta)
                return [_new(Run, (self._kind, delta, self._block, "delta"))] if delta else []
        except TypeError:
            raise _not_a_text(delta) from None
        return self._read(delta)

    def release(self) -> list[Run]:
        """Return the held text as text of its channel: it is no delimiter."""
        runs = self._read("", is_last=True) if self._carry else []
        carry, self._carry = self._carry, ""
        self._needs_label = False
        if carry:  # an unclosed one is kept all the same
            self._add_text(carry, runs)
        if self._rejoinable:
            runs.append(Run("visible", self._rejoinable, self._block))
            self._rejoinable = ""
        self._is_leading = self._is_leading and not carry
        if self._code is not None:
            self._code.reset()  # no code reaches beyond its text
        self._update_plain()
        return runs

    def finish(self) -> list[Run]:
        """Return the rest: the held text is given to the channel that it was in."""
        runs = self.release()
        self._finished = True
        self._update_plain()
        return runs

    def begin_outside(self) -> list[Run]:
        """End the prompt's block if only white space has come in it.

        For a caller that knows from elsewhere that the text begins with the answer.
        """
        runs: list[Run] = []
        if self._is_leading and self._kind == "thinking":
            if not self._is_untouched:  # white space has come, and is thought text
                self._add_event("thinking", "", "end", runs)
                self._block += 1
            self._begin_visible(is_leading=self._leading_only)
        return runs

    def begin_next(self) -> None:
        """Begin another text of one message: it is the first only if that has not begun."""
        is_first = self._is_leading
        self.reset()
        if not is_first:
            self._begin_visible(is_leading=False)

    def _begin_visible(self, *, is_leading: bool) -> None:
        self._kind, self._is_untouched, self._is_leading = "visible", False, is_leading
        self._update_plain()

    @property
    def held(self) -> str:
        """The text that has arrived and is in no run yet."""
        return self._rejoinable + self._carry

    @property
    def inside(self) -> bool:
        """Whether the text continues inside a block."""
        return self._kind == "thinking"

    @property
    def interrupted(self) -> bool:
        """A block is open: after ``finish``, the last one was never closed.

        A block that only the prompt opened, and of which nothing has come, is not.
        """
        return self._kind == "thinking" and not self._is_untouched

    def _read(self, delta: str, *, is_last: bool = False) -> list[Run]:
        """Run the first lexer. Each turn of the loop takes one delimiter out of the text."""
        if self._finished:
            raise InvalidCall("the filter is finished", hint="reset() begins a new text")
        if not isinstance(delta, str):
            raise _not_a_text(delta)
        grammar = self._grammar
        if self._is_plain and not grammar.trigger and not grammar.triggers.search(delta):
            if self._code is not None and self._kind == "visible":
                self._code.read(delta)
            return [Run(self._kind, delta, self._block)] if delta else []
        runs: list[Run] = []
        text = self._carry + delta
        start = 0
        if self._is_leading:
            start = self._read_beginning(text, runs)
            if self._is_leading:
                self._carry = text[start:]
                return runs
        while True:
            if self._needs_label:
                start = stop = self._read_label(text, start, runs)
                if self._needs_label:
                    break
            thinking = self._kind == "thinking"
            scan = grammar.inside if thinking else self._outside
            stop, delimiter = self._find_delimiter(scan, text, start)
            if stop > start:
                self._add_text(text[start:stop], runs, cut=stop < len(text))
            if delimiter is None:
                break
            start = delimiter.end()
            if self._code is not None and not thinking:
                is_code = self._code.covers(text, stop, is_last=is_last)
                if is_code is None:
                    break
                if is_code:
                    self._add_quoted(delimiter.group(), runs)
                    continue
            self._take_delimiter(delimiter.group(), runs)
        self._carry = text[stop:]
        self._update_plain()
        return runs

    def _read_beginning(self, text: str, runs: list[Run]) -> int:
        """Read the beginning of a text, or of the prompt's block; return where to go on.

        White space decides nothing, an open begins the block or is redundant, and anything else
        ends the beginning.
        """
        if self._is_untouched and text:
            self._is_untouched = False
            self._add_event("thinking", "", "start", runs)
        start = len(text) - len(text.lstrip())
        if start:
            self._add_text(text[:start], runs)
        opening = self._grammar.opening
        if found := opening.find.match(text, start):
            if self._kind == "thinking":
                self._add_event("thinking", found.group(), "removed", runs)
            else:
                self._take_delimiter(found.group(), runs)
            start = found.end()
        elif start == len(text) or opening.might.match(text, start):
            return start
        self._is_leading = False
        return start

    def _read_label(self, text: str, start: int, runs: list[Run]) -> int:
        """Read the label that may follow a delimiter; return where to go on."""
        grammar = self._grammar
        scans = [grammar.opening] if self._kind == "thinking" else []  # a second open means nothing
        scans += [grammar.label] if grammar.label is not None else []
        while found := next((m for scan in scans if (m := scan.find.match(text, start))), None):
            self._add_event(self._kind, found.group(), "removed", runs)
            start = found.end()
        held = start == len(text) or any(scan.might.match(text, start) for scan in scans)
        self._needs_label = grammar.label is not None and held
        return start

    def _find_delimiter(
        self, scan: Scan, text: str, start: int
    ) -> tuple[int, re.Match[str] | None]:
        """Return where plain text ends, and the delimiter there; with None the rest is held."""
        found = scan.find.search(text, start)
        stop = found.start() if found else len(text)
        edge = len(text) - self._grammar.reach
        if stop > edge:
            begun = scan.might.search(text, max(start, edge))
            if begun is not None and begun.start() < stop:
                return begun.start(), None
        return stop, found

    def _take_delimiter(self, token: str, runs: list[Run]) -> None:
        """Take out a delimiter of the first lexer: it closes, opens, or is only removed."""
        if self._kind == "thinking":
            self._add_event("thinking", token, "end", runs)
            self._kind = "visible"
            self._block += 1
        elif self._grammar.opening.find.fullmatch(token):
            self._kind = "thinking"
            self._add_event("thinking", token, "start", runs)
        else:  # a stray close is removed and nothing else is touched
            self._add_event("visible", token, "removed", runs)
        self._needs_label = self._grammar.label is not None

    def _add_text(self, text: str, runs: list[Run], *, cut: bool = False) -> None:
        """Add text of the first lexer; ``cut``: a delimiter may follow it.

        The first lexer left no delimiter whole, so only the end before a cut can be the
        beginning of one.
        """
        if self._kind == "thinking":
            runs.append(_new(Run, ("thinking", text, self._block, "delta")))
            return
        if self._code is not None:
            self._code.read(text)
        if self._rejoinable:
            self._rejoin(text, runs)
            return
        if cut:
            edge = max(0, len(text) - self._grammar.reach)
            begun = self._outside.might.search(text, edge)
            if begun is not None:
                self._rejoinable = text[begun.start() :]
                text = text[: begun.start()]
        if text:
            runs.append(_new(Run, ("visible", text, self._block, "delta")))

    def _add_quoted(self, token: str, runs: list[Run]) -> None:
        """Add a delimiter that is text, because it is in code."""
        if self._code is not None:
            self._code.read(token)
        text, self._rejoinable = self._rejoinable + token, ""
        runs.append(Run("visible", text, self._block))

    def _rejoin(self, text: str, runs: list[Run]) -> None:
        """Run the second lexer over its held text and the visible text after the removal."""
        text = self._rejoinable + text
        start = 0
        while True:
            stop, delimiter = self._find_delimiter(self._outside, text, start)
            if stop > start:
                runs.append(Run("visible", text[start:stop], self._block))
            if delimiter is None:
                break
            self._add_event("visible", delimiter.group(), "removed", runs)
            start = delimiter.end()
        self._rejoinable = text[stop:]

    def _add_event(self, kind: Kind, token: str, phase: RunPhase, runs: list[Run]) -> None:
        if self._events:
            runs.append(Run(kind, token, self._block, phase))

    def _update_plain(self) -> None:
        """Note whether a piece of text without the trigger passes as it is."""
        self._is_plain = not (
            self._carry
            or self._rejoinable
            or self._is_leading
            or self._needs_label
            or self._finished
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A whole text taken apart."""

    visible: str
    thoughts: tuple[str, ...]
    """The blocks that have something other than white space in them, in order."""
    interrupted: bool
    """The last block was never closed."""


def _not_a_text(delta: object) -> InvalidCall:
    return InvalidCall(
        f"a text, not {type(delta).__name__}",
        hint='SDKs give None where there is no text: content or ""',
    )


def split_reasoning(
    text: str,
    *,
    tags: Iterable[str] | None = None,
    starts_inside: bool = False,
    markers: Iterable[str] = (),
) -> Split:
    """Return the visible text of an answer and its thoughts, as ``TagFilter`` separates them."""
    tag_filter = TagFilter(tags, starts_inside, markers=markers)
    visible: list[str] = []
    thoughts: dict[int, list[str]] = {}
    for run in tag_filter.feed(text) + tag_filter.finish():
        if run.kind == "visible":
            visible.append(run.text)
        else:
            thoughts.setdefault(run.block, []).append(run.text)
    bodies = ("".join(pieces) for pieces in thoughts.values())
    return Split(
        visible="".join(visible),
        thoughts=tuple(body for body in bodies if body and not body.isspace()),
        interrupted=tag_filter.interrupted,
    )
