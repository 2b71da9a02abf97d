"""Reads of messages: one query for each segment and table. A window separates no tool pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, zip_longest
from operator import itemgetter
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, and_, bindparam, literal_column, select

from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.validation import check_number
from reasoning_store.ledger import (
    branches,
    encode,
    message_ids,
    origins,
    sessions,
    stored_drafts,
    windows,
)
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import Page, narrow_rows, stored_rows
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.message_columns import NARROW, READ
from reasoning_store.ledger.records import (
    BranchRow,
    HistorySnapshot,
    MessagePlace,
    Segment,
    SessionRow,
    StoredRow,
)
from reasoning_store.ledger.tables import (
    bodies,
    in_range,
    messages,
    of_same_message,
    range_params,
    thinking_blocks,
)
from reasoning_store.ledger.view_records import NarrowRow

_m, _b, _t = messages.c, bodies.c, thinking_blocks.c


_HEADS = Statement(
    select(_m.position, *(_m[name] for name in READ)).where(*in_range(_m)).order_by(_m.position)
)
_BODIES = Statement(
    select(_b.position, _b.text, _b.data).where(*in_range(_b)).order_by(_b.position)
)
_THINKING = Statement(
    select(_t.position, _t.ordinal, _t.tokens, _t.source_field, _t.thought, _t.data, _t.is_hidden)
    .where(*in_range(_t))
    .order_by(_t.position, _t.ordinal)
)
_REPLY: Final[Any] = literal_column("'assistant'")
_REPLY_HEADS = Statement(
    select(_m.position, *(_m[name] for name in READ))
    .where(*in_range(_m), _m.role == _REPLY)
    .order_by(_m.position)
)
_REPLY_BODIES = Statement(
    select(_b.position, _b.text, _b.data)
    .join_from(bodies, messages, and_(*of_same_message(_m, _b)))
    .where(*in_range(_m), _m.role == _REPLY)
    .order_by(_b.position)
)
_NARROW = Statement(
    select(_m.position, *(_m[name] for name in NARROW)).where(*in_range(_m)).order_by(_m.position)
)
_TOKENS = Statement(select(_m.visible + _m.thinking).where(*in_range(_m)).order_by(_m.position))
_BY_KEY = Statement(
    select(_m.branch, _m.position, _m.batch).where(
        _m.session_key == bindparam("key"), _m.idempotency_key == bindparam("idempotency_key")
    )
)
_PAGE = 256
"""The rows of one fetch; each page is freed before the next, so that no row is in memory twice."""
_ORIGIN = itemgetter(1 + READ.index("origin"))
"""The number of the origin that a head names."""
Rows: TypeAlias = Sequence[Sequence[Any]]


def of_segments(
    connection: Connection, key: int, segments: Sequence[Segment], *, thinking: bool
) -> list[StoredRow]:
    """Return the messages of ranges that follow one another: one read for each range and table."""
    out: list[StoredRow] = []
    known = origins.all_of(connection, key) if segments else {}
    for segment in segments:
        span = range_params(key, segment)
        with (
            _HEADS.pages(connection, span, _PAGE) as heads,
            _BODIES.pages(connection, span, _PAGE) as texts,
        ):
            pages = _complete_pages(segment, zip_longest(heads, texts, fillvalue=()), known)
            if not thinking:
                out += stored_rows(segment.branch, pages, None)
                continue
            with _THINKING.streamed(connection, span, _PAGE) as thoughts:
                out += stored_rows(segment.branch, pages, thoughts)
    return out


def replies_at(
    connection: Connection, key: int, places: Collection[MessagePlace], *, whole: bool
) -> dict[MessagePlace, StoredRow]:
    """Return the replies at these places; without their blocks if not ``whole``."""
    found: dict[MessagePlace, StoredRow] = {}
    known = origins.all_of(connection, key) if places else {}
    for branch in {place.branch for place in places}:
        own = [place.position for place in places if place.branch == branch]
        span = range_params(key, Segment(branch, min(own), max(own)))
        heads = _REPLY_HEADS.rows(connection, span)
        texts: Rows = [(head[0], None, None) for head in heads]
        thoughts = None
        if whole:
            texts, thoughts = _REPLY_BODIES.rows(connection, span), _THINKING.rows(connection, span)
        for row in stored_rows(branch, [Page(heads, texts, known)], thoughts):
            found[MessagePlace(branch, row.position)] = row
    return {place: found[place] for place in places if place in found}


def _complete_pages(
    segment: Segment, pages: Iterable[tuple[Rows, Rows]], origins: Mapping[int, Origin]
) -> Iterator[Page]:
    """Yield the pages of a segment; raise if a message is missing."""
    due = segment.first
    known = {None, *origins}
    for heads, texts in pages:
        _check_whole(heads, texts, due)
        if not known.issuperset(map(_ORIGIN, heads)):
            lost = next(head[0] for head in heads if _ORIGIN(head) not in known)
            raise CorruptRow(f"the origin of message {lost} is not there")
        yield Page(heads, texts, origins)
        due += len(heads)
    if due <= segment.last:
        raise CorruptRow(f"message {due} is not there")


def _check_whole(heads: Rows, texts: Rows, due: int) -> None:
    """Refuse a page in which something is missing, or which does not begin where it should."""
    # Rows come in the order of their positions, and no position is there twice: a page
    # whose ends are right has no gap.
    last = due + len(heads) - 1
    if len(heads) == len(texts) and all(
        [page[0][0] == due and page[-1][0] == last for page in (heads, texts)]
    ):
        return
    both = {row[0] for row in heads} & {row[0] for row in texts}
    raise CorruptRow(f"message {next(p for p in count(due) if p not in both)} is not whole")


def narrow(connection: Connection, key: int, segments: Sequence[Segment]) -> list[NarrowRow]:
    """Return the messages of ranges that follow one another without their blocks."""
    out: list[NarrowRow] = []
    known = origins.all_of(connection, key) if segments else {}
    for segment in segments:
        rows = _NARROW.rows(connection, range_params(key, segment))
        if len(rows) != segment.last - segment.first + 1:
            there = {row[0] for row in rows}
            raise CorruptRow(
                f"message {next(p for p in count(segment.first) if p not in there)} is not there"
            )
        out += narrow_rows(rows, known)
    return out


def get(
    connection: Connection, key: int, branch: int, position: int, *, thinking: bool
) -> StoredRow:
    """Return one message."""
    found = branches.get(connection, key, branch)
    segment = branches.segment_at(found, position)
    one = Segment(segment.branch, position, position)
    return of_segments(connection, key, [one], thinking=thinking)[0]


def message_snapshot(
    connection: Connection, key: int, branch: int, position: int, now: int
) -> HistorySnapshot:
    """Return one message, or the draft that is at its position, with all branches."""
    every = branches.all_of(connection, key)
    draft = stored_drafts.get(connection, key, branch, now=now)
    if draft is not None and draft.position == position:
        return HistorySnapshot([], draft, every)
    segment = branches.segment_at(branches.branch_of(every, branch), position)
    one = Segment(segment.branch, position, position)
    return HistorySnapshot(of_segments(connection, key, [one], thinking=True), None, every)


def from_position(
    connection: Connection, key: int, branch: int, position: int, *, count: int
) -> list[StoredRow]:
    """Return at most ``count`` messages from a position on."""
    found = branches.get(connection, key, branch)
    last = min(position + count - 1, found.head)
    return of_segments(
        connection, key, branches.segments_between(found, position, last), thinking=True
    )


def by_idempotency_key(connection: Connection, key: int, name: str) -> list[StoredRow] | None:
    """Return what was appended under an idempotency key, if anything was."""
    row = _BY_KEY.row(connection, {"key": key, "idempotency_key": name})
    if row is None:
        return None
    branch, first, batch = row
    return of_segments(connection, key, [Segment(branch, first, first + batch - 1)], thinking=True)


_Read: TypeAlias = Callable[[int, int], list[StoredRow]]
"""The messages from a position to another."""
_GROWTH = 4
_FIRST_LOOK = 8
"""How many messages beyond an end are looked at first; then twice as many, and so on."""


def window_snapshot(
    connection: Connection,
    key: int,
    branch: int,
    *,
    limit: int | None,
    tokens: int | None,
    before: int | None,
    after: int | None,
    now: int,
) -> HistorySnapshot:
    """Return the messages that a window holds, in order, with the draft and all branches."""
    given = {"limit": limit, "tokens": tokens, "before": before, "after": after}
    for what, value in given.items():
        if value is not None:
            check_number(what, value, least=0, hint=f"as in history({what}=50)")
    every = branches.all_of(connection, key)
    found = branches.branch_of(every, branch)
    first = 1 if after is None else max(after + 1, 1)
    last = found.head if before is None else min(before - 1, found.head)
    width = total = max(last - first + 1, 0)
    if limit is not None:
        width = min(width, limit)
    forward = after is not None and before is None
    if tokens is not None and width:
        named = first if forward else last
        each = _tokens_of_each(connection, key, found, named, width, forward=forward)
        width = windows.widest(each, tokens)
    start = first if forward else last - width + 1
    end = start + width - 1
    rows = of_segments(connection, key, branches.segments_between(found, start, end), thinking=True)
    if 0 < width < total:
        look = partial(_look, connection, key, found)
        if forward:
            cut = _end(end, rows, last, look, grows=tokens is None)
            kept = start, cut
        else:
            earliest = partial(_earliest_turn, connection, key, found, start - 1, first)
            kept = _start(start - 1, rows, earliest, look, grows=tokens is None) + 1, end
        rows = _moved(connection, key, found, rows, kept)
    return HistorySnapshot(rows, stored_drafts.get(connection, key, branch, now=now), every)


def _moved(
    connection: Connection,
    key: int,
    found: BranchRow,
    rows: Sequence[StoredRow],
    kept: tuple[int, int],
) -> list[StoredRow]:
    """Return a window with other ends: shorter, or with the messages that it lacks read."""
    first, last = kept
    start, end = rows[0].position, rows[-1].position
    before, behind = (
        of_segments(connection, key, branches.segments_between(found, *missing), thinking=True)
        for missing in ((first, start - 1), (end + 1, last))
    )
    return [*before, *[row for row in rows if first <= row.position <= last], *behind]


def _look(
    connection: Connection, key: int, found: BranchRow, first: int, last: int
) -> list[StoredRow]:
    """Return messages without their thinking: whether a window parts a pair needs none."""
    segments = branches.segments_between(found, first, last)
    return of_segments(connection, key, segments, thinking=False)


def _tokens_of_each(
    connection: Connection, key: int, found: BranchRow, named: int, width: int, *, forward: bool
) -> Iterator[int]:
    """Yield the tokens of each message next to ``named``, thinking too; a few are read at first."""
    done, wanted = 0, _FIRST_LOOK
    while done < width:
        upto = min(done + wanted, width)
        span = (named + done, named + upto - 1) if forward else (named - upto + 1, named - done)
        found_tokens = [
            tokens
            for part in branches.segments_between(found, *span)
            for (tokens,) in _TOKENS.rows(connection, range_params(key, part))
        ]
        yield from found_tokens if forward else reversed(found_tokens)
        done, wanted = upto, wanted * _GROWTH


def _earliest_turn(connection: Connection, key: int, found: BranchRow, cut: int, first: int) -> int:
    """Return how far back a call is looked for: the start of the turn before the cut's."""

    def turn_start(position: int) -> int:
        return branches.turn_start(connection, key, found, position) or 1

    return max(turn_start(turn_start(cut) - 1), first)


