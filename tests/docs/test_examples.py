"""The examples do what they say, against a provider that is as strict as the real ones."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import reasoning_store as rs
from tests import programs
from tests.docs.provider import Answer, Asked, Provider, weather

pytestmark = pytest.mark.thinned
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ANSWER = "It is 4 C in Oslo, and it will stay so until the evening comes."


def tagged(text: str, thought: str = "4 C: cold.") -> rs.Message:
    """A reply whose thought stands in its text, between delimiters."""
    return rs.assistant(rs.ThinkingBlock(thought=thought, source_field="think_tags"), text)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


def environment(provider: Provider, folder: Path) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    return {**kept, "HOME": str(folder), "PYTHONUNBUFFERED": "1", **provider.environment}


def program(
    name: str, *arguments: str, provider: Provider, folder: Path, said: str = ""
) -> subprocess.CompletedProcess[str]:
    return programs.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=folder,
        env=environment(provider, folder),
        input=said,
    )


# A chat in the terminal


def test_the_terminal_shows_an_answer_without_its_delimiters(
    provider: Provider, tmp_path: Path
) -> None:
    """Cut in the middle of its tags, a thought is shown apart, and no tag is shown at all."""
    provider.script = lambda asked: Answer(message=tagged(ANSWER), pieces=9, seed=5)

    ran = program(
        "terminal_chat.py",
        *("--model", "qwen3", "--provider", "vllm"),
        provider=provider,
        folder=tmp_path,
        said="How is the weather?\n/usage\n/set includeInContext true\n/what-if\nAnd now?\n",
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"[4 C: cold.]\n{ANSWER}\n" in ran.stdout
    assert "think>" not in ran.stdout
    assert re.search(r"\*  yes +none", ran.stdout)
    assert "4 C: cold." in json.dumps(provider.asked[-1].body)
    assert provider.refused == []


def test_the_terminal_shows_no_thought_where_the_settings_say_so(
    provider: Provider, tmp_path: Path
) -> None:
    """BR-003: from the next reply on, and it is stored all the same."""
    provider.script = lambda asked: Answer(message=tagged(ANSWER), pieces=9, seed=5)

    ran = program(
        "terminal_chat.py",
        *("--model", "qwen3", "--provider", "vllm"),
        provider=provider,
        folder=tmp_path,
        said="/set includeInResponse false\n/set budgetTokens 2000\nHow is the weather?\n",
    )

    assert ran.returncode == 0
    assert "whole number" not in ran.stderr
    assert ran.stdout.strip() == ANSWER
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        kept = store.session("terminal").history()[-1].message
    assert [block.thought for block in kept.thinking] == ["4 C: cold."]


def test_the_terminal_keeps_what_arrived_of_a_reply_whose_connection_died(
    provider: Provider, tmp_path: Path
) -> None:
    """The chat says so, goes on, and is there when the program is started again."""
    answers = [
        Answer(message=tagged(ANSWER), pieces=12, drop_after=20),
        Answer(message=tagged("As I said, 4 C.")),
    ]
    provider.script = lambda asked: answers.pop(0)
    arguments = ("--model", "qwen3", "--provider", "vllm")

    first = program(
        "terminal_chat.py",
        *arguments,
        provider=provider,
        folder=tmp_path,
        said="How is the weather?\nPardon?\n",
    )
    again = program("terminal_chat.py", *arguments, provider=provider, folder=tmp_path)

    assert first.returncode == again.returncode == 0
    assert "What had arrived is kept." in first.stderr
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        kept = [item.message for item in store.session("terminal").history()]
    assert [message.status for message in kept] == ["complete", "interrupted", *["complete"] * 2]
    assert kept[1].text
    assert ANSWER.startswith(kept[1].text)
    assert again.stdout.splitlines()[-1] == "assistant: As I said, 4 C."


def test_the_terminal_tells_a_bad_setting_and_goes_on(provider: Provider, tmp_path: Path) -> None:
    """The allowed values are named, and the chat is not over."""
    ran = program(
        "terminal_chat.py",
        *("--model", "qwen3"),
        provider=provider,
        folder=tmp_path,
        said="/set stripFromContext some\n/nonsense\n/set\nHello\n",
    )

    assert ran.returncode == 0
    assert "allButLast" in ran.stderr
    assert ran.stdout.rstrip().endswith("It is 4 C in Oslo.")


# Reasoning toggled


def test_no_setting_makes_the_provider_refuse(provider: Provider, tmp_path: Path) -> None:
    """Each request carries what the setting of its turn says, and what is demanded."""
    ran = program("toggle_reasoning.py", provider=provider, folder=tmp_path)

    assert (ran.returncode, ran.stderr, provider.refused) == (0, "", [])
    assert "12 thoughts stored, whatever was sent" in ran.stdout
    sent = re.findall(r"thoughts: (.*)", ran.stdout)
    assert len(sent) == len(provider.asked) == 12
    assert sent[0] == "-"
    assert set(sent[-1].split(", ")) == {"required", "strip"}
    assert "kept" in sent[3]
    assert "strip" in sent[5]


# A chat in the browser


@contextmanager
def worker(provider: Provider, folder: Path) -> Iterator[httpx.Client]:
    """Run one worker process of the example, and give a client for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = programs.start(
            [
                *(sys.executable, "-m", "uvicorn", "app:app", "--log-level", "error"),
                *("--fd", str(listener.fileno())),
            ],
            cwd=EXAMPLES / "fastapi_chat",
            env={
                **environment(provider, folder),
                "REASONING_STORE_URL": f"sqlite:///{folder / 'chat.db'}",
            },
            pass_fds=[listener.fileno()],
        )
        # Whoever connects before the worker is up waits in the socket's queue.
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=base_url, timeout=60, trust_env=False) as http:
            yield http
    finally:
        running.terminate()
        running.wait(30)


