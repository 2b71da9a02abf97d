"""What the server shows to nobody but its owner, and how it refuses bad input."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager
from urllib.parse import quote

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.server.inspector.file_page import file_page
from reasoning_store.server.limits import Limits
from reasoning_store.server.options import ServerOptions, read_tokens
from tests.docs.provider import Provider
from tests.server.serving import listening, serving

KEY = "sk-canary-of-the-provider"
TOKENS = {
    "me": "token-canary-of-me-01234",
    "you": "token/canary+of=you-0123==",
    "*": "token-canary-of-operator",
}
OWNERS = read_tokens([f"{token} {owner}" for owner, token in TOKENS.items()], "tokens")
SECRET = "the canary of you"
BODY = {"model": "deepseek-reasoner", "messages": [{"role": "user", "content": SECRET}]}


@pytest.fixture(scope="module")
def address(provider: Provider, store: rs.Store) -> Iterator[str]:
    options = ServerOptions(
        upstream=f"{provider.address}/v1",
        provider="deepseek",
        upstream_key=KEY,
        tokens=OWNERS,
        limits=Limits(body_bytes=10_000),
    )
    with serving(store, options) as at:
        yield at


PAGES = ("/session", "/session/request.json", "/session/live")
FORMS = ("/session/settings", "/session/compact", "/session/undo", "/session/branch")


def as_owner(owner: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[owner]}"}


def test_nothing_of_another_owner_and_no_secret_is_shown(
    address: str, store: rs.Store, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """No body, header or line of the log; and the store has no key."""
    caplog.set_level(logging.DEBUG)
    chat = httpx2.post(f"{address}/v1/chat/completions", json=BODY, headers=as_owner("you"))
    made = httpx2.post(
        f"{address}/v1/conversations",
        json={"items": [{"role": "user", "content": SECRET}]},
        headers=as_owner("you"),
    )
    ids = [chat.headers["X-Reasoning-Session"], made.json()["id"]]
    paths = ["/", "/metrics", "/healthz", "/sign-in", "/v1/models", f"/?q={SECRET}"]
    for id in ids:
        paths += [f"/v1/conversations/{id}", f"/v1/conversations/{id}/items"]
        paths += [f"{path}?id={id}" for path in PAGES]
    answers = [
        httpx2.get(f"{address}{path}", headers={**headers, "accept": "text/html"})
        for path in paths
        for headers in (as_owner("me"), {})
    ]
    for id in ids:
        headers = {**as_owner("me"), "X-Reasoning-Session": id}
        other = {**BODY, "messages": [{"role": "user", "content": "mine"}]}
        url = f"{address}/v1/chat/completions"
        answers.append(httpx2.post(url, json=other, headers=headers))
        asked = {"model": "m", "input": "mine", "conversation": id}
        count = f"{address}/v1/responses/input_tokens"
        answers.append(httpx2.post(count, json=asked, headers=as_owner("me")))

    assert chat.status_code == 200
    secrets = [KEY, *TOKENS.values()]
    for answer in [chat, made, *answers]:
        shown = f"{answer.headers} {answer.text}"
        assert [secret for secret in secrets if secret in shown] == []
    for answer in answers:
        if f"q={SECRET}".replace(" ", "%20") not in str(answer.url):
            assert SECRET not in f"{answer.headers} {answer.text}"
    logged = " ".join(
        record.getMessage() for record in caplog.records if not record.name.startswith("httpx")
    )
    assert [secret for secret in [*secrets, SECRET] if secret in logged] == []
    exported = "".join(store.export_lines())
    assert SECRET in exported
    assert [secret for secret in secrets if secret in exported] == []
    assert SECRET not in str(provider.asked[-1].body)


def test_no_form_reaches_another_owners_session_and_no_page_has_a_secret(
    address: str, store: rs.Store
) -> None:
    """Neither in the owner's own pages, in no view of the request, nor as a file."""
    session = store.for_owner("you").session("long", create=True, title=SECRET)
    session.append(rs.user(SECRET * 20))
    before = session.settings.resolved()
    secrets = [KEY, *TOKENS.values()]
    views = [f"/session?id=long&limit=10&show={show}" for show in ("json", "curl", "last")]
    answers = [
        httpx2.get(f"{address}{path}", headers={**as_owner("you"), "accept": "text/html"})
        for path in ("/", *views, *(f"{path}?id=long" for path in PAGES[1:2]))
    ]
    assert all(SECRET in answer.text for answer in answers)

    with httpx2.Client(base_url=address, headers=as_owner("me")) as browser:
        found = browser.get("/", headers={"accept": "text/html"})
        cookie = found.cookies["reasoning_store_form"]
        form = {"form_token": cookie, "id": "long", "branch": "1", "compaction": "1", "limit": "10"}
        for path in FORMS:
            fields = {**form, "includeInContext": "true", "summary": "mine"}
            answer = browser.post(path, data=fields, headers={"origin": address})
            assert answer.status_code == 404
            assert SECRET not in f"{answer.headers} {answer.text}"
            answers.append(answer)
    pages = [f"{answer.headers} {answer.text}" for answer in answers]
    pages.append(file_page(session, session.history()))

    assert [secret for secret in secrets for page in pages if secret in page] == []
    assert session.settings.resolved() == before
    assert session.compactions() == []


