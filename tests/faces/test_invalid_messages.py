"""Values that are no message: refused by their place and type, and nothing is stored."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import IntEnum
from typing import Any, cast

import pytest
from pydantic import BaseModel

import reasoning_store as rs
from tests.properties import each

from .misusing import Verb, refused

loose: Any = rs


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        opened.session("chat", create=True).append([rs.user("Hello."), rs.assistant("Hi.")])
        yield opened


ROLES = "one of user, assistant, tool, system"
STATUSES = "one of complete, streaming, interrupted, erased"
WRONG: dict[str, tuple[str, Callable[[], Any]]] = {
    "role": (ROLES, lambda: loose.Message(role="boss", blocks=())),
    "status": (STATUSES, lambda: loose.assistant("Hi.", status="done")),
    "metadata": ("a mapping, not list", lambda: loose.user("Hi.", metadata=["a"])),
    "finish_reason": ("a string, not int", lambda: loose.assistant("Hi.", finish_reason=5)),
    "origin": ("an Origin, not str", lambda: loose.assistant("Hi.", origin="openai")),
    "origin.model": (
        "a string, not int",
        lambda: loose.assistant("Hi.", origin=loose.Origin(model=5)),
    ),
    "usage": ("a Usage, not dict", lambda: loose.assistant("Hi.", usage={"input": 5})),
    "usage.output": (
        "a whole number, not bool",
        lambda: loose.assistant("Hi.", usage=loose.Usage(output=True)),
    ),
    "blocks.0": ("a block, not list", lambda: loose.user(["Hi."])),
    "blocks.1": (
        "a block, not str",
        lambda: loose.Message(role="user", blocks=(loose.TextBlock(text="Hi."), "there")),
    ),
    "blocks.0.text": ("a string, not int", lambda: loose.user(loose.TextBlock(text=5))),
    "blocks.1.thought": (
        "a string, not None",
        lambda: loose.assistant("Hi.", loose.ThinkingBlock(thought=None)),
    ),
    "blocks.0.redacted": (
        "True or False, not str",
        lambda: loose.assistant(loose.ThinkingBlock(redacted="yes")),
    ),
    "blocks.0.id": (
        "a string, not int",
        lambda: loose.assistant(loose.ToolCallBlock(id=5, name="look")),
    ),
    "blocks.0.call_id": (
        "a string, not None",
        lambda: loose.tool(loose.ToolResponseBlock(call_id=None)),
    ),
    "blocks.0.kind": (
        "one of image, audio, video, file",
        lambda: loose.user(loose.MediaBlock(kind="smell", mime_type="a/b")),
    ),
    "blocks.0.data": (
        "bytes, not str",
        lambda: loose.user(loose.MediaBlock(kind="image", mime_type="a/b", data="AA==")),
    ),
    "blocks.2": (
        "media with one of data, url and ref",
        lambda: loose.user("Hi.", "Ho.", loose.MediaBlock(kind="image", mime_type="image/png")),
    ),
    "blocks": ("the user message is empty", lambda: loose.user()),
    "blocks.0.provider_metadata": (
        "a mapping, not str",
        lambda: loose.user(loose.TextBlock(text="", provider_metadata="x")),
    ),
}


@each("place", WRONG)
def test_what_could_not_be_read_again_is_not_stored(store: rs.Store, place: str) -> None:
    """A field of another type is refused by its place, and the session stays whole."""
    allowed, made = WRONG[place]
    wrong = made()
    for verb, at in (
        (lambda _, chat: chat.append(wrong), ""),
        (lambda _, chat: chat.append([rs.user("First."), wrong]), "messages.1."),
        (lambda _, chat: chat.edit(1, wrong), ""),
    ):
        assert str(refused(store, verb)) == f"not a message: {at}{place}: {allowed}"


ODD: dict[str, tuple[str, Any]] = {
    "a number for a key": ("a key is a string, not int", {1: "a", "1": "b"}),
    "nothing for a key": ("a key is a string, not NoneType", {"a": [{None: 1}]}),
    "a key of an own mapping": ("a key is a string, not bool", OrderedDict(a=({True: 1},))),
    "a set": ("JSON has no set", {"a": {1}}),
    "bytes": ("JSON has no bytes", {"a": [b"x"]}),
    "a date": ("JSON has no date", {"a": date(2026, 1, 1)}),
}
HOLDING: dict[str, Callable[[Any], rs.Message]] = {
    "metadata": lambda odd: rs.user("Hi.", metadata=odd),
    "usage.raw": lambda odd: rs.assistant("Hi.", usage=rs.Usage(raw=odd)),
    "blocks.0.provider_metadata": lambda odd: rs.user(
        rs.TextBlock(text="Hi.", provider_metadata=odd)
    ),
    "blocks.1.parameters": lambda odd: rs.assistant(
        "Hi.", rs.ToolCallBlock(id="a", name="b", parameters=odd)
    ),
    "blocks.0.result": lambda odd: rs.tool(rs.ToolResponseBlock(call_id="a", result=odd)),
    "blocks.0.data": lambda odd: rs.user(rs.RawBlock(data=odd)),
}


@each("odd", ODD)
@each("place", HOLDING)
def test_what_would_come_back_as_something_else_is_not_stored(
    store: rs.Store, place: str, odd: str
) -> None:
    """JSON has few kinds of values, and strings only for keys, of which two may become one."""
    said, value = ODD[odd]
    error = refused(store, lambda _, chat: chat.append(HOLDING[place](value)))

    assert str(error) == f"not a message: {place}: {said}"
    assert "dicts" in (error.hint or "")


def test_a_message_may_be_made_of_an_applications_own_kinds(store: rs.Store) -> None:
    """A string, a whole number and a mapping of a class of its own are what they are."""

    class Name(str):
        __slots__ = ()

    class Number(IntEnum):
        FIVE = 5

    metadata = OrderedDict(name=Name("x"))
    usage = rs.Usage(input=Number.FIVE)
    store.session("chat").append(rs.assistant(Name("Hi."), usage=usage, metadata=metadata))

    message = store.session("chat").get(3).message
    assert (message.text, message.usage, message.metadata) == ("Hi.", usage, {"name": "x"})


METADATA: dict[str, tuple[str, Any]] = {
    **ODD,
    "a list": ("a mapping, not list", ["a"]),
    "a text": ("a mapping, not str", "text"),
}


@each("odd", METADATA)
def test_metadata_that_json_cannot_hold_is_refused(store: rs.Store, odd: str) -> None:
    """On a session that is there, and on one that is made with it."""
    said, metadata = METADATA[odd]
    verbs: tuple[Verb, ...] = (
        lambda _, chat: chat.set_metadata(metadata),
        lambda owner, _: owner.session("new", create=True, metadata=metadata),
    )
    for verb in verbs:
        assert str(refused(store, verb)) == f"metadata: {said}"


@each(
    "message, said",
    [
        ("text", "a message, not str"),
        (None, "a message, not NoneType"),
        (1, "a message, not int"),
        ({"role": "user", "content": "text"}, "a message, not dict"),
        ([None], "messages.0: a message, not NoneType"),
        ([rs.user("First."), "second"], "messages.1: a message, not str"),
        ([[rs.user("text")]], "messages.0: a message, not list"),
        ([], "append: no message was given"),
    ],
)
def test_what_is_no_message_is_not_stored(store: rs.Store, message: Any, said: str) -> None:
    """A text or a dict is not taken apart into messages; the hint says what makes one."""
    error = refused(store, lambda _, chat: chat.append(message))

    assert str(error) == said
    assert "rs.user" in (error.hint or "")


class HumanMessage(BaseModel):
    """A message as other libraries have them: gone through, it gives its fields."""

    content: str = "text"


@dataclass(frozen=True)
class MessageOutputItem:
    raw_item: str = "text"


ANOTHERS = {
    f"{__name__}.HumanMessage": HumanMessage(),
    f"{__name__}.MessageOutputItem": MessageOutputItem(),
    "another.Message": type("Message", (BaseModel,), {"__module__": "another"})(),
}


@pytest.mark.parametrize("name", ANOTHERS)
def test_a_message_of_another_library_is_refused_by_the_name_of_its_type(
    store: rs.Store, name: str
) -> None:
    """Alone or among others: it is not taken apart, and a Message is distinguished from ours."""
    message: Any = ANOTHERS[name]
    said = {
        str(refused(store, lambda _, chat: chat.append(message))),
        str(refused(store, lambda _, chat: chat.edit(1, message))),
        str(refused(store, lambda _, chat: chat.append([rs.user("First."), message]))),
    }

    assert said == {f"a message, not {name}", f"messages.1: a message, not {name}"}


def test_an_item_of_a_history_is_refused_with_a_hint(store: rs.Store) -> None:
    """Copying from one session into another is the ``message`` of each."""
    history: Any = store.session("chat").history()
    error = refused(store, lambda _, chat: chat.append(history))

    assert str(error) == "messages.0: a message, not Stored"
    assert error.hint == "pass its .message"


def test_messages_come_from_whatever_can_be_gone_through(store: rs.Store) -> None:
    """A generator, the values of a dict, a deque."""
    said = [rs.user("Is 91 prime?"), rs.assistant("No.")]
    chat = store.session("chat")
    for given in (iter(said), dict(enumerate(said)).values(), deque(said)):
        stored = chat.append(cast(Any, given))
        assert [item.message for item in stored] == said


@pytest.mark.parametrize("answer", ["97", {"call_id": "c"}, None])
def test_a_tools_answer_without_its_call_is_not_even_made(answer: Any) -> None:
    """A bare text belongs to no call: it would go to the model as if the user had said it."""
    with pytest.raises(rs.InvalidCall) as caught:
        rs.tool(answer)

    assert f"blocks.0: a block, not {'None' if answer is None else type(answer).__name__}" in str(
        caught.value
    )
    assert "rs.tool(block)" in str(caught.value.hint)


def test_what_is_no_block_is_not_stored(store: rs.Store) -> None:
    """However the message was made."""
    torn = replace(rs.user("97"), blocks=("97",))  # type: ignore[arg-type]

    assert "blocks.0: a block, not str" in str(refused(store, lambda _, chat: chat.append(torn)))
