"""A reply that is recorded in one process, followed and overtaken from others."""

from __future__ import annotations

import multiprocessing
import time
from itertools import pairwise

import reasoning_store as rs
from tests.durability.processes import running

from . import programs


def seen(session: rs.Session, position: int, text: str) -> rs.Message:
    """Wait until so much of a message can be read, and return what can."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            message = session.get(position).message
        except rs.NotFound:
            continue
        if message.text.startswith(text):
            return message
        assert text.startswith(message.text)
        time.sleep(0.005)
    raise AssertionError("it was never there")


def test_a_reader_in_another_process_sees_a_reply_grow_at_its_end_only(url: str) -> None:
    """Word by word, its thinking too, and then the message at the same place."""
    go, push = multiprocessing.Pipe(duplex=False)
    with (
        rs.Store(url) as store,
        running(programs.record_slowly, go, url, 6) as recorder,
    ):
        session = store.session("s", create=True)
        said, texts = "", [""]
        for _ in range(8):
            _, word = recorder.hear_until("spoken")
            said += word
            text = "".join(rs.split_reasoning(said).visible)
            message = seen(session, 1, text)
            assert message.status == "streaming"
            assert "think" not in message.text
            texts.append(message.text)
            push.send(None)
        assert recorder.hear_until("stored") == ("stored", 1, "0 1 2 3 4 5 ")
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
        kept = session.get(1).message
    push.close()
    go.close()

    assert (kept.text, kept.status) == ("0 1 2 3 4 5 ", "complete")
    assert [block.thought for block in kept.thinking] == ["slowly"]


def test_a_writer_in_another_process_ends_a_reply_and_both_learn_it(url: str) -> None:
    """What had arrived is an interrupted message; its recorder ends with a conflict."""
    go, push = multiprocessing.Pipe(duplex=False)
    with (
        rs.Store(url) as store,
        running(programs.record_slowly, go, url, 6) as recorder,
    ):
        session = store.session("s", create=True)
        for _ in range(4):
            recorder.hear_until("spoken")
            push.send(None)
        recorder.hear_until("spoken")
        seen(session, 1, "0 1 2 ")
        assert session.append(rs.user("Never mind.")).position == 2
        for _ in range(8):
            push.send(None)
        assert recorder.hear_until("conflict") == ("conflict", 1, "0 1 2 ")
        kept = [item.message for item in session.history()]
    push.close()
    go.close()

    assert [(message.text, message.status) for message in kept] == [
        ("0 1 2 ", "interrupted"),
        ("Never mind.", "complete"),
    ]
