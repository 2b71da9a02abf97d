"""What a session's next request is made of, read once and kept while it is good.

Rows are written once, so a view that was read stays good: the next request reads only what
came since. Two things end that, and both are seen before a view is given out: other
summaries in force, and an erasure.

Thinking that a request cannot keep under its settings is not read. What stands in its place
says what kind it is, which is all that a verdict needs, and nothing of what was thought.

What is kept is bounded by its text, the sessions that were asked for last staying longest;
the very last one always stays, so that no conversation is too long to go on with.
It knows views and rows; it must not know policy, a provider or SQL.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

from reasoning_store.blocks import Block, MediaBlock, Message, ThinkingBlock, with_blocks
from reasoning_store.egress.building import Remembered
from reasoning_store.egress.stretch import Stretch, ThoughtKind
from reasoning_store.egress.verdicts import Viewed
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.shapes import Shape
from reasoning_store.ledger.summaries import CompactionRow, PlainRows, ViewRow
from reasoning_store.ledger.values import SessionRow, StoredRow
from reasoning_store.rope import Rope

KEPT_CHARACTERS = 16_000_000
"""About how many are kept, of all sessions together."""
_A_TOKEN = 4
_A_MESSAGE = 256
_UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class View:
    """A view as far as it was read."""

    of: tuple[int, int | None]
    """When the session was made and last erased in: a view of another time is not this one."""
    items: Rope[Viewed]
    head: int
    """The last position that was read."""
    thinking_from: int
    in_force: tuple[int, ...]
    weight: int
    """About how many characters its messages are."""
    erasures: int
    """How many there were here when it was asked for."""
    made: Remembered | None = None
    """What the last request was made of, for the next to go on from."""
    sent: Remembered | None = None
    """What the last one that was answered was made of."""

    @property
    def held(self) -> int:
        """About how many characters are kept with it: a request repeats the conversation.

        Two requests that were asked for in the same way share their parts.
        """
        keys = {made.key for made in (self.made, self.sent) if made is not None}
        return self.weight * (1 + len(keys))


class Views:
    """The views of the sessions that were asked for last."""

    def __init__(self, ledger: Ledger, most: int = KEPT_CHARACTERS) -> None:
        self._ledger = ledger
        self._most = most
        self._weight = 0
        self._views: OrderedDict[tuple[int, int], View] = OrderedDict()
        self._erasures = 0
        self._lock = Lock()

    def of(self, row: SessionRow, branch: int, *, thinking_from: int = 1) -> View:
        """Return what stands in the view of a branch now; ``row`` was just read.

        The thinking of messages before ``thinking_from`` may be missing.
        """
        at = (row.key, branch)
        with self._lock:
            view = self._views.get(at)
            erasures = self._erasures
        known = (row.created_at, row.erased_at)
        if view is not None and (view.of != known or view.thinking_from > thinking_from):
            view = None
        if view is not None:
            # What comes after has its turn and its last thinking there: it is read whole.
            rows = self._ledger.following(*at, view.head, view.in_force)
            view = None if rows is None else replace(_extended(view, rows), erasures=erasures)
        if view is None:
            found = self._ledger.view(*at, thinking_from=thinking_from, by_column=True)
            empty = View(known, Rope(), 0, thinking_from, found.in_force.numbers, 0, erasures)
            view = _extended(empty, found.rows)
        self._keep(at, view)
        return view

    def remember(
        self, row: SessionRow, branch: int, view: View, made: Remembered, sent: Remembered | None
    ) -> None:
        """Keep what requests were made of with their view."""
        self._keep((row.key, branch), replace(view, made=made, sent=sent))

    def forget(self, key: int) -> None:
        """Let go of a session that was erased in."""
        with self._lock:
            self._erasures += 1
            for at in [at for at in self._views if at[0] == key]:
                self._weight -= self._views.pop(at).held

    def forget_all(self) -> None:
        with self._lock:
            self._erasures += 1
            self._views.clear()
            self._weight = 0

    def _keep(self, at: tuple[int, int], view: View) -> None:
        with self._lock:
            if view.erasures != self._erasures:
                return  # it may have been read before what was erased since
            before = self._views.pop(at, None)
            self._weight -= before.held if before is not None else 0
            self._views[at] = view
            self._weight += view.held
            while self._weight > self._most and len(self._views) > 1:
                _, oldest = self._views.popitem(last=False)
                self._weight -= oldest.held


def _extended(view: View, rows: Sequence[ViewRow]) -> View:
    """Return a view with what stands behind it; the items that it had are the same objects."""
    if not rows:
        return view
    items = view.items.fork()
    head, weight = view.head, view.weight
    for row in rows:
        if isinstance(row, PlainRows):
            items.join(_stretch(row))
            head = max(head, row.position + len(row.texts) - 1)
            weight += _weight_of_all(row)
        else:
            items.append(_viewed(row))
            head = max(head, row.position)
            weight += _weight(row)
    return replace(view, items=items, head=head, weight=weight)


def _stretch(rows: PlainRows) -> Stretch:
    named: dict[Hashable, ThoughtKind] = {
        name: ThoughtKind(
            None if name[0] is None else rows.makers[name[0]], shape.place, _stub(shape)
        )
        for name, shape in rows.shapes.items()
        if shape is not None
    }
    return Stretch(
        first=rows.position,
        roles=rows.roles,
        texts=rows.texts,
        origins=rows.origins,
        makers=rows.makers,
        visible=rows.visible,
        exactness=rows.exactness,
        thinking=rows.thinking,
        kinds=rows.kinds,
        named=named,
        thoughts=rows.thoughts,
        seals=rows.seals,
    )


def _viewed(row: StoredRow | CompactionRow) -> Viewed:
    if isinstance(row, CompactionRow):
        return Viewed(row.message, row.counts, row.position, summary=True)
    message = row.message if not row.marks else _with_stubs(row.message, row.marks)
    return Viewed(message, row.counts, row.position)


def _with_stubs(message: Message, marks: Iterable[tuple[int, int, int, str | None]]) -> Message:
    blocks: list[Block] = list(message.blocks)
    for place, _, flags, source_field in marks:
        blocks.insert(place, _marked(flags, source_field))
    return with_blocks(message, blocks)


# There are few kinds, and nothing tells one block that was not read from another.
@lru_cache(maxsize=1024)
def _marked(flags: int, source_field: str | None) -> ThinkingBlock:
    return _stub(Shape.of(0, 0, flags, source_field))


@lru_cache(maxsize=1024)
def _stub(shape: Shape) -> ThinkingBlock:
    return ThinkingBlock(
        thought=_UNREAD if shape.readable else "",
        source_field=shape.source_field,
        is_hidden=shape.hidden,
        signature=_UNREAD if shape.signed else None,
        encrypted=_UNREAD if shape.encrypted else None,
        redacted=shape.redacted,
        interrupted=shape.interrupted,
    )


def _weight_of_all(rows: PlainRows) -> int:
    thinking = 0 if rows.thoughts is None else sum(rows.thinking)
    return _A_MESSAGE * len(rows.texts) + _A_TOKEN * (sum(rows.visible) + thinking)


def _weight(row: StoredRow | CompactionRow) -> int:
    tokens = row.counts.visible
    if isinstance(row, CompactionRow) or not row.marks:  # what was thought was read, too
        for thought in row.counts.thinking:
            tokens += thought
    weight = _A_MESSAGE + _A_TOKEN * tokens
    for block in row.message.blocks:
        if type(block) is MediaBlock and block.data is not None:
            weight += len(block.data)
    return weight
