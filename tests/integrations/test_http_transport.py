"""The HTTP transport: an unchanged client's loop passes a strict provider, its thinking kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai

import reasoning_store as rs
from reasoning_store.integrations import http
from reasoning_store.integrations.echo_matcher import EchoMatcher
from tests.docs.provider import Answer, Provider, weather
from tests.integrations.loops import (
    STEPS,
    chat_loop,
    gemini_loop,
    messages_loop,
    responses_loop,
    twenty_steps,
)
from tests.properties import each

Loop = Callable[..., str]
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_TEXT = {"type": "text", "text": "Yes."}
BODIES: dict[str, Any] = {
    "/chat/completions": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [_TEXT]},
            {"role": "assistant", "content": [_TEXT], "reasoning": "So.", "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
    },
    "/messages": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Is it?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "So.", "signature": "s"},
                    _TEXT,
                    {"type": "tool_use", "id": "c", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": [_TEXT]}],
            },
        ],
    },
    "/v1beta/models/m:generateContent": {
        "systemInstruction": {"parts": [_TEXT]},
        "contents": [
            {"role": "user", "parts": [_TEXT]},
            {
                "role": "model",
                "parts": [
                    {"text": "So.", "thought": True},
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2Vh"},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "f", "response": {"result": "done"}}}],
            },
        ],
    },
    "/responses": {
        "model": "m",
        "input": [
            {"role": "user", "content": "Is it?"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "So."}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ],
    },
}
"""A request of each form, whose every place is tried."""


def open_openai(address: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0, **options)


def open_anthropic(address: str, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=address, max_retries=0, **options)


@contextmanager
def open_gemini(address: str, *, http_client: Any) -> Iterator[Any]:
    options = genai.types.HttpOptions(base_url=address, httpx_client=http_client)
    with http_client, genai.Client(api_key="k", http_options=options) as client:
        yield client


CASES: dict[str, tuple[Callable[..., Any], Loop, str, str]] = {
    "DeepSeek": (open_openai, chat_loop, "deepseek", "deepseek-flash"),
    "Kimi": (open_openai, chat_loop, "moonshot", "kimi-k2-thinking"),
    "Claude": (open_anthropic, messages_loop, "anthropic", "claude-sonnet-4-6"),
    "Responses": (open_openai, responses_loop, "openai", "gpt-5.2"),
    "Gemini": (open_gemini, gemini_loop, "google", "gemini-3-pro"),
}
HOSTS = pytest.mark.parametrize("host", CASES)
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(twenty_steps()).listening() as listening:
        yield listening


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as opened:
        yield opened


@STREAMED
@HOSTS
def test_a_loop_of_twenty_steps_passes_and_is_stored(
    provider: Provider, store: rs.Store, host: str, streamed: bool
) -> None:
    """The client keeps role, text and calls; the strict provider refuses nothing."""
    make, loop, name, model = CASES[host]
    with make(provider.address, http_client=http.client(store, provider=name)) as client:
        text = loop(client, model, streamed=streamed, turns=2)

    assert provider.refused == []
    assert text.startswith("Done at")
    (session,) = store.sessions().items
    history = session.history()
    assert [one.message.status for one in history] == ["complete"] * len(history)
    assert len(history) == 2 * (1 + 2 * STEPS + 1)
    replies = [one.message for one in history if one.message.role == "assistant"]
    assert all(reply.thinking for reply in replies)


@pytest.mark.parametrize("host", ["DeepSeek", "Kimi"])
def test_a_loop_passes_at_an_address_of_which_only_the_models_name_tells(
    provider: Provider, store: rs.Store, host: str
) -> None:
    """EC-006: a proxy of one's own, and no provider named."""
    make, loop, _, model = CASES[host]
    with make(provider.address, http_client=http.client(store)) as client:
        loop(client, model, streamed=True)

    assert provider.refused == []


def test_a_stored_thought_that_is_left_out_is_counted(provider: Provider, store: rs.Store) -> None:
    """It is neither restored nor missed."""
    first = reply_of(ask(store, provider, [USER]))

    off = {"reasoning.floor": "off"}
    response = ask(store, provider, [USER, first], settings=off)

    assert response.headers["X-Reasoning-Restored"] == "0/1; left_out=1"


