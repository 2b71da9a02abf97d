"""Two channels, well-formed lifecycles, native first: the hard orders by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ingress import draft_parts
from tests.ingress.channel_readings import (
    channels,
    counters,
    delta,
    read,
    shown,
    thinking,
    thoughts,
)
from tests.properties import each


def test_aliases_mirrored_in_two_fields_are_stored_once() -> None:
    """The first that speaks wins; the other is its copy."""
    message = read(
        delta(reasoning="Plan", reasoning_content="Plan"),
        delta(reasoning=" B.", reasoning_content=" B."),
    )

    assert thoughts(message) == [("reasoning", "Plan B.")]
    assert counters(message) == {"suppressedDuplicates": 1}


def test_an_alias_that_speaks_later_is_a_copy_too() -> None:
    """A gateway may mirror only part of the stream."""
    message = read(
        delta(reasoning_content="Plan"), delta(reasoning="Plan B", reasoning_content=" B")
    )

    assert thoughts(message) == [("reasoning_content", "Plan B")]


FIELDS: dict[str, tuple[list[dict[str, Any]], list[tuple[str | None, str]], int]] = {
    "a blank before the other field speaks": (
        [delta(reasoning_content="\n"), delta(reasoning="Plan"), delta(content="x")],
        [("reasoning", "Plan")],
        0,
    ),
    "a blank before the same field speaks": (
        [delta(reasoning_content="\n", reasoning="\n"), delta(reasoning_content="Plan")],
        [("reasoning_content", "\nPlan")],
        0,
    ),
    "a blank alone": (
        [delta(reasoning_content="\n"), delta(content="x")],
        [("reasoning_content", "\n")],
        0,
    ),
    "a blank in two fields": (
        [delta(reasoning="\r", reasoning_content="\r\n"), delta(reasoning="\n")],
        [("reasoning", "\r\n")],
        0,
    ),
    "something else": (
        [delta(reasoning="Plan"), delta(reasoning_content="Other"), delta(content="x")],
        [("reasoning", "Plan"), ("reasoning_content", "Other")],
        0,
    ),
    "something else, piece by piece": (
        [
            delta(reasoning="Plan", reasoning_content="Pl"),
            delta(reasoning=" A", reasoning_content="an B"),
        ],
        [("reasoning", "Plan A"), ("reasoning_content", "Plan B")],
        0,
    ),
    "a copy with other white space": (
        [delta(reasoning="Plan A\n\nPlan B"), delta(reasoning_content="Plan A Plan B")],
        [("reasoning", "Plan A\n\nPlan B")],
        1,
    ),
    "a copy after the answer": (
        [delta(reasoning="Plan"), delta(content="x"), delta(reasoning_content="Plan")],
        [("reasoning", "Plan")],
        1,
    ),
    "a copy and then something else": (
        [
            delta(reasoning="Plan", reasoning_content="Plan"),
            delta(content="x"),
            delta(reasoning_content="Other"),
        ],
        [("reasoning", "Plan"), ("reasoning_content", "Other")],
        1,
    ),
}


@each("case", FIELDS)
@each("merge", [False, True])
def test_no_thought_is_lost_to_another_field(case: str, merge: bool) -> None:
    """The first that says something counts; a copy is left out, and nothing but a copy."""
    deltas, blocks, copies = FIELDS[case]
    message = read(*deltas, merge=merge)

    assert thoughts(message) == blocks
    assert counters(message).get("suppressedDuplicates", 0) == copies


STATED: dict[str, tuple[list[Any], str]] = {
    "the rest": (["hello "], "hello world"),
    "all of it": ([], "hello world"),
    "what the deltas do not begin": (["world"], "hello world"),
    "what a bad delta lacks": (["hello ", 5, "!"], "hello world!"),
    "other white space": (["hello", "world"], "hello world"),
}


@pytest.mark.parametrize("case", STATED)
def test_a_stated_whole_is_the_thought(case: str) -> None:
    """In the message, in the chunks and in the draft: an end with a text replaces the deltas."""
    pieces, whole = STATED[case]
    normalizer = rs.StreamNormalizer(api="thinking_events")
    draft = draft_parts.DraftParts(None)
    events: list[dict[str, Any]] = [
        {"type": "thinking_start", "contentIndex": 0},
        *({"type": "thinking_delta", "contentIndex": 0, "delta": piece} for piece in pieces),
        {"type": "thinking_end", "contentIndex": 0, "content": whole},
    ]
    shown = [chunk for event in events for chunk in normalizer.feed(event)]
    draft.add(shown)
    said = [chunk for chunk in shown if isinstance(chunk, rs.ReasoningChunk)]
    message = normalizer.finish()

    assert [block.thought for block in message.thinking] == [whole]
    assert said[-1].text in ("", whole)
    assert (said[-1].text or "".join(chunk.text for chunk in said)) == whole
    again = draft_parts.build_message([draft.take_part() or "[]"], origin=rs.Origin())
    assert again.thinking == message.thinking


@each(
    "pieces, whole, kept",
    [
        (
            ["I should check ", "the invoice."],
            "summary",
            ["I should check the invoice.", "summary"],
        ),
        ([" thinking"], " final thought", [" thinking", " final thought"]),
        (["one, ", "two"], "two, one", ["one, two", "two, one"]),
        (["all of it, ", "and more"], "all of it", ["all of it, and more"]),
    ],
)
def test_two_statements_of_one_thought_that_differ_are_both_kept(
    pieces: list[str], whole: str, kept: list[str]
) -> None:
    """A whole that does not contain its deltas in order is a thought of its own (BR-002)."""
    end = {"type": "thinking_end", "contentIndex": 0, "content": whole}
    sealed = {"type": "thinking", "thinkingSignature": "c2ln"}
    normalizer = rs.StreamNormalizer(api="thinking_events")
    for piece in pieces:
        normalizer.feed({"type": "thinking_delta", "contentIndex": 0, "delta": piece})
    normalizer.feed({**end, "partial": {"content": [sealed]}})
    thinking = normalizer.finish().thinking

    assert [block.thought for block in thinking] == kept
    assert [block.signature for block in thinking] == [None] * (len(kept) - 1) + ["c2ln"]


def test_two_whole_thoughts_beside_a_field_that_says_something_else_are_both_kept() -> None:
    """Each part of the content is a thought, also where a flat field came first."""
    parts = [{"type": "thinking", "thinking": text} for text in ("One.", "Two.")]
    message = {"role": "assistant", "reasoning_content": "Zero.", "content": parts}
    read_whole = rs.normalize_response({"choices": [{"index": 0, "message": message}]})

    assert [thought for _, thought in thoughts(read_whole)] == ["Zero.", "One.", "Two."]


@pytest.mark.parametrize("held", ["<", "a <", "<thi"])
def test_text_that_is_held_between_two_thoughts_stays_between_them(held: str) -> None:
    """EC-003: it parts them, though it is shown only once it is known to be no delimiter."""
    message = read(delta(reasoning="one"), delta(content=held), delta(reasoning="two"))

    assert [block.type for block in message.blocks] == ["thinking", "text", "thinking"]
    assert (message.text, [thought for _, thought in thoughts(message)]) == (held, ["one", "two"])


def test_text_that_is_held_from_before_a_thought_parts_it_nowhere() -> None:
    """It came before all of it."""
    message = read(delta(content="<"), delta(reasoning="one "), delta(reasoning="thought"))

    assert [block.type for block in message.blocks] == ["text", "thinking"]
    assert thoughts(message) == [("reasoning", "one thought")]


def test_details_win_over_the_flat_text_next_to_them() -> None:
    """They carry what the flat string lacks, and the string is a copy."""
    detail = {"type": "reasoning.text", "text": "Plan", "signature": "c2ln", "index": 0}
    message = read(delta(reasoning="Plan", reasoning_details=[detail]))

    assert thoughts(message) == [("reasoning_details", "Plan")]
    assert message.thinking[0].signature == "c2ln"


def test_a_seal_on_a_suppressed_copy_is_not_lost() -> None:
    """Flat text first, details later: the text is a copy, the signature is news."""
    detail = {"type": "reasoning.text", "text": "Plan", "signature": "c2ln", "index": 0}
    message = read(delta(reasoning="Plan"), delta(reasoning_details=[detail]))

    assert thoughts(message) == [("reasoning", "Plan")]
    assert message.thinking[0].signature == "c2ln"


SEAL = {"type": "reasoning.text", "index": 0, "signature": "c2ln"}


def detail(text: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "index": 0, "text": text}


BLANK: dict[str, list[dict[str, Any]]] = {
    "in one piece": [delta(reasoning_details=[{**SEAL, "text": "\r\n"}])],
    "and then its seal": [
        delta(reasoning_details=[detail("\r\n")]),
        delta(reasoning_details=[SEAL]),
    ],
    "in two pieces": [
        delta(reasoning_details=[detail("\r")]),
        delta(reasoning_details=[detail("\n")]),
        delta(reasoning_details=[SEAL]),
    ],
    "with a mirror in one piece": [
        delta(reasoning="\r\n", reasoning_details=[{**SEAL, "text": "\r\n"}]),
    ],
    "with a mirror in two pieces": [
        delta(reasoning="\r", reasoning_details=[detail("\r")]),
        delta(reasoning="\n", reasoning_details=[detail("\n")]),
        delta(reasoning_details=[SEAL]),
    ],
    "with a mirror that comes first": [
        delta(reasoning="\r\n"),
        delta(reasoning_details=[detail("\r\n")]),
        delta(reasoning_details=[SEAL]),
    ],
}


@each("case", BLANK)
@each("tail", [[], [delta(content="Hi")]])
def test_a_blank_thought_with_a_seal_is_one_block_however_it_is_cut(
    case: str, tail: list[dict[str, Any]]
) -> None:
    """White space is text like any other, and its mirror a copy."""
    message = read(*BLANK[case], *tail)

    assert thoughts(message) == [("reasoning_details", "\r\n")]
    assert message.thinking[0].signature == "c2ln"


def test_a_seal_goes_with_the_blank_text_before_it() -> None:
    """A flat field's seal comes in a field of its own, after its text."""
    message = read(
        delta(reasoning_text="\r"), delta(reasoning_text="\n"), delta(reasoning_opaque="c2ln")
    )

    assert thoughts(message) == [("reasoning_text", "\r\n")]
    assert message.thinking[0].signature == "c2ln"


