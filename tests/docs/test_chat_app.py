"""The chat product of the examples over HTTP: two workers, and a strict provider."""

from __future__ import annotations

import json
import socket
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
from tests.docs.provider import Answer, Provider, weather

pytestmark = pytest.mark.thinned
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "chat_app"
ANSWER = "It is 4 C in Oslo, and it will stay so until the evening comes."
Event = dict[str, Any]


def tagged(text: str) -> rs.Message:
    """A reply whose thought stands in its text, between delimiters."""
    return rs.assistant(rs.ThinkingBlock(thought="4 C: cold.", source_field="think_tags"), text)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


@contextmanager
def worker(provider: Provider, folder: Path) -> Iterator[httpx.Client]:
    """Run one worker process of the example, and give a client for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = programs.start(
            [
                *(sys.executable, "-m", "uvicorn", "chat:app", "--log-level", "critical"),
                *("--fd", str(listener.fileno())),
            ],
            cwd=EXAMPLE,
            env={
                "HOME": str(folder),
                "CONTEXT_LIMIT": "1500",
                "MODELS": "vllm/qwen3 deepseek/deepseek-flash deepseek/deepseek-v4",
                "REASONING_STORE_URL": f"sqlite:///{folder / 'chat.db'}",
                **provider.environment,
            },
            pass_fds=[listener.fileno()],
        )
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=base_url, timeout=120, trust_env=False) as http:
            yield http
    finally:
        running.terminate()
        running.wait(120)


@pytest.fixture
def two_workers(provider: Provider, tmp_path: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(worker(provider, tmp_path)) for _ in range(2))
        yield first, second


def message(text: str, id: str = "k") -> dict[str, Any]:
    parts = [{"type": "text", "text": text}]
    return {"id": "c", "messages": [{"id": id, "role": "user", "parts": parts}]}


def read(
    http: httpx.Client,
    body: dict[str, Any] | None = None,
    until: Callable[[Event], bool] = lambda event: False,
) -> list[Event]:
    """Say something, or come back; read the stream up to an event, and leave."""
    found: list[Event] = []
    asked = ("POST", "/api/chat") if body else ("GET", "/api/chat/c/stream")
    with http.stream(*asked, json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line[6:]))
                if until(found[-1]):
                    break
    return found


def is_text(event: Event) -> bool:
    return bool(event["type"] == "text-delta")


def joined(events: list[Event], kind: str) -> str:
    return "".join(event["delta"] for event in events if event["type"] == f"{kind}-delta")


def shown(http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/api/chats/c").json()
    return found


def test_a_page_that_comes_back_to_another_worker_gets_the_whole_reply(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The reply went on without it, tool call and all; nothing is missing or repeated."""
    first, second = two_workers
    held = Answer(message=tagged(ANSWER), pieces=24, hold_after=36)
    provider.script = lambda asked: weather(asked) if '"tool"' not in asked.last else held

    before = read(first, message("How is the weather?"), is_text)
    held.until.set()
    after = read(second)

    assert 0 < len(joined(before, "text")) < len(ANSWER)
    if after:  # it may have ended meanwhile
        assert joined(after, "text") == ANSWER
    assert wait_for(lambda: shown(second)["live"] is False)
    text = [p["text"] for p in shown(second)["messages"][-1]["parts"] if p["type"] == "text"]
    assert text == [ANSWER]
    assert provider.refused == []


