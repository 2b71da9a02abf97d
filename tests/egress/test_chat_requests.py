"""The bodies of Chat Completions and its kin: what stands where, host by host."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.wire import contract_lookup
from tests.egress.chat_bodies import KEEP, body, sent
from tests.egress.chat_host_table import EXPECTED
from tests.egress.chat_hosts import Host, observed
from tests.egress.histories import (
    DEEPSEEK,
    OPEN_LOOP,
    ROUTED,
    TWO_TURNS,
    answer,
    call,
    settings,
    targets,
    thought,
    views,
)
from tests.properties import each
from tests.wire import row_by_row
from tests.wire.cases import Case, all_cases

APIS = ("cohere.chat", "mistral.chat", "ollama.chat", "openai.chat")


# --- hosts, row by row


@each("host", EXPECTED)
def test_a_host_gets_what_it_reads(host: Host) -> None:
    """Where reasoning goes, what is demanded, what stands in for it, how it is asked for."""
    assert observed(host) == EXPECTED[host]


TABLES = row_by_row.read()


ROWS = [
    *(("contract", n) for n, row in enumerate(TABLES["contract"]) if row["api"] in APIS),
    *(("model", n) for n, row in enumerate(TABLES["model"]) if set(row["apis"]) & set(APIS)),
]


@each("row", ROWS)
def test_no_row_is_without_effect_on_a_request(row: tuple[str, int]) -> None:
    """Without it some host gets something else, and this suite says so."""
    table, number = row
    gone = TABLES[table][number]
    tables = {**TABLES, table: [item for n, item in enumerate(TABLES[table]) if n != number]}
    whose = gone.get("providers", [gone.get("provider")])
    hosts = [host for host in EXPECTED if host[0] in whose]

    with row_by_row.in_force(tables):
        changed = [host for host in hosts if observed(host) != EXPECTED[host]]

    assert changed


# --- the recorded shapes


CASES = [
    case
    for case in all_cases()
    if "egress" in case.variant
    and contract_lookup.find_contract(case.provider, api=case.api).api in APIS
]


each_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.provider} {case.variant['name']}"
)


def history(case: Case, shape: list[dict[str, Any]]) -> list[rs.Message]:
    """Return the messages that a recorded request was made of."""
    whole = case.whole()
    thoughts = list(whole.thinking)
    out: list[rs.Message] = []
    for message in shape:
        if message["role"] == "user":
            out.append(rs.user(message["content"]))
        elif message["role"] == "tool":
            out.append(answer())
        else:
            said: rs.Block | str = call() if message.get("tool_calls") else "It is 4 C in Oslo."
            out.append(rs.assistant(*thoughts, said, origin=whole.origin))
            thoughts = [replace(block, thought="Tool says 4 C.") for block in thoughts[:1]]
    return out


@each_case
@pytest.mark.parametrize("shape", ["tool_loop_messages", "next_turn_include"])
def test_included_reasoning_has_the_recorded_shape(case: Case, shape: str) -> None:
    """The fields, their order in an array, the text next to them: as the provider has them."""
    expected = case.variant["egress"][shape]
    request = rs.build_request(
        history(case, expected), settings=KEEP, provider=case.provider, api=case.api
    )

    assert neutral_ids(request.body["messages"]) == expected


@each_case
def test_stripped_reasoning_has_the_recorded_shape(case: Case) -> None:
    """Of finished turns nothing is left; DeepSeek's floor keeps what the record leaves empty."""
    expected = case.variant["egress"]["next_turn_strip"]
    request = rs.build_request(history(case, expected), provider=case.provider, api=case.api)
    found = neutral_ids(request.body["messages"])
    if case.provider == "deepseek":
        assert found[1].pop("reasoning_content") == "Need the weather tool."
        assert expected[1]["reasoning_content"] == ""
        expected = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in expected]

    assert found == expected


