"""Reports: reported tokens and counted thinking, summed over the narrow rows of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from sqlalchemy import and_, bindparam, case, func, literal_column, select

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import parsed
from reasoning_store.ledger.owners import OF_OWNER, owner_params, time_params
from reasoning_store.ledger.records import ReportRow
from reasoning_store.ledger.tables import messages, origins, sessions

By: TypeAlias = Literal["session", "owner", "model", "day"]

_m, _s, _o = messages.c, sessions.c, origins.c
_DAY = 86_400_000_000
_FIRST_OF_1970 = date(1970, 1, 1).toordinal()
_UNREPORTED = and_(_m.role == "assistant", _m.status != "erased", _m.reasoning.is_(None))
_SUMS = {
    **{
        name: func.coalesce(func.sum(_m[name]), 0)
        for name in ("input", "output", "reasoning", "cached", "cache_write")
    },
    "counted": func.coalesce(func.sum(case((_UNREPORTED, _m.thinking))), 0),
    "unreported": func.count(case((_UNREPORTED, 1))),
}
_OF_SESSION = _m.session_key == _s.session_key
# Rounded down before 1970 too: both engines round towards zero.
_NUMBER_OF_DAY: Any = literal_column(
    f"(messages.created_at - (messages.created_at % {_DAY} + {_DAY}) % {_DAY}) / {_DAY}"
)


def _day(number: int) -> str:
    return date.fromordinal(_FIRST_OF_1970 + number).isoformat()


def _model(origin: str | None) -> str | None:
    return None if origin is None else parsed(origin).get("model")


class _Group(NamedTuple):
    """One field of a row by which messages are grouped."""

    column: Any
    value: Callable[[Any], str | None]


_GROUPS = {
    "owner": _Group(_s.owner, str),
    "session": _Group(_s.id, str),
    "model": _Group(_o.origin, _model),
    "day": _Group(_NUMBER_OF_DAY, _day),
}


def fields(by: By | Sequence[By]) -> tuple[str, ...]:
    """Return the fields of a row that name its group; a session's id is its owner's own."""
    given = (by,) if isinstance(by, str) else by
    allowed = get_args(By)
    if not isinstance(given, list | tuple) or not given or any(one not in allowed for one in given):
        raise InvalidCall(
            f"by: one of {', '.join(allowed)}",
            hint='as in report(by="model"), or several: report(by=("model", "day"))',
        )
    every = [name for one in given for name in (("owner", one) if one == "session" else (one,))]
    return tuple(dict.fromkeys(every))


@lru_cache
def _statement(names: tuple[str, ...], *, whose: bool) -> Statement:
    columns = [_GROUPS[name].column for name in names]
    source = messages.join(sessions, _OF_SESSION)
    if "model" in names:
        source = source.outerjoin(
            origins, and_(_o.session_key == _m.session_key, _o.number == _m.origin)
        )
    made = select(*columns, *_SUMS.values()).select_from(source)
    made = made.where(_m.created_at >= bindparam("since"), _m.created_at < bindparam("until"))
    if whose:
        made = made.where(*OF_OWNER)
    return Statement(made.group_by(*columns))


class Reports:
    """The sums of the usage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(
        self,
        by: By | Sequence[By] = "session",
        *,
        since: int | None = None,
        until: int | None = None,
        owner: str | None = None,
    ) -> list[ReportRow]:
        """Return what was used from ``since`` on and before ``until``, group by group, in order."""
        names = fields(by)
        params: dict[str, Any] = time_params(since, until)
        if owner is not None:
            params |= owner_params(owner)
        statement = _statement(names, whose=owner is not None)
        # Several rows can be one group: a model that was reached under two addresses.
        sums: dict[tuple[str | None, ...], list[int]] = {}
        for row in self._database.read_one(statement.rows, params):
            found = zip(names, row[: len(names)], strict=True)
            group = tuple([_GROUPS[name].value(value) for name, value in found])
            before = sums.get(group, [0] * len(_SUMS))
            numbers = row[len(names) :]
            sums[group] = [int(sum(pair)) for pair in zip(before, numbers, strict=True)]
        return [
            ReportRow(**dict(zip((*names, *_SUMS), (*group, *sums[group]), strict=True)))  # type: ignore[arg-type]
            for group in sorted(
                sums, key=lambda group: [(part is not None, part) for part in group]
            )
        ]
