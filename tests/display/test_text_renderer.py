"""Thinking between two rules, in a text that only ever grows."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.chunks import (
    FinishChunk,
    Phase,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.display.text_renderer import (
    CLOSING,
    OPENING,
    ReasoningRenderer,
)
from tests.properties import each

Piece = tuple[str, Any]


def shown(*pieces: Piece, close: bool = True) -> str:
    """Return the whole text that a reader saw."""
    renderer = ReasoningRenderer()
    out = "".join(getattr(renderer, kind)(text) for kind, text in pieces)
    return out + renderer.close() if close else out


def test_the_delimiters_are_these() -> None:
    """They are decided to the character."""
    assert (OPENING, CLOSING) == ("\n\n---\n", "\n---\n\n")


@pytest.mark.parametrize("kind", ["thinking", "progress", "answer"])
def test_what_is_no_text_is_not_shown(kind: str) -> None:
    """A delta that says nothing may be None; anything else is a slip, and changes nothing."""
    renderer = ReasoningRenderer()
    emit = getattr(renderer, kind)

    assert emit(None) == ""
    with pytest.raises(rs.InvalidCall, match="not bytes"):
        emit(b"x")
    assert renderer.close() == ""


def test_a_single_turn() -> None:
    """One thought, one answer: a rule before the thought and one after it."""
    text = shown(("thinking", "Try 7."), ("thinking", " 7 x 13."), ("answer", "No."))

    assert text == "\n\n---\nTry 7. 7 x 13.\n---\n\nNo."


def test_several_turns() -> None:
    """Each turn's thought has a section of its own; a turn's end closes it."""
    renderer = ReasoningRenderer()
    out = [
        renderer.thinking("One."),
        renderer.close(),
        renderer.thinking("Two."),
        renderer.answer("Done."),
        renderer.close(),
    ]

    assert out == ["\n\n---\nOne.", "\n---\n\n", "\n\n---\nTwo.", "\n---\n\nDone.", ""]


def test_progress_between_two_stretches_of_a_thought() -> None:
    """Progress stands outside, and what is thought after it opens again."""
    text = shown(
        ("progress", "- started\n"),
        ("thinking", "Look it up."),
        ("progress", "- searching\n"),
        ("progress", "- found\n"),
        ("thinking", "That is it."),
        ("answer", "Oslo."),
    )

    assert text == (
        "- started\n\n\n---\nLook it up.\n---\n\n- searching\n- found\n"
        "\n\n---\nThat is it.\n---\n\nOslo."
    )


@pytest.mark.parametrize("blank", ["", " ", "\n", " \n\t "])
def test_thinking_of_white_space_opens_nothing(blank: str) -> None:
    """Two rules with nothing between them tell a reader nothing."""
    assert shown(("thinking", blank), ("answer", "Hi"), ("thinking", blank)) == "Hi"


def test_white_space_before_a_thought_is_neither_shown_nor_kept_for_later() -> None:
    """Whole or in pieces, the section opens at the first character of the thought."""
    pieces = shown(("thinking", "\n"), ("thinking", "  "), ("thinking", " Hm"), close=False)
    whole = shown(("thinking", "\n   Hm"), close=False)

    assert pieces == whole == "\n\n---\nHm"


def test_white_space_inside_and_after_a_thought_is_sent_as_it_came() -> None:
    """Paragraphs and indents of an open section are the thought's own."""
    text = shown(("thinking", "a"), ("thinking", "\n\n"), ("thinking", "    b\n"))

    assert text == "\n\n---\na\n\n    b\n\n---\n\n"


@each("piece", ["", None])
@each("kind", ["answer", "progress", "thinking"])
def test_an_empty_piece_changes_nothing(kind: str, piece: Any) -> None:
    """Providers send empty deltas at any time, and some of them as null."""
    found = shown((kind, piece), ("thinking", "a"), (kind, piece), ("thinking", "b"))

    assert found == "\n\n---\nab\n---\n\n"


