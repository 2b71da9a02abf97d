"""The SQL of windows: the part of a history that was asked for (``windows``).

Few reads besides the window's own: the states that tell how many tokens a width has, and,
only where its sought end could part what belongs together, some messages beyond that end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from sqlalchemy import Connection

from reasoning_store.ledger import arguments, branches, reading, windows
from reasoning_store.ledger.values import BranchRow, StoredRow

Read: TypeAlias = Callable[[int, int], list[StoredRow]]
"""The messages from a position to another."""
_CONTEXT = 8
"""How many messages beyond an end are looked at first; then twice as many, and so on."""


def history(
    connection: Connection,
    key: int,
    branch: int,
    *,
    limit: int | None,
    tokens: int | None,
    before: int | None,
    after: int | None,
    thinking: bool,
) -> list[StoredRow]:
    """Return the messages between ``after`` and ``before`` that the window holds, in order."""
    given = {"limit": limit, "tokens": tokens, "before": before, "after": after}
    for what, value in given.items():
        if value is not None:
            least = 0 if what in ("limit", "tokens") else None
            arguments.number(value, what, least=least, hint=f"as in history({what}=50)")
    found, _ = branches.get(connection, key, branch)
    first = 1 if after is None else max(after + 1, 1)
    last = found.state.position if before is None else min(before - 1, found.state.position)
    width = total = max(last - first + 1, 0)
    if limit is not None:
        width = min(width, limit)
    forward = after is not None and before is None
    if tokens is not None and width:
        costs = _costs(connection, key, found, first - 1 if forward else last, forward)
        width = windows.widest(width, costs, tokens)
    read = partial(_read, connection, key, found, thinking)
    look = partial(_read, connection, key, found, False)
    grows = tokens is None
    if forward:
        cut = first + width - 1
        rows = read(first, cut)
        end = _end(cut, rows, last, look, grows=grows) if 0 < width < total else cut
        return rows + read(cut + 1, end) if end > cut else rows[: end - first + 1]
    cut = last - width
    rows = read(cut + 1, last)
    floor = partial(_floor, connection, key, found, cut, first)
    start = _start(cut, rows, floor, look, grows=grows) if 0 < width < total else cut
    return read(start + 1, cut) + rows if start < cut else rows[start - cut :]


def _read(
    connection: Connection, key: int, found: BranchRow, thinking: bool, first: int, last: int
) -> list[StoredRow]:
    segments = branches.between(found, first, last)
    return reading.of_segments(connection, key, segments, thinking=thinking)


def _costs(
    connection: Connection, key: int, found: BranchRow, named: int, forward: bool
) -> windows.Costs:
    """Return what windows of some widths hold, from the place behind or before ``named``."""
    way = 1 if forward else -1

    def costs(widths: Sequence[int]) -> list[int]:
        places = [named + way * width for width in widths]
        states = branches.states(connection, key, found, [*places, *base])
        known.update({place: windows.raw(state) for place, (state, _) in states.items()})
        base.clear()
        return [abs(known[place] - known[named]) for place in places]

    known = {found.state.position: windows.raw(found.state)}
    base = [] if named in known else [named]
    return costs


def _floor(connection: Connection, key: int, found: BranchRow, cut: int, first: int) -> int:
    """Return how far back a call is looked for: the start of the turn before the cut's."""
    for _ in range(2):
        turn = branches.states(connection, key, found, [cut])[cut][0].turn_start or 1
        cut = turn - 1
    return max(turn, first)


def _start(
    cut: int, rows: Sequence[StoredRow], floor: Callable[[], int], look: Read, *, grows: bool
) -> int:
    """Return the cut before a window that parts nothing: an earlier one if it grows."""
    links = [windows.link(row) for row in rows]
    step, lowest = _CONTEXT, 0
    while True:
        pairs = windows.ties(links)
        wanted = windows.earlier(cut, pairs) if grows else cut
        if not windows.asks_before(links, wanted):
            break
        lowest = lowest or floor()
        reach = links[0].position
        if reach <= lowest:
            break
        links = [windows.link(row) for row in look(max(lowest, reach - step), reach - 1)] + links
        step *= 2
    return wanted if grows else windows.later(cut, pairs)


def _end(cut: int, rows: Sequence[StoredRow], last: int, look: Read, *, grows: bool) -> int:
    """Return the cut behind a window that parts nothing: a later one if it grows."""
    links = [windows.link(row) for row in rows]
    step, turns = _CONTEXT, 0
    while True:
        pairs = windows.ties(links)
        wanted = windows.later(cut, pairs) if grows else cut
        reach = links[-1].position
        if turns > 1 or reach >= last or not windows.asks_behind(links, wanted):
            break
        for row in look(reach + 1, min(reach + step, last)):
            turns += row.message.starts_turn
            if turns > 1:
                break
            links.append(windows.link(row))
        step *= 2
    return wanted if grows else windows.earlier(cut, pairs)


def splits(connection: Connection, key: int, branch: int, position: int) -> bool:
    """Whether something up to a position, in its turn, is tied to something behind it."""
    found, _ = branches.get(connection, key, branch)
    branches.place(found, position)
    state = branches.states(connection, key, found, [position])[position][0]
    look = partial(_read, connection, key, found, False)
    rows = look(state.turn_start or 1, position)
    return _end(position, rows, found.state.position, look, grows=True) != position
