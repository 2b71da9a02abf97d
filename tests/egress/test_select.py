"""Which thinking goes back, and by which rule: the seed's rules by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

import reasoning_store as rs
from tests.egress.histories import (
    CLAUDE,
    OPEN_LOOP,
    TWO_TURNS,
    call,
    providers,
    settings,
    thought,
    views,
)

KEEP = rs.ReasoningSettings(include_in_context=True)


def kept(
    messages: tuple[rs.Message, ...],
    settings: rs.ReasoningSettings | None = None,
    provider: str | None = None,
) -> list[int]:
    """Return which messages keep their thinking."""
    verdicts = rs.select(messages, settings=settings, provider=provider).verdicts
    return [verdict.message for verdict in verdicts if verdict.kept]


def test_br_001_nothing_is_sent_back_by_default() -> None:
    """BR-001: a host that is not known to demand reasoning gets none."""
    assert kept(TWO_TURNS) == []


def test_br_003_a_hidden_block_is_sent_like_any_other() -> None:
    """BR-003: isHidden and includeInResponse are about display and decide no egress."""
    hidden = rs.assistant(replace(thought("secret plan"), is_hidden=True), "Hi")
    shown_nowhere = rs.ReasoningSettings(include_in_context=True, include_in_response=False)

    assert kept((hidden,), shown_nowhere) == [0]


@pytest.mark.parametrize(
    ("strip", "left"),
    [("none", [1, 3, 5]), ("allButLast", [5]), ("all", []), ("priorTurns", [5])],
)
def test_br_005_strip_filters_first(strip: str, left: list[int]) -> None:
    """BR-005: what each value of stripFromContext leaves when reasoning is included."""
    settings = rs.ReasoningSettings.model_validate(
        {"reasoning.includeInContext": True, "reasoning.stripFromContext": strip}
    )

    assert kept(TWO_TURNS, settings) == left


def test_br_005_the_verdict_names_strip_before_include() -> None:
    """BR-005: where both say no, the first to filter is named."""
    settings = rs.ReasoningSettings(include_in_context=False, strip_from_context="allButLast")
    verdicts = rs.select(TWO_TURNS, settings=settings).verdicts

    assert [verdict.rule for verdict in verdicts] == ["strip", "strip", "include"]


def test_prior_turns_keeps_the_open_turn_across_its_tool_responses() -> None:
    """A tool's answer starts no turn, so the loop's reasoning stays in the open one."""
    settings = rs.ReasoningSettings(include_in_context=True, strip_from_context="priorTurns")

    assert kept(OPEN_LOOP, settings) == [3]


@pytest.mark.parametrize("provider", ["deepseek", "moonshot"])
@pytest.mark.parametrize("strip", ["all", "allButLast", "none", "priorTurns"])
def test_ec_006_an_open_tool_loop_keeps_what_its_provider_demands(
    provider: str, strip: str
) -> None:
    """EC-006: reasoning accompanies the tool call it led to, whatever the settings say."""
    settings = rs.ReasoningSettings.model_validate({"reasoning.stripFromContext": strip})
    verdicts = rs.select(OPEN_LOOP, settings=settings, provider=provider).verdicts

    assert [(v.message, v.rule) for v in verdicts if v.kept] == [(3, "required")]


def test_the_floor_of_deepseek_reaches_calls_of_closed_turns() -> None:
    """DeepSeek wants the reasoning of every message with a call, in any turn."""
    assert kept(TWO_TURNS, provider="deepseek") == [1]


def test_without_the_floor_the_letter_of_the_settings_holds_and_the_request_warns() -> None:
    """reasoning.floor=off restores the settings and says what the provider will say."""
    selection = rs.select(OPEN_LOOP, settings={"reasoning.floor": "off"}, provider="deepseek")

    assert [verdict.kept for verdict in selection.verdicts] == [False, False]
    assert [warning.code for warning in selection.warnings] == ["floor_off"]


def test_a_message_that_is_kept_anyway_is_kept_and_not_required() -> None:
    """The floor is named only where it made the difference."""
    verdicts = rs.select(OPEN_LOOP, settings=KEEP, provider="deepseek").verdicts

    assert [verdict.rule for verdict in verdicts] == ["kept", "kept"]


def test_a_protocol_without_a_field_for_reasoning_gets_none() -> None:
    """api.openai.com refuses unknown fields on chat messages."""
    verdicts = rs.select(TWO_TURNS, settings=KEEP, provider="openai").verdicts

    assert {verdict.rule for verdict in verdicts} == {"no_place"}


def test_foreign_signed_reasoning_is_withheld_and_never_made_text() -> None:
    """A signature means something only to the provider that made it."""
    sealed = rs.assistant(
        rs.ThinkingBlock(thought="CANARY", source_field="thinking", signature="c2ln"),
        "Hi",
        origin=CLAUDE,
    )
    selection = rs.select((sealed,), settings=KEEP, provider="deepseek")

    assert [verdict.kept for verdict in selection.verdicts] == [False]
    assert "CANARY" not in repr(selection.messages)


def test_a_demanded_block_that_cannot_be_sent_is_reported() -> None:
    """The floor never overrides what has no place; it warns."""
    sealed = rs.ThinkingBlock(thought="", source_field="thinking", signature="c2ln")
    loop = (rs.user("Weather?"), rs.assistant(sealed, call(), origin=CLAUDE))
    selection = rs.select(loop, provider="deepseek")

    assert [warning.code for warning in selection.warnings] == ["floor_unmet"]


def test_a_message_with_nothing_left_to_say_is_dropped() -> None:
    """A reply that was only thought has no place once its thinking stays home."""
    only = (rs.user("Hm?"), rs.assistant(thought("...")))

    assert [message.role for message in rs.select(only).messages] == ["user"]


def test_br_009_selecting_changes_no_message() -> None:
    """BR-009: what is stored is never modified by a policy."""
    before = repr(TWO_TURNS)
    rs.select(TWO_TURNS, settings={"reasoning.stripFromContext": "all"})

    assert repr(TWO_TURNS) == before


@given(views, settings, providers)
def test_there_is_one_verdict_for_each_thinking_block(
    messages: list[rs.Message], chosen: rs.ReasoningSettings, provider: str | None
) -> None:
    """Nothing is decided in silence."""
    verdicts = rs.select(messages, settings=chosen, provider=provider).verdicts
    blocks = [
        (n, place)
        for n, message in enumerate(messages)
        for place, block in enumerate(message.blocks)
        if isinstance(block, rs.ThinkingBlock)
    ]

    assert [(verdict.message, verdict.block) for verdict in verdicts] == blocks


@given(views, settings, providers)
def test_visible_blocks_are_the_same_under_every_policy(
    messages: list[rs.Message], chosen: rs.ReasoningSettings, provider: str | None
) -> None:
    """A policy about reasoning touches nothing else."""

    def visible(found: list[rs.Message] | tuple[rs.Message, ...]) -> list[rs.Block]:
        return [b for m in found for b in m.blocks if not isinstance(b, rs.ThinkingBlock)]

    selection = rs.select(messages, settings=chosen, provider=provider)

    assert visible(selection.messages) == visible(messages)


@given(views, settings, providers)
def test_what_is_left_of_a_view_is_exactly_what_the_verdicts_keep(
    messages: list[rs.Message], chosen: rs.ReasoningSettings, provider: str | None
) -> None:
    """Kept means there, withheld means absent."""
    selection = rs.select(messages, settings=chosen, provider=provider)
    kept_blocks = [
        messages[verdict.message].blocks[verdict.block]
        for verdict in selection.verdicts
        if verdict.kept
    ]

    assert [b for m in selection.messages for b in m.thinking] == kept_blocks