@HOSTS
def test_a_loop_goes_on_after_a_restart(provider: Provider, tmp_path: Path, host: str) -> None:
    """Each request opens the store anew, as a program does that was killed between two."""
    make, loop, name, model = CASES[host]
    url = f"sqlite:///{tmp_path}/chat.db"

    class Restarted(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            with rs.Store(url) as opened, httpx2.HTTPTransport() as inner:
                kept = http.transport(opened, inner, provider=name)
                response: httpx2.Response = kept.handle_request(request)
                response.read()
                return response

    client = httpx2.Client(transport=Restarted())
    with make(provider.address, http_client=client) as sdk:
        loop(sdk, model, streamed=False)

    assert provider.refused == []


def test_an_asynchronous_client_is_kept_too(provider: Provider, store: rs.Store) -> None:
    """By the same steps, awaited."""

    async def ask() -> str:
        kept = http.async_client(store, provider="deepseek")
        async with openai.AsyncOpenAI(
            api_key="k", base_url=f"{provider.address}/v1", http_client=kept, max_retries=0
        ) as client:
            messages: list[Any] = [{"role": "user", "content": "Oslo?"}]
            for _ in range(3):
                stream = await client.chat.completions.create(
                    model="deepseek-flash", messages=messages, stream=True
                )
                calls: dict[str, Any] = {"name": "", "arguments": ""}
                async for event in stream:
                    for call in event.choices[0].delta.tool_calls or () if event.choices else ():
                        calls["id"] = call.id or calls.get("id")
                        calls["name"] += (call.function and call.function.name) or ""
                        calls["arguments"] += (call.function and call.function.arguments) or ""
                function = {"name": calls["name"], "arguments": calls["arguments"]}
                made = {"id": calls["id"], "type": "function", "function": function}
                messages += [
                    {"role": "assistant", "content": None, "tool_calls": [made]},
                    {"role": "tool", "tool_call_id": calls["id"], "content": "4 C"},
                ]
        return "done"

    assert asyncio.run(ask()) == "done"
    assert provider.refused == []
    (session,) = store.sessions().items
    assert len(session.history()) == 6


@pytest.mark.parametrize("module", ["httpx2", "httpx"])
def test_a_closed_asynchronous_client_is_used_again(
    provider: Provider, store: rs.Store, module: str
) -> None:
    """Some frameworks close it after each request, and begin an event loop for each turn."""
    kept = http.async_client(store, provider="deepseek", module=module)
    body = {"model": "deepseek-flash", "messages": [USER]}

    async def ask_and_close() -> int:
        response = await kept.post(f"{provider.address}/v1/chat/completions", json=body)
        await kept.aclose()
        return int(response.status_code)

    assert [asyncio.run(ask_and_close()) for _ in range(2)] == [200, 200]
    assert len(provider.asked) == 2


def ask(store: rs.Store, provider: Provider, messages: list[Any], **options: Any) -> Any:
    """Send one request of DeepSeek's and return the raw response."""
    body = {"model": "deepseek-flash", "messages": messages, **options.pop("body", {})}
    headers = options.pop("headers", {})
    with http.client(store, provider="deepseek", **options) as client:
        return client.post(f"{provider.address}/v1/chat/completions", json=body, headers=headers)


USER = {"role": "user", "content": "How is Oslo?"}
TOOL_CALL = {
    "id": "call_unknown",
    "type": "function",
    "function": {"name": "get_weather", "arguments": "{}"},
}


def test_a_reply_that_is_not_stored_is_missed_and_never_filled(
    provider: Provider, store: rs.Store
) -> None:
    """The provider's own refusal reaches the client, and a header says why."""
    response = ask(
        store,
        provider,
        [
            USER,
            {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
            {"role": "tool", "tool_call_id": "call_unknown", "content": "4 C"},
        ],
    )

    assert response.status_code == 400
    assert response.headers["X-Reasoning-Restored"] == "0/0"
    assert "reasoning_content" not in str(provider.asked[-1].body)


def reply_of(response: Any) -> dict[str, Any]:
    message = response.json()["choices"][0]["message"]
    return {"role": "assistant", "content": message["content"], "tool_calls": message["tool_calls"]}


def test_a_client_that_goes_another_way_gets_a_branch(provider: Provider, store: rs.Store) -> None:
    """The course that it left stays as it was."""
    first = reply_of(ask(store, provider, [USER]))
    answer = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "4 C"}
    ask(store, provider, [USER, first, answer])
    (session,) = store.sessions().items
    before = session.history()

    ask(store, provider, [USER, first, {**answer, "content": "9 C"}])

    (session,) = store.sessions().items
    assert len(session.branches()) == 2
    left = session.branch(1).history()
    assert [one.message for one in left] == [one.message for one in before]
    assert [one.message.role for one in session.history()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_readable_thought_goes_to_another_maker(provider: Provider, store: rs.Store) -> None:
    """Kimi takes DeepSeek's in the middle of a tool loop."""
    first = reply_of(ask(store, provider, [USER]))
    answer = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "4 C"}
    body = {"model": "kimi-k2-thinking", "messages": [USER, first, answer]}
    with http.client(store, provider="moonshot") as client:
        client.post(f"{provider.address}/v1/chat/completions", json=body)

    (session,) = store.sessions().items
    (thought,) = session.history()[1].message.thinking
    assert provider.refused == []
    assert provider.asked[-1].body["messages"][1]["reasoning_content"] == thought.thought


def test_a_sealed_thought_never_goes_to_another_maker(provider: Provider, store: rs.Store) -> None:
    """DeepSeek gets nothing of Claude's, whatever is included."""
    provider.script = weather
    kept = http.client(store, provider="anthropic")
    with open_anthropic(provider.address, http_client=kept) as client:
        client.messages.create(
            model="claude-sonnet-4-6",
            max_tokens=4096,
            messages=[{"role": "user", "content": USER["content"]}],
            thinking={"type": "enabled", "budget_tokens": 1024},
        )
    (session,) = store.sessions().items
    reply = session.history()[-1].message
    (thought,) = reply.thinking
    ask(
        store,
        provider,
        [USER, {"role": "assistant", "content": reply.text}, {"role": "user", "content": "Now?"}],
        settings={"reasoning.includeInContext": True},
    )

    sent = str(provider.asked[-1].body)
    assert provider.refused == []
    assert len(session.history()) == 4
    assert thought.signature
    assert [part for part in (thought.thought, thought.signature) if part in sent] == []


def test_a_request_names_its_session_in_a_header(provider: Provider, store: rs.Store) -> None:
    """Two conversations that begin alike stay apart."""
    for name in ("a", "b"):
        response = ask(store, provider, [USER], headers={"X-Reasoning-Session": name})
        assert response.headers["X-Reasoning-Session"] == name

    assert {session.id for session in store.sessions().items} == {"a", "b"}
    assert "x-reasoning-session" not in str(provider.asked[-1]).lower()


@pytest.mark.parametrize(
    ("asked", "store_header", "stored"),
    [
        ({"store": False}, None, "no (store=false)"),
        ({"store": False}, "yes", None),
        ({"store": True}, "no", "no (X-Reasoning-Store: no)"),
        ({"store": True}, None, None),
    ],
)
def test_a_client_decides_whether_its_conversation_is_stored(
    provider: Provider, store: rs.Store, asked: Any, store_header: str | None, stored: str | None
) -> None:
    """A header is stronger than the body, and is no header of the provider's."""
    headers = {} if store_header is None else {"X-Reasoning-Store": store_header}
    response = ask(store, provider, [USER], headers=headers, body=asked)

    assert response.headers.get("X-Reasoning-Stored") == stored
    assert len(store.sessions().items) == (stored is None)
    assert ("X-Reasoning-Session" in response.headers) == (stored is None)
    assert "x-reasoning-store" not in str(provider.asked[-1]).lower()


def test_another_owners_conversation_is_not_found(provider: Provider, store: rs.Store) -> None:
    """The same messages of another owner get nothing back."""
    mine, other = store.for_owner("me"), store.for_owner("you")
    first = reply_of(ask(mine, provider, [USER]))  # type: ignore[arg-type]
    answer = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "4 C"}

    response = ask(other, provider, [USER, first, answer])  # type: ignore[arg-type]

    assert response.status_code == 400
    assert response.headers["X-Reasoning-Restored"] == "0/0"


