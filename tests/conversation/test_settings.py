"""reasoning.* settings: what is allowed, what is refused, and which layer wins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import reasoning_store as rs
from reasoning_store.conversation import settings
from tests.properties import each


def test_the_defaults_are_conservative() -> None:
    """BR-001: reasoning is not sent back unless someone asks for it."""
    assert rs.ReasoningSettings().by_key() == {
        "reasoning.enabled": True,
        "reasoning.effort": None,
        "reasoning.budgetTokens": None,
        "reasoning.includeInContext": False,
        "reasoning.includeInResponse": True,
        "reasoning.stripFromContext": "none",
        "reasoning.format": "field",
        "reasoning.floor": "provider",
        "reasoning.tags": "auto",
    }


@pytest.mark.parametrize(
    "made",
    [
        rs.ReasoningSettings(include_in_context=True),
        rs.ReasoningSettings.model_validate({"reasoning.includeInContext": True}),
    ],
    ids=["by field", "by key"],
)
def test_a_setting_goes_by_both_its_names(made: rs.ReasoningSettings) -> None:
    """Snake case in Python, the key with its dot and camel case in JSON."""
    assert made.given() == {"reasoning.includeInContext": True}


@each(
    "bad, message",
    [
        ({"reasoning.format": "xml"}, "reasoning.format cannot be 'xml'; one of: field, native"),
        (
            {"reasoning.stripFromContext": "alButLast"},
            "one of: all, allButLast, none, priorTurns; did you mean allButLast",
        ),
        ({"reasoning.includeInContext": "yes"}, "one of: true, false"),
        ({"reasoning.includeInContext": 1}, "one of: true, false"),
        ({"reasoning.budgetTokens": -1}, "a whole number, 0 or more"),
        ({"reasoning.budgetTokens": True}, "a whole number, 0 or more"),
        ({"reasoning.effort": "hihg"}, "did you mean high"),
        ({"reasoning.effort": 10**5000}, "reasoning.effort cannot be a value of type int; one of"),
        ({"reasoning.enabled": "true"}, "did you mean true, without quotes"),
        ({"reasoning.includeInContxt": True}, "did you mean reasoning.includeInContext"),
        ({"colour": 1}, "the keys are: reasoning.enabled"),
    ],
)
def test_err_001_a_bad_value_is_refused_with_what_is_allowed(
    bad: dict[str, Any], message: str
) -> None:
    """ERR-001: one clear message that names the key and the allowed values."""
    with pytest.raises(rs.SettingError) as refused:
        settings.checked(bad)

    assert message in str(refused.value)


def test_err_001_one_bad_value_refuses_all_of_them() -> None:
    """ERR-001: a good key next to a bad one is not taken either."""
    with pytest.raises(rs.SettingError):
        settings.checked({"reasoning.effort": "high", "reasoning.format": "xml"})


def test_br_007_native_is_a_valid_format() -> None:
    """BR-007: native is accepted; it means the same as field."""
    assert settings.checked({"reasoning.format": "native"}) == {"reasoning.format": "native"}


def test_settings_cannot_be_changed_in_place() -> None:
    """A policy that was resolved stays what it was for its request."""
    with pytest.raises(ValidationError, match="frozen"):
        rs.ReasoningSettings().effort = "high"  # type: ignore[misc]


STRONGEST_FIRST: tuple[settings.Layer, ...] = ("call", "session", "profile", "environment")


@given(st.sets(st.sampled_from(STRONGEST_FIRST)))
def test_br_008_the_strongest_layer_that_sets_a_key_wins(chosen: set[settings.Layer]) -> None:
    """BR-008: call over session over profile over environment over default."""
    budgets = {layer: {"reasoning.budgetTokens": n} for n, layer in enumerate(STRONGEST_FIRST)}
    given_ = {layer: budgets[layer] for layer in chosen}
    strongest = next((layer for layer in STRONGEST_FIRST if layer in chosen), "default")

    resolved = settings.resolve_settings(
        given_.get("call"),
        session=given_.get("session"),
        profile=given_.get("profile"),
        environment=given_.get("environment"),
    ).resolved()["reasoning.budgetTokens"]

    assert resolved.layer == strongest
    assert resolved.value == given_.get(strongest, {}).get("reasoning.budgetTokens")


def test_a_call_overrides_only_the_keys_it_sets() -> None:
    """The rest of a call's settings come from the weaker layers."""
    policy = settings.resolve_settings(
        rs.ReasoningSettings(effort="low"), session={"reasoning.includeInContext": True}
    )

    assert policy.settings.effort == "low"
    assert policy.settings.include_in_context


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("reasoning.includeInContext", "Yes", True),
        ("reasoning.includeInContext", "off", False),
        ("reasoning.budgetTokens", "4096", 4096),
        ("reasoning.effort", "high", "high"),
    ],
)
def test_what_a_person_writes_becomes_a_value(key: str, text: str, value: Any) -> None:
    """A command line and the environment have only words."""
    assert settings.parse(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("reasoning.includeInContext", "perhaps"),
        ("reasoning.budgetTokens", "4k"),
        ("reasoning.budgetTokens", "9" * 5_000),
        ("nope", "1"),
    ],
)
def test_err_001_words_are_checked_like_values(key: str, text: str) -> None:
    """ERR-001 holds for what a person writes."""
    with pytest.raises(rs.SettingError):
        settings.parse(key, text)


def test_the_environment_sets_what_it_names() -> None:
    """Each key has one variable."""
    environ = {"REASONING_STORE_INCLUDE_IN_CONTEXT": "true", "REASONING_STORE_EFFORT": "", "X": "1"}

    assert settings.from_environment(environ) == {"reasoning.includeInContext": True}


def test_a_bad_variable_is_named() -> None:
    """ERR-001: the one who reads the error set no setting, and has to find what did."""
    with pytest.raises(
        rs.SettingError, match=r"REASONING_STORE_EFFORT: .*'HIGH'; one of"
    ) as refused:
        settings.from_environment({"REASONING_STORE_EFFORT": "HIGH"})

    assert refused.value.key == "reasoning.effort"
    assert "unset" in (refused.value.hint or "")
