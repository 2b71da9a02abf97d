"""What runs in the processes that work at once. Each tells through its pipe what it was told."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import reasoning_store as rs
from reasoning_store.recording import draft_writer
from tests.durability.processes import Barrier, Connection


def question(writer: str, number: int) -> rs.Message:
    return rs.user(f"{writer} asks {number}")


def answer(writer: str, number: int) -> rs.Message:
    return rs.assistant(
        rs.ThinkingBlock(thought=f"{writer} thinks {number}. " + "x" * 200, signature=writer),
        rs.TextBlock(text=f"{writer} answers {number}"),
        origin=rs.Origin(provider="p", model=writer),
    )


def write_turns(
    tell: Connection, gate: Barrier, url: str, sessions: list[str], writer: str, turns: int
) -> None:
    """Append turns to each of the sessions in turn; tell the positions they were given."""
    with rs.Store(url) as store:
        opened = [store.session(id, create=True) for id in sessions]
        gate.wait()
        for number in range(turns):
            session = opened[number % len(opened)]
            stored = session.append(
                [question(writer, number), answer(writer, number)],
                idempotency_key=f"{writer} {number}",
            )
            tell.send(("stored", session.id, *[item.position for item in stored]))


def append_under_one_key(
    tell: Connection, gate: Barrier, url: str, threads: int, rounds: int
) -> None:
    """Append the same under the same key in many threads, round by round."""
    with rs.Store(url) as store, ThreadPoolExecutor(threads) as pool:
        session = store.session("s")

        def append(round_: int) -> tuple[str, int, bool]:
            stored = session.append(rs.user(f"once {round_}"), idempotency_key=f"k{round_}")
            return stored.id, stored.position, stored.is_new

        for round_ in range(rounds):
            gate.wait()
            for done in [pool.submit(append, round_) for _ in range(threads)]:
                tell.send(("stored", round_, *done.result()))


def submit_after(tell: Connection, gate: Barrier, url: str, after: int, text: str) -> None:
    """Append after a position, which only one can."""
    with rs.Store(url) as store:
        session = store.session("s")
        gate.wait()
        try:
            stored = session.append(rs.user(text), after=after)
        except rs.Conflict:
            tell.send(("refused",))
        else:
            tell.send(("stored", stored.position))


def record_slowly(tell: Connection, go: Connection, url: str, words: int) -> None:
    """Record a reply, a word each time that it is asked to go on; tell how it ended."""
    draft_writer.PART_SECONDS = 0.01

    def stream() -> Iterator[dict[str, Any]]:
        for word in ["<think>slow", "ly</think>", *[f"{n} " for n in range(words)]]:
            yield {"choices": [{"index": 0, "delta": {"content": word}}]}
            tell.send(("spoken", word))
            go.recv()

    with rs.Store(url) as store:
        session = store.session("s", create=True)
        try:
            with session.record(stream(), model="m") as reply:
                shown = "".join(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))
        except rs.Conflict as conflict:
            tell.send(("conflict", conflict.stored.position, conflict.stored.message.text))
        else:
            assert reply.stored is not None
            tell.send(("stored", reply.stored.position, shown))


def annotate(tell: Connection, gate: Barrier, url: str, id: str, writer: str, times: int) -> None:
    """Keep facts with a message, each under a key of its own; tell how many."""
    with rs.Store(url) as store:
        session = store.session("s")
        gate.wait()
        for number in range(times):
            session.annotate(id, {f"{writer} {number}": number})
        tell.send(("annotated", times))


def edit_shown(tell: Connection, go: Connection, url: str, id: str) -> None:
    """Edit the message that a page has shown, once it is asked to; tell on which branch."""
    with rs.Store(url) as store:
        session = store.session("s")
        tell.send(("shown", session.get(id).position))
        go.recv()
        tell.send(("edited", session.edit(id, rs.user("from a stale page")).branch))


def change_metadata(tell: Connection, gate: Barrier, url: str, writer: str, keys: int) -> None:
    """Change keys of its own in the metadata of one session, one by one."""
    with rs.Store(url) as store:
        session = store.session("s")
        gate.wait()
        for number in range(keys):
            session.update_metadata({f"{writer}.{number}": number})
        tell.send(("done", writer))


def append_until_deleted(tell: Connection, gate: Barrier, url: str, writer: str) -> None:
    """Append turns to one session until it is gone; tell after the first, and at the end."""
    with rs.Store(url) as store:
        session = store.session("s")
        gate.wait()
        number = 0
        while True:
            try:
                session.append([question(writer, number), answer(writer, number)])
            except rs.NotFound:
                tell.send(("gone", number))
                return
            if number == 0:
                tell.send(("stored", writer))
            number += 1
