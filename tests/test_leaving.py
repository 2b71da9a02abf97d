"""A recording that is left: its stream is closed, and what goes on is what was under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import reasoning_store as rs


def event(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


class Mine(Exception):
    """The application's own, or its client's."""


def kept(history: list[rs.Stored]) -> list[tuple[str, str]]:
    return [(one.message.status, one.message.text) for one in history]


class Unclosable:
    """A stream that breaks after a piece, and cannot be closed then; asynchronous as well."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield event("one ")
        raise Mine

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        yield event("one ")
        raise Mine

    def close(self) -> None:
        raise OSError("the password of the connection")


_NOTES = ["the stream could not be closed: OSError"]


def test_a_stream_that_cannot_be_closed_hides_no_other_error(url: str) -> None:
    """The stream's own error goes on, under ``with`` and bare."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with (
            pytest.raises(Mine) as under_with,
            session.record(Unclosable(), model="m") as reply,
        ):
            list(reply)
        with pytest.raises(Mine) as bare:
            list(session.record(Unclosable(), model="m"))

        assert under_with.value.__notes__ == bare.value.__notes__ == _NOTES
        assert kept(session.history()) == [("interrupted", "one ")] * 2


def test_a_stream_that_cannot_be_closed_hides_no_refusal(url: str) -> None:
    """An attempt that was made before is told with the reply that was stored."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        list(session.record([event("one ")], model="m", idempotency_key="k"))
        with pytest.raises(rs.Conflict) as told:
            list(session.record(Unclosable(), model="m", idempotency_key="k"))

    assert told.value.stored.message.text == "one "
    assert told.value.__notes__ == _NOTES


def test_a_stream_that_cannot_be_closed_is_told_where_nothing_else_is_wrong(url: str) -> None:
    """Who leaves without reading it hears of it."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with pytest.raises(OSError, match="connection"), session.record(Unclosable(), model="m"):
            pass


def cancel() -> None:
    raise asyncio.CancelledError


def fail() -> None:
    raise ZeroDivisionError


def go_on() -> None:
    pass


@pytest.mark.parametrize(
    ("how", "error"),
    [(cancel, asyncio.CancelledError), (fail, ZeroDivisionError), (go_on, Mine)],
)
def test_a_stream_that_cannot_be_closed_hides_no_cancellation(
    url: str, how: Callable[[], None], error: type[BaseException]
) -> None:
    """Awaited as well: a task that was cancelled ends as cancelled."""

    async def read(session: rs.AsyncSession) -> None:
        async with session.record(Unclosable(), model="m") as reply:
            async for _ in reply:
                how()

    async def run() -> list[tuple[str, str]]:
        async with rs.AsyncStore(url) as store:
            session = await store.session("chat", create=True)
            with pytest.raises(error):
                await read(session)
            return kept(await session.history())

    assert asyncio.run(run()) == [("interrupted", "one ")]
