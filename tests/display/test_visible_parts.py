"""What a person sees, whatever a model is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from tests.egress.histories import REDACTED, assistant_messages, call, settings, thought

REPLY = rs.assistant(thought("Hm."), REDACTED, "Hi", call())


def test_br_003_reasoning_is_shown_unless_the_settings_say_no() -> None:
    """BR-003: includeInResponse governs the display."""
    hide = rs.ReasoningSettings(include_in_response=False)

    assert [block.type for block in rs.visible_parts(REPLY)] == ["thinking", "text", "tool_call"]
    assert [block.type for block in rs.visible_parts(REPLY, hide)] == ["text", "tool_call"]


def test_a_hidden_block_is_not_shown() -> None:
    """Nothing in it can be read, or the application hid it."""
    hidden = rs.assistant(replace(thought("Hm."), is_hidden=True), "Hi")

    assert [block.type for block in rs.visible_parts(hidden)] == ["text"]


@given(assistant_messages, settings)
def test_br_003_what_is_sent_says_nothing_about_what_is_shown(
    message: rs.Message, chosen: rs.ReasoningSettings
) -> None:
    """BR-003: include, strip and floor decide no display."""
    assert rs.visible_parts(message, chosen) == rs.visible_parts(message)


def test_br_006_what_a_model_is_asked_for_says_nothing_about_what_is_shown() -> None:
    """BR-006: a thought that came unasked is shown like any other."""
    assert rs.visible_parts(REPLY, {"reasoning.enabled": False}) == rs.visible_parts(REPLY)


def test_settings_may_be_a_mapping() -> None:
    """Keys as everywhere; a bad one is refused."""
    assert len(rs.visible_parts(REPLY, {"reasoning.includeInResponse": False})) == 2
    with pytest.raises(rs.SettingError):
        rs.visible_parts(REPLY, {"reasoning.includeInRespons": False})


@pytest.mark.parametrize("layer", ["session", "profile"])
def test_br_003_a_sessions_own_settings_hide_its_thinking(layer: str) -> None:
    """BR-003: what holds for the session is given as the session tells it."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        item = session.append(REPLY)
        if layer == "session":
            session.settings.set("reasoning.includeInResponse", False)
        else:
            store.settings.profiles.set("quiet", {"reasoning.includeInResponse": False})
            session.settings.use("quiet")
        shown = rs.visible_parts(item, session.settings.resolved())

    assert [block.type for block in shown] == ["text", "tool_call"]


def test_what_a_history_gives_is_taken_as_it_is() -> None:
    """A stored message is its message."""
    with rs.Store("sqlite://") as store:
        stored = store.session(create=True).append(REPLY)

    assert rs.visible_parts(stored) == rs.visible_parts(REPLY)


@pytest.mark.parametrize("given", ["Hi", None, {"role": "user"}, [rs.user("Hi")]], ids=repr)
def test_what_is_no_message_is_refused(given: Any) -> None:
    """By the error that says what it was."""
    with pytest.raises(rs.InvalidCall, match="a message, not"):
        rs.visible_parts(given)
