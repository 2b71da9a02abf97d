"""Stored messages as the AI SDK's UI messages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given

import reasoning_store as rs
from tests.display.ui_states import CUT, STATES
from tests.egress.histories import DEEPSEEK, REDACTED, TWO_TURNS, answer, call, thought, views
from tests.properties import each


def parts_of(*messages: rs.Message) -> list[dict[str, Any]]:
    (whole,) = rs.ui_messages(messages)
    parts: list[dict[str, Any]] = whole["parts"]
    return parts


def test_a_reply_its_tool_and_its_answer_are_one_message() -> None:
    """Each of the model's messages is a step; the result stands in the part of its call."""
    first, reply, second, last = rs.ui_messages(TWO_TURNS)

    assert [one["role"] for one in (first, reply, second, last)] == ["user", "assistant"] * 2
    assert reply["parts"] == [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Need the weather tool.", "state": "done"},
        {
            "type": "tool-get_weather",
            "toolCallId": "call_1",
            "input": {"city": "Oslo"},
            "state": "output-available",
            "output": "4 C",
        },
        {"type": "step-start"},
        {"type": "reasoning", "text": "The tool says 4 C.", "state": "done"},
        {"type": "text", "text": "It is 4 C in Oslo.", "state": "done"},
    ]
    assert first["parts"] == [{"type": "text", "text": "Weather in Oslo?", "state": "done"}]


def test_a_message_without_a_call_is_over() -> None:
    """Another message of the model after it is another UI message."""
    assert len(rs.ui_messages([rs.assistant("One."), rs.assistant("Two.")])) == 2


@each("state, messages, fields", STATES)
def test_a_tool_part_is_in_the_state_that_its_call_has_reached(
    state: str, messages: list[rs.Message], fields: dict[str, Any]
) -> None:
    """Arriving, arrived, answered, failed or broken off."""
    part = parts_of(*messages)[-1]

    assert part["state"] == state
    assert fields.items() <= part.items()
    assert ("input" in part) == (state != "input-streaming" or "input" in fields) or CUT in (
        messages[0].blocks
    )


def test_what_is_still_arriving_says_so() -> None:
    """The last block of a streaming reply; those before it are done."""
    parts = parts_of(rs.assistant(thought("Hm."), "It i", status="streaming"))

    assert [part.get("state") for part in parts] == [None, "done", "streaming"]


def test_br_003_thinking_is_shown_as_the_settings_say() -> None:
    """BR-003: includeInResponse decides, and what is hidden stays hidden."""
    hidden = replace(thought("Secret."), is_hidden=True)
    reply = rs.assistant(thought("Hm."), hidden, REDACTED, "Hi")

    shown = rs.ui_messages([reply])[0]["parts"]
    quiet = rs.ui_messages([reply], {"reasoning.includeInResponse": False})[0]["parts"]

    assert [part.get("text") for part in shown] == [None, "Hm.", "Hi"]
    assert [part.get("text") for part in quiet] == [None, "Hi"]


def test_a_file_has_the_address_that_a_page_can_show() -> None:
    """Its own, its bytes, or the application's name for it."""
    picture = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG", name="a.png")
    blocks = [
        picture,
        replace(picture, data=None, url="https://example.com/a.png"),
        replace(picture, data=None, name=None, ref="upload/7"),
    ]
    parts = rs.ui_messages([rs.user(*blocks)])[0]["parts"]

    assert [part["url"] for part in parts] == [
        "data:image/png;base64,iVBORw==",
        "https://example.com/a.png",
        "upload/7",
    ]
    assert parts[0] == {
        "type": "file",
        "mediaType": "image/png",
        "filename": "a.png",
        "url": "data:image/png;base64,iVBORw==",
    }


def test_no_seal_and_no_opaque_data_goes_to_a_page() -> None:
    """A page shows thoughts and never sends them on."""
    reply = rs.assistant(
        rs.ThinkingBlock(thought="Hm.", signature="SEAL", provider_metadata={"k": "SEAL"}),
        rs.TextBlock(text="Hi", provider_metadata={"k": "SEAL"}),
        rs.RawBlock(data={"type": "opaque", "data": "SEAL"}),
    )

    assert "SEAL" not in json.dumps(rs.ui_messages([reply]))