def test_ciphertext_goes_with_the_blank_text_of_its_entry() -> None:
    """An entry is one block, whichever of its two parts is read first."""
    item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "\n"}],
        "encrypted_content": "gAAA",
    }
    message = read(delta(reasoning="\n", reasoning_items=[item]))

    assert thoughts(message) == [("reasoning_items", "\n")]
    assert message.thinking[0].encrypted == "gAAA"


def test_tags_and_native_in_one_chunk_give_the_native_thought() -> None:
    """The native field is authoritative."""
    message = read(delta(reasoning_content="Plan", content="<think>Plan</think>Answer"))

    assert thoughts(message) == [("reasoning_content", "Plan")]
    assert message.text == "Answer"


def test_native_in_one_chunk_and_tagged_copies_many_chunks_later() -> None:
    """Once native reasoning spoke, no tag adds to it, however late."""
    message = read(
        delta(reasoning_content="Plan"),
        *(
            delta(content=word)
            for word in ("So", " ", "then: ", "<th", "ink>Pl", "an</think>", "42")
        ),
    )

    assert thoughts(message) == [("reasoning_content", "Plan")]
    assert message.text == "So then: 42"
    assert counters(message)["suppressedDuplicates"] == 1


def test_tags_before_the_first_native_delta_are_not_stored_twice() -> None:
    """What was shown cannot be unsent; the message holds the thought once."""
    message = read(
        delta(content="<think>Plan"),
        delta(content=" B</think>"),
        delta(reasoning_content="Plan B"),
        delta(content="42"),
    )

    assert thoughts(message) == [("reasoning_content", "Plan B")]
    assert message.text == "42"