@pytest.mark.parametrize(
    ("path", "content", "status", "code"),
    [
        ("/v1/chat/completions", b"{" + b" " * 20_000, 413, "body_too_large"),
        ("/v1/chat/completions", b"not json", 400, "invalid_json"),
        ("/v1/chat/completions", b"[1]", 400, "invalid_json"),
        ("/v1/responses", b"[" * 9_000, 400, "invalid_json"),
        ("/v1/conversations", b"\xff", 400, "invalid_json"),
        ("/v1/conversations/a/b/c/d", b"{}", 404, "unknown_url"),
        ("/v1/responses", b"{", 400, "invalid_json"),
    ],
)
def test_a_bad_request_is_refused_in_openais_shape(
    address: str, path: str, content: bytes, status: int, code: str
) -> None:
    """With the status that its SDK makes an exception of."""
    answer = httpx2.post(f"{address}{path}", content=content, headers=as_owner("me"))

    assert answer.status_code == status
    assert {*answer.json()["error"]} == {"message", "type", "param", "code"}
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    "name",
    "..%2Ffiles %2e%2e/files a/.%2E/.%2e/files .%2e ..;/files a/..;x=1 ..%5Cfiles a//files "
    "%2Ffiles .%2F..".split(),
)
def test_no_path_leads_to_another_route_of_the_provider(address: str, name: str) -> None:
    """With our key for it a client would get more than the routes that are passed on."""
    answer = httpx2.get(f"{address}/v1/models/{name}", headers=as_owner("me"))

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_url"


def test_a_name_in_the_path_is_passed_on_as_it_is(store: rs.Store) -> None:
    """Whatever characters it has; a query cannot be hidden in it."""
    seen: list[tuple[str, str]] = []

    async def look(request: Request) -> JSONResponse:
        seen.append((request.path_params["id"], request.url.query))
        return JSONResponse({})

    routes = [Route("/v1/responses/{id}", look), Route("/v1/models/{id:path}", look)]
    with (
        listening(Starlette(routes=routes)) as upstream,
        serving(store, ServerOptions(upstream=upstream)) as address,
    ):
        for name in ("models/a%3Fb=1%23c", "responses/%01%C3%A9%25?d=1", "models/ft:a/b c"):
            assert httpx2.get(f"{address}/v1/{name}").status_code == 200

    assert seen == [("a?b=1#c", ""), ("\x01\xe9%", "d=1"), ("ft:a/b c", "")]


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "type"),
    [
        ("POST", "/v1/messages", b"not json", 400, "invalid_request_error"),
        ("POST", "/v1/messages", b" " * 20_000, 413, "request_too_large"),
        ("POST", "/v1/messages/count_tokens", b"[null]", 400, "invalid_request_error"),
        ("POST", "/v1/messages/batches", b"{}", 403, "permission_error"),
    ],
)
def test_a_bad_request_is_refused_in_anthropics_shape(
    address: str, method: str, path: str, content: bytes, status: int, type: str
) -> None:
    """A type, and an error with its own type and a message."""
    headers = {"x-api-key": TOKENS["me"]}
    answer = httpx2.request(method, f"{address}{path}", content=content, headers=headers)

    assert answer.status_code == status
    assert answer.json()["type"] == "error"
    assert {*answer.json()["error"]} == {"type", "message"}
    assert answer.json()["error"]["type"] == type


def test_an_unknown_model_is_the_providers_to_refuse(store: rs.Store) -> None:
    """Its status and its words are passed on."""
    words = {"error": {"message": "The model `none` does not exist", "code": "model_not_found"}}

    async def refuse(request: Request) -> JSONResponse:
        return JSONResponse(words, 404)

    routes = [Route("/v1/chat/completions", refuse, methods=["POST"])]
    with (
        listening(Starlette(routes=routes)) as upstream,
        serving(store, ServerOptions(upstream=upstream)) as address,
    ):
        body = {**BODY, "model": "none", "stream": True}
        answer = httpx2.post(f"{address}/v1/chat/completions", json=body)

    assert (answer.status_code, answer.json()) == (404, words)


