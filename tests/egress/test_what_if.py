"""Every choice of include and strip, side by side."""

from __future__ import annotations

from hypothesis import given

import reasoning_store as rs
from reasoning_store.egress.free import what_if
from reasoning_store.egress.select import target, viewed
from reasoning_store.egress.tokens import count_message
from reasoning_store.tokenizers import DEFAULT_ENCODING, counter
from tests.egress.alternatives import selected
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


@given(views, settings, targets)
def test_the_rows_are_what_selections_say(
    messages: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[str | None, str | None, str | None],
) -> None:
    """A view is gone through once, and each row is as if it were selected by itself."""
    provider, model, api = to
    count = counter(DEFAULT_ENCODING)
    view = viewed(messages, [count_message(message, count) for message in messages])

    found = what_if(messages, settings=chosen, provider=provider, model=model, api=api)

    assert found.rows == selected(view, chosen, target(provider, model, api, None))


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


def test_what_has_a_stand_in_is_legal_and_what_has_none_is_not() -> None:
    """Foreign reasoning in an open loop: an empty field does at DeepSeek, nothing at GPT."""
    loop = (rs.user("Weather?"), rs.assistant(SIGNED, call(), origin=CLAUDE), answer())
    deepseek = what_if(loop, provider="deepseek").current
    gpt = what_if(loop, provider="openrouter", model="openai/gpt-5.6").current

    assert (deepseek.legal, gpt.legal) == (True, False)


def test_it_prints_as_a_small_table() -> None:
    """A head, and a line for each choice with the current one marked."""
    lines = str(what_if(TWO_TURNS, settings=KEEP)).splitlines()

    assert lines[0].split() == ["include", "strip", "tokens", "legal", "first", "change"]
    assert len(lines) == 9
    assert [line for line in lines if line.startswith("*")] == [
        line for line in lines if line.split()[:3] == ["*", "yes", "none"]
    ]