def neutral_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mistral takes ids of nine letters and digits; the record has the one of the history."""
    text = json.dumps(messages)
    ids = {
        item["id"] for message in messages for item in message.get("tool_calls", ()) if "id" in item
    }
    for found in ids:
        text = text.replace(found, "call_1")
    renamed: list[dict[str, Any]] = json.loads(text)
    return renamed


# --- reasoning in a message


def test_ec_007_empty_reasoning_is_an_omitted_field() -> None:
    """EC-007: neither an empty thought nor a stripped one leaves an empty field."""
    empty = rs.assistant(thought(""), "Hi", origin=DEEPSEEK)

    assert sent(empty, settings=KEEP) == [{"role": "assistant", "content": "Hi"}]
    assert "reasoning_content" not in json.dumps(sent(*TWO_TURNS))


def test_ec_007_but_for_a_host_that_demands_the_field() -> None:
    """EC-007 yields to a contract that says the field must be present."""
    unthinking = (rs.user("Weather?"), rs.assistant(call()), answer())

    assert sent(*unthinking, provider="moonshot")[1]["reasoning_content"] == ""
    assert "reasoning_content" not in sent(*unthinking)[1]


def test_ec_006_reasoning_accompanies_the_call_it_led_to() -> None:
    """EC-006: thought, text and call are one message on the wire."""
    (message,) = [item for item in sent(*OPEN_LOOP, provider="moonshot") if "tool_calls" in item]

    assert message["reasoning_content"] == "Need the weather tool."
    assert message["content"] == "One moment."
    assert message["tool_calls"][0]["function"]["arguments"] == '{"city":"Oslo"}'


def test_br_007_native_is_field() -> None:
    """BR-007: ``format=native`` is accepted and changes nothing."""
    native = {**KEEP, "reasoning.format": "native"}

    assert sent(*TWO_TURNS, settings=native) == sent(*TWO_TURNS, settings=KEEP)


def said_in(field: str | None, text: str) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=text, source_field=field)


STRINGS: dict[str, tuple[str, list[rs.Block], str]] = {
    "of the application": (
        "deepseek",
        [said_in(None, "a"), said_in(None, "b"), rs.TextBlock(text="x")],
        "a\n\nb",
    ),
    "out of tags": (
        "deepseek",
        [said_in("think_tags", "a"), rs.TextBlock(text="x"), said_in("think_tags", "b")],
        "a\n\nb",
    ),
    "native, interrupted by text": (
        "deepseek",
        [
            said_in("reasoning_content", "a"),
            rs.TextBlock(text="x"),
            said_in("reasoning_content", "b"),
        ],
        "ab",
    ),
    "native, at another host": (
        "vllm",
        [
            said_in("reasoning_content", "a"),
            rs.TextBlock(text="x"),
            said_in("reasoning_content", "b"),
        ],
        "ab",
    ),
    "of two fields": (
        "deepseek",
        [said_in("reasoning", "a"), rs.TextBlock(text="x"), said_in("reasoning_content", "b")],
        "a\n\nb",
    ),
    "at Ollama": (
        "ollama",
        [said_in(None, "a"), said_in(None, "b"), rs.TextBlock(text="x")],
        "a\n\nb",
    ),
}


@each("case", STRINGS)
def test_several_thoughts_of_one_message_are_one_string(case: str) -> None:
    """Separate ones with a blank line between, an interrupted one as it came."""
    provider, blocks, string = STRINGS[case]
    (_, said) = sent(
        rs.user("q"), rs.assistant(*blocks), provider=provider, model="m", settings=KEEP
    )

    assert string in said.values()


def test_thoughts_between_delimiters_stand_where_they_were_thought() -> None:
    """Inside the text their place is kept."""
    message = rs.assistant(thought("One."), "a", thought("Two."), "b")
    (found,) = sent(message, provider="cerebras", model="zai-glm-4.7", settings=KEEP)

    assert found["content"] == "<think>One.</think>a<think>Two.</think>b"


def test_an_array_goes_back_whole_and_in_order() -> None:
    """What an entry held next to its words rides along; fragments are one entry."""
    details = [
        {"type": "reasoning.summary", "summary": "Plan.", "id": "rs_1", "index": 0},
        {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 0},
        {"type": "reasoning.new", "anything": [1], "format": "x", "index": 1},
    ]
    response = {"choices": [{"message": {"content": "Hi", "reasoning_details": details}}]}
    model = "openai/gpt-5.6"
    message = rs.normalize_response(response, provider="openrouter", model=model)
    (found,) = sent(message, provider="openrouter", model=model, settings=KEEP)

    assert found["reasoning_details"] == details
    assert "reasoning" not in found


def test_a_seal_without_its_entry_becomes_one() -> None:
    """A block that an application made of the parts it knew is sent with all of them."""
    block = rs.ThinkingBlock(
        thought="Plan.", source_field="reasoning", signature="c2ln", encrypted="gAAA"
    )
    (found,) = sent(
        rs.assistant(block, "Hi", origin=ROUTED),
        provider="openrouter",
        model="anthropic/claude-opus-5",
        settings=KEEP,
    )

    assert found["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Plan.", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "gAAA"},
    ]


@pytest.mark.parametrize(
    ("provider", "model", "field", "seal"),
    [
        ("alibaba", "qwen4-max", "reasoning_content", "encrypted_content"),
        ("xai", "grok-5", "reasoning_content", "encrypted_content"),
        ("github-copilot", "gpt-5.6", "reasoning_text", "reasoning_opaque"),
    ],
)
def test_the_seal_of_a_string_is_in_another_field(
    provider: str, model: str, field: str, seal: str
) -> None:
    """Both come back in the fields that they came in."""
    said = {"content": "Hi", field: "Plan.", seal: "c2VhbA=="}
    message = rs.normalize_response(
        {"choices": [{"message": said}]}, provider=provider, model=model, api="openai.chat"
    )
    (found,) = sent(message, provider=provider, model=model, api="openai.chat", settings=KEEP)

    assert found == {"role": "assistant", **said}


def test_the_seal_of_a_call_is_no_reasoning_and_stays() -> None:
    """Gemini's signature on a call goes back whatever the settings strip."""
    sealed = replace(
        call(), provider_metadata={"extra_content": {"google": {"thought_signature": "c2ln"}}}
    )
    origin = rs.Origin(provider="google", api="openai.chat", model="gemini-3-pro")
    request = rs.build_request(
        (rs.user("Weather?"), rs.assistant(sealed, origin=origin), answer()),
        provider="google",
        model="gemini-3-pro",
        api="openai.chat",
        settings={"reasoning.stripFromContext": "all", "reasoning.floor": "off"},
    )
    (found,) = request.body["messages"][1]["tool_calls"]

    assert found["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert request.warnings == ()


def test_a_foreign_call_gets_the_documented_placeholder_on_the_first_alone() -> None:
    """Of parallel calls the first one is sealed; the stored block is not touched."""
    mark = {"extra_content": {"other": 1}}
    first = replace(call("call_a"), provider_metadata=mark)
    loop = (rs.user("Weather?"), rs.assistant(first, call("call_b")), answer("call_a"))
    found = sent(
        *loop, answer("call_b"), provider="google", model="gemini-3-pro", api="openai.chat"
    )
    one, other = found[1]["tool_calls"]

    assert one["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    assert "extra_content" not in other
    assert mark == {"extra_content": {"other": 1}}


def test_a_message_of_thought_alone_has_an_empty_text() -> None:
    """Null is for messages with calls; Kimi refuses an empty one and gets a full stop."""
    only = rs.assistant(thought("Hm."), origin=DEEPSEEK)

    assert sent(only, provider="deepseek", settings=KEEP)[0]["content"] == ""
    assert sent(only, provider="moonshot", settings=KEEP)[0]["content"] == "."


# --- what may be set


def test_extra_is_laid_over_the_body_last() -> None:
    """A stream, a limit, a parameter that we do not know."""
    found = body(rs.user("Hi"), extra={"stream": True, "max_tokens": 5, "top_k": 3})

    assert (found["stream"], found["max_tokens"], found["top_k"]) == (True, 5, 3)


@each("provider", [None, "mistral", "ollama", "cohere"])
@each("key", ["messages", "model", "tools"])
def test_extra_cannot_set_what_the_builder_owns(provider: str | None, key: str) -> None:
    """The conversation is the body's, not the caller's."""
    with pytest.raises(rs.InvalidCall, match=key):
        rs.build_request([rs.user("Hi")], provider=provider, extra={key: []})


def test_an_unknown_host_gets_no_parameters_and_the_request_warns() -> None:
    """A parameter that a host does not know may be refused."""
    request = rs.build_request(
        [rs.user("Hi")],
        model="m",
        settings={"reasoning.effort": "high", "reasoning.enabled": True},
    )

    assert list(request.body) == ["model", "messages"]
    assert [warning.code for warning in request.warnings] == ["parameter_unsent"]
    assert "reasoning.effort" in request.warnings[0].text


def test_br_006_disabled_sends_no_parameter_but_off() -> None:
    """BR-006: neither effort nor budget is sent, and the history is what it was."""
    off = {"reasoning.enabled": False, "reasoning.effort": "high", **KEEP}
    found = body(*OPEN_LOOP, provider="deepseek", settings=off)

    assert found["thinking"] == {"type": "disabled"}
    assert "reasoning_effort" not in found
    assert found["messages"] == sent(*OPEN_LOOP, provider="deepseek", settings=KEEP)


@pytest.mark.parametrize("provider", ["zai", "alibaba"])
def test_br_006_disabled_reasoning_gives_no_warning_about_parameters(provider: str) -> None:
    """BR-006: an effort that this host has no word for is not missed where nothing is asked."""
    off = {"reasoning.enabled": False, "reasoning.effort": "high"}
    to: dict[str, Any] = {"provider": provider, "model": "m"}
    asked = rs.build_request([rs.user("Hi")], settings={"reasoning.effort": "high"}, **to)

    assert [warning.code for warning in asked.warnings] == ["parameter_unsent"]
    assert rs.build_request([rs.user("Hi")], settings=off, **to).warnings == ()


def test_a_parameter_that_a_model_lacks_is_not_sent_in_another_form() -> None:
    """A model that always thinks cannot be switched off, and the request says so."""
    request = rs.build_request(
        [rs.user("Hi")],
        provider="moonshot",
        model="kimi-k2.7-code",
        settings={"reasoning.enabled": False},
    )

    assert "thinking" not in request.body
    assert [warning.code for warning in request.warnings] == ["parameter_unsent"]


# --- leaks


def marked(messages: list[rs.Message]) -> tuple[list[rs.Message], dict[tuple[int, int], list[str]]]:
    """Put a mark of its own into every thought, signature and ciphertext."""
    marks: dict[tuple[int, int], list[str]] = {}
    out = []
    for number, message in enumerate(messages):
        blocks = []
        for place, block in enumerate(message.blocks):
            if isinstance(block, rs.ThinkingBlock):
                name = f"Q{number:02d}{place:02d}"
                block = replace(
                    block,
                    thought=block.thought and f"{name}t",
                    signature=block.signature and f"{name}s",
                    encrypted=block.encrypted and f"{name}e",
                )
                found = (block.thought, block.signature, block.encrypted)
                marks[number, place] = [mark for mark in found if mark]
            blocks.append(block)
        out.append(replace(message, blocks=tuple(blocks)))
    return out, marks


@given(views, settings, targets.filter(lambda to: to[0] != "anthropic"))
def test_withheld_is_nowhere_and_kept_is_there_once(
    messages: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[str | None, str | None, str | None],
) -> None:
    """A verdict is what happened, for thoughts, signatures and ciphertext alike."""
    history, marks = marked(messages)
    provider, model, api = to
    request = rs.build_request(history, settings=chosen, provider=provider, model=model, api=api)
    text = json.dumps(request.body)

    found = {
        (verdict.message, verdict.block, mark): text.count(mark)
        for verdict in request.verdicts
        for mark in marks[verdict.message, verdict.block]
    }
    expected = {
        (verdict.message, verdict.block, mark): int(verdict.kept)
        for verdict in request.verdicts
        for mark in marks[verdict.message, verdict.block]
    }
    assert found == expected


# --- the official types


def test_the_official_types_accept_the_bodies() -> None:
    """As far as they check anything."""
    import cohere
    import mistralai.client.models as mistral
    import ollama._types as ollama
    from openai.types.chat import CompletionCreateParams
    from pydantic import TypeAdapter

    accept: dict[str, Any] = {
        "openai.chat": TypeAdapter(CompletionCreateParams).validate_python,
        "mistral.chat": mistral.ChatCompletionRequest.model_validate,
        "ollama.chat": ollama.ChatRequest.model_validate,
        "cohere.chat": lambda found: [
            TypeAdapter(cohere.ChatMessageV2).validate_python(item)
            for item in found["messages"]
            if item["role"] != "tool"
        ],
    }
    for provider, model, api in EXPECTED:
        request = rs.build_request(
            OPEN_LOOP,
            settings=KEEP,
            provider=provider,
            model=model,
            api=api,
            system="Be brief.",
            tools=[{"name": "get_weather", "parameters": {"type": "object", "properties": {}}}],
        )
        if api == "openai.chat" and provider == "mistral":
            api = "mistral.chat"  # its content of thoughts is Mistral's type
        assert accept[api](request.body)
