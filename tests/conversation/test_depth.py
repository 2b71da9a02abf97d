"""An application's values: as deep as they may be they go everywhere, deeper they go nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation import codec, json_values
from reasoning_store.wire import contract_tables, tools
from tests.properties import each


def nested(levels: int, *, lists: bool = False) -> Any:
    """Return a value of as many objects, or lists, one in the other."""
    value: Any = "leaf"
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def call(parameters: Any = None, **fields: Any) -> rs.ToolCallBlock:
    return rs.ToolCallBlock(id="call_1", name="look_up", parameters=parameters, **fields)


def answer(result: Any) -> rs.ToolResponseBlock:
    return rs.ToolResponseBlock(call_id="call_1", tool_name="look_up", result=result)


HOLDERS: dict[str, Callable[[Any], list[rs.Message]]] = {
    "metadata": lambda value: [rs.user("Hello.", metadata=value)],
    "blocks.0.provider_metadata": lambda value: [
        rs.user(rs.TextBlock(text="Hello.", provider_metadata=value))
    ],
    "blocks.0.parameters": lambda value: [rs.assistant(call(value)), rs.tool(answer("done"))],
    "blocks.0.result": lambda value: [rs.assistant(call({})), rs.tool(answer(value))],
    "blocks.0.data": lambda value: [rs.assistant(rs.RawBlock(data=value), "Yes.")],
    "usage.raw": lambda value: [rs.assistant("Yes.", usage=rs.Usage(raw=value))],
}
"""Messages that hold a value, by its place."""


def conversation(place: str, value: Any) -> list[rs.Message]:
    return [rs.user("Is it?"), *HOLDERS[place](value), rs.user("And?")]


@each("place", HOLDERS)
def test_a_value_as_deep_as_may_be_comes_back_and_moves(place: str) -> None:
    """Stored, read, verified, masked, exported, and imported again."""
    messages = conversation(place, nested(json_values.DEEPEST))
    masker = rs.SecretMasker(["hunter2hunter2"])
    with rs.Store("sqlite://", masker=masker) as store, rs.Store("sqlite://") as other:
        store.session("s", create=True).append(messages)
        other.import_lines(store.export_lines())

        for one in (store, other):
            assert [row.message for row in one.session("s").history()] == messages
            assert one.verify().ok


@each("place", HOLDERS)
def test_a_value_as_deep_as_may_be_is_sent_by_every_contract(place: str) -> None:
    """What is built of it is JSON."""
    messages = conversation(place, nested(json_values.DEEPEST))
    for row in contract_tables.shipped_contracts().rows:
        request = rs.build_request(messages, provider=row.provider, api=row.api, model="m")

        assert json.dumps(request.body)


@each("lists", [False, True])
@each("place", HOLDERS)
def test_a_deeper_value_is_refused_by_its_place(place: str, lists: bool) -> None:
    """At the door, with what is allowed, and nothing of it is kept."""
    inner = nested(json_values.DEEPEST, lists=lists)
    messages = conversation(place, {"a": inner})
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)

        with pytest.raises(
            rs.InvalidCall, match=rf"{place}: nested deeper than {json_values.DEEPEST}"
        ):
            session.append(messages)
        assert session.history() == []


def test_a_value_that_holds_itself_is_refused() -> None:
    """It has no end."""
    endless: dict[str, Any] = {}
    endless["a"] = [endless]
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)

        with pytest.raises(rs.InvalidCall, match=r"metadata: nested deeper") as refused:
            session.append(rs.user("Hello.", metadata=endless))
        assert "no cycles" in (refused.value.hint or "")


def test_metadata_of_a_session_is_nested_to_the_limit_and_no_deeper() -> None:
    """Its metadata is an application's, too."""
    with rs.Store("sqlite://") as store:
        kept = store.session("s", create=True, metadata=nested(json_values.DEEPEST))

        assert kept.metadata == nested(json_values.DEEPEST)
        with pytest.raises(rs.InvalidCall, match="metadata: nested deeper"):
            store.session("t", create=True, metadata=nested(json_values.DEEPEST + 1))


