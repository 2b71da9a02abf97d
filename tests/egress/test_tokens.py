"""What counts, how much, and that the count is the request's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.placeholders import PLACEHOLDER, cleared
from reasoning_store.conversation.settings import SettingValues
from reasoning_store.egress.target import find_target
from reasoning_store.egress.token_counts import FixedCount, TokensByKind, count_message
from reasoning_store.egress.usage import ContextUsage, calibrate, count_usage
from reasoning_store.tokens import counter
from reasoning_store.tokens.counter import MOST_CHARS
from tests.egress.histories import (
    CLAUDE,
    EVERYTHING,
    SIGNED,
    TWO_TURNS,
    settings,
    targets,
    thought,
    views,
)
from tests.properties import each

results = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["", "ok", " " * 80, "It is. " * 20, PLACEHOLDER]),
    st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=20), max_size=3),
)


def tokens(text: str) -> int:
    return counter("o200k_base").count(text).tokens


def test_a_message_counts_its_blocks_and_four_for_its_frame() -> None:
    """The framing is counted with the first visible block."""
    count = rs.effective_tokens([rs.user("Is 91 prime?")])

    assert count.effective == tokens("Is 91 prime?") + 4 + count.fixed
    assert count.fixed == 3


def test_a_call_counts_its_name_and_its_arguments_as_they_came() -> None:
    """Keys and ids are not counted."""
    call = rs.ToolCallBlock(
        id="a-very-long-id-that-costs-nothing", name="get_weather", arguments='{"city": "Oslo"}'
    )
    count = rs.effective_tokens([rs.assistant(call)])

    assert count.effective == tokens("get_weather") + tokens('{"city": "Oslo"}') + 4 + 3


@given(st.lists(results, min_size=1, max_size=3))
def test_clearing_frees_what_the_cleared_message_counts_less(found: list[Any]) -> None:
    """Each answer alone, and nothing where that would make the message longer."""
    blocks = [rs.ToolResponseBlock(call_id=f"c{n}", result=one) for n, one in enumerate(found)]
    message = rs.tool(*blocks)
    counts = count_message(message, counter("o200k_base"))
    after = count_message(cleared(message), counter("o200k_base"))

    assert counts.clearable == max(0, counts.visible - after.visible)
    assert after.clearable == 0


def test_a_thinking_only_message_carries_its_frame_in_its_thought() -> None:
    """Withheld, it costs nothing at all."""
    only = [rs.assistant(thought("Hm."))]

    assert rs.effective_tokens(only).effective == 3
    assert rs.effective_tokens(only).raw == tokens("Hm.") + 4 + 3


def test_opaque_reasoning_counts_what_the_provider_reported() -> None:
    """Ciphertext has no text of its own; the report stands for it, and the label says so."""
    sealed = rs.assistant(
        rs.ThinkingBlock(encrypted="RU5D" * 100), "Hi", usage=rs.Usage(reasoning=42)
    )
    count = rs.effective_tokens([sealed])

    assert count.raw - count.effective == 42
    assert count.exactness == "reported"


def test_readable_thoughts_are_taken_off_what_was_reported() -> None:
    """What can be read is counted as text; only the rest is the report's, never below zero."""
    blocks = (
        rs.ThinkingBlock(thought="Plan A.", signature="c2ln"),
        rs.ThinkingBlock(encrypted="RU5D"),
    )
    reported = [rs.assistant(*blocks, "Hi", usage=rs.Usage(reasoning=42))]
    too_little = [rs.assistant(*blocks, "Hi", usage=rs.Usage(reasoning=1))]

    assert [v.tokens for v in rs.select(reported).verdicts] == [42, 0]
    assert [v.tokens for v in rs.select(too_little).verdicts] == [tokens("Plan A."), 0]


def test_unreported_sealed_reasoning_is_an_estimate() -> None:
    """A quarter of its bytes, and labelled."""
    count = rs.effective_tokens([rs.assistant(rs.ThinkingBlock(encrypted="A" * 401), "Hi")])

    assert count.raw - count.effective == 101
    assert count.exactness == "estimated"


