"""What is read: a history, what the next request counts, and the request."""

from __future__ import annotations

from benchmarks import floors, ours, rivals, searching
from benchmarks.table import who
from benchmarks.workload import BEST, CLASS, FLOOR, OBJECTS, Bound, Workload

RECOUNTING = "counting again"
_LENGTHS = (10, 1_000, 10_000, 100_000)
_JUDGED = 10_000
_REQUESTS = (10, 100, 1_000, 10_000)


def _request(name: str, title: str, *, thinking: bool, at_most: float) -> Workload:
    return Workload(
        name=f"request-{name}",
        title=f"a request, {title}",
        of="messages",
        promise="request of 1 000 messages",
        sizes=_REQUESTS,
        judged=1_000,
        growth="linear",
        bounds=(Bound(at_most, BEST),),
        contenders=(
            who.ours(ours.request(thinking=thinking)),
            who.floor(floors.request(thinking=thinking)),
            *rivals.contenders(rivals.load_and_dump, rivals.OF_AGENTS, only_at=1_000),
            who.other("ours, written as JSON", ours.request(thinking=thinking, dump=True), 1_000),
            *(
                who.other(rivals.without_json(one.name), one.prepare, 1_000)
                for one in rivals.contenders(rivals.load, rivals.OF_AGENTS)
            ),
        ),
    )


_REQUEST_SIGNED = Workload(
    name="request-signed",
    title="a request, signed thinking kept",
    of="messages",
    sizes=_REQUESTS,
    judged=1_000,
    growth="linear",
    contenders=(
        who.ours(ours.request_signed()),
        who.floor(floors.request_signed()),
        who.other("ours, written as JSON", ours.request_signed(dump=True), 1_000),
    ),
)


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="load",
        title="a history loaded whole",
        of="messages",
        promise="load 10 000 messages",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="linear",
        bounds=(Bound(1.5, FLOOR), Bound(1.2, OBJECTS), Bound(0.9, BEST)),
        contenders=(
            who.ours(ours.history),
            who.floor(floors.load(thinking=True)),
            who.bare(OBJECTS, floors.load(thinking=True, objects=True)),
            *rivals.contenders(rivals.load, only_at=_JUDGED),
        ),
    ),
    Workload(
        name="load-stripped",
        title="a history loaded without its thinking",
        of="messages",
        promise="load 10 000 messages, stripped",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="linear",
        bounds=(Bound(1.5, FLOOR), Bound(1.2, OBJECTS), Bound(0.5, BEST)),
        contenders=(
            who.ours(ours.history_stripped),
            who.floor(floors.load(thinking=False)),
            who.bare(OBJECTS, floors.load(thinking=False, objects=True)),
            *rivals.contenders(rivals.load, only_at=_JUDGED),
        ),
    ),
    Workload(
        name="usage",
        title="context usage, one of 16 policies",
        of="messages",
        promise="context usage, any policy",
        sizes=(10, 100, 1_000, 10_000),
        judged=1_000,
        growth="linear",
        bounds=(Bound(0.003, CLASS),),
        contenders=(
            who.ours(ours.usage),
            who.floor(floors.usage),
            who.other(RECOUNTING, floors.recount, 1_000),
        ),
    ),
    Workload(
        name="search",
        title="four searches, the index warm",
        of="messages",
        promise="`search` in 100 000 messages",
        sizes=(1_000, 100_000),
        rounds=(3, 15),
        bounds=(Bound(4 * 0.050, CLASS),),
        contenders=(who.ours(searching.ours), who.floor(searching.floor)),
        smoke=(10,),
    ),
    _request("stripped", "thinking stripped", thinking=False, at_most=0.8),
    _request("kept", "thinking kept", thinking=True, at_most=1.0),
    _REQUEST_SIGNED,
)