def test_a_store_that_fails_does_not_break_the_chat(provider: Provider, store: rs.Store) -> None:
    """The response names the store's error; with "fail" it is raised."""
    store.close()

    response = ask(store, provider, [USER])

    assert response.status_code == 200
    assert response.headers["X-Reasoning-Store-Error"] == "InvalidCall"
    with pytest.raises(rs.InvalidCall):
        ask(store, provider, [USER], on_store_error="fail")


ODD: list[Any] = [7, "x", "[" * 2000, [7], {"type": ["x"]}, [{"type": ["x"]}]]


def odd_bodies(body: Any) -> Iterator[Any]:
    """Yield a body with each odd value at each of its places."""
    listed = enumerate(body if isinstance(body, list) else ())
    for key, value in body.items() if isinstance(body, dict) else listed:
        for other in [*ODD, *odd_bodies(value)]:
            changed = body.copy()
            changed[key] = other
            yield changed


@each("path", BODIES)
def test_no_body_of_a_client_breaks_the_chat(store: rs.Store, path: str) -> None:
    """Whatever value is at whatever place of it."""
    matcher = EchoMatcher(store, settings={"reasoning.includeInContext": True})
    for body in [BODIES[path], *odd_bodies(BODIES[path])]:
        unstored = None if body is BODIES[path] else "odd"
        exchange = matcher.begin(deepcopy(body), path=path, unstored=unstored)
        assert exchange is None or json.dumps(exchange.body)


