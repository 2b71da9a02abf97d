"""A reply as the AI SDK's UI message stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.testing import sse, stream
from tests.egress.histories import answer, call, thought
from tests.strategies import carried

API = "openai.chat"
HALF = {"choices": [{"index": 0, "delta": {"content": "Half"}}]}


def chunks_of(message: rs.Message, *, pieces: int = 1, api: str = API) -> list[rs.Chunk]:
    normalizer = rs.StreamNormalizer(api=api)
    fed = [
        chunk
        for event in stream(message, api=api, pieces=pieces)
        for chunk in normalizer.feed(event)
    ]
    return [*fed, *normalizer.close()]


def types_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_a_reply_with_a_tool_is_one_message_of_two_steps() -> None:
    """Chunks, the tool's message, chunks again: one start, one finish."""
    asks = rs.assistant(thought("Need it."), call(), finish_reason="tool_calls")
    says = rs.assistant("4 C.", finish_reason="stop", usage=rs.Usage(input=9, output=3))

    events = [*rs.ui_events([*chunks_of(asks, pieces=2), answer(), *chunks_of(says)])]

    assert events == [
        {"type": "start"},
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "reasoning-1"},
        {"type": "reasoning-delta", "id": "reasoning-1", "delta": "Need"},
        {"type": "reasoning-delta", "id": "reasoning-1", "delta": " it."},
        {"type": "reasoning-end", "id": "reasoning-1"},
        {"type": "tool-input-start", "toolCallId": "call_1", "toolName": "get_weather"},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": '{"city"'},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": ':"Oslo"}'},
        {
            "type": "tool-input-available",
            "toolCallId": "call_1",
            "toolName": "get_weather",
            "input": {"city": "Oslo"},
        },
        {"type": "tool-output-available", "toolCallId": "call_1", "output": "4 C"},
        {"type": "message-metadata", "messageMetadata": {"model": "model"}},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "text-2"},
        {"type": "text-delta", "id": "text-2", "delta": "4 C."},
        {"type": "text-end", "id": "text-2"},
        {
            "type": "message-metadata",
            "messageMetadata": {"usage": {"inputTokens": 9, "outputTokens": 3}},
        },
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages", "thinking_events"])
@given(data=st.data())
def test_a_stream_says_what_its_message_says(api: str, data: st.DataObject) -> None:
    """Live and stored, a page shows the same parts, however the stream was cut."""
    message = data.draw(carried(api))
    normalizer = rs.StreamNormalizer(api=api)
    events = stream(message, api=api, pieces=data.draw(st.integers(1, 4)))
    chunks = [chunk for event in events for chunk in normalizer.feed(event)]
    live = [*rs.ui_events([*chunks, *normalizer.close()])]

    assert read(live) == stored_parts(normalizer.finish())


@given(carried(API))
def test_a_whole_message_streams_as_one_step(message: rs.Message) -> None:
    """So what was said before a page came is replayed to it."""
    live = [*rs.ui_events([message])]

    assert read(live) == stored_parts(message)


def stored_parts(message: rs.Message) -> list[dict[str, Any]]:
    """Return the parts of a stored message, without what only a stored one says."""
    parts = [
        {key: part[key] for key in part if key not in ("state", "rawInput")}
        for part in rs.ui_messages([message])[0]["parts"]
        if part.get("text") != ""
    ]
    return parts if len(parts) > 1 else []


