"""OpenAI's histories: each thought kept, each leaked tag out, no other's text touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    RawBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.formats import Conversation
from reasoning_store.importers import formats
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE
from tests.properties import each

from . import dirty


def read(*values: Any, **options: Any) -> list[Conversation]:
    return list(formats.conversations(dirty.lines(values), **options, format="openai"))


def messages(*values: Any, **options: Any) -> list[Message]:
    (one,) = read(*values, **options)
    return [item.message for item in one.items]


def test_a_dirty_chat_is_counted_to_the_last_delimiter() -> None:
    """Reasoning in, reasoning stored, texts unchanged and cleaned, as counted by hand."""
    (one,) = read(*dirty.CHAT)

    assert dirty.counts(one.report, dirty.CHAT_COUNTS) == dirty.CHAT_COUNTS
    assert [(item.place, item.reason) for item in one.report.skipped] == [
        ("line 8", "its role is not one of the format's"),
        ("line 9", "it has no content"),
    ]


def test_a_field_that_nobody_named_is_stored_once() -> None:
    """Where it is counted; a number and a word that are no content are in the source."""
    said = {"role": "assistant", "content": "x", "cot": "Plan.", "more": {"a": 1}, "cost": 2}
    (message,) = messages({"messages": [said]})

    assert message.metadata == {
        "unknownChunks": 1,
        "unknownEvents": [[{"cot": "Plan."}, {"more": {"a": 1}}]],
        "source": {"cost": 2},
    }


def test_a_chat_keeps_its_reasoning_with_its_seals() -> None:
    """Tags, fields and entries become blocks; entries stay in order, with their seals."""
    thoughts = [block for message in messages(*dirty.CHAT) for block in message.thinking]

    assert [(block.thought, block.source_field) for block in thoughts] == [
        ("7 x 13", "think_tags"),
        ("It is 7 x 13.", "reasoning"),
        ("97 has no", "reasoning_details"),
        ("", "reasoning_details"),
        ("I was cut off", "think_tags"),
    ]
    signed, sealed, cut = thoughts[2:]
    assert signed.signature == dirty.SIGNATURE
    assert (sealed.encrypted, sealed.provider_metadata) == (
        dirty.CIPHER,
        {"detail": {"type": "reasoning.encrypted", "id": "rs_1", "index": 1}},
    )
    assert cut.interrupted


def test_imported_text_is_free_of_leaks_and_otherwise_unchanged() -> None:
    """Only the delimiters are gone from what the model said."""
    replies = [message for message in messages(*dirty.CHAT) if message.role == "assistant"]

    assert [message.text for message in replies] == [
        "Let me check.",
        "No. 91 = 7 x 13.",
        "Yes.",
        "",
    ]


def test_calls_and_answers_stay_together_as_they_came() -> None:
    """Arguments go back as the string they were; an answer has its tool's name."""
    found = messages(*dirty.CHAT)

    assert found[2].tool_calls == (
        ToolCallBlock(id="call_1", name="factor", parameters={"n": 91}, arguments='{"n":  91}'),
    )
    assert found[3].role == "tool"
    assert found[3].blocks == (
        ToolResponseBlock(call_id="call_1", tool_name="factor", result="<think>7, 13</think>"),
    )


def test_unknown_parts_are_kept() -> None:
    """Unknown fields go to the metadata, unknown parts stay in their place."""
    found = messages(*dirty.CHAT)

    assert found[0].metadata == {"source": {"role": "developer"}}
    assert found[1].metadata == {"source": {"name": "ada"}}
    assert (found[4].metadata or {})["unknownEvents"] == [{"mood": "sure"}]
    assert found[6].blocks[-1] == RawBlock(data={"type": "hologram", "data": 1})


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_users_and_a_tools_text_is_never_touched(text: str) -> None:
    """Neither tags nor NUL are taken out of what users and tools send."""
    said = text + "</think><think>"
    one, two, three = messages(
        {"role": "system", "content": said},
        {"role": "user", "content": said},
        {"role": "tool", "tool_call_id": "c", "content": said},
    )

    assert (one.text, two.text) == (said, said)
    assert three.blocks == (ToolResponseBlock(call_id="c", result=said),)


@given(st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), min_size=1))
def test_a_reply_without_tags_is_the_same_text(text: str) -> None:
    """Nothing is trimmed, added or lost where nothing leaked."""
    (one,) = read({"role": "assistant", "content": text})

    assert [item.message.text for item in one.items] == [text]
    assert (one.report.texts_unchanged, one.report.texts_cleaned) == (1, 0)


def test_tags_can_be_left_where_they_are() -> None:
    """A history that speaks of tags is read with tags="never"."""
    reply = {"role": "assistant", "content": "Write <think> and </think>."}

    assert messages(reply, tags="never")[0].text == "Write <think> and </think>."
    assert messages(reply)[0].text == "Write ."