def _start(
    cut: int, rows: Sequence[StoredRow], earliest: Callable[[], int], look: _Read, *, grows: bool
) -> int:
    """Return the cut before a window that separates nothing: an earlier one if it grows."""
    links = [windows.link_of(row) for row in rows]
    step, lowest = _FIRST_LOOK, 0
    while True:
        pairs = windows.tied_pairs(links)
        wanted = windows.earlier(cut, pairs) if grows else cut
        if not windows.asks_before(links, wanted):
            break
        lowest = lowest or earliest()
        reach = links[0].position
        if reach <= lowest:
            break
        links = [windows.link_of(row) for row in look(max(lowest, reach - step), reach - 1)] + links
        step *= 2
    return wanted if grows else windows.later(cut, pairs)


def _end(cut: int, rows: Sequence[StoredRow], last: int, look: _Read, *, grows: bool) -> int:
    """Return the cut after a window that separates nothing: a later one if it grows."""
    links = [windows.link_of(row) for row in rows]
    step, turns = _FIRST_LOOK, 0
    while True:
        pairs = windows.tied_pairs(links)
        wanted = windows.later(cut, pairs) if grows else cut
        reach = links[-1].position
        if turns > 1 or reach >= last or not windows.asks_behind(links, wanted):
            break
        for row in look(reach + 1, min(reach + step, last)):
            turns += row.message.starts_turn
            if turns > 1:
                break
            links.append(windows.link_of(row))
        step *= 2
    return wanted if grows else windows.earlier(cut, pairs)


