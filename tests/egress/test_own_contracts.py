"""Contracts of an application's own, and what a model takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.testing import refusal
from reasoning_store.wire import contract_lookup
from tests.properties import each

IMAGE = rs.MediaBlock(kind="image", mime_type="image/png", data=b"x")
TOOLS = [{"name": "look", "description": "Look.", "parameters": {"type": "object"}}]
MINE = """
[[host]]
id = "acme"
aliases = ["Acme-Gateway"]
api = "openai.chat"
addresses = ["llm.acme.example"]

[[contract]]
provider = "acme"
api = "openai.chat"
like = "deepseek"
media = []

[[contract]]
provider = "acme"
api = "openai.chat"
models = ["Tiny*"]
takes_tools = false

[[model]]
providers = ["openai"]
apis = ["openai.responses"]
models = ["gpt-9*"]
effort_at = "reasoning.effort"
efforts = ["low"]
"""


@pytest.fixture(autouse=True)
def _own_rows_of_this_test() -> Iterator[None]:
    before = contract_lookup._own
    yield
    contract_lookup._own = before
    contract_lookup._empty_caches()


def added(given: Any) -> None:
    rs.Store("sqlite://", contracts=given).close()


def test_a_host_of_ones_own_is_read_and_written_by_its_rows(tmp_path: Path) -> None:
    """By its name, its alias and its address; like another host's, where it says so."""
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    with rs.Store("sqlite://", contracts=path) as store:
        session = store.session("s", create=True)
        session.append(rs.user("Hi"))
        events = [
            {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm.", "content": "A"}}]}
        ]
        for _ in session.record(events, base_url="https://llm.acme.example/v1", model="big"):
            pass
        session.append(rs.user("And?"))
        request = session.build_request(settings={"reasoning.includeInContext": True})

        assert session.history()[1].message.thinking[0].thought == "Hm."
        assert request.body["messages"][1]["reasoning_content"] == "Hm."
    off = rs.build_request([rs.user("q")], provider="acme-gateway", model="big", settings=OFF)
    assert off.body["thinking"] == {"type": "disabled"}
    assert off.warnings == ()


OFF = {"reasoning.enabled": False}


def test_models_of_a_known_provider_get_rows_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from the file that the environment names; the other models keep theirs."""
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    monkeypatch.setenv("REASONING_STORE_CONTRACTS", str(path))
    rs.Store("sqlite://").close()
    to: dict[str, Any] = {"provider": "openai", "api": "openai.responses"}

    def effort(model: str) -> Any:
        settings = {"reasoning.effort": "high"}
        request = rs.build_request([rs.user("q")], model=model, settings=settings, **to)
        return request.body.get("reasoning"), [warning.code for warning in request.warnings]

    assert effort("gpt-9.1") == (None, ["parameter_unsent"])
    assert effort("gpt-5.6")[0] == {"effort": "high"}


def test_the_same_contracts_can_be_added_again() -> None:
    """Each worker's store names them; the async one as well."""
    mine = {"host": [{"id": "acme", "api": "openai.chat"}]}

    async def opened() -> None:
        async with rs.AsyncStore("sqlite://", contracts=mine):
            pass

    added(mine)
    asyncio.run(opened())

    assert contract_lookup.find_contract("acme").provider == "acme"


ROW = {"provider": "openai", "api": "openai.chat"}
BAD: list[tuple[Any, str]] = [
    ({"hosts": []}, "there is no table 'hosts'; did you mean host?"),
    ({"host": {}}, "host is a list of rows"),
    ({"host": ["acme"]}, r"host\[0\] is a mapping, not str"),
    ({"host": [{"id": "acme"}]}, r"host\[0\]: api is missing"),
    ({"host": [{"id": "acme", "api": "chatt"}]}, r"host\[0\].api: unknown api 'chatt'"),
    ({"host": [{"id": "openai", "api": "openai.chat"}]}, "two hosts are named 'openai'"),
    ({"contract": [{**ROW, "provider": "acme"}]}, "there is no host 'acme'"),
    ({"model": [{"providers": ["x"], "apis": [], "models": []}]}, "there is no host 'x'"),
    ({"contract": [{**ROW, "like": "acme"}]}, "there is no host 'acme'"),
    ({"contract": [{**ROW, "like": "cohere"}]}, "there is no contract of cohere"),
    ({"contract": [{**ROW, "flor": "all"}]}, r"contract\[0\]: there is no key 'flor'; .* floor"),
    ({"contract": [{**ROW, "floor": "some"}]}, r"contract\[0\].floor: .* 'open_calls'"),
    ({"contract": [{**ROW, "media": ["smell"]}]}, r"contract\[0\].media: .* 'image'"),
    ({"contract": [{**ROW, "takes_tools": "no"}]}, r"contract\[0\].takes_tools: .* boolean"),
    ({"contract": [{**ROW, "call_id_pattern": "["}]}, r"call_id_pattern: no regular expression"),
    ({"template": [{"models": ["x"], "markers": ["x"]}]}, "there is no family 'x'"),
    ("none.toml", "none.toml cannot be read: No such file"),
    (__file__, "is not TOML"),
    (5, "a file or a mapping, not int"),
]


@each("given, error", BAD)
def test_contracts_that_cannot_hold_are_refused_whole(given: Any, error: str) -> None:
    """By the place of what is wrong, with what is allowed there."""
    whole = given
    if isinstance(given, dict) and "host" not in given:
        whole = {"host": [{"id": "fine", "api": "openai.chat"}], **given}

    with pytest.raises(rs.InvalidCall, match=error):
        added(whole)
    assert contract_lookup.find_host("fine") is None


def test_media_that_a_model_does_not_take_are_left_out_with_a_warning() -> None:
    """Of every message; one that held nothing else says so, and none is lost in the store."""
    history = [rs.user("See:", IMAGE), rs.assistant("Yes."), rs.user(IMAGE)]
    to: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-chat"}
    request = rs.build_request(history, **to)
    (warning,) = request.warnings

    assert [message["content"] for message in request.body["messages"]] == [
        "See:",
        "Yes.",
        "an attachment was left out",
    ]
    assert warning.code == "media_left_out"
    assert warning.text == (
        "deepseek-chat of deepseek does not take these media, which are left out: image"
    )
    assert refusal(request.body, **to) is None
    explained = rs.explain_refusal("deepseek", "unknown variant `image_url`, expected `text`")
    assert explained is not None
    assert "media = []" in explained.fix


def test_tools_that_a_model_does_not_take_are_left_out_with_a_warning() -> None:
    """The count stays that of the call."""
    added({"contract": [{**ROW, "models": ["tiny*"], "takes_tools": False}]})
    request = rs.build_request([rs.user("q")], provider="openai", model="tiny-1", tools=TOOLS)

    assert "tools" not in request.body
    assert [warning.code for warning in request.warnings] == ["tools_left_out"]
    other = rs.build_request([rs.user("q")], provider="openai", model="gpt-4o", tools=TOOLS)
    assert (len(other.body["tools"]), other.warnings) == (1, ())
    assert other.tokens.effective == request.tokens.effective
