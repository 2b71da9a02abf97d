"""What counts, how much, and that the count is the request's."""

from __future__ import annotations

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.tokenizers import counter
from tests.egress.histories import TWO_TURNS, providers, settings, thought, views


def tokens(text: str) -> int:
    return counter("o200k_base").count(text).tokens


def test_a_message_counts_its_blocks_and_four_for_its_frame() -> None:
    """The framing is counted with the first visible block."""
    count = rs.effective_tokens([rs.user("Is 91 prime?")])

    assert count.effective == tokens("Is 91 prime?") + 4 + count.fixed
    assert count.fixed == 3


def test_a_call_counts_its_name_and_its_arguments_as_they_came() -> None:
    """Keys and ids are not counted."""
    call = rs.ToolCallBlock(
        id="a-very-long-id-that-costs-nothing", name="get_weather", arguments='{"city": "Oslo"}'
    )
    count = rs.effective_tokens([rs.assistant(call)])

    assert count.effective == tokens("get_weather") + tokens('{"city": "Oslo"}') + 4 + 3


def test_a_thinking_only_message_carries_its_frame_in_its_thought() -> None:
    """Withheld, it costs nothing at all."""
    only = [rs.assistant(thought("Hm."))]

    assert rs.effective_tokens(only).effective == 3
    assert rs.effective_tokens(only).raw == tokens("Hm.") + 4 + 3


def test_opaque_reasoning_counts_what_the_provider_reported() -> None:
    """Ciphertext has no text of its own; the report stands for it, and the label says so."""
    sealed = rs.assistant(
        rs.ThinkingBlock(encrypted="RU5D" * 100), "Hi", usage=rs.Usage(reasoning=42)
    )
    count = rs.effective_tokens([sealed])

    assert count.raw - count.effective == 42
    assert count.exactness == "reported"


def test_readable_thoughts_are_taken_off_what_was_reported() -> None:
    """What can be read is counted as text; only the rest is the report's, never below zero."""
    blocks = (
        rs.ThinkingBlock(thought="Plan A.", signature="c2ln"),
        rs.ThinkingBlock(encrypted="RU5D"),
    )
    reported = [rs.assistant(*blocks, "Hi", usage=rs.Usage(reasoning=42))]
    too_little = [rs.assistant(*blocks, "Hi", usage=rs.Usage(reasoning=1))]

    assert [v.tokens for v in rs.select(reported).verdicts] == [42, 0]
    assert [v.tokens for v in rs.select(too_little).verdicts] == [tokens("Plan A."), 0]


def test_opaque_reasoning_that_nobody_reported_is_an_estimate() -> None:
    """A quarter of its bytes, and labelled."""
    count = rs.effective_tokens([rs.assistant(rs.ThinkingBlock(encrypted="A" * 401), "Hi")])

    assert count.raw - count.effective == 101
    assert count.exactness == "estimated"


def test_system_and_tools_are_fixed_and_counted() -> None:
    """They belong to the request, not to the history."""
    plain = rs.effective_tokens(TWO_TURNS)
    count = rs.effective_tokens(TWO_TURNS, system="Be brief.", tools=[{"name": "get_weather"}])

    assert count.fixed == 3 + tokens("Be brief.") + tokens('[{"name":"get_weather"}]')
    assert count.effective - count.fixed == plain.effective - plain.fixed


def test_br_004_what_is_stripped_does_not_count() -> None:
    """BR-004: the effective count is that of what will be sent."""
    count = rs.effective_tokens(TWO_TURNS)
    thoughts = [b.thought for m in TWO_TURNS for b in m.thinking]

    assert count.raw - count.effective == sum(map(tokens, thoughts))


@given(views, settings, providers)
def test_the_count_is_the_same_whichever_way_it_is_asked(
    messages: list[rs.Message], chosen: rs.ReasoningSettings, provider: str | None
) -> None:
    """BR-004: the request's own count, the count without building, and the verdicts agree."""
    request = rs.build_request(messages, settings=chosen, provider=provider, model="m")
    count = rs.effective_tokens(messages, settings=chosen, provider=provider, model="m")

    assert request.tokens == count
    assert count.raw - count.effective == sum(
        verdict.tokens for verdict in request.verdicts if not verdict.kept
    )


@pytest.mark.parametrize("worse", ["reported", "estimated"])
def test_the_label_is_the_worst_in_the_view(worse: str) -> None:
    """Withheld or not: one estimate makes the sum an estimate."""
    usage = rs.Usage(reasoning=5) if worse == "reported" else None
    messages = [*TWO_TURNS, rs.assistant(rs.ThinkingBlock(encrypted="RU5D"), "x", usage=usage)]

    assert rs.effective_tokens(messages).exactness == worse
