"""The SQL of imports: the compactions of a branch, all at once.

They are looked at together, since what one says of the others can only be seen so; what
does not fit is refused before anything of it is written. One that is there already stays,
but that it was undone elsewhere is learnt: undoing is for good. What supersedes what follows
from all of them, so that an older export takes nothing back. A summary of what was erased
here is not brought back.

Knows rows and lines; knows no text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, update

from reasoning_store import codec
from reasoning_store.errors import Conflict, UsageError
from reasoning_store.ledger import branches, compacting, importing, ranges, rows
from reasoning_store.ledger.importing import Misfit
from reasoning_store.ledger.lines import CompactionLine
from reasoning_store.ledger.pairs import Place, holds
from reasoning_store.ledger.ranges import Placed
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import compactions
from reasoning_store.ledger.values import BranchRow

_c = compactions.c
_THESE = (_c.session_key == bindparam("key"), _c.branch == bindparam("of"))
_THERE = Sql(
    select(
        _c.number, _c.first, _c.last, _c.summary, _c.supersedes, _c.superseded_by, _c.undone_at
    ).where(*_THESE)
)
_INSERT = Sql(insert(compactions))
_SET = Sql(
    update(compactions)
    .where(*_THESE, _c.number == bindparam("this"))
    .values(superseded_by=bindparam("by"), undone_at=bindparam("undone"))
)


class Given(NamedTuple):
    """A line, and the columns of its summary."""

    line: CompactionLine
    summary: Mapping[str, Any]


def take(
    connection: Connection,
    key: int,
    branch: int,
    given: Sequence[Given],
    *,
    erased: Collection[Place],
    now: int,
) -> None:
    """Take in those of a branch; ``erased`` are messages that the lines have and that are gone."""
    compacting.lock(connection, key, branch)
    lineage, _ = branches.get(connection, key, branch)
    end = lineage.next_position
    for number, what in ranges.misplaced([_placed(one.line) for one in given], end):
        raise Misfit(number, UsageError(f"number {number} {what}"))
    there = {row[0]: row for row in _THERE.rows(connection, {"key": key, "of": branch})}
    standing = {number: _stored(row) for number, row in there.items()}
    undone_at = {number: row[-1] for number, row in there.items()}
    new: list[Given] = []
    for one in given:
        line = one.line
        if line.number in there:
            if there[line.number][1:4] != (line.first, line.last, one.summary["summary"]):
                raise Misfit(line.number, Conflict("another compaction of this number is there"))
        elif line.clears or not _holds_any(lineage, line, erased):
            _check_turns(connection, key, lineage, line)
            standing[line.number] = _placed(line)
            new.append(one)
        else:
            continue
        if undone_at.get(line.number) is None:
            undone_at[line.number] = line.undone_at
    every = [one._replace(undone=undone_at[one.number] is not None) for one in standing.values()]
    by = ranges.superseders(every)
    every = [one._replace(superseded_by=by.get(one.number)) for one in every]
    misfits = {number for number, _ in ranges.misplaced(every, end)}
    if misfits:
        # Of two that do not go together one is here, and it is the other that has a line.
        named = [one.line.number for one in (*new, *given)]
        number = next((one for one in named if one in misfits), named[0])
        raise Misfit(number, Conflict("other compactions are there"))
    _write(connection, key, branch, new, by, undone_at, now)
    this = {"key": key, "of": branch}
    _SET.many(
        connection,
        [
            {**this, "this": n, "by": by.get(n), "undone": undone_at[n]}
            for n in sorted(there)
            if (by.get(n), undone_at[n]) != there[n][-2:]
        ],
    )


def _placed(line: CompactionLine) -> Placed:
    return Placed(
        number=line.number,
        first=line.first,
        last=line.last,
        clears=line.clears,
        supersedes=tuple(line.supersedes),
        superseded_by=line.superseded_by,
        undone=line.undone_at is not None,
    )


def _stored(row: Sequence[Any]) -> Placed:
    number, first, last, summary, supersedes, by, undone_at = row
    inside = tuple(rows.parsed(supersedes))
    return Placed(number, first, last, summary is None, inside, by, undone_at is not None)


def _holds_any(lineage: BranchRow, line: CompactionLine, erased: Collection[Place]) -> bool:
    """Whether a summary was made from what was erased here."""
    return any(line.first <= place[1] <= line.last and holds(lineage, place) for place in erased)


def _check_turns(
    connection: Connection, key: int, lineage: BranchRow, line: CompactionLine
) -> None:
    """Refuse a summary of something else than whole turns.

    What began the turn behind it may be erased by now. One that a fork took along may end
    within a turn of the fork's, or where the fork has no message yet.
    """
    if line.clears:
        return
    behind = line.last + 1
    taken_along = line.copied_from is not None and behind <= lineage.first
    ends = [line.first] if taken_along else [line.first, behind]
    if ends[-1] < lineage.next_position:
        states = branches.states(connection, key, lineage, ends)
        begins = [states[at][0].turn_start == at for at in ends]
        if begins[0] and (begins[-1] or _erased(connection, key, lineage, behind)):
            return
    raise Misfit(line.number, UsageError("first, last: are not the ends of whole turns"))


def _erased(connection: Connection, key: int, lineage: BranchRow, position: int) -> bool:
    branch = branches.place(lineage, position).branch
    ((_, _, erased_at),) = importing.there(connection, key, branch, position, position).values()
    return erased_at is not None


def _write(
    connection: Connection,
    key: int,
    branch: int,
    new: Sequence[Given],
    by: Mapping[int, int],
    undone_at: Mapping[int, int | None],
    now: int,
) -> None:
    if new:
        number = max(one.line.number for one in new) + 1
        importing.NEXT_COMPACTION.run(connection, {"key": key, "of": branch, "number": number})
    _INSERT.many(
        connection,
        [
            {
                "session_key": key,
                "branch": branch,
                "number": line.number,
                "first": line.first,
                "last": line.last,
                **summary,
                "effective": line.effective,
                "supersedes": codec.dumps(line.supersedes),
                "superseded_by": by.get(line.number),
                "copied_from": line.copied_from,
                "created_at": now if line.created_at is None else line.created_at,
                "undone_at": undone_at[line.number],
            }
            for line, summary in new
        ],
    )
