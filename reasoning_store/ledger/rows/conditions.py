"""The conditions that name rows by their key; a statement takes its values as parameters."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, bindparam, literal_column

from reasoning_store.ledger.records import Segment


def of_branch(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is of the branch ``of`` of the session ``key``."""
    return columns.session_key == bindparam("key"), columns.branch == bindparam("of")


def at_position(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is the branch's own at the position ``at``."""
    return *of_branch(columns), columns.position == bindparam("at")


def in_range(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is the branch's own from ``first`` to ``last``."""
    return *of_branch(columns), columns.position.between(bindparam("first"), bindparam("last"))


def range_params(key: int, part: Segment) -> dict[str, Any]:
    """Return the parameters of ``in_range``."""
    return {"key": key, "of": part.branch, "first": part.first, "last": part.last}


def has_flag(columns: Any, flags: int) -> ColumnElement[bool]:
    """Return the condition that a message has one of these flags (``message_flags``)."""
    found = columns.flags.op("&")(literal_column(str(flags))) != literal_column("0")
    return found  # type: ignore[no-any-return]


def of_same_message(columns: Any, others: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that the rows of two tables are of one message."""
    return (
        columns.session_key == others.session_key,
        columns.branch == others.branch,
        columns.position == others.position,
    )
