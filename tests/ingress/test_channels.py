"""Two channels, well-formed lifecycles, native first: the hard orders by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.ingress import draft_parts
from reasoning_store.ingress.channels import Channels
from reasoning_store.ingress.duplicates import MirroredFields
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.text_channel import TextChannel
from tests.properties import each, examples
from tests.wire.well_formed import assert_well_formed


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def read(*deltas: dict[str, Any], **options: Any) -> rs.Message:
    normalizer = rs.StreamNormalizer(api="openai.chat", **options)
    chunks = [chunk for event in deltas for chunk in normalizer.feed(event)]
    assert_well_formed([*chunks, *normalizer.close()])
    return normalizer.finish()


def thoughts(message: rs.Message) -> list[tuple[str | None, str]]:
    return [(block.source_field, block.thought) for block in message.thinking]


def counters(message: rs.Message) -> dict[str, Any]:
    return dict(message.metadata or {})


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


def channels() -> Channels:
    counters = Counters()
    return Channels(
        TextChannel(None, counters), MirroredFields(frozenset(), counters), provider="p"
    )


def shown(*chunks: rs.Chunk) -> list[tuple[Any, ...]]:
    made = channels()
    out = [piece for chunk in chunks for piece in made.feed(chunk)] + made.close()
    return [
        (piece.phase, piece.content_index, piece.text)
        for piece in out
        if isinstance(piece, rs.ReasoningChunk)
    ]


def thinking(text: str = "", **fields: Any) -> rs.ReasoningChunk:
    return rs.ReasoningChunk(text=text, metadata={"sourceField": "thinking"}, **fields)


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


def test_a_seal_that_comes_after_the_end_is_kept_and_not_shown() -> None:
    """Some protocols state a ciphertext only when everything is over."""
    made = channels()
    made.feed(thinking("a", content_index=0))
    made.feed(thinking(phase="end", content_index=0))
    late = rs.ReasoningChunk(
        content_index=0, metadata={"sourceField": "thinking", "encrypted": "RU5D"}
    )

    assert made.feed(late) == []
    (kept,) = made.late
    assert isinstance(kept, rs.ReasoningChunk)
    assert (kept.content_index, kept.metadata["encrypted"]) == (0, "RU5D")


def test_nothing_is_shown_after_the_finish_and_nothing_is_lost() -> None:
    """A host that goes on after its finish reason is stored in full."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    normalizer.feed(delta(content="a"))
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert isinstance(normalizer.feed(finish)[-1], rs.FinishChunk)

    assert normalizer.feed(delta(content="b", reasoning_content="c")) == []
    message = normalizer.finish()
    assert "".join(b.text for b in message.blocks if isinstance(b, rs.TextBlock)) == "ab"
    assert thoughts(message) == [("reasoning_content", "c")]


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
