"""Stored responses, by the official SDK: found by their ids, continued, deleted, cancelled."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.results import Owner
from reasoning_store.server.access import Access
from reasoning_store.server.openai_routes import make_route
from reasoning_store.server.options import ServerOptions
from reasoning_store.testing import response
from tests.docs.provider import Answer, Asked, Provider, weather
from tests.server.serving import listening, serving

_numbers = count(1)
_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""The threads that all requests of a server share."""
TOOL: Any = {"type": "function", "name": "get_weather", "parameters": {}, "strict": False}


def numbered(**more: Any) -> Any:
    """Return a script whose every response has an id of its own, as real ones have."""

    def answer(asked: Asked) -> Answer:
        found = weather(asked)
        origin = rs.Origin(response_id=f"resp_{next(_numbers)}")
        return replace(found, message=replace(found.message, origin=origin), **more)

    return answer


@pytest.fixture(scope="module", autouse=True)
def _numbered(provider: Provider) -> None:
    provider.script = numbered()


@pytest.fixture
def alone(store: rs.Store) -> Iterator[openai.OpenAI]:
    """A client of the store without a provider."""
    with (
        serving(store) as address,
        openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0) as made,
    ):
        yield made


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_response_is_there_as_soon_as_it_is_complete(client: openai.OpenAI, stream: bool) -> None:
    """With its status, its usage and its items, thinking included; and so is its input."""
    asked: dict[str, Any] = {"model": "gpt-5.2", "input": "How is Oslo?", "tools": [TOOL]}
    if stream:
        events = client.responses.create(**asked, stream=True)
        reply = next(one.response for one in events if one.type == "response.completed")
    else:
        reply = client.responses.create(**asked)
    found = client.responses.retrieve(reply.id)
    items = client.responses.input_items.list(reply.id).data
    events = list(client.responses.retrieve(reply.id, stream=True))

    assert (found.id, found.status, found.model) == (reply.id, "completed", reply.model)
    assert [item.id for item in found.output] == [item.id for item in reply.output]
    assert [item.type for item in found.output] == ["reasoning", "function_call"]
    assert found.usage is not None
    assert reply.usage is not None
    assert found.usage.total_tokens == reply.usage.total_tokens
    assert [item.to_dict()["content"] for item in items] == [
        [{"type": "input_text", "text": "How is Oslo?"}]
    ]
    assert events[-1].type == "response.completed"
    assert events[-1].response == found
    assert list(client.responses.retrieve(reply.id, stream=True, starting_after=4)) == events[5:]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asks", [False, True], ids=["obeyed", "asked for"])
def test_a_response_that_its_client_does_not_want_stored_is_not_stored(
    client: openai.OpenAI, provider: Provider, store: rs.Store, stream: bool, asks: bool
) -> None:
    """A header stores it all the same: some clients send ``store: false`` always."""
    before = len(store.sessions(limit=200).items)
    with client.responses.with_streaming_response.create(
        model="gpt-5.2",
        input="How is Tromso?",
        store=False,
        stream=stream,
        extra_headers={"X-Reasoning-Store": "yes"} if asks else {},
    ) as reply:
        reply.read()

    assert reply.headers.get("X-Reasoning-Stored") == (None if asks else "no (store=false)")
    assert len(store.sessions(limit=200).items) == before + asks
    assert provider.asked[-1].body["store"] is False
    with pytest.raises(openai.BadRequestError, match="yes or no"):
        client.responses.create(input="a", extra_headers={"X-Reasoning-Store": "maybe"})


SEALS = ["reasoning.encrypted_content"]
OWN_MODEL = {"providers": ["openai"], "apis": ["openai.responses"], "models": ["house-1"]}


@pytest.mark.parametrize(
    ("model", "asked"), [("gpt-5.2", SEALS), ("gpt-4.1", None), ("house-1", SEALS)]
)
def test_the_thinking_of_a_response_comes_sealed_where_its_model_thinks(
    provider: Provider, tmp_path: Path, model: str, asked: list[str] | None
) -> None:
    """By the contracts of the store, its own ones too; a next request sends the thinking back."""
    options = ServerOptions(upstream=f"{provider.address}/v1", provider="openai")
    mine = {"model": [{**OWN_MODEL, "stateless": True}]}
    with (
        rs.Store(f"sqlite:///{tmp_path}/own.db", contracts=mine) as own,
        serving(own, options) as address,
        openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0) as client,
    ):
        client.responses.create(model=model, input="How is Bergen?")

    assert provider.asked[-1].body.get("include") == asked


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("by", ["previous_response_id", "conversation"])
def test_a_response_names_the_conversation_that_its_request_named(
    client: openai.OpenAI, provider: Provider, stream: bool, by: str
) -> None:
    """As the API shows it: at once, in each event, and when it is retrieved."""
    first = client.responses.create(model="gpt-5.2", input="How is Bodo?")
    made = client.conversations.create()
    named: Any = {by: first.id if by == "previous_response_id" else made.id}
    shown: Any = {"previous_response_id": None, "conversation": None, "store": True}
    shown |= {by: first.id if by == "previous_response_id" else {"id": made.id}}

    if stream:
        events = client.responses.create(model="gpt-5.2", input="And?", stream=True, **named)
        responses = [one.response for one in events if hasattr(one, "response")]
    else:
        responses = [client.responses.create(model="gpt-5.2", input="And?", **named)]
    found = client.responses.retrieve(responses[-1].id)

    for one in (*responses, found):
        fields = one.to_dict()
        assert {name: fields[name] for name in shown} == shown
    assert provider.asked[-1].body["store"] is False
    assert client.responses.retrieve(first.id).conversation is None