def splits(connection: Connection, key: int, branch: int, position: int) -> bool:
    """Whether a call up to a position is answered after it, in its turn or the next."""
    found = branches.get(connection, key, branch)
    branches.segment_at(found, position)
    look = partial(_look, connection, key, found)
    rows = look(branches.turn_start(connection, key, found, position) or 1, position)
    return _end(position, rows, found.head, look, grows=True) != position


class History:
    """The messages of a branch, as they were stored."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def by_idempotency_key(self, session_key: int, idempotency_key: str) -> list[StoredRow] | None:
        """Return what was appended under a key, if anything was."""
        text = encode.checked_key_digest(idempotency_key)
        return self._database.read(by_idempotency_key, session_key, text)

    def get(
        self, session_key: int, branch: int, position: int, *, thinking: bool = True
    ) -> StoredRow:
        return self._database.read(get, session_key, branch, position, thinking=thinking)

    def moment(
        self,
        session_key: int,
        branch: int,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> HistorySnapshot:
        """Return messages in order, those strictly between ``after`` and ``before``.

        ``limit`` and ``tokens`` (of all thinking too) keep those next to ``after`` where
        only that is given, else the latest. No call is parted from its response, and no
        reasoning from its call: for that a window by ``limit`` may hold some messages more,
        one by ``tokens`` holds fewer. The draft and the branches are those of the same moment.
        """
        return self._database.read(
            window_snapshot,
            key=session_key,
            branch=branch,
            limit=limit,
            tokens=tokens,
            before=before,
            after=after,
            now=self._clock.now(),
        )

    def moment_at(self, session_key: int, branch: int, position: int) -> HistorySnapshot:
        """Return one message with the branches, or the draft that is at its position."""
        now = self._clock.now()
        return self._database.read(
            message_snapshot, key=session_key, branch=branch, position=position, now=now
        )

    def locate(self, session_key: int, branch: int, ids: Sequence[str]) -> tuple[int, list[int]]:
        """Return a branch that has these messages, and the position of each: ``branch``, if it
        has them all."""
        return self._database.read(message_ids.locate_all, session_key, branch, ids)

    def find_session(
        self, owner: str, id: str, *, latest: bool = False
    ) -> tuple[SessionRow, int] | None:
        """Return the owner's session that has a message, and the branch it was written on."""

        def read(connection: Connection) -> tuple[SessionRow, int] | None:
            found = message_ids.find(connection, owner, id, latest=latest)
            if found is None:
                return None
            return sessions.by_key(connection, found[0]), found[1]

        return self._database.read(read)
