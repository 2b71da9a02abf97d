"""kill -9 of a PostgreSQL server under load: its clients ask again, and each turn is there once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import reasoning_store as rs
from reasoning_store.testing import stream

from . import programs
from .processes import crowd
from .server import Server, server
from .whole import check_whole

WRITERS = 4


@pytest.mark.long
@pytest.mark.parametrize("crash", [Server.kill, Server.stop_at_once], ids=["kill", "immediate"])
def test_a_server_that_crashes_loses_and_repeats_nothing(crash: Callable[[Server], None]) -> None:
    """Five times; what was acknowledged stands where it was told."""
    turns = 240
    with server() as own:
        url = own.url.render_as_string(hide_password=False)
        with rs.Store(url) as store:
            store.session("s", create=True)
        each = [(url, f"w{n}", turns) for n in range(WRITERS)]
        with crowd(programs.append_in_spite_of_all, each) as children:
            for _ in range(5):
                children[0].hear_until("stored", 30)
                crash(own)
                own.start()
            told = [child.finish() for child in children]

        with rs.Store(url) as store:
            there = store.session("s").history()
        assert [item.position for item in there] == list(range(1, 2 * WRITERS * turns + 1))
        for writer, lines in enumerate(told):
            stored = [line[1:] for line in lines if line[0] == "stored"]
            assert [number for number, _ in stored] == list(range(turns))
            assert [positions for _, positions in stored] == sorted(p for _, p in stored)
            for number, (first, second) in stored:
                assert there[first - 1].message == rs.user(f"w{writer} {number}")
                assert there[second - 1].message == programs.turn(number)[1]
        check_whole(url)


@pytest.mark.long
def test_a_reply_that_ends_while_the_server_is_down_is_saved_when_it_is_back() -> None:
    """Whole, as itself, once, and without its draft next to it."""
    whole = rs.assistant("It is 4 C in Oslo.")
    with server() as own:
        url = own.url.set(query={**own.url.query, "retry_seconds": "0"})
        with rs.Store(url.render_as_string(hide_password=False)) as store:
            session = store.session("s", create=True)
            session.append(rs.user("How is the weather in Oslo?"))
            reply = session.record(stream(whole, api="openai.chat"), idempotency_key="k")
            chunks = iter(reply)
            next(chunks)
            own.kill()
            with pytest.raises(rs.StoreBusy):
                list(chunks)
            own.start()

            reply.save()
            reply.save()

            assert [item.message.text for item in session.history()[1:]] == [whole.text]
            assert session.history()[-1].message.status == "complete"
