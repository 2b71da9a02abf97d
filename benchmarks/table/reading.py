"""What is read: a history, what the next request counts, and the request."""

from __future__ import annotations

from benchmarks import floors, ours, rivals
from benchmarks.table import who
from benchmarks.workload import BEST, FLOOR, Bound, Workload

RECOUNTING = "counting again"
_LENGTHS = (10, 1_000, 10_000, 100_000)
_JUDGED = 10_000


def _request(name: str, title: str, *, thinking: bool) -> tuple[Workload, Workload]:
    cold = Workload(
        name=f"request-{name}",
        title=f"the first request after opening, {title}",
        of="messages",
        promise="request of 10 000 messages, cold",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="linear",
        bounds=(Bound(1.5, FLOOR), Bound(0.3, BEST)),
        contenders=(
            who.ours(ours.request_cold(thinking=thinking)),
            who.floor(floors.request_cold(thinking=thinking)),
            *rivals.contenders(rivals.load_and_dump, rivals.OF_AGENTS, only_at=_JUDGED),
            who.other(
                "ours, written as JSON", ours.request_cold(thinking=thinking, dump=True), _JUDGED
            ),
            *(
                who.other(rivals.without_json(one.name), one.prepare, _JUDGED)
                for one in rivals.contenders(rivals.load, rivals.OF_AGENTS)
            ),
        ),
    )
    following = Workload(
        name=f"request-next-{name}",
        title=f"the next request, one turn later, {title}",
        of="messages",
        promise="request of 10 000 messages, next one",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="flat but for the copy",
        bounds=(Bound(2.0, FLOOR),),
        repeats=8,
        contenders=(
            who.ours(ours.request_next(thinking=thinking)),
            who.floor(floors.request_next(thinking=thinking)),
        ),
    )
    return cold, following


_REQUEST_SIGNED = Workload(
    name="request-signed",
    title="the first request after opening, signed thinking kept",
    of="messages",
    promise="request of 10 000 messages, cold",
    sizes=_LENGTHS,
    judged=_JUDGED,
    growth="linear",
    bounds=(Bound(1.5, FLOOR),),
    contenders=(
        who.ours(ours.request_signed()),
        who.floor(floors.request_signed()),
        who.other("ours, written as JSON", ours.request_signed(dump=True), _JUDGED),
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
        bounds=(Bound(1.4, FLOOR), Bound(0.6, BEST)),
        contenders=(
            who.ours(ours.history),
            who.floor(floors.load(thinking=True)),
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
        bounds=(Bound(1.5, FLOOR), Bound(0.2, BEST)),
        contenders=(
            who.ours(ours.history_stripped),
            who.floor(floors.load(thinking=False)),
            *rivals.contenders(rivals.load, only_at=_JUDGED),
        ),
    ),
    Workload(
        name="usage",
        title="context usage, one of 16 policies",
        of="messages",
        promise="context usage, any policy",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="flat",
        bounds=(Bound(1 / 5_000, RECOUNTING),),
        contenders=(
            who.ours(ours.usage),
            who.floor(floors.usage),
            who.other(RECOUNTING, floors.recount, _JUDGED),
        ),
        repeats=4,
    ),
    *_request("stripped", "thinking stripped", thinking=False),
    *_request("kept", "thinking kept", thinking=True),
    _REQUEST_SIGNED,
)
