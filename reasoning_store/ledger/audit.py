"""The SQL of verifying: stored rows, compared with the rows that would be written now.

A message is read back, its columns are made from it anew and compared with those in its row:
digest, shape, flags, usage. The caller counts each message again, outside of the transaction.
Around the messages: lineages, gaps, origins, compactions, drafts, and rows that belong to nothing.
``audit_session`` verifies a session's own row.

Each function reads one snapshot and returns problems with their place, never with the text there.
It knows the rules of the tables, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, exists, func, select

from reasoning_store.conversation.errors import (
    CorruptRow,
    InvalidCall,
    NotFound,
    ReasoningStoreError,
)
from reasoning_store.ledger import (
    audit_session,
    branches,
    budgets,
    decode,
    encode,
    history,
    keys,
    origins,
    sessions,
    stored_compactions,
    stored_drafts,
    withholdings,
)
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.foreign_objects import foreign_names
from reasoning_store.ledger.database.statement import Statement, driver
from reasoning_store.ledger.keys import share_up_to
from reasoning_store.ledger.message_columns import CHECKED
from reasoning_store.ledger.records import (
    BranchRow,
    Count,
    NewMessage,
    Problem,
    ProblemCode,
    Segment,
    SessionRow,
    StoredRow,
    Verified,
)
from reasoning_store.ledger.searching import search_rows
from reasoning_store.ledger.tables import (
    bodies,
    in_range,
    messages,
    metadata,
    of_branch,
    of_same_message,
)
from reasoning_store.ledger.tables import drafts as drafts_table
from reasoning_store.ledger.tables import sessions as sessions_table

_m, _s, _b = messages.c, sessions_table.c, bodies.c
_AT_MOST = 100
_CLEARABLE = CHECKED.index("clearable")
_ROWS = Statement(
    select(
        _m.position,
        _m.digest,
        _b.sent,
        *(_m[name] for name in CHECKED),
    )
    .where(*in_range(_m), *of_same_message(_b, _m))
    .order_by(_m.position)
)
_EXTENTS = Statement(
    select(_m.branch, func.count(), func.min(_m.position), func.max(_m.position))
    .where(_m.session_key == bindparam("key"))
    .group_by(_m.branch)
)
_DRAFT = Statement(select(drafts_table.c.id).where(*of_branch(drafts_table.c)))
_BATCHES = Statement(
    select(_m.branch, _m.position, _m.batch)
    .where(_m.session_key == bindparam("key"), _m.idempotency_key.is_not(None))
    .order_by(_m.branch, _m.position)
)


def _strays() -> dict[tuple[str, str], Statement]:
    """For each foreign key: the rows of a table that belong to no row of another."""
    statements: dict[tuple[str, str], Statement] = {}
    for table in metadata.sorted_tables:
        for key in table.foreign_key_constraints:
            pairs = [(element.parent, element.column) for element in key.elements]
            other = key.referred_table.alias("other")
            statement = select(
                table.c.session_key,
                *(table.c[name] for name in ("branch", "position") if name in table.c),
            ).where(
                *(mine.is_not(None) for mine, _ in pairs),
                ~exists().where(*(mine == other.c[its.name] for mine, its in pairs)),
            )
            statements[table.name, key.referred_table.name] = Statement(statement.limit(_AT_MOST))
    return statements


_STRAYS = _strays()


def integrity(connection: Connection) -> list[Problem]:
    """Ask the engine itself; PostgreSQL answers only with an extension, so it is not asked."""
    if connection.dialect.name != "sqlite":
        return []
    lines = driver(connection).execute(f"PRAGMA integrity_check({_AT_MOST})").fetchall()
    return [Problem("integrity", line) for (line,) in lines if line != "ok"]


def foreign_objects(connection: Connection) -> list[Problem]:
    """Return what is in the file and not of this schema."""
    return [Problem("foreign", f"{one} is not ours") for one in foreign_names(connection)]


def strays(connection: Connection) -> list[Problem]:
    """Return rows that belong to nothing."""
    return [
        Problem("stray", f"a row of {table} without its {to}", *row)
        for (table, to), statement in _STRAYS.items()
        for row in statement.rows(connection, {})
    ]


def session(
    connection: Connection, key: int, encodings: Collection[str] | None
) -> tuple[SessionRow | None, list[BranchRow], list[Problem]]:
    """Check all of a session but its messages; return what there is to go through.

    ``encodings`` are those in which anything can be counted; None is any.
    """
    problems: list[Problem] = []

    def problem(
        code: ProblemCode, detail: str, branch: int | None = None, at: int | None = None
    ) -> None:
        problems.append(Problem(code, detail, key, branch, at))

    def attempted(branch: int | None, check: Callable[..., Any], *given: Any) -> Any:
        try:
            return check(connection, key, *given)
        except CorruptRow as error:
            problem("unreadable", str(error), branch)
        except decode.UNREADABLE as error:
            problem("unreadable", type(error).__name__, branch)
        return None

    session_row = attempted(None, sessions.by_key)
    lineages = attempted(None, branches.all_of)
    if session_row is None or lineages is None:
        return None, [], problems
    by_number = {one.number: one for one in lineages}

    for code, detail in audit_session.session(connection, key, session_row, by_number, encodings):
        problem(code, detail)
    attempted(None, budgets.get)
    attempted(None, withholdings.of_session)
    for number, origin in attempted(None, origins.texts) or ():
        if keys.origin_number(origin) != number:
            problem("origin", "an origin is not what its number is made of")

    extents = {branch: extent for branch, *extent in _EXTENTS.rows(connection, {"key": key})}
    for lineage in lineages:
        number = lineage.number
        if not _follows(lineage, by_number):
            problem("lineage", "what it shares is not what its parent has", number)
        count, first, last = extents.get(number, (0, lineage.first, lineage.next_position - 1))
        own = lineage.next_position - lineage.first
        if (count, first, last) != (own, lineage.first, lineage.next_position - 1):
            problem("gap", f"{own} messages belong here, {count} are there", number)
        attempted(number, _check_compactions, lineage, problem)
        attempted(number, _check_draft, number, problem)
    for branch, position in search_rows.misplaced_entries(connection, key):
        problem("search", "an entry of the index that no message is at", branch, position)
    for branch, position, batch in _BATCHES.rows(connection, {"key": key}):
        held = by_number.get(branch)
        if held is None or not batch or position + batch > held.next_position:
            problem("batch", "what its idempotency key covers is not there", branch, position)
    return session_row, lineages, problems


def _follows(lineage: BranchRow, by_number: dict[int, BranchRow]) -> bool:
    """Whether the parent of a branch has the messages that the branch shares with it."""
    shared = tuple(one for one in lineage.segments if one.branch != lineage.number)
    if lineage.parent is None:
        return lineage.first == 1 and not shared
    parent = by_number.get(lineage.parent)
    return (
        parent is not None
        and parent.number < lineage.number
        and lineage.first <= parent.next_position
        and shared == branches.segments_upto(parent.segments, lineage.first - 1)
    )


def _check_draft(
    connection: Connection, key: int, branch: int, problem: Callable[[ProblemCode, str, int], None]
) -> None:
    live = stored_drafts.get(connection, key, branch, now=0)
    if live is None and _DRAFT.rows(connection, {"key": key, "of": branch}):
        problem("stray", "a row of drafts that its branch does not name", branch)


def _check_compactions(
    connection: Connection,
    key: int,
    lineage: BranchRow,
    problem: Callable[[ProblemCode, str, int], None],
) -> None:
    every = stored_compactions.all_of(connection, key, lineage.number)
    following = lineage.next_compaction
    if following <= max([one.number for one in every], default=0):
        problem("compaction", f"number {following}, the next one, is there", lineage.number)
    for number, what in stored_compactions.placement_problems(every, lineage.next_position):
        problem("compaction", f"number {number} {what}", lineage.number)


def messages_of(
    connection: Connection, key: int, was: BranchRow, part: Segment
) -> tuple[list[Problem], str, dict[int, NewMessage]]:
    """Check messages of a branch's own; NotFound where they were erased since it was read.

    Returns their problems, and the encoding in which each message was counted.
    """
    branch, first, last = part.branch, part.first, part.last
    encoding = branches.reread(connection, key, was).encoding
    counted: dict[int, NewMessage] = {}
    stored = {
        row[0]: row[1:]
        for row in _ROWS.rows(connection, {"key": key, "of": branch, "first": first, "last": last})
    }
    indexed = search_rows.entries_in(connection, key, branch, first, last)
    whose = search_rows.owner_of(connection, key)
    withheld = [
        (row.place, row.part.block) for row in withholdings.of_session(connection, key, every=True)
    ]
    problems: list[Problem] = []
    for row in history.of_segments(connection, key, [Segment(branch, first, last)], thinking=True):
        position = row.position
        place = (key, branch, position)
        if position not in stored:
            problems.append(Problem("unreadable", "an index does not lead to it", *place))
            continue
        digest, sent, *written = stored[position]
        try:
            made = _encode_again(row, sent, written[_CLEARABLE])
        except (CorruptRow, InvalidCall, *decode.UNREADABLE) as error:
            ours = isinstance(error, ReasoningStoreError)
            detail = str(error) if ours else type(error).__name__
            problems.append(Problem("unreadable", detail, *place))
            continue
        counted[position] = made.entry
        if any(
            held == (branch, position) and block >= len(row.message.blocks)
            for held, block in withheld
        ):
            problems.append(Problem("stray", "a block that is left out is not there", *place))
        if made.columns["digest"] != digest:
            problems.append(Problem("digest", "the message is not the one written", *place))
        if not all(
            search_rows.is_entry_of(made.entry.message, whose, kind, words)
            for kind, words in indexed.get(position, {}).items()
        ):
            problems.append(Problem("search", "its entry in the index is not of it", *place))
        wrong = [
            name
            for name, value in zip(CHECKED, written, strict=True)
            if made.columns[name] != value
        ]
        if not encode.may_free(made.entry.message, made.entry.counts):
            wrong.append("clearable")
        if wrong and made.columns["digest"] == digest:
            problems.append(Problem("columns", f"not as written: {', '.join(wrong)}", *place))
    return problems, encoding, counted


def _is_counted(entry: NewMessage, encoding: str, count: Count) -> bool:
    """Whether a message counts what its row has; an estimate may differ each time."""
    if entry.counts.exactness == "estimated":
        return True
    again = count(entry.message, encoding)
    return again == entry.counts or again.exactness == "estimated"


def _encode_again(row: StoredRow, sent: str | None, clearable: int) -> encode.EncodedMessage:
    """Return a message as it would be written now."""
    counts = replace(row.counts, clearable=clearable)
    entry = NewMessage(row.message, counts, None if sent is None else decode.parsed(sent))
    return encode.encode_message(entry, id=row.id, created_at=row.created_at)


class Audit:
    """The check of stored rows against the messages that were written."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def verify(
        self,
        *,
        encodings: Collection[str] | None = None,
        count: Count | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Verified:
        """Go through every session, and the database itself.

        ``encodings`` are those in which the caller can count; without them any name is one.
        ``count`` counts each message again; without it counts are not compared.
        """
        problems = [
            *self._tried("integrity", integrity),
            *self._tried("foreign", foreign_objects),
            *self._tried("unreadable", audit_session.profiles),
            *self._tried("stray", strays),
        ]
        sessions_read = total = 0
        after = -1
        while True:
            try:
                keys = self._database.read_one(sessions.some_keys, after=after)
            except CorruptRow as error:
                problems.append(Problem("unreadable", str(error)))
                break
            for key in keys:
                try:
                    messages, found = self._verify_session(key, encodings, count)
                except NotFound:
                    continue  # erased meanwhile
                sessions_read += 1
                total += messages
                problems += found
                if progress is not None:
                    progress(share_up_to(key))
            if not keys:
                break
            after = keys[-1]
        return Verified(sessions_read, total, tuple(problems), self._database.unerased())

    def _verify_session(
        self, key: int, encodings: Collection[str] | None, count: Count | None = None
    ) -> tuple[int, list[Problem]]:
        """Return how many messages a session has, and its problems with its name on them."""
        try:
            session_row, lineages, problems = self._database.read(session, key, encodings)
        except CorruptRow as error:
            return 0, [Problem("unreadable", str(error), key)]
        if session_row is None or not (encodings is None or session_row.encoding in encodings):
            count = None  # in an encoding that nobody knows
        messages = 0
        for lineage in lineages:
            messages += lineage.next_position - lineage.first
            for part in lineage.own_messages.pages():
                problems += self._verify_messages(key, lineage, part, count)
        if session_row is None:
            return messages, problems
        return messages, [
            replace(problem, owner=session_row.owner, session=session_row.id)
            for problem in problems
        ]

    def _verify_messages(
        self, key: int, lineage: BranchRow, part: Segment, count: Count | None
    ) -> list[Problem]:
        try:
            problems, encoding, counted = self._database.read(messages_of, key, lineage, part)
            if count is not None:
                problems += [
                    Problem("count", "it counts otherwise", key, part.branch, position)
                    for position, entry in counted.items()
                    if not _is_counted(entry, encoding, count)
                ]
            return problems
        except CorruptRow as error:
            # One by one, to know which message cannot be read, or is in a damaged page of the file.
            if part.first == part.last:
                return [Problem("unreadable", str(error), key, part.branch, part.first)]
        problems = []
        for position in range(part.first, part.last + 1):
            one = Segment(part.branch, position, position)
            problems += self._verify_messages(key, lineage, one, count)
        return problems

    def _tried(
        self, code: ProblemCode, work: Callable[[Connection], list[Problem]]
    ) -> list[Problem]:
        try:
            return self._database.read_alone(work)
        except CorruptRow as error:
            return [Problem(code, str(error))]
