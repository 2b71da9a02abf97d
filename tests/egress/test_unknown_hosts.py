"""A host that nobody knows: the model's name tells its maker's demands, or a warning says so."""

from __future__ import annotations

from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.testing import refusal

CALL = rs.ToolCallBlock(id="call_kV9Qw3TzR7pLxN2b", name="look", parameters={})
LOOP = [
    rs.user("How cold is Oslo?"),
    rs.assistant(rs.ThinkingBlock(thought="Look it up.", source_field="reasoning_content"), CALL),
    rs.tool(rs.ToolResponseBlock(call_id=CALL.id, tool_name="look", result="4 C")),
]
PROXY = "http://litellm.internal:4000/v1"
MAKERS = {
    "deepseek-reasoner": "deepseek",
    "deepseek-ai/DeepSeek-V3.2": "deepseek",
    "kimi-k2-thinking": "moonshot",
    "kimi-k3": "moonshot",
    "glm-4.6": "zai",
    "MiniMax-M2": "minimax",
}


def codes(request: Any) -> list[str]:
    return [warning.code for warning in request.warnings]


@pytest.mark.parametrize(
    "host",
    [{"base_url": PROXY}, {}, {"provider": "our-proxy"}],
    ids=["at an address", "unnamed", "by another name"],
)
@pytest.mark.parametrize("model", MAKERS)
def test_the_models_name_tells_the_floor_of_an_unknown_host(
    model: str, host: dict[str, Any]
) -> None:
    """EC-006: one field too few is refused for sure; the warning names the maker."""
    request = rs.build_request(LOOP, model=model, **host)

    assert [verdict.rule for verdict in request.verdicts] == ["required"]
    (warning,) = (one for one in request.warnings if one.code == "by_model_name")
    assert f"provider='{MAKERS[model]}'" in warning.text
    assert refusal(request.body, provider=MAKERS[model], model=model) is None


@pytest.mark.parametrize(
    ("source", "place"),
    [("think_tags", "content"), (None, "content"), ("reasoning_content", "reasoning_content")],
)
def test_a_thought_has_the_place_that_the_maker_reads(source: str | None, place: str) -> None:
    """MiniMax reads its own tags, and the field that a proxy made of them."""
    history = [LOOP[0], rs.assistant(rs.ThinkingBlock(thought="T", source_field=source), CALL)]
    sent = rs.build_request([*history, LOOP[2]], model="MiniMax-M2", base_url=PROXY)

    assert "T" in sent.body["messages"][1][place]
    assert source != "think_tags" or sent.body["messages"][1][place] == "<think>\nT\n</think>\n"


def test_the_floor_that_the_name_tells_can_be_switched_off() -> None:
    """The settings' letter, with the warning that names the refusal."""
    request = rs.build_request(
        LOOP,
        model="deepseek-reasoner",
        base_url=PROXY,
        settings={"reasoning.floor": "off"},
    )

    assert [verdict.rule for verdict in request.verdicts] == ["include"]
    assert "floor_off" in codes(request)
    assert refusal(request.body, provider="deepseek", model="deepseek-reasoner") is not None


def test_what_the_name_tells_is_legal_in_what_if() -> None:
    """Every choice has the demanded thought."""
    rows = rs.what_if(LOOP, model="deepseek-reasoner", base_url=PROXY).rows

    assert all(row.legal for row in rows)
    assert {row.tokens.by_kind.withheld for row in rows} == {0}


@pytest.mark.parametrize(
    "to",
    [
        {"provider": "openrouter", "model": "deepseek/deepseek-v3.2"},
        {"provider": "vllm", "model": "deepseek-ai/DeepSeek-V3.2"},
        {"model": "deepseek-r1", "base_url": PROXY},
        {"model": "deepseek-r1-distill-qwen-32b", "base_url": PROXY},
    ],
    ids=["a router", "a server", "a model of no floor", "a small copy"],
)
def test_a_known_host_and_a_model_of_no_floor_are_not_judged_by_name(to: dict[str, Any]) -> None:
    assert "by_model_name" not in codes(rs.build_request(LOOP, **to))


SEALED = rs.ThinkingBlock(encrypted="c2VhbA==", source_field="reasoning_details", is_hidden=True)


@pytest.mark.parametrize(
    ("thought", "settings", "rule"),
    [
        (rs.ThinkingBlock(thought="Look it up."), {}, "include"),
        (
            rs.ThinkingBlock(thought="Look it up."),
            {"reasoning.includeInContext": True, "reasoning.stripFromContext": "all"},
            "strip",
        ),
        (SEALED, {"reasoning.includeInContext": True}, "no_place"),
    ],
    ids=["by a default", "by a setting", "for want of a place"],
)
def test_a_thought_that_is_left_out_for_want_of_knowledge_is_warned_about(
    thought: rs.ThinkingBlock, settings: dict[str, Any], rule: str
) -> None:
    """An unknown host may demand it: the warning counts it and names the remedy."""
    loop = [LOOP[0], rs.assistant(thought, CALL), LOOP[2]]
    request = rs.build_request(loop, model="our-model", base_url=PROXY, settings=settings)

    assert [verdict.rule for verdict in request.verdicts] == [rule]
    (warning,) = request.warnings
    assert warning.code == "unknown_provider"
    assert "stored thoughts are left out, which it may demand: 1" in warning.text
    assert "name the provider" in warning.text


@pytest.mark.parametrize(
    ("messages", "more"),
    [
        (LOOP, {"settings": {"reasoning.includeInContext": True}}),
        (LOOP, {"settings": {"reasoning.floor": "off"}}),
        (LOOP, {"provider": "vllm"}),
        (LOOP[:1], {}),
    ],
    ids=["sent", "the floor is off", "a known host", "no thought"],
)
def test_nothing_is_said_where_knowledge_is_not_wanting(
    messages: list[rs.Message], more: dict[str, Any]
) -> None:
    assert codes(rs.build_request(messages, model="our-model", base_url=PROXY, **more)) == []
