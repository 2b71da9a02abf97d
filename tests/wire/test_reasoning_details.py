"""What is promised of reasoning that comes as arrays of entries, in fragments or snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from reasoning_store.conversation.blocks import Message, ThinkingBlock
from reasoning_store.wire.openai_chat import reasoning_arrays
from reasoning_store.wire.openai_chat.snapshots import Snapshots
from tests.properties import each
from tests.wire.chat_events import ARRAY, chunks, delta, response, streamed, thoughts, whole


def entries(message: Message) -> list[Any]:
    """The array that a message's thinking blocks were read from."""
    return [reasoning_arrays.entry(block) for block in message.thinking]


# --- arrays of entries -------------------------------------------------------------------


def fragments(item: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """An entry cut as OpenRouter cuts it: text by the piece, the signature after it."""
    common: dict[str, Any] = {
        name: item[name] for name in ("type", "format", "index") if name in item
    }
    for name in ("text", "summary", "data"):
        if name in item:
            value = item[name]
            for piece in (value[:2], value[2:5], value[5:]):
                yield {**common, name: piece}
            rest = {key: value for key, value in item.items() if key != name}
            yield rest
            return
    yield item


def test_an_array_is_rebuilt_entry_by_entry_and_in_its_order() -> None:
    """Every type comes back, also those that have no shape here."""
    assert entries(whole(response(content="Say.", reasoning_details=ARRAY))) == ARRAY


def test_a_streamed_array_gives_the_blocks_of_the_whole_one() -> None:
    """Fragments of one type and index are one entry; seals and ids may come later."""
    events = [delta(reasoning_details=[piece]) for item in ARRAY for piece in fragments(item)]
    events.insert(len(events) - 4, delta(content="Say."))
    message = streamed(*events, delta(finish="stop"))

    assert message == whole(response(content="Say.", reasoning_details=ARRAY))
    assert entries(message) == ARRAY


@pytest.mark.parametrize("kind", [{}, {"type": None}], ids=["absent", "null"])
def test_an_entry_that_names_no_type_goes_back_with_the_one_it_has(kind: dict[str, Any]) -> None:
    """What it holds tells; a null in its place is no type of its own."""
    message = whole(response(content="Say.", reasoning_details=[{**kind, "data": "gAAAA"}]))

    assert entries(message) == [{"type": "reasoning.encrypted", "data": "gAAAA"}]


@pytest.mark.parametrize("held", ["gAAAA", "[1]"])
def test_an_entry_of_an_unknown_type_that_cannot_be_rebuilt_is_left_out(held: str) -> None:
    """It may have been made by an application: the conversation goes on without it."""
    about = {"detail": {"type": "reasoning.next"}}
    block = ThinkingBlock(source_field="reasoning_details", encrypted=held, provider_metadata=about)

    assert reasoning_arrays.entry(block) is None


def test_an_entry_behind_the_text_keeps_its_place_in_the_array() -> None:
    """OpenRouter's ciphertext may come last; the array goes back in its own order."""
    message = streamed(
        delta(reasoning_details=[ARRAY[0]]),
        delta(content="Say."),
        delta(reasoning_details=[ARRAY[1]], finish="stop"),
    )

    assert [block.type for block in message.blocks] == ["thinking", "thinking", "text"]


def test_details_count_and_the_flat_copy_does_not() -> None:
    """The array holds the seal, the string is only its text."""
    detail = {"type": "reasoning.text", "index": 0}
    message = streamed(
        delta(reasoning="Thi", reasoning_details=[{**detail, "text": "Thi"}]),
        delta(reasoning="nk.", reasoning_details=[{**detail, "text": "nk."}]),
        delta(reasoning_details=[{**detail, "signature": "c2ln"}]),
        provider="openrouter",
    )

    assert thoughts(message) == [("Think.", "reasoning_details")]
    assert message.thinking[0].signature == "c2ln"


def test_text_behind_a_signature_is_another_entry() -> None:
    """A signature seals what came before it and nothing else."""
    detail = {"type": "reasoning.text", "index": 0}
    message = streamed(
        delta(reasoning_details=[{**detail, "text": "A"}, {**detail, "signature": "cw=="}]),
        delta(reasoning_details=[{**detail, "text": "B"}, {**detail, "signature": "dA=="}]),
    )

    assert [(block.thought, block.signature) for block in message.thinking] == [
        ("A", "cw=="),
        ("B", "dA=="),
    ]


def test_entries_with_ids_of_their_own_stay_apart() -> None:
    """Some routes give every item of a response the index 0."""
    item = {"type": "reasoning.summary", "index": 0}
    message = streamed(
        delta(reasoning_details=[{**item, "id": "rs_1", "summary": "A"}]),
        delta(reasoning_details=[{**item, "id": "rs_2", "summary": "B"}]),
    )

    assert [block.thought for block in message.thinking] == ["A", "B"]


def test_entries_without_a_number_are_one_while_they_follow_each_other() -> None:
    """MiniMax once sent entries with nothing but their text."""
    message = streamed(
        delta(reasoning_details=[{"text": "Thi"}]), delta(reasoning_details=[{"text": "nk."}])
    )

    assert [block.thought for block in message.thinking] == ["Think."]
    assert entries(message) == [{"type": "reasoning.text", "text": "Think."}]


def test_an_entry_that_holds_nothing_does_not_hide_a_tagged_thought() -> None:
    """An empty array entry is no native reasoning, so the tags in the text still count."""
    message = streamed(
        delta(reasoning_details=[{"type": "reasoning.text", "text": "", "index": 0}]),
        delta(content="<think>Tagged.</think>Say."),
        provider="openrouter",
    )

    assert thoughts(message) == [("Tagged.", "think_tags")]


def test_ciphertext_in_many_fragments_is_told_in_linear_size() -> None:
    """To repeat the whole at every fragment would be quadratic."""
    piece = {"type": "reasoning.encrypted", "data": "abcd", "index": 0}
    events = [delta(reasoning_details=[piece]) for _ in range(20_000)]
    found = chunks(*events, delta(finish="stop"))
    told = [chunk.metadata.get("encrypted", "") for chunk in found if chunk.type == "reasoning"]

    assert told[-1] == "abcd" * 20_000
    assert sum(map(len, told)) < 4 * len(told[-1])


@pytest.mark.parametrize("end", [delta(content="Say."), delta(finish="stop")])
def test_ciphertext_is_complete_as_soon_as_something_else_comes(end: dict[str, Any]) -> None:
    """Nothing waits for a finish that may never come."""
    piece = {"type": "reasoning.encrypted", "index": 0}
    events = [delta(reasoning_details=[{**piece, "data": data}]) for data in ("ab", "cd", "ef")]

    assert streamed(*events, end).thinking[0].encrypted == "abcdef"


def test_litellm_thinking_blocks_come_as_pieces_and_a_seal() -> None:
    """Text pieces, then a piece that holds only the signature, then a redacted block."""
    blocks = [
        {"type": "thinking", "thinking": "Think.", "signature": "cw=="},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "thinking", "thinking": "Again.", "signature": "dA=="},
    ]
    message = streamed(
        delta(reasoning_content="Thi", thinking_blocks=[{"type": "thinking", "thinking": "Thi"}]),
        delta(reasoning_content="nk.", thinking_blocks=[{"type": "thinking", "thinking": "nk."}]),
        delta(
            reasoning_content="",
            thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "cw=="}],
        ),
        delta(thinking_blocks=[blocks[1]]),
        delta(thinking_blocks=[{"type": "thinking", "thinking": "Again."}]),
        delta(thinking_blocks=[{"type": "thinking", "signature": "dA=="}]),
        delta(content="Say.", finish="stop"),
        provider="litellm",
    )
    body = response(content="Say.", reasoning_content="Think.Again.", thinking_blocks=blocks)

    assert message.blocks == whole(body, provider="litellm").blocks
    assert entries(message) == blocks
    assert [block.redacted for block in message.thinking] == [False, True, False]


