"""Which thinking goes back, and by which rule, the rules by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from tests.egress.histories import (
    CLAUDE,
    DEEPSEEK,
    OPEN_LOOP,
    ROUTED,
    SIGNED,
    TWO_TURNS,
    call,
    providers,
    settings,
    targets,
    thought,
    views,
)
from tests.egress.selecting import KEEP, kept
from tests.properties import each


def test_br_001_nothing_is_sent_back_by_default() -> None:
    """BR-001: a host that is not known to demand reasoning gets none."""
    assert kept(TWO_TURNS) == []


def test_br_003_a_hidden_block_is_sent_like_any_other() -> None:
    """BR-003: isHidden and includeInResponse are about display and decide no egress."""
    hidden = rs.assistant(replace(thought("secret plan"), is_hidden=True), "Hi")
    shown_nowhere = rs.ReasoningSettings(include_in_context=True, include_in_response=False)

    assert kept((hidden,), shown_nowhere) == [0]


ASKED_AGAIN = (*TWO_TURNS, rs.user("And Molde?"))
"""Nothing was thought in the open turn yet."""


LOOP_ENDED = (*OPEN_LOOP, rs.assistant(thought("It is cold."), "4 C.", origin=DEEPSEEK))
"""Twice in the open turn."""


@pytest.mark.parametrize(
    ("strip", "left", "asked_again", "loop_ended"),
    [
        ("none", [1, 3, 5], [1, 3, 5], [1, 3, 5]),
        ("allButLast", [5], [5], [5]),
        ("all", [], [], []),
        ("priorTurns", [5], [], [3, 5]),
    ],
)
def test_br_005_strip_filters_first(
    strip: str, left: list[int], asked_again: list[int], loop_ended: list[int]
) -> None:
    """BR-005: what each value of stripFromContext leaves when reasoning is included."""
    settings = rs.ReasoningSettings.model_validate(
        {"reasoning.includeInContext": True, "reasoning.stripFromContext": strip}
    )

    assert kept(TWO_TURNS, settings) == left
    assert kept(ASKED_AGAIN, settings) == asked_again
    assert kept(LOOP_ENDED, settings) == loop_ended


def test_br_005_the_verdict_names_strip_before_include() -> None:
    """BR-005: where both say no, the first to filter is named."""
    settings = rs.ReasoningSettings(include_in_context=False, strip_from_context="allButLast")
    verdicts = rs.select(TWO_TURNS, settings=settings).verdicts

    assert [verdict.rule for verdict in verdicts] == ["strip", "strip", "include"]


def test_prior_turns_keeps_the_open_turn_across_its_tool_responses() -> None:
    """A tool's answer starts no turn, so the loop's reasoning stays in the open one."""
    settings = rs.ReasoningSettings(include_in_context=True, strip_from_context="priorTurns")

    assert kept(OPEN_LOOP, settings) == [3]


@each("provider", ["deepseek", "moonshot"])
@each("strip", ["all", "allButLast", "none", "priorTurns"])
def test_ec_006_an_open_tool_loop_keeps_what_its_provider_demands(
    provider: str, strip: str
) -> None:
    """EC-006: reasoning accompanies the tool call it led to, whatever the settings say."""
    settings = {"reasoning.stripFromContext": strip}
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


def test_a_verdict_prints_what_was_decided_and_why() -> None:
    """Which block, the rule, its words, and what it costs."""
    verdict = rs.select(TWO_TURNS).verdicts[0]

    assert str(verdict) == (f"1.0 include: includeInContext is off ({verdict.tokens} tokens)")


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


# --- the rules that are about more than one block


def test_br_002_what_a_policy_withholds_is_there_when_the_policy_changes() -> None:
    """BR-002, EC-004: the history is complete, so a later request has all of it again."""
    assert kept(TWO_TURNS, rs.ReasoningSettings(strip_from_context="all")) == []
    assert kept(TWO_TURNS, KEEP) == [1, 3, 5]


def test_br_004_withheld_tokens_are_what_the_count_lacks() -> None:
    """BR-004: the effective count governs, and the verdicts add up to it."""
    count = rs.effective_tokens(TWO_TURNS)
    verdicts = rs.select(TWO_TURNS).verdicts

    assert count.raw - count.effective == sum(verdict.tokens for verdict in verdicts)


def test_br_006_disabled_decides_nothing_about_the_history() -> None:
    """BR-006: enabled=false stops asking; what is there is sent as the other settings say."""
    off = rs.ReasoningSettings(enabled=False, include_in_context=True)

    assert kept(TWO_TURNS, off) == kept(TWO_TURNS, KEEP)


def test_br_007_native_is_treated_as_field() -> None:
    """BR-007: both formats keep the same."""
    native = rs.ReasoningSettings(include_in_context=True, format="native")

    assert kept(TWO_TURNS, native) == kept(TWO_TURNS, KEEP)


def test_br_008_each_request_reads_the_settings_anew() -> None:
    """BR-008, EC-005: nothing of one request is remembered in the next."""
    first = rs.build_request(TWO_TURNS)
    changed = rs.build_request(TWO_TURNS, settings=KEEP)
    again = rs.build_request(TWO_TURNS)

    assert [v.kept for v in changed.verdicts] == [True, True, True]
    assert again == first


def test_a_request_knows_the_layer_of_each_setting() -> None:
    """What the call set, and what is a default."""
    found = rs.build_request([rs.user("Hi")], settings={"reasoning.effort": "high"}).settings

    assert (found["reasoning.effort"].value, found["reasoning.effort"].layer) == ("high", "call")
    assert found.resolved()["reasoning.includeInContext"].layer == "default"
    assert found.include_in_context is False


def reply_of(case: dict[str, Any]) -> rs.Message:
    body = {"choices": [{"message": {"role": "assistant", **case}, "finish_reason": "stop"}]}
    return rs.normalize_response(body, provider="moonshot", model="kimi-k2-thinking")


def test_ec_001_a_reply_without_reasoning_has_nothing_to_decide() -> None:
    """EC-001: no block, no verdict, no error."""
    assert rs.select([reply_of({"content": "Hi"})], provider="moonshot").verdicts == ()


def test_ec_002_empty_reasoning_is_no_block() -> None:
    """EC-002: and so nothing is sent back of it."""
    reply = reply_of({"content": "Hi", "reasoning_content": ""})

    assert rs.select([reply], settings=KEEP, provider="moonshot").verdicts == ()


def test_ec_003_thought_and_text_of_one_reply_go_back_as_one_message() -> None:
    """EC-003: streamed one after the other, they are two fields of a message."""
    reply = reply_of({"content": "Hi", "reasoning_content": "Greet."})
    body = rs.build_request([reply], settings=KEEP, provider="moonshot").body

    assert body["messages"] == [
        {"role": "assistant", "content": "Hi", "reasoning_content": "Greet."}
    ]


# --- admissible


def rule_of(
    block: rs.ThinkingBlock, origin: rs.Origin | None, settings: Any = KEEP, **to: Any
) -> str:
    """Return what is decided about one block of one reply."""
    (verdict,) = rs.select(
        [rs.assistant(block, "Hi", origin=origin)], settings=settings, **to
    ).verdicts
    return verdict.rule


def test_sealed_reasoning_goes_back_to_those_who_made_it() -> None:
    """Same provider, same api, same family."""
    assert rule_of(SIGNED, CLAUDE, provider="anthropic", model="claude-opus-5") == "kept"


@pytest.mark.parametrize(
    "origin",
    [
        replace(CLAUDE, provider="aws"),
        replace(CLAUDE, api="openai.chat"),
        replace(CLAUDE, api="telepathy"),
        replace(CLAUDE, provider=None, base_url="https://example.org"),
        DEEPSEEK,
    ],
    ids=["provider", "api", "an api nobody knows", "an unknown host", "another maker"],
)
def test_sealed_reasoning_of_elsewhere_is_withheld(origin: rs.Origin) -> None:
    """Whichever part of its origin differs."""
    assert rule_of(SIGNED, origin, provider="anthropic", model="claude-opus-5") == "origin"


def test_a_familys_models_read_each_others_seals() -> None:
    """Claude's do; at a gateway one maker's models cannot read another's."""
    sealed = rs.ThinkingBlock(thought="x", source_field="reasoning_details", signature="c2ln")

    def routed(model: str) -> str:
        return rule_of(sealed, ROUTED, provider="openrouter", model=model)

    assert rule_of(SIGNED, CLAUDE, provider="anthropic", model="claude-haiku-5-5") == "kept"
    assert routed("anthropic/claude-haiku-5-5") == "kept"
    assert routed("google/gemini-3-pro") == routed("deepseek/deepseek-v4") == "origin"


