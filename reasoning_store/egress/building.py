"""A request as far as it is made, and how the next one goes on from there.

Theory. A conversation grows at its end, and what was decided, mended and written of it
stays, but for three things: an open turn ends, the last message that thought is no longer
the last, a call that nobody had answered is answered. So a request leaves behind what was
``Made`` up to the places at which these can happen, and the next one goes on from the last
of them that still holds. It is always the request that would be made from the beginning:
where less is the same, less is used.

``Remembered`` is a value: nothing in it changes, and nothing of it is in a body that was
handed out. It holds one conversation once more, as a request has it; whoever keeps it can
drop it at any time. What was erased must not be kept: a view without it is another view,
and the value that comes with its request has nothing of it.

It knows the order of the steps. It must not know what any of them decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

from reasoning_store.blocks import Exactness
from reasoning_store.egress.repair import Repairs
from reasoning_store.egress.select import Course, Selecting
from reasoning_store.egress.verdicts import Target, Viewed
from reasoning_store.settings import ReasoningSettings
from reasoning_store.wire import registry


@dataclass(frozen=True, slots=True)
class Key:
    """For whom, under what policy: what has to be the same for anything to stay."""

    to: Target
    policy: tuple[bool, str, str]
    """The settings that a selection looks at. EC-004, EC-005: whatever changed them, the next
    request is made by the new ones."""
    asked_with: str
    """The digest of system and tools, where reasoning is bound to them."""
    settings: ReasoningSettings = field(compare=False)

    @classmethod
    def of(cls, to: Target, settings: ReasoningSettings, asked_with: str) -> Key:
        policy = (settings.include_in_context, settings.strip_from_context, settings.floor)
        bound = to.contract.bound is not None
        return cls(to, policy, asked_with if bound else "", settings)


class Made:
    """The beginning of a conversation: selected, mended, written and counted."""

    def __init__(self, key: Key) -> None:
        self.length = 0
        """How many messages of the view are in it."""
        self.selecting = Selecting(key.settings, key.to, key.asked_with)
        self.repairs = Repairs(key.to)
        self.page = registry.writer(key.to.contract.api).page(key.to.contract)
        self.raw = 0
        """What it counts with all of its thinking."""
        self.withheld = 0
        """What of that stays home."""
        self.exactness: set[Exactness] = set()

    def fork(self) -> Made:
        """Return the same, to go on with apart from this one."""
        other = copy(self)
        other.selecting = self.selecting.fork()
        other.repairs = self.repairs.fork()
        other.page = self.page.fork()
        other.exactness = set(self.exactness)
        return other

    def add(self, view: Sequence[Viewed], course: Course) -> bool:
        """Make the next messages; return whether what was made before them still holds."""
        places = course.places(view, self.length)
        decided = len(self.selecting.verdicts)
        outgoing, holds = self.repairs.next(*self.selecting.next(view, places))
        self.page.add(outgoing)
        for item in view:
            self.raw += item.counts.visible + sum(item.counts.thinking)
            self.exactness.add(item.counts.exactness)
        for verdict in self.selecting.verdicts[decided:]:
            self.withheld += 0 if verdict.kept else verdict.tokens
        self.length += len(view)
        return holds


@dataclass(frozen=True, slots=True)
class Remembered:
    """What was made of a view: a request of a longer one goes on from it."""

    key: Key
    view: tuple[Viewed, ...]
    course: Course
    made: tuple[Made, ...]
    """As far as it was made, at each place from which it may be gone on; the last is all."""


def make(key: Key, view: Sequence[Viewed]) -> Made:
    """Make all of a view, to be used once."""
    made = Made(key)
    made.add(view, Course().then(view))
    return made


def remember(key: Key, view: Sequence[Viewed], before: Remembered | None) -> Remembered:
    """Make all of a view, from where what was made before still holds."""
    view = tuple(view)
    old, course = _still_holding(key, view, before)
    cuts = _cuts(key, course)
    while old:
        if new := _stages(old[-1], view, course, cuts):
            return Remembered(key, view, course, _worth_keeping([*old, *new], cuts))
        old.pop()
    whole = Made(key)
    whole.add(view, course)
    return Remembered(key, view, course, (whole,))


def _still_holding(
    key: Key, view: tuple[Viewed, ...], before: Remembered | None
) -> tuple[list[Made], Course]:
    """Return what can be gone on with, the furthest last, and how all of the view runs."""
    # Messages are values and mostly the very same objects, which costs next to nothing.
    if before is None or before.key != key or view[: len(before.view)] != before.view:
        return [Made(key)], Course().then(view)
    course = before.course.then(view[before.course.length :])
    same = _unchanged(key, before.course, course)
    return [Made(key), *(made for made in before.made if 0 < made.length <= same)], course


def _unchanged(key: Key, before: Course, after: Course) -> int:
    """Return up to which message every place is what it was."""
    same = before.length
    if after.start != before.start or after.open_call != before.open_call:
        same = before.start
    if _is_rolling(key) and after.last != before.last:
        same = min(same, max(before.last, 0))
    return same


def _cuts(key: Key, course: Course) -> tuple[int, ...]:
    """Return where what is made may stop to hold, and the end."""
    last = (max(course.last, 0),) if _is_rolling(key) else ()
    return tuple(sorted({course.start, *last, course.length}))


def _is_rolling(key: Key) -> bool:
    """Whether it matters which message was the last that thought."""
    return key.settings.strip_from_context == "allButLast"


def _stages(
    made: Made, view: tuple[Viewed, ...], course: Course, cuts: Sequence[int]
) -> list[Made]:
    """Return what is made up to each cut behind what is; none where that does not hold."""
    stages = []
    for end in cuts:
        if end > made.length or end == course.length:
            made = made.fork()
            if not made.add(view[made.length : end], course):
                return []
            stages.append(made)
    return stages


def _worth_keeping(stages: Sequence[Made], cuts: Sequence[int]) -> tuple[Made, ...]:
    """Return the furthest stage before each cut: at most as many as there are cuts."""
    found = {
        cut: max((made for made in stages if made.length <= cut), key=lambda made: made.length)
        for cut in cuts
    }
    return tuple({made.length: made for made in found.values()}.values())