def test_litellm_reasoning_items_keep_their_ciphertext_behind_the_plain_copy() -> None:
    """The deltas were the summary; the item at the end holds what has to go back."""
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Plan."}],
        "encrypted_content": "gAAA",
    }
    message = streamed(
        delta(reasoning_content="Plan."), delta(reasoning_items=[item]), delta(content="Say.")
    )

    assert [(block.thought, block.encrypted) for block in message.thinking] == [
        ("Plan.", None),
        ("", "gAAA"),
    ]
    alone = whole(response(content="Say.", reasoning_items=[item]))
    assert entries(alone) == [item]
    assert [block.thought for block in alone.thinking] == ["Plan."]


def test_an_item_of_several_summary_parts_is_rebuilt_as_it_came() -> None:
    """Shown they are apart by a blank line, sent back they are parts again."""
    parts = [{"type": "summary_text", "text": text} for text in ("A.", "B.")]
    item = {"type": "reasoning", "id": "rs_1", "summary": parts, "encrypted_content": "gAAA"}
    message = whole(response(reasoning_items=[item]))

    assert [block.thought for block in message.thinking] == ["A.\n\nB."]
    assert entries(message) == [item]


def test_reasoning_inside_provider_specific_fields_is_read() -> None:
    """LiteLLM puts there what it has no name for; its own fields come first."""
    nested = {
        "thinking_blocks": [{"type": "thinking", "thinking": "Think.", "signature": "cw=="}],
        "reasoning_content": "other",
        "content": "not the text",
    }
    message = whole(
        response(content="Say.", reasoning_content="Think.", provider_specific_fields=nested)
    )

    assert thoughts(message) == [("Think.", "thinking_blocks")]
    assert message.text == "Say."


