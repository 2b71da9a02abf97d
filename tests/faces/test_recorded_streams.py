"""What a recording takes for a stream, and the message that it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.testing import stream

from .recorder import event

# What is recorded


WHOLE = {
    "deepseek": {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "No.", "reasoning_content": "7 * 13"},
                "finish_reason": "stop",
            }
        ]
    },
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "7 * 13", "signature": "c2ln"},
            {"type": "text", "text": "No."},
        ],
        "stop_reason": "end_turn",
    },
}


class Answer:
    """A response as an SDK gives it: an object that can be iterated, and gives its fields."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self.body

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.body.items())


@pytest.mark.parametrize("provider", WHOLE)
@pytest.mark.parametrize("made", [dict, Answer])
def test_a_whole_response_is_recorded_as_it_is(
    store: rs.Store, provider: str, made: Callable[[Any], Any]
) -> None:
    """Where ``stream=True`` was not asked for, the reply is the same and marked as sent."""
    session = store.session("s", create=True)
    session.append(rs.user("Is 91 prime?"))
    request = session.build_request(provider=provider, model="model")
    reply = session.record(made(WHOLE[provider]), request=request)
    said = "".join(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))

    assert said == "No."
    (_, stored) = session.history()
    assert [type(block).__name__ for block in stored.message.blocks] == [
        "ThinkingBlock",
        "TextBlock",
    ]
    assert stored.message.status == "complete"
    assert session.build_request().target.provider == provider


def test_a_response_of_another_form_is_refused_and_leaves_nothing(store: rs.Store) -> None:
    """An empty reply is not stored in its place."""
    session = store.session("s", create=True)

    with pytest.raises(rs.WireError):
        list(session.record({"answer": "No."}, provider="anthropic"))
    assert session.history() == []


@pytest.mark.parametrize(
    "spoken", ["openai.responses", "anthropic.messages", "gemini.generate_content"]
)
def test_a_reply_is_stored_in_the_protocol_that_its_events_name(
    store: rs.Store, spoken: str
) -> None:
    """The next request is for the protocol that the reply came in."""
    session = store.session("s", create=True)
    session.append(rs.user("Go."))
    events = stream(rs.assistant("The whole answer."), api=spoken)
    list(session.record(events, provider="openai", model="m"))

    message = session.history()[-1].message
    assert (message.text, message.status) == ("The whole answer.", "complete")
    assert message.origin is not None
    assert message.origin.api == spoken
    assert session.build_request().target.api == spoken


def test_a_reply_of_which_nothing_was_understood_is_stored_as_interrupted(
    store: rs.Store,
) -> None:
    """A protocol that is named by mistake loses nothing: every event is there, and a warning."""
    session = store.session("s", create=True)
    session.append(rs.user("Go."))
    events = list(stream(rs.assistant("The whole answer."), api="anthropic.messages"))
    reply = session.record(iter(events), api="openai.chat")

    with pytest.warns(RuntimeWarning, match="no event of this stream was understood"):
        chunks = list(reply)

    assert {type(chunk) for chunk in chunks} == {rs.UnknownChunk}
    message = session.history()[-1].message
    assert (message.status, message.finish_reason) == ("interrupted", "unread")
    assert (message.metadata or {})["unknownEvents"] == events


async def _pending() -> None:
    """A call that no one awaits."""


@pytest.mark.parametrize("given", ["No.", b"No.", None, 1], ids=repr)
def test_what_is_no_stream_is_refused_before_anything_is_written(
    store: rs.Store, given: Any
) -> None:
    """What can be iterated for letters would be stored as a reply that says nothing."""
    session = store.session("s", create=True)

    with pytest.raises(rs.InvalidCall) as caught:
        session.record(given, provider="openai")
    assert caught.value.hint is not None
    assert session.history() == []


def test_a_call_that_was_not_awaited_is_named(store: rs.Store) -> None:
    """The mistake that asynchronous clients invite."""
    pending = _pending()
    with pytest.raises(rs.InvalidCall, match="not awaited"):
        store.session("s", create=True).record(pending, provider="openai")  # type: ignore[arg-type]
    pending.close()


@pytest.mark.parametrize(
    "lines",
    [
        [b'data: {"choices":[]}', b""],
        ['data: {"choices":[]}', ""],
        ["event: message_start"],
        ['{"message":{"content":"No."}}'],
    ],
    ids=repr,
)
def test_lines_are_refused_where_events_are_due(store: rs.Store, lines: list[Any]) -> None:
    """The hint names what makes events of them; no empty reply is stored."""
    session = store.session("s", create=True)

    with pytest.raises(rs.InvalidCall) as caught:
        list(session.record(lines, provider="openai"))
    assert "JSONEvents" in str(caught.value.hint)
    assert session.history() == []


def test_pieces_of_an_answer_are_refused_where_events_are_due(store: rs.Store) -> None:
    """What someone has taken out of the events already would be stored as nothing at all."""
    session = store.session("s", create=True)

    with pytest.raises(rs.InvalidCall, match="pieces of text") as caught:
        list(session.record(iter(["It is ", "4 C."]), provider="openai"))
    assert "events" in str(caught.value.hint)
    assert session.history() == []


@pytest.mark.parametrize("pieces", [["So 7 x 13.</think>No."], [*"So 7 x 13.</think>No."]])
def test_a_thought_that_the_prompt_opened_is_recorded_as_one(
    store: rs.Store, pieces: list[str]
) -> None:
    """Of such a model's tags only the closing one is in the text."""
    session = store.session("s", create=True)
    recording = session.record(map(event, pieces), model="QwQ-32B", starts_inside=True)
    said = [chunk for chunk in recording if isinstance(chunk, rs.TextChunk)]
    (stored,) = session.history()

    assert "".join(chunk.text for chunk in said) == stored.message.text == "No."
    assert [block.thought for block in stored.message.thinking] == ["So 7 x 13."]


def in_two_places() -> Iterator[dict[str, Any]]:
    """A reply that thinks in its own field, and then in tags."""
    for delta in ({"reasoning_content": "One."}, {"content": "<think>Two.</think>No."}):
        yield {"choices": [{"index": 0, "delta": delta}]}


@pytest.mark.parametrize(("merge", "kept"), [(False, ["One."]), (True, ["One.", "Two."])])
def test_a_recording_may_keep_tagged_text_after_native_thinking(
    store: rs.Store, merge: bool, kept: list[str]
) -> None:
    """It is never in the answer; it is stored where it says something else and is asked for."""
    session = store.session("s", create=True)
    list(session.record(in_two_places(), provider="deepseek", merge=merge))
    (stored,) = session.history()

    assert stored.message.text == "No."
    assert [block.thought for block in stored.message.thinking] == kept


def test_whether_a_thought_was_opened_is_true_or_false(store: rs.Store) -> None:
    """A word is refused before anything is written."""
    session = store.session("s", create=True)

    with pytest.raises(rs.InvalidCall, match="starts_inside: True or False, not"):
        session.record([], starts_inside="no")  # type: ignore[arg-type]
