"""What the other choices would send: every include with every strip, side by side.

Theory. Whatever is chosen, the fate of a thought depends on what hinders it and on the place
of its message (``select.decide``), and there are few of both. So a view is gone through once,
for what its thinking weighs by hindrance and place, and each choice is read off that: by
the same rules and with the same floor as a selection, so a row says what the request would
count and where it would first differ. Messages themselves are looked at again only where
there may be something to warn of. A row is legal where nothing is missing that the provider
enforces by its contract.

It knows selections and counts. It must not know a protocol's shapes or SQL.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, TypeAlias, get_args

from reasoning_store.blocks import Exactness
from reasoning_store.egress.concerns import is_mended
from reasoning_store.egress.course import Course
from reasoning_store.egress.given import digest, fixed
from reasoning_store.egress.policy import Place
from reasoning_store.egress.select import Selecting
from reasoning_store.egress.stretch import Stretch
from reasoning_store.egress.tokens import TokenCount, with_fixed
from reasoning_store.egress.verdicts import Rule, Target, Viewed, Warning
from reasoning_store.rope import Rope, rope
from reasoning_store.settings import Policy, Strip
from reasoning_store.tokenizers import Counter
from reasoning_store.wire.contracts import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What one choice of include and strip would send."""

    include_in_context: bool
    strip_from_context: Strip
    tokens: TokenCount
    legal: bool
    """Whether the provider would take it: all that it enforces is there, or stood in for."""
    warnings: tuple[Warning, ...]
    first_change: int | None
    """The first message that differs from what the current settings send; ``None``: none."""
    current: bool
    """Whether these are the current settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The alternatives, one for each choice. ``str()`` is a small table of them."""

    rows: tuple[Alternative, ...]

    @property
    def current(self) -> Alternative:
        return next(row for row in self.rows if row.current)

    def __str__(self) -> str:
        lines = [COLUMNS, *(cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


COLUMNS = ("", "include", "strip", "tokens", "legal", "first change")
"""The head of the table of alternatives, wherever it is shown."""


def cells(row: Alternative) -> tuple[str, ...]:
    """Return an alternative as a line of that table."""
    return (
        "*" if row.current else "",
        "yes" if row.include_in_context else "no",
        row.strip_from_context,
        str(row.tokens.effective),
        "yes" if row.legal else "no",
        "-" if row.first_change is None else str(row.first_change),
    )


def what_if(
    view: Sequence[Viewed],
    policy: Policy,
    to: Target,
    counter: Counter,
    *,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> WhatIf:
    """Return what every choice of include and strip would send of a view."""
    settings = policy.settings
    asked_with = digest(system, tools)
    choices = {
        (include, strip): Selecting(
            settings.model_copy(
                update={"include_in_context": include, "strip_from_context": strip}
            ),
            to,
            asked_with,
        )
        for include, strip in product((False, True), get_args(Strip))
    }
    now = (settings.include_in_context, settings.strip_from_context)
    weighed = _weighed(rope(view), [*choices.values()])
    kept = {choice: weighed.kept(selecting) for choice, selecting in choices.items()}
    beside = fixed(system, tools, counter)
    rows = []
    for choice, selecting in choices.items():
        include, strip = choice
        rows.append(
            Alternative(
                include_in_context=include,
                strip_from_context=strip,
                tokens=with_fixed(
                    weighed.raw, selecting.withheld, weighed.exactness, beside, counter.encoding
                ),
                legal=not _would_be_refused(selecting.warnings, to.contract),
                warnings=selecting.warnings,
                first_change=weighed.first_change(kept[now], kept[choice]),
                current=choice == now,
            )
        )
    return WhatIf(rows=tuple(rows))


@dataclass(slots=True)
class _Heap:
    """Thinking that shares its fate, whatever is chosen."""

    first: int
    """The first message that has some of it."""
    tokens: int = 0


_Alike: TypeAlias = tuple[Rule | None, Place]
"""What hinders thinking, and the place of its message."""


@dataclass(slots=True)
class _Weighed:
    """What a view counts, its thinking by what decides about it."""

    raw: int = 0
    exactness: set[Exactness] = field(default_factory=set)
    thinking: dict[_Alike, _Heap] = field(default_factory=dict)
    """In the order in which the first of each stands in the view."""

    def kept(self, selecting: Selecting) -> list[bool]:
        """Count all thinking for a choice; return of each heap whether it is kept."""
        return [selecting.weigh(*alike, heap.tokens) for alike, heap in self.thinking.items()]

    def first_change(self, now: Sequence[bool], then: Sequence[bool]) -> int | None:
        """Return the first message of which one choice keeps what another withholds."""
        heaps = zip(self.thinking.values(), now, then, strict=True)
        return next((heap.first for heap, one, other in heaps if one != other), None)

    def add(self, part: Sequence[Viewed], places: Sequence[Place], one: Selecting) -> None:
        """Count messages, each by itself."""
        for item, place in zip(part, places, strict=True):
            counts = item.counts
            self.raw += counts.visible + sum(counts.thinking)
            self.exactness.add(counts.exactness)
            if counts.thinking:
                hindrances = one.hindrances(item.message)
                for hindrance, tokens in zip(hindrances, counts.thinking, strict=True):
                    self._heap((hindrance, place), item.name).tokens += tokens

    def add_plain(self, part: Stretch, place: Place, one: Selecting) -> None:
        """Count plain messages, all at places of one kind."""
        self.raw += sum(part.visible) + sum(part.thinking)
        self.exactness.update(part.exactness)
        hindered: dict[Rule | None, list[Hashable]] = {}
        for name in dict.fromkeys(part.kinds):
            if name is not None:
                hindered.setdefault(one.hindrance(part.named[name]), []).append(name)
        for hindrance, names in hindered.items():
            first = part.first + part.kinds.index(names[0])
            self._heap((hindrance, place), first).tokens += part.tokens_of({*names})

    def _heap(self, alike: _Alike, first: int) -> _Heap:
        heap = self.thinking.get(alike)
        if heap is None:
            heap = self.thinking[alike] = _Heap(first)
        return heap


def _weighed(view: Rope[Viewed], choices: Sequence[Selecting]) -> _Weighed:
    """Go through a view once; each choice notes what there is to say of it."""
    weighed = _Weighed()
    one = choices[0]  # what hinders, and where there is something to note, is alike for all
    noted: set[Hashable] = set()
    for part, places in _parts(view):
        noting: Sequence[Viewed] = part
        if isinstance(part, Stretch):
            weighed.add_plain(part, places[0], one)
            noting = part.examples() if one.minds(places[0]) else ()
        else:
            weighed.add(part, places, one)
        for item, place in zip(noting, places, strict=False):
            if one.minds(place):
                hindrances = one.hindrances(item.message)
                like = (place, item.message.role, *hindrances)
                if like not in noted:
                    for selecting in choices:
                        selecting.note(item, place, hindrances)
                if not (place.call or one.minds_all):
                    noted.add(like)  # of all others like it there is the same to say
    return weighed


def _parts(view: Rope[Viewed]) -> Iterator[tuple[Sequence[Viewed], Sequence[Place]]]:
    """Yield a view in parts, with the places of their messages; in a stretch all are alike."""
    course = Course().then(view)
    last = max(course.last, 0)
    for first, end in pairwise(sorted({0, course.start, last, last + 1, course.length})):
        for part in view.part(first, end).chunks:
            if isinstance(part, Stretch):
                yield part, course.places(part[:1], first) * len(part)
            else:
                yield part, course.places(part, first)
            first += len(part)


def _would_be_refused(warnings: Sequence[Warning], contract: Contract) -> bool:
    codes = {warning.code for warning in warnings}
    return contract.refusal is not None and (
        ("floor_off" in codes and not contract.off_when_unmet)
        or ("floor_unmet" in codes and not is_mended(contract))
    )
