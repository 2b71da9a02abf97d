"""The gateway: an unchanged client's loop passes a strict provider, its thinking kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai.errors import APIError as GeminiError
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.server.limits import Limits
from reasoning_store.server.options import ServerOptions
from reasoning_store.server.reply_modes import WholeEvents
from reasoning_store.testing import stream
from tests.docs.provider import Answer, Provider, weather
from tests.integrations.loops import (
    STEPS,
    chat_loop,
    gemini_loop,
    messages_loop,
    responses_loop,
    twenty_steps,
)
from tests.server.served import Served
from tests.server.serving import serving

Loop = Callable[..., str]


def open_openai(address: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="sk-canary", base_url=f"{address}/v1", max_retries=0, **options)


def open_anthropic(address: str, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="sk-canary", base_url=address, max_retries=0, **options)


def open_gemini(address: str, **options: Any) -> genai.Client:
    return genai.Client(
        api_key="sk-canary", http_options=genai.types.HttpOptions(base_url=address, **options)
    )


CASES: dict[str, tuple[Callable[..., Any], Loop, str, str]] = {
    "DeepSeek": (open_openai, chat_loop, "deepseek", "deepseek-flash"),
    "Claude": (open_anthropic, messages_loop, "anthropic", "claude-sonnet-4-6"),
    "Responses": (open_openai, responses_loop, "openai", "gpt-5.2"),
    "Gemini": (open_gemini, gemini_loop, "google", "gemini-3-pro"),
}
REFUSALS = (openai.APIError, anthropic.APIError, GeminiError)
WEATHER = {"role": "user", "content": "How is Oslo?"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as opened:
        yield opened


def options(provider: Provider, name: str = "deepseek", **more: Any) -> ServerOptions:
    return ServerOptions(upstream=f"{provider.address}/v1", provider=name, **more)


@pytest.mark.parametrize(
    "streamed",
    [pytest.param(False, marks=pytest.mark.long, id="whole"), pytest.param(True, id="streamed")],
)
@pytest.mark.parametrize("host", CASES)
def test_a_loop_of_twenty_steps_passes_and_is_stored(
    provider: Provider, store: rs.Store, host: str, streamed: bool
) -> None:
    """A stock client; without the gateway the strict provider refuses its second request."""
    make, loop, name, model = CASES[host]
    provider.script = twenty_steps()
    with make(provider.address) as bare, pytest.raises(REFUSALS):
        loop(bare, model, streamed=streamed)
    provider.refused.clear()
    provider.script = twenty_steps()

    with serving(store, options(provider, name)) as address, make(address) as client:
        text = loop(client, model, streamed=streamed)

    assert provider.refused == []
    assert text.startswith("Done at")
    (session,) = store.sessions().items
    history = session.history()
    assert [one.message.status for one in history] == ["complete"] * len(history)
    assert len(history) == 1 + 2 * STEPS + 1


def test_a_loop_goes_on_after_the_gateway_was_killed(provider: Provider, tmp_path: Path) -> None:
    """Killed between two steps of twenty, and started again; then ended by a signal."""
    served = Served(tmp_path, f"{provider.address}/v1")

    class Restarting(httpx2.BaseTransport):
        def __init__(self) -> None:
            self.inner = httpx2.HTTPTransport()
            self.count = 0

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            self.count += 1
            if self.count == STEPS // 2:
                assert served.end(signal.SIGKILL) == -signal.SIGKILL
                served.start()
                self.inner = httpx2.HTTPTransport()
            return self.inner.handle_request(request)

    provider.script = twenty_steps()
    with open_openai(served.address, http_client=httpx2.Client(transport=Restarting())) as client:
        text = chat_loop(client, "deepseek-flash", streamed=True)

    assert provider.refused == []
    assert text.startswith("Done at")
    assert served.end(signal.SIGTERM) == -signal.SIGTERM
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        (session,) = store.sessions().items
        assert len(session.history()) == 1 + 2 * STEPS + 1


def test_a_reply_under_way_is_stored_when_the_gateway_stops(
    provider: Provider, tmp_path: Path
) -> None:
    """As interrupted; the client's stream breaks off."""
    hold = threading.Event()
    provider.script = lambda asked: replace(weather(asked), pieces=8, hold_after=6, until=hold)
    served = Served(tmp_path, f"{provider.address}/v1")
    body = {"model": "deepseek-flash", "messages": [WEATHER], "stream": True}
    with httpx2.stream("POST", f"{served.address}/v1/chat/completions", json=body) as response:
        events = response.iter_bytes()
        while b"reasoning_content" not in next(events):
            pass  # the first piece names the role
        assert served.end(signal.SIGTERM) == -signal.SIGTERM
        with pytest.raises(httpx2.HTTPError):
            list(events)
    hold.set()

    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        (session,) = store.sessions().items
        assert session.history()[-1].message.status == "interrupted"