def test_the_metrics_of_an_owner_count_its_own_requests(
    provider: Provider, store: rs.Store
) -> None:
    """By route; no label is the id of a session. An operator's token reads the numbers of all."""
    options = ServerOptions(upstream=f"{provider.address}/v1", provider="deepseek", tokens=OWNERS)
    with serving(store, options) as address:
        for owner, body in (("you", BODY), ("me", [])):
            httpx2.post(f"{address}/v1/chat/completions", json=body, headers=as_owner(owner))
        mine, yours, everybodys = (
            httpx2.get(f"{address}/metrics", headers=as_owner(one)).text for one in TOKENS
        )
        refused = httpx2.get(f"{address}/v1/conversations/x", headers=as_owner("*"))

    counted = 'reasoning_store_requests_total{route="/v1/chat/completions",status="%s"} '
    assert counted % 400 in mine
    assert counted % 400 not in yours
    assert counted % 200 in yours
    assert counted % 200 not in mine
    assert counted % 400 in everybodys
    assert counted % 200 in everybodys
    assert "# TYPE reasoning_store_request_seconds histogram" in mine
    assert "conv_" not in everybodys
    assert refused.status_code == 401


class Recorder:
    """A provider that keeps each request as it came."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []

    async def answer(self, request: Request) -> Response:
        self.heads.append(f"{request.url.query} {request.headers.items()}")
        self.bodies.append(await request.body())
        return JSONResponse(
            {}, headers={"connection": "x-private", "x-private": "1", "x-other": "2"}
        )

    def listening(self) -> AbstractContextManager[str]:
        return listening(Starlette(routes=[Route("/{path:path}", self.answer, methods=METHODS)]))


METHODS = ["GET", "POST"]
BASIC = b64encode(f"me:{TOKENS['me']}".encode()).decode()


@pytest.mark.parametrize("key", [None, KEY])
def test_no_token_reaches_the_provider(store: rs.Store, key: str | None) -> None:
    """In whatever header or parameter it comes; a key of the client's own passes."""
    me, you = TOKENS["me"], TOKENS["you"]
    owner = {"x-reasoning-token": me}
    given: list[tuple[dict[str, str], str]] = [
        ({name: value}, "")
        for value in (me, you, f"Bearer {you}", f"token={me}", f'Token token="{me}", x=1')
        for name in ("authorization", "x-api-key", "api-key", "x-goog-api-key", "x-any")
    ]
    given += [({"authorization": f"Basic {BASIC}"}, ""), ({}, f"key={me}"), ({}, f"a=1&b={you}")]
    given += [({}, f"key={quote(you, safe='')}"), ({"cookie": me, "proxy-authorization": me}, "")]
    recorder = Recorder()
    with recorder.listening() as upstream:
        options = ServerOptions(upstream=upstream, upstream_key=key, tokens=OWNERS)
        with serving(store, options) as address:
            for headers, query in given:
                url = f"{address}/v1/models?{query}"
                assert httpx2.get(url, headers={**owner, **headers}).status_code == 200
            for name in ("authorization", "x-api-key", "api-key", "x-goog-api-key"):
                assert httpx2.get(f"{address}/v1/models", headers={name: me}).status_code == 200
            headers = {**owner, "authorization": "Bearer own", "x-api-key": "own"}
            httpx2.get(f"{address}/v1/models?limit=5", headers=headers)
            httpx2.post(f"{address}/v1/messages", json=BODY, headers=headers)

    seen = " ".join(recorder.heads)
    assert [token for token in (me, you, BASIC) if token in seen] == []
    assert all((key or "own") in head and "cookie" not in head for head in recorder.heads[-2:])
    assert "limit=5" in recorder.heads[-2]
    assert ("own" in seen) == (key is None)
    if key is not None:
        assert all(f"Bearer {key}" in head for head in recorder.heads[:-1])
        assert f"('x-api-key', '{key}')" in recorder.heads[-1]


