"""What is written to a PostgreSQL server, and read from it."""

from __future__ import annotations

from benchmarks import floors, following, ours, rivals, searching
from benchmarks.table import who
from benchmarks.workload import CLASS, FLOOR, Bound, Workload

UNPREPARED = "one statement, not prepared"

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="postgres-turn",
        title="a durable turn on PostgreSQL, counted",
        of="messages before it",
        promise="PostgreSQL turn",
        sizes=(100,),
        server=True,
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        bounds=(Bound(1.2, UNPREPARED), Bound(1.0, rivals.LANGCHAIN.name)),
        contenders=(
            who.ours(ours.turn_on_server),
            who.floor(floors.server_turn(counted=True)),
            who.bare(UNPREPARED, floors.server_turn(counted=True, prepared=False)),
            who.other("one statement, nothing counted", floors.server_turn(counted=False)),
            *rivals.contenders(rivals.turn, rivals.ON_A_SERVER),
        ),
    ),
    Workload(
        name="postgres-load",
        title="a history loaded from PostgreSQL",
        of="messages",
        promise="PostgreSQL load 10 000",
        sizes=(100, 1_000, 10_000),
        growth="linear",
        server=True,
        bounds=(Bound(1.5, FLOOR), Bound(1.0, rivals.LANGCHAIN.name)),
        contenders=(
            who.ours(ours.history_on_server),
            who.floor(floors.server_load),
            *rivals.contenders(rivals.load, rivals.ON_A_SERVER),
        ),
    ),
    Workload(
        name="postgres-search",
        title="four searches on PostgreSQL, the index warm",
        of="messages",
        sizes=(1_000, 10_000),
        server=True,
        rounds=(3, 15),
        contenders=(who.ours(searching.ours_on_server), who.floor(searching.floor_on_server)),
    ),
    Workload(
        name="postgres-follow",
        title="a chunk on its way to a follower in another process on PostgreSQL, p99",
        of="chunks",
        promise="a follower in another process",
        sizes=(300,),
        server=True,
        storage="disk",
        rounds=(3, 5),
        bounds=(Bound(0.2, CLASS),),
        contenders=(who.ours(following.delayed(server=True)),),
    ),
)
