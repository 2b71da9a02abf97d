"""The reasoning that providers demand back, and the warnings if they do not get it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

import reasoning_store as rs
from reasoning_store.conversation.settings import SettingValues, Strip
from reasoning_store.conversation.turns import LAST_RANK, turn_positions
from reasoning_store.egress.policy import STRIP_POLICIES
from reasoning_store.egress.request_warnings import TEXTS
from reasoning_store.egress.selection import make_view, select
from reasoning_store.egress.selection_values import ViewedMessage, WarningCode
from reasoning_store.egress.target import Target, find_target
from reasoning_store.egress.token_counts import count_message
from reasoning_store.tokens import counter
from reasoning_store.wire.contract import Floor
from tests.egress.histories import (
    CLAUDE,
    DEEPSEEK,
    OPEN_LOOP,
    SIGNED,
    answer,
    call,
    thought,
)
from tests.egress.selecting import KEEP
from tests.properties import each

SENT = SettingValues(include_in_context=True)


# --- the floor


def with_floor(floor: Floor, **more: Any) -> Target:
    known = find_target("deepseek", None, None, None)
    contract = known.contract.with_rules({"floor": floor, "empty_field_in": "none", **more})
    return replace(known, contract=contract)


def selected(
    view: list[ViewedMessage],
    settings: SettingValues,
    to: Target,
    inputs_digest: str | None = None,
) -> rs.results.Selection:
    return select(view, turn_positions(view), settings, to, inputs_digest)


def view_of(*messages: rs.Message) -> list[ViewedMessage]:
    count = counter("o200k_base")
    return make_view(messages, [count_message(message, count) for message in messages])


LONG = (
    rs.user("One?"),
    rs.assistant(thought("a"), call("1"), origin=DEEPSEEK),
    answer("1"),
    rs.assistant(thought("b"), "So.", origin=DEEPSEEK),
    rs.user("Two?"),
    rs.assistant(thought("c"), call("2"), origin=DEEPSEEK),
    answer("2"),
    rs.assistant(thought("d"), "Wait.", origin=DEEPSEEK),
    rs.assistant(thought("e"), call("3"), origin=DEEPSEEK),
    answer("3"),
)


@pytest.mark.parametrize(
    ("floor", "required"),
    [
        ("none", []),
        ("open_calls", [5, 8]),
        ("all_calls", [1, 5, 8]),
        ("open_turn_with_call", [5, 7, 8]),
        ("all", [1, 3, 5, 7, 8]),
    ],
)
def test_each_floor_reaches_the_messages_of_its_scope(floor: Floor, required: list[int]) -> None:
    """By place and call, whatever strip and include say."""
    for strip in ("all", "allButLast", "none", "priorTurns"):
        chosen = SettingValues(strip_from_context=strip)
        verdicts = selected(view_of(*LONG), chosen, with_floor(floor)).verdicts

        assert [verdict.message for verdict in verdicts if verdict.kept] == required
        assert all(v.rule == "required" for v in verdicts if v.kept)


def test_an_open_turn_without_a_call_owes_nothing() -> None:
    """Claude wants its thoughts back once a tool was called, and not before."""
    plain = (rs.user("Hm?"), rs.assistant(thought("a"), "So.", origin=DEEPSEEK))
    verdicts = selected(
        view_of(*plain), SettingValues(), with_floor("open_turn_with_call")
    ).verdicts

    assert [verdict.rule for verdict in verdicts] == ["include"]


def test_a_summary_starts_no_turn() -> None:
    """A compacted range is a user's message that no one asked."""
    view = view_of(rs.user("Two?"), LONG[5], LONG[6], rs.user("What was said."), LONG[8])
    view[3] = view[3]._replace(summary=True)
    verdicts = selected(view, SettingValues(), with_floor("open_calls")).verdicts

    assert [verdict.message for verdict in verdicts if verdict.kept] == [1, 4]


