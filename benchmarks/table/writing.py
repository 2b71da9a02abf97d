"""What is written: a turn, durably or where storage costs no waiting, and by many at once."""

from __future__ import annotations

from benchmarks import deleting, floors, ours, rivals, searching
from benchmarks.rivals import SQLALCHEMY_SESSION
from benchmarks.table import who
from benchmarks.workload import Bound, Workload

BY_THREAD = "floor, by one writing thread"
_A_LAP = 30
"""Goes of eight turns until every contender's WAL has been all around once. Until then each
turn makes the file longer, which costs half as much again; a process that stays, never."""
_TURNS = rivals.contenders(rivals.turn, only_at=100)

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="turn-searched",
        title="a durable turn on SQLite after a search",
        of="messages before it",
        promise="an append costs what it did without search",
        sizes=(1_000,),
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        bounds=(Bound(1.1, "never searched"),),
        contenders=(
            who.ours(searching.turn(searched=True)),
            who.floor(floors.turn(counted=True)),
            who.other("never searched", searching.turn(searched=False)),
        ),
    ),
    Workload(
        name="turn",
        title="a durable turn, counted",
        of="messages before it",
        promise="durable turn on SQLite, counted",
        sizes=(100, 10_000),
        judged=100,
        growth="linear",
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        before=_A_LAP,
        bounds=(
            Bound(1.6, BY_THREAD),
            Bound(0.35, SQLALCHEMY_SESSION.name),
        ),
        contenders=(
            who.ours(ours.turn),
            who.floor(floors.turn(counted=True)),
            who.other(BY_THREAD, floors.turn_by_thread),
            *_TURNS,
        ),
    ),
    Workload(
        name="turn-async",
        title="a durable turn, counted, awaited",
        of="messages before it",
        sizes=(100,),
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        before=_A_LAP,
        contenders=(who.ours(ours.turn_async), who.floor(floors.turn_async), *_TURNS),
    ),
    Workload(
        name="turn-uncounted",
        title="a durable turn, its counts known",
        of="messages before it",
        sizes=(100,),
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        before=_A_LAP,
        contenders=(
            who.ours(ours.turn_counted_before),
            who.floor(floors.turn(counted=False)),
            *_TURNS,
        ),
    ),
    Workload(
        name="turn-memory",
        title="a turn where storage costs no waiting, its counts known",
        of="messages before it",
        sizes=(100, 10_000),
        growth="linear",
        repeats=20,
        contenders=(
            who.ours(ours.turn_counted_before),
            who.floor(floors.turn(counted=False)),
            *_TURNS,
        ),
    ),
    Workload(
        name="writers",
        title="a durable turn, 8 writers at once",
        of="turns a writer",
        sizes=(8,),
        storage="disk",
        rounds=(9, 25),
        before=_A_LAP // 8,
        contenders=(
            who.ours(ours.writers),
            who.floor(floors.writers),
            *rivals.contenders(rivals.writers, rivals.OF_AGENTS),
        ),
        smoke=(2,),
    ),
    Workload(
        name="delete",
        title="a conversation of one turn deleted",
        of="MB in the file",
        sizes=(1, 32, 1_000),
        growth="flat",
        storage="disk",
        repeats=8,
        rounds=(7, 15),
        contenders=(who.ours(deleting.deleted), who.floor(deleting.bare_delete)),
        smoke=(1,),
    ),
)
