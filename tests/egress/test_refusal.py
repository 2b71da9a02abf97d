"""Known refusals, explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.egress.refusal import explain_refusal
from reasoning_store.settings import KEYS
from reasoning_store.testing import refusal
from tests.egress.histories import OPEN_LOOP

FILE = Path(__file__).parent.parent / "cases" / "wire" / "errors_400.json"
KNOWN: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["patterns"]
PROVIDERS = {"openai.responses": "openai"}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known["match"][:40])
@pytest.mark.parametrize("around", ["{}", "Error code: 400 - {{'message': '{} (x)'}}"])
def test_every_recorded_refusal_is_explained(known: dict[str, Any], around: str) -> None:
    """By its cause and what mends it, and the setting where one does."""
    for part in known["match"].split("|"):
        found = explain_refusal(PROVIDERS.get(known["api"], known["api"]), around.format(part))

        assert found is not None
        assert found.cause
        assert found.fix
        assert found.setting is None or found.setting.split("=")[0] in KEYS


@pytest.mark.parametrize(
    ("provider", "text", "setting"),
    [
        (
            "kimi",
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index 3",
            "reasoning.floor=provider",
        ),
        (
            "anthropic",
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to "
            "a different conversation.",
            "reasoning.stripFromContext=all",
        ),
        (
            "anthropic",
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            "`tool_use`.",
            "reasoning.floor=provider",
        ),
    ],
)
def test_the_setting_that_helps_is_named(provider: str, text: str, setting: str) -> None:
    """As it stands in the text of the service, quotes and all."""
    found = explain_refusal(provider, text)

    assert found is not None
    assert found.setting == setting


def test_the_more_particular_words_count() -> None:
    """Two causes share a sentence: a bad signature, and one bound to another conversation."""
    text = "Invalid `signature` in `thinking` block"
    plain = explain_refusal("anthropic", text)
    bound = explain_refusal("anthropic", f"{text}. The block is bound to a different conversation")

    assert plain is not None
    assert bound is not None
    assert plain.cause != bound.cause


def test_quotes_case_and_spaces_make_no_difference() -> None:
    """Services word one refusal in several ways."""
    one = "The `reasoning_content` in the thinking mode must be passed back to the API."
    other = "the  reasoning_content in the\nTHINKING mode must be passed back"

    assert explain_refusal("deepseek", one) == explain_refusal("deepseek", other) is not None


def test_deepseek_says_the_same_in_the_words_of_both_its_protocols() -> None:
    """The field has another name in each."""
    chat, messages = ("reasoning_content", "content[].thinking")
    text = "The `{}` in the thinking mode must be passed back to the API.".format

    assert explain_refusal("deepseek", text(chat)) is not None
    assert explain_refusal("deepseek", text(messages)) == explain_refusal("deepseek", text(chat))


def test_a_gateway_hands_on_what_another_said() -> None:
    """The words tell, whoever was asked; and without a name too."""
    text = "Upstream: Expected `thinking` or `redacted_thinking`, but found `tool_use`"

    assert explain_refusal("openrouter", text) == explain_refusal(None, text) is not None


def test_words_that_are_in_many_errors_tell_only_of_their_provider() -> None:
    """A field's name alone is no explanation elsewhere."""
    assert explain_refusal("openrouter", "bad reasoning_details") is not None
    assert explain_refusal("deepseek", "bad reasoning_details") is None


@pytest.mark.parametrize("text", ["", "Rate limit reached for requests", "Internal error"])
def test_what_is_not_known_is_not_explained(text: str) -> None:
    """No guess."""
    assert explain_refusal("openai", text) is None


def test_an_error_that_is_no_text_is_refused() -> None:
    """The exception itself is not the text of the answer."""
    with pytest.raises(rs.UsageError, match="error_text"):
        explain_refusal("openai", ValueError("x"))  # type: ignore[arg-type]


def test_an_explanation_prints_in_one_line() -> None:
    """Cause, what mends it, and the setting."""
    found = explain_refusal("minimax", "this model requires adaptive thinking (2013)")

    assert str(found) == (
        "the model cannot stop thinking; ask for adaptive thinking, or say nothing "
        "(reasoning.enabled=true)"
    )


@pytest.mark.parametrize("provider", ["deepseek", "moonshot"])
def test_what_the_strict_provider_answers_is_explained(provider: str) -> None:
    """The judge of our tests and this table speak of the same refusals."""
    request = rs.build_request(
        OPEN_LOOP, provider=provider, model="m", settings={"reasoning.floor": "off"}
    )
    text = refusal(request.body, provider=provider, model="m")
    found = explain_refusal(provider, text or "")

    assert found is not None
    assert found.setting == "reasoning.floor=provider"