@pytest.mark.parametrize(
    ("provider", "model", "said"),
    [
        ("deepseek", "deepseek-v4", "must be passed back to the API"),
        ("moonshot", "kimi-k2.5", "reasoning_content is missing"),
        ("openrouter", "google/gemini-3-pro", "reasoning_details"),
    ],
)
def test_without_the_floor_the_warning_names_the_refusal(
    provider: str, model: str, said: str
) -> None:
    """What the provider will say, and the setting that prevents it."""
    selection = rs.select(
        OPEN_LOOP, settings={"reasoning.floor": "off"}, provider=provider, model=model
    )
    (warning,) = selection.warnings

    assert warning.code == "floor_off"
    assert said in warning.text
    assert "reasoning.floor to provider" in warning.text


@pytest.mark.parametrize(
    ("provider", "model", "said"),
    [
        (
            "moonshot",
            "kimi-k2.5",
            "moonshot wants back the reasoning of messages with tool calls, and "
            "reasoning.floor is off: it answers with 400: thinking is enabled but "
            "reasoning_content is missing in assistant tool call message; "
            "set reasoning.floor to provider",
        ),
        (
            "zai",
            "glm-5",
            "zai wants back the reasoning of messages with tool calls in the open turn, and "
            "reasoning.floor is off: its answers may get worse; set reasoning.floor to provider",
        ),
    ],
)
def test_without_the_floor_the_warning_is_a_sentence(provider: str, model: str, said: str) -> None:
    """Who wants what back, that the floor is off, what follows, what to do: in this order."""
    selection = rs.select(
        OPEN_LOOP, settings={"reasoning.floor": "off"}, provider=provider, model=model
    )

    assert [warning.text for warning in selection.warnings] == [said]


def test_without_the_floor_a_call_without_a_thought_warns_too() -> None:
    """The field must be present, though empty, and the letter of the settings leaves it out."""
    loop = (rs.user("Weather?"), rs.assistant(call()), answer())
    off = {"reasoning.floor": "off"}
    request = rs.build_request(loop, provider="deepseek", model="deepseek-v4", settings=off)

    assert "reasoning_content" not in request.body["messages"][1]
    assert [warning.code for warning in request.warnings] == ["floor_off"]


SEALED_LOOP = (rs.user("Weather?"), rs.assistant(SIGNED, call(), origin=CLAUDE), answer())


SEALED_CALL = replace(
    call(), provider_metadata={"extra_content": {"google": {"thought_signature": "c2ln"}}}
)


GEMINI = rs.Origin(provider="google", api="openai.chat", model="gemini-3-pro")


@each(
    "provider, model, api, instead",
    [
        ("deepseek", "deepseek-v4", None, "reasoning_content is sent empty in its place"),
        ("google", "gemini-3-pro", "openai.chat", "a documented placeholder is sent"),
        ("openrouter", "anthropic/claude-sonnet-4.5", None, "no reasoning is asked for"),
        ("moonshot", "kimi-k2.5", "anthropic.messages", "is sent empty in its place"),
        ("openrouter", "openai/gpt-5.6", None, "answers may get worse"),
        ("zai", "glm-4.7", None, "answers may get worse"),
    ],
)
def test_demanded_reasoning_that_cannot_be_sent_names_its_substitute(
    provider: str, model: str, api: str | None, instead: str
) -> None:
    """The contract's repair, or what follows without one."""
    (warning,) = rs.select(SEALED_LOOP, provider=provider, model=model, api=api).warnings

    assert warning.code == "floor_unmet"
    assert instead in warning.text


