"""Rows of an owner's sessions: whose they are, of which time, and page by page."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import bindparam

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_text
from reasoning_store.ledger.keys import owner_key
from reasoning_store.ledger.tables import sessions

HIGHEST = (1 << 63) - 1
"""The highest number of a column."""
HIGHEST_BRANCH = (1 << 31) - 1
OF_OWNER = (
    sessions.c.owner_key == bindparam("owner_key"),
    sessions.c.owner == bindparam("owner"),
)
"""The condition that a session is its owner's; the key alone may be another owner's, too."""
_CURSOR = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})*")


def owner_params(owner: str) -> dict[str, Any]:
    """Return the parameters of ``OF_OWNER``."""
    return {"owner_key": owner_key(owner), "owner": owner}


def time_params(since: int | None, until: int | None) -> dict[str, int]:
    """Return the ends of a span of time; None is no end."""
    return {
        "since": -HIGHEST if since is None else since,
        "until": HIGHEST if until is None else until,
    }


def read_cursor(after: str | None, rows: str, highest: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place after which a page begins: that of a ``.next``, or the highest."""
    if after is None:
        return highest
    is_cursor = _CURSOR.fullmatch(check_text("after", after))
    place = tuple(map(int, after.split("."))) if is_cursor else ()
    if len(place) != len(highest) or any(
        abs(number) > most for number, most in zip(place, highest, strict=True)
    ):
        raise InvalidCall(f"after: not the .next of a page of {rows}", hint="after=page.next")
    return place


def write_cursor(place: tuple[int, ...]) -> str:
    """Return the ``.next`` of a page that ends at a place."""
    return ".".join(map(str, place))
