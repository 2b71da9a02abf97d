"""The log of a server: one line of JSON a request, without text, keys, tokens or queries."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Mapping
from typing import Any, Final

from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reasoning_store.integrations.exchange import (
    ERROR_HEADER,
    RESTORED_HEADER,
    SESSION_HEADER,
)
from reasoning_store.server.metrics import Metrics

log: Final = logging.getLogger("reasoning_store.server")
_REPORTED: Final = {
    SESSION_HEADER.lower().encode(): "session",
    RESTORED_HEADER.lower().encode(): "restored",
    ERROR_HEADER.lower().encode(): "storeError",
}


class Journal:
    """Logs and counts each request, from its response's own headers."""

    def __init__(
        self, app: ASGIApp, metrics: Mapping[str | None, Metrics], routes: list[BaseRoute]
    ) -> None:
        """``metrics`` has the numbers of each owner, and under ``None`` all."""
        self._app = app
        self._metrics = metrics
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        entry: dict[str, Any] = {
            "method": scope["method"],
            "route": self._route(scope),
            "status": 0,
        }

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
                for name, value in message.get("headers", ()):
                    if (key := _REPORTED.get(name.lower())) is not None:
                        entry[key] = value.decode("latin-1")
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:
            entry["fault"] = fault_of(error)
            entry["status"] = entry["status"] or 500
            raise
        finally:
            seconds = time.perf_counter() - begun
            entry["milliseconds"] = round(seconds * 1000, 1)
            owner = scope.get("state", {}).get("owner_name")
            for metrics in {self._metrics[None], self._metrics[owner]}:
                _count(metrics, entry, seconds)
            log.info(json.dumps(entry))

    def _route(self, scope: Scope) -> str:
        """Return the template of a route: a path may hold the id of a conversation."""
        for route in self._routes:
            match, _ = route.matches(scope)
            if match is not Match.NONE:
                return str(getattr(route, "path", "mounted"))
        return "unknown"


def _count(metrics: Metrics, entry: dict[str, Any], seconds: float) -> None:
    route = entry["route"]
    metrics.count("requests", route=route, status=str(entry["status"]))
    metrics.time(route, seconds)
    if "storeError" in entry:
        metrics.count("store_errors", error=entry["storeError"])
    if "restored" in entry:
        share, *others = entry["restored"].split("; ")
        counts = {"missed": "0", "left_out": "0", **dict(one.split("=") for one in others)}
        counts["restored"] = share.partition("/")[0]
        for result, count in counts.items():
            metrics.count("restored", int(count.partition(" ")[0]), result=result)


def fault_of(error: BaseException) -> str:
    """Return the kind and the place of an error, whose text may quote a conversation."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {last.filename}:{last.lineno}"


def log_to_stderr() -> None:
    """Write the log of this server to standard error, and nothing of others'."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
