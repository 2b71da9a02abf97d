"""The strict provider refuses what deserves it, in the known words, and nothing else."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.testing import Record, refusal, strict_provider
from reasoning_store.testing.strict_provider import rules
from tests.properties import each, examples
from tests.testing.bodies import (
    Body,
    Case,
    M,
    at_vertex,
    chat,
    closed,
    contents,
    drop,
    edited,
    items,
    messages,
    put,
    remembered,
    thought,
)
from tests.testing.refused_chat import CHAT
from tests.testing.refused_elsewhere import ELSEWHERE
from tests.testing.refused_known import KNOWN

CASES = (*KNOWN.values(), *CHAT, *ELSEWHERE)
ERRORS = Path(__file__).parent.parent / "cases" / "wire" / "errors_400.json"
PATTERNS = [row["match"] for row in json.loads(ERRORS.read_text("utf-8"))["patterns"]]
RULES = [(protocol, rule) for protocol, rows in strict_provider.PROTOCOLS.items() for rule in rows]


def answer(case: Case, body: Body) -> str:
    said = refusal(body, provider=case.provider, model=case.model, api=case.api, record=case.record)
    return said or "accepted"


@each("case", CASES)
def test_a_body_that_deserves_it_is_refused_and_its_mended_twin_is_not(case: Case) -> None:
    """Each rule has a request that it is there for."""
    assert case.says in answer(case, case.broken)
    assert answer(case, case.mended) == "accepted"


@each("pattern", PATTERNS)
def test_every_known_refusal_has_its_words(pattern: str) -> None:
    """What people have met is answered as they met it."""
    case = KNOWN[pattern]

    assert [part for part in pattern.split("|") if part in answer(case, case.broken)]


def decides(case: Case) -> rules.Rule | None:
    """Return the rule that a case's broken body meets first."""
    protocol, sent = strict_provider.received_request(
        case.broken, provider=case.provider, model=case.model, api=case.api, record=case.record
    )
    found = (
        rule for rule in strict_provider.PROTOCOLS[protocol] if rule.objection(sent) is not None
    )
    return next(found, None)


def test_every_rule_says_its_source_and_decides_a_case() -> None:
    """A rule that no request here meets is a rule that no one would miss."""
    parsed = [case for case in CASES if case.says != "parse the JSON"]
    met = [decides(case) for case in parsed]

    assert [rule for _, rule in RULES if not any(rule is other for other in met)] == []
    assert [rule for _, rule in RULES if not rule.source] == []


def test_the_judge_knows_nothing_of_what_it_judges() -> None:
    """It imports neither egress nor wire, so that it cannot share their mistakes."""
    sources = Path(strict_provider.__file__).parent.glob("*.py")
    reached = {
        name
        for source in sources
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.startswith("reasoning_store")
    }

    assert {".".join(name.split(".")[:3]) for name in reached} == {
        "reasoning_store.conversation.errors",
        "reasoning_store.conversation.validation",
        "reasoning_store.testing.strict_provider",
    }


@pytest.mark.parametrize(
    ("name", "provider"),
    [("kimi", "moonshot"), ("Moonshot", "moonshot"), ("gemini", "google"), ("bedrock", "aws")],
)
def test_a_provider_is_known_by_its_other_names(name: str, provider: str) -> None:
    """As in a request, aliases and capitals do not matter."""
    assert strict_provider.received_request({}, provider=name)[1].provider == provider


def test_the_model_defaults_to_that_of_the_body() -> None:
    """Protocols that have it in the address need to be told."""
    assert "reasoning_content" in (refusal(chat("kimi-k2.6"), provider="kimi") or "")
    assert refusal(chat("kimi-k2.6"), provider="kimi", model="moonshot-v1-8k") is None


@pytest.mark.parametrize("provider", ["azure", "vertex"])
def test_claude_is_judged_in_its_own_protocol_wherever_its_host_speaks_others(
    provider: str,
) -> None:
    """Its name says so, in the body or next to it."""
    model = "claude-opus-5"
    body = {"azure": messages(model), "vertex": at_vertex(model)}[provider]

    assert refusal(body, provider=provider, model=model) is None
    assert strict_provider.received_request(chat("gpt-5.6"), provider="azure")[0] == "openai.chat"