def test_the_ai_sdks_own_parts_come_back() -> None:
    """Sources, data and results of a host that speaks its protocol, read from one of its own."""
    source = {"type": "source-url", "sourceId": "s1", "url": "https://example.com"}
    data = {"type": "data-chart", "id": "d1", "data": [1, 2]}
    made = {
        "type": "tool-search",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {"q": "Oslo"},
        "output": ["4 C"],
    }
    body = {"id": "m", "role": "assistant", "parts": [{"type": "step-start"}, source, data, made]}
    message = rs.normalize_response(body, provider="vercel-ai-sdk")

    (whole,) = rs.ui_messages([message])

    assert whole["parts"] == body["parts"]


def test_a_message_without_anything_to_show_is_still_there() -> None:
    """The AI SDK refuses a user's message without a part; an erased one keeps its place."""
    erased = rs.Message(role="user", status="erased")
    shown = rs.ui_messages([erased, rs.assistant(REDACTED)])

    assert [one["parts"] for one in shown] == [
        [{"type": "text", "text": ""}],
        [{"type": "step-start"}],
    ]
    assert shown[0]["metadata"]["status"] == "erased"


def test_a_stored_message_brings_its_identity_and_its_facts() -> None:
    """Ids are the store's own; usage is the sum over the steps of a reply."""
    used = rs.Usage(input=20, output=30, reasoning=24, cached=8)
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        asked = session.append(rs.user("Weather?"))
        steps = session.append(
            [
                rs.assistant(call(), origin=DEEPSEEK, usage=used, finish_reason="tool_calls"),
                answer(),
                rs.assistant("4 C.", origin=DEEPSEEK, usage=used, finish_reason="end_turn"),
            ]
        )
        user, reply = rs.ui_messages(session.history())

    assert (user["id"], reply["id"]) == (asked.id, steps[0].id)
    assert reply["metadata"] == {
        "position": 2,
        "branch": asked.branch,
        "createdAt": steps[0].created_at.isoformat(),
        "messages": [{"id": one.id, "position": one.position} for one in steps],
        "tokens": sum(one.tokens for one in steps),
        "status": "complete",
        "provider": "deepseek",
        "model": "deepseek-chat",
        "finishReason": "stop",
        "usage": {
            "inputTokens": 40,
            "outputTokens": 60,
            "reasoningTokens": 48,
            "cachedInputTokens": 16,
        },
    }
    assert json.loads(json.dumps(reply)) == reply


def test_the_seconds_of_a_thought_are_those_of_all_steps() -> None:
    """A page shows for how long a reply was thought about."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        session.append([rs.assistant(call()), answer(), rs.assistant("4 C.")])
        session.annotate(1, {"secondsThought": 1.5, "agent": "cook"})
        session.annotate(3, {"secondsThought": 2, "rating": 1})
        (reply,) = rs.ui_messages(session.history())

    assert reply["metadata"]["secondsThought"] == 3.5
    assert reply["metadata"]["annotations"] == {"secondsThought": 2, "agent": "cook", "rating": 1}


def test_annotations_go_with_their_message() -> None:
    """A page shows the feedback that its user gave."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        stored = session.append(rs.assistant("Hi"))
        session.annotate(stored.id, {"rating": 1})
        (reply,) = rs.ui_messages(session.history())

    assert reply["metadata"]["annotations"] == {"rating": 1}


def test_versions_of_a_message_are_named() -> None:
    """A page shows its arrows by them."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        session.append([rs.user("Hi"), rs.assistant("One.")])
        session.regenerate(2)
        session.append(rs.assistant("Two."))
        user, reply = rs.ui_messages(session.history())

    assert "siblings" not in user["metadata"]
    assert reply["metadata"]["siblings"] == [1]
    assert reply["metadata"]["versions"] == [
        {"branch": 1, "isShown": False},
        {"branch": 2, "isShown": True},
    ]


@given(views)
def test_every_visible_text_is_shown_once(messages: list[rs.Message]) -> None:
    """Whatever the order of messages: nothing a person may see is lost, and nothing repeated."""
    shown = rs.ui_messages(messages)
    texts = [
        part["text"]
        for whole in shown
        for part in whole["parts"]
        if part["type"] in ("text", "reasoning") and "state" in part
    ]

    assert texts == [
        block.text if isinstance(block, rs.TextBlock) else block.thought
        for message in messages
        for block in rs.visible_parts(message)
        if isinstance(block, rs.TextBlock | rs.ThinkingBlock)
    ]
    assert len({whole["id"] for whole in shown}) == len(shown)
