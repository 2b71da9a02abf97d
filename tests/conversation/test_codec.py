"""Blocks and messages as JSON: what goes out comes back, and what is foreign survives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation import codec
from tests.properties import each

any_text = st.text(st.characters(codec="utf-8"), max_size=12)
"""Any text that UTF-8 can write, NUL too."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
maybe_text = st.none() | any_text
metadata = st.none() | st.dictionaries(any_text, json_values, max_size=2)
raw_kinds = st.sampled_from(["raw", "text", "thinking", "holo", ""]) | any_text

blocks: st.SearchStrategy[rs.Block] = st.one_of(
    st.builds(rs.TextBlock, text=any_text, provider_metadata=metadata),
    st.builds(
        rs.ThinkingBlock,
        thought=any_text,
        source_field=maybe_text,
        is_hidden=st.booleans(),
        signature=maybe_text,
        encrypted=maybe_text,
        redacted=st.booleans(),
        interrupted=st.booleans(),
        provider_metadata=metadata,
    ),
    st.builds(
        rs.ToolCallBlock,
        id=any_text,
        name=any_text,
        parameters=json_values,
        arguments=maybe_text,
        provider_metadata=metadata,
    ),
    st.builds(
        rs.ToolResponseBlock,
        call_id=any_text,
        tool_name=any_text,
        result=json_values,
        is_error=st.booleans(),
        provider_metadata=metadata,
    ),
    st.builds(
        rs.MediaBlock,
        kind=st.sampled_from(["image", "audio", "video", "file"]),
        mime_type=any_text,
        name=maybe_text,
        data=st.none() | st.binary(max_size=8),
        url=maybe_text,
        ref=maybe_text,
        provider_metadata=metadata,
    ),
    st.builds(
        rs.RawBlock,
        data=json_values
        | st.fixed_dictionaries({"type": raw_kinds}, optional={"data": json_values}),
        kind=raw_kinds,
        provider_metadata=metadata,
    ),
)
number = st.none() | st.integers(0, 10**9)
messages = st.builds(
    rs.Message,
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    blocks=st.lists(blocks, max_size=4).map(tuple),
    status=st.sampled_from(["complete", "interrupted", "erased"]),
    origin=st.none()
    | st.builds(
        rs.Origin,
        provider=maybe_text,
        api=maybe_text,
        model=maybe_text,
        base_url=maybe_text,
        response_id=maybe_text,
    ),
    usage=st.none()
    | st.builds(
        rs.Usage, input=number, output=number, reasoning=number, cached=number, raw=json_values
    ),
    finish_reason=maybe_text,
    metadata=metadata,
)


@given(json_values)
def test_any_value_comes_back_code_point_for_code_point(value: Any) -> None:
    """JSON text holds any text, and is text that UTF-8 can write."""
    text = codec.dumps(value)
    text.encode("utf-8")

    assert codec.loads(text) == value


@given(blocks)
def test_every_block_comes_back_from_json(block: rs.Block) -> None:
    """The JSON of a block says all that the block says."""
    assert codec.block_from_json(codec.loads(codec.dumps(codec.block_to_json(block)))) == block


@given(messages)
def test_every_message_comes_back_from_json(message: rs.Message) -> None:
    """The JSON of a message says all that the message says."""
    text = codec.dumps(codec.message_to_json(message))

    assert codec.message_from_json(codec.loads(text)) == message


@given(messages)
def test_what_we_write_passes_the_check_for_json_from_elsewhere(message: rs.Message) -> None:
    """An export is a valid import."""
    data = codec.loads(codec.dumps(codec.message_to_json(message)))

    assert codec.validate_message(data) == message


def test_json_uses_the_products_camel_case() -> None:
    """The names in JSON are those of the documentation."""
    block = rs.ThinkingBlock(
        thought="t", source_field="reasoning", is_hidden=True, provider_metadata={"id": "rs_1"}
    )

    assert codec.block_to_json(block) == {
        "type": "thinking",
        "thought": "t",
        "sourceField": "reasoning",
        "isHidden": True,
        "providerMetadata": {"id": "rs_1"},
    }


def test_non_ascii_text_is_written_as_itself() -> None:
    """Japanese does not take six bytes a character."""
    assert codec.dumps({"text": "\u65e5\u672c"}) == '{"text":"\u65e5\u672c"}'