def test_a_tagged_thought_next_to_native_reasoning_is_kept_unless_it_is_a_copy() -> None:
    """A history keeps each thought; what only repeats another is stored once."""
    reply = {
        "role": "assistant",
        "reasoning_content": "First.",
        "content": "<think>First.</think><think>Second.</think>Done.",
    }
    (one,) = read(reply)

    assert [block.thought for block in one.items[0].message.thinking] == ["First.", "Second."]
    assert (one.report.reasoning_in, one.report.copies) == (3, 1)


def test_items_of_responses_become_messages() -> None:
    """Reasoning and what it led to are one message, with ids and ciphertext."""
    (one,) = read(dirty.ITEMS)
    found = [item.message for item in one.items]

    assert dirty.counts(one.report, dirty.ITEM_COUNTS) == dirty.ITEM_COUNTS
    assert one.id == "resp-log-7"
    assert [message.role for message in found] == [
        *("system", "user", "assistant", "tool", "assistant", "user", "assistant"),
    ]
    assert found[1].text == "<think>Is 91 prime?"
    assert found[2].thinking == (
        ThinkingBlock(
            thought="Try 7.",
            source_field="reasoning.summary",
            encrypted=dirty.CIPHER,
            provider_metadata={
                "item_id": "rs_1",
                "item_type": "reasoning",
                "summary": ["Try 7."],
            },
        ),
    )
    assert found[2].tool_calls[0].provider_metadata == {"item_id": "fc_1"}
    assert found[3].blocks == (
        ToolResponseBlock(call_id="call_1", tool_name="factor", result="7 13</think>"),
    )
    assert (found[4].text, found[4].blocks[-1]) == (
        "No.",
        RawBlock(data={"type": "mystery", "id": "m_1"}),
    )
    assert found[6].text == "Welcome."


def test_calls_of_responses_with_types_of_their_own_go_back_as_they_came() -> None:
    """Each with its answer; a shell of the service's is answered by the service."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "name": "f",
            "arguments": "{}",
            "server_label": "s",
        },
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {
            "type": "apply_patch_call",
            "id": "apc_1",
            "call_id": "c1",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
        {
            "type": "apply_patch_call_output",
            "call_id": "c1",
            "status": "completed",
            "output": "ok",
        },
        {
            "type": "shell_call",
            "id": "sh_1",
            "call_id": "c2",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": "cntr_1"},
        },
        {"type": "shell_call_output", "id": "sho_1", "call_id": "c2", "output": []},
    ]
    found = messages({"model": "gpt-5.4", "input": items}, provider="openai")
    request = rs.build_request(found, provider="openai", model="gpt-5.4", api="openai.responses")

    assert request.body["input"] == items
    assert request.warnings == ()


def test_media_come_with_their_bytes_or_their_address() -> None:
    """What cannot be read as a medium stays as it came."""
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,%"}}
    (found,) = messages(
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:a/b;base64,AAAA"},
                },
                {"type": "file", "file": {"file_id": "file-1"}},
                broken,
            ],
        }
    )

    assert found.blocks == (
        MediaBlock(kind="image", mime_type="image/*", url="https://example.org/a.png"),
        MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG"),
        MediaBlock(kind="audio", mime_type="audio/mpeg", data=b"\0\0\0"),
        MediaBlock(kind="file", mime_type="a/b", name="a.pdf", data=b"\0\0\0"),
        RawBlock(data={"type": "file", "file": {"file_id": "file-1"}}),
        RawBlock(data=broken),
    )


def test_calls_without_ids_are_distinct_and_answered() -> None:
    """function_call had no id: each call gets one, and its answer the same."""
    call = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    answer = {"role": "function", "name": "f", "content": "1"}
    found = messages(call, answer, call, answer)
    called = [block.id for message in found for block in message.tool_calls]
    answered = [
        block.call_id
        for message in found
        for block in message.blocks
        if isinstance(block, ToolResponseBlock)
    ]

    assert called == answered
    assert len(set(called)) == 2


@each(
    "source, ids",
    [
        (dirty.lines(dirty.CHAT), 1),
        (dirty.lines([dirty.CHAT]), 1),
        (dirty.lines([{"messages": dirty.CHAT}]), 1),
        (dirty.lines([{"messages": dirty.CHAT}] * 2), 2),
        (dirty.lines([dirty.CHAT] * 2), 2),
        ([json.dumps([{"messages": dirty.CHAT}] * 2)], 2),
        ([json.dumps({"messages": dirty.CHAT}, indent=2)], 1),
    ],
)
def test_the_same_history_is_found_in_every_form(source: list[str], ids: int) -> None:
    """A list, an object, a line each, one after the other: the same messages."""
    alone = messages(*dirty.CHAT)
    found = list(formats.conversations(source, format="openai"))

    assert [[item.message for item in one.items] for one in found] == [alone] * ids
    assert len({one.id for one in found}) == ids


def test_a_conversation_is_given_before_the_next_is_read() -> None:
    """What is in memory is one conversation, however many a file holds."""

    def forever() -> Iterator[str]:
        for number in count():
            yield json.dumps({"id": number, "messages": dirty.CHAT})

    found = formats.conversations(forever(), format="openai")

    assert [next(found).id for _ in range(3)] == ["0", "1", "2"]


def test_a_question_as_a_text_is_a_request_of_responses() -> None:
    """Where its answer is a list of items; a pair of texts is no conversation, and is reported."""
    reply = {"type": "message", "role": "assistant", "content": "No."}
    assert [message.text for message in messages({"input": "Prime?", "output": [reply]})] == [
        "Prime?",
        "No.",
    ]

    (one,) = read({"input": "Prime?", "output": "No."})
    assert one.items == []
    assert [item.place for item in one.report.skipped] == ["line 1"]


def test_lines_that_name_a_conversation_belong_to_it() -> None:
    """Also where another's stand between; the places go on."""
    found = read(
        {"session_id": "a", "role": "user", "content": "1"},
        {"session_id": "b", "role": "user", "content": "2"},
        {"session_id": "a", "role": "assistant", "content": "3"},
    )

    assert [(one.id, one.first, len(one.items)) for one in found] == [
        ("a", 1, 1),
        ("b", 1, 1),
        ("a", 2, 1),
    ]


