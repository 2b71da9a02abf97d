"""Many users of a chat application with several workers: each page may reach another worker."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.managers import BaseManager
from random import Random
from typing import Any

import pytest

import reasoning_store as rs
from tests.durability.processes import context

from .chat_worker import ChatWorker, Row, Said, answer, said_by

WORKERS = 4
APIS = ("openai.chat", "anthropic.messages", "openai.responses", "gemini.generate_content")
ENDS = {"complete": "complete", "left": "interrupted", "stopped": "interrupted"}
"""How a reply ends, and the status that it has then."""


class _Manager(BaseManager):
    """Runs a worker in a process, and calls its verbs, each in a thread of its own."""


_Manager.register("ChatWorker", ChatWorker)


@contextmanager
def workers(url: str) -> Iterator[list[Any]]:
    managers = [_Manager(ctx=context()) for _ in range(WORKERS)]
    try:
        for manager in managers:
            manager.start()
        found = [manager.ChatWorker(url) for manager in managers]  # type: ignore[attr-defined]
        yield found
        for worker in found:
            worker.close()
    finally:
        for manager in managers:
            manager.shutdown()


@dataclass
class User:
    """A user, whose clicks reach any of the workers."""

    chat: str
    api: str
    workers: list[Any]
    random: Random

    def __post_init__(self) -> None:
        self.rows: list[Row] = []
        """All that was acknowledged."""
        self.reasons: list[str | None] = []

    def talk(self, turns: int) -> User:
        for number in range(turns):
            self._take_turn(f"{self.chat} asks {number}")
        return self

    def _any(self) -> Any:
        return self.random.choice(self.workers)

    def _take_turn(self, question: str) -> None:
        """Ask, do this and that while the reply arrives, end it; compare all that was seen."""
        recorder = self._any()
        id = recorder.ask(self.chat, question, self.api)
        self.rows.append((id, len(self.rows) + 1, "user", "complete", ("", question)))
        self.reasons.append(None)
        seen: list[Said] = []
        pages: list[tuple[Said, str | None]] = [(("", ""), None), (("", ""), None)]
        for _ in range(12):
            do = self.random.choice(["go on", "go on", "read", "reload", "watch", "ask again"])
            if do == "go on":
                recorder.go_on(self.chat)
            elif do == "read":
                shown = recorder.go_on(self.chat)
                page = self.random.randrange(len(pages))
                pages[page] = self._read_on(pages[page], shown)
                seen.append(pages[page][0])
            elif do == "reload":
                seen += self._reload()
            elif do == "watch":
                self._any().watch(self.chat)
            else:
                assert self._any().ask_again(self.chat, question) == (id, False)
        how = self.random.choice([*ENDS])
        reason = f"after {question}" if how == "stopped" else None
        recorder.end(self.chat, how)
        if reason is not None:
            assert self._any().stop(self.chat, reason)
        seen += self._reload()
        self._compare(recorder, question, how, reason, seen)

    def _read_on(self, page: tuple[Said, str | None], shown: int) -> tuple[Said, str | None]:
        """Follow the reply where a page has left it, on another worker, as far as it was shown."""
        (thought, text), cursor = page
        more, cursor = self._any().read(self.chat, cursor, shown - len(thought) - len(text))
        return (thought + more[0], text + more[1]), cursor

    def _reload(self) -> list[Said]:
        """Load the page anew: all that was acknowledged, and what has arrived since."""
        rows = self._any().reload(self.chat)
        assert rows[: len(self.rows)] == self.rows
        assert len(rows) <= len(self.rows) + 1
        return [row[4] for row in rows[len(self.rows) :]]

    def _compare(
        self, recorder: Any, question: str, how: str, reason: str | None, seen: list[Said]
    ) -> None:
        id, position, finish, why, stored, shown = recorder.ended(self.chat)
        whole = said_by(answer(question))
        assert (stored == whole) if how == "complete" else begins(whole, stored)
        assert shown == stored
        assert why == reason
        assert (finish == "stopped") == (how == "stopped")
        assert [said for said in seen if not begins(stored, said)] == []
        for worker in self.workers:
            assert set(worker.watched(self.chat)) <= {stored}
        self.rows.append((id, position, "assistant", ENDS[how], stored))
        self.reasons.append(reason)


def begins(whole: Said, part: Said) -> bool:
    """Whether a part is how the whole begins: its text comes after all of its thought."""
    if not part[1]:
        return whole[0].startswith(part[0])
    return whole[0] == part[0] and whole[1].startswith(part[1])


@pytest.mark.parametrize(
    ("users", "turns"),
    [pytest.param(6, 1, id="short"), pytest.param(24, 6, id="full", marks=pytest.mark.long)],
)
def test_users_who_ask_stop_follow_and_reload_anywhere_lose_nothing(
    url: str, users: int, turns: int
) -> None:
    """No reply is stored twice, a stopped one has its reason, and followers saw what is stored."""
    chats = [f"chat-{number}" for number in range(users)]
    with rs.Store(url) as store:
        for chat in chats:
            store.session(chat, create=True)
    with workers(url) as found, ThreadPoolExecutor(users) as pool:
        crowd = [
            User(chat, APIS[number % len(APIS)], found, Random(chat))
            for number, chat in enumerate(chats)
        ]
        list(pool.map(lambda user: user.talk(turns), crowd))

    with rs.Store(url) as store:
        for user in crowd:
            session = store.session(user.chat)
            history = session.history()
            assert [
                (one.id, one.position, one.message.role, one.message.status, said_by(one.message))
                for one in history
            ] == user.rows
            assert [one.annotations.get("stopReason") for one in history] == user.reasons
            assert [branch.id for branch in session.branches()] == [1]
        assert store.verify().ok
