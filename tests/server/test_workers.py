"""Several processes that serve one address, on one database."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import reasoning_store as rs
from reasoning_store.cli import main
from tests.docs.provider import Provider, weather
from tests.durability.whole import check_whole
from tests.integrations.loops import chat_loop, twenty_steps
from tests.server.served import Served

QUESTION = {"role": "user", "content": "How is Oslo?"}
BODY = {"model": "deepseek-reasoner", "messages": [QUESTION], "stream": True}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


def ask(address: str, **headers: str) -> Any:
    return httpx2.post(
        f"{address}/v1/chat/completions", json=BODY, headers=headers, timeout=60
    ).raise_for_status()


def workers_of(served: Served) -> list[int]:
    """Return the processes that a server has started."""
    pid = served.process.pid
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(one) for one in found.split()]


def test_workers_serve_conversations_of_one_database(
    provider: Provider, url: str, tmp_path: Path
) -> None:
    """A loop of twenty steps and replies at the same time; all is stored, and whole."""
    provider.script = twenty_steps()
    served = Served(tmp_path, f"{provider.address}/v1", "--workers", "2", db=url)
    try:
        assert len(workers_of(served)) == 2
        with openai.OpenAI(api_key="k", base_url=f"{served.address}/v1") as client:
            text = chat_loop(client, "deepseek-reasoner", streamed=True)
        provider.script = weather
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: ask(served.address), range(16)))
    finally:
        ended = served.end(signal.SIGTERM)

    assert text.startswith("Done at")
    assert provider.refused == []
    assert ended == -signal.SIGTERM
    with rs.Store(url) as store:
        assert store.verify().problems == ()
        for answer in answers:
            reply = store.session(answer.headers["X-Reasoning-Session"]).history()[-1]
            assert (reply.message.status, bool(reply.message.thinking)) == ("complete", True)
    check_whole(url)


def test_a_worker_that_dies_is_started_again(provider: Provider, tmp_path: Path) -> None:
    """The other one serves meanwhile."""
    served = Served(tmp_path, f"{provider.address}/v1", "--workers", "2")
    first = workers_of(served)
    try:
        os.kill(first[0], signal.SIGKILL)
        ask(served.address)
        while len(now := workers_of(served)) < 2 or first[0] in now:
            ask(served.address)
    finally:
        served.end(signal.SIGTERM)

    assert first[1] in now


def test_workers_drain_and_then_end(provider: Provider, tmp_path: Path) -> None:
    """No new connection is taken while the replies under way end."""
    hold = threading.Event()
    provider.script = lambda asked: replace(weather(asked), pieces=8, hold_after=6, until=hold)
    options = ("--workers", "2", "--drain", "60")
    served = Served(tmp_path, f"{provider.address}/v1", *options)
    path = f"{served.address}/v1/chat/completions"
    with httpx2.stream("POST", path, json=BODY, timeout=60) as answer:
        pieces = answer.iter_bytes()
        next(pieces)
        os.kill(served.process.pid, signal.SIGTERM)
        served.wait_until_closed()
        hold.set()
        rest = b"".join(pieces)

    assert served.process.wait(60) == -signal.SIGTERM
    assert rest.endswith(b"data: [DONE]\n\n")
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        (session,) = store.sessions().items
        assert session.history()[-1].message.status == "complete"


def test_workers_end_with_the_process_that_started_them(provider: Provider, tmp_path: Path) -> None:
    """Its address is free then, even after it was killed."""
    served = Served(tmp_path, f"{provider.address}/v1", "--workers", "2")
    ask(served.address)
    served.end(signal.SIGKILL)
    served.wait_until_closed()


def test_a_browser_that_signed_in_is_known_to_each_worker(
    provider: Provider, tmp_path: Path
) -> None:
    """By its cookie, which any of them can check."""
    (tmp_path / "tokens").write_text("0123456789abcdefgh me\n")
    options = ("--workers", "2", "--token-file", "tokens")
    served = Served(tmp_path, f"{provider.address}/v1", *options)
    try:
        with httpx2.Client(base_url=served.address) as browser:
            browser.post("/sign-in", data={"token": "0123456789abcdefgh"})
            cookies = dict(browser.cookies)
        statuses = {httpx2.get(served.address, cookies=cookies).status_code for _ in range(12)}
    finally:
        served.end(signal.SIGTERM)

    assert statuses == {200}


def test_a_database_in_memory_has_one_worker(capsys: pytest.CaptureFixture[str]) -> None:
    """Each worker would have its own."""
    words = "serve --upstream http://127.0.0.1:9 --workers 2 --db sqlite://".split()

    assert main(words) == 2
    assert "in memory" in capsys.readouterr().err