def test_a_call_of_gemini_without_an_id_is_answered(store: rs.Store) -> None:
    """Its result answers the first open call of its name, in the client's body and in the store."""
    matcher = EchoMatcher(store, provider="google")
    path = "/v1beta/models/gemini-2.5-flash:generateContent"
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Oslo and Rome?"}]}]
    for step in range(2):
        exchange = matcher.begin({"contents": contents}, path=path)
        assert exchange is not None
        calls = [
            {"functionCall": {"name": "get_weather", "args": {"city": city}}}
            for city in ("Oslo", "Rome")
        ]
        content = {"role": "model", "parts": calls}
        body = {"candidates": [{"content": content}], "responseId": f"r{step}"}
        exchange.record(json.dumps(body).encode())
        results = [
            {"functionResponse": {"name": "get_weather", "response": {"result": f"{n} C"}}}
            for n in (4, 20)
        ]
        contents += [content, {"role": "user", "parts": results}]
    exchange = matcher.begin({"contents": contents}, path=path)
    assert exchange is not None
    exchange.record(json.dumps({"candidates": [{"content": {"parts": [_TEXT]}}]}).encode())

    (session,) = store.sessions().items
    request = session.build_request(provider="google", model="gemini-2.5-flash")
    assert request.warnings == ()
    assert request.body["contents"][:5] == contents


def test_a_stream_of_gemini_that_is_one_list_is_stored(store: rs.Store) -> None:
    """As ``streamGenerateContent`` answers without ``alt=sse``."""
    path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
    contents = [{"role": "user", "parts": [_TEXT]}]
    exchange = EchoMatcher(store).begin({"contents": contents}, path=path)
    assert exchange is not None
    parts = ({"text": "So.", "thought": True}, {"text": "It "}, {"text": "is."})
    events = [{"candidates": [{"content": {"role": "model", "parts": [one]}}]} for one in parts]
    exchange.record(json.dumps(events).encode())

    (session,) = store.sessions().items
    reply = session.history()[-1].message
    assert (reply.text, reply.thinking[0].thought) == ("It is.", "So.")


def test_a_stream_that_breaks_off_is_stored_as_interrupted(
    provider: Provider, store: rs.Store
) -> None:
    """What arrived is kept."""
    provider.script = lambda asked: Answer(
        message=rs.assistant("A long answer that breaks off."), pieces=9, drop_after=5
    )
    client = open_openai(provider.address, http_client=http.client(store, provider="deepseek"))
    messages: list[Any] = [USER]

    with client, pytest.raises(openai.APIConnectionError):
        for _ in client.chat.completions.create(
            model="deepseek-flash", messages=messages, stream=True
        ):
            pass

    (session,) = store.sessions().items
    assert session.history()[-1].message.status == "interrupted"


def test_the_older_library_is_served_too(provider: Provider, store: rs.Store) -> None:
    """Clients of httpx have transports of another class."""
    with http.client(store, module="httpx", provider="deepseek") as client:
        assert isinstance(client, httpx.Client)
        body = {"model": "deepseek-flash", "messages": [USER]}
        client.post(f"{provider.address}/v1/chat/completions", json=body)

    (session,) = store.sessions().items
    assert len(session.history()) == 2


def test_what_carries_no_conversation_passes_through(store: rs.Store) -> None:
    """Neither the body nor the answer is touched."""
    seen: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"data": []})

    inner = httpx2.MockTransport(answer)
    with http.client(store, transport=inner) as client:
        response = client.post("https://api.openai.com/v1/embeddings", json={"input": "x"})

    assert seen[0].content == b'{"input":"x"}'
    assert "X-Reasoning-Restored" not in response.headers
    assert store.sessions().items == []


@STREAMED
@pytest.mark.parametrize("host", ["DeepSeek", "Kimi"])
def test_without_the_transport_the_same_loop_is_refused(
    provider: Provider, host: str, streamed: bool
) -> None:
    """So the provider is as strict as it has to be."""
    make, loop, _, model = CASES[host]

    with make(provider.address) as client, pytest.raises(openai.BadRequestError):
        loop(client, model, streamed=streamed)
