"""The lines of an export: profiles, and each session as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlalchemy import Connection, bindparam, select

from reasoning_store.conversation import codec
from reasoning_store.ledger import (
    branches,
    budgets,
    decode,
    history,
    profiles,
    removal,
    sessions,
    stored_compactions,
    stored_drafts,
    withholdings,
)
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.message_columns import EXPORTED
from reasoning_store.ledger.records import DraftRow, MessagePlace, Segment
from reasoning_store.ledger.tables import (
    bodies,
    in_range,
    messages,
    of_same_message,
    range_params,
    settings_profiles,
)
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.transfer import lines
from reasoning_store.ledger.transfer.lines import Line
from reasoning_store.ledger.view_records import CompactionRow
from reasoning_store.ledger.withholdings import WithheldRow

_m, _b, _p, _h = messages.c, bodies.c, settings_profiles.c, branches_table.c
_MORE = Statement(
    select(_m.position, _m.clearable, _b.sent, *(_m[name] for name in EXPORTED))
    .where(*in_range(_m), *of_same_message(_b, _m))
    .order_by(_m.position)
)
_OF_BRANCHES = Statement(
    select(_h.branch, _h.next_compaction, _h.instead_of).where(_h.session_key == bindparam("key"))
)
_OWNERS = Statement(select(_p.session_key, _p.owner).distinct().order_by(_p.session_key))


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


def session_keys_of(connection: Connection, owner: str) -> list[int]:
    """Return the keys of an owner's sessions, in the order in which exports have them."""
    return sorted(removal.sessions_of(connection, owner))


def session_lines(connection: Connection, key: int) -> list[str]:
    """Return the lines of a session as it is at one moment."""
    return [lines.to_text(line) for line in _session_lines(connection, key)]


def _session_lines(connection: Connection, key: int) -> Iterator[Line]:
    session_row = sessions.by_key(connection, key)
    spent = budgets.get(connection, key)
    lineages = branches.all_of(connection, key)
    more = {branch: row for branch, *row in _OF_BRANCHES.rows(connection, {"key": key})}
    yield lines.SessionLine(
        owner=session_row.owner,
        id=session_row.id,
        title=session_row.title,
        metadata=session_row.metadata,
        settings=session_row.settings,
        profile=session_row.profile,
        encoding=session_row.encoding,
        archived=session_row.archived,
        current_branch=session_row.current_branch,
        reported=spent.thought.reported,
        counted=spent.thought.counted,
        unreported=spent.thought.unreported,
        crossed=list(spent.crossed),
        created_at=session_row.created_at,
        updated_at=session_row.updated_at,
        erased_at=session_row.erased_at,
    )
    withheld: dict[MessagePlace, list[lines.WithheldEntry]] = {}
    for row in withholdings.of_session(connection, key, every=True):
        withheld.setdefault(row.place, []).append(_withheld(row))
    for lineage in lineages:
        next_compaction, instead_of = more[lineage.number]
        yield lines.BranchLine(
            number=lineage.number,
            parent=lineage.parent,
            first=lineage.first,
            next_compaction=next_compaction,
            instead_of=instead_of,
            created_at=lineage.created_at,
        )
        for part in lineage.own_messages.pages():
            yield from _messages(connection, key, part, withheld)
    for lineage in lineages:
        yield from map(_compaction, stored_compactions.all_of(connection, key, lineage.number))
        draft = stored_drafts.get(connection, key, lineage.number, now=session_row.updated_at)
        if draft is not None and draft.parts:
            yield _draft(draft)
    messages = sum(lineage.next_position - lineage.first for lineage in lineages)
    yield lines.SessionEndLine(messages=messages)


def _compaction(row: CompactionRow) -> Line:
    summary = row if row.kind == "summary" else None
    return lines.CompactionLine(
        branch=row.branch,
        number=row.number,
        first=row.first,
        last=row.last,
        message=None if summary is None else codec.message_to_json(summary.message),
        counts=None if summary is None else summary.counts,
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
        origin=None if row.origin is None else codec.to_json(row.origin),
        annotations=row.annotations,
        sent=row.request_facts,
        repeat=row.idempotency_key,
        parts=list(row.parts),
        created_at=row.created_at,
    )


def _withheld(row: WithheldRow) -> lines.WithheldEntry:
    target = row.part.target
    return lines.WithheldEntry(
        block=row.part.block,
        part=row.part.part,
        digest=row.digest.hex(),
        tokens=row.part.tokens,
        reason=row.part.reason,
        error=row.error,
        target=None if target is None else codec.to_json(target),
        created_at=row.created_at,
        undone_at=row.undone_at,
    )


def _messages(
    connection: Connection,
    key: int,
    part: Segment,
    withheld: Mapping[MessagePlace, list[lines.WithheldEntry]],
) -> Iterator[Line]:
    span = range_params(key, part)
    stored = history.of_segments(connection, key, [part], thinking=True)
    for row, (_, clearable, sent, *more) in zip(stored, _MORE.rows(connection, span), strict=True):
        yield lines.MessageLine(
            branch=row.branch,
            position=row.position,
            id=row.id,
            created_at=row.created_at,
            message=codec.message_to_json(row.message),
            counts=replace(row.counts, clearable=clearable),
            sent=None if sent is None else decode.parsed(sent),
            annotations=row.annotations,
            withheld=withheld.get(MessagePlace(row.branch, row.position), []),
            **dict(zip(EXPORTED.values(), more, strict=True)),
        )