@each("is_open", [True, False])
@pytest.mark.parametrize(("provider", "model"), [("xai", "grok-4.3"), ("openai", "gpt-5.6")])
def test_reasoning_that_the_provider_stores_is_not_left_out_without_a_warning(
    provider: str, model: str, is_open: bool
) -> None:
    """An item has an id, and came without its ciphertext; demanded now, or no more."""
    to: dict[str, Any] = {"provider": provider, "model": model, "api": "openai.responses"}
    summary = [{"type": "summary_text", "text": "T"}]
    function = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    output = [{"type": "reasoning", "id": "rs_1", "summary": summary}, function]
    reply = rs.normalize_response({"id": "r", "object": "response", "output": output}, **to)
    history = [rs.user("q"), reply, rs.tool(rs.ToolResponseBlock(call_id="call_1", result="x"))]
    history += [] if is_open else [rs.assistant("a"), rs.user("r")]
    (warning,) = rs.select(history, settings={"reasoning.includeInContext": True}, **to).warnings

    assert warning.code in ("block_left_out", "floor_unmet")


def test_a_seal_on_the_call_is_all_that_gemini_demands() -> None:
    """Its thoughts may stay home; a call without the seal warns."""
    loop = (rs.user("Weather?"), rs.assistant(thought("x"), SEALED_CALL, origin=GEMINI), answer())
    to: dict[str, Any] = {
        "provider": "google",
        "model": "gemini-3-pro",
        "api": "openai.chat",
    }
    lost = (loop[0], rs.assistant(thought("x"), call(), origin=GEMINI), answer())

    assert rs.select(loop, **to).warnings == ()
    assert [w.code for w in rs.select(lost, **to).warnings] == ["floor_unmet"]
    off = {"reasoning.floor": "off"}
    assert [w.code for w in rs.select(lost, settings=off, **to).warnings] == ["floor_off"]


# --- reasoning bound to its prefix


BOUND: dict[str, Any] = {"provider": "anthropic", "model": "claude-opus-5-5"}


FIRST = rs.assistant(SIGNED, "One.", origin=replace(CLAUDE, model="claude-opus-5-5"))


BOUND_TURNS = (rs.user("1?"), FIRST, rs.user("2?"), FIRST, rs.user("3?"))


def binding(messages: tuple[rs.Message, ...], **given: Any) -> list[str]:
    warnings = rs.build_request(messages, **BOUND, **given).warnings
    return [warning.text for warning in warnings if warning.code == "binding"]


@pytest.mark.parametrize(
    ("strip", "warns"), [("none", 0), ("all", 0), ("priorTurns", 0), ("allButLast", 1)]
)
def test_a_rolling_strip_breaks_what_reasoning_is_bound_to(strip: str, warns: int) -> None:
    """Only allButLast sends a block and then withholds it; the warning names what helps."""
    found = binding(BOUND_TURNS, settings={**KEEP.given(), "reasoning.stripFromContext": strip})

    assert len(found) == warns
    assert all("reasoning.stripFromContext" in text for text in found)


@pytest.mark.parametrize(
    ("provider", "model", "says"),
    [
        ("anthropic", "claude-opus-5-5", "the request is refused"),
        ("openai", "gpt-6.2-sol", "without an error"),
        ("openai", "gpt-6.3-astra", "without an error"),
        ("openai", "gpt-6.1-sol", None),
    ],
)
def test_a_changed_prefix_warns_with_what_the_provider_does(
    provider: str, model: str, says: str | None
) -> None:
    """One refuses the request; the other drops the thoughts and answers."""
    to: dict[str, Any] = {"provider": provider, "model": model, "api": API_OF[provider]}
    made = rs.assistant(SEALED_BY[provider], "One.", origin=rs.Origin(**to))
    changed = (rs.Message(role="user", status="erased"), rs.user("1?"), made, rs.user("2?"))
    warnings = rs.build_request(changed, settings=KEEP, **to).warnings

    assert [item.code for item in warnings] == (["binding"] if says else [])
    assert all(says in item.text for item in warnings if says)


API_OF = {"anthropic": "anthropic.messages", "openai": "openai.responses"}
SEALED_BY = {
    "anthropic": SIGNED,
    "openai": rs.ThinkingBlock(encrypted="gAAA", source_field="reasoning.encrypted_content"),
}