def test_a_tagged_thought_that_native_reasoning_does_not_repeat_stays() -> None:
    """Only a copy is dropped: another thought that came first is kept."""
    message = read(delta(content="<think>One.</think>"), delta(reasoning_content="Two."))

    assert [thought for _, thought in thoughts(message)] == ["One.", "Two."]


def test_merge_keeps_tagged_thoughts_next_to_native_ones() -> None:
    """For who wants both; an equal one is still stored once."""
    deltas = (
        delta(reasoning_content="One."),
        delta(content="<think>Two.</think><think>One.</think>x"),
    )

    assert [thought for _, thought in thoughts(read(*deltas, merge=True))] == ["One.", "Two."]
    assert [thought for _, thought in thoughts(read(*deltas))] == ["One."]


@pytest.mark.parametrize(
    ("said", "merged"), [("One", ["One"]), ("Two", ["One", "Two"]), ("One too", ["One", "One too"])]
)
def test_a_tagged_thought_left_out_after_a_native_one_is_counted(
    said: str, merged: list[str]
) -> None:
    """By default whatever it says; with merge where it says nothing else."""
    deltas = (delta(reasoning_content="One"), delta(content=f"<think>{said}</think>x"))
    alone, both = read(*deltas), read(*deltas, merge=True)

    assert [thought for _, thought in thoughts(alone)] == ["One"]
    assert [thought for _, thought in thoughts(both)] == merged
    assert counters(alone)["suppressedDuplicates"] == 1
    assert counters(both).get("suppressedDuplicates", 0) == 2 - len(merged)


