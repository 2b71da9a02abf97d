"""What a gateway adds to a streamed reply."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import serving
from benchmarks.table import who
from benchmarks.workload import CLASS, Bound, Prepare, Workload

LITELLM = "LiteLLM's proxy"
BARE = "a bare proxy"


def _workload(
    name: str,
    title: str,
    of: str,
    size: int,
    timed: Callable[[serving.Gateway], Prepare],
    *bounds: Bound,
) -> Workload:
    return Workload(
        name=name,
        title=title,
        of=of,
        promise="gateway",
        sizes=(size,),
        storage="disk",
        rounds=(7, 7),
        bounds=bounds,
        contenders=(
            who.ours(timed(serving.ours)),
            who.floor(timed(serving.direct)),
            who.bare(BARE, timed(serving.bare)),
            *who.if_installed("litellm", LITELLM, lambda: timed(serving.litellm)),
        ),
    )


# A class is met by up to one and a half times its figure.
WORKLOADS: tuple[Workload, ...] = (
    _workload(
        "gateway-chunk",
        "a chunk on its way through the gateway, p99",
        "chunks",
        1_000,
        serving.chunk_delay,
        Bound(0.002 / 1.5, CLASS),
        Bound(2.0, BARE),
        Bound(0.2, LITELLM),
    ),
    _workload(
        "gateway-first",
        "a request and its first byte through the gateway",
        "requests",
        20,
        serving.first_byte,
        Bound(0.005 / 1.5, CLASS),
    ),
)
