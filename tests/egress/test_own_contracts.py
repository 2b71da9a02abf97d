"""Contracts of an application's own, and what a model takes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.results import Contracts
from reasoning_store.testing import refusal
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


def contracts_of(given: Any) -> Contracts:
    """Return the contracts of a store that was opened with these, and is closed."""
    with rs.Store("sqlite://", contracts=given) as store:
        return store.contracts


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
        off = session.build_request(provider="acme-gateway", model="big", settings=OFF)
    assert off.body["thinking"] == {"type": "disabled"}
    assert off.warnings == ()


OFF = {"reasoning.enabled": False}


def test_models_of_a_known_provider_get_rows_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the file that the environment names, for functions too; other models keep theirs."""
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    monkeypatch.setenv("REASONING_STORE_CONTRACTS", str(path))
    to: dict[str, Any] = {"provider": "openai", "api": "openai.responses"}

    def effort(model: str) -> Any:
        settings = {"reasoning.effort": "high"}
        request = rs.build_request([rs.user("q")], model=model, settings=settings, **to)
        return request.body.get("reasoning"), [warning.code for warning in request.warnings]

    assert effort("gpt-9.1") == (None, ["parameter_unsent"])
    assert effort("gpt-5.6")[0] == {"effort": "high"}


ACME: dict[str, Any] = {"provider": "acme", "model": "m"}


def acme(floor: str) -> dict[str, Any]:
    """Contracts with a host of one's own, which demands what is said."""
    return {
        "host": [{"id": "acme", "api": "openai.chat"}],
        "contract": [{"provider": "acme", "api": "openai.chat", "floor": floor}],
    }


def rule_at_acme(store: rs.Store) -> str:
    session = store.session(create=True)
    session.append([rs.user("q"), rs.assistant(rs.ThinkingBlock(thought="Hm."), "a")])
    (verdict,) = session.build_request(**ACME).verdicts
    choice = session.what_if(**ACME).current.tokens
    assert choice.effective == session.usage(**ACME).effective  # one selection
    return verdict.rule


def test_contracts_belong_to_the_store_that_was_opened_with_them() -> None:
    """Two stores at once, and a function, each know their own hosts; nothing outlives a store."""
    with (
        rs.Store("sqlite://", contracts=acme("all")) as one,
        rs.Store("sqlite://", contracts=acme("none")) as other,
        rs.Store("sqlite://") as plain,
    ):
        assert [rule_at_acme(each) for each in (one, other)] == ["required", "include"]
        (warning,) = plain.session(create=True).build_request(**ACME).warnings[:1]
        assert warning.code == "unknown_provider"
        assert rs.select([rs.user("q")], **ACME).warnings[0].code == "unknown_provider"
        assert rs.select([rs.user("q")], contracts=one.contracts, **ACME).warnings == ()
        with pytest.raises(rs.InvalidCall, match="contracts are those of a store, not dict"):
            rs.select([rs.user("q")], contracts={"host": []}, **ACME)  # type: ignore[arg-type]


def test_an_edited_file_is_read_when_a_store_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the same name, and also where the environment names it."""
    path = tmp_path / "mine.toml"
    rules = []
    for floor in ("all", "none"):
        path.write_text(MINE.replace('like = "deepseek"', f'floor = "{floor}"'))
        for given in (path, None):
            monkeypatch.setenv("REASONING_STORE_CONTRACTS", str(path))
            with rs.Store("sqlite://", contracts=given) as store:
                rules.append(rule_at_acme(store))

    assert rules == ["required", "required", "include", "include"]


def test_a_reply_is_read_by_the_contracts_of_its_store() -> None:
    """In the protocol of a host of one's own, which no function knows; the async store as well."""
    mine = {"host": [{"id": "acme", "aliases": ["a2"], "api": "anthropic.messages"}]}
    body = {"type": "message", "content": [{"type": "thinking", "thinking": "Hm."}]}

    async def recorded() -> rs.Message:
        async with rs.AsyncStore("sqlite://", contracts=mine) as store:
            session = await store.session("s", create=True)
            await session.append(rs.user("q"))
            async for _ in session.record(body, provider="A2", model="deepseek-r1"):
                pass
            return (await session.history())[1].message

    reply = asyncio.run(recorded())
    assert reply.thinking[0].thought == "Hm."
    assert reply.origin is not None
    assert (reply.origin.provider, reply.origin.api) == ("acme", "anthropic.messages")


def test_a_host_of_ones_own_may_want_the_field_though_empty_and_demand_no_thought() -> None:
    """EC-007: the contract says that the field must be present, and no floor is needed for that."""
    row = {"provider": "acme", "api": "openai.chat", "empty_field_in": "all_calls"}
    mine = contracts_of({"host": [{"id": "acme", "api": "openai.chat"}], "contract": [row]})
    call = rs.ToolCallBlock(id="call_1", name="look", parameters={})
    result = rs.ToolResponseBlock(call_id="call_1", tool_name="look", result="x")
    history = [rs.user("q"), rs.assistant(call), rs.tool(result)]

    request = rs.build_request(history, contracts=mine, **ACME)

    assert request.body["messages"][1]["reasoning_content"] == ""


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
        contracts_of(whole)


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
    mine = contracts_of({"contract": [{**ROW, "models": ["tiny*"], "takes_tools": False}]})
    request = rs.build_request(
        [rs.user("q")], provider="openai", model="tiny-1", tools=TOOLS, contracts=mine
    )

    assert "tools" not in request.body
    assert [warning.code for warning in request.warnings] == ["tools_left_out"]
    other = rs.build_request([rs.user("q")], provider="openai", model="gpt-4o", tools=TOOLS)
    assert (len(other.body["tools"]), other.warnings) == (1, ())
    assert other.tokens.effective == request.tokens.effective
