"""Text that is held, tags that stay open, and native reasoning next to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.ingress.channel_readings import (
    counters,
    delta,
    read,
    thoughts,
)
from tests.properties import each, examples
from tests.wire.well_formed import assert_well_formed

CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}


def kinds(message: rs.Message) -> list[tuple[str, str]]:
    return [
        (block.type, getattr(block, "text", getattr(block, "thought", "")))
        for block in message.blocks
    ]


def test_held_text_is_stored_where_it_arrived() -> None:
    """What could have become a delimiter and did not is before the call that came between."""
    message = read(delta(content="1 <"), delta(tool_calls=[CALL]), delta(content=" 2"))

    assert kinds(message) == [("text", "1 <"), ("tool_call", ""), ("text", " 2")]


def test_text_that_a_removal_may_join_is_stored_where_it_arrived() -> None:
    """Half a delimiter in front of a block waits for its other half; a call does not move it."""
    deltas = (delta(content="<thi<think>a</think>"), delta(tool_calls=[CALL]), delta(content="s"))

    assert kinds(read(*deltas)) == [
        ("thinking", "a"),
        ("text", "<thi"),
        ("tool_call", ""),
        ("text", "s"),
    ]


def test_half_a_delimiter_before_another_block_is_text() -> None:
    """A delimiter is never put together across a call, inside a block or outside."""
    outside = (delta(content="a<thi"), delta(tool_calls=[CALL]), delta(content="nk>b"))
    inside = (delta(content="<think>a</thi"), delta(tool_calls=[CALL]), delta(content="nk>b"))

    assert kinds(read(*outside)) == [("text", "a<thi"), ("tool_call", ""), ("text", "nk>b")]
    assert kinds(read(*inside)) == [("thinking", "a</think>b"), ("tool_call", "")]


# --- a block that is never closed, after native reasoning


def test_an_answer_about_a_delimiter_is_not_lost_after_native_reasoning() -> None:
    """A literal open is no copy of the thought: what follows is never visible, never lost."""
    message = read(
        delta(reasoning_content="Plan"),
        delta(content="Use the <think> tag"),
        delta(tool_calls=[CALL]),
        delta(content=" to think."),
    )

    assert kinds(message) == [
        ("thinking", "Plan"),
        ("text", "Use the "),
        ("thinking", " tag to think."),
        ("tool_call", ""),
    ]
    assert message.thinking[1].interrupted
    assert "suppressedDuplicates" not in counters(message)


@pytest.mark.parametrize("inside", [False, True])
def test_a_blank_native_field_takes_no_thought_from_the_text(inside: bool) -> None:
    """A host may send the field along though the thought stands in the text."""
    opened = "" if inside else "<think>"
    message = read(
        delta(reasoning_content="\n"),
        delta(content=f"{opened}Plan</think>42"),
        starts_inside=inside,
    )

    assert thoughts(message)[-1] == ("think_tags", "Plan")
    assert message.text == "42"


def test_what_follows_an_open_that_stays_open_is_shown_at_the_end() -> None:
    """The application has seen then what is stored."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    chunks = [
        chunk
        for event in (delta(reasoning_content="Plan"), delta(content="a <think> b"))
        for chunk in normalizer.feed(event)
    ]
    last = normalizer.close()

    assert_well_formed([*chunks, *last])
    assert "b" not in "".join(chunk.text for chunk in chunks if isinstance(chunk, rs.TextChunk))
    assert [chunk.text for chunk in last if isinstance(chunk, rs.ReasoningChunk)] == ["", " b", ""]


def test_a_thought_that_began_in_the_text_is_kept_whole_where_it_stays_open() -> None:
    """Native reasoning that speaks in the middle of it takes nothing of it away."""
    message = read(
        delta(content="<think>One"), delta(reasoning_content="Two"), delta(content=" and more")
    )

    assert thoughts(message) == [("think_tags", "One and more"), ("reasoning_content", "Two")]
    assert message.thinking[0].interrupted


def test_a_thought_that_began_before_native_reasoning_is_kept_to_its_close() -> None:
    """It is no copy of what had not come yet."""
    message = read(
        delta(content="<think>One"),
        delta(reasoning_content="Two"),
        delta(content=" and more</think>42"),
    )

    assert kinds(message) == [("thinking", "One and more"), ("thinking", "Two"), ("text", "42")]
    assert "suppressedDuplicates" not in counters(message)


