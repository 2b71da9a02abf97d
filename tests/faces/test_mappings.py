"""Where a mapping is asked for, any mapping will do: it is stored and sent as the dict it says."""

from __future__ import annotations

import json
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

import reasoning_store as rs

FORMS: dict[str, Callable[[dict[str, Any]], Mapping[str, Any]]] = {
    "proxy": MappingProxyType,
    "chain": lambda value: ChainMap(value),
    "ordered": OrderedDict,
    "nested": lambda value: {"a": [MappingProxyType(value)]},
}
"""Mappings that are no plain dict, at the top or further in."""
each = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)


def plain(value: Any) -> Any:
    """Return a value as JSON reads it back."""
    return json.loads(json.dumps(value, default=dict))


def messages_of(value: Any) -> list[rs.Message]:
    """Return messages that hold a value wherever one may stand."""
    call = rs.ToolCallBlock(id="call_1", name="look_up", parameters=value, provider_metadata=value)
    answer = rs.ToolResponseBlock(call_id="call_1", tool_name="look_up", result=value)
    return [
        rs.user(rs.TextBlock(text="Is it?", provider_metadata=value), metadata=value),
        rs.assistant(rs.RawBlock(data=value), call, usage=rs.Usage(raw=value), metadata=value),
        rs.tool(answer, metadata=value),
        rs.user("And?"),
    ]


@each
def test_a_message_holds_any_mapping(make: Callable[[dict[str, Any]], Any]) -> None:
    """What is given back at once and what is read later are the same plain values."""
    value = make({"b": 1, "c": None})
    expected = messages_of(plain(value))
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        stored = session.append(messages_of(value))

        assert [row.message for row in stored] == expected
        assert json.dumps(stored[0].message.metadata)
        assert [row.message for row in session.history()] == expected


def test_a_mapping_is_copied_as_it_was_when_it_was_given() -> None:
    """A view of something that changes is not what is given back."""
    inner: dict[str, Any] = {"b": 1}
    with rs.Store("sqlite://") as store:
        stored = store.session("s", create=True).append(
            rs.user("Hello.", metadata=MappingProxyType(inner))
        )
    inner["b"] = 2

    assert stored.message.metadata == {"b": 1}


@each
def test_a_message_that_holds_any_mapping_is_sent(make: Callable[[dict[str, Any]], Any]) -> None:
    """The body is JSON, for the one who sends it."""
    value = make({"b": 1})
    for api in ("openai.chat", "anthropic.messages", "gemini.generate_content", "ollama.chat"):
        request = rs.build_request(messages_of(value), api=api, model="m")

        assert request.body == rs.build_request(messages_of(plain(value)), api=api, model="m").body
        assert json.dumps(request.body)


@each
def test_what_is_given_for_one_request_may_be_any_mapping(
    make: Callable[[dict[str, Any]], Any],
) -> None:
    """System, tools and what is laid over the body."""

    def body(value: Any) -> dict[str, Any]:
        return rs.build_request(
            [rs.user("Hello.")],
            api="anthropic.messages",
            model="m",
            system=[{"type": "text", "text": "Hm.", "x": value}],
            tools=[MappingProxyType({"name": "look_up", "parameters": value})],
            extra=MappingProxyType({"x": value}),
        ).body

    value = make({"b": 1})

    assert body(value) == body(plain(value))
    assert json.dumps(body(value))


@each
def test_metadata_of_a_session_may_be_any_mapping(
    make: Callable[[dict[str, Any]], Any],
) -> None:
    """When it is made, and later."""
    value = make({"b": 1})
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True, metadata=value)
        assert session.metadata == plain(value)

        session.set_metadata(make({"b": 2}))
        assert session.metadata == plain(make({"b": 2}))


def test_a_mapping_that_json_cannot_say_is_still_refused() -> None:
    """By its place, whatever kind of mapping it is."""
    endless: dict[str, Any] = {}
    endless["a"] = MappingProxyType(endless)
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        odd: list[tuple[Any, str]] = [
            ({1: 2}, "a key is a string, not int"),
            ({"a": {1}}, "JSON has no set"),
            (endless, "nested deeper"),
        ]
        for wrong, why in odd:
            with pytest.raises(rs.InvalidCall, match=f"metadata: {why}"):
                session.append(rs.user("Hello.", metadata=MappingProxyType(wrong)))
        assert session.history() == []


def test_a_value_that_holds_itself_twice_is_refused_as_soon() -> None:
    """Else each level would be looked at twice as often as the one around it."""
    endless: dict[str, Any] = {}
    endless["a"] = endless["b"] = endless
    proxied: dict[str, Any] = {}
    proxied["a"] = proxied["b"] = MappingProxyType(proxied)
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        for wrong in (endless, proxied):
            with pytest.raises(rs.InvalidCall, match="metadata: nested deeper"):
                session.append(rs.user("Hello.", metadata=wrong))
            with pytest.raises(rs.InvalidCall, match="metadata: nested deeper"):
                session.set_metadata(wrong)
            with pytest.raises(rs.InvalidCall, match=r"^extra.*: nested deeper"):
                rs.build_request([rs.user("Hello.")], extra=wrong)