def test_the_end_of_a_stream_closes_what_is_open() -> None:
    """Nothing is left open, and closing again says nothing."""
    renderer = ReasoningRenderer()
    renderer.thinking("cut off in the mid")

    assert [renderer.close(), renderer.close()] == ["\n---\n\n", ""]


def test_nothing_comes_late_or_early() -> None:
    """Each piece is in what is emitted for it, whole, and so are the rules around it."""
    renderer = ReasoningRenderer()
    out = [
        renderer.thinking("a"),
        renderer.thinking("b"),
        renderer.progress("c"),
        renderer.thinking("d"),
        renderer.answer("e"),
    ]

    assert out == ["\n\n---\na", "b", "\n---\n\nc", "\n\n---\nd", "\n---\n\ne"]


pieces = st.lists(
    st.tuples(
        st.sampled_from(["thinking", "answer", "progress"]),
        st.text(st.sampled_from("ab \n\t\u00a0"), max_size=6),
    ),
    max_size=12,
)


@given(pieces)
def test_how_a_text_was_cut_does_not_matter(given: list[Piece]) -> None:
    """Each stretch of one kind gives the same text in one piece, in these or in letters."""
    whole = [
        (kind, "".join(text for _, text in run))
        for kind, run in groupby((p for p in given if p[1]), key=lambda piece: piece[0])
    ]
    letters = [(kind, letter) for kind, text in given for letter in text]

    assert shown(*given) == shown(*whole) == shown(*letters)


@given(pieces)
def test_every_section_that_opens_is_closed(given: list[Piece]) -> None:
    """The rules come in pairs, and outside of them nothing is lost, moved or added."""
    outside = re.sub(r"\n\n---\n.*?\n---\n\n", "", shown(*given), flags=re.DOTALL)

    assert outside == "".join(text for kind, text in given if kind != "thinking")


def said(text: str, phase: Phase = "delta") -> ReasoningChunk:
    return ReasoningChunk(text=text, phase=phase, content_index=0, is_complete=phase == "end")


def test_a_normalised_stream_renders_block_by_block() -> None:
    """A block's end closes its section at once; a call, a finish or an error does as well."""
    chunks: list[rs.Chunk] = [
        said("", "start"),
        said("Plan."),
        said("Plan.", "end"),
        said("", "start"),
        said("Check."),
        ToolCallChunk(index=0, id="call_1", name="look"),
        TextChunk(text="Four."),
        said("Hm"),
        FinishChunk(reason="stop"),
    ]
    renderer = ReasoningRenderer()

    assert [renderer.chunk(chunk) for chunk in chunks] == [
        "",
        "\n\n---\nPlan.",
        "\n---\n\n",
        "",
        "\n\n---\nCheck.",
        "\n---\n\n",
        "Four.",
        "\n\n---\nHm",
        "\n---\n\n",
    ]


def test_br_003_reasoning_that_is_not_shown_leaves_no_rule() -> None:
    """BR-003: includeInResponse decides what a reader sees, here too."""
    hide = rs.ReasoningSettings(include_in_response=False)
    renderer = ReasoningRenderer()
    chunks: list[rs.Chunk] = [
        said("", "start"),
        said("Plan."),
        said("", "end"),
        TextChunk(text="Four."),
    ]

    assert "".join(renderer.chunk(chunk, hide) for chunk in chunks) == "Four."


def test_another_choice_is_another_conversation() -> None:
    """A second answer to the same question does not run into the first."""
    renderer = ReasoningRenderer()

    assert renderer.chunk(TextChunk(text="B", choice=1)) == ""


def test_a_recorded_stream_renders_like_its_message() -> None:
    """Driven by what ingress gives for tags split across pieces."""
    normalizer = rs.StreamNormalizer(model="m")
    renderer = ReasoningRenderer()
    out = ""
    for piece in ["<th", "ink>Try", " 7.</th", "ink>No."]:
        event = {"choices": [{"index": 0, "delta": {"content": piece}}]}
        out += "".join(renderer.chunk(chunk) for chunk in normalizer.feed(event))
    out += "".join(renderer.chunk(chunk) for chunk in normalizer.close())

    assert out == "\n\n---\nTry 7.\n---\n\nNo."
