"""Several processes that serve one address: each opens the store for itself.

They take connections from one socket, which they got from the process that started them. It
starts a worker again that has died, passes the signal on that stops the server, and waits until
each has ended its replies. It takes the place of uvicorn's supervisor, whose workers outlive it if
it is killed, and which takes connections without an answer while they drain.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

from reasoning_store import InvalidCall, ReasoningStoreError
from reasoning_store.server.journal import fault_of, log

_STOPS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
_PAUSE: Final = 1.0
"""Seconds before a worker is started again: one that cannot start takes no whole processor."""


def check_workers(number: int) -> None:
    """Refuse several workers where a process cannot be forked."""
    if number > 1 and not hasattr(os, "fork"):
        raise InvalidCall(
            "--workers: this system forks no processes",
            hint="start several servers, each with a port of its own, on one database",
        )


def run_workers(
    number: int,
    work: Callable[[], None],
    *,
    on_ready: Callable[[], None],
    on_stop: Callable[[], None],
) -> None:
    """Run ``work`` in so many processes until a signal stops them; then raise the signal here.

    No connection of a database may be open: a process takes none along. ``on_stop`` is called
    before the replies under way are waited for.
    """
    alive, held = os.pipe()  # the workers read its end when this process is gone
    with _signals_held():
        workers = {_start(work, alive, held) for _ in range(number)}
        try:
            on_ready()
            stopped = _restart_until_stopped(workers, lambda: _start(work, alive, held))
        finally:
            on_stop()
            for pid in workers:
                os.kill(pid, signal.SIGTERM)
            for pid in workers:
                os.waitpid(pid, 0)
            os.close(held)
            os.close(alive)
    signal.raise_signal(stopped)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals until they are waited for, so that none comes between two steps."""
    usual = signal.signal(signal.SIGCHLD, lambda *_: None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_STOPS, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, usual)


def _restart_until_stopped(workers: set[int], start: Callable[[], int]) -> int:
    while (got := signal.sigwait({*_STOPS, signal.SIGCHLD})) == signal.SIGCHLD:
        gone = {pid for pid in workers if os.waitpid(pid, os.WNOHANG)[0]}
        if gone:
            workers -= gone
            time.sleep(_PAUSE)
            workers |= {start() for _ in gone}
    return got


def _start(work: Callable[[], None], alive: int, held: int) -> int:
    pid = os.fork()
    if pid == 0:
        _work(work, alive, held)
    return pid


def _work(work: Callable[[], None], alive: int, held: int) -> NoReturn:
    status = 1
    try:
        os.close(held)
        for number in _STOPS:  # the server sets its own, and raises them again at its end
            signal.signal(number, _stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_STOPS, signal.SIGCHLD})
        threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
        work()
    except SystemExit:
        status = 0
    except ReasoningStoreError as error:
        log.error(json.dumps({"worker": str(error)}))
    except BaseException as error:
        log.error(json.dumps({"worker": fault_of(error)}))
    finally:
        os._exit(status)


def _stop(number: int, frame: object) -> NoReturn:
    for each in _STOPS:  # one is enough: the store is being closed
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit


def _end_with_parent(alive: int) -> None:
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)
