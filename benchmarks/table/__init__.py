"""Every workload, as data: what is done, by whom, over which sizes, and what is promised.

A bound is a promise of docs/benchmarks.md; a workload without one is shown so that its cost
is known. To add a workload, add a row to the part where it belongs; the page has them in
this order.
"""

from __future__ import annotations

from benchmarks.table import on_postgres, reading, rest, serving, streams, writing
from benchmarks.workload import Workload

WORKLOADS: tuple[Workload, ...] = (
    *streams.WORKLOADS,
    *writing.WORKLOADS,
    *reading.WORKLOADS,
    *rest.WORKLOADS,
    *serving.WORKLOADS,
    *on_postgres.WORKLOADS,
)
