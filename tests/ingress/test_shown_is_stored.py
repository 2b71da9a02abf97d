"""Shown is stored: the chunks of every stream, joined, are the message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.testing import stream
from tests.ingress.channel_readings import delta
from tests.ingress.mangled import mangle
from tests.properties import each, examples
from tests.strategies import carried
from tests.wire.cases import all_cases

APIS = (
    *("anthropic.messages", "bedrock.converse", "cohere.chat", "gemini.generate_content"),
    *("mistral.chat", "ollama.chat", "openai.chat", "openai.responses", "thinking_events"),
)
CASES = [case for case in all_cases() if case.variant.get("stream") is not None]


def blocks_of(chunks: Iterable[rs.Chunk]) -> dict[int | None, dict[str, Any]]:
    """Return what a program has that joins the chunks of the first choice by their index."""
    found: dict[int | None, dict[str, Any]] = {}
    for chunk in chunks:
        if chunk.choice:
            continue
        block = found.setdefault(getattr(chunk, "content_index", -1), {"type": chunk.type})
        match chunk:
            case rs.TextChunk():
                block["text"] = block.get("text", "") + chunk.text
            case rs.ReasoningChunk():
                states_whole = chunk.phase == "end" and chunk.text
                before = "" if states_whole else block.get("text", "")
                block |= {**chunk.metadata, "text": before + chunk.text}
            case rs.ToolCallChunk():
                block["id"] = block.get("id") or chunk.id
                block["name"] = block.get("name") or chunk.name
                block["arguments"] = block.get("arguments", "") + chunk.arguments
            case rs.BlockChunk():
                block["block"] = chunk.block
    found.pop(-1, None)
    return found


def joined(chunks: list[rs.Chunk]) -> Counter[tuple[Any, ...]]:
    """Return the blocks that are shown, however the entries of an array are ordered."""
    shown: Counter[tuple[Any, ...]] = Counter()
    for block in blocks_of(chunks).values():
        match block["type"]:
            case "text" if block["text"]:
                shown["text", block["text"]] += 1
            case "reasoning":
                seals = (block.get("signature") or None, block.get("encrypted") or None)
                if block["text"] or any(seals):
                    shown["thinking", block.get("sourceField"), block["text"], *seals] += 1
            case "tool_call":
                name = (block["id"] or "", block["name"] or "")
                shown["tool_call", *name, block["arguments"]] += 1
            case "block":
                shown[(block["block"].type,)] += 1
    return shown


def stored(message: rs.Message) -> Counter[tuple[Any, ...]]:
    kept: Counter[tuple[Any, ...]] = Counter()
    for block in message.blocks:
        match block:
            case rs.TextBlock():
                if block.text:
                    kept["text", block.text] += 1
            case rs.ThinkingBlock():
                seals = (block.signature, block.encrypted)
                kept["thinking", block.source_field, block.thought, *seals] += 1
            case rs.ToolCallBlock():
                kept["tool_call", block.id, block.name, block.arguments or ""] += 1
            case _:
                kept[(block.type,)] += 1
    return kept


def assert_shown_is_stored(chunks: list[rs.Chunk], message: rs.Message) -> None:
    mine = [chunk for chunk in chunks if not chunk.choice]
    more, less = joined(mine) - stored(message), stored(message) - joined(mine)
    assert not less, "stored, and never shown"
    # A tagged thought that a native field repeats later was shown, and is stored once.
    assert {block[:2] for block in more} <= {("thinking", "think_tags")}
    finishes = [place for place, chunk in enumerate(mine) if isinstance(chunk, rs.FinishChunk)]
    assert finishes in ([], [len(mine) - 1]), "the finish comes once, and last"
    reasons = [chunk.reason for chunk in mine if isinstance(chunk, rs.FinishChunk)]
    if message.finish_reason != "unread":
        assert message.finish_reason == (reasons[0] if reasons else None)


@examples(600)
@given(st.data())
def test_the_joined_chunks_are_the_message_whatever_the_order_end_or_repetition(
    data: st.DataObject,
) -> None:
    """Of every protocol: its documented streams, and messages of our own as its events."""
    dice = data.draw(st.randoms(use_true_random=False))
    if data.draw(st.booleans()):
        case = data.draw(st.sampled_from(CASES))
        events, normalizer = case.variant["stream"], case.normalizer()
    else:
        api = data.draw(st.sampled_from(APIS))
        drawn = data.draw(carried(api))
        events = stream(drawn, api=api, pieces=dice.randint(1, 5), seed=dice.randint(0, 99))
        normalizer = rs.StreamNormalizer(api=api)
    chunks = [chunk for event in mangle(events, dice) for chunk in normalizer.feed(event)]
    is_cut_off = dice.random() < 0.3
    chunks += normalizer.close(interrupted=is_cut_off)

    assert_shown_is_stored(chunks, normalizer.finish(interrupted=is_cut_off))


def chat(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def gemini(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
    content = {"role": "model", "parts": [*parts]}
    return {"candidates": [{"content": content, **({"finishReason": finish} if finish else {})}]}


FUNCTION = {"name": "f", "arguments": '{"a":'}
GOES_ON: dict[str, tuple[str, list[Any], str | None]] = {
    "code before the answer": (
        "google",
        [
            gemini({"executableCode": {"language": "PYTHON", "code": "1"}}),
            gemini({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, finish=None),
            gemini({"text": "The answer "}, finish=None),
            gemini({"text": "is 1."}),
        ],
        "STOP",
    ),
    "a reason in each chunk": (
        "google",
        [
            gemini({"text": "<think>Hm"}),
            gemini({"text": ".</thi"}),
            gemini({"text": "nk>The answer "}),
            gemini({"text": "is 1."}, finish="MAX_TOKENS"),
        ],
        "MAX_TOKENS",
    ),
    "a reason before the answer": (
        "openai",
        [chat("stop"), chat(content="The answer "), chat("length", content="is 1.")],
        "length",
    ),
    "a reason before the thought and the rest of a call": (
        "deepseek",
        [
            chat("tool_calls", tool_calls=[{"index": 0, "id": "c", "function": FUNCTION}]),
            chat("stop"),
            chat(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]),
            chat(reasoning_content="Hm."),
            chat(content="The answer is 1."),
        ],
        "tool_calls",
    ),
}


@each("case", GOES_ON)
def test_what_follows_the_finish_is_shown_and_the_finish_comes_last(case: str) -> None:
    """By the recording and by the UI stream that is made of it."""
    provider, events, reason = GOES_ON[case]
    with rs.Store("sqlite://") as store:
        session = store.session()
        session.settings.set("reasoning.tags", "always")
        session.append(rs.user("q"))
        with session.record(iter(events), provider=provider, model="m") as reply:
            chunks = [*reply]
        message = session.history()[-1].message
    assert_shown_is_stored(chunks, message)
    ui = [*rs.ui_events(chunks)]

    assert message.text == "The answer is 1."
    assert (message.status, message.finish_reason) == ("complete", reason)
    assert "".join(event["delta"] for event in ui if event["type"] == "text-delta") == message.text
    inputs = [event["input"] for event in ui if event["type"] == "tool-input-available"]
    assert inputs == [call.parameters for call in message.tool_calls]
    assert [event["type"] for event in ui].count("start-step") == 1


def test_an_end_that_states_more_than_was_shown_is_shown_by_the_ui_stream() -> None:
    """Nothing that was shown can be taken back: the whole is a part of its own."""
    thought = rs.ReasoningChunk(text="one three", content_index=0)
    for text, parts in (
        ("one  three", ["one three"]),
        ("one two three", ["one three", "one two three"]),
    ):
        end = rs.ReasoningChunk(phase="end", text=text, content_index=0, is_complete=True)
        ui = [*rs.ui_events([thought, end])]
        shown = [event["delta"] for event in ui if event["type"] == "reasoning-delta"]

        assert shown == parts
        assert [e["type"] for e in ui].count("reasoning-end") == len(parts)


def test_a_reply_that_is_stopped_shows_the_text_that_it_held() -> None:
    """What may have been a delimiter is stored as text."""
    with rs.Store("sqlite://") as store:
        session = store.session()

        def events() -> Any:
            yield delta(content="a <thi")
            session.stop("enough")
            list(session.follow())  # ends once the reply is stored
            yield delta(content="nk>never read")

        with session.record(events(), provider="deepseek", model="m") as reply:
            shown = [*reply]
        message = session.history()[-1].message

    assert [type(chunk) for chunk in shown][-1] is rs.FinishChunk
    assert "".join(chunk.text for chunk in shown if isinstance(chunk, rs.TextChunk)) == "a <thi"
    assert (message.text, message.finish_reason) == ("a <thi", "stopped")


def test_a_stream_that_is_not_understood_is_kept_as_it_came() -> None:
    """Every event is shown as unknown and stored, however many there are."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    events = [{"strange": number} for number in range(100)]
    shown = [chunk for event in events for chunk in normalizer.feed(event)] + normalizer.close()
    message = normalizer.finish()

    assert [type(chunk) for chunk in shown] == [rs.UnknownChunk] * 100
    assert (message.status, message.finish_reason) == ("interrupted", "unread")
    assert (message.metadata or {})["unknownEvents"] == events


@pytest.mark.parametrize("call", ["feed", "feed_whole"])
def test_nothing_is_added_to_a_stream_that_is_closed(call: str) -> None:
    """What came later would be stored and not shown."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    normalizer.close()

    with pytest.raises(rs.InvalidCall, match="finished"):
        getattr(normalizer, call)(delta(content="x"))