def test_a_session_whose_reply_was_cut_off_goes_on_with_the_next_request(
    provider: Provider, tmp_path: Path
) -> None:
    """The new turn is the course that opening the session gives, although a draft is there yet."""
    provider.script = weather
    url = f"sqlite:///{tmp_path}/chat.db"
    more = {"role": "user", "content": "And tomorrow?"}
    with rs.Store(url) as killed, rs.Store(url) as store:
        begun = killed.session("chat", create=True)
        begun.append(rs.user(WEATHER["content"]))
        with (
            suppress(rs.Conflict),  # it was ended by the request
            begun.record(provider="deepseek", api="openai.chat") as reply,
        ):
            reply.feed({"choices": [{"index": 0, "delta": {"content": "It is"}}]})
            next(store.session("chat").follow())  # a part of it is stored
            with serving(store, options(provider)) as address:
                post(address, [WEATHER, more], headers={"X-Reasoning-Session": "chat"})
                found = store.session("chat").history()

    assert [one.message.role for one in found] == ["user", "user", "assistant"]
    assert found[-1].message.status == "complete"


def post(address: str, messages: list[Any] | None = None, **more: Any) -> Any:
    """Ask for a reply of DeepSeek's; return the raw response."""
    headers = more.pop("headers", {})
    path = more.pop("path", "/v1/chat/completions")
    body = {"model": "deepseek-flash", "messages": messages or [WEATHER], **more}
    return httpx2.post(f"{address}{path}", json=body, headers=headers, timeout=60)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_mirror_passes_the_providers_bytes_on(
    provider: Provider, store: rs.Store, stream: bool
) -> None:
    """Byte for byte; a header names the session."""
    fixed = weather
    answers: list[Answer] = []

    def same(asked: Any) -> Answer:
        if not answers:
            answers.append(replace(fixed(asked), seed=7))
        return answers[0]

    provider.script = same
    direct = post(provider.address, stream=stream)
    with serving(store, options(provider)) as address:
        through = post(address, stream=stream)

    assert without_ids(through.content) == without_ids(direct.content)
    assert through.headers["X-Reasoning-Restored"] == "0/0"
    assert store.session(through.headers["X-Reasoning-Session"]).history()[-1].message.thinking


def without_ids(content: bytes) -> list[bytes]:
    """Return the lines of a body, without what the provider makes anew each time."""
    return [line for line in content.splitlines() if b'"id"' not in line or b"delta" in line]


def test_a_refusal_passes_through_and_is_explained(provider: Provider, store: rs.Store) -> None:
    """The provider's own words, and ours in a header; a refused request makes no session."""
    call = {
        "id": "call_unknown",
        "type": "function",
        "function": {"name": "get_weather", "arguments": "{}"},
    }
    messages = [
        WEATHER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_unknown", "content": "4 C"},
    ]
    with serving(store, options(provider)) as address:
        response = post(address, messages, stream=True)

    assert not store.sessions().items
    assert response.status_code == 400
    assert response.json()["error"]["message"] == provider.refused[0]
    assert "reasoning" in response.headers["X-Reasoning-Explanation"]
    assert response.headers["X-Reasoning-Restored"] == "0/0"
    assert response.headers["X-Reasoning-Match"] == "new"
    assert "X-Reasoning-Session" not in response.headers