def test_a_header_that_connection_names_ends_here(store: rs.Store) -> None:
    """It is for this connection alone, in both directions."""
    recorder = Recorder()
    headers = {"Connection": "close, X-Private", "X-Private": "1", "X-Other": "2"}
    with recorder.listening() as upstream, serving(store, ServerOptions(upstream=upstream)) as at:
        answer = httpx2.get(f"{at}/v1/models", headers=headers)

    assert "x-private" not in recorder.heads[0]
    assert "x-other" in recorder.heads[0]
    assert "x-private" not in answer.headers
    assert answer.headers["x-other"] == "2"


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/v1/chat/completions", '"messages": [{"role": "user", "content": "a"}]'),
        ("/v1/messages", '"messages": [{"role": "user", "content": "a"}]'),
        ("/v1/messages/count_tokens", '"messages": [{"role": "user", "content": "a"}]'),
        ("/v1/responses", '"input": "a"'),
        ("/v1/responses/compact", '"input": "a"'),
        ("/v1/responses/none/cancel", '"x": 1'),
        ("/v1/chat/completions", '"messages": {"not": "a list"}'),
    ],
)
def test_what_was_judged_is_what_is_sent(store: rs.Store, path: str, rest: str) -> None:
    """A key given twice reaches no provider, which might read the other one."""
    content = (
        '{"previous_response_id": "resp_of_you", "model": "m", %s, "previous_response_id": null}'
    )
    recorder = Recorder()
    with recorder.listening() as upstream, serving(store, ServerOptions(upstream=upstream)) as at:
        httpx2.post(f"{at}{path}", content=content % rest)

    assert b"resp_of_you" not in recorder.bodies[0]
    assert json.loads(recorder.bodies[0])["previous_response_id"] is None


def test_a_shared_key_reads_no_response_of_another_owner(address: str, provider: Provider) -> None:
    """The provider cannot tell the owners apart, so it is not asked."""
    body = {"model": "deepseek-reasoner", "input": SECRET}
    made = httpx2.post(f"{address}/v1/responses", json=body, headers=as_owner("you"))
    id = made.json()["id"]
    asked = len(provider.asked)
    more = {**body, "previous_response_id": id}
    answers = [
        httpx2.request(method, f"{address}/v1/responses{path}", json=given, headers=as_owner("me"))
        for method, path, given in [
            ("GET", f"/{id}", None),
            ("DELETE", f"/{id}", None),
            ("POST", f"/{id}/cancel", None),
            ("GET", f"/{id}/input_items", None),
            ("POST", "", more),
            ("POST", "/compact", more),
            ("POST", "/input_tokens", more),
        ]
    ]

    assert {answer.status_code for answer in answers} == {404}
    assert len(provider.asked) == asked
    own = httpx2.get(f"{address}/v1/responses/{id}", headers=as_owner("you"))
    assert own.json()["id"] == id


@pytest.mark.parametrize("id", ["\u0447\u0430\u0442", "a\r\nX-Injected: 1"])
def test_a_session_whose_id_fits_no_header_is_continued(
    address: str, store: rs.Store, id: str
) -> None:
    """The header is left out, and the chat goes on in its session."""
    session = store.for_owner("me").session(id, create=True)
    session.append([rs.user(f"I am {id}"), rs.assistant("Hello.")])
    body = {"model": "gpt-5", "input": "Go on.", "conversation": id}
    answer = httpx2.post(f"{address}/v1/responses", json=body, headers=as_owner("me"))

    assert answer.status_code == 200
    assert not {"x-reasoning-session", "x-injected"} & {*answer.headers}
    assert session.head() == 4


def test_a_header_without_a_session_names_none(address: str) -> None:
    """Two such requests are two conversations."""
    found = [
        httpx2.post(
            f"{address}/v1/chat/completions",
            json={**BODY, "messages": [{"role": "user", "content": text}]},
            headers={**as_owner("me"), "X-Reasoning-Session": ""},
        ).headers["X-Reasoning-Session"]
        for text in ("one", "two")
    ]

    assert all(found)
    assert found[0] != found[1]


@pytest.mark.parametrize("mode", ["mirror", "clean", "render"])
def test_half_an_emoji_and_a_header_in_utf8_are_passed_on(store: rs.Store, mode: str) -> None:
    """A model may end in the middle of an emoji, and a provider write its header in UTF-8."""
    content = '{"choices":[{"message":{"role":"assistant","content":"<think>a</think>b\\ud83d"}}]}'

    async def answer(request: Request) -> Response:
        given = Response(content, media_type="application/json")
        given.raw_headers.append((b"x-model", "\u6a21".encode()))
        return given

    routes = [Route("/v1/chat/completions", answer, methods=["POST"])]
    with (
        listening(Starlette(routes=routes)) as upstream,
        serving(store, ServerOptions(upstream=upstream)) as address,
    ):
        headers = {"X-Reasoning-Mode": mode}
        found = httpx2.post(f"{address}/v1/chat/completions", json=BODY, headers=headers)

    assert found.status_code == 200
    assert found.json()["choices"][0]["message"]["content"].endswith("b\ud83d")
    assert found.headers["x-model"] == "\u6a21"