@each(
    "made_at, sent_to, rule",
    [
        ("https://api.anthropic.com/v1", "https://api.anthropic.com/v1", "kept"),
        ("https://api.anthropic.com/v1", "HTTPS://API.anthropic.com:443/v1/", "kept"),
        ("https://api.anthropic.com/v1", None, "kept"),
        (None, "https://api.anthropic.com/v1", "kept"),
        ("https://api.anthropic.com/v1", "https://proxy.example.org/v1", "origin"),
        ("https://api.anthropic.com/v1", "https://api.anthropic.com/v2", "origin"),
        ("http://[", "https://api.anthropic.com/v1", "origin"),
    ],
)
def test_a_seal_is_bound_to_an_address_where_both_are_known(
    made_at: str | None, sent_to: str | None, rule: str
) -> None:
    """Case, the usual port and a last slash make no difference."""
    origin = replace(CLAUDE, base_url=made_at)

    assert rule_of(SIGNED, origin, provider="anthropic", base_url=sent_to) == rule


def test_a_provider_goes_by_any_of_its_names() -> None:
    """An origin that an application made may say claude."""
    assert rule_of(SIGNED, replace(CLAUDE, provider="Claude"), provider="anthropic") == "kept"


def test_a_host_without_a_name_is_known_by_its_address() -> None:
    """An unknown server of Anthropic's protocol reads its own seals, and no other's."""
    own = rs.Origin(api="anthropic.messages", base_url="https://llm.example.org")

    def rule(base_url: str | None) -> str:
        return rule_of(SIGNED, own, api="anthropic.messages", base_url=base_url)

    assert rule("https://llm.example.org/") == "kept"
    assert rule("https://other.example.org") == rule(None) == "origin"


