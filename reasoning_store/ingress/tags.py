"""Takes thinking out of the text in which a model wrote it down between delimiters.

Theory. The filter is two lexers in a row, each with a bounded memory.

The first reads what arrives. Outside a block the next delimiter opens one, or is a stray
one and is removed; inside, only what closes a block counts, so blocks are flat: an open
inside a block is thought text, and any supported close ends it. What stands between is
given out at once, but for an end of the text that may still grow into a delimiter. That is
held, and a held piece is never longer than a delimiter (``markers`` says why this makes
every chunking of a text give the same result).

The second reads what the first gave out as visible, because a removal can bring two halves
of a delimiter together: ``<thi<think></think>nk>``. What is re-formed so is removed too and
does nothing else: it opens no block and closes none. This is done once: what that removal
re-forms in turn is text. The halves of such a delimiter end before a removal and go on
behind it, so this lexer holds something only where a piece of visible text ends at a
removal, or at a candidate for one, and could itself be the beginning of a delimiter.

A piece held by the second lexer while a block goes by and then found to be text is given
out where it was found, behind that block. Nothing is trimmed, nothing is put between.

Blocks are counted from 0 in order of opening. Visible text has a number too: that of the
block that comes, or would come, next. So visible 0 stands before thinking 0, and visible
text with the number n says that every block below n is closed.

This module reads assistant text, never what a user or a tool said. It knows nothing of
providers, chunks, native reasoning or settings: what becomes of a thought is the
normalizer's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from reasoning_store.errors import UsageError
from reasoning_store.ingress.markers import Scan, grammar, truth

Kind: TypeAlias = Literal["visible", "thinking"]
RunPhase: TypeAlias = Literal["delta", "start", "end", "removed"]
"""What a run tells: text of its channel, or a delimiter that opened, ended or did neither."""


class Run(NamedTuple):
    """A piece of one channel: text of the thinking block, or visible stretch, ``block``.

    ``phase`` is always ``delta``, unless the filter was asked for its events.
    """

    kind: Kind
    text: str
    block: int
    phase: RunPhase = "delta"


_new = tuple.__new__  # where runs are many: Run(...) alone costs as much as the rest of feed


class TagFilter:
    """Splits a stream of text into what is visible and what was thought.

    ``tags`` are the names to look for (none given: think, thinking, thought, reasoning,
    reflection), ``markers`` the literal families beside them. ``starts_inside`` is for
    templates that open the block in the prompt; an open that the model then writes all
    the same, before anything but whitespace, is removed.

    With ``events`` the runs also say where blocks begin and end, empty ones too, by runs
    whose phase is ``start``, ``end`` or ``removed`` and whose text is the delimiter as it
    stood ("" where the prompt opened the block). The texts of all runs are then the whole
    input; only those with phase ``delta`` belong to a channel.
    """

    __slots__ = (
        "_block",
        "_carry",
        "_events",
        "_extracted",
        "_finished",
        "_grammar",
        "_kind",
        "_leading",
        "_plain",
        "_seam",
        "_silent",
        "_starts_inside",
        "_stripped",
        "_trigger",
        "_untouched",
    )

    def __init__(
        self,
        tags: Iterable[str] | None = None,
        starts_inside: bool = False,
        *,
        markers: Iterable[str] = (),
        events: bool = False,
    ) -> None:
        self._grammar = grammar(tags, markers)
        self._trigger = self._grammar.trigger
        self._starts_inside = truth("starts_inside", starts_inside)
        self._events = events
        self.reset()

    def reset(self) -> None:
        """Forget the text, keep the options."""
        self._kind: Kind = "thinking" if self._starts_inside else "visible"
        self._block = 0
        self._carry = ""  # held by the first lexer, in the channel that is open
        self._seam = ""  # held by the second lexer, always visible text
        self._silent = True  # the open block has nothing but whitespace so far
        self._leading = self._starts_inside  # a redundant open may still come
        self._untouched = self._starts_inside  # nothing of the prompt's block has come
        self._stripped = 0
        self._extracted = 0
        self._finished = False
        self._settle()

    def feed(self, delta: str) -> list[Run]:
        """What can be said now about this piece of text and the ones before it."""
        try:
            if self._plain and self._trigger not in delta:
                return [_new(Run, (self._kind, delta, self._block, "delta"))] if delta else []
        except TypeError:
            raise _no_text(delta) from None
        return self._lex(delta)

    def finish(self) -> list[Run]:
        """The rest: what was held goes to the channel that it was in."""
        runs: list[Run] = []
        carry, self._carry = self._carry, ""
        if carry and self._kind == "thinking":  # unclosed is kept all the same
            self._think(carry, runs)
        elif carry:
            self._show(carry, runs, cut=False)
        if self._seam:
            runs.append(Run("visible", self._seam, self._block))
            self._seam = ""
        self._finished = True
        self._settle()
        return runs

    def begin_outside(self) -> list[Run]:
        """Take it that the prompt's block is over, if nothing was thought or opened in it yet.

        For a caller that learns elsewhere that the text begins with the answer.
        """
        runs: list[Run] = []
        if self._leading:
            if not self._untouched:  # white space has come, and is thought text
                self._mark("thinking", "", "end", runs)
                self._block += 1
            self._kind = "visible"
            self._leading = self._untouched = False
            self._settle()
        return runs

    @property
    def held(self) -> str:
        """What has arrived and is in no run yet."""
        return self._seam + self._carry

    @property
    def joining(self) -> bool:
        """Whether visible text is held that a removal may join to what comes."""
        return bool(self._seam)

    @property
    def inside(self) -> bool:
        """Whether the text goes on inside a block."""
        return self._kind == "thinking"

    @property
    def leading(self) -> bool:
        """The prompt opened a block, and nothing has come but white space."""
        return self._leading

    @property
    def bound(self) -> int:
        """The most characters that ``held`` ever has: two delimiters that lack their last."""
        return 2 * self._grammar.reach

    @property
    def stripped(self) -> int:
        """How many delimiters were removed, those that a removal re-formed included."""
        return self._stripped

    @property
    def extracted(self) -> int:
        """How many blocks have something other than whitespace in them."""
        return self._extracted

    @property
    def interrupted(self) -> bool:
        """A block is open: after ``finish``, the last one was never closed.

        A block that only the prompt opened, and of which nothing has come, is not.
        """
        return self._kind == "thinking" and not self._untouched

    def _lex(self, delta: str) -> list[Run]:
        """The first lexer. Each turn of the loop takes one delimiter out of the text."""
        if self._finished:
            raise UsageError("the filter is finished", hint="reset() begins a new text")
        if not isinstance(delta, str):
            raise _no_text(delta)
        if self._plain and not self._trigger and not self._grammar.triggers.search(delta):
            return [Run(self._kind, delta, self._block)] if delta else []
        runs: list[Run] = []
        text = self._carry + delta
        start = 0
        if self._leading:
            start = self._lead(text, runs)
            if self._leading:
                self._carry = text[start:]
                return runs
        while True:
            thinking = self._kind == "thinking"
            scan = self._grammar.inside if thinking else self._grammar.outside
            stop, found = self._next(scan, text, start)
            if stop > start and thinking:
                self._think(text[start:stop], runs)
            elif stop > start:
                self._show(text[start:stop], runs, cut=stop < len(text))
            if found is None:
                break
            self._turn(found.group(), runs)
            start = found.end()
        self._carry = text[stop:]
        self._settle()
        return runs

    def _lead(self, text: str, runs: list[Run]) -> int:
        """The beginning of a block that the prompt opened; returns where to go on.

        Whitespace is thought text and decides nothing, a redundant open is removed, and
        anything else ends the beginning.
        """
        if self._untouched and text:
            self._untouched = False
            self._mark("thinking", "", "start", runs)
        start = len(text) - len(text.lstrip())
        if start:
            self._think(text[:start], runs)
        opening = self._grammar.opening
        if found := opening.find.match(text, start):
            self._stripped += 1
            self._mark("thinking", found.group(), "removed", runs)
            start = found.end()
        elif start == len(text) or opening.might.match(text, start):
            return start
        self._leading = False
        return start

    def _next(self, scan: Scan, text: str, start: int) -> tuple[int, re.Match[str] | None]:
        """Where plain text ends, and the delimiter there, or None: hold what is left."""
        found = scan.find.search(text, start)
        stop = found.start() if found else len(text)
        edge = len(text) - self._grammar.reach
        if stop > edge:
            begun = scan.might.search(text, max(start, edge))
            if begun is not None and begun.start() < stop:
                return begun.start(), None
        return stop, found

    def _turn(self, token: str, runs: list[Run]) -> None:
        """A delimiter of the first lexer: it closes, opens, or is only removed."""
        self._stripped += 1
        if self._kind == "thinking":
            self._mark("thinking", token, "end", runs)
            self._kind = "visible"
            self._block += 1
        elif self._grammar.opening.find.fullmatch(token):
            self._kind = "thinking"
            self._silent = True
            self._mark("thinking", token, "start", runs)
        else:  # a stray close is removed and nothing else is touched
            self._mark("visible", token, "removed", runs)

    def _think(self, text: str, runs: list[Run]) -> None:
        if self._silent and not text.isspace():
            self._silent = False
            self._extracted += 1
        runs.append(_new(Run, ("thinking", text, self._block, "delta")))

    def _show(self, text: str, runs: list[Run], *, cut: bool) -> None:
        """Visible text of the first lexer; ``cut`` says that a delimiter may follow it.

        The first lexer left no delimiter whole, so only the end before a cut can be the
        beginning of one.
        """
        if self._seam:
            self._join(text, runs)
            return
        if cut:
            edge = max(0, len(text) - self._grammar.reach)
            begun = self._grammar.outside.might.search(text, edge)
            if begun is not None:
                self._seam = text[begun.start() :]
                text = text[: begun.start()]
        if text:
            runs.append(_new(Run, ("visible", text, self._block, "delta")))

    def _join(self, text: str, runs: list[Run]) -> None:
        """The second lexer: what it holds, and the visible text behind the removal."""
        text = self._seam + text
        start = 0
        while True:
            stop, found = self._next(self._grammar.outside, text, start)
            if stop > start:
                runs.append(Run("visible", text[start:stop], self._block))
            if found is None:
                break
            self._stripped += 1
            self._mark("visible", found.group(), "removed", runs)
            start = found.end()
        self._seam = text[stop:]

    def _mark(self, kind: Kind, token: str, phase: RunPhase, runs: list[Run]) -> None:
        if self._events:
            runs.append(Run(kind, token, self._block, phase))

    def _settle(self) -> None:
        """Whether a piece of text without the trigger can go straight through."""
        self._plain = not (
            self._carry
            or self._seam
            or self._leading
            or (self._silent and self._kind == "thinking")
            or self._finished
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A whole text taken apart."""

    visible: str
    thoughts: tuple[str, ...]
    """The blocks that have something other than whitespace in them, in order."""
    interrupted: bool
    """The last block was never closed."""


def _no_text(delta: object) -> UsageError:
    return UsageError(
        f"a text, not {type(delta).__name__}",
        hint='SDKs say None where there is none: content or ""',
    )


def split_reasoning(
    text: str,
    *,
    tags: Iterable[str] | None = None,
    starts_inside: bool = False,
    markers: Iterable[str] = (),
) -> Split:
    """What is visible in an answer, and what was thought, as ``TagFilter`` tells them apart."""
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
