"""The SQL that reads plain messages as columns: a text each, perhaps one thought before it.

What is whole, has one text of its own column and nothing beside it needs no value made of
it to be sent again. Long runs of such messages come back as columns, in two reads, or in
three where what was thought is wanted. A thought is plain that is words, or words and the
signature that seals them, as one provider signs all of its own. What stands between the
runs is read as ``reading`` reads everything. Nothing is decided here, and nothing is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlalchemy import (
    ColumnElement,
    Connection,
    String,
    and_,
    case,
    func,
    literal_column,
    or_,
    select,
)

from reasoning_store.blocks import EXACTNESS
from reasoning_store.errors import CorruptRow
from reasoning_store.ledger import columns, interning, reading
from reasoning_store.ledger.rows import UNREADABLE, parsed
from reasoning_store.ledger.shapes import Shape
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.summaries import Key, PlainRows
from reasoning_store.ledger.tables import bodies, messages, thinking_blocks
from reasoning_store.ledger.values import Segment, StoredRow

_m, _b, _t = messages.c, bodies.c, thinking_blocks.c

FEW = 32
"""Runs shorter than this are read with what stands around them."""
_EXACTNESSES = frozenset(range(len(EXACTNESS)))


def _word(text: str) -> ColumnElement[str]:
    # Written out, not bound: it is a part of the text that is compiled once.
    return literal_column(f"'{text}'", String)


_PLAIN_ROLE = case(
    (
        and_(_m.status == _word("complete"), _m.role.in_((_word("user"), _word("assistant")))),
        _m.role,
    )
)
_beginning = func.substr(
    # The codec's mark, spaces, may stand before it.
    func.ltrim(_b.data),
    literal_column("1"),
    literal_column(str(len(columns.WITH_BLOCKS))),
)
_ONLY_TEXT = case(
    (or_(_b.data.is_(None), _beginning != _word(columns.WITH_BLOCKS)), _b.text),
)


_HEADS = Sql(
    select(
        _PLAIN_ROLE,
        _m.origin,
        _m.visible,
        _m.thinking,
        _m.exactness,
        _m.shape,
    )
    .where(*reading.in_range(_m))
    .order_by(_m.position)
)
_TEXTS = Sql(select(_ONLY_TEXT).where(*reading.in_range(_b)).order_by(_b.position))
_THOUGHTS = Sql(
    select(case((_t.data.is_(None), _t.thought)))
    .where(*reading.in_range(_t))
    .order_by(_t.position, _t.ordinal)
)
_SIGNED = Sql(
    select(_t.thought, _t.data).where(*reading.in_range(_t)).order_by(_t.position, _t.ordinal)
)


def of_segment(
    connection: Connection, key: int, segment: Segment, closed: int, *, thinking: bool
) -> Iterator[PlainRows | StoredRow]:
    """Yield the messages of a range, the long runs of plain ones up to ``closed`` by column."""
    start = segment.first
    old = Segment(segment.branch, start, min(segment.last, closed))
    rows = _columns(connection, key, old) if old.last - start + 1 >= FEW else None
    if rows is not None:
        for run in _runs(rows):
            found = _with_thoughts(connection, key, segment.branch, run) if thinking else (run,)
            for part in found:
                between = Segment(segment.branch, start, part.position - 1)
                yield from _each(connection, key, between, thinking=thinking)
                yield part
                start = part.position + len(part.texts)
    # What is not whole is refused there, by its position.
    rest = Segment(segment.branch, start, segment.last)
    yield from _each(connection, key, rest, thinking=thinking)


def _each(
    connection: Connection, key: int, part: Segment, *, thinking: bool
) -> Sequence[StoredRow]:
    if part.first > part.last:
        return ()
    return reading.of_segments(connection, key, [part], thinking=thinking)


def _columns(connection: Connection, key: int, part: Segment) -> PlainRows | None:
    """Return a range by column, whatever stands in it; None where a part of it is no good."""
    span = reading.params(key, part)
    heads = _HEADS.rows(connection, span)
    if not heads:
        return None
    roles, made, visible, tokens, exactness, marks = zip(*heads, strict=True)
    if not _has_runs(roles):
        return None  # as where tools are called in every turn: nothing else need be read
    texts = [text for (text,) in _TEXTS.rows(connection, span)]
    if not len(heads) == len(texts) == part.last - part.first + 1:
        return None
    makers = interning.all_of(connection, key)
    if not makers.keys() >= {*made} - {None} or not _EXACTNESSES.issuperset(exactness):
        return None
    # A mark is [[place,tokens,flags,"field"]]; beside one text the place has one digit.
    kinds = [
        None if mark is None else (origin, mark[2:3], mark[mark.find(",", 4) :])
        for origin, mark in zip(made, marks, strict=True)
    ]
    return PlainRows(
        position=part.first,
        roles=roles,
        texts=texts,
        origins=made,
        makers=makers,
        visible=visible,
        exactness=[EXACTNESS[number] for number in exactness],
        thinking=tokens,
        kinds=kinds,
        shapes={kind: _shape(kind) for kind in {*kinds} if kind is not None},
        thoughts=None,
    )


def _has_runs(roles: Sequence[object]) -> bool:
    """Whether enough messages stand behind one another that may be plain."""
    end = -1
    try:
        while True:
            start, end = end + 1, roles.index(None, end + 1)
            if end - start >= FEW:
                return True
    except ValueError:
        return len(roles) - (end + 1) >= FEW


def _shape(kind: Key) -> Shape | None:
    """Return what a kind of thoughts is like; None where its messages have several."""
    _, place, rest = kind
    try:
        ((_, _, flags, field),) = parsed(f"[[{place},0{rest}")
        return Shape.of(int(place), 0, flags, field)
    except (CorruptRow, *UNREADABLE):
        return None


def _runs(rows: PlainRows) -> Iterator[PlainRows]:
    """Yield the long runs of plain messages."""
    several = {kind for kind, shape in rows.shapes.items() if shape is None}
    odd: list[int] = []
    if None in rows.texts or "" in rows.texts or None in rows.roles or several:
        odd = [
            number
            for number, (role, text, kind) in enumerate(
                zip(rows.roles, rows.texts, rows.kinds, strict=True)
            )
            if not text or role is None or kind in several
        ]
    yield from _between(rows, odd)


def _between(rows: PlainRows, odd: Sequence[int]) -> Iterator[PlainRows]:
    """Yield what is long enough between some messages of a run."""
    start = 0
    for end in (*odd, len(rows.texts)):
        if end - start >= FEW:
            yield rows if end - start == len(rows.texts) else _part(rows, start, end)
        start = end + 1


def _part(rows: PlainRows, first: int, last: int) -> PlainRows:
    kinds = rows.kinds[first:last]
    return PlainRows(
        position=rows.position + first,
        roles=rows.roles[first:last],
        texts=rows.texts[first:last],
        origins=rows.origins[first:last],
        makers=rows.makers,
        visible=rows.visible[first:last],
        exactness=rows.exactness[first:last],
        thinking=rows.thinking[first:last],
        kinds=kinds,
        shapes={kind: rows.shapes[kind] for kind in {*kinds} if kind is not None},
        thoughts=None if rows.thoughts is None else rows.thoughts[first:last],
        seals=None if rows.seals is None else rows.seals[first:last],
    )


def _with_thoughts(
    connection: Connection, key: int, branch: int, rows: PlainRows
) -> Iterator[PlainRows]:
    """Yield a run with what was thought, in parts where that is more than words and a seal."""
    part = Segment(branch, rows.position, rows.position + len(rows.texts) - 1)
    signed = {kind for kind, shape in rows.shapes.items() if shape is not None and shape.signed}
    found = (_SIGNED if signed else _THOUGHTS).rows(connection, reading.params(key, part))
    if len(found) != len(rows.kinds) - rows.kinds.count(None):
        return
    due = iter(found)
    seals: list[str | None] | None = None
    if signed:
        both = [
            _NO_THOUGHT if kind is None else _in_plain(kind in signed, *next(due))
            for kind in rows.kinds
        ]
        thoughts, seals = map(list, zip(*both, strict=True))
    else:
        thoughts = [None if kind is None else next(due)[0] for kind in rows.kinds]
    odd: list[int] = []
    if "" in thoughts or thoughts.count(None) > rows.kinds.count(None):
        pairs = zip(rows.kinds, thoughts, strict=True)
        odd = [at for at, (kind, thought) in enumerate(pairs) if kind is not None and not thought]
    yield from _between(replace(rows, thoughts=thoughts, seals=seals), odd)


_NO_THOUGHT = (None, None)


def _in_plain(signed: bool, thought: str | None, data: str | None) -> tuple[str | None, str | None]:
    """Return a thought and its signature; no thought where there is more to it."""
    if data is None:
        return (None if signed else thought), None
    before, behind = columns.SEAL_ALONE
    if signed and data.startswith(before) and data.endswith(behind):
        seal = data[len(before) : -len(behind)]
        if seal and '"' not in seal and "\\" not in seal:  # nothing in it is JSON's
            return thought, seal
    return _NO_THOUGHT