def test_an_unknown_host_checks_the_structure_and_nothing_else() -> None:
    """What is not known is not refused."""
    assert refusal(chat("m", reply=thought()), provider="nobody") is None
    assert refusal({"model": "m", "messages": []}, provider="nobody") is not None


@pytest.mark.parametrize(
    "model",
    ["claude-3-7-sonnet-20250219", "claude-sonnet-4-20250514", "anthropic/claude-opus-4.1"],
)
def test_a_date_is_no_version(model: str) -> None:
    """Older models take a budget, whatever their names end with."""
    asked = {"type": "enabled", "budget_tokens": 2_048}

    assert refusal(messages(model, thinking=asked), provider="anthropic") is None


def test_the_prefix_of_a_thought_may_be_cut_into_messages_differently() -> None:
    """The record knows a conversation by its blocks, and leaves caching aside."""
    model = "claude-opus-5-5"
    body = edited(
        messages(model),
        put(M, 0, "content", [{"type": "text", "text": "Weather in Oslo?", "cache_control": {}}]),
    )

    assert refusal(body, provider="anthropic", record=remembered(messages(model))) is None


def test_an_edited_thought_and_a_foreign_seal_are_distinguished() -> None:
    """Only with a record: both look like a real one."""
    model = "claude-opus-5"
    edit = edited(messages(model), put(M, 1, "content", 0, "thinking", "EDITED"))
    foreign = edited(messages(model), put(M, 1, "content", 0, "signature", "b3RoZXI="))

    assert [refusal(body, provider="anthropic") for body in (edit, foreign)] == [None, None]
    for body in (edit, foreign):
        said = refusal(body, provider="anthropic", record=remembered(messages(model)))
        assert said == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_thinking_that_stood_between_others_cannot_be_left_out_where_it_is_bound() -> None:
    """All of it or none: a gap changes what stood before the thoughts after it."""
    model = "claude-opus-5-5"
    record = remembered(messages(model))
    second = [
        {"type": "thinking", "thinking": "", "signature": "c2Vjb25k"},
        {"type": "text", "text": "It is 4 C in Oslo."},
    ]
    record.answered(messages(model), second)
    whole = messages(model)
    whole[M] += [{"role": "assistant", "content": second}, {"role": "user", "content": "Bergen?"}]
    gap = edited(whole, drop(M, 1, "content", 0))
    none = edited(edited(gap, drop(M, 1, "content", 0)), drop(M, 3, "content", 0))
    dropping = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}

    def said(body: Body) -> str | None:
        return refusal(body, provider="anthropic", record=record)

    assert (said(whole), said(none)) == (None, None)
    assert "bound to a different conversation" in (said(gap) or "")
    assert said({**gap, "thinking": {"type": "adaptive", **dropping}}) is None


@pytest.mark.parametrize(
    ("provider", "body", "model"),
    [("openai", items(), "gpt-5.6"), ("vertex", contents(), "gemini-3-pro")],
)
def test_a_seal_that_was_never_given_here_is_refused(provider: str, body: Body, model: str) -> None:
    """Ciphertext of another organisation, a signature of the other route."""
    assert refusal(body, provider=provider, model=model) is None
    assert refusal(body, provider=provider, model=model, record=Record()) is not None


def test_the_open_turn_begins_with_the_last_real_question() -> None:
    """What a tool answered asks nothing, so a loop is open until a person speaks."""
    loop = chat("google/gemini-3-pro")

    assert refusal(loop, provider="openrouter") is not None
    assert refusal(closed(loop), provider="openrouter") is None


@pytest.mark.parametrize(
    ("provider", "model"),
    [("deepseek", "deepseek-flash"), ("moonshot", "kimi-k2.6"), ("moonshot", "kimi-k2-thinking")],
)
def test_reasoning_of_a_call_is_demanded_in_closed_turns_too(provider: str, model: str) -> None:
    """The field may be empty, and may not be absent."""
    finished = closed(chat(model))

    assert refusal(finished, provider=provider) is not None
    assert refusal(closed(chat(model, reply=thought())), provider=provider) is None
    empty = {"reasoning_content": ""}
    assert refusal(closed(chat(model, reply=empty)), provider=provider) is None


