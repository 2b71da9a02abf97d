"""The lines of an export: a session as it is at one moment, and its messages page by page."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, select

from reasoning_store.conversation import codec
from reasoning_store.ledger import branches, budgets, history, profiles, sessions
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.message_columns import EXPORTED
from reasoning_store.ledger.records import (
    BranchRow,
    DraftRow,
    Segment,
)
from reasoning_store.ledger.rows import compaction_rows, decode, draft_rows, erasure_rows
from reasoning_store.ledger.tables import (
    bodies,
    messages,
    settings_profiles,
)
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.transfer import lines
from reasoning_store.ledger.transfer.lines import Line
from reasoning_store.ledger.view_records import CompactionRow

_m, _b, _p, _h = messages.c, bodies.c, settings_profiles.c, branches_table.c
_MORE = Statement(
    select(_m.position, _m.clearable, _b.sent, *(_m[name] for name in EXPORTED))
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("of"))
    .where(_m.position.between(bindparam("first"), bindparam("last")))
    .where(_b.session_key == _m.session_key, _b.branch == _m.branch, _b.position == _m.position)
    .order_by(_m.position)
)
_NEXT_COMPACTIONS = Statement(
    select(_h.branch, _h.next_compaction).where(_h.session_key == bindparam("key"))
)
_OWNERS = Statement(select(_p.session_key, _p.owner).distinct().order_by(_p.session_key))


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
    owners = [name for _, name in _OWNERS.rows(connection, {})]
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
    return sorted(erasure_rows.sessions_of(connection, owner))


def outline(connection: Connection, key: int) -> Outline:
    """Return what a session is at this moment."""
    found = sessions.by_key(connection, key)
    spent = budgets.get(connection, key)
    lineages = branches.all_of(connection, key)
    made = dict(_NEXT_COMPACTIONS.rows(connection, {"key": key}))
    tail: list[Line] = []
    for lineage in lineages:
        tail += map(_compaction, compaction_rows.all_of(connection, key, lineage.number))
        draft = draft_rows.get(connection, key, lineage.number, now=found.updated_at)
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


def _compaction(row: CompactionRow) -> Line:
    summary = row if row.kind == "summary" else None
    return lines.CompactionLine(
        branch=row.branch,
        number=row.number,
        first=row.first,
        last=row.last,
        message=None if summary is None else codec.message_to_json(summary.message),
        counts=None if summary is None else lines.counts_line(summary.counts),
        clears=row.kind == "clearing",
        effective=row.effective,
        supersedes=list(row.supersedes),
        superseded_by=row.superseded_by,
        copied_from=row.copied_from,
        created_at=row.created_at,
        undone_at=row.undone_at,
        along=dict(row.along) or None,
    )


def _draft(row: DraftRow) -> Line:
    return lines.DraftLine(
        branch=row.branch,
        id=row.id,
        origin=None if row.origin is None else codec.origin_to_json(row.origin),
        annotations=row.annotations,
        sent=row.request_facts,
        repeat=row.idempotency_key,
        parts=list(row.parts),
        created_at=row.created_at,
    )


def message_lines(
    connection: Connection, key: int, lineage: BranchRow, first: int, last: int
) -> Iterator[Line]:
    """Yield the lines of messages of a branch's own; within the transaction."""
    part = Segment(lineage.number, first, last)
    span = {"key": key, "of": part.branch, "first": part.first, "last": part.last}
    stored = history.of_segments(connection, key, [part], thinking=True)
    for row, (_, clearable, sent, *more) in zip(stored, _MORE.rows(connection, span), strict=True):
        yield lines.MessageLine(
            branch=row.branch,
            position=row.position,
            id=row.id,
            created_at=row.created_at,
            message=codec.message_to_json(row.message),
            counts=lines.counts_line(replace(row.counts, clearable=clearable)),
            sent=None if sent is None else decode.parsed(sent),
            annotations=row.annotations,
            **dict(zip(EXPORTED.values(), more, strict=True)),
        )


def packed_session(connection: Connection, key: int) -> list[bytes]:
    """Return the lines of a session as it is at one moment, page by page and packed."""
    return [_packed(page) for page in _pages(connection, key)]


def _pages(connection: Connection, key: int) -> Iterator[list[str]]:
    whole = outline(connection, key)
    yield [lines.written(whole.head)]
    for line, lineage in whole.parts:
        yield [lines.written(line)]
        yield from _message_pages(connection, key, lineage)
    end = lines.SessionEndLine(messages=whole.messages)
    yield [lines.written(line) for line in (*whole.tail, end)]


def _message_pages(connection: Connection, key: int, lineage: BranchRow) -> Iterator[list[str]]:
    first, count = lineage.first, 1
    while first < lineage.next_position:
        last = min(first + count, lineage.next_position) - 1
        found = message_lines(connection, key, lineage, first, last)
        made = [lines.written(line) for line in found]
        yield made
        # The next page as long as this one's messages let expect.
        fitting = count * lines.CHARACTERS // sum(map(len, made))
        count = max(1, min(lines.AT_ONCE, 2 * count, fitting))
        first = last + 1


def _packed(page: list[str]) -> bytes:
    return zlib.compress("".join(page).encode(), level=1)


def unpacked(pack: bytes) -> Iterator[str]:
    """Yield the lines of a page."""
    # Not splitlines(): a text may hold other ends of lines than that of JSON lines.
    for line in zlib.decompress(pack).decode().split("\n")[:-1]:
        yield f"{line}\n"