def test_a_reply_that_is_still_arriving_is_followed_from_another_worker(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """One reads at the worker that records and one at the other, and both see all of it."""
    first, second = two_workers
    held = Answer(message=tagged(ANSWER), pieces=24, hold_after=36)
    provider.script = lambda asked: held

    seen = read(first, message("How is the weather?"), is_text)
    also = read(second, None, is_text)
    held.until.set()

    assert seen[0] == also[0] == {"type": "start"}
    assert joined(also, "text")
    assert ANSWER.startswith(joined(also, "text"))
    assert wait_for(lambda: shown(second)["live"] is False)


def test_a_stop_at_another_worker_ends_the_reply(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The recorder stops reading, and the store has the reason."""
    first, second = two_workers
    held = Answer(message=tagged(ANSWER), pieces=24, hold_after=36)
    provider.script = lambda asked: held
    read(first, message("How is the weather?"), is_text)

    assert second.post("/api/chat/c/stop").status_code == 204
    assert wait_for(lambda: shown(second)["live"] is False)
    facts = shown(first)["messages"][-1]["metadata"]
    held.until.set()

    assert facts["status"] == "interrupted"


def test_a_reply_that_never_began_is_over_for_its_waiters(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The connection died before the first event: the reader learns, and the chat goes on."""
    first, second = two_workers
    replies = [Answer(message=tagged("Never."), drop_after=0), Answer(message=tagged("4 C."))]
    provider.script = lambda asked: replies.pop(0)

    read(first, message("How is the weather?"))
    whole = read(second, message("Pardon?", "k2"))

    assert joined(whole, "text") == "4 C."
    statuses = [one["metadata"]["status"] for one in shown(first)["messages"]]
    assert statuses == ["complete", "interrupted", "complete", "complete"]
    assert provider.refused == []


def test_a_message_sent_again_begins_no_second_reply(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """The same message at another worker streams the same reply."""
    first, second = two_workers
    provider.script = lambda asked: Answer(message=tagged("4 C."))

    once = read(first, message("How is the weather?"))
    again = read(second, message("How is the weather?"))

    assert joined(once, "text") == joined(again, "text") == "4 C."
    assert len(provider.asked) == 1


def test_the_last_reply_is_asked_for_again_without_its_id(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """As the AI SDK's `regenerate()` does; the other reply is a version of it."""
    first, second = two_workers
    provider.script = lambda asked: Answer(message=tagged(f"{len(provider.asked)} C."))

    read(first, message("How is the weather?"))
    read(second, {"id": "c", "trigger": "regenerate-message", "messages": []})
    _, reply = shown(first)["messages"]

    assert reply["parts"][-1]["text"] == "2 C."
    assert len(reply["metadata"]["versions"]) == 2


def test_a_page_that_has_not_seen_the_last_message_is_refused(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """What another page said meanwhile is not answered unseen."""
    first, second = two_workers
    provider.script = lambda asked: Answer(message=tagged("4 C."))
    read(first, message("How is the weather?"))
    seen = shown(first)["messages"][-1]["metadata"]["messages"][-1]["id"]
    read(second, message("And now?", "k2") | {"after": seen})

    late = first.post("/api/chat", json=message("And then?", "k3") | {"after": seen})

    assert late.status_code == 409
    assert len(shown(first)["messages"]) == 4


def test_an_absent_chat_or_message_is_named(
    two_workers: tuple[httpx.Client, httpx.Client],
) -> None:
    """By its status, and a text for people."""
    first, _ = two_workers
    read(first, message("Hello"))
    edit = {**message("Hi"), "messageId": "none"}
    again = {"id": "none", "trigger": "regenerate-message"}
    bad = first.patch("/api/chats/c", json={"settings": {"reasoning.stripFromContext": "some"}})

    assert first.get("/api/chats/none").status_code == 404
    assert first.post("/api/chat", json=edit).status_code == 404
    assert first.post("/api/chat", json=again).status_code == 404
    assert (bad.status_code, "allButLast" in bad.text) == (422, True)
    assert first.get("/api/chat/c/stream").status_code == 204


PICTURE = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}


def test_the_rest_of_the_product_is_a_request_each(
    provider: Provider, two_workers: tuple[httpx.Client, httpx.Client]
) -> None:
    """An image, another model, a shorter context and back, the cost, the download, the erasure."""
    first, second = two_workers
    usage = rs.Usage(input=1_000_000, output=1_000_000, reasoning=3)
    provider.script = lambda asked: Answer(message=rs.assistant("4 C. " * 60, usage=usage))
    pictured = message("Is this rain?") | {"model": "deepseek-v4"}
    pictured["messages"][0]["parts"].append(PICTURE)
    for number in range(3):
        asked = message("How is the weather?", f"k{number}") | {"model": "deepseek-flash"}
        read(second, asked if number else pictured)
    asked, answer, *_ = shown(first)["messages"]
    long = shown(first)["context"]["used"]
    assert first.post("/api/chats/c/compactions").status_code == 204
    (made,) = shown(second)["compactions"]
    short = shown(second)["context"]["used"]
    assert second.delete(f"/api/chats/c/compactions/{made['id']}").status_code == 204
    (dear, *_) = (row for row in first.get("/api/usage").json()["rows"] if row["dollars"])
    text, lines = first.get("/api/chats/c/markdown").text, first.get("/api/export").content
    sent = first.get("/api/chats/c/request").json()
    erased = first.delete("/api/chats").json()
    restored = second.post("/api/import", content=lines).json()

    assert asked["parts"][1]["url"] == PICTURE["url"]
    assert "image" in answer["metadata"]["annotations"]["notes"][0]
    pictures = [(one.body["model"], "image_url" in json.dumps(one.body)) for one in provider.asked]
    assert ("deepseek-v4", True) not in pictures
    assert ("deepseek-flash", True) in pictures
    assert (short < long, shown(first)["context"]["used"]) == (True, long)
    assert (dear["model"], round(dear["dollars"], 2)) == ("deepseek-flash", 1.50)
    assert text.count("How is the weather?") == 2
    assert [one["role"] for one in sent["body"]["messages"]][:2] == ["system", "user"]
    assert erased == {"sessions": 1, "copies": []}
    assert restored == {"sessions": 1, "messages": 6}


def test_what_a_page_may_not_send_is_named_and_makes_no_chat(
    two_workers: tuple[httpx.Client, httpx.Client],
) -> None:
    """A file without its bytes, a model that is not offered, nothing at all."""
    first, _ = two_workers
    broken = message("Hi")
    broken["messages"][0]["parts"] = [PICTURE | {"url": "data:image/png;base64,%"}]
    refused = [broken, message("Hi") | {"model": "other"}, {"id": "c", "messages": []}]

    answers = [first.post("/api/chat", json=body) for body in refused]

    assert [one.status_code for one in answers] == [422] * 3
    assert first.get("/api/chats").json() == {"items": [], "next": None}


def wait_for(is_so: Callable[[], bool]) -> bool:
    for _ in range(2_400):
        if is_so():
            return True
        time.sleep(0.05)
    return False