@pytest.mark.parametrize("name", ["system", "tools", "extra"])
def test_what_is_given_for_one_request_is_as_deep_and_no_deeper(name: str) -> None:
    """It is rendered and sent, though it is not stored."""
    place: dict[str, Callable[[Any], Any]] = {
        "system": lambda value: [{"type": "text", "text": "Hm.", "x": value}],
        "tools": lambda value: [{"name": "look_up", "parameters": value}],
        "extra": lambda value: {"x": value},
    }
    fits, deeper = (
        place[name](nested(json_values.DEEPEST - 2)),
        place[name](nested(json_values.DEEPEST + 1)),
    )

    assert json.dumps(rs.build_request([rs.user("Hello.")], **{name: fits}).body)
    with pytest.raises(
        rs.InvalidCall, match=f"^{name}.*: nested deeper than {json_values.DEEPEST}"
    ):
        rs.build_request([rs.user("Hello.")], **{name: deeper})


def test_arguments_that_came_as_an_object_are_as_deep() -> None:
    """A provider's value is kept whole as far as an application's may be, nearly."""
    levels = json_values.DEEPEST - 10
    use = {"type": "tool_use", "id": "t", "name": "look_up", "input": nested(levels)}

    message = rs.normalize_response({"content": [use]}, api="anthropic.messages")

    assert message.tool_calls[0].parameters == nested(levels)


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages", "gemini.generate_content"])
def test_a_reply_that_is_deeper_than_may_be_is_stored_all_the_same(api: str) -> None:
    """What a provider sent is no application's mistake."""
    events: dict[str, dict[str, Any]] = {
        "openai.chat": {"choices": [{"delta": {"content": "Yes"}}], "usage": {"x": nested(450)}},
        "anthropic.messages": {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "hologram", "seen": nested(450)},
        },
        "gemini.generate_content": {"candidates": [{"content": {"parts": [{"x": nested(450)}]}}]},
    }
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(rs.user("Is it?"))
        with session.record([events[api], events[api]], api=api) as reply:
            list(reply)

        assert reply.stored is None or session.get(2).message == reply.message
        assert store.verify().ok


def test_the_arguments_of_a_call_may_be_text_that_is_deeper() -> None:
    """A text is no nested value: it goes as it is, or as a text."""
    text = codec.dumps(nested(json_values.DEEPEST + 1))
    messages = [rs.user("Is it?"), rs.assistant(call(arguments=text)), rs.tool(answer("done"))]

    chat = rs.build_request(messages, api="openai.chat")
    claude = rs.build_request(messages, api="anthropic.messages", model="m")

    assert chat.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == text
    assert claude.body["messages"][1]["content"][0]["input"] == {"input": text}


def test_the_depth_of_arguments_that_break_off_is_known_soon() -> None:
    """A text that is never closed is gone through once, and not from each quote in it."""
    text = '{"a": "' + '\\"' * 60_000 + "[" * (json_values.DEEPEST + 1)
    began = process_time()

    assert tools.parse_arguments(text, text) == text
    assert process_time() - began < 5


def test_nested_holds_as_many_levels_as_it_says() -> None:
    """So that the others test what they say they do."""
    assert (nested(0), nested(2)) == ("leaf", {"a": {"a": "leaf"}})
    assert replace(call(), parameters=nested(1, lists=True)).parameters == ["leaf"]


@each("text", ["[", '{"a":'])
def test_arguments_of_any_number_of_brackets_are_stored_like_any_text(text: str) -> None:
    """A model that repeats itself: appended, recorded, imported, counted, and sent again."""
    for count in (900, 980, 1100, 20_000):
        arguments = text * count
        delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": arguments}}]}
        events = [{"choices": [{"index": 0, "delta": delta}]}]
        with rs.Store("sqlite://") as store, rs.Store("sqlite://") as other:
            session = store.session("s", create=True)
            session.append([rs.user("Is it?"), rs.assistant(call(arguments=arguments))])
            with session.record(iter(events), model="m") as reply:
                list(reply)
            other.import_lines(store.export_lines())

            history = other.session("s").history()
            assert [item.message.tool_calls[0].arguments for item in history[1:]] == [arguments] * 2
            assert other.verify().ok
            assert session.build_request(provider="deepseek", model="deepseek-chat").body