def test_a_request_after_an_older_response_is_a_branch(
    client: openai.OpenAI, provider: Provider, store: rs.Store
) -> None:
    """It is sent what came before that response, and nothing is overwritten."""
    first = client.responses.create(model="gpt-5.2", input="How is Rome?")
    second = client.responses.create(
        model="gpt-5.2", input="And Milan?", previous_response_id=first.id
    )
    third = client.responses.create(
        model="gpt-5.2", input="And Turin?", previous_response_id=first.id
    )
    sent = str(provider.asked[-1].body["input"])
    after = client.responses.create(model="gpt-5.2", input="Sure?", previous_response_id=second.id)

    assert "Rome" in sent
    assert "Milan" not in sent
    assert "Milan" in str(provider.asked[-1].body["input"])
    session = store.find_session(first.id)
    assert session is not None
    assert [len(session.branch(one.id).history()) for one in session.branches()] == [6, 4]
    questions = client.responses.input_items.list(third.id, order="asc").data
    assert ["Rome" in str(one) for one in questions] == [True, False, False, False]
    assert "Turin" in str(questions[-1])
    assert (
        client.responses.retrieve(after.id).conversation
        == client.responses.retrieve(third.id).conversation
    )


def test_two_requests_after_one_response_are_two_branches(
    client: openai.OpenAI, provider: Provider, store: rs.Store
) -> None:
    """Also where they come at the same time, and each streams its reply while the other does."""
    first = client.responses.create(model="gpt-5.2", input="How is Graz?")
    met = threading.Barrier(2, timeout=60)
    plain = numbered()

    def meet(asked: Asked) -> Answer:
        met.wait()
        found: Answer = plain(asked)
        return replace(found, pieces=8)

    def ask(text: str) -> str:
        events = client.responses.create(
            model="gpt-5.2", input=text, previous_response_id=first.id, stream=True
        )
        return next(one.response.id for one in events if one.type == "response.completed")

    provider.script = meet
    try:
        with ThreadPoolExecutor(2) as pool:
            ids = list(pool.map(ask, ["Linz?", "Wels?"]))
    finally:
        provider.script = plain
    for id, text in zip(ids, ["Linz?", "Wels?"], strict=True):
        items = client.responses.input_items.list(id, order="asc").data
        assert text in str(items[-1])
        assert len(items) == 4
        assert client.responses.retrieve(id).status == "completed"


def test_a_background_response_is_stored_once_it_is_complete(store: rs.Store) -> None:
    """The client asks for it until then; the provider answers, and then it is ours."""
    thought = rs.ThinkingBlock(thought="Cold.", source_field="reasoning.summary", encrypted="g")
    message = rs.assistant(thought, "It is 4 C.", origin=rs.Origin(response_id="resp_later"))
    done = response(message, api="openai.responses", provider="openai", model="gpt-5.2")
    begun = {**done, "status": "queued", "output": [], "background": True}
    answers = [{**begun, "status": "in_progress"}, done]
    routes = [
        Route("/v1/responses", lambda request: JSONResponse(begun), methods=["POST"]),
        Route("/v1/responses/{id}", lambda request: JSONResponse(answers.pop(0))),
    ]
    with (
        listening(Starlette(routes=routes)) as upstream,
        serving(store, ServerOptions(upstream=upstream, provider="openai")) as address,
        openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0) as client,
    ):
        client.responses.create(model="gpt-5.2", input="How is Oslo?", background=True)
        found = [client.responses.retrieve("resp_later") for _ in range(3)]

    assert [one.status for one in found] == ["in_progress", "completed", "completed"]
    assert [one.id for one in found] == ["resp_later"] * 3
    assert found[2].output_text == "It is 4 C."
    session = store.find_session("resp_later")
    assert session is not None
    history = store.session(session.id).history()
    assert [one.message.text for one in history] == ["How is Oslo?", "It is 4 C."]
    assert history[1].message.thinking[0].thought == "Cold."


