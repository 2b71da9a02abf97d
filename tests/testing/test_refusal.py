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
from reasoning_store.testing.strict_provider import gemini, rules
from tests.properties import each, examples
from tests.testing.bodies import (
    SIGNATURE,
    TOOLS,
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


SAID_BY_ID = {**SAID, "id": "msg_1"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB-1"}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB-2"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
PROGRAM = {"type": "program", "id": "cm_1", "call_id": "call_2", "code": "1"}


def test_a_message_needs_its_reasoning_where_the_service_gave_it_with_one() -> None:
    """A model often answers without, so only a record tells."""
    record = Record()
    record.answered({}, [THOUGHT, SAID_BY_ID])
    asked: Body = {"model": "gpt-5.6", "input": [ASKED, SAID_BY_ID, ASKED]}
    whole = {**asked, "input": [ASKED, THOUGHT, SAID_BY_ID, ASKED]}

    assert refusal(asked, provider="openai") is None
    assert "its required 'reasoning' item: 'rs_1'" in str(
        refusal(asked, provider="openai", record=record)
    )
    assert refusal(whole, provider="openai", record=record) is None


def google(*roles: str, **top: Any) -> Body:
    """Return a loop of ``contents`` whose roles and order are given."""
    call = {"functionCall": {"name": "f"}, "thoughtSignature": SIGNATURE}
    answer = {"functionResponse": {"name": "f", "response": {}}}
    parts: dict[str, list[Body]] = {
        "asks": [{"text": "q"}],
        "calls": [call],
        "answers": [answer],
        "answers both": [answer, answer],
        "function answers": [answer],
    }
    names = {"asks": "user", "calls": "model", "function answers": "function"}
    contents = [{"role": names.get(role, "user"), "parts": parts[role]} for role in roles]
    return {"contents": contents, **top}


def claude(*messages: tuple[str, str], **top: Any) -> Body:
    asked = [{"role": role, "content": text} for role, text in messages]
    return {"model": "claude-opus-5", "max_tokens": 9, "messages": asked, **top}


INVOKED = {
    name: value
    for name, value in claude(("user", "q"), anthropic_version="bedrock-2023-05-31").items()
    if name != "model"
}
MESSAGES = "anthropic.messages"
ACCEPTED: dict[str, tuple[str, str | None, str | None, Body]] = {
    "sealed reasoning without ids in a row, before the user": (
        *("openai", "gpt-5.6-luna", None),
        {"input": [ASKED, SEALED, {**SEALED, "encrypted_content": "gAAAAB-3"}, ASKED]},
    ),
    "reasoning before a program": (
        *("openai", "gpt-5.6-terra", None),
        {"input": [ASKED, THOUGHT, PROGRAM, CALL, OUTPUT]},
    ),
    "items by id that no reasoning led to": (
        *("openai", "gpt-5-nano", None),
        {"input": [ASKED, {**CALL, "id": "fc_1"}, OUTPUT, SAID_BY_ID, ASKED]},
    ),
    "an output's form by a beta header": (
        *("anthropic", None, MESSAGES),
        claude(("user", "q"), output_format={"type": "json_schema", "schema": {}}),
    ),
    "turns of one role": (
        *("anthropic", None, MESSAGES),
        claude(("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d"), ("user", "e")),
    ),
    "the model's turn first": (
        *("anthropic", None, MESSAGES),
        claude(("assistant", "a"), ("user", "b")),
    ),
    "the model in the address": ("aws", "us.anthropic.claude-opus-4-8", MESSAGES, INVOKED),
    "a beta in the body": (
        *("aws", "us.anthropic.claude-opus-4-8", MESSAGES),
        {**INVOKED, "anthropic_beta": ["context-1m-2025-08-07"]},
    ),
    "an older model that goes on in its own words": (
        *("anthropic", None, MESSAGES),
        {**claude(("user", "q"), ("assistant", "It")), "model": "claude-3-haiku-20240307"},
    ),
    "Sonnet 5 that does not think": (
        *("anthropic", None, MESSAGES),
        claude(("user", "q"), thinking={"type": "disabled"}) | {"model": "claude-sonnet-5"},
    ),
    "a call without reasoning, of a model that does not think unasked": (
        *("deepseek", None, None),
        chat("deepseek-chat"),
    ),
    "the role of a function": (
        *("google", "gemini-3.5-flash", None),
        google("asks", "calls", "function answers"),
    ),
    "one turn of the model in two contents": (
        *("google", "gemini-3-flash-preview", None),
        google("asks", "calls", "calls", "answers both"),
    ),
    "a budget of thoughts": (
        *("google", "gemini-3.5-flash", None),
        google("asks", generationConfig={"thinkingConfig": {"thinkingBudget": 1_024}}),
    ),
}
"""Requests that their providers took, as recorded by others; the names say which."""


@each("name", ACCEPTED)
def test_what_a_provider_was_recorded_to_take_is_accepted(name: str) -> None:
    """A rule that refuses it would be a false alarm."""
    provider, model, api, body = ACCEPTED[name]

    assert refusal(body, provider=provider, model=model, api=api) is None


def test_responses_in_contents_of_their_own_are_refused() -> None:
    """Google takes all responses of one turn in one content."""
    split = google("asks", "calls", "calls", "answers", "answers")

    assert "number of function response parts" in str(refusal(split, provider="google"))


EFFORTS: dict[str, tuple[str, str]] = {
    "gpt-5.6-luna": ("openai", "none low medium high xhigh max"),
    "gpt-6-astra": ("openai", "low medium high xhigh max"),
    "gpt-6-sol": ("openai", "none low medium high xhigh max"),
    "gpt-6-luna": ("openai", "none low medium high xhigh max"),
    "gpt-6.1-sol": ("openai", "low medium high xhigh max"),
    "gpt-6.1-terra": ("openai", "none low medium high xhigh max"),
    "gpt-6.2-astra": ("openai", "low medium high xhigh max"),
    "grok-3-mini": ("xai", "low high"),
    "grok-4": ("xai", ""),
    "grok-4.3": ("xai", "none low medium high"),
    "grok-4.5": ("xai", "low medium high"),
    "grok-4.6": ("xai", "low medium high xhigh"),
    "grok-4.7": ("xai", "low medium high xhigh"),
    "grok-9": ("xai", "low medium high"),
}


@each("model", EFFORTS)
def test_a_model_takes_its_own_efforts_and_no_others(model: str) -> None:
    """By its name, in Responses; the newer ones of OpenAI take the highest there alone."""
    provider, taken = EFFORTS[model]

    def accepts(body: Body) -> bool:
        return refusal({"model": model, **body}, provider=provider) is None

    found = [one for one in rules.EFFORTS if accepts({"input": "q", "reasoning": {"effort": one}})]
    assert found == taken.split()
    asked: Body = {"messages": [ASKED], "reasoning_effort": "max"}
    assert not accepts(asked)


LEVELS = {
    "gemini-3-pro-preview": "LOW HIGH",
    "gemini-3.1-pro-preview": "LOW MEDIUM HIGH",
    "gemini-3.1-flash-lite": "MINIMAL LOW MEDIUM HIGH",
    "gemini-3.5-flash": "MINIMAL LOW MEDIUM HIGH",
    "gemini-3.6-flash": "MINIMAL LOW MEDIUM HIGH",
    "gemini-3.7-flash": "LOW MEDIUM HIGH",
    "gemini-3.8-flash": "LOW MEDIUM HIGH",
    "gemini-2.5-flash": "",
}


@each("model", LEVELS)
def test_a_gemini_takes_its_own_levels_and_no_others(model: str) -> None:
    """They were asked one by one."""

    def accepts(level: str) -> bool:
        config = {"thinkingConfig": {"thinkingLevel": level}}
        return (
            refusal(google("asks", generationConfig=config), provider="google", model=model) is None
        )

    assert [level for level in gemini.LEVELS if accepts(level)] == LEVELS[model].split()


@each("model", ["gpt-5.6", "gpt-6-sol", "gpt-6-astra", "gpt-6.2-sol"])
def test_tools_are_refused_in_chat_while_the_model_reasons(model: str) -> None:
    """Responses takes both, and a model that can be switched off takes tools without reasoning."""
    asked: Body = {"model": model, "messages": [ASKED], "tools": TOOLS}

    assert "use /v1/responses" in str(refusal(asked, provider="openai"))
    off = refusal({**asked, "reasoning_effort": "none"}, provider="openai")
    assert (off is None) == (model in ("gpt-5.6", "gpt-6-sol"))


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