def test_a_block_of_an_unknown_type_survives() -> None:
    """What a newer version wrote goes through this one unchanged."""
    data = {"type": "hologram", "depth": 3, "nested": {"a": [1]}}

    assert codec.block_to_json(codec.block_from_json(data)) == data


@each(
    "block",
    [
        rs.RawBlock(data={"type": "text", "text": "Yes"}, kind="holo"),
        rs.RawBlock(data={"type": "holo", "x": 1}, kind="hologram"),
        rs.RawBlock(data={"x": 1}, kind="holo"),
        rs.RawBlock(data=[1], kind="holo"),
        rs.RawBlock(data={"type": "holo"}, kind="holo", provider_metadata={"id": "b1"}),
        rs.RawBlock(data={"type": "raw", "kind": "holo", "data": 1}, kind="holo"),
    ],
)
def test_a_raw_block_is_stored_as_what_it_is(block: rs.RawBlock) -> None:
    """Whatever its kind says, and whatever the data in it say that they are."""
    with rs.Store("sqlite://") as store, rs.Store("sqlite://") as other:
        store.session("s", create=True).append(rs.user(block))
        other.import_lines(store.export_lines())

        for one in (store, other):
            assert one.session("s").get(1).message.blocks == (block,)


def test_a_raw_block_may_be_named_like_one_of_ours() -> None:
    """The kind of a raw block never makes it something else on the way back."""
    block = rs.RawBlock(data={"x": 1}, kind="text")

    assert codec.block_from_json(codec.block_to_json(block)) == block


UNKNOWN = "has an unknown field"


@each(
    "data, place",
    [
        (5, "^not a message: is not an object"),
        ({}, "role"),
        ({"role": "usr"}, "role"),
        ({"role": "user", "blocks": [{"type": "text"}]}, "blocks.0.text"),
        ({"role": "user", "blocks": [{"text": "SECRET"}]}, "blocks.0.type"),
        ({"role": "user", "blocks": ["SECRET"]}, "blocks.0.type"),
        ({"role": "user", "colour": "SECRET"}, "^not a message: colour: "),
        ({"role": "user", "": "SECRET"}, f"^not a message: {UNKNOWN}"),
        ({"role": "user", "SECRET\nwords": 1}, f"^not a message: {UNKNOWN}"),
        (
            {"role": "user", "usage": {"SECRET" * 9: 1}},
            f"^not a message: usage: {UNKNOWN}",
        ),
        (
            {"role": "user", "origin": {"a.SECRET": 1}},
            f"^not a message: origin: {UNKNOWN}",
        ),
        (
            {"role": "user", "blocks": [{"type": "text", "text": "a", "SECRET!": 1}]},
            f"^not a message: blocks.0: {UNKNOWN}",
        ),
        ({"role": "user", "blocks": [{"type": "text", "text": "a", "b": "SECRET"}]}, "blocks.0.b"),
        (
            {
                "role": "user",
                "blocks": [
                    {"type": "media", "kind": "image", "mimeType": "a/b", "data": "SECRET!"}
                ],
            },
            "blocks.0.data",
        ),
    ],
)
def test_foreign_json_is_refused_by_place_and_not_quoted(data: Any, place: str) -> None:
    """An error names where, and never what someone wrote there."""
    with pytest.raises(rs.InvalidCall, match=place) as refused:
        codec.validate_message(data)

    assert "SECRET" not in str(refused.value)


def test_a_value_that_is_not_json_is_refused() -> None:
    """A tool's answer has to be something that can be kept."""
    with pytest.raises(rs.InvalidCall, match="cannot be written as JSON"):
        codec.dumps({"result": object()})


def test_a_row_with_a_field_too_many_is_corrupt() -> None:
    """A row of ours is what we wrote, or it is reported."""
    with pytest.raises(rs.CorruptRow, match="TextBlock"):
        codec.block_from_json({"type": "text", "text": "a", "colour": 1})


def test_arguments_are_rendered_as_they_came() -> None:
    """A call's string is not parsed and written again."""
    call = rs.ToolCallBlock(id="1", name="f", parameters={"a": 1}, arguments='{"a": 1 }')

    assert codec.argument_text(call) == '{"a": 1 }'


def test_arguments_that_came_as_an_object_become_json() -> None:
    """A protocol without a string has one made for it."""
    call = rs.ToolCallBlock(id="1", name="f", parameters={"a": "\u00e9"})

    assert json.loads(codec.argument_text(call)) == {"a": "\u00e9"}