def test_the_provider_compacts_a_conversation_of_ours(store: rs.Store) -> None:
    """It is sent the items that the response names, with the thinking that the settings send."""
    asked: list[dict[str, Any]] = []

    async def compact(request: Request) -> Response:
        asked.append(await request.json())
        return JSONResponse({"id": "r", "object": "response.compaction", "output": []})

    route = Route("/v1/responses/compact", compact, methods=["POST"])
    with listening(Starlette(routes=[route])) as upstream:
        options = ServerOptions(upstream=upstream, provider="openai")
        settings = {"reasoning.includeInContext": True}
        session = store.session("to-compact", create=True, settings=settings)
        thought = rs.ThinkingBlock(thought="Cold.", source_field="reasoning.summary", encrypted="g")
        origin = rs.Origin(
            provider="openai", api="openai.responses", model="gpt-5.2", base_url=upstream
        )
        session.append(rs.user("How is Oslo?"))
        session.append(rs.assistant(thought, "It is 4 C.", origin=origin), id="resp_to_compact")
        with (
            serving(store, options) as address,
            openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0) as client,
        ):
            client.responses.compact(model="gpt-5.2", previous_response_id="resp_to_compact")

    (sent,) = asked
    assert sorted(sent) == ["input", "model"]
    assert [item.get("type") for item in sent["input"]] == ["message", "reasoning", "message"]


def test_a_response_is_deleted(client: openai.OpenAI, store: rs.Store) -> None:
    """Erased here, and deleted by a provider that stores responses; it cannot be continued."""
    reply = client.responses.create(model="gpt-5.2", input="How is Bonn?")
    client.responses.delete(reply.id)

    session = store.find_session(reply.id)
    assert session is not None
    assert session.get(reply.id).message.status == "erased"
    with pytest.raises(openai.NotFoundError):
        client.responses.input_tokens.count(model="m", input="?", previous_response_id=reply.id)


@pytest.mark.parametrize("verb", ["retrieve", "delete", "cancel"])
def test_an_unknown_response_is_not_found(alone: openai.OpenAI, verb: str) -> None:
    """With the four keys of OpenAI's errors."""
    with pytest.raises(openai.NotFoundError, match="resp_unknown") as refused:
        getattr(alone.responses, verb)("resp_unknown")

    assert isinstance(refused.value.body, dict)
    assert {*refused.value.body} == {"message", "type", "param", "code"}


def test_a_response_of_another_owner_is_not_found(store: rs.Store, alone: openai.OpenAI) -> None:
    """As if it were absent: it is neither read nor continued nor deleted."""
    other = store.for_owner("other").session("theirs", create=True)
    other.append(rs.assistant("A canary."), id="resp_theirs")
    verbs: list[Any] = [alone.responses.retrieve, alone.responses.delete, alone.responses.cancel]
    for verb in [*verbs, alone.responses.input_items.list]:
        with pytest.raises(openai.NotFoundError):
            verb("resp_theirs")
    with pytest.raises(openai.NotFoundError):
        alone.responses.input_tokens.count(input="?", previous_response_id="resp_theirs")

    assert other.get("resp_theirs").message.text == "A canary."


def test_a_response_of_the_providers_is_asked_of_it(client: openai.OpenAI) -> None:
    """Its answer is passed on, here a refusal."""
    with pytest.raises(openai.APIStatusError) as refused:
        client.responses.retrieve("resp_unknown")

    assert refused.value.status_code == 501
    with pytest.raises(openai.APIStatusError):
        client.responses.delete("resp_unknown")


def test_a_reply_under_way_is_cancelled(client: openai.OpenAI, provider: Provider) -> None:
    """What had arrived is stored; a reply that has ended is returned as it is."""
    hold = threading.Event()
    provider.script = numbered(pieces=4, hold_after=7, until=hold)
    try:
        events = client.responses.create(model="gpt-5.2", input="How is Nice?", stream=True)
        id = next(one.response.id for one in events if one.type == "response.created")
        next(one for one in events if one.type == "response.output_item.added")
        stopped = client.responses.cancel(id)
    finally:
        hold.set()
        provider.script = numbered()
    events.close()

    assert stopped.status == "cancelled"
    assert client.responses.cancel(id).status == "cancelled"
    assert client.responses.retrieve(id).output == stopped.output


def test_clients_that_wait_hold_up_no_other_request(store: rs.Store) -> None:
    """A reply is stored by the threads that other requests share: who waits for it uses none."""
    ended = threading.Event()

    def wait(owner: Owner, body: Any, query: Any) -> dict[str, Any]:
        return {"ended": ended.wait(20)}

    def end(owner: Owner, body: Any, query: Any) -> dict[str, Any]:
        ended.set()
        return {}

    app = Starlette(
        routes=[
            make_route("/wait", "GET", wait, waits=True),
            make_route("/end", "GET", end),
        ],
        middleware=[Middleware(Access, store=store, options=ServerOptions())],
    )
    with listening(app) as address, ExitStack() as opened:
        waiting = [
            opened.enter_context(socket.create_connection(("127.0.0.1", httpx2.URL(address).port)))
            for _ in range(_THREADS + 1)
        ]
        for one in waiting:
            one.sendall(b"GET /wait HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        httpx2.get(f"{address}/end", timeout=30)
        answers = [one.makefile("rb").read() for one in waiting]

    assert all(b'{"ended":true}' in one for one in answers)
