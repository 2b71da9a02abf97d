"""Tool pairs: requests, windows and erasures agree on which response answers which call."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.tool_pairs import erased_with, pair_messages, tool_blocks
from tests.properties import examples

Shape = list[tuple[bool, list[str]]]
"""Messages by whether a model made them, and the ids of their calls, or of their responses."""
shapes: st.SearchStrategy[Shape] = st.lists(
    st.tuples(st.booleans(), st.lists(st.sampled_from("ab"), min_size=1, max_size=3)), max_size=7
)


def history(shape: Shape) -> list[rs.Message]:
    """Return one turn in which every call has a name and every response a result of its own."""
    number = count()
    messages = [rs.user("Go.")]
    for is_model, ids in shape:
        if is_model:
            calls = [rs.ToolCallBlock(id=one, name=f"call_{next(number)}") for one in ids]
            messages.append(rs.assistant(*calls))
        else:
            results = [
                rs.ToolResponseBlock(call_id=one, result=f"result {next(number)}") for one in ids
            ]
            messages.append(rs.tool(*results))
    return messages


def sent_pairs(messages: list[rs.Message]) -> set[tuple[int, int]]:
    """Return the positions of the calls and responses that a request sends as pairs."""
    made = {
        call.name: position
        for position, message in enumerate(messages, 1)
        for call in message.tool_calls
    }
    answered = {
        block.result: position
        for position, message in enumerate(messages, 1)
        for block in message.blocks
        if isinstance(block, rs.ToolResponseBlock)
    }
    found = set()
    names: dict[str, list[str]] = {}
    for message in rs.build_request(messages, model="m").body["messages"]:
        if message["role"] == "assistant":
            names = {}
            for call in message["tool_calls"]:
                names.setdefault(call["id"], []).append(call["function"]["name"])
        elif message["role"] == "tool" and message["content"] in answered:
            name = names[message["tool_call_id"]].pop(0)
            found.add((made[name], answered[message["content"]]))
    return found


@examples(150)
@given(shape=shapes)
def test_a_window_keeps_the_pairs_of_a_request_and_no_others(shape: Shape) -> None:
    """It begins where it was asked to, or just so much earlier that no pair is parted."""
    messages = history(shape)
    pairs = sent_pairs(messages)
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(messages)

        for limit in range(1, len(messages) + 1):
            first = len(messages) - limit + 1
            while parted := [call for call, response in pairs if call < first <= response]:
                first = min(parted)
            assert session.history(limit=limit)[0].position == first


@examples(60)
@given(shape=shapes, data=st.data())
def test_an_erasure_takes_the_pairs_of_a_request_and_leaves_no_response_without_its_call(
    shape: Shape, data: st.DataObject
) -> None:
    """It takes a second response along, which a request leaves out."""
    messages = history(shape)
    position = data.draw(st.integers(1, len(messages)))
    before = pair_messages(messages)
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(messages)
        session.erase(position)
        left = [row.message for row in session.history()]

    erased = {number for number, message in enumerate(left, 1) if message.status == "erased"}
    assert position in erased
    for call, response in sent_pairs(messages):
        assert (call in erased) == (response in erased)
    assert pair_messages(left).unpaired.items() <= before.unpaired.items()


def test_a_second_response_is_erased_with_its_call_and_parted_by_a_window() -> None:
    """The one difference between an erasure and a window."""
    blocks = [tool_blocks(message) for message in history([(True, ["a"]), (False, ["a", "a"])])]

    assert erased_with(blocks) == [(1, 2), (1, 2)]
    pairs = pair_messages(history([(True, ["a"]), (False, ["a"]), (False, ["a"])]))
    assert pairs.response_of == {(1, 0): (2, 0)}
    assert pairs.unpaired == {(3, 0): "repeated"}