def test_a_key_covers_all_messages_before_it() -> None:
    """The same beginning has the same keys; another beginning has no key in common."""
    longer = read(*dirty.CHAT, {"role": "user", "content": "More."})[0]
    shorter = read(*dirty.CHAT)[0]
    other = read({"role": "user", "content": "Other."}, *dirty.CHAT)[0]
    keys = [item.key for item in shorter.items]

    assert [item.key for item in longer.items][: len(keys)] == keys
    assert not set(keys) & {item.key for item in other.items}
    assert len(set(keys)) == len(keys)


def test_typed_values_that_are_no_items_are_left_out() -> None:
    """LangChain's dump, for one: what a human said there is not taken for a reply's."""
    (one,) = read(
        [
            {"type": "human", "data": {"content": "Is 91 prime?"}},
            {"type": "ai", "data": {"content": "No."}},
        ]
    )

    assert one.items == []
    assert [skipped.reason for skipped in one.report.skipped] == [UNKNOWN_ROLE] * 2


def test_an_item_of_an_unknown_type_is_kept_among_items() -> None:
    """A later version of the protocol may bring it."""
    (one,) = read(
        [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "7 x 13"}]},
            {"type": "hologram", "id": "ho_1"},
            {"type": "message", "role": "assistant", "content": "No."},
        ]
    )

    assert [block.type for block in one.items[0].message.blocks] == ["thinking", "raw", "text"]


def test_titles_times_and_models_come_along() -> None:
    """What a file says of a conversation and of a message is kept."""
    (one,) = read(
        {
            "id": 7,
            "title": "Primes",
            "created": 1_700_000_000,
            "model": "deepseek-chat",
            "messages": [
                {"role": "user", "content": "Hi", "timestamp": "2026-01-02T03:04:05Z"},
                {"role": "assistant", "content": "Hi", "timestamp": 1_700_000_000_000},
                {"role": "user", "content": "?", "timestamp": "yesterday"},
            ],
        }
    )

    assert (one.id, one.title) == ("7", "Primes")
    assert [item.created_at and item.created_at.isoformat() for item in one.items] == [
        "2026-01-02T03:04:05+00:00",
        "2023-11-14T22:13:20+00:00",
        None,
    ]
    assert one.items[1].message.origin is not None
    assert one.items[1].message.origin.model == "deepseek-chat"


def test_the_answering_model_can_be_given() -> None:
    """Opaque reasoning belongs to the one who is named."""
    (found,) = messages(
        {"role": "assistant", "content": "Hi"}, provider="moonshotai", model="kimi-k2-thinking"
    )

    assert found.origin is not None
    assert (found.origin.provider, found.origin.model) == ("moonshot", "kimi-k2-thinking")


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([{"role": "user", "content": "a"}, {"role": "user", "content": 7}], "line 2: content"),
        ([{"role": "user", "content": "a"}, 7], "line 2: neither"),
        ([{"messages": ["a"]}], r"line 1: messages\[0\] is not an object"),
        (
            [{"messages": [{"role": "user", "content": {}}]}],
            r"line 1: messages\[0\]: content",
        ),
    ],
)
def test_a_message_of_no_form_is_refused_by_its_line(values: list[Any], place: str) -> None:
    """The place is named, and nothing that stands there."""
    with pytest.raises(InvalidCall, match=f"^{place}"):
        read(*values)