def read(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a message, made of its events as the AI SDK makes them."""
    parts: list[dict[str, Any]] = []
    by_id: dict[str, dict[str, Any]] = {}
    for event in events:
        kind, _, what = event["type"].rpartition("-")
        if event["type"] == "start-step":
            parts.append({"type": "step-start"})
        elif what == "start" and kind:
            name = f"tool-{event['toolName']}" if kind == "tool-input" else kind
            part = {"type": name, **({} if kind == "tool-input" else {"text": ""})}
            by_id[event.get("id") or event["toolCallId"]] = part
            parts.append(part)
        elif what == "delta" and kind != "tool-input":
            by_id[event["id"]]["text"] += event["delta"]
        elif event["type"] == "tool-input-available":
            by_id[event["toolCallId"]] |= {k: event[k] for k in ("toolCallId", "input")}
        elif event["type"] == "tool-input-error":
            by_id[event["toolCallId"]] |= {k: event[k] for k in ("toolCallId", "errorText")}
    return parts if len(parts) > 1 else []


def test_every_part_is_begun_before_it_grows_and_ended_once() -> None:
    """What is open when a stream dies is ended, too."""
    chunks = chunks_of(rs.assistant(thought("Hm."), "Half", call(), status="interrupted"))
    events = [*rs.ui_events(chunks)]

    for kind in ("reasoning", "text"):
        assert types_of(events).count(f"{kind}-start") == types_of(events).count(f"{kind}-end") == 1
    assert events[-1] == {"type": "finish"}


def test_br_003_thinking_follows_the_settings_live() -> None:
    """BR-003: as in the stored message."""
    chunks = chunks_of(rs.assistant(thought("Hm."), "Hi"))
    quiet = types_of([*rs.ui_events(chunks, {"reasoning.includeInResponse": False})])

    assert not [name for name in quiet if name.startswith("reasoning")]
    assert "text-delta" in quiet


def test_a_thought_that_cannot_be_read_is_not_shown() -> None:
    """A seal without a text begins no part."""
    sealed = rs.ThinkingBlock(encrypted="UkVE", redacted=True, is_hidden=True)
    events = [*rs.ui_events(chunks_of(rs.assistant(sealed, "Hi"), api="anthropic.messages"))]

    assert types_of(events)[:3] == ["start", "start-step", "text-start"]


def test_a_stream_that_breaks_off_ends_what_is_open_and_raises() -> None:
    """The page learns, without the text of the exception; the application gets it."""

    def chunks() -> Iterator[rs.Chunk]:
        yield rs.TextChunk(text="Half", content_index=0)
        raise OSError("secret")

    seen: list[dict[str, Any]] = []
    with pytest.raises(OSError, match="secret"):
        seen.extend(rs.ui_events(chunks()))

    assert types_of(seen)[-3:] == ["text-end", "finish-step", "error"]
    assert "secret" not in json.dumps(seen)


def test_an_error_of_the_provider_is_sent_as_one() -> None:
    """Without the provider's words, which are for the application."""
    chunks: list[rs.Chunk] = [rs.TextChunk(text="Half"), rs.ErrorChunk(raw={"message": "secret"})]
    events = [*rs.ui_events(chunks)]

    assert types_of(events)[-3:] == ["error", "finish-step", "finish"]
    assert events[-1]["finishReason"] == "error"
    assert "secret" not in json.dumps(events)


def test_a_stopped_reply_is_an_abort() -> None:
    """The AI SDK's page then says that the user stopped it."""
    chunks: list[rs.Chunk] = [rs.TextChunk(text="Half"), rs.FinishChunk(reason="stopped")]

    assert types_of([*rs.ui_events(chunks)])[-3:] == ["text-end", "finish-step", "abort"]


def test_only_the_first_choice_is_shown() -> None:
    """The others are conversations of their own."""
    chunks: list[rs.Chunk] = [
        rs.TextChunk(text="A"),
        rs.TextChunk(text="B", choice=1),
        rs.FinishChunk(reason="stop", choice=1),
    ]
    events = [*rs.ui_events(chunks)]

    assert [event["delta"] for event in events if event["type"] == "text-delta"] == ["A"]
    assert events[-1] == {"type": "finish"}


def test_a_recording_is_shown_while_it_is_recorded_on_both_faces() -> None:
    """The events of a recording, framed as the AI SDK's page reads them."""

    async def asynchronous() -> list[str]:
        async def source() -> AsyncIterator[Any]:
            yield HALF

        async with rs.AsyncStore("sqlite://") as store:
            session = await store.session(create=True)
            events = rs.ui_events(session.record(source()), message_id="m-1")
            return [line async for line in rs.ui_sse(events)]

    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        events = rs.ui_events(session.record([HALF]), message_id="m-1")
        lines = [*rs.ui_sse(events)]
        assert session.history()[-1].message.text == "Half"

    assert asyncio.run(asynchronous()) == lines
    assert lines[0] == 'data: {"type":"start","messageId":"m-1"}\n\n'
    assert lines[-1] == "data: [DONE]\n\n"
    assert rs.ui_headers()["x-vercel-ai-ui-message-stream"] == "v1"


def test_a_page_that_leaves_ends_the_recording() -> None:
    """Closing the events closes the chunks."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        lines = rs.ui_sse(rs.ui_events(session.record(iter([HALF, HALF]))))
        while "Half" not in next(lines):
            pass
        lines.close()  # type: ignore[attr-defined]
        session.append(rs.user("Well?"))
        reply = session.history()[0].message

    assert (reply.status, reply.text) == ("interrupted", "Half")


@pytest.mark.parametrize("given", ["Hi", 7, None, {"type": "start"}], ids=repr)
def test_what_is_no_chunk_is_refused(given: Any) -> None:
    """By the error that names its type."""
    with pytest.raises(rs.InvalidCall, match="reads chunks, not"):
        rs.ui_events(given)


def test_the_frames_are_those_of_the_testing_kit() -> None:
    """The events as a host of the AI SDK sends them."""
    events = [*rs.ui_events(chunks_of(rs.assistant("Hi \u00e9")))]

    framed = "".join(rs.ui_sse(events)).encode()

    assert [json.loads(line[6:]) for line in framed.split(b"\n\n")[:-2]] == events
    assert sse(events, api="thinking_events").endswith(framed.rpartition(b"data: ")[2])
