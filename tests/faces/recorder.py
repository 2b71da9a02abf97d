"""A reply that is recorded in a thread, from a provider that the test is."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import reasoning_store as rs


def event(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def until(true: Callable[[], Any], seconds: float = 120) -> Any:
    """Wait for something to come true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it never came true")


class Provider:
    """A stream whose events come when the test sends them; None ends it."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.is_closed = threading.Event()

    def send(self, *texts: str) -> None:
        for text in texts:
            self.events.put(event(text))

    def end(self) -> None:
        self.events.put(None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.events.get, None)

    def close(self) -> None:
        self.is_closed.set()


class Recorder(threading.Thread):
    """A thread that records what a provider sends into a session."""

    def __init__(self, session: rs.Session, **options: Any) -> None:
        super().__init__(daemon=True)
        self.provider = Provider()
        self.shown: queue.SimpleQueue[rs.Chunk] = queue.SimpleQueue()
        self.reply = session.record(self.provider, model="m", **options)
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            for chunk in self.reply:
                self.shown.put(chunk)
        except BaseException as error:
            self.error = error

    def send(self, *texts: str) -> None:
        """Send texts, and wait until the recorder has shown a chunk of each."""
        self.provider.send(*texts)
        for _ in texts:
            while not isinstance(self.shown.get(timeout=120), rs.TextChunk):
                pass

    def end(self) -> None:
        self.provider.end()
        self.join(120)

    def end_when_followed(self) -> None:
        """End once a reader in another process follows."""

        def wait() -> None:
            while not self.reply._reply.draft.is_followed:
                time.sleep(0.01)
            self.provider.end()

        threading.Thread(target=wait, daemon=True).start()


def keep(recording: rs.Recording) -> None:
    """Do what the store's own thread does about once a second."""
    row = recording._reply.draft.row
    assert row is not None
    recording._reply._state.draft_writer.write_branch(row.session_key, row.branch)


def states(session: rs.Session) -> list[tuple[str, str]]:
    return [(item.message.text, item.message.status) for item in session.history()]