@each(
    "source, provider, rule",
    [
        ("thinking", "anthropic", "kept"),
        ("reasoning_details", "anthropic", "origin"),
        (None, "anthropic", "origin"),
        ("reasoning_details", "openrouter", "kept"),
        ("thinking_blocks", "openrouter", "origin"),
        ("thinking_blocks", "litellm", "kept"),
        ("content.thinking", "mistral", "kept"),
    ],
)
def test_without_an_origin_the_field_tells_whose_it_is(
    source: str | None, provider: str, rule: str
) -> None:
    """It goes to the contracts that name it."""
    block = rs.ThinkingBlock(thought="x", source_field=source, signature="c2ln")

    assert rule_of(block, None, provider=provider) == rule


@each(
    "block, origin, settings, provider, rule",
    [
        (SIGNED, DEEPSEEK, {"stripFromContext": "all"}, "openai", "origin"),
        (SIGNED, DEEPSEEK, {"stripFromContext": "all"}, "anthropic", "origin"),
        (SIGNED, DEEPSEEK, {"stripFromContext": "all"}, "deepseek", "no_place"),
        (thought("x"), CLAUDE, {"stripFromContext": "all"}, "anthropic", "unsigned"),
        (thought("x"), DEEPSEEK, {"stripFromContext": "all"}, "deepseek", "strip"),
        (thought("x"), DEEPSEEK, {}, "deepseek", "include"),
        (thought("x"), DEEPSEEK, {"includeInContext": True}, "deepseek", "kept"),
    ],
)
def test_the_verdict_names_the_first_that_failed(
    block: rs.ThinkingBlock,
    origin: rs.Origin,
    settings: dict[str, Any],
    provider: str,
    rule: str,
) -> None:
    """origin, no_place, unsigned, strip, include, in this order."""
    chosen = {f"reasoning.{key}": value for key, value in settings.items()}

    assert rule_of(block, origin, chosen, provider=provider, api=None) == rule


THERE: dict[str, Any] = {"provider": "deepseek", "api": "openai.chat", "model": "deepseek-chat"}


@each(
    "block, origin, settings, to, reason",
    [
        (SIGNED, CLAUDE, {}, THERE, "signed by anthropic; only anthropic takes it back"),
        (
            SIGNED,
            rs.Origin(provider="deepseek", api="anthropic.messages", model="deepseek-chat"),
            {},
            THERE,
            "signed in anthropic.messages; only that protocol takes it back",
        ),
        (
            SIGNED,
            rs.Origin(base_url="http://a.example/v1", api="anthropic.messages", model="m"),
            {},
            {"base_url": "http://b.example/v1", "api": "anthropic.messages", "model": "m"},
            "signed at another address; only that address takes it back",
        ),
        (
            SIGNED,
            rs.Origin(provider="openrouter", api="openai.chat", model="openai/gpt-5.6"),
            {},
            {"provider": "openrouter", "model": "anthropic/claude-opus-5"},
            "signed by openai/gpt-5.6; only models of its family take it back",
        ),
        (SIGNED, None, {}, THERE, "its maker is unknown, and the host has no field of that name"),
        (SIGNED, DEEPSEEK, {}, THERE, "deepseek has no field for it in openai.chat"),
        (
            thought("x"),
            CLAUDE,
            {},
            {"provider": "anthropic"},
            "anthropic takes back signed thoughts only",
        ),
        (thought("x"), DEEPSEEK, {"stripFromContext": "all"}, THERE, "stripFromContext is all"),
        (thought("x"), DEEPSEEK, {}, THERE, "includeInContext is off"),
        (thought("x"), DEEPSEEK, {"includeInContext": True}, THERE, "includeInContext is on"),
    ],
)
def test_the_words_of_a_verdict_name_the_cause(
    block: rs.ThinkingBlock,
    origin: rs.Origin | None,
    settings: dict[str, Any],
    to: dict[str, Any],
    reason: str,
) -> None:
    """The setting, the host and its protocol, or the only one who takes the thought back."""
    chosen = {f"reasoning.{key}": value for key, value in settings.items()}
    history = [rs.user("q"), rs.assistant(block, "a", origin=origin), rs.user("r")]
    (verdict,) = rs.select(history, settings=chosen, **to).verdicts

    assert verdict.reason == reason


