"""The SQL of reports: what was used, summed over the narrow rows.

Everything is a sum over ``messages``: the numbers that a provider reported, and the tokens
that were counted here. No body and no thinking is read. A message that several branches
share is one row, and counts once; one that was erased counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, and_, bindparam, case, func, literal_column, select

from reasoning_store import codec
from reasoning_store.errors import UsageError
from reasoning_store.ledger.keys import owner_key
from reasoning_store.ledger.rows import parsed
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import messages, origins, sessions
from reasoning_store.ledger.values import MOST, ReportRow

By: TypeAlias = Literal["session", "owner", "model", "day"]

_m, _s, _o = messages.c, sessions.c, origins.c
_DAY = 86_400_000_000
_EVER = MOST + 1
_FIRST_OF_1970 = date(1970, 1, 1).toordinal()
_SUMS = (
    func.coalesce(func.sum(_m.input), 0),
    func.coalesce(func.sum(_m.output), 0),
    func.coalesce(func.sum(_m.reasoning), 0),
    func.coalesce(func.sum(_m.cached), 0),
    func.coalesce(func.sum(_m.visible + _m.thinking), 0),
    func.count(
        case(
            (
                and_(
                    _m.role == "assistant",
                    _m.status != "erased",
                    _m.input.is_(None),
                    _m.output.is_(None),
                    _m.reasoning.is_(None),
                    _m.cached.is_(None),
                ),
                1,
            )
        )
    ),
)
_OF_SESSION = _m.session_key == _s.session_key
# Rounded down before 1970 too: both engines round towards zero.
_NUMBER_OF_DAY: Any = literal_column(
    f"(messages.created_at - (messages.created_at % {_DAY} + {_DAY}) % {_DAY}) / {_DAY}"
)
_GROUPS: dict[str, tuple[Any, ...]] = {
    "session": (_s.owner, _s.id),
    "owner": (_s.owner,),
    "model": (_o.origin,),
    "day": (_NUMBER_OF_DAY,),
}


def _statement(by: str, *, whose: bool) -> Sql:
    made = select(*_GROUPS[by], *_SUMS).select_from(
        messages.join(sessions, _OF_SESSION).outerjoin(
            origins, and_(_o.session_key == _m.session_key, _o.number == _m.origin)
        )
        if by == "model"
        else messages.join(sessions, _OF_SESSION)
    )
    made = made.where(_m.created_at >= bindparam("since"), _m.created_at < bindparam("until"))
    if whose:
        made = made.where(_s.owner_key == bindparam("owner_key"), _s.owner == bindparam("owner"))
    return Sql(made.group_by(*_GROUPS[by]))


_WHOLE = {by: (_statement(by, whose=False), _statement(by, whose=True)) for by in _GROUPS}


def report(
    connection: Connection, by: By, *, since: int | None, until: int | None, owner: str | None
) -> list[ReportRow]:
    """Return the sums of each group, in order; of one owner, or of all."""
    if not isinstance(by, str) or by not in _GROUPS:
        raise UsageError(f"by: one of {', '.join(_GROUPS)}", hint='as in report(by="model")')
    params: dict[str, Any] = {
        "since": -_EVER if since is None else max(since, -_EVER),
        "until": _EVER if until is None else min(until, _EVER),
    }
    every, owned = _WHOLE[by]
    if owner is None:
        found = every.rows(connection, params)
    else:
        params |= {"owner_key": owner_key(owner), "owner": codec.dumps(owner)}
        found = owned.rows(connection, params)
    # Several rows can be one group: a model that was reached under two addresses.
    sums: dict[tuple[str | None, ...], list[int]] = {}
    for row in found:
        group = _group(by, row[: -len(_SUMS)])
        numbers = [int(number) for number in row[-len(_SUMS) :]]
        before = sums.get(group)
        sums[group] = numbers if before is None else [*map(sum, zip(before, numbers, strict=True))]
    return [
        _row(by, group, sums[group])
        for group in sorted(sums, key=lambda group: [(part is not None, part) for part in group])
    ]


_NUMBERS = ("input", "output", "reasoning", "cached", "counted", "unreported")


def _group(by: By, found: Sequence[Any]) -> tuple[str | None, ...]:
    if by == "day":
        ordinal = min(max(_FIRST_OF_1970 + found[0], 1), date.max.toordinal())
        return (date.fromordinal(ordinal).isoformat(),)
    if by == "model":
        return (parsed(found[0]).get("model") if found[0] is not None else None,)
    return tuple(parsed(name) for name in found)


def _row(by: By, group: tuple[str | None, ...], numbers: list[int]) -> ReportRow:
    names = ("owner", "session") if by == "session" else (by,)
    fields: dict[str, Any] = dict(zip((*names, *_NUMBERS), (*group, *numbers), strict=True))
    return ReportRow(**fields)
