"""A reply that another process follows: how late the slowest of a hundred chunks is.

This process records, and each chunk holds the time when it was fed, by a clock that all processes
of a machine share. The other process follows, and prints how late the 99th of a hundred came.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import reasoning_store as rs
from benchmarks.conversation import SESSION, messages
from benchmarks.process import CHECKOUT
from benchmarks.workload import Prepare, Sample, Setting

_PAUSE = 0.02
_END = "|"


def delayed(*, server: bool = False) -> Prepare:
    """Return a contender that feeds as many chunks as the size says, every 20 ms."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        at = setting.server_url if server else f"sqlite:///{setting.folder / 'chat.db'}"
        if server:
            rs.Store.upgrade(at)
        with rs.Store(at) as store:
            session = store.session(SESSION, create=True)
            asked, _ = messages()[0]
            yield lambda: _delay(session, asked, at, setting.size)

    return prepare


def _delay(session: rs.Session, asked: rs.Message, at: str, chunks: int) -> float:
    session.append(asked)
    words = [sys.executable, "-m", __name__, at]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True}
    with (
        session.record(provider="thinkers", model="thinker-1", api="openai.chat") as reply,
        subprocess.Popen(words, cwd=CHECKOUT, **pipes) as reader,
    ):
        assert reader.stdout is not None
        reply.feed(_event(reasoning_content="first"))
        reader.stdout.readline()  # it follows
        for _ in range(chunks):
            time.sleep(_PAUSE)
            reply.feed(_event(content=f"{time.monotonic()}{_END}"))
        reply.finish()
        return float(reader.stdout.readline())


def _event(**delta: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def _follow(at: str) -> None:
    """Follow the reply that is recorded, and print how late its chunks came."""
    with rs.Store(at) as store:
        follower = store.session(SESSION).follow()
        next(follower)
        print("follows", flush=True)
        late: list[float] = []
        text = ""
        for chunk in follower:
            now = time.monotonic()
            if isinstance(chunk, rs.TextChunk):
                *fed, text = (text + chunk.text).split(_END)
                late += [now - float(one) for one in fed]
        print(sorted(late)[len(late) * 99 // 100])


if __name__ == "__main__":
    _follow(sys.argv[1])