def responses(provider: str, *input: Body, **top: Any) -> str | None:
    """Return what a host of Responses answers; the answer to a call stands last."""
    body = {"model": "some-model", "store": False, "input": [*input], **top}
    return refusal(body, provider=provider, api="openai.responses")


ASKED = {"role": "user", "content": "q"}
SAID = {"type": "message", "role": "assistant", "content": "a"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "4 C"}


@pytest.mark.parametrize(
    ("provider", "id"),
    [("xai", "tco_1"), ("deepseek", "0198f4e2-11aa-7000-8000-0242ac120002"), ("aws", "msg_1")],
)
def test_a_host_of_responses_names_its_items_as_it_likes(provider: str, id: str) -> None:
    """Only OpenAI's ids begin as its do."""
    reasoning = {"type": "reasoning", "id": id, "summary": []}

    assert responses(provider, ASKED, reasoning, SAID) is None
    assert "begins with 'rs'" in (responses("openai", ASKED, reasoning, SAID) or "")


@pytest.mark.parametrize("provider", ["openai", "azure", "xai"])
def test_a_reasoning_item_needs_no_id(provider: str) -> None:
    """Its ciphertext is all that is read."""
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB-x"}

    assert responses(provider, ASKED, reasoning, SAID) is None


@pytest.mark.parametrize("top", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_an_output_may_answer_a_call_that_the_service_has(top: Body) -> None:
    """The call is in the response, or the conversation, that the request continues."""
    assert responses("openai", OUTPUT, **top) is None
    assert "No tool call found" in (responses("openai", OUTPUT) or "")


def test_an_answer_of_the_service_s_own_tools_needs_no_reasoning() -> None:
    """They are called with reasoning and without."""
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    said = {**SAID, "id": "msg_1"}

    assert responses("openai", ASKED, searched, said, model="gpt-5.2") is None
    assert "'reasoning' item" in (responses("openai", ASKED, said, model="gpt-5.2") or "")


@pytest.mark.parametrize(
    ("provider", "tool"),
    [
        ("mistral", {"type": "web_search"}),
        ("openrouter", {"type": "openrouter:web_search"}),
        ("openai", {"type": "custom", "custom": {"name": "shell"}}),
    ],
)
def test_a_tool_of_the_host_s_own_is_no_function(provider: str, tool: Body) -> None:
    """It has a type of its own, and no schema."""
    asked = {"model": "some-model", "messages": [ASKED], "tools": [tool]}

    assert refusal(asked, provider=provider) is None
    assert refusal({**asked, "tools": [{"type": "function"}]}, provider=provider) is not None


broken: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", 0, True, [], {}, [None], ["x"], [{}], {"type": "text"}, {"role": "user"}]
)


@examples(400)
@given(data=st.data())
def test_anything_broken_anywhere_gets_an_answer(data: st.DataObject) -> None:
    """Whatever a body holds, the judge answers, and never fails itself."""
    case = data.draw(st.sampled_from(CASES))
    body: Any = copy.deepcopy(case.mended)
    inner = body
    while inner:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inner[key], dict | list) or data.draw(st.booleans()):
            inner[key] = data.draw(broken)
            break
        inner = inner[key]

    assert answer(case, body)


@pytest.mark.parametrize("make", [chat, messages], ids=["chat", "messages"])
def test_judging_changes_nothing(make: Any) -> None:
    """A request can be judged and then sent."""
    body = make("claude-opus-5")
    before = copy.deepcopy(body)
    refusal(body, provider="anthropic", api="anthropic.messages")

    assert body == before


def test_an_api_that_there_is_not_is_refused_with_those_there_are() -> None:
    """A misspelt name is a named error, like everywhere else."""
    with pytest.raises(InvalidCall, match=r"'openai\.chats' is not an api") as refused:
        refusal({"messages": []}, provider="openai", api="openai.chats")

    assert "openai.chat, openai.responses" in (refused.value.hint or "")
