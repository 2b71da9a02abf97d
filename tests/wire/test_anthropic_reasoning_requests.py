"""The reasoning that a request in the Messages protocol asks for, of Claude at every host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.reasoning_options import ReasoningOptions
from tests.properties import each
from tests.wire.anthropic_bodies import CALL, CASE, SIGNED
from tests.wire.writing import (
    answers,
    asks,
    written,
)

LOOP = (rs.user("Weather?"), rs.assistant(SIGNED, CALL), answers(rs.assistant(CALL), "4 C"))


UNTHOUGHT = (rs.user("Weather?"), rs.assistant(CALL), answers(rs.assistant(CALL), "4 C"))


# What is asked of reasoning


ADAPTIVE = {"type": "adaptive", "display": "summarized"}


MODELS = {
    "claude-fable-5-2": (ADAPTIVE, None, 16000),
    "claude-opus-5-5": (ADAPTIVE, None, 16000),
    "claude-mythos-5": (ADAPTIVE, None, 16000),
    "claude-sonnet-5-5": (ADAPTIVE, {"type": "between_tools"}, 16000),
    "claude-haiku-5-5": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-opus-5": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-opus-5-20260701": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-opus-5-6": (ADAPTIVE, None, 16000),
    "claude-sonnet-5": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-sonnet-5@20260630": (ADAPTIVE, {"type": "disabled"}, 16000),
    "anthropic.claude-sonnet-5-v1:0": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-sonnet-5-6": (ADAPTIVE, None, 16000),
    "claude-opus-4-8": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-opus-4-7": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-opus-4-6": (ADAPTIVE, {"type": "disabled"}, 16000),
    "claude-opus-4-5": ({"type": "enabled", "budget_tokens": 4096}, {"type": "disabled"}, 12288),
    "claude-sonnet-4-5": ({"type": "enabled", "budget_tokens": 4096}, {"type": "disabled"}, 12288),
    "claude-3-7-sonnet-latest": (
        {"type": "enabled", "budget_tokens": 4096},
        {"type": "disabled"},
        12288,
    ),
    "claude-3-5-haiku-latest": (None, None, 4096),
}


@each("model", MODELS)
def test_thinking_is_switched_in_the_words_of_the_model(model: str) -> None:
    """What a model has no word for is not said, and is reported."""
    on, off, limit = MODELS[model]

    assert asks("anthropic", model, enabled=True) == (
        {**({"thinking": on} if on else {}), "max_tokens": limit},
        () if on else ("enabled",),
    )
    about, unsaid = asks("anthropic", model, enabled=False)
    assert (about.get("thinking"), unsaid) == (off, () if off else ("enabled",))


EFFORTS = {
    "claude-opus-5-5": "low low medium high xhigh max",
    "claude-opus-4-7": "low low medium high xhigh max",
    "claude-sonnet-4-6": "low low medium high high max",
    "claude-opus-4-5": "low low medium high high high",
}


@pytest.mark.parametrize("model", EFFORTS)
def test_effort_is_sent_in_the_parameters_of_the_model(model: str) -> None:
    """The nearest that it knows."""
    ours = ("minimal", "low", "medium", "high", "xhigh", "max")
    found = [asks("anthropic", model, effort=effort)[0]["output_config"] for effort in ours]

    assert [item["effort"] for item in found] == EFFORTS[model].split()


def test_effort_is_a_budget_where_the_model_knows_no_other() -> None:
    """The limit leaves the answer its room next to it."""
    assert asks("anthropic", "claude-sonnet-4-5", effort="high") == (
        {"thinking": {"type": "enabled", "budget_tokens": 12288}, "max_tokens": 20480},
        (),
    )


def test_a_budget_is_below_the_limit() -> None:
    """max_tokens holds for thinking and answer together."""
    about, _ = asks("anthropic", "claude-opus-4-5", budget_tokens=32000)

    assert about["thinking"] == {"type": "enabled", "budget_tokens": 32000}
    assert about["max_tokens"] == 40192


@pytest.mark.parametrize(
    ("model", "asked", "unsaid"),
    [
        ("claude-opus-5", {"budget_tokens": 2048}, ("budget_tokens",)),
        ("claude-sonnet-4-5", {"budget_tokens": 1000}, ("budget_tokens",)),
        ("claude-sonnet-4-5", {"budget_tokens": 2048, "effort": "low"}, ("effort",)),
        ("claude-opus-5-5", {"effort": "none"}, ("effort",)),
        ("claude-3-5-haiku-latest", {"effort": "low"}, ("effort",)),
    ],
)
def test_a_parameter_that_a_model_refuses_is_not_sent(
    model: str, asked: dict[str, Any], unsaid: tuple[str, ...]
) -> None:
    """A budget that is too small, one where none is taken, an effort that there is not."""
    assert asks("anthropic", model, **asked)[1] == unsaid


def test_br_006_without_reasoning_nothing_else_of_it_is_asked() -> None:
    """BR-006: no effort next to a thinking that is off."""
    about, unsaid = asks("anthropic", "claude-opus-5", enabled=False, effort="max")

    assert (about, unsaid) == ({"thinking": {"type": "disabled"}, "max_tokens": 16000}, ())


def test_no_parameter_is_sent_unless_chosen() -> None:
    """The protocol's one required number is all that a request adds."""
    assert asks("anthropic", "claude-opus-5") == ({"max_tokens": 16000}, ())
    assert asks("anthropic", "claude-next") == ({"max_tokens": 16000}, ())


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-4-5"])
def test_a_loop_that_carries_thoughts_goes_on_thinking(model: str) -> None:
    """Thoughts in a request that has thinking off are refused."""
    found = written(LOOP, "anthropic", model, options=ReasoningOptions(enabled=False))

    assert found.body["thinking"]["type"] in ("adaptive", "enabled")
    assert found.options_not_sent.until_next_turn == ("enabled",)
    assert written(LOOP, "anthropic", model).body["thinking"]["type"] in ("adaptive", "enabled")