def test_the_reply_of_a_client_that_leaves_is_stored(provider: Provider, store: rs.Store) -> None:
    """As interrupted, with all that had arrived; the provider's stream is closed."""
    hold = threading.Event()
    provider.script = lambda asked: replace(weather(asked), pieces=8, hold_after=6, until=hold)
    with serving(store, options(provider)) as address:
        with httpx2.stream(
            "POST",
            f"{address}/v1/chat/completions",
            json={"model": "deepseek-flash", "messages": [WEATHER], "stream": True},
        ) as response:
            pieces = response.iter_bytes()
            while b"reasoning_content" not in next(pieces):
                pass  # the first piece names the role
            session = store.session(response.headers["X-Reasoning-Session"])
        while session.head() < 2:
            pass  # the client has left, and the gateway finds out
        hold.set()
    reply = session.history()[-1].message

    assert reply.role == "assistant"
    assert reply.status == "interrupted"


def test_a_provider_that_breaks_off_breaks_the_clients_connection(
    provider: Provider, store: rs.Store
) -> None:
    """Behind the last whole event, as without the gateway; what had arrived is stored."""
    provider.script = lambda asked: replace(weather(asked), pieces=8, drop_after=4, seed=7)
    body = {"model": "deepseek-flash", "messages": [WEATHER], "stream": True}
    got: dict[str, bytes] = {}

    def read(at: str) -> None:
        got[at] = b""
        with httpx2.stream("POST", f"{at}/v1/chat/completions", json=body) as answer:
            for piece in answer.iter_bytes():
                got[at] += piece

    with serving(store, options(provider)) as address:
        for at in (provider.address, address):
            with pytest.raises(httpx2.RemoteProtocolError):
                read(at)

    events = got[provider.address].split(b"\n\n")
    assert events[-1]  # the provider had begun another
    assert got[address].count(b"\n\n") == len(events) - 1
    assert got[address].endswith(b"\n\n")
    (session,) = store.sessions().items
    assert session.history()[-1].message.status == "interrupted"


@given(st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"data: {}", b": x"])), st.data())
def test_the_bytes_of_a_stream_are_passed_on_as_far_as_its_events_are_whole(
    parts: list[bytes], data: st.DataObject
) -> None:
    """However they are cut, and whatever ends their lines."""
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=9)))
    events, passed = WholeEvents(), b""
    for begin, end in pairwise([0, *cuts, len(stream)]):
        passed += events.feed(stream[begin:end])

    lines = stream.splitlines(keepends=True)
    blank = [number for number, line in enumerate(lines) if number and not line.strip()]
    whole = b"".join(lines[: max(blank, default=-1) + 1])
    assert whole.startswith(passed)
    assert not whole[len(passed) :].strip()
    assert passed + events.finish() == stream


def test_a_provider_that_is_silent_or_away_is_an_error_of_its_protocol(
    provider: Provider, store: rs.Store
) -> None:
    """504 and 502, each in the client's own shape."""
    hold = threading.Event()

    def wait(asked: Any) -> Answer:
        hold.wait(60)
        return weather(asked)

    provider.script = wait
    with (
        serving(store, options(provider, limits=Limits(provider_seconds=0.2))) as address,
        open_anthropic(address) as client,
        pytest.raises(anthropic.APIStatusError) as late,
    ):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])
    hold.set()
    gone = ServerOptions(upstream="http://127.0.0.1:9/v1")
    with (
        serving(store, gone) as address,
        open_openai(address) as other,
        pytest.raises(openai.InternalServerError) as away,
    ):
        other.models.list()

    assert late.value.status_code == 504
    assert late.value.body == {
        "type": "error",
        "error": {"type": "timeout_error", "message": "the provider did not answer in time"},
    }
    assert away.value.status_code == 502
    assert away.value.code == "upstream_failed"


