"""The SQL of verifying a session's own row, apart from its branches and messages.

Its reasoning budget is a sum over the rows of all branches, each counted once however many share
it. Erased reasoning stays used (``budget``), and its row no longer has its count. So after an
erasure the sums must lie between the sum of the rows that are left and the most that the erased
rows can have counted; without one they are exact.

Settings profiles belong to no session, and are verified here as well: their problems name the
owner.

One statement of sums, whatever the length of the session. Returns its problems as kind and detail;
the caller adds the session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, and_, bindparam, case, func, select

from reasoning_store.conversation.blocks import MOST_TOKENS
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger import decode, keys
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import Problem, ProblemCode, SessionRow
from reasoning_store.ledger.session_pages import ARCHIVED
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import messages, settings_profiles
from reasoning_store.ledger.tables import sessions as sessions_table

Found: TypeAlias = tuple[ProblemCode, str]
"""The code of a problem, and its detail."""
_b, _m, _s, _p = branches_table.c, messages.c, sessions_table.c, settings_profiles.c
_ARCHIVED = (0, ARCHIVED)
_WAITED_FOR = select(func.max(_b.instead_of)).where(_b.session_key == bindparam("key"))
_ROW = Statement(
    select(
        _s.owner_key,
        _s.next_branch,
        _s.archived,
        func.coalesce(_WAITED_FOR.scalar_subquery(), _s.current_branch),
    ).where(_s.session_key == bindparam("key"))
)
_SPENT = Statement(
    select(_s.sum_reasoning, _s.sum_counted, _s.sum_unreported).where(
        _s.session_key == bindparam("key")
    )
)
_PROFILES = Statement(select(_p.session_key, _p.owner, _p.settings))
_PAGE = 500
_OF_REPLY = _m.role == "assistant"
_LEFT = and_(_OF_REPLY, _m.status != "erased")
_UNREPORTED = and_(_LEFT, _m.reasoning.is_(None))
_USED = Statement(
    select(
        func.coalesce(func.sum(case((_LEFT, _m.reasoning))), 0),
        func.coalesce(func.sum(case((_UNREPORTED, _m.thinking))), 0),
        func.count(case((_UNREPORTED, 1))),
        func.count(case((and_(_OF_REPLY, _m.status == "erased"), 1))),
        func.count(case((and_(_UNREPORTED, _m.erased_at.is_not(None)), 1))),
    ).where(_m.session_key == bindparam("key"))
)


def session(
    connection: Connection,
    key: int,
    row: SessionRow,
    branches: Collection[int],
    encodings: Collection[str] | None,
) -> Iterator[Found]:
    """Yield what is wrong with a session's row; ``encodings`` None is any."""
    ((owner_key, next_branch, archived, waited_for),) = _ROW.rows(connection, {"key": key})
    if keys.session_key(row.owner, row.id) != key or keys.owner_key(row.owner) != owner_key:
        yield "session", "its key is not that of its owner and id"
    if set(branches) != set(range(1, next_branch)) or not (
        {row.current_branch, waited_for} <= set(branches)
    ):
        yield "session", "its branches are not those that it has made"
    if archived not in _ARCHIVED:
        yield "session", f"archived is {archived}, and is one of {_listed(_ARCHIVED)}"
    if encodings is not None and row.encoding not in encodings:
        yield "session", f"its encoding is not known, and is one of {_listed(encodings)}"
    for name, detail in budget_problems(connection, key):
        yield "budget", f"{name} {detail}"


def budget_problems(connection: Connection, key: int) -> Iterator[tuple[str, str]]:
    """Yield which sums of a session's budget are not what its messages give."""
    (spent,) = _SPENT.rows(connection, {"key": key})
    ((*used, gone, unthought),) = _USED.rows(connection, {"key": key})
    yield from _wrong_sums(spent, [int(one) for one in used], gone, unthought)


def profiles(connection: Connection) -> list[Problem]:
    """Return the settings profiles that cannot be read back, or are not where they are sought."""
    with _PROFILES.streamed(connection, {}, _PAGE) as found:
        return [
            Problem("unreadable", "a settings profile is not as it was written", owner=row[1])
            for row in found
            if not _is_profile(*row)
        ]


def _is_profile(key: int, owner: str, settings: str) -> bool:
    try:
        return keys.owner_key(owner) == key and type(decode.parsed(settings)) is dict
    except CorruptRow:
        return False


def _listed(values: Collection[Any]) -> str:
    return ", ".join(map(str, values))


def _wrong_sums(
    spent: Sequence[int], used: Sequence[int], gone: int, unthought: int
) -> Iterator[tuple[str, str]]:
    """Yield which sums are not what the messages give.

    ``gone`` replies were erased; of ``unthought`` ones that reported nothing, the reasoning.
    """
    reported, counted, unreported = used
    # Each reply that is gone had either reported or not.
    silent = min(max(spent[2] - unreported, 0), gone)
    bounds = (
        ("sum_reasoning", reported, reported + (gone - silent) * MOST_TOKENS),
        ("sum_counted", counted, None if silent + unthought else counted),
        ("sum_unreported", unreported, unreported + gone),
    )
    for (name, least, most), value in zip(bounds, spent, strict=True):
        if value < least or (most is not None and value > most):
            if most == least:
                yield name, f"is {value}, its messages give {least}"
            else:
                to = "or more" if most is None else f"to {most}"
                yield name, f"is {value}, its messages give {least} {to}"
