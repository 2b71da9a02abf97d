"""The table of strip policies: which is stricter, and which is rolling."""

from __future__ import annotations

import pytest

import reasoning_store as rs
from reasoning_store.conversation.settings import SettingValues, Strip
from reasoning_store.egress.policy import stricter_settings
from tests.egress.histories import CLAUDE, SIGNED


@pytest.mark.parametrize(
    ("strip", "stricter"),
    [
        ("none", ["priorTurns", "all"]),
        ("allButLast", ["priorTurns", "all"]),
        ("priorTurns", ["all"]),
        ("all", []),
    ],
)
def test_a_plan_goes_to_stricter_policies_the_gentlest_first(
    strip: Strip, stricter: list[Strip]
) -> None:
    """Never to a rolling one, which would rewrite the history at every message."""
    found = stricter_settings(SettingValues(include_in_context=True, strip_from_context=strip))

    assert [each.strip_from_context for each in found] == stricter


@pytest.mark.parametrize(("include", "codes"), [(False, []), (True, ["binding"])])
def test_a_policy_is_rolling_only_where_thoughts_are_included(
    include: bool, codes: list[str]
) -> None:
    """What was never sent is not left out at a later message: no prefix changes."""
    call = rs.ToolCallBlock(id="toolu_01", name="look", parameters={})
    history = [
        rs.user("q"),
        rs.assistant(SIGNED, "a", origin=CLAUDE),
        rs.user("r"),
        rs.assistant(SIGNED, call, origin=CLAUDE),
        rs.tool(rs.ToolResponseBlock(call_id="toolu_01", tool_name="look", result="x")),
    ]
    chosen = {"reasoning.includeInContext": include, "reasoning.stripFromContext": "allButLast"}
    request = rs.build_request(
        history, settings=chosen, provider="anthropic", model="claude-opus-5-5"
    )

    assert [verdict.kept for verdict in request.verdicts] == [False, True]
    assert [one.code for one in request.warnings] == codes
