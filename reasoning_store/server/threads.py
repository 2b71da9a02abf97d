"""The work of a request in a thread: written to its end, waited for, or done within limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request

from reasoning_store.server.problems import Refused, problem

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


async def run_work(request: Request, work: Callable[..., T], *given: Any, **named: Any) -> T:
    """Run the work on a request, when its owner has a free place; refuse it if it takes too long.

    Work cannot be stopped: it keeps its owner's place until its end.
    """
    places: asyncio.Semaphore = request.state.places
    await places.acquire()
    running = asyncio.ensure_future(run_waiting(work, *given, **named))

    def free(ended: asyncio.Future[T]) -> None:
        places.release()
        if not ended.cancelled():
            ended.exception()  # nobody may wait for it any more

    running.add_done_callback(free)
    most = request.state.limits.work_seconds
    try:
        async with asyncio.timeout(most):
            return await asyncio.shield(running)
    except TimeoutError:
        text = f"the work on this request took more than {most:g} seconds"
        raise Refused(problem(request.url.path, 503, text, code="too_much_work")) from None