def test_system_and_tools_are_fixed_and_counted() -> None:
    """They belong to the request, not to the history."""
    plain = rs.effective_tokens(TWO_TURNS)
    count = rs.effective_tokens(TWO_TURNS, system="Be brief.", tools=[{"name": "get_weather"}])

    assert count.fixed == 3 + tokens("Be brief.") + tokens('[{"name":"get_weather"}]')
    assert count.effective - count.fixed == plain.effective - plain.fixed


def test_br_004_what_is_stripped_does_not_count() -> None:
    """BR-004: the effective count is that of what will be sent."""
    count = rs.effective_tokens(TWO_TURNS)
    thoughts = [b.thought for m in TWO_TURNS for b in m.thinking]

    assert count.raw - count.effective == sum(map(tokens, thoughts))


@pytest.fixture(scope="module")
def store() -> Iterator[rs.Store]:
    """One store for many short conversations."""
    with rs.Store("sqlite://") as found:
        yield found


@given(messages=views, chosen=settings, to=targets)
def test_the_count_is_the_same_whichever_way_it_is_asked(
    store: rs.Store,
    messages: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[str | None, str | None, str | None],
) -> None:
    """BR-004: the request's, the count without one, the session's from carried state alone.

    Label and all; and what is withheld is exactly what the verdicts withhold.
    """
    provider, model, api = to
    count = rs.effective_tokens(
        messages,
        settings=chosen,
        provider=provider,
        model=model,
        api=api,
        system="Be brief.",
        tools=[{"name": "f"}],
    )
    request = rs.build_request(
        messages,
        settings=chosen,
        provider=provider,
        model=model,
        api=api,
        system="Be brief.",
        tools=[{"name": "f"}],
    )
    session = store.session(create=True)
    if messages:
        session.append(messages)
    usage = session.usage(
        settings=chosen,
        provider=provider,
        model=model,
        api=api,
        system="Be brief.",
        tools=[{"name": "f"}],
    )

    assert request.tokens == count
    assert (
        rs.results.TokenCount(
            effective=usage.effective,
            raw=usage.raw,
            fixed=usage.fixed,
            by_kind=usage.by_kind,
            exactness=usage.exactness,
            encoding=usage.encoding,
        )
        == count
    )
    assert count.raw - count.effective == sum(
        verdict.tokens for verdict in request.verdicts if not verdict.kept
    )
    kinds = count.by_kind
    assert kinds.system + kinds.tools + kinds.messages + kinds.thinking == count.effective
    assert count.effective + kinds.withheld == count.raw


@pytest.mark.parametrize("worse", ["reported", "estimated"])
def test_the_label_is_the_worst_in_the_view(worse: str) -> None:
    """Withheld or not: one estimate makes the sum an estimate."""
    usage = rs.Usage(reasoning=5) if worse == "reported" else None
    messages = [*TWO_TURNS, rs.assistant(rs.ThinkingBlock(encrypted="RU5D"), "x", usage=usage)]

    assert rs.effective_tokens(messages, model="gpt-5.2").exactness == worse


@pytest.mark.parametrize(
    ("messages", "label"),
    [
        (TWO_TURNS, "approximate"),
        ((rs.assistant(SIGNED, "x", usage=rs.Usage(reasoning=3), origin=CLAUDE),), "reported"),
        ((rs.assistant(SIGNED, "x", origin=CLAUDE),), "estimated"),
        ((rs.user(rs.MediaBlock(kind="image", mime_type="image/png", url="x")),), "estimated"),
        (EVERYTHING, "estimated"),
    ],
)
def test_a_count_says_how_it_came_about(messages: tuple[rs.Message, ...], label: str) -> None:
    """Counted, told by the provider, or guessed."""
    assert rs.effective_tokens(messages).exactness == label


@each(
    "model, o200k, cl100k",
    [
        ("gpt-5.2", "exact", "approximate"),
        ("openai/gpt-oss-120b", "exact", "approximate"),
        ("gpt-4-turbo", "approximate", "exact"),
        ("gpt-6", "approximate", "approximate"),
        ("claude-opus-5", "approximate", "approximate"),
        ("deepseek-chat", "approximate", "approximate"),
        (None, "approximate", "approximate"),
    ],
)
def test_a_count_is_exact_only_in_the_tokenizer_of_the_model(
    model: str | None, o200k: str, cl100k: str
) -> None:
    """In every other it is approximate, and a page puts a sign before it."""
    for encoding, label in (("o200k_base", o200k), ("cl100k_base", cl100k)):
        with rs.Store("sqlite://", encoding=encoding) as store:
            session = store.session(create=True)
            session.append(list(TWO_TURNS))
            usage = session.usage(model=model)
            request = session.build_request(model=model).tokens
            choices = [row.tokens for row in session.what_if(model=model).rows]
            plan = session.compression(limit=1_000, model=model)

        assert {one.exactness for one in (usage, request, *choices)} == {label}
        assert plan.exactness == label
        assert usage.mark == ("" if label == "exact" else "~")