def test_a_copy_that_was_cut_off_is_a_copy_still() -> None:
    """A host that sends the thought twice reached its limit: it is neither kept nor shown again."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    for word in ("One ", "two ", "three"):
        normalizer.feed(delta(reasoning_content=word))
    normalizer.feed(delta(content="<think>One two th"))
    shown = normalizer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})

    shown += normalizer.close()

    assert [type(chunk) for chunk in shown] == [rs.ReasoningChunk, rs.FinishChunk]
    assert thoughts(normalizer.finish()) == [("reasoning_content", "One two three")]
    assert counters(normalizer.finish())["suppressedDuplicates"] == 1


@each("given", [{}, {"id": None}, {"id": ""}])
@each("ends", [True, False])
def test_a_call_that_comes_without_an_id_gets_one_of_its_own(
    given: dict[str, Any], ends: bool
) -> None:
    """Who answers it has to name it, and the application learns with its last chunk."""
    normalizer = rs.StreamNormalizer(provider="cohere")
    shown: list[rs.Chunk] = []
    for index in range(2):
        call = {"type": "function", "function": {"name": "f", "arguments": "{}"}, **given}
        begun = {"index": index, "delta": {"message": {"tool_calls": call}}}
        shown += normalizer.feed({"type": "tool-call-start", **begun})
        if ends:
            shown += normalizer.feed({"type": "tool-call-end", "index": index})
    shown += normalizer.feed({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}})
    shown += normalizer.close()

    ids = [call.id for call in normalizer.finish().tool_calls]
    told = [chunk for chunk in shown if isinstance(chunk, rs.ToolCallChunk) and chunk.is_complete]
    assert len({*ids} - {""}) == 2
    assert [chunk.id for chunk in told] == ids


# --- the line ends directly around a delimiter

LINE_ENDS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "around the thought": ("<think>\nPlan\n</think>\n\n42", [("thinking", "Plan"), ("text", "42")]),
    "Windows": ("<think>\r\nPlan\r\n</think>\r\n42", [("thinking", "Plan"), ("text", "42")]),
    "before the first": ("\n<think>Plan</think>42", [("thinking", "Plan"), ("text", "42")]),
    "an empty thought": ("<think>\n\n</think>\n\n42", [("text", "42")]),
    "inside the thought": ("<think>a\n\nb</think>42", [("thinking", "a\n\nb"), ("text", "42")]),
    "blanks": ("<think> Plan </think>\n 42\n", [("thinking", " Plan "), ("text", " 42\n")]),
    "no delimiter": ("\n\n42\n", [("text", "\n\n42\n")]),
    "nothing else": ("\n\n", [("text", "\n\n")]),
    "between two lines": (
        "One.\n<think>\nhm\n</think>\nTwo.",
        [("text", "One.\n"), ("thinking", "hm"), ("text", "Two.")],
    ),
    "never closed": ("<think>\nPlan\n", [("thinking", "Plan\n")]),
}


@each("case", LINE_ENDS)
def test_line_ends_directly_around_a_delimiter_belong_to_it(case: str) -> None:
    """In a message: an answer begins with its first visible character, however it is cut."""
    text, blocks = LINE_ENDS[case]
    whole = {"role": "assistant", "content": text}

    assert kinds(read(*(delta(content=letter) for letter in text))) == blocks
    assert kinds(rs.normalize_response({"choices": [{"message": whole}]})) == blocks
    assert kinds(rs.normalize_response(text)) == blocks


def test_line_ends_that_come_before_a_call_stay_before_it() -> None:
    """They are held for a delimiter no longer than the text goes on."""
    message = read(delta(content="\n"), delta(tool_calls=[CALL]), delta(content="\n42"))

    assert kinds(message) == [("text", "\n"), ("tool_call", ""), ("text", "\n42")]


# --- native reasoning, and a prompt that opened a block


INSIDE: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "the answer": (
        [delta(reasoning_content="Plan"), delta(content="42")],
        [("thinking", "Plan"), ("text", "42")],
    ),
    "in one chunk": (
        [delta(reasoning_content="Plan", content="42")],
        [("thinking", "Plan"), ("text", "42")],
    ),
    "an answer that begins like the thought": (
        [delta(reasoning_content="The sum is 4."), delta(content="The sum: 4.")],
        [("thinking", "The sum is 4."), ("text", "The sum: 4.")],
    ),
    "an answer that is the thought": (
        [delta(reasoning_content="42"), delta(content="42")],
        [("thinking", "42"), ("text", "42")],
    ),
    "an answer that thinks": (
        [delta(reasoning_content="Plan"), delta(content="So <think>hm</think> 42")],
        [("thinking", "Plan"), ("text", "So  42")],
    ),
    "a copy with its delimiters": (
        [delta(reasoning_content="Plan"), delta(content="\n<think>Plan</think>42")],
        [("thinking", "Plan"), ("text", "42")],
    ),
    "a stray close": (
        [delta(reasoning_content="Plan"), delta(content="4</think>2")],
        [("thinking", "Plan"), ("text", "42")],
    ),
    "white space first": (
        [delta(content="\n"), delta(reasoning_content="Plan"), delta(content="42")],
        [("thinking", "Plan"), ("text", "42")],
    ),
    "a call behind the answer": (
        [
            delta(reasoning_content="Plan"),
            delta(content="Pl"),
            delta(tool_calls=[CALL]),
            delta(content="us"),
        ],
        [("thinking", "Plan"), ("text", "Pl"), ("tool_call", ""), ("text", "us")],
    ),
    "half a delimiter first": (
        [delta(content="<thi"), delta(reasoning_content="Plan"), delta(content="s>")],
        [("text", "<thi"), ("thinking", "Plan"), ("text", "s>")],
    ),
    "the thought in the text first": (
        [delta(content="One"), delta(reasoning_content="Two"), delta(content=" more")],
        [("thinking", "One more"), ("thinking", "Two")],
    ),
}


@each("case", INSIDE)
@each("merge", [False, True])
def test_native_reasoning_leaves_the_answer_where_the_prompt_opened_a_block(
    case: str, merge: bool
) -> None:
    """The server has told them apart: no text is taken for a thought, no copy for the answer."""
    deltas, blocks = INSIDE[case]
    if merge and case == "an answer that thinks":
        blocks = [("thinking", "Plan"), ("text", "So "), ("thinking", "hm"), ("text", " 42")]

    assert kinds(read(*deltas, starts_inside=True, merge=merge)) == blocks


def test_a_whole_response_leaves_the_answer_where_the_prompt_opened_a_block() -> None:
    """As a stream does."""
    said = {"role": "assistant", "reasoning_content": "Plan", "content": "42"}
    body = {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
    message = rs.normalize_response(body, api="openai.chat", starts_inside=True)

    assert kinds(message) == [("thinking", "Plan"), ("text", "42")]


def test_the_prompt_opens_a_block_before_the_first_text_only() -> None:
    """Where a protocol numbers its texts, the others are outside."""
    normalizer = rs.StreamNormalizer(api="thinking_events", tags="always", starts_inside=True)
    for number, text in enumerate(["Plan</think>One <", "two", "three"]):
        normalizer.feed({"type": "text_start", "contentIndex": number})
        normalizer.feed({"type": "text_delta", "contentIndex": number, "delta": text})

    assert kinds(normalizer.finish()) == [
        ("thinking", "Plan"),
        ("text", "One <"),
        ("text", "two"),
        ("text", "three"),
    ]


WORDS = st.lists(st.sampled_from(["a", "b", " ", "<think>"]), min_size=1, max_size=5).map("".join)


@examples(400)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from(["text", "text", "call", "native"]), WORDS),
        min_size=1,
        max_size=7,
    ),
    merge=st.booleans(),
    inside=st.booleans(),
)
def test_no_text_is_lost_where_no_block_is_closed(
    parts: list[tuple[str, str]], merge: bool, inside: bool
) -> None:
    """Whatever came natively and in between."""
    deltas = [
        {
            "text": delta(content=text),
            "call": delta(tool_calls=[{**CALL, "index": number, "id": f"c{number}"}]),
            "native": delta(reasoning_content="n"),
        }[kind]
        for number, (kind, text) in enumerate(parts)
    ]
    message = read(*deltas, merge=merge, starts_inside=inside)

    told = "".join(
        block.text if isinstance(block, rs.TextBlock) else block.thought
        for block in message.blocks
        if isinstance(block, rs.TextBlock)
        or (isinstance(block, rs.ThinkingBlock) and block.source_field == "think_tags")
    )
    came = "".join(text for kind, text in parts if kind == "text")
    assert told.replace("<think>", "") == came.replace("<think>", "")


FRAGMENTS = [
    "a",
    " ",
    "\n",
    "\n" * 17,
    "<",
    "/",
    "<thi",
    "nk>",
    "<think>",
    "</think>",
    "[THINK]",
    "`",
    "```",
    "\r\n~~~",
    "\ud83d",
    "\ude00",
]


TEXTS = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6).map("".join)


BETWEEN = st.sampled_from(["text", "text", "text", "call", "native", "picture"])


@examples(400)
@given(
    parts=st.lists(st.tuples(BETWEEN, TEXTS), min_size=1, max_size=6),
    merge=st.booleans(),
    inside=st.booleans(),
    cut=st.integers(1, 3),
)
def test_text_may_be_cut_anywhere_between_whatever_else_comes(
    parts: list[tuple[str, str]], merge: bool, inside: bool, cut: int
) -> None:
    """The blocks, their order and their counters are those of the text in one piece."""

    def message(size: int) -> rs.Message:
        normalizer = rs.StreamNormalizer(api="openai.chat", merge=merge, starts_inside=inside)
        for number, (kind, text) in enumerate(parts):
            if kind == "text":
                for first in range(0, len(text), size):
                    normalizer.feed(delta(content=text[first : first + size]))
            elif kind == "call":
                normalizer.feed(delta(tool_calls=[{**CALL, "index": number, "id": f"c{number}"}]))
            elif kind == "native":
                normalizer.feed(
                    delta(reasoning_details=[{"type": "reasoning.text", "text": "a \n a"}])
                )
            else:
                normalizer.feed(delta(images=[{"image_url": {"url": "https://example.org/1"}}]))
        return normalizer.finish()

    assert message(cut) == message(1_000)
