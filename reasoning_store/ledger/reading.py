"""The SQL that reads messages: one range a segment and a table, grouped here.

A lineage lies on few branches; each part of it is one index range of ``messages``, of
``bodies`` and, only where thinking is wanted, of ``thinking_blocks``. Nothing here holds a
cursor open: what is returned is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, zip_longest
from operator import itemgetter
from typing import Any, TypeAlias

from sqlalchemy import Connection, bindparam, select

from reasoning_store.blocks import Origin
from reasoning_store.errors import CorruptRow
from reasoning_store.ledger import branches, interning
from reasoning_store.ledger.collecting import uncollected
from reasoning_store.ledger.rows import Page, stored_rows
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import bodies, messages, thinking_blocks
from reasoning_store.ledger.values import (
    Segment,
    StoredRow,
)

_m, _b, _t = messages.c, bodies.c, thinking_blocks.c


def in_range(table: Any) -> tuple[Any, ...]:
    """Return what says that a row lies in a part of a branch; ``params`` names the part."""
    return (
        table.session_key == bindparam("key"),
        table.branch == bindparam("branch"),
        table.position.between(bindparam("first"), bindparam("last")),
    )


_HEADS = Sql(
    select(
        _m.position,
        _m.id,
        _m.role,
        _m.status,
        _m.created_at,
        _m.origin,
        _m.visible,
        _m.exactness,
        _m.shape,
        _m.digest,
    )
    .where(*in_range(_m))
    .order_by(_m.position)
)
_BODIES = Sql(select(_b.position, _b.text, _b.data).where(*in_range(_b)).order_by(_b.position))
_THINKING = Sql(
    select(_t.position, _t.ordinal, _t.tokens, _t.source_field, _t.thought, _t.data)
    .where(*in_range(_t))
    .order_by(_t.position, _t.ordinal)
)
_BY_KEY = Sql(
    select(_m.branch, _m.position, _m.batch).where(
        _m.session_key == bindparam("key"), _m.idempotency_key == bindparam("idempotency_key")
    )
)
_PAGE = 256
"""Rows are taken from the driver so many at a time, and are gone before the next come: what
is read is in memory once."""
_ORIGIN = itemgetter(5)
"""The number of the origin that a head names."""
Rows: TypeAlias = Sequence[Sequence[Any]]


def params(key: int, segment: Segment) -> dict[str, Any]:
    """Return what ``in_range`` is asked with."""
    return {"key": key, "branch": segment.branch, "first": segment.first, "last": segment.last}


@uncollected
def of_segments(
    connection: Connection, key: int, segments: Sequence[Segment], *, thinking: bool
) -> list[StoredRow]:
    """Return the messages of ranges that lie behind one another, one read a range and table."""
    out: list[StoredRow] = []
    origins = interning.all_of(connection, key) if segments else {}
    for segment in segments:
        span = params(key, segment)
        with (
            _HEADS.pages(connection, span, _PAGE) as heads,
            _BODIES.pages(connection, span, _PAGE) as texts,
        ):
            pages = _whole(segment, zip_longest(heads, texts, fillvalue=()), origins)
            if not thinking:
                out += stored_rows(segment.branch, pages, None)
                continue
            with _THINKING.streamed(connection, span, _PAGE) as thoughts:
                out += stored_rows(segment.branch, pages, thoughts)
    return out


def _whole(
    segment: Segment, pages: Iterable[tuple[Rows, Rows]], origins: Mapping[int, Origin]
) -> Iterator[Page]:
    """Yield the pages of a range, checked to be all there."""
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


def get(
    connection: Connection, key: int, branch: int, position: int, *, thinking: bool
) -> StoredRow:
    """Return one message."""
    found, _ = branches.get(connection, key, branch)
    segment = branches.place(found, position)
    one = Segment(segment.branch, position, position)
    return of_segments(connection, key, [one], thinking=thinking)[0]


def from_position(
    connection: Connection, key: int, branch: int, position: int, *, count: int
) -> list[StoredRow]:
    """Return at most ``count`` messages from a position on."""
    found, _ = branches.get(connection, key, branch)
    last = min(position + count - 1, found.state.position)
    return of_segments(connection, key, branches.between(found, position, last), thinking=True)


def by_idempotency_key(connection: Connection, key: int, name: str) -> list[StoredRow] | None:
    """Return what was appended under an idempotency key, if anything was."""
    row = _BY_KEY.row(connection, {"key": key, "idempotency_key": name})
    if row is None:
        return None
    branch, first, batch = row
    return of_segments(connection, key, [Segment(branch, first, first + batch - 1)], thinking=True)