@pytest.fixture
def two_workers(provider: Provider, tmp_path: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(worker(provider, tmp_path)) for _ in range(2))
        yield first, second


Event = tuple[str, str, dict[str, Any]]
"""The id, the name and the data of a server-sent event."""


def follow(
    http: httpx.Client, place: str, until: Callable[[Event], bool], *, back: bool = False
) -> list[Event]:
    """Read events from a place up to one, and leave; a header says that one comes ``back``."""
    where: dict[str, Any] = {"headers": {"Last-Event-ID": place}} if back else {}
    params = {} if back else {"start": place}
    found: list[Event] = []
    silences = 0
    with http.stream("GET", "/chats/c/events", params=params, **where) as response:
        response.raise_for_status()
        lines: dict[str, str] = {}
        for line in response.iter_lines():
            silences += line.startswith(":")
            assert silences < 8, found  # two minutes of nothing: it would go on for ever
            name, _, value = line.partition(": ")
            lines[name] = value
            if not line and "id" in lines:
                event = (lines["id"], lines["event"], json.loads(lines["data"]))
                found.append(event)
                lines = {}
                if until(event):
                    break
    return found


def say(http: httpx.Client, text: str, after: int = 0, key: str = "k") -> httpx.Response:
    said = {"text": text, "key": key, "after": after}
    return http.post("/chats/c/messages", json=said)


def is_done(event: Event) -> bool:
    return event[1] == "done"


def joined(events: list[Event], name: str) -> str:
    return "".join(data["text"] for _, kind, data in events if kind == name)


