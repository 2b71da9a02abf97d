"""A reply in three pieces, and what another store reads of it."""

from __future__ import annotations

import reasoning_store as rs

from .recorder import event

PIECES = ("<think>Hm.</think>", "one ", "two")


def recorded(session: rs.Session) -> rs.Recording:
    return session.record(map(event, PIECES), model="m")


def kept(url: str) -> list[tuple[str, str]]:
    """Return what another store reads, once the recorder is gone."""
    with rs.Store(url) as store:
        session = store.session("chat")
        session.append(rs.user("Well?"))
        return [(one.message.status, one.message.text) for one in session.history()[:-1]]


class Mine(Exception):
    """The application's own."""


def fail() -> None:
    raise Mine