def test_a_prompt_that_is_estimated_makes_the_count_an_estimate() -> None:
    """The label is the worst of all parts, of system and tools too."""
    to = find_target("openai", "gpt-5.2", None, None)
    fixed = FixedCount(system=3, tools=0, exactness="estimated")
    usage = count_usage(
        [], SettingValues(), to, fixed=fixed, inputs_digest="", encoding="o200k_base"
    )

    assert (usage.effective, usage.exactness) == (6, "estimated")


@given(st.lists(st.integers(0, 99), min_size=5, max_size=5), st.integers(1, 99), st.integers(1, 99))
def test_a_calibrated_count_is_still_the_sum_of_its_parts(
    parts: list[int], counted: int, reported: int
) -> None:
    """Whatever is rounded."""
    names = ("system", "tools", "messages", "thinking", "withheld")
    kinds = TokensByKind(**dict(zip(names, parts, strict=True)))
    usage = ContextUsage(
        effective=sum(parts[:4]),
        raw=sum(parts),
        fixed=parts[0] + parts[1],
        by_kind=kinds,
        exactness="approximate",
        encoding="o200k_base",
    )
    found = calibrate(usage, counted=counted, reported=reported)
    kinds = found.by_kind

    assert found.effective == round(usage.effective * reported / counted)
    assert kinds.system + kinds.tools + kinds.messages + kinds.thinking == found.effective
    assert found.effective + kinds.withheld == found.raw


@pytest.mark.parametrize("part", ["system", "tools"])
def test_an_estimated_system_prompt_or_tool_makes_the_count_an_estimate(part: str) -> None:
    """System and tools are a part of the request."""
    guessed = "a" * (2 * MOST_CHARS)
    fixed: dict[str, Any] = {"system": guessed} if part == "system" else {"tools": [{"x": guessed}]}
    to: dict[str, Any] = {"model": "gpt-5.2"}
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        session.append(rs.user("Hi"))

        for count in (
            rs.effective_tokens([rs.user("Hi")], **to, **fixed),
            session.usage(**to, **fixed),
        ):
            assert count.exactness == "estimated"


@pytest.mark.parametrize("reported", [-1, 1 << 40, 1 << 70])
def test_a_senseless_report_is_ignored(store: rs.Store, reported: int) -> None:
    """What was thought is estimated then; the reply is kept, and what was reported with it."""
    session = store.session(create=True)
    usage = rs.Usage(output=reported, reasoning=reported)
    stored = session.append(rs.assistant(SIGNED, "x", usage=usage, origin=CLAUDE))

    assert stored.message.usage == usage
    assert stored.tokens == session.append(rs.assistant(SIGNED, "x", origin=CLAUDE)).tokens


def test_a_count_prints_what_will_be_sent() -> None:
    """The number that a person asks for."""
    count = rs.effective_tokens(TWO_TURNS)

    assert str(count) == str(count.effective)


def test_usage_prints_effective_and_limit(store: rs.Store) -> None:
    """As it is displayed: 123000/212000."""
    session = store.session(create=True)
    session.append(rs.user("Hi"))
    used = session.usage(limit=212_000)

    assert str(used) == f"{used.effective}/212000"
    assert str(session.usage()) == str(used.effective)


def test_the_count_does_not_depend_on_the_protocol() -> None:
    """Hosts that keep the same blocks count the same, whatever their bodies look like."""
    keep = {"reasoning.includeInContext": True}
    counts = {
        rs.effective_tokens(TWO_TURNS, settings=keep, provider=provider, model="m").effective
        for provider in (None, "deepseek", "vllm", "minimax", "ollama", "cohere", "mistral")
    }

    assert len(counts) == 1
