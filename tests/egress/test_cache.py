"""What a provider's prompt cache can reuse: the messages that are rendered alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.egress.histories import DEEPSEEK, OPEN_LOOP, ROUTED, TARGETS, TWO_TURNS, answer, call

Target = tuple[str | None, str | None, str | None]
KEEP = {"reasoning.includeInContext": True}


def request(messages: Any, *, previous: rs.Request | None = None, **given: Any) -> rs.Request:
    return rs.build_request(messages, previous=previous, **given)


def rendered(found: rs.Request) -> list[Any]:
    messages: list[Any] = found.body["messages"]
    return messages


# --- cache_break


def test_without_an_earlier_request_nothing_is_known() -> None:
    """There may be a cache or none."""
    assert request(TWO_TURNS).cache_break is None


def test_a_request_that_goes_on_breaks_at_the_first_new_message() -> None:
    """All of the earlier one is its beginning."""
    first = request(TWO_TURNS[:5], settings=KEEP)
    second = request(TWO_TURNS, settings=KEEP, previous=first)

    assert second.cache_break == len(rendered(first)) == 5


def test_the_first_message_that_differs_is_the_break() -> None:
    """Other settings strip an earlier message's reasoning."""
    first = request(TWO_TURNS, settings=KEEP)
    second = request(TWO_TURNS, previous=first)

    assert second.cache_break == 1


def test_a_shorter_request_breaks_where_it_ends() -> None:
    """A turn was taken back."""
    first = request(TWO_TURNS)

    assert request(TWO_TURNS[:4], previous=first).cache_break == 4


@pytest.mark.parametrize(
    "other",
    [
        {"model": "deepseek-v5"},
        {"provider": "moonshot"},
        {"base_url": "https://example.org"},
        {"system": "Be long."},
        {"tools": [{"name": "g"}]},
    ],
)
def test_another_model_or_head_has_another_cache(other: dict[str, Any]) -> None:
    """Nothing of it is the same, however alike the messages are."""
    same: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-v4", "system": "Be brief."}
    first = request(TWO_TURNS, **same)

    assert request(TWO_TURNS, previous=first, **same).cache_break == len(rendered(first))
    assert request(TWO_TURNS, previous=first, **{**same, **other}).cache_break == 0


# --- the promise


def reply(draw: Any, number: int, calls: int) -> rs.Message:
    thoughts = [
        rs.ThinkingBlock(
            thought=f"Thought {number}.{n}.",
            source_field="reasoning_details",
            signature=draw(st.none() | st.just("c2ln")),
        )
        for n in range(draw(st.integers(0, 2)))
    ]
    text = [f"Text {number}."] if draw(st.booleans()) or not calls else []
    made = [call(f"call_{number}_{n}") for n in range(calls)]
    origin = draw(st.sampled_from([None, DEEPSEEK, ROUTED]))
    status = draw(st.sampled_from(["complete", "complete", "interrupted"]))
    return rs.assistant(*thoughts, *text, *made, origin=origin, status=status)


@st.composite
def conversations(draw: Any) -> tuple[list[rs.Message], list[int]]:
    """Turns with tool loops, and the places at which a request can be sent.

    That is where a model is due: after a user, and after the last answer to its calls.
    """
    messages: list[rs.Message] = []
    due: list[int] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append(rs.user(f"Question {turn}?"))
        due.append(len(messages))
        for step in range(draw(st.integers(0, 3))):
            calls = draw(st.integers(1, 2))
            number = 10 * turn + step
            messages.append(reply(draw, number, calls))
            messages += [answer(f"call_{number}_{n}") for n in range(calls)]
            due.append(len(messages))
        if draw(st.booleans()):
            messages.append(reply(draw, 10 * turn + 9, 0))
    return messages, due


TO = st.sampled_from([to for to in TARGETS if to[0] != "anthropic"])
FLOORLESS = st.sampled_from(
    [to for to in TARGETS if to[0] in (None, "openai", "vllm", "ollama", "cohere", "xai")]
)


