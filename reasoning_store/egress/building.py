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
from itertools import chain, groupby

from reasoning_store.blocks import Exactness
from reasoning_store.egress.course import Course
from reasoning_store.egress.policy import Place
from reasoning_store.egress.repair import Repairs
from reasoning_store.egress.select import Selecting
from reasoning_store.egress.stretch import Rulings, Stretch
from reasoning_store.egress.verdicts import Target, Viewed
from reasoning_store.rope import Rope, pieces, rope
from reasoning_store.settings import ReasoningSettings
from reasoning_store.wire import registry
from reasoning_store.wire.base import Plain


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


FEW = 32
"""So many plain messages are made one by one where one of them cannot go by column: a second
question in a row, where a user and a model take turns."""


class Made:
    """The beginning of a conversation: selected, mended, written and counted."""

    def __init__(self, key: Key) -> None:
        self.rolling = _is_rolling(key)
        self.length = 0
        """How many messages of the view are in it."""
        self.selecting = Selecting(key.settings, key.to, key.asked_with)
        self.repairs = Repairs(key.to)
        self.page = registry.writer(key.to.contract.api).page(key.to.contract)
        self.raw = 0
        """What it counts with all of its thinking."""
        self.exactness: set[Exactness] = set()

    def fork(self) -> Made:
        """Return the same, to go on with apart from this one."""
        other = copy(self)
        other.selecting = self.selecting.fork()
        other.repairs = self.repairs.fork()
        other.page = self.page.fork()
        other.exactness = set(self.exactness)
        return other

    def then(self, view: Sequence[Viewed], course: Course) -> Made | None:
        """Return this with the next messages; None where what is made does not hold then."""
        parts = _parts(view)
        made = self.fork()
        if all([made._add(part, course) for part in parts]):
            return made
        if len(parts) > 1:
            # An answer belongs to a call in another part: they are one, then.
            made = self.fork()
            if made._add(list(view), course):
                return made
        return None

    def _add(self, part: Sequence[Viewed], course: Course) -> bool:
        """Make the next messages; return whether what was made before them still holds."""
        if isinstance(part, Stretch):
            if self._add_plain(part, course):
                return True
            part = list(part)
        return self._add_each(part, course)

    def _add_each(self, part: Sequence[Viewed], course: Course) -> bool:
        places = course.places(part, self.length)
        outgoing, holds = self.repairs.next(*self.selecting.next(part, places))
        self.page.add(outgoing)
        for item in part:
            self.raw += item.counts.visible + sum(item.counts.thinking)
            self.exactness.add(item.counts.exactness)
        self.length += len(part)
        return holds

    def _add_plain(self, part: Stretch, course: Course) -> bool:
        """Make plain messages of closed turns by column; say whether that can be done."""
        end = self.length + len(part)
        if end > course.start or (self.rolling and self.length <= course.last < end):
            return False
        place = Place(last=False, open=False, call=False, open_call=course.open_call)
        rulings = self.selecting.rulings(part, place)
        if rulings is None:
            return False
        if part.thoughts is None and any([kept for kept, _ in rulings.values()]):
            return False
        plain = self.repairs.plain(part, rulings)
        if not self.page.has_forms(plain):
            return False
        self._put_plain(part, plain, course, place, rulings)
        return True

    def _put_plain(
        self, part: Stretch, plain: Plain, course: Course, place: Place, rulings: Rulings
    ) -> None:
        """Make plain messages by column, but for the few that stand about what is in the way.

        ``plain`` is what is sent of them.
        """
        if self.repairs.lets_pass(plain) and self.page.add_plain(plain):
            self.selecting.pass_over(part, place, rulings)
            self.repairs.pass_over(plain)
            self.raw += sum(part.visible) + sum(part.thinking)
            self.exactness.update(part.exactness)
            self.length += len(part)
        elif len(part) <= FEW:
            self._add_each(list(part), course)
        else:
            half = len(part) // 2
            for some in (part[:half], part[half:]):
                self._put_plain(some, self.repairs.plain(some, rulings), course, place, rulings)


def _parts(view: Sequence[Viewed]) -> list[Sequence[Viewed]]:
    """Return the stretches of plain messages in a view, and all that stands between them."""
    parts: list[Sequence[Viewed]] = []
    for is_plain, group in groupby(pieces(view), lambda piece: isinstance(piece, Stretch)):
        together = list(group)
        parts += together if is_plain else [[*chain.from_iterable(together)]]
    return parts


@dataclass(frozen=True, slots=True)
class Remembered:
    """What was made of a view: a request of a longer one goes on from it."""

    key: Key
    view: Rope[Viewed]
    course: Course
    made: tuple[Made, ...]
    """As far as it was made, at each place from which it may be gone on; the last is all."""


def make(key: Key, view: Sequence[Viewed]) -> Made:
    """Make all of a view, to be used once."""
    return _whole(key, view, Course().then(view))


def remember(key: Key, view: Sequence[Viewed], before: Remembered | None) -> Remembered:
    """Make all of a view, from where what was made before still holds."""
    view = rope(view)
    old, course = _still_holding(key, view, before)
    cuts = _cuts(key, course)
    while old:
        if new := _stages(old[-1], view, course, cuts):
            return Remembered(key, view, course, _worth_keeping([*old, *new], cuts))
        old.pop()
    return Remembered(key, view, course, (_whole(key, view, course),))


def _whole(key: Key, view: Sequence[Viewed], course: Course) -> Made:
    made = Made(key).then(view, course)
    # Before the first message there is nothing that would not hold.
    assert made is not None
    return made


def _still_holding(
    key: Key, view: Rope[Viewed], before: Remembered | None
) -> tuple[list[Made], Course]:
    """Return what can be gone on with, the furthest last, and how all of the view runs."""
    if before is None or before.key != key:
        return [Made(key)], Course().then(view)
    same, length = view.alike(before.view), before.course.length
    if same < length:
        course = Course().then(view)
    else:
        course = before.course.then(view.part(length, len(view)))
    same = min(same, _unchanged(key, before.course, course))
    return [Made(key), *(made for made in before.made if 0 < made.length <= same)], course


def _unchanged(key: Key, before: Course, after: Course) -> int:
    """Return up to which message every place is what it was."""
    same = before.length
    if after.start != before.start or after.open_call != before.open_call:
        same = min(before.start, after.start)
    if _is_rolling(key) and after.last != before.last:
        same = min(same, max(before.last, 0), max(after.last, 0))
    return same


def _cuts(key: Key, course: Course) -> tuple[int, ...]:
    """Return where what is made may stop to hold, and the end."""
    last = (max(course.last, 0),) if _is_rolling(key) else ()
    return tuple(sorted({course.start, *last, course.length}))


def _is_rolling(key: Key) -> bool:
    """Whether it matters which message was the last that thought."""
    return key.settings.strip_from_context == "allButLast"


def _stages(made: Made, view: Rope[Viewed], course: Course, cuts: Sequence[int]) -> list[Made]:
    """Return what is made up to each cut behind what is; none where that does not hold."""
    stages = []
    for end in cuts:
        if end > made.length or end == course.length:
            longer = made.then(view.part(made.length, end), course)
            if longer is None:
                return []
            made = longer
            stages.append(made)
    return stages


def _worth_keeping(stages: Sequence[Made], cuts: Sequence[int]) -> tuple[Made, ...]:
    """Return the furthest stage before each cut: at most as many as there are cuts."""
    found = {
        cut: max((made for made in stages if made.length <= cut), key=lambda made: made.length)
        for cut in cuts
    }
    return tuple({made.length: made for made in found.values()}.values())