def test_a_loop_with_thoughts_cannot_be_asked_to_stop_thinking() -> None:
    """A model that thinks unless told otherwise is not told."""
    found = written(LOOP, "anthropic", "claude-opus-5", options=ReasoningOptions(enabled=False))

    assert ("thinking" in found.body, found.options_not_sent.until_next_turn) == (
        False,
        ("enabled",),
    )


def test_a_loop_that_began_without_a_thought_goes_on_without() -> None:
    """A model with a budget refuses a first call without the thought that led to it."""
    found = written(
        UNTHOUGHT, "anthropic", "claude-sonnet-4-5", options=ReasoningOptions(enabled=True)
    )

    assert ("thinking" in found.body, found.options_not_sent.until_next_turn) == (
        False,
        ("enabled",),
    )


def test_an_adaptive_model_may_call_a_tool_without_a_thought() -> None:
    """Nothing is to be repaired there."""
    found = written(
        UNTHOUGHT, "anthropic", "claude-opus-4-7", options=ReasoningOptions(enabled=True)
    )

    assert (found.body["thinking"], found.options_not_sent.without_parameter) == (ADAPTIVE, ())


def test_a_new_turn_is_free_to_switch() -> None:
    """Only the open turn goes on as it began."""
    later = (*LOOP, rs.assistant("4 C"), rs.user("Thanks"))
    found = written(later, "anthropic", "claude-opus-4-7", options=ReasoningOptions(enabled=False))

    assert (found.body["thinking"], found.options_not_sent.without_parameter) == (
        {"type": "disabled"},
        (),
    )


# Claude at other hosts


NAMES = {
    "aws": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "azure": "claude-sonnet-4-5",
    "vertex": "claude-sonnet-4-5@20250929",
}


UNNAMED = {
    "aws": "arn:aws:bedrock:eu-north-1:1:application-inference-profile/a1",
    "azure": "production",
}


@pytest.mark.parametrize("provider", NAMES)
def test_a_loop_with_claude_keeps_its_signed_thoughts_at_every_host(provider: str) -> None:
    """As at Anthropic's own; the one who else signed one is another."""
    to: dict[str, Any] = {
        "provider": provider,
        "model": NAMES[provider],
        "api": "anthropic.messages",
    }
    made, foreign = rs.Origin(**to), rs.Origin(**{**to, "provider": "anthropic"})
    for origin, rule in ((made, "required"), (foreign, "origin")):
        called = replace(LOOP[1], origin=origin)
        built = rs.build_request(
            [LOOP[0], called, LOOP[2]], settings={"reasoning.effort": "high"}, **to
        )
        assert [verdict.rule for verdict in built.verdicts] == [rule]
        assert (built.body["max_tokens"], "thinking" in built.body) == (
            (20480, True) if origin is made else (8192, False)
        )


