"""The SQL of exports: what a session is, and its messages page by page, as lines.

A session is looked at once, whole but for its messages: that fixes how far each branch is
read, whatever is appended meanwhile. Its messages follow in pages, each of them one
snapshot of that same session; one that was erased meanwhile is exported erased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, select

from reasoning_store import codec
from reasoning_store.ledger import (
    branches,
    budget,
    compactions,
    drafts,
    erasing,
    lines,
    profiles,
    reading,
    rows,
    sessions,
)
from reasoning_store.ledger.lines import Line
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.summaries import ClearingRow, CompactionRow
from reasoning_store.ledger.tables import bodies, messages, settings_profiles
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.values import BranchRow, DraftRow, Segment

_m, _b, _p, _h = messages.c, bodies.c, settings_profiles.c, branches_table.c
_MORE = Sql(
    select(_m.position, _m.clearable, _b.sent, _m.idempotency_key, _m.batch, _m.erased_at)
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("of"))
    .where(_m.position.between(bindparam("first"), bindparam("last")))
    .where(_b.session_key == _m.session_key, _b.branch == _m.branch, _b.position == _m.position)
    .order_by(_m.position)
)
_NEXT_COMPACTIONS = Sql(
    select(_h.branch, _h.next_compaction).where(_h.session_key == bindparam("key"))
)
_OWNERS = Sql(select(_p.session_key, _p.owner).distinct().order_by(_p.session_key))


@dataclass(frozen=True, slots=True)
class Outline:
    """A session as it was at one moment, but for its messages."""

    head: Line
    parts: list[tuple[Line, BranchRow]]
    """Each branch's line, and the branch as it then was."""
    tail: list[Line]
    messages: int


def profile_lines(connection: Connection, owner: str | None) -> list[Line]:
    """Return the settings profiles of an owner, or of all."""
    owners = [rows.parsed(name) for _, name in _OWNERS.rows(connection, {})]
    return [
        lines.ProfileLine(
            owner=one, name=row.name, settings=row.settings, updated_at=row.updated_at
        )
        for one in owners
        if owner is None or one == owner
        for row in profiles.all_of(connection, one)
    ]


def owned(connection: Connection, owner: str) -> list[int]:
    """Return the keys of an owner's sessions, in the order in which exports have them."""
    return sorted(erasing.sessions_of(connection, owner))


def outline(connection: Connection, key: int) -> Outline:
    """Return what a session is at this moment."""
    found = sessions.by_key(connection, key)
    spent = budget.get(connection, key)
    lineages = branches.all_of(connection, key)
    made = dict(_NEXT_COMPACTIONS.rows(connection, {"key": key}))
    tail: list[Line] = []
    for lineage in lineages:
        tail += map(_compaction, compactions.all_of(connection, key, lineage.number))
        draft = drafts.get(connection, key, lineage.number, now=found.updated_at)
        if draft is not None and draft.parts:
            tail.append(_draft(draft))
    return Outline(
        head=lines.SessionLine(
            owner=found.owner,
            id=found.id,
            title=found.title,
            metadata=found.metadata,
            settings=found.settings,
            profile=found.profile,
            encoding=found.encoding,
            archived=found.archived,
            current_branch=found.current_branch,
            reported=spent.thought.reported,
            counted=spent.thought.counted,
            unreported=spent.thought.unreported,
            crossed=list(spent.crossed),
            created_at=found.created_at,
            updated_at=found.updated_at,
            erased_at=found.erased_at,
        ),
        parts=[
            (
                lines.BranchLine(
                    number=lineage.number,
                    parent=lineage.parent,
                    first=lineage.first,
                    next_compaction=made[lineage.number],
                    created_at=lineage.created_at,
                ),
                lineage,
            )
            for lineage in lineages
        ],
        tail=tail,
        messages=sum(lineage.next_position - lineage.first for lineage in lineages),
    )


def _compaction(row: ClearingRow) -> Line:
    summary = row if isinstance(row, CompactionRow) else None
    return lines.CompactionLine(
        branch=row.branch,
        number=row.number,
        first=row.first,
        last=row.last,
        message=None if summary is None else codec.message_to_json(summary.message),
        counts=None if summary is None else lines.counts_line(summary.counts),
        clears=summary is None,
        effective=row.effective,
        supersedes=list(row.supersedes),
        superseded_by=row.superseded_by,
        copied_from=row.copied_from,
        created_at=row.created_at,
        undone_at=row.undone_at,
    )


def _draft(row: DraftRow) -> Line:
    return lines.DraftLine(
        branch=row.branch,
        id=row.id,
        origin=None if row.origin is None else codec.origin_to_json(row.origin),
        metadata=row.metadata,
        sent=row.sent,
        repeat=row.idempotency_key,
        parts=list(row.parts),
        created_at=row.created_at,
    )


def message_lines(
    connection: Connection, key: int, lineage: BranchRow, first: int, last: int
) -> Iterator[Line]:
    """Yield the lines of messages of a branch's own; within the transaction."""
    branches.again(connection, key, lineage)  # says that the session is gone, where it is
    part = Segment(lineage.number, first, last)
    span = {"key": key, "of": part.branch, "first": part.first, "last": part.last}
    stored = reading.of_segments(connection, key, [part], thinking=True)
    for row, (_, clearable, sent, repeat, batch, erased_at) in zip(
        stored, _MORE.rows(connection, span), strict=True
    ):
        yield lines.MessageLine(
            branch=row.branch,
            position=row.position,
            id=row.id,
            created_at=row.created_at,
            message=codec.message_to_json(row.message),
            counts=lines.counts_line(replace(row.counts, clearable=clearable)),
            sent=None if sent is None else rows.parsed(sent),
            repeat=repeat,
            batch=batch,
            erased_at=erased_at,
        )
