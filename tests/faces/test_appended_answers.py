"""Answers that an application made itself, at the door of append."""

from __future__ import annotations

import logging
import warnings

import pytest

import reasoning_store as rs
from tests.properties import each

LEAKS = {
    "a block": rs.assistant("<think>plan</think>4"),
    "a stray close": rs.assistant("plan</think>4"),
    "an unclosed one": rs.assistant("4 <thinking>plan"),
    "of a host that mixes": rs.assistant("<think>a</think>b", origin=rs.Origin(provider="vllm")),
}
CLEAN = {
    "no delimiter": rs.assistant("a < b"),
    "one quoted in code": rs.assistant("Use `<think>`."),
    "of a host that keeps thoughts apart": rs.assistant(
        "Write <think>.", origin=rs.Origin(provider="openai")
    ),
    "a reply that was read": rs.normalize_response("<think>plan</think>4"),
    "a user's text": rs.user("<think>plan</think>4"),
}


@each("name", LEAKS)
def test_an_answer_with_a_delimiter_is_stored_with_a_warning(name: str) -> None:
    """The text is the application's; the warning names the call that separates the thinking."""
    with rs.Store("sqlite://") as store:
        session = store.session()
        with pytest.warns(RuntimeWarning, match=r"delimiter of thinking.*normalize_response"):
            stored = session.append([rs.user("2 + 2?"), LEAKS[name]])

        assert stored[1].message.text == LEAKS[name].text


@each("name", CLEAN)
def test_an_answer_without_a_leak_is_stored_in_silence(name: str) -> None:
    """A quotation is no leak, nor a text of anybody else's."""
    with rs.Store("sqlite://") as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.session().append(CLEAN[name]).is_new


def test_where_warnings_are_errors_the_log_has_the_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An append is never refused for it."""
    with rs.Store("sqlite://") as store, warnings.catch_warnings():
        warnings.simplefilter("error")
        with caplog.at_level(logging.WARNING, logger="reasoning_store"):
            store.session().append(LEAKS["a block"])

    assert "delimiter of thinking" in caplog.text


# EC-002

EMPTY = rs.ThinkingBlock(thought="")
REAL = rs.assistant(rs.ThinkingBlock(thought="Plan"), "4")


def test_ec_002_an_empty_thought_is_not_stored() -> None:
    """EC-002: nothing is read in a block without text, signature and ciphertext."""
    sealed = rs.ThinkingBlock(thought="", signature="c2ln")
    with rs.Store("sqlite://") as store:
        stored = store.session().append(rs.assistant(EMPTY, sealed, "4", EMPTY))

        assert stored.message.blocks == (sealed, rs.TextBlock(text="4"))


def test_ec_002_an_empty_thought_is_not_the_last_one() -> None:
    """EC-002: ``allButLast`` keeps the last thought that says something."""
    settings = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "allButLast"}
    messages = [rs.user("2 + 2?"), REAL, rs.user("3 + 3?"), rs.assistant(EMPTY, "6")]
    request = rs.build_request(messages, provider="deepseek", model="m", settings=settings)

    assert [verdict.rule for verdict in request.verdicts] == ["kept"]