def test_ec_003_reasoning_and_text_may_take_turns() -> None:
    """EC-003: interleaved deltas are blocks of their own, in order."""
    message = read(
        delta(reasoning_content="a"),
        delta(content="b"),
        delta(reasoning_content="c"),
        delta(content="d"),
    )

    assert [type(block).__name__ for block in message.blocks] == [
        "ThinkingBlock",
        "TextBlock",
        "ThinkingBlock",
        "TextBlock",
    ]


def test_ec_006_reasoning_is_stored_before_its_call() -> None:
    """EC-006: a call without an answer keeps the reasoning that led to it, in front."""
    function = {"name": "f", "arguments": "{}"}
    message = read(
        delta(reasoning_content="Plan", tool_calls=[{"index": 0, "id": "c", "function": function}])
    )

    assert [type(block).__name__ for block in message.blocks] == ["ThinkingBlock", "ToolCallBlock"]


def test_ec_002_empty_reasoning_is_no_block() -> None:
    """EC-002: empty strings in a reasoning field say nothing."""
    assert read(delta(reasoning_content=""), delta(content="x")).thinking == ()


def test_whitespace_is_text_like_any_other() -> None:
    """A thought of a line end is what the model wrote."""
    assert thoughts(read(delta(reasoning_content="\n"), delta(content="x"))) == [
        ("reasoning_content", "\n")
    ]


def test_empty_text_between_reasoning_deltas_ends_nothing() -> None:
    """Many hosts send an empty content next to every reasoning delta."""
    message = read(
        delta(reasoning_content="a", content=""), delta(reasoning_content="b", content="")
    )

    assert thoughts(message) == [("reasoning_content", "ab")]


def test_an_end_that_repeats_the_whole_text_does_not_double_it() -> None:
    """Thinking_end brings the text once more."""
    normalizer = rs.StreamNormalizer(api="thinking_events")
    for event in (
        {"type": "thinking_start", "contentIndex": 0},
        {"type": "thinking_delta", "contentIndex": 0, "delta": "Plan"},
        {"type": "thinking_end", "contentIndex": 0, "content": "Plan B"},
    ):
        normalizer.feed(event)

    assert [block.thought for block in normalizer.finish().thinking] == ["Plan B"]


