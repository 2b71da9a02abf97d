"""Bad input gets the named error, with its place and what helps; never another request."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import (
    CorruptRow,
    InvalidCall,
    SettingError,
)
from tests.properties import each

HI = [rs.user("Hi")]
NAN = float("nan")
APIS = ("openai.chat", "openai.responses", "anthropic.messages", "mistral.chat", "cohere.chat")


def another() -> BaseModel:
    """Return a message of another library, whose type has the name of ours."""
    made: BaseModel = type("Message", (BaseModel,), {"__module__": "another"})()
    return made


def build(messages: Any = HI, **given: Any) -> rs.Request:
    return rs.build_request(messages, **given)


@each(
    "key, value, says",
    [
        ("reasoning.includeInContxt", True, "did you mean reasoning.includeInContext?"),
        ("reasoning.stripfromcontext", "all", "did you mean reasoning.stripFromContext?"),
        ("reasoning.stripFromContext", "allbutlast", "did you mean allButLast?"),
        ("reasoning.stripFromContext", 1, "one of: all, allButLast, none, priorTurns"),
        ("reasoning.includeInContext", "yes", "one of: true, false"),
        ("reasoning.budgetTokens", -1, "a whole number, 0 or more"),
        ("reasoning.budgetTokens", True, "a whole number, 0 or more"),
        ("reasoning.effort", "ultra", "one of: none, minimal, low, medium, high, xhigh, max"),
        ("reasoning.floor", None, "one of: provider, off"),
        (1, 2, "unknown setting '1'"),
        ("includeInContext", True, "did you mean reasoning.includeInContext?"),
        ("reasoning.strip", "all", "did you mean reasoning.stripFromContext?"),
        ("reasoning.include_in_response", True, "did you mean reasoning.includeInResponse?"),
    ],
)
def test_a_bad_setting_is_refused_by_its_key(key: Any, value: Any, says: str) -> None:
    """ERR-001: with what is allowed, or the key that was meant."""
    with pytest.raises(SettingError) as refused:
        build(settings={key: value})

    assert says in str(refused.value)


def test_err_001_a_key_that_is_set_by_both_its_names_is_refused() -> None:
    """Which of the two was meant, no one can tell."""
    with pytest.raises(SettingError) as refused:
        build(settings={"reasoning.effort": "low", "effort": "high"})

    assert str(refused.value) == "reasoning.effort is set twice, by both its names"


@each("given, says", [
        ({"messages": "Hi"}, "messages must be a list of messages, not str"),
        ({"messages": None}, "messages must be a list of messages, not NoneType"),
        ({"messages": HI[0]}, "messages must be a list of messages, not Message"),
        ({"messages": [*HI, {"role": "user"}]}, "messages[1] is not a message but dict"),
        ({"messages": HI[0].text.encode()}, "messages must be a list of messages, not bytes"),
        ({"messages": {"role": "user"}}, "messages must be a list of messages, not dict"),
        ({"messages": another()}, "messages must be a list of messages, not another.Message"),
        ({"messages": [*HI, another()]}, "messages[1] is not a message but another.Message"),
        ({"messages": [rs.Message(role="developer")]}, "messages[0].role: one of user"),  # type: ignore[arg-type]
        ({"messages": [rs.Message(role="user", blocks=("Hi",))]}, "messages[0].blocks.0: a block"),  # type: ignore[arg-type]
        ({"messages": [rs.user(rs.TextBlock(text=5))]}, "messages[0].blocks.0.text: a string"),  # type: ignore[arg-type]
        ({"provider": 1}, "provider: a string, not int"),
        ({"model": "a\ud83d"}, "model: a string that UTF-8 can write"),
        ({"api": "openai.chatt"}, "unknown api 'openai.chatt'"),
        ({"base_url": "http://[::1"}, "base_url cannot be read as an address"),
        ({"system": 5}, "system must be a text, a mapping or a list of them, not int"),
        ({"system": ["Be brief.", 5]}, "system[1] must be a text or a mapping, not int"),
        ({"tools": {"name": "f"}}, "tools must be a list of mappings, not dict"),
        ({"tools": [{"name": "f"}, "g"]}, "tools[1] must be a mapping, not str"),
        ({"extra": ["stream"]}, "extra must be a mapping, not list"),
        ({"extra": {"messages": []}}, "extra cannot set messages"),
        ({"previous": {}}, "previous must be an earlier request, not dict"),
    ])  # fmt: skip
def test_what_is_given_wrongly_is_refused_by_its_place(given: dict[str, Any], says: str) -> None:
    """Before anything is built."""
    with pytest.raises(InvalidCall) as refused:
        build(**given)

    assert says in str(refused.value)


GIVEN: list[dict[str, Any]] = [
    {"system": 5},
    {"system": [None]},
    {"system": rs.system("Be brief.")},
    {"tools": 5},
    {"tools": "f"},
    {"tools": [5]},
    {"tools": [{"name": "f", "parameters": {"a": NAN}}]},
]
SESSION_VERBS: dict[str, Callable[..., Any]] = {
    "build_request": rs.Session.build_request,
    "usage": rs.Session.usage,
    "what_if": rs.Session.what_if,
    "compression": partial(rs.Session.compression, limit=1_000),
}


@each("given", GIVEN)
def test_counting_refuses_system_and_tools_that_cannot_be_sent(given: dict[str, Any]) -> None:
    """In the very words of the request that would be built, free or of a session."""
    said = []
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        free = [partial(ask, HI) for ask in (build, rs.effective_tokens, rs.what_if)]
        for ask in [*free, *(partial(verb, session) for verb in SESSION_VERBS.values())]:
            with pytest.raises(InvalidCall) as refused:
                ask(**given)
            said.append(str(refused.value))

    assert len(set(said)) == 1


@pytest.mark.parametrize("key", ["messages", "model"])
def test_extra_may_hold_what_json_holds_and_nothing_that_is_built(key: str) -> None:
    """It is laid over the body as it is, but for what the conversation is."""
    assert build(extra={"metadata": {"a": [1, 0.5, None]}}).body["metadata"] == {
        "a": [1, 0.5, None]
    }
    with pytest.raises(InvalidCall):
        build(extra={key: "other"})


@pytest.mark.parametrize("api", APIS)
def test_a_system_prompt_in_one_mapping_is_the_protocols_own(api: str) -> None:
    """It goes as it is, whole, wherever the protocol has its prompt."""
    own = {"role": "developer", "content": "Be brief."}
    body = build(api=api, system=own).body

    assert "Be brief." in json.dumps(body)
    assert "developer" in [item.get("role") for item in body.get("input", [own])]


@pytest.mark.parametrize("ask", [rs.build_request, rs.effective_tokens, rs.what_if, rs.select])
def test_every_way_to_ask_refuses_the_same(ask: Any) -> None:
    """A count of what cannot be sent is no count."""
    with pytest.raises(InvalidCall):
        ask([rs.Message(role="developer")])  # type: ignore[arg-type]


def test_a_warning_about_an_unknown_provider_names_the_probable_one() -> None:
    """It is an unknown host, to which nothing is owed: that may surprise."""
    (warning,) = build(provider="deepseak", model="m").warnings

    assert warning.code == "unknown_provider"
    assert "did you mean deepseek?" in warning.text


def test_a_block_of_a_newer_type_is_left_out_with_a_warning() -> None:
    """All that is known of it is its name."""
    newer = codec.block_from_json({"type": "hologram", "light": "canary"})
    found = build([rs.user("See:", newer)], model="m")

    assert [warning.code for warning in found.warnings] == ["block_unknown"]
    assert "canary" not in repr(found.body)


@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_a_block_with_a_newer_field_is_an_error(kind: str) -> None:
    """Without the field it would be something else."""
    with pytest.raises(CorruptRow) as refused:
        codec.block_from_json({"type": kind, "text": "a", "thought": "a", "hologram": 1})

    assert "one too many" in str(refused.value)


RAW: tuple[Any, ...] = (
    {},
    {"x": 1},
    {"type": None},
    {"type": ["message"]},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "reasoning"},
    {"type": "message", "id": "msg_1", "content": "Hi."},
    {"type": "message", "id": "msg_1"},
    [],
    "text",
    None,
)
HOSTS = {
    "openai.chat": ("openai", "gpt-5.1"),
    "openai.responses": ("openai", "gpt-5.1"),
    "anthropic.messages": ("anthropic", "claude-sonnet-4-5"),
    "gemini.generate_content": ("gemini", "gemini-3-pro"),
    "ollama.chat": ("ollama", "qwen3"),
    "mistral.chat": ("mistral", "magistral-medium-latest"),
    "bedrock.converse": ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "cohere.chat": ("cohere", "command-a-reasoning-08-2025"),
    "thinking_events": ("thinking_events", "any"),
}


@each("data", RAW)
@each("api", HOSTS)
def test_what_an_application_keeps_as_it_came_has_any_form(api: str, data: Any) -> None:
    """It goes out as it is or stays at home, and is never what a request fails on."""
    provider, model = HOSTS[api]
    before = json.dumps(data)
    about = {"item_id": "rs_1", "item_type": "reasoning"}
    thought = rs.ThinkingBlock(thought="Hm.", encrypted="e", provider_metadata=about)
    text = rs.TextBlock(text="No.", provider_metadata={"item_id": "msg_1"})
    origin = rs.Origin(provider=provider, api=api, model=model)
    for blocks in ((), (thought,), (text,)):
        reply = rs.assistant(*blocks, rs.RawBlock(data=data), text, origin=origin)
        asked = rs.user(rs.RawBlock(data=data), "Hi")

        build(
            [asked, reply, rs.user("Why?")],
            settings={"reasoning.includeInContext": True},
            provider=provider,
            model=model,
            api=api,
        )

    assert json.dumps(data) == before
