"""The work of a request in a thread: written to its end, or waited for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

P = ParamSpec("P")
T = TypeVar("T")


async def run_to_end(work: Callable[..., Any], *given: Any) -> None:
    """Run a write of the store to its end, also where the client leaves meanwhile."""
    await asyncio.shield(asyncio.to_thread(work, *given))


async def run_waiting(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run work that waits for a reply in a thread that no other request needs.

    The replies that it waits for are stored by the threads that all requests share. A client that
    leaves ends its own waiting, not the work.
    """
    return await to_thread.run_sync(
        partial(work, *given, **named), limiter=CapacityLimiter(math.inf), abandon_on_cancel=True
    )