@pytest.mark.parametrize(
    ("chunks", "pieces"),
    [
        pytest.param(
            [
                thinking("a", content_index=0),
                thinking("b", content_index=1),
                thinking("c", content_index=0),
            ],
            [
                ("start", 0, ""),
                ("delta", 0, "a"),
                ("start", 1, ""),
                ("delta", 1, "b"),
                ("delta", 0, "c"),
                ("end", 0, ""),
                ("end", 1, ""),
            ],
            id="interleaved",
        ),
        pytest.param(
            [thinking(phase="start", content_index=0), thinking(phase="start", content_index=0)],
            [("start", 0, ""), ("end", 0, "")],
            id="started twice",
        ),
        pytest.param([thinking(phase="end", content_index=0)], [], id="ended and never started"),
        pytest.param(
            [thinking("a", phase="end", content_index=0, is_complete=True)],
            [("start", 0, ""), ("delta", 0, "a"), ("end", 0, "")],
            id="whole in its end",
        ),
        pytest.param(
            [
                thinking("a", content_index=0),
                thinking(phase="end", content_index=0),
                thinking("b", content_index=0),
            ],
            [
                ("start", 0, ""),
                ("delta", 0, "a"),
                ("end", 0, ""),
                ("start", 1, ""),
                ("delta", 1, "b"),
                ("end", 1, ""),
            ],
            id="spoken on after its end",
        ),
        pytest.param(
            [thinking("a"), rs.TextChunk(text="x"), thinking("b")],
            [
                ("start", 0, ""),
                ("delta", 0, "a"),
                ("end", 0, ""),
                ("start", 2, ""),
                ("delta", 2, "b"),
                ("end", 2, ""),
            ],
            id="not numbered",
        ),
        pytest.param(
            [thinking("a"), rs.TextChunk(text="x", content_index=4), thinking("b")],
            [
                ("start", 0, ""),
                ("delta", 0, "a"),
                ("end", 0, ""),
                ("start", 2, ""),
                ("delta", 2, "b"),
                ("end", 2, ""),
            ],
            id="not numbered, beside numbered text",
        ),
    ],
)
def test_a_block_has_one_start_its_deltas_and_one_end(
    chunks: Sequence[rs.Chunk], pieces: list[tuple[Any, ...]]
) -> None:
    """The lifecycle is well formed whatever the protocol sends."""
    assert shown(*chunks) == pieces


def test_a_seal_that_comes_after_the_end_is_a_delta_without_text() -> None:
    """Some protocols state a ciphertext only when everything is over."""
    made = channels()
    made.feed(thinking("a", content_index=0))
    made.feed(thinking(phase="end", content_index=0))
    late = rs.ReasoningChunk(
        content_index=0, metadata={"sourceField": "thinking", "encrypted": "RU5D"}
    )

    (shown,) = made.feed(late)
    assert isinstance(shown, rs.ReasoningChunk)
    assert (shown.content_index, shown.text, shown.metadata["encrypted"]) == (0, "", "RU5D")


def test_a_note_on_text_after_a_call_belongs_to_the_text_before_it() -> None:
    """Annotations that come last begin no block of their own."""
    function = {"name": "f", "arguments": "{}"}
    message = read(
        delta(content="See."),
        delta(tool_calls=[{"index": 0, "id": "c", "function": function}]),
        delta(annotations=[{"type": "url_citation"}]),
    )

    assert [type(block).__name__ for block in message.blocks] == ["TextBlock", "ToolCallBlock"]
    assert message.blocks[0].provider_metadata is not None


def test_what_waits_for_a_telling_piece_is_kept_when_the_stream_dies() -> None:
    """A host of snapshots or fragments: the short piece that could be either is not lost."""
    normalizer = rs.StreamNormalizer(provider="minimax", api="openai.chat")
    for piece in ("a", "an"):
        normalizer.feed(delta(reasoning_content=piece))

    assert [block.thought for block in normalizer.finish(interrupted=True).thinking] == ["aan"]


def test_choices_do_not_see_each_other() -> None:
    """Each choice has its own channels, its own tags and its own message."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    for index, text in ((0, "<thi"), (1, "<think>b"), (0, "nk>a</think>A"), (1, "</think>B")):
        normalizer.feed({"choices": [{"index": index, "delta": {"content": text}}]})

    first = normalizer.finish()
    (second,) = normalizer.others
    assert (thoughts(first), first.text) == ([("think_tags", "a")], "A")
    assert (thoughts(second), second.text) == ([("think_tags", "b")], "B")


@each("given, named", [("my-gateway", "my-gateway"), ("Kimi", "moonshot"), (None, "")])
def test_chunks_name_the_provider_that_the_application_named(given: str | None, named: str) -> None:
    """Also one that the package does not know, as the message's origin does."""
    normalizer = rs.StreamNormalizer(given)
    chunks = normalizer.feed(delta(reasoning_content="Plan", content="<think>a</think>b"))

    assert {one.provider for one in chunks if isinstance(one, rs.ReasoningChunk)} == {named}