def test_a_browser_that_comes_back_to_another_worker_gets_the_rest(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The reply went on without it; what the two connections got joins to the whole."""
    first, second = two_workers
    held = Answer(message=tagged(ANSWER), pieces=24, hold_after=36)

    def script(asked: Asked) -> Answer:
        return weather(asked) if '"tool"' not in asked.last else held

    provider.script = script
    place = say(first, "How is the weather?").json()["follow"]

    before = follow(first, place, lambda event: event[1] == "text")
    held.until.set()
    finished(first)
    after = follow(second, before[-1][0], is_done, back=True)

    events = before + after
    places = [tuple(map(int, id.split("."))) for id, _, _ in events]
    assert joined(events, "text") == ANSWER
    assert joined(events, "thinking") == "Need the weather tool.4 C: cold."
    assert [data["name"] for _, name, data in events if name == "call"] == ["get_weather"]
    assert places == sorted(set(places))
    assert 0 < len(joined(before, "text")) < len(ANSWER)
    assert provider.refused == []


def test_a_reply_that_is_still_arriving_is_followed_from_another_worker(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """One reads at the worker that records and one at the other, and both see all of it."""
    first, second = two_workers
    held = Answer(message=tagged(ANSWER), pieces=24, hold_after=36)
    provider.script = lambda asked: held
    place = say(first, "How is the weather?").json()["follow"]

    seen = follow(second, place, lambda event: event[1] == "text")
    held.until.set()
    rest = follow(second, seen[-1][0], is_done, back=True)

    assert joined(seen + rest, "text") == ANSWER
    assert joined(seen, "text") != ANSWER
    assert rest[-1][2]["status"] == "complete"


def test_a_connection_that_dies_leaves_a_reply_that_says_so(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """What had arrived is shown, the turn is over, and the next one is not refused."""
    first, second = two_workers
    replies = [
        Answer(message=tagged(ANSWER), pieces=24, drop_after=36),
        Answer(message=tagged("4 C.")),
    ]
    provider.script = lambda asked: replies.pop(0)

    place = say(first, "How is the weather?").json()["follow"]
    cut = follow(second, place, is_done)
    end = cut[-1][2]["position"]
    place = say(second, "Pardon?", after=end, key="k2").json()["follow"]
    whole = follow(first, place, is_done)

    assert cut[-1][2]["status"] == "interrupted"
    assert joined(cut, "text")
    assert ANSWER.startswith(joined(cut, "text"))
    assert joined(whole, "text") == "4 C."
    assert provider.refused == []


def test_a_reply_that_never_began_is_over_for_whoever_waits(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The connection died before the first event: the reader is told, and the chat goes on."""
    first, second = two_workers
    replies = [Answer(message=tagged("Never."), drop_after=0), Answer(message=tagged("4 C."))]
    provider.script = lambda asked: replies.pop(0)

    place = say(first, "How is the weather?").json()["follow"]
    (told,) = follow(second, place, is_done)
    place = say(second, "Pardon?", after=told[2]["position"], key="k2").json()["follow"]

    assert told[2]["status"] == "interrupted"
    assert joined(follow(first, place, is_done), "text") == "4 C."
    assert provider.refused == []


def test_a_message_sent_again_begins_no_second_reply(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The same key at another worker gives the same place; another's message in between, 409."""
    first, second = two_workers
    provider.script = lambda asked: Answer(message=tagged("4 C."))

    place = say(first, "How is the weather?").json()["follow"]
    follow(first, place, is_done)
    again = say(second, "How is the weather?")
    late = say(second, "Something else", key="other")

    assert again.json()["follow"] == place
    assert late.status_code == 409
    assert len(provider.asked) == 1


def test_a_reader_behind_the_end_of_a_turn_is_told_so(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """It is given nothing of what the user says next as if the model had said it."""
    first, second = two_workers
    provider.script = lambda asked: Answer(message=tagged("4 C."))
    place = say(first, "How is the weather?").json()["follow"]
    behind = follow(first, place, is_done)[-1]
    end = behind[2]["position"]
    say(second, "And now?", after=end, key="k2")

    assert follow(second, behind[0], is_done, back=True) == [
        (behind[0], "done", {"status": "complete", "position": end})
    ]


def test_a_place_or_a_chat_that_is_none_is_told(
    two_workers: tuple[httpx.Client, httpx.Client],
) -> None:
    """Neither a traceback nor an endless stream."""
    first, _ = two_workers

    assert first.get("/chats/none/events").status_code == 404
    assert first.get("/chats/none").json()["messages"] == []
    assert first.get("/chats/none/events", params={"start": "here"}).status_code == 422
    assert "EventSource" in first.get("/").text


def finished(http: httpx.Client) -> None:
    """Wait until the reply is stored."""
    for _ in range(600):
        if http.get("/chats/c").json()["follow"] is None:
            return
        time.sleep(0.05)
    raise AssertionError("the reply does not end")
