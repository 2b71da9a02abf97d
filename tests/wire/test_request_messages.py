"""A client's messages, read in the form of each protocol."""

from __future__ import annotations

from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.formats import read_messages, split_messages, write_messages
from tests.properties import each

QUESTION, ANSWER = rs.user("Is 91 prime?"), rs.assistant("No: 7 x 13.")
LOOP = [
    QUESTION,
    rs.assistant(
        rs.ToolCallBlock(id="call_9f3ab2c4d5e6f7a8", name="divide", arguments='{"n": 91}')
    ),
    rs.tool(
        rs.ToolResponseBlock(call_id="call_9f3ab2c4d5e6f7a8", tool_name="divide", result="7 x 13")
    ),
    ANSWER,
]
PROTOCOLS = ["openai.chat", "openai.responses", "anthropic.messages", "gemini.generate_content"]


def said(messages: list[rs.Message]) -> list[Any]:
    """Return the role, the text, the calls and the results of each message."""
    return [
        (
            one.role,
            one.text,
            [(call.name, call.parameters) for call in one.tool_calls],
            [
                (block.tool_name, block.result)
                for block in one.blocks
                if isinstance(block, rs.ToolResponseBlock)
            ],
        )
        for one in messages
    ]


@each("api", PROTOCOLS)
def test_messages_are_read_as_they_were_written(api: str) -> None:
    """In a request of any protocol, with the calls of tools and their results."""
    read = read_messages(write_messages(LOOP, api=api), api=api)

    assert [one[0] for one in said(read)] == ["user", "assistant", "tool", "assistant"]
    assert [one[1] for one in said(read)] == ["Is 91 prime?", "", "", "No: 7 x 13."]
    assert said(read)[1][2] == [("divide", {"n": 91})]
    assert said(read)[2][3] == [("divide", "7 x 13")]


THOUGHTS: dict[str, dict[str, Any]] = {
    "openai.chat": {"role": "assistant", "content": "No.", "reasoning_content": "7 x 13"},
    "anthropic.messages": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "7 x 13", "signature": "sealed"},
            {"type": "text", "text": "No."},
        ],
    },
    "gemini.generate_content": {
        "role": "model",
        "parts": [{"text": "7 x 13", "thought": True}, {"text": "No."}],
    },
    "openai.responses": {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "7 x 13"}],
        "encrypted_content": "sealed",
    },
}


@each("api", PROTOCOLS)
def test_a_thought_is_read_whole_and_is_no_part_of_what_a_message_says(api: str) -> None:
    """``blocks`` has what a client shows; ``read_messages`` all that the reply has."""
    (one,) = split_messages([THOUGHTS[api]], api=api)
    (message,) = read_messages([THOUGHTS[api]], api=api)

    assert one.has_thinking
    assert not any(isinstance(block, rs.ThinkingBlock) for block in one.blocks())
    assert [block.thought for block in message.thinking] == ["7 x 13"]


def test_the_items_of_one_reply_are_one_message_with_their_places() -> None:
    """Reasoning, a text and a call, between a question and the result of the call."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "Is 91 prime?"},
        THOUGHTS["openai.responses"],
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "call_1", "name": "divide", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "7 x 13"},
    ]
    found = [(one.role, one.first, one.last) for one in split_messages(items, api=PROTOCOLS[1])]

    assert found == [("user", 0, 0), ("assistant", 1, 3), ("tool", 4, 4)]


def test_a_result_without_an_id_is_for_the_first_call_of_its_name() -> None:
    """Gemini sends calls without ids."""
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": n, "args": {}}} for n in "ab"]},
        {"role": "user", "parts": [{"functionResponse": {"name": "b", "response": {"result": 1}}}]},
    ]
    reply, result = read_messages(contents, api="gemini.generate_content")

    assert result.blocks[0].call_id == reply.tool_calls[1].id  # type: ignore[union-attr]


def test_what_is_in_no_form_of_a_protocol_is_left_out() -> None:
    """It has no role, so an importer can name its place."""
    parts = [{"role": "narrator", "content": "Once"}, "text", {"role": "user", "content": "q"}]

    assert [one.role for one in split_messages(parts, api="openai.chat")] == [None, None, "user"]
    assert read_messages(parts, api="openai.chat") == [rs.user("q")]


def test_a_protocol_without_a_reader_is_refused_by_its_name() -> None:
    """The hint lists the others."""
    with pytest.raises(rs.InvalidCall, match=r"'cohere\.chat' are not read") as refused:
        split_messages([], api="cohere.chat")

    assert "openai.chat" in str(refused.value.hint)
