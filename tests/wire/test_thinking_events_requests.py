"""Requests to hosts that normalise: the AI SDK's model messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.wire.reasoning_options import ReasoningOptions
from tests.wire.writing import TOOL, case, conversations, reply, written

API = "thinking_events"
HOST = "vercel-ai-sdk"
CASE = case("vercel_ai_ui")
REPLY = reply(CASE, 0)
EGRESS = CASE["variants"][0]["egress"]
CALL = rs.ToolCallBlock(id="call_1", name="f", parameters={"x": 1})


def sent(*messages: rs.Message) -> list[Any]:
    found: list[Any] = written(messages, HOST).body["messages"]
    return found


def test_a_recorded_reply_goes_back_with_what_its_provider_put_beside_it() -> None:
    """What came as providerMetadata goes as providerOptions."""
    assert sent(REPLY) == [EGRESS["next_turn_include"]]


def test_a_recorded_reply_without_its_reasoning_has_nothing_in_its_place() -> None:
    """Stripped is absent."""
    bare = replace(REPLY, blocks=REPLY.blocks[1:])

    assert sent(bare) == [EGRESS["next_turn_strip"]]


def test_the_same_reply_streamed_goes_back_the_same() -> None:
    """Whole or in events."""
    normalizer = rs.StreamNormalizer(provider=HOST)
    for event in CASE["variants"][0]["stream"]:
        normalizer.feed(event)

    assert sent(normalizer.finish()) == [EGRESS["next_turn_include"]]


@pytest.mark.parametrize(
    "options",
    [
        {"anthropic": {"redactedData": "RU5D"}},
        {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAA"}},
        {"google": {"thoughtSignature": "c2ln"}},
    ],
)
def test_every_provider_s_seal_goes_back_under_its_name(options: dict[str, Any]) -> None:
    """The host's own adapter looks for it there."""
    part = {"type": "reasoning", "text": "", "state": "done", "providerMetadata": options}
    message = rs.normalize_response({"role": "assistant", "parts": [part]}, provider=HOST)

    assert sent(message)[0]["content"] == [
        {"type": "reasoning", "text": "", "providerOptions": options}
    ]


def test_a_seal_that_no_provider_is_named_beside_stands_where_older_hosts_look() -> None:
    """It is neither lost nor put into the text."""
    signed = rs.ThinkingBlock(thought="Hm.", signature="c2ln")
    hidden = rs.ThinkingBlock(encrypted="RU5D", redacted=True)

    assert sent(rs.assistant(signed, hidden))[0]["content"] == [
        {"type": "reasoning", "text": "Hm.", "signature": "c2ln"},
        {"type": "redacted-reasoning", "data": "RU5D"},
    ]


def test_a_call_and_its_answer_are_parts() -> None:
    """The answer says whether it is text, JSON or an error, and comes before the user."""
    answers = [
        rs.ToolResponseBlock(call_id="call_1", tool_name="f", result="x"),
        rs.ToolResponseBlock(call_id="call_2", tool_name="f", result={"y": 1}),
        rs.ToolResponseBlock(call_id="call_3", tool_name="f", result="boom", is_error=True),
    ]
    found = sent(rs.assistant(CALL), rs.tool(*answers, rs.TextBlock(text="Go on.")))

    assert [message["role"] for message in found] == ["assistant", "tool", "user"]
    assert found[0]["content"] == [
        {"type": "tool-call", "toolCallId": "call_1", "toolName": "f", "input": {"x": 1}}
    ]
    assert [part["output"] for part in found[1]["content"]] == [
        {"type": "text", "value": "x"},
        {"type": "json", "value": {"y": 1}},
        {"type": "error-text", "value": "boom"},
    ]


def test_a_user_says_text_alone_or_parts() -> None:
    """Files by their bytes or their address; what has no place is named."""
    media = [
        rs.MediaBlock(kind="image", mime_type="image/png", data=b"x", name="a.png"),
        rs.MediaBlock(kind="file", mime_type="text/csv", url="https://example.org/a.csv"),
        rs.MediaBlock(kind="audio", mime_type="audio/wav", ref="blob-7"),
    ]
    found = written([rs.system("Be kind."), rs.user("Look", *media)], HOST)

    assert found.body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {"type": "file", "mediaType": "image/png", "data": "eA==", "filename": "a.png"},
                {"type": "file", "mediaType": "text/csv", "data": "https://example.org/a.csv"},
            ],
        },
    ]
    assert found.left_out == ("audio",)


def test_system_and_tools_have_places_of_their_own() -> None:
    """Neutral tools in the host's form, its own as they are."""
    own = {"type": "provider-defined", "id": "x.y", "name": "y", "args": {}}
    found = written([rs.user("Hi")], HOST, "gpt", system="Be brief.", tools=[TOOL, own])
    function = {
        "type": "function",
        "name": TOOL["name"],
        "description": TOOL["description"],
        "inputSchema": TOOL["parameters"],
    }

    assert (found.body["model"], found.body["system"]) == ("gpt", "Be brief.")
    assert found.body["tools"] == [function, own]


def test_what_is_asked_of_reasoning_is_the_host_s_to_say() -> None:
    """It is reported, and not said in words that no host may know."""
    asked = ReasoningOptions(enabled=True, effort="low", budget_tokens=1)
    found = written([rs.user("Hi")], HOST, options=asked)

    assert found.options_not_sent.without_parameter == ("enabled", "effort", "budget_tokens")
    assert found.body == {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize("provider", [HOST, "another-host"])
def test_a_host_takes_reasoning_of_either_kind(provider: str) -> None:
    """Plain, and sealed where its field says that it came from such a host."""
    sealed = rs.ThinkingBlock(thought="Hm.", signature="c2ln", source_field="reasoning")
    selection = rs.select(
        [rs.user("Hi"), rs.assistant(rs.ThinkingBlock(thought="So."), sealed, "Ho")],
        provider=provider,
        api=API,
        settings={"reasoning.includeInContext": True},
    )

    assert [verdict.rule for verdict in selection.verdicts] == ["kept", "kept"]


@given(conversations(API, HOST, None))
def test_any_conversation_loses_nothing(messages: list[rs.Message]) -> None:
    """Every block is a part, in its order, and no seal is touched."""
    parts = [
        part
        for message in sent(*messages)
        if message["role"] == "assistant"
        for part in message["content"]
    ]
    kinds = {"thinking": "reasoning", "text": "text", "tool_call": "tool-call"}
    blocks = [b for m in messages if m.role == "assistant" for b in m.blocks]

    assert [part["type"].replace("redacted-", "") for part in parts] == [
        kinds[block.type] for block in blocks
    ]
    assert [part.get("signature", part.get("data")) for part in parts] == [
        (block.signature or block.encrypted) if isinstance(block, rs.ThinkingBlock) else None
        for block in blocks
    ]
