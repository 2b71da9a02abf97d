"""Who may call the server: names, origins, tokens, and the owner of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

import reasoning_store as rs
from reasoning_store.server.options import ServerOptions, read_tokens
from tests.server.serving import serving

TOKENS = {"me": "token-of-me-0123456789", "you": "token-of-you-0123456789"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server that other machines could reach."""
    tokens = read_tokens([f"{token} {owner}" for owner, token in TOKENS.items()], "tokens")
    with (
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(tokens=tokens, hosts=frozenset({"chat.example"}))) as at,
    ):
        yield at


def get(address: str, path: str = "/v1/models", **headers: str) -> Any:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.get(f"{address}{path}", headers=given)


def test_a_bind_that_others_reach_is_refused_without_a_token() -> None:
    """The error names the remedy."""
    with pytest.raises(rs.InvalidCall, match="other machines reach") as refused:
        ServerOptions(host="0.0.0.0")

    assert "REASONING_STORE_TOKEN" in str(refused.value.hint)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_no_token(host: str) -> None:
    """Only this machine reaches it."""
    assert ServerOptions(host=host).tokens == {}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"x_reasoning_token": "wrong"}, 401),
        ({"authorization": "Bearer sk-of-a-provider"}, 401),
        ({"x_reasoning_token": TOKENS["me"]}, 404),
        ({"authorization": f"Bearer {TOKENS['me']}"}, 404),
        ({"x_api_key": TOKENS["you"]}, 404),
        ({"x_reasoning_token": TOKENS["me"], "host": "chat.example"}, 404),
        ({"x_reasoning_token": TOKENS["me"], "host": "evil.example"}, 403),
        ({"x_reasoning_token": TOKENS["me"], "host": "127.0.0.1.evil.example"}, 403),
        ({"x_reasoning_token": TOKENS["me"], "origin": "https://evil.example"}, 403),
        ({"x_reasoning_token": TOKENS["me"], "origin": "null"}, 403),
        ({"x_reasoning_token": TOKENS["me"], "origin": "http://[::1"}, 403),
    ],
)
def test_a_request_needs_our_name_our_origin_and_a_token(
    address: str, headers: dict[str, str], status: int
) -> None:
    """What passes finds that there is no such route."""
    assert get(address, "/v1/nothing", **headers).status_code == status


def test_a_page_of_the_same_origin_may_call(address: str) -> None:
    """The origin is the address by which the browser came."""
    token = TOKENS["me"]
    response = get(address, "/v1/nothing", origin=address, x_reasoning_token=token)

    assert response.status_code == 404


def test_health_needs_no_token(address: str) -> None:
    """A probe knows neither name nor token."""
    assert get(address, "/healthz", host="10.0.0.7.nip.example").status_code == 200


def test_a_browser_signs_in_once_and_its_cookie_holds_no_token(address: str) -> None:
    """The form takes the token; a wrong one gives no cookie."""
    with httpx2.Client(base_url=address) as browser:
        page = browser.get("/nothing", headers={"accept": "text/html"})
        refused = browser.post("/sign-in", data={"token": "wrong"})
        taken = browser.post("/sign-in", data={"token": TOKENS["me"]})
        seen = browser.get("/nothing", headers={"accept": "text/html"})

    assert (page.status_code, refused.status_code) == (401, 401)
    assert "set-cookie" not in refused.headers
    assert taken.status_code == 303
    assert "HttpOnly" in taken.headers["set-cookie"]
    assert "SameSite=strict" in taken.headers["set-cookie"]
    assert TOKENS["me"] not in str(taken.headers)
    assert seen.status_code == 404


def test_a_file_of_tokens_holds_digests_as_well() -> None:
    """Each line names an owner; a short token is refused by its line."""
    digest = "sha256:" + "0" * 64
    read = read_tokens(["# comment", "", f"{digest} me", "0123456789abcdef"], "f")

    assert list(read.values()) == ["me", ""]
    with pytest.raises(rs.InvalidCall, match="f, line 2"):
        read_tokens(["0123456789abcdef me", "short you"], "f")
