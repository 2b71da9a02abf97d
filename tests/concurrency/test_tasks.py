"""Many tasks at once: no error of a lock, no gap, and no one waits while others go twice."""

from __future__ import annotations

import asyncio
import statistics

import pytest

import reasoning_store as rs

TASKS = 64


def texts(items: list[rs.results.Stored]) -> list[str]:
    return [item.message.text for item in items]


async def at_once(url: str, turns: int, *, own_sessions: bool) -> None:
    """Let all tasks append and read, and look at what is there."""
    async with rs.AsyncStore(url) as store:
        await store.session("s", create=True)

        async def work(number: int) -> None:
            session = await store.session(f"s{number}" if own_sessions else "s", create=True)
            for turn in range(turns):
                stored = await session.append(rs.user(f"{number} {turn}"))
                assert (await session.get(stored.position)).message == stored.message

        await asyncio.gather(*(work(number) for number in range(TASKS)))
        if own_sessions:
            for number in range(TASKS):
                session = await store.session(f"s{number}")
                assert texts(await session.history()) == [f"{number} {n}" for n in range(turns)]
        else:
            items = await (await store.session("s")).history()
            assert [item.position for item in items] == list(range(1, TASKS * turns + 1))
            for number in range(TASKS):
                mine = [text for text in texts(items) if text.startswith(f"{number} ")]
                assert mine == [f"{number} {turn}" for turn in range(turns)]


@pytest.mark.parametrize("own_sessions", [False, True], ids=["one", "many"])
def test_sixty_four_tasks_write_and_read_at_once(url: str, own_sessions: bool) -> None:
    """Into one session or each into its own: everything is there, in each task's order."""
    asyncio.run(at_once(url, 4, own_sessions=own_sessions))


def test_tasks_are_served_in_the_order_in_which_they_asked(sqlite_path: object) -> None:
    """However many wait: positions are handed out first come, first served."""

    async def main() -> list[int]:
        async with rs.AsyncStore(f"sqlite:///{sqlite_path}") as store:
            session = await store.session("s", create=True)
            tasks = [
                asyncio.create_task(session.append(rs.user(str(number)))) for number in range(500)
            ]
            return [stored.position for stored in await asyncio.gather(*tasks)]

    assert asyncio.run(main()) == list(range(1, 501))


async def turns_waited(url: str, turns: int) -> list[int]:
    """Let all tasks append again and again; return how many appends each of them waited for.

    Itself among them: what was stored between asking and being served.
    """
    waited: list[int] = []
    async with rs.AsyncStore(url) as store:
        session = await store.session("s", create=True)

        async def work(number: int) -> None:
            for turn in range(turns):
                before = len(waited)
                stored = await session.append(rs.user(f"{number} {turn}"))
                waited.append(stored.position - before)

        await asyncio.gather(*(work(number) for number in range(TASKS)))
    return waited


def test_the_slowest_of_sixty_four_tasks_waits_as_long_as_the_median(sqlite_path: object) -> None:
    """One turn of each other, in turns, since how long one takes is the machine's."""
    waited = asyncio.run(turns_waited(f"sqlite:///{sqlite_path}", 20))

    assert max(waited) == statistics.median(waited) == TASKS