def test_a_store_that_fails_does_not_end_the_chat(provider: Provider, tmp_path: Path) -> None:
    """A file that cannot be written: the header names the error, the reply arrives."""
    url = f"sqlite:///{tmp_path}/chat.db"
    rs.Store(url).close()
    with (
        rs.Store(url, read_only=True) as store,
        serving(store, options(provider)) as address,
    ):
        passed = post(address)
    with (
        rs.Store(url, read_only=True) as store,
        serving(store, options(provider, on_store_error="fail")) as address,
    ):
        failed = post(address)

    assert passed.json()["choices"][0]["message"]["content"]
    assert passed.headers["X-Reasoning-Store-Error"]
    assert failed.status_code >= 400
    assert failed.json()["error"]["code"]


def test_a_body_that_cannot_be_read_is_the_providers_to_judge(store: rs.Store) -> None:
    """It is passed on as it came."""
    seen: list[bytes] = []

    class Judge(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(422)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"no")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Judge) as judge:
        threading.Thread(target=judge.handle_request).start()
        upstream = f"http://127.0.0.1:{judge.server_address[1]}/v1"
        with serving(store, ServerOptions(upstream=upstream)) as address:
            response = post(address, [{"role": "assistant", "tool_calls": 5}])

    assert (response.status_code, response.text) == (422, "no")
    assert json.loads(seen[0])["messages"] == [{"role": "assistant", "tool_calls": 5}]


def test_a_miss_is_counted_and_the_connection_goes_on(provider: Provider, store: rs.Store) -> None:
    """Two runs of one prompt with equal ids; nothing tells the third request whose it is."""
    provider.script = lambda asked: Answer(
        message=rs.assistant(
            rs.ThinkingBlock(thought="Look.", source_field="reasoning_content"),
            rs.ToolCallBlock(id="functions.ls:0", name="ls", parameters={}),
        )
    )
    function = {"name": "ls", "arguments": "{}"}
    call = {"id": "functions.ls:0", "type": "function", "function": function}
    answered = [
        WEATHER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "a"},
    ]
    with (
        serving(store, options(provider)) as address,
        httpx2.Client(base_url=address) as client,
    ):
        replies = [
            client.post("/v1/chat/completions", json={"model": "deepseek-chat", "messages": sent})
            for sent in ([WEATHER], [WEATHER], answered)
        ]
        metrics = client.get("/metrics").text

    assert replies[-1].headers["X-Reasoning-Restored"] == "0/1; missed=1 (ambiguous)"
    assert 'result="missed"} 1\n' in metrics


def test_a_reply_of_claude_is_stored_before_its_stop_reason_is_passed_on(
    provider: Provider, store: rs.Store
) -> None:
    """A client that reads no further sends its next request at once."""
    message = rs.assistant("It is 4 C.")
    events = list(stream(message, api="anthropic.messages", pieces=1))
    until = threading.Event()
    provider.script = lambda asked: Answer(
        message=message, pieces=1, hold_after=len(events) - 1, until=until
    )
    asked = {"model": "claude-sonnet-4-6", "max_tokens": 10, "messages": [WEATHER], "stream": True}
    with (
        serving(store, options(provider, "anthropic")) as address,
        httpx2.stream("POST", f"{address}/v1/messages", json=asked) as response,
    ):
        for line in response.iter_lines():
            if "stop_reason" in line and "end_turn" in line:
                break
        (session,) = store.sessions().items
        last = session.history()[-1].message
        until.set()

    assert (last.text, last.status) == ("It is 4 C.", "complete")


def test_the_first_request_loads_nothing(provider: Provider) -> None:
    """A server that takes requests has loaded its modules, its contracts and its vocabulary."""
    code = f"""
import json, sys, urllib.request
import reasoning_store as rs
from reasoning_store.server.options import ServerOptions
from tests.server.serving import serving
body = {{"model": "deepseek-flash", "messages": [{WEATHER!r}]}}
with (
    rs.Store("sqlite://") as store,
    serving(store, ServerOptions(upstream={provider.address + "/v1"!r})) as address,
):
    asked = urllib.request.Request(
        address + "/v1/chat/completions",
        json.dumps(body).encode(),
        {{"Content-Type": "application/json"}},
    )
    with urllib.request.urlopen(address + "/healthz"):
        before = set(sys.modules)
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 200
    late = [name for name in set(sys.modules) - before if "reasoning_store" in name]
    print(sorted(late), "tiktoken" in before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[] True"
