"""How a store grows: the bytes of a message, and how evenly sessions lie on shards.

``python -m benchmarks.scale`` prints the tables of docs/explanation/scale.md, the placement in
seconds and the bytes, which it measures on SQLite and PostgreSQL, in a minute.
The placement is a simulation: Citus hashes the session's key again, and either hash is uniform.
"""

from __future__ import annotations

import random
import tempfile
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from pathlib import Path

from sqlalchemy import create_engine

import reasoning_store as rs
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.keys import session_key
from tests.servers import server

SESSIONS = (1_000, 10_000, 100_000)
SHARDS = (4, 8, 32, 128)
SESSIONS_OF_OWNER = 10
OWNERS, TURNS = 10_000, (100, 1_000, 10_000)
_KEYS = 1 << 63
_SEED = 23
_TYPICAL_TURNS, _SPREAD = 2.0, 1.0
"""Of the normal distribution of the logarithm of a session's turns: half have eight or more."""
QUESTION, THOUGHT, ANSWER = 200, 3_000, 1_300
"""Characters of a turn."""


def placed_turns(sessions: int, shards: int) -> list[int]:
    """Return how many turns each shard has, of sessions whose lengths differ much."""
    lengths, turns = random.Random(_SEED), [0] * shards
    for number in range(sessions):
        key = session_key(f"user-{number // SESSIONS_OF_OWNER}", f"chat-{number}")
        turns[key * shards // _KEYS] += 1 + int(lengths.lognormvariate(_TYPICAL_TURNS, _SPREAD))
    return turns


def hottest(loads: Sequence[int]) -> float:
    """Return how much more than the mean the fullest one has."""
    return max(loads) * len(loads) / sum(loads) - 1


def active_turns(owners: int, shards: int, turns: int) -> list[int]:
    """Return how many of some turns each shard gets, if the busiest owners chat the most."""
    chance = random.Random(_SEED)
    weights = [*accumulate(1 / (rank + 10) for rank in range(owners))]
    loads = [0] * shards
    for _ in range(turns):
        owner = bisect(weights, chance.random() * weights[-1])
        key = session_key(f"user-{owner}", f"chat-{chance.randrange(SESSIONS_OF_OWNER)}")
        loads[key * shards // _KEYS] += 1
    return loads


def placement_table() -> str:
    """Return the turns of the fullest shard over the mean, by sessions and shards."""
    head = ["sessions", *(f"{shards} shards" for shards in SHARDS)]
    rows = [
        [f"{sessions:,}".replace(",", " "), *(_percent(placed_turns(sessions, n)) for n in SHARDS)]
        for sessions in SESSIONS
    ]
    return _table(head, rows)


def activity_table() -> str:
    """Return the turns of the busiest shard over the mean, within a short time."""
    head = ["turns at once", *(f"{shards} shards" for shards in SHARDS)]
    rows = [
        [
            f"{turns:,}".replace(",", " "),
            *(_percent(active_turns(10_000, n, turns)) for n in SHARDS),
        ]
        for turns in (100, 1_000, 10_000)
    ]
    return _table(head, rows)


def _percent(loads: Sequence[int]) -> str:
    return f"+{100 * hottest(loads):.0f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def grown_bytes(url: str, *, turns: int = 2_000) -> Iterator[tuple[str, float]]:
    """Yield each table with its bytes a turn, its indexes counted."""
    words = random.Random(_SEED)

    def text(size: int) -> str:
        return "".join(words.choices("etaoin shrdlu cmfwyp", k=size))

    with rs.Store(url) as store:
        for number in range(turns // 20):
            session = store.for_owner(f"user-{number // 10}").session(f"c{number}", create=True)
            for _ in range(20):
                thought = rs.ThinkingBlock(thought=text(THOUGHT))
                session.append(rs.user(text(QUESTION)))
                session.append(rs.assistant(thought, text(ANSWER)))
    asked = (
        "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"
        if url.startswith("sqlite")
        else "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = 'reasoning_store'::regnamespace"
    )
    with closing(create_engine(url).raw_connection()) as raw:
        cursor = raw.cursor()
        cursor.execute(asked)
        for name, size in sorted(cursor.fetchall(), key=lambda row: -row[1]):
            yield name, float(size) / turns


def main() -> None:
    """Print every table of the page."""
    print(placement_table(), activity_table(), sep="\n\n")
    with tempfile.TemporaryDirectory() as folder:
        _print_bytes(f"sqlite:///{Path(folder) / 'chat.db'}")
    with server() as url:
        opening.upgrade(url)
        _print_bytes(url.render_as_string(hide_password=False))


def _print_bytes(url: str) -> None:
    found = [*grown_bytes(url)]
    print(f"\n{url.partition(':')[0]}: {sum(size for _, size in found):.0f} bytes a turn")
    print(*[f"{name} {size:.0f}" for name, size in found if size >= 1], sep=", ")


if __name__ == "__main__":
    main()
