"""Every choice of include and strip, side by side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.egress.functions import what_if
from reasoning_store.testing import refusal
from tests.egress.histories import (
    CLAUDE,
    OPEN_LOOP,
    SIGNED,
    TWO_TURNS,
    answer,
    call,
    settings,
    targets,
    views,
)
from tests.properties import each

KEEP = {"reasoning.includeInContext": True}


def test_there_is_a_row_for_every_choice() -> None:
    """Two of include, four of strip; one of them is what holds now."""
    found = what_if(TWO_TURNS, settings={"reasoning.stripFromContext": "allButLast"})

    assert len({(r.include_in_context, r.strip_from_context) for r in found.rows}) == 8
    assert [row.current for row in found.rows].count(True) == 1
    assert found.current.strip_from_context == "allButLast"
    assert found.current.include_in_context is False


@given(views, settings, targets)
def test_a_row_says_what_the_request_would_count(
    messages: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[str | None, str | None, str | None],
) -> None:
    """Built with those settings, it is that request."""
    provider, model, api = to
    for row in what_if(messages, settings=chosen, provider=provider, model=model, api=api).rows:
        changed = {
            **chosen.given(),
            "reasoning.includeInContext": row.include_in_context,
            "reasoning.stripFromContext": row.strip_from_context,
        }
        request = rs.build_request(
            messages, settings=changed, provider=provider, model=model, api=api
        )

        assert row.tokens == request.tokens
        assert set(row.warnings) <= set(request.warnings)


def test_the_first_message_that_changes_is_named() -> None:
    """From there on the request, and a prompt cache, is another."""
    changes = {
        (row.include_in_context, row.strip_from_context): row.first_change
        for row in what_if(TWO_TURNS, settings=KEEP).rows
    }

    assert changes[True, "none"] is None
    assert changes[True, "allButLast"] == changes[True, "priorTurns"] == 1
    assert changes[False, "none"] == changes[True, "all"] == 1


def test_under_the_floor_every_choice_is_legal() -> None:
    """What the provider demands is sent whatever the settings say."""
    assert all(row.legal for row in what_if(OPEN_LOOP, provider="deepseek").rows)


def test_without_the_floor_only_what_keeps_the_demanded_is_legal() -> None:
    """The rest would be refused."""
    found = what_if(OPEN_LOOP, settings={"reasoning.floor": "off"}, provider="deepseek")

    assert {
        row.strip_from_context for row in found.rows if row.legal and row.include_in_context
    } == {"none", "allButLast", "priorTurns"}
    assert not any(row.legal for row in found.rows if not row.include_in_context)


def test_what_a_provider_asks_for_and_does_not_enforce_is_legal() -> None:
    """GLM answers all the same; the row warns."""
    found = what_if(
        OPEN_LOOP, settings={"reasoning.floor": "off"}, provider="zai", model="glm-4.7"
    ).current

    assert found.legal
    assert [warning.code for warning in found.warnings] == ["floor_off"]


def test_what_has_a_stand_in_is_legal() -> None:
    """Foreign reasoning in an open loop: an empty field does at DeepSeek and Kimi."""
    loop = (rs.user("Weather?"), rs.assistant(SIGNED, call(), origin=CLAUDE), answer())
    deepseek = what_if(loop, provider="deepseek").current
    kimi = what_if(loop, provider="moonshot", api="anthropic.messages").current

    assert (deepseek.legal, kimi.legal) == (True, True)


@each(
    "provider, model, api",
    [
        ("anthropic", "claude-opus-5-5", None),
        ("anthropic", "claude-opus-4-7", None),
        ("aws", "us.anthropic.claude-opus-5-v1:0", "bedrock.converse"),
        ("aws", "my-profile", "anthropic.messages"),
        ("azure", "my-deployment", "anthropic.messages"),
        ("vertex", "claude-sonnet-4-6", None),
        ("openai", "gpt-5.6", "openai.responses"),
        ("azure", "my-deployment", "openai.responses"),
    ],
)
@each("floor", ["provider", "off"])
def test_no_refusal_is_predicted_for_a_model_that_takes_over_an_open_loop(
    provider: str, model: str, api: str | None, floor: str
) -> None:
    """Claude with adaptive thinking and Responses without server ids go on; the row warns."""
    to: dict[str, Any] = {"provider": provider, "model": model, "api": api}
    chosen = {"reasoning.floor": floor}

    found = what_if(OPEN_LOOP, settings=chosen, **to)
    request = rs.build_request(OPEN_LOOP, settings=chosen, **to)

    assert refusal(request.body, **to) is None
    assert found.current.warnings != ()
    assert all(row.legal for row in found.rows)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-opus-4-5"),
        ("anthropic", "claude-3-7-sonnet-20250219"),
        ("vertex", "claude-haiku-4-5@20251001"),
    ],
)
def test_claude_that_thinks_within_a_budget_takes_a_loop_without_the_floor(
    provider: str, model: str
) -> None:
    """It refuses one only while it is to think, which it is not asked to in such a turn."""
    to: dict[str, Any] = {"provider": provider, "model": model}
    thinking = {"reasoning.floor": "off", "reasoning.enabled": True}

    request = rs.build_request(OPEN_LOOP, settings=thinking, **to)
    found = what_if(OPEN_LOOP, settings=thinking, **to).current

    assert refusal(request.body, **to) is None
    assert found.legal
    assert "no reasoning is asked for in this turn" in found.warnings[0].text
    assert [warning.code for warning in request.warnings] == ["floor_off", "parameter_held"]


def test_it_prints_as_a_small_table() -> None:
    """A head, and a line for each choice with the current one marked."""
    lines = str(what_if(TWO_TURNS, settings=KEEP)).splitlines()

    assert lines[0].split() == ["include", "strip", "tokens", "legal", "first", "change"]
    assert len(lines) == 9
    assert [line for line in lines if line.startswith("*")] == [
        line for line in lines if line.split()[:3] == ["*", "yes", "none"]
    ]