@each("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"])
@each("provider", NAMES)
def test_the_models_of_claude_are_known_at_every_host(provider: str, model: str) -> None:
    """What one of them demands otherwise it demands wherever it is served."""
    own = contract_lookup.find_contract("anthropic", model, "anthropic.messages")
    there = contract_lookup.find_contract(provider, f"eu.anthropic.{model}@1", "anthropic.messages")

    assert (there.returning, there.reasoning) == (own.returning, own.reasoning)
    assert replace(there.messages, protocol_version=None) == own.messages


@pytest.mark.parametrize("provider", UNNAMED)
def test_a_model_under_its_owner_s_name_gets_its_thoughts_back_and_is_asked_for_nothing(
    provider: str,
) -> None:
    """What it takes is not known; what all of them demand is."""
    to: dict[str, Any] = {
        "provider": provider,
        "model": UNNAMED[provider],
        "api": "anthropic.messages",
    }
    called = replace(LOOP[1], origin=rs.Origin(**to))
    built = rs.build_request(
        [LOOP[0], called, LOOP[2]], settings={"reasoning.effort": "high"}, **to
    )

    assert [verdict.rule for verdict in built.verdicts] == ["required"]
    assert [warning.code for warning in built.warnings] == ["parameter_unsent"]
    assert set(built.body) == {"model", "max_tokens", "messages"}


def test_if_the_model_is_in_the_address_the_body_names_the_version() -> None:
    """The SDK's call takes the model; the version is left to who knows a newer one."""
    to: dict[str, Any] = {"provider": "vertex", "model": "claude-opus-5"}
    built = rs.build_request([rs.user("Hi")], **to)
    newer = rs.build_request([rs.user("Hi")], extra={"anthropic_version": "2026-10-21"}, **to)

    assert (built.body["anthropic_version"], "model" in built.body) == ("vertex-2023-10-16", False)
    assert built.kwargs["model"] == "claude-opus-5"
    assert newer.kwargs["extra_body"] == {"anthropic_version": "2026-10-21"}


@pytest.mark.parametrize(
    ("to", "thought"),
    [
        ({"provider": "vertex", "model": "claude-opus-5"}, "Need the weather tool."),
        ({"base_url": "https://r.services.ai.azure.com/anthropic"}, "Need the weather tool."),
    ],
    ids=["by its model", "by its address"],
)
def test_a_reply_of_claude_elsewhere_is_read_in_its_protocol(
    to: dict[str, Any], thought: str
) -> None:
    """Where no one names one; streamed and whole alike."""
    variant = CASE["variants"][0]
    normalizer = rs.StreamNormalizer(**to)
    for event in variant["stream"]:
        normalizer.feed(event)
    whole = rs.normalize_response(variant["nonstream"], **to)

    assert normalizer.finish().thinking[0].thought == thought
    assert whole.thinking[0].signature
    assert whole.origin is not None
    assert whole.origin.api == "anthropic.messages"


BOUND = {
    "claude-fable-5": False,
    "claude-fable-5-1": True,
    "claude-fable-5-2-20260901": True,
    "claude-mythos-5": False,
    "claude-mythos-5-2": True,
    "claude-opus-5": False,
    "claude-opus-5-5": True,
    "claude-sonnet-5": False,
    "claude-sonnet-5-5": True,
    "claude-haiku-5-5": True,
    "claude-opus-4-8": False,
}


@each("model", BOUND)
def test_thoughts_that_are_bound_to_their_prefix_are_known(model: str) -> None:
    """For these models a request after an erased message warns."""
    made = replace(LOOP[1], origin=rs.Origin(provider="anthropic", model=model))
    changed = (replace(rs.user("a"), status="erased"), LOOP[0], made, LOOP[2])
    warnings = rs.build_request(changed, provider="anthropic", model=model).warnings

    assert ("binding" in [warning.code for warning in warnings]) is BOUND[model]
