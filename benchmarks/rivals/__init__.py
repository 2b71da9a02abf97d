"""The rivals that store conversations, each behind the same four verbs.

A rival is opened on a database of its own with the settings that it ships with, and given
the same words as everybody, in the form in which its own framework hands them over. Its clock
runs inside its event loop, so that an asynchronous one does not pay for entering the loop.
Which package a rival is from, and how it is spoken to, is in the other modules here; none of
them is imported before it is asked for, and one that is not installed is left out.

It must not import what stores ours: a process that holds a rival's history imports this.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

from benchmarks.conversation import SESSION, WRITERS, Turn, turns
from benchmarks.process import resident
from benchmarks.timing import timed_awaited
from benchmarks.workload import Contender, Prepare, Sample, Setting

_POOL = 128
_BATCH = 500


class History(Protocol):
    """One conversation in a rival's store."""

    def items(self, turn: Turn) -> Sequence[Any]: ...

    async def add(self, items: Sequence[Any]) -> None: ...

    async def load(self) -> Sequence[Any]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Rival:
    """A store of another's."""

    name: str
    module: str
    """Our package that speaks to it."""
    package: str
    """What has to be installed."""
    url: str
    """Of a file; the path follows."""
    server: str | None = None
    """The driver of its PostgreSQL URL, where it has one."""

    def open(self, at: str, session: str) -> History:
        made: History = import_module(f"benchmarks.rivals.{self.module}").open(at, session)
        return made

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


SQLITE_SESSION = Rival("OpenAI Agents SQLiteSession", "agents_sqlite", "agents", "")
SQLALCHEMY_SESSION = Rival(
    "OpenAI Agents SQLAlchemySession",
    "agents_sqlalchemy",
    "agents",
    "sqlite+aiosqlite:///",
    "postgresql+asyncpg",
)
LANGCHAIN = Rival(
    "LangChain SQLChatMessageHistory",
    "langchain",
    "langchain_community",
    "sqlite:///",
    "postgresql+psycopg",
)
LLAMA_INDEX = Rival(
    "LlamaIndex SQLAlchemyChatStore", "llama_index", "llama_index", "sqlite+aiosqlite:///"
)
OF_AGENTS = (SQLITE_SESSION, SQLALCHEMY_SESSION)
STORES = (*OF_AGENTS, LANGCHAIN, LLAMA_INDEX)
ON_A_SERVER = tuple(rival for rival in STORES if rival.server is not None)


def without_json(name: str) -> str:
    """Return what a rival is called where it loads a request's history and writes nothing."""
    return f"{name}, without JSON"


def contenders(
    make: Callable[[Rival], Prepare],
    rivals: Sequence[Rival] = STORES,
    *,
    only_at: int | None = None,
) -> tuple[Contender, ...]:
    """Return those of the rivals that are installed, doing one workload."""
    return tuple(
        Contender(rival.name, "rival", make(rival), only_at) for rival in rivals if rival.installed
    )


async def _fill(history: History, size: int) -> None:
    """Make the history; several turns at once, where that is the rival's own way."""
    said = turns(size)
    for start in range(0, len(said), _BATCH):
        batch = [item for one in said[start : start + _BATCH] for item in history.items(one)]
        await history.add(batch)


@contextmanager
def _opened(rival: Rival, setting: Setting) -> Iterator[tuple[asyncio.Runner, History]]:
    with asyncio.Runner() as runner:
        history = rival.open(_at(rival, setting), SESSION)
        runner.run(_fill(history, setting.size))
        try:
            yield runner, history
        finally:
            runner.run(history.close())


def _at(rival: Rival, setting: Setting) -> str:
    if setting.server is None:
        return f"{rival.url}{setting.folder / 'chat.db'}"
    return setting.server.replace("postgresql+psycopg", str(rival.server))


def turn(rival: Rival) -> Prepare:
    """A user's message and the reply, added together."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        with _opened(rival, setting) as (runner, history):
            pool = cycle([history.items(one) for one in turns(_POOL)])
            yield timed_awaited(setting, runner, lambda: history.add(next(pool)))

    return prepare


def load(rival: Rival) -> Prepare:
    return _loading(rival, lambda items: items)


def load_and_dump(rival: Rival) -> Prepare:
    """The history read, and written as the JSON of a request."""
    return _loading(rival, lambda items: json.dumps({"model": "m", "messages": items}))


def _loading(rival: Rival, then: Callable[[Any], object]) -> Prepare:
    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        with _opened(rival, setting) as (runner, history):

            async def once() -> float:
                gc.collect()  # as for ours: what others left behind is no one's cost
                start = setting.clock()
                made = then(await history.load())
                took = setting.clock() - start
                del made
                return took

            yield lambda: runner.run(once())

    return prepare


def writers(rival: Rival) -> Prepare:
    """Eight conversations in one database, written by tasks of one loop."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        at = _at(rival, setting)
        with asyncio.Runner() as runner:
            histories = [rival.open(at, f"chat-{n}") for n in range(WRITERS)]
            items = [histories[0].items(one) for one in turns(_POOL)]
            for history in histories:
                runner.run(history.add(items[0]))

            async def write(history: History) -> None:
                for n in range(setting.size):
                    await history.add(items[n % len(items)])

            async def together() -> float:
                start = setting.clock()
                await asyncio.gather(*map(write, histories))
                return (setting.clock() - start) / (setting.size * WRITERS)

            yield lambda: runner.run(together())
            for history in histories:
                runner.run(history.close())

    return prepare


def _filled(rival: Rival, setting: Setting) -> Path:
    with _opened(rival, setting):
        pass
    return setting.folder / "chat.db"


def bytes_on_disk(rival: Rival) -> Prepare:
    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        _filled(rival, setting)
        used = sum(path.stat().st_size for path in setting.folder.iterdir()) / setting.size
        yield lambda: used

    return prepare


def held(rival: Rival) -> Prepare:
    return resident(rival.module, lambda setting: _filled(rival, setting))


def load_alone(module: str, path: Path) -> Sequence[Any]:
    """Load a history in a process that does nothing else."""
    (rival,) = [one for one in STORES if one.module == module]

    async def once() -> Sequence[Any]:
        history = rival.open(f"{rival.url}{path}", SESSION)
        loaded = await history.load()
        await history.close()
        return loaded

    return asyncio.run(once())
