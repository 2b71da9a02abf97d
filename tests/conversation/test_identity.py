"""Numbers: messages that a client cannot tell apart have the same, and others have others."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.blocks import (
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    assistant,
    user,
)
from reasoning_store.conversation.identity import (
    is_own_id,
    number_messages,
    number_reply,
    plain_text,
)
from reasoning_store.conversation.validation import tool
from tests.properties import each
from tests.strategies import messages


def call(id: str = "c1", **fields: object) -> ToolCallBlock:
    return ToolCallBlock(id=id, name="weather", **fields)  # type: ignore[arg-type]


def picture(url: str, **more: object) -> RawBlock:
    return RawBlock(data={"type": "image_url", "image_url": {"url": url}, **more})


def result(id: str, text: object) -> ToolResponseBlock:
    return ToolResponseBlock(call_id=id, tool_name="weather", result=text)


OWN = "call_" + "a1B2" * 6
SAME: dict[str, tuple[list[Message], list[Message]]] = {
    "a thought": ([assistant(ThinkingBlock(thought="x"), "4 C")], [assistant("4 C")]),
    "white space": ([assistant("\n4  C ")], [assistant("4 C")]),
    "pieces": ([assistant("4 ", "C")], [assistant("4 C")]),
    "the form of an accent": ([assistant("e\u0301")], [assistant("\u00e9")]),
    "the order of keys": (
        [assistant(call(arguments='{"a": 1, "b": 2}'))],
        [assistant(call(parameters={"b": 2, "a": 1}))],
    ),
    "the text next to calls with own ids": (
        [assistant("[System: empty]", call(OWN))],
        [assistant(call(OWN))],
    ),
    "an id that no provider gave": ([assistant(call("rs_call_12"))], [assistant(call(""))]),
    "a result as text": (
        [tool(result("c1", {"t": 4}))],
        [tool(result("c1", '{"t":4}'))],
    ),
    "the order of the results of one step": (
        [tool(result("c1", "4")), tool(result("c2", "5"))],
        [tool(result("c2", "5")), tool(result("c1", "4"))],
    ),
    "results in one message": (
        [tool(result("c1", "4")), tool(result("c2", "5"))],
        [tool(result("c1", "4"), result("c2", "5"))],
    ),
    "the mark of a prompt cache": (
        [user(picture("a", cache_control={"type": "ephemeral"}))],
        [user(picture("a"))],
    ),
}
DIFFERENT: dict[str, tuple[list[Message], list[Message]]] = {
    "the role": ([assistant("4 C")], [user("4 C")]),
    "the text": ([assistant("4 C")], [assistant("5 C")]),
    "the arguments": ([assistant(call(arguments='{"a": 1}'))], [assistant(call(arguments="{}"))]),
    "the counted id of a call": ([assistant(call("f:0"))], [assistant(call("f:1"))]),
    "the call that is answered": ([tool(result("c1", "4"))], [tool(result("c2", "4"))]),
    "a picture": ([user("What is it?", picture("a"))], [user("What is it?", picture("b"))]),
    "the order of messages": ([user("a"), user("b")], [user("b"), user("a")]),
}


@each("name", SAME)
def test_messages_that_a_client_cannot_tell_apart_have_the_same_numbers(name: str) -> None:
    """It keeps text, calls and results, and spells them its own way."""
    one, other = SAME[name]

    assert number_messages("", one).asked == number_messages("", other).asked


@each("name", DIFFERENT)
def test_other_messages_have_other_numbers(name: str) -> None:
    """Each part that a client sends back counts."""
    one, other = DIFFERENT[name]

    assert number_messages("", one).asked.place != number_messages("", other).asked.place


def test_the_system_prompt_is_a_part_of_the_whole_and_not_of_the_place() -> None:
    """Clients write clocks into it."""
    one, other = (number_messages("", [user("?")], system=[text]).asked for text in ("a", "b"))

    assert one.whole != other.whole
    assert one.place == other.place


def test_another_owners_numbers_are_others() -> None:
    """So that no search reads a row of theirs."""
    said = [user("?"), assistant(call(OWN))]
    one, other = (number_messages(owner, said).replies[1] for owner in ("me", "you"))

    assert not {*one.stored} & {*other.stored}


@given(st.lists(messages(), min_size=1, max_size=6))
def test_a_stored_reply_has_the_numbers_that_its_client_sends(said: list[Message]) -> None:
    """Whatever stands before it, the chain of the next request goes through it."""
    reply = assistant(TextBlock(text="So."), call("f:3"))
    asked = number_messages("", said).asked
    sent = number_messages("", [*said, reply]).replies[len(said)]

    assert number_reply(asked, reply).numbers == sent.stored


def test_a_rendered_reply_is_known_by_the_text_that_its_client_was_given() -> None:
    """With the thinking in it, between separators."""
    reply = assistant(ThinkingBlock(thought="Hm."), "So.")
    given = assistant("\n\n---\nHm.\n---\n\nSo.")
    asked = number_messages("", [user("?")]).asked._replace(is_rendered=True)
    sent = number_messages("", [user("?"), given]).replies[1]

    assert sent.whole in number_reply(asked, reply).numbers


@pytest.mark.parametrize(
    ("id", "own"),
    [
        ("call_9x2Kd81mQp0aZr7LtYw3", True),
        ("call_abcdefghijklmnopqrstuvwx", True),
        ("toolu_01A09q90qw90lq917835lq9", True),
        ("0f8fad5b-d9cd-469f-a165-70867728950e", True),
        ("chatcmpl-tool-8a1c2f", False),
        ("functions.ls:0", False),
        ("call_1", False),
        ("123456789", False),
        ("", False),
        ("rs_call_0123456789abcdef01234567", False),
        pytest.param("a" * 300_000 + "-", False, id="a long one"),
    ],
)
def test_an_own_id_is_one_that_no_other_conversation_can_have(id: str, own: bool) -> None:
    """Sixteen letters and digits at its end, or eight of two kinds."""
    assert is_own_id(id) is own


@each("first", range(0, sys.maxunicode + 1, 0x1000))
def test_white_space_and_the_form_of_accents_are_no_part_of_a_text(first: int) -> None:
    """Of any script."""
    text = "".join(map(chr, range(first, first + 0x1000)))

    assert plain_text(text) == "".join(unicodedata.normalize("NFC", text).split())