# --- snapshots ---------------------------------------------------------------------------


@each(
    "pieces, text",
    [
        (["Need the ", "Need the weather tool."], "Need the weather tool."),
        (["Need the ", "weather tool."], "Need the weather tool."),
        (["N", "Ne", "Need", "Need the ", "Need the tool"], "Need the tool"),
        (["a", "and", " then"], "aand then"),
        (["a", "and"], "aand"),
        (["\n", "\nThe user asks", "\nThe user asks why"], "\nThe user asks why"),
        (["\n", "\nThe user asks", " why"], "\n\nThe user asks why"),
        (["Think of it", "Think of it", "Think of it all"], "Think of it all"),
        (["Think of it all", "Think of it all, twice", "Think"], "Think of it all, twice"),
        (["Think of it", "Think of it twice", "Anew"], "Think of it twiceAnew"),
    ],
)
@each("field", ["reasoning_content", "reasoning_details"])
def test_growing_snapshots_are_told_from_fragments(
    pieces: list[str], text: str, field: str
) -> None:
    """MiniMax's routes send the one or the other; a shared beginning alone proves nothing."""
    values: dict[str, Callable[[str], Any]] = {
        "reasoning_content": lambda piece: piece,
        "reasoning_details": lambda piece: [{"type": "reasoning.text", "index": 0, "text": piece}],
    }
    events = [delta(**{field: values[field](piece)}) for piece in pieces]
    message = streamed(*events, delta(content="Say."), delta(finish="stop"), provider="minimax")

    assert [(block.type, getattr(block, "thought", "Say.")) for block in message.blocks] == [
        ("thinking", text),
        ("text", "Say."),
    ]


def test_only_hosts_that_send_snapshots_are_read_so() -> None:
    """Elsewhere a piece that begins like the one before it is a piece."""
    message = streamed(delta(reasoning="ha ha ha "), delta(reasoning="ha ha ha ha "))

    assert thoughts(message) == [("ha ha ha ha ha ha ha ", "reasoning")]


def test_plain_fragments_are_not_collected() -> None:
    """Once it is known what a host sends, a text is not held a second time."""
    snapshots = Snapshots()
    pieces = ["Think ", *("of it " for _ in range(1_000))]

    assert "".join(snapshots.new_text(piece) for piece in pieces) == "".join(pieces)
    assert not snapshots.waiting
    assert snapshots._last == ""
