"""Numbers of a running server, in the text format of Prometheus. No label names a conversation."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Final

_BOUNDS: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_HELP: Final = {
    "reasoning_store_requests_total": "Requests by route and status.",
    "reasoning_store_restored_total": "Replies of requests that lacked their thinking, by result.",
    "reasoning_store_store_errors_total": "Requests that went on without the store, by error.",
}
_SECONDS: Final = "reasoning_store_request_seconds"


class Metrics:
    """Counters, and how long requests take until they are answered whole."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._sums: dict[str, float] = {}
        self._numbers: Counter[str] = Counter()

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[f"reasoning_store_{name}_total", tuple(sorted(labels.items()))] += number

    def time(self, route: str, seconds: float) -> None:
        """Add the time of a request."""
        with self._lock:
            self._sums[route] = self._sums.get(route, 0.0) + seconds
            self._numbers[route] += 1
            for bound in _BOUNDS:
                if seconds <= bound:
                    self._buckets[route, bound] += 1

    def text(self) -> str:
        """Return all numbers."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, help in _HELP.items():
            yield f"# HELP {name} {help}"
            yield f"# TYPE {name} counter"
            for (counted, labels), number in sorted(self._counts.items()):
                if counted == name:
                    yield f"{name}{_labels(dict(labels))} {number}"
        yield f"# HELP {_SECONDS} Seconds until a request was answered whole."
        yield f"# TYPE {_SECONDS} histogram"
        for route, number in sorted(self._numbers.items()):
            for bound in _BOUNDS:
                found = self._buckets[route, bound]
                yield f"{_SECONDS}_bucket{_labels({'route': route, 'le': str(bound)})} {found}"
            yield f"{_SECONDS}_bucket{_labels({'route': route, 'le': '+Inf'})} {number}"
            yield f"{_SECONDS}_sum{_labels({'route': route})} {self._sums[route]:.6f}"
            yield f"{_SECONDS}_count{_labels({'route': route})} {number}"


def _labels(labels: dict[str, str]) -> str:
    pairs = (
        '{}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " "))
        for name, value in labels.items()
    )
    found = ",".join(pairs)
    return f"{{{found}}}" if found else ""