def requests(
    messages: list[rs.Message], due: list[int], to: Target, strip: str, include: bool
) -> list[rs.Request]:
    """Return the requests of a conversation, each with the one before it."""
    provider, model, api = to
    chosen = {"reasoning.stripFromContext": strip, "reasoning.includeInContext": include}
    out: list[rs.Request] = []
    for end in due:
        out.append(
            rs.build_request(
                messages[:end],
                settings=chosen,
                provider=provider,
                model=model,
                api=api,
                previous=out[-1] if out else None,
            )
        )
    return out


@given(conversations(), TO)
def test_none_with_include_extends_the_previous_list(
    conversation: tuple[list[rs.Message], list[int]], to: Target
) -> None:
    """Whatever the host demands: what was sent stays as it was sent."""
    found = requests(*conversation, to, "none", True)

    for before, after in pairwise(found):
        assert rendered(after)[: len(rendered(before))] == rendered(before)


@given(
    conversations(), FLOORLESS, st.sampled_from([("all", True), ("all", False), ("none", False)])
)
def test_without_a_floor_of_the_open_turn_all_and_no_include_extend_it_too(
    conversation: tuple[list[rs.Message], list[int]], to: Target, chosen: tuple[str, bool]
) -> None:
    """Nothing is sent, so nothing is taken back."""
    found = requests(*conversation, to, *chosen)

    for before, after in pairwise(found):
        assert rendered(after)[: len(rendered(before))] == rendered(before)


@given(
    conversations(),
    TO,
    st.sampled_from([("priorTurns", True), ("all", True), ("none", False), ("all", False)]),
)
def test_within_a_turn_the_floor_and_prior_turns_extend_it(
    conversation: tuple[list[rs.Message], list[int]], to: Target, chosen: tuple[str, bool]
) -> None:
    """Where a choice depends on the open turn, it holds as long as the turn is open."""
    messages, due = conversation
    found = requests(messages, due, to, *chosen)

    for before, after, start, end in zip(found, found[1:], due, due[1:], strict=False):
        if not any(message.starts_turn for message in messages[start:end]):
            assert rendered(after)[: len(rendered(before))] == rendered(before)


@given(
    conversations(), TO, st.sampled_from(["all", "allButLast", "none", "priorTurns"]), st.booleans()
)
def test_everything_before_the_break_is_what_was_sent(
    conversation: tuple[list[rs.Message], list[int]], to: Target, strip: str, include: bool
) -> None:
    """Whatever the policy; and the break is no earlier than it has to be."""
    found = requests(*conversation, to, strip, include)

    for before, after in pairwise(found):
        cut = after.cache_break
        assert cut is not None
        assert rendered(after)[:cut] == rendered(before)[:cut]
        assert rendered(after)[cut : cut + 1] != rendered(before)[cut : cut + 1] or cut == len(
            rendered(after)
        )


def test_all_but_last_may_rewrite_at_every_message() -> None:
    """What it sends it takes back with the next one: the docs say so, and so does the break."""
    first = request(TWO_TURNS[:4], settings={**KEEP, "reasoning.stripFromContext": "allButLast"})
    second = request(
        TWO_TURNS,
        settings={**KEEP, "reasoning.stripFromContext": "allButLast"},
        previous=first,
    )

    assert second.cache_break == 3


def test_an_open_loop_is_not_rewritten_by_its_next_step() -> None:
    """The floor keeps each step's reasoning until the turn is over."""
    first = request(OPEN_LOOP, provider="deepseek")
    step = rs.assistant(rs.ThinkingBlock(thought="Again."), call("call_2"), origin=DEEPSEEK)
    second = request([*OPEN_LOOP, step, answer("call_2")], provider="deepseek", previous=first)

    assert second.cache_break == len(rendered(first))