def test_an_erased_message_breaks_the_seals_after_it() -> None:
    """The prefix is not what it was."""
    erased = (rs.Message(role="user", status="erased"), *BOUND_TURNS)

    assert "erased" in binding(erased, settings=KEEP)[0]
    assert (
        binding((*BOUND_TURNS[:4], rs.Message(role="user", status="erased")), settings=KEEP) == []
    )


def test_a_compacted_range_breaks_the_seals_after_it() -> None:
    """A summary is not what the model had read."""
    view = view_of(*BOUND_TURNS)
    view[0] = view[0]._replace(summary=True)
    to = find_target("anthropic", "claude-opus-5-5", None, None)

    assert "compacted" in selected(view, SENT, to).warnings[0].text


def test_changed_tools_since_a_reply_are_warned_about() -> None:
    """Known where the view says which request a reply answered."""
    view = [item._replace(inputs_digest="before") for item in view_of(*BOUND_TURNS)]
    to = find_target("anthropic", "claude-opus-5-5", None, None)

    assert "system or tools" in selected(view, SENT, to, inputs_digest="now").warnings[0].text
    assert selected(view, SENT, to, inputs_digest="before").warnings == ()


def test_a_host_that_binds_nothing_warns_of_nothing() -> None:
    """The same history for a model that does not check its prefix."""
    request = rs.build_request(
        BOUND_TURNS,
        provider="anthropic",
        model="claude-opus-4-1",
        settings={**KEEP.given(), "reasoning.stripFromContext": "allButLast"},
    )

    assert request.warnings == ()


def test_every_code_has_a_text() -> None:
    """One table for all of them."""
    assert TEXTS.keys() == {*get_args(WarningCode)}


def test_every_value_of_the_setting_has_a_strip_policy() -> None:
    """None tells apart more of the last thinkers than a position does."""
    assert STRIP_POLICIES.keys() == {*get_args(Strip)}
    assert all(policy.distinguished_thinkers <= LAST_RANK for policy in STRIP_POLICIES.values())


# --- what is demanded of a call, and not of the thought before it

OF_GEMINI = rs.Origin(provider="google", api="gemini.generate_content", model="gemini-3-pro")


def gemini_loop() -> list[rs.Message]:
    """An open call with its seal, and a thought before it that has one, too."""
    sealed = replace(call(), provider_metadata={"thoughtSignature": "c2VhbA=="})
    plain = rs.ThinkingBlock(thought="Need the tool.", source_field="thought")
    marked = replace(plain, thought="Surely.", signature="b3du")
    return [rs.user("Weather?"), rs.assistant(plain, marked, sealed, origin=OF_GEMINI), answer()]


@pytest.mark.parametrize("chosen", [{}, {"reasoning.stripFromContext": "all"}])
def test_where_the_seal_of_a_call_is_demanded_its_thought_is_not(chosen: dict[str, Any]) -> None:
    """EC-006: the seal goes with the call, and the thought where the settings keep it."""
    to: dict[str, Any] = {"provider": "google", "model": "gemini-3-pro"}
    built = rs.build_request(gemini_loop(), settings=chosen, **to)

    assert [verdict.kept for verdict in built.verdicts] == [False, False]
    assert [part.keys() for part in built.body["contents"][1]["parts"]] == [
        {"functionCall", "thoughtSignature"}
    ]
    assert built.warnings == ()


def test_a_thought_before_a_sealed_call_goes_where_the_settings_keep_it() -> None:
    """With the signature that it came with, and the call with its own."""
    built = rs.build_request(
        gemini_loop(),
        settings={"reasoning.includeInContext": True},
        provider="google",
        model="gemini-3-pro",
    )
    seals = [part.get("thoughtSignature") for part in built.body["contents"][1]["parts"]]

    assert [verdict.rule for verdict in built.verdicts] == ["kept", "kept"]
    assert seals == [None, "b3du", "c2VhbA=="]