def test_a_demanded_thought_names_the_host_that_demands_it() -> None:
    verdict = rs.select(OPEN_LOOP, **THERE).verdicts[-1]

    assert verdict.reason == "deepseek demands it back"


def test_thinking_outside_a_reply_has_no_place() -> None:
    """No protocol has a field for a user's thoughts."""
    message = rs.user(thought("x"), "Hi")
    (verdict,) = rs.select([message], settings=KEEP, provider="deepseek").verdicts

    assert (verdict.kept, verdict.rule) == (False, "no_place")


# --- bad input


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("claude-opus-5", "anthropic"),
        ("gpt-5.6", "openai"),
        ("gemini-3-pro", "google"),
        ("grok-5", "xai"),
        ("deepseek-chat", "deepseek"),
    ],
)
def test_a_maker_s_model_without_a_provider_warns(model: str, maker: str) -> None:
    """Its demands may be told by the name; its parameters are not."""
    (warning,) = rs.build_request([rs.user("q")], model=model).warnings

    assert warning.code in ("unknown_provider", "by_model_name")
    assert f"provider='{maker}'" in warning.text
    assert rs.build_request([rs.user("q")], model=model, provider=maker).warnings == ()


@pytest.mark.parametrize(
    "to",
    [{"model": "my-own-model"}, {"model": "gpt-5.6", "base_url": "http://localhost:8000/v1"}],
    ids=["a model that anybody may serve", "an address of one's own"],
)
def test_a_host_of_one_s_own_does_not_warn(to: dict[str, Any]) -> None:
    """A local server has no provider's name."""
    assert rs.build_request([rs.user("q")], **to).warnings == ()


def test_a_request_without_a_model_warns() -> None:
    """A provider refuses it, whether the model is in the body or in the address."""
    for provider in (None, "openai", "google", "aws"):
        (warning,) = rs.build_request([rs.user("q")], provider=provider).warnings

        assert warning.code == "no_model"


def test_an_unknown_provider_is_warned_about() -> None:
    """Nothing is silently different: an unknown host is owed nothing and told nothing."""
    (warning,) = rs.select(TWO_TURNS, provider="deepsek").warnings

    assert warning.code == "unknown_provider"
    assert "did you mean deepseek?" in warning.text
    assert str(warning).startswith("unknown_provider: ")
    assert rs.select(TWO_TURNS, provider="Kimi").warnings == ()


def test_an_unknown_api_is_refused() -> None:
    """There is no protocol to render."""
    with pytest.raises(rs.InvalidCall) as caught:
        rs.build_request(TWO_TURNS, api="telepathy")

    assert "openai.chat" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["provider", "model", "api", "base_url"])
def test_a_name_of_the_wrong_type_is_refused(name: str) -> None:
    """Not taken for an unknown host."""
    with pytest.raises(rs.InvalidCall, match=name):
        rs.select(TWO_TURNS, **{name: 5})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"messages": [{"role": "user", "content": "Hi"}]},
        {"messages": [rs.user("Hi")], "extra": ["stream"]},
        {"messages": [rs.user("Hi")], "tools": ["get_weather"]},
    ],
)
def test_input_of_the_wrong_type_is_refused(given: dict[str, Any]) -> None:
    """With the place of it, and never its text."""
    with pytest.raises(rs.InvalidCall) as caught:
        rs.build_request(**given)

    assert "Hi" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"reasoning.stripFromContext": "some"},
        {"reasoning.effort": 3},
        {"reasoning.budgetTokens": -1},
        {"reasoning.includeInContex": True},
        "all",
    ],
)
def test_err_001_a_bad_setting_is_refused(settings: Any) -> None:
    """ERR-001: whole, before anything is built."""
    with pytest.raises(rs.SettingError):
        rs.build_request(TWO_TURNS, settings=settings)


# --- every history


@given(views, settings, targets)
def test_a_verdict_is_kept_exactly_where_its_rule_says_so(
    messages: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[str | None, str | None, str | None],
) -> None:
    """And a demanded block is withheld only where it is not admissible, or the floor is off."""
    verdicts = rs.select(messages, settings=chosen, provider=to[0], model=to[1], api=to[2]).verdicts

    for verdict in verdicts:
        assert verdict.kept == (verdict.rule in ("kept", "required"))
        assert verdict.rule != "required" or chosen.floor == "provider"


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
