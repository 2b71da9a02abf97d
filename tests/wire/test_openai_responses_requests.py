"""Requests in OpenAI's Responses protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

import reasoning_store as rs
from reasoning_store.testing import refusal
from reasoning_store.wire.reasoning_options import ReasoningOptions
from tests.properties import each
from tests.wire.responses_bodies import API, CALL, SEALED, received, sent
from tests.wire.writing import (
    TOOL,
    answers,
    asks,
    case,
    conversations,
    drained,
    reply,
    weather,
    written,
)

CASE = case("openai_responses")


CALLING, SPEAKING, RAW = (reply(CASE, n, "gpt-5.6") for n in range(3))


EGRESS = CASE["variants"][0]["egress"]


SDK = TypeAdapter(ResponseCreateParamsNonStreaming)


@pytest.mark.parametrize("annotations", [None, True, -1, "x", {"a": 1}], ids=repr)
def test_annotations_that_are_no_list_are_none(annotations: Any) -> None:
    """A server sent them so; the conversation goes on all the same."""
    part = {"type": "output_text", "text": "4 C", "annotations": annotations}
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    message = received([reasoning, {"type": "message", "id": "msg_1", "content": [part]}])

    said = sent(message)[-1]["content"]
    assert said == [{"type": "output_text", "text": "4 C", "annotations": []}]


def without_thinking(message: rs.Message) -> rs.Message:
    blocks = tuple(b for b in message.blocks if not isinstance(b, rs.ThinkingBlock))
    return replace(message, blocks=blocks)


def test_a_recorded_tool_loop_goes_back_as_it_came() -> None:
    """Reasoning with its ciphertext, then the call that it led to, each by its id."""
    loop = (rs.user("Weather in Oslo?"), CALLING, answers(CALLING, "4 C"))

    assert sent(*loop) == EGRESS["tool_loop_messages"]


def test_a_finished_turn_goes_back_with_all_its_reasoning() -> None:
    """The summary is there though it be empty, and the phase stays."""
    assert sent(*weather(CALLING, SPEAKING, "4 C")) == EGRESS["next_turn_include"]


def test_without_its_reasoning_no_item_names_itself() -> None:
    """Ids go together; what the model said, the calls' own ids and the phase stay."""
    found = sent(*(without_thinking(item) for item in weather(CALLING, SPEAKING, "4 C")))
    expected = EGRESS["next_turn_strip"]

    assert [*found[:3], found[4]] == [*expected[:3], expected[4]]
    # A message without an id has the shape that the SDK's types have for one: a text.
    assert found[3] == {
        "type": "message",
        "role": "assistant",
        "phase": "final_answer",
        "content": expected[3]["content"][0]["text"],
    }


def test_ids_go_only_where_the_reasoning_before_them_went() -> None:
    """What stands before the first reasoning that is left has lost its own."""
    left = replace(CALLING, blocks=(*without_thinking(SPEAKING).blocks, *CALLING.blocks))

    assert ["id" in item for item in sent(left)] == [False, True, True]


def test_raw_reasoning_goes_back_as_content() -> None:
    """What gpt-oss thought is no summary, at a host that takes it back."""
    message = replace(RAW, origin=rs.Origin(provider="vllm", api=API, model="gpt-oss"))
    found = sent(rs.user("Hi"), message, provider="vllm", model="gpt-oss")

    assert found[1:] == [
        {
            "id": "rs_3",
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Need the weather tool."}],
        },
        CASE["variants"][2]["nonstream"]["output"][1],
    ]


def test_a_summary_and_the_reasoning_itself_keep_their_places() -> None:
    """One block holds both, and is two lists again."""
    item = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Short."}],
        "content": [
            {"type": "reasoning_text", "text": "Long"},
            {"type": "reasoning_text", "text": "er."},
        ],
        "encrypted_content": "gAAA",
    }
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "-"}],
    }

    assert sent(received([item, {**said, "id": "msg_1"}]))[0] == item


def test_a_changed_thought_goes_as_it_is_now() -> None:
    """The parts that are kept next to it say what it was, and are not sent in its place."""
    thought = replace(RAW.thinking[0], thought="masked")
    found = sent(replace(RAW, blocks=(thought, *RAW.blocks[1:])), provider="vllm")

    assert found[0]["content"] == [{"type": "reasoning_text", "text": "masked"}]
    summary = replace(CALLING.thinking[0], thought="masked")
    found = sent(replace(CALLING, blocks=(summary, *CALLING.blocks[1:])))
    assert found[0]["summary"] == [{"type": "summary_text", "text": "masked"}]


def test_reasoning_from_elsewhere_gets_an_id_of_its_own() -> None:
    """Every item of reasoning needs one; two thoughts have two, and always the same."""
    foreign = rs.assistant(rs.ThinkingBlock(thought="Hm."), rs.ThinkingBlock(thought="Hm."), "Hi")
    one, two, _ = sent(foreign, provider="vllm")

    assert one["content"] == two["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert one["id"].startswith("rs_")
    assert one["id"] != two["id"]
    assert sent(foreign, provider="vllm")[0] == one


def test_reasoning_that_led_to_nothing_is_sent_by_its_seal_alone() -> None:
    """A stream that died left half of a pair, which is refused only where it names its id."""
    died = replace(CALLING, blocks=(*CALLING.blocks, *SPEAKING.thinking), status="interrupted")
    found = written([rs.user("Hi"), died, rs.user("?")], "openai", "gpt-5.6", API)

    assert [item.get("type") for item in found.body["input"]] == [
        None,
        "reasoning",
        "function_call",
        "reasoning",
        None,
    ]
    assert ["id" in item for item in found.body["input"][1:4]] == [True, True, False]
    assert found.left_out == ()


def test_sealed_reasoning_in_a_row_is_sent_as_it_came() -> None:
    """Five thoughts and no word after them were taken so; nothing is invented."""
    thoughts = [
        {"id": f"rs_{n}", "type": "reasoning", "summary": [], "encrypted_content": f"gAAAA{n}"}
        for n in range(5)
    ]
    found = written([rs.user("Hi"), received(thoughts), rs.user("?")], "openai", "gpt-5.6", API)

    bare = [{key: value for key, value in item.items() if key != "id"} for item in thoughts]
    assert found.body["input"][1:6] == bare
    assert refusal(found.body, provider="openai") is None


def test_a_host_that_wants_no_pairs_gets_reasoning_alone() -> None:
    """Servers of open models render it into a prompt."""
    only = rs.assistant(rs.ThinkingBlock(thought="Hm."))

    assert [item["type"] for item in sent(only, provider="vllm")] == ["reasoning"]


def test_parts_of_one_message_are_one_message_again() -> None:
    """Two texts and what they cite, and a refusal is no text."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "4 C", "annotations": [{"type": "url_citation"}]},
            {"type": "output_text", "text": " now.", "annotations": []},
            {"type": "refusal", "refusal": "No."},
        ],
    }
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}

    assert sent(received([reasoning, message])) == [reasoning, message]
    assert [item["content"] for item in sent(received([message]))] == ["4 C", " now.", "No."]


HOSTED = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}}


def test_what_a_hosted_tool_did_goes_back_behind_its_reasoning() -> None:
    """As it came, for it means nothing without its id."""
    message = received([SEALED, HOSTED, *CASE["variants"][1]["nonstream"]["output"]])

    assert sent(message)[:2] == [SEALED, HOSTED]


def test_what_a_hosted_tool_did_goes_back_with_no_reasoning_before_it() -> None:
    """By its id, which recorded requests have without any; other items lose theirs."""
    message = without_thinking(received([SEALED, HOSTED, *CALLING_ITEMS]))
    found = written([message], "openai", "gpt-5.6", API)

    assert found.body["input"][0] == HOSTED
    assert [item.get("id") for item in found.body["input"]] == ["ws_1", None]
    assert found.left_out == ()


def test_deepseek_gets_what_was_said_before_all_calls() -> None:
    """Between a call and its response it refuses a message, of the model's too."""
    calls = [rs.ToolCallBlock(id=name, name="read", arguments="{}") for name in ("a", "b")]
    said = rs.assistant("One.", calls[0], "Two.", calls[1])
    to: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-v4-flash", "api": API}
    request = rs.build_request([rs.user("go"), said, answers(said, "1", "2")], **to)
    kinds = [item.get("type") for item in request.body["input"]]

    assert kinds == [None, *2 * ["message"], *2 * ["function_call"], *2 * ["function_call_output"]]
    assert refusal(request.body, **to) is None
    request.body["input"][2:4] = reversed(request.body["input"][2:4])
    assert "No tool output found" in (refusal(request.body, **to) or "")


CALLING_ITEMS = CASE["variants"][0]["nonstream"]["output"][1:]


def test_no_two_items_have_one_id() -> None:
    """Some servers number the items of each response anew, and duplicates are refused."""
    output = [SEALED, *CALLING_ITEMS, *CASE["variants"][1]["nonstream"]["output"][1:], HOSTED]
    first, again = received(output), received(output)
    items = sent(first, again)
    ids = [item["id"] for item in items if "id" in item]

    assert sent(first) == output
    assert [item["type"] for item in items[4:]] == ["reasoning", "function_call", "message"]
    assert len(ids) == len(set(ids)) == 5


def test_a_compaction_stands_alone() -> None:
    """No reasoning led to it, and without it the history is lost."""
    item = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAA"}

    assert sent(received([item])) == [item]


def test_a_user_says_text_alone_or_parts() -> None:
    """Pictures and files by address or whole; what has no place is named."""
    media = [
        rs.MediaBlock(kind="image", mime_type="image/png", url="https://example.org/a.png"),
        rs.MediaBlock(kind="file", mime_type="application/pdf", data=b"x", name="a.pdf"),
        rs.MediaBlock(kind="file", mime_type="application/pdf", url="https://example.org/a.pdf"),
        rs.MediaBlock(kind="audio", mime_type="audio/wav", data=b"x"),
        rs.MediaBlock(kind="image", mime_type="image/png", ref="blob-7"),
    ]
    found = written([rs.user("Hi"), rs.user("Look", *media)], "openai", "gpt-5.6", API)

    assert found.body["input"] == [
        {"role": "user", "content": "Hi"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": "https://example.org/a.png",
                },
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,eA==",
                },
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            ],
        },
    ]
    assert found.left_out == ("audio", "image")


def test_system_is_instructions_and_later_system_messages_stand_where_they_were() -> None:
    """The protocol takes them anywhere."""
    found = written(
        [rs.user("a"), rs.system("In Norwegian.")], "openai", "gpt-5.6", API, system="Be brief."
    )

    assert found.body["instructions"] == "Be brief."
    assert found.body["input"][1] == {"role": "system", "content": "In Norwegian."}


def test_a_system_prompt_in_items_stands_first() -> None:
    """The protocol's own form goes as it is."""
    own = [{"role": "developer", "content": "Be brief."}]
    found = written([rs.user("a")], "openai", "gpt-5.6", API, system=own)

    assert found.body["input"] == [*own, {"role": "user", "content": "a"}]


def test_tools_are_neutral_or_the_protocol_s_own() -> None:
    """A neutral tool's schema is not taken for a strict one."""
    own: list[Mapping[str, Any]] = [
        {"type": "web_search"},
        {"type": "function", "name": "g", "parameters": {}, "strict": True},
    ]
    tools = [TOOL, {"type": "function", "function": TOOL}, *own]
    neutral = {"type": "function", **TOOL, "strict": False}

    assert written([rs.user("a")], "openai", None, API, tools=tools).body["tools"] == [
        neutral,
        neutral,
        *own,
    ]


# What is asked


@each(
    "provider, model, keeps_nothing",
    [
        ("openai", "gpt-5.6", True),
        ("azure", "my-deployment", True),
        ("xai", "grok-4.3", True),
        ("openai", "gpt-4o", False),
        ("azure", "gpt-4o", False),
        ("mistral", "mistral-medium", False),
        ("vllm", "gpt-oss", False),
        ("openrouter", "openai/gpt-5.6", False),
        (None, "m", False),
    ],
)
def test_a_host_that_can_is_asked_to_keep_nothing(
    provider: str | None, model: str, keeps_nothing: bool
) -> None:
    """The history is ours; what makes reasoning readable again has to come back for that."""
    body = written([rs.user("Hi")], provider, model, API).body

    assert body.get("store", True) is not keeps_nothing
    assert (body.get("include") == ["reasoning.encrypted_content"]) is keeps_nothing


EFFORTS = {
    ("openai", "gpt-6.2-astra"): "- low low medium high xhigh max",
    ("openai", "gpt-6.1-sol"): "- low low medium high xhigh max",
    ("azure", "gpt-6-astra"): "- low low medium high xhigh max",
    ("openai", "gpt-6.1-terra"): "none low low medium high xhigh max",
    ("openai", "gpt-6-luna"): "none low low medium high xhigh max",
    ("azure", "gpt-6-sol"): "none low low medium high xhigh max",
    ("openai", "gpt-5.6"): "none low low medium high xhigh max",
    ("openai", "gpt-5.5-pro"): "- medium medium medium high xhigh xhigh",
    ("openai", "gpt-5.2-pro"): "- medium medium medium high xhigh xhigh",
    ("openai", "gpt-5-pro"): "- high high high high high high",
    ("openai", "gpt-5.2"): "none low low medium high xhigh xhigh",
    ("openai", "gpt-7-sol"): "- low low medium high high high",
    ("openai", None): "- low low medium high high high",
    ("openai", "gpt-5.4-mini"): "none low low medium high xhigh xhigh",
    ("openai", "gpt-5.3-codex"): "- low low medium high xhigh xhigh",
    ("openai", "gpt-5.1"): "none low low medium high high high",
    ("openai", "gpt-5.1-codex"): "- low low medium high high high",
    ("openai", "gpt-5.1-codex-max"): "- low low medium high xhigh xhigh",
    ("openai", "gpt-5-mini"): "- minimal low medium high high high",
    ("openai", "o3"): "- low low medium high high high",
    ("openai", "gpt-4o"): "- - - - - - -",
    ("openai", "gpt-5-chat-latest"): "- - - - - - -",
    ("azure", "my-deployment"): "- low low medium high high high",
    ("xai", "grok-4.3"): "none low low medium high high high",
    ("xai", "grok-4.6"): "- low low medium high high high",
    ("xai", "grok-4.7"): "- low low medium high xhigh xhigh",
    ("xai", "grok-5"): "- low low medium high high high",
    ("xai", "grok-4-fast-reasoning"): "- - - - - - -",
    ("xai", "grok-3-mini"): "- low low high high high high",
    ("deepseek", "deepseek-flash"): "none low low high high high max",
    ("mistral", "mistral-medium-3.5"): "none high high high high high high",
    ("mistral", "codestral-latest"): "- - - - - - -",
    ("vllm", "openai/gpt-oss-20b"): "- low low medium high high high",
    (None, "m"): "- - - - - - -",
}


@each("provider, model", EFFORTS)
def test_effort_is_sent_in_the_parameters_of_the_model(
    provider: str | None, model: str | None
) -> None:
    """The nearest that it knows; what cannot be said is reported."""
    found = []
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max"):
        about = written(
            [rs.user("Hi")], provider, model, API, options=ReasoningOptions(effort=effort)
        )
        said = about.body.get("reasoning", {}).get("effort", "-")
        assert (said == "-") is (about.options_not_sent.without_parameter == ("effort",))
        found.append(said)

    assert " ".join(found) == EFFORTS[provider, model]


def test_who_asks_for_reasoning_asks_to_see_it() -> None:
    """These models reason anyway, and show nothing unasked."""
    assert asks("openai", "gpt-5.6", api=API, enabled=True) == (
        {"reasoning": {"summary": "auto"}},
        (),
    )
    assert asks("azure", "d", api=API, enabled=True)[0] == {"reasoning": {"summary": "auto"}}


def test_reasoning_is_off_where_the_model_has_a_word_for_it() -> None:
    """Elsewhere that is reported."""
    assert asks("openai", "gpt-5.6", api=API, enabled=False) == (
        {"reasoning": {"effort": "none"}},
        (),
    )
    assert asks("openai", "o3", api=API, enabled=False) == ({}, ("enabled",))
    assert asks("openai", "gpt-4o", api=API, enabled=True) == ({}, ("enabled",))


CONTEXTS = {
    ("openai", "gpt-6.2-sol"): ("all_turns", []),
    ("openai", "gpt-6-luna"): ("all_turns", []),
    ("openai", "gpt-5.6-terra"): ("all_turns", []),
    ("openai", "gpt-5.5"): ("all_turns", []),
    ("openai", "gpt-5.4-pro"): ("all_turns", []),
    ("azure", "gpt-5.4-mini"): ("all_turns", []),
    ("openai", "gpt-5.2-pro"): (None, ["earlier_unread"]),
    ("openai", "gpt-5.3-codex"): (None, ["earlier_unread"]),
    ("openai", "gpt-5.2"): (None, ["earlier_unread"]),
    ("openai", "gpt-5.1"): (None, ["earlier_unread"]),
    ("azure", "gpt-5-mini"): (None, ["earlier_unread"]),
    ("openai", "gpt-5-pro"): (None, ["earlier_unread"]),
    ("azure", "o3"): (None, ["earlier_unread"]),
    ("azure", "my-deployment"): (None, []),
    ("openrouter", "openai/gpt-5.6-sol"): ("all_turns", []),
    ("openrouter", "openai/gpt-5.5"): (None, []),
}


@each("provider, model", CONTEXTS)
def test_earlier_turns_are_asked_to_be_read_or_said_to_be_unread(provider: str, model: str) -> None:
    """Only where thoughts of an earlier turn are sent; those of the open turn are always read."""
    origin = rs.Origin(provider=provider, model=model, api=API)
    seal = rs.ThinkingBlock(encrypted="gAAA", source_field="reasoning.encrypted_content")
    loop = [rs.user("a"), rs.assistant(seal, CALL, origin=origin), answers(rs.assistant(CALL), "x")]
    closed = [*loop, rs.assistant("b", origin=origin), rs.user("c")]

    def built(messages: list[rs.Message], **chosen: Any) -> tuple[Any, list[str]]:
        request = rs.build_request(
            messages, provider=provider, model=model, api=API, settings={**KEEP, **chosen}
        )
        return request.body.get("reasoning"), [item.code for item in request.warnings]

    context, codes = CONTEXTS[provider, model]
    assert built(closed) == ({"context": context} if context else None, codes)
    assert built(loop) == (None, [])
    for left_out in ({KEY: False}, {"reasoning.stripFromContext": "priorTurns"}):
        assert built(closed, **left_out) == (None, [])


def test_openrouter_takes_a_budget_in_place_of_an_effort() -> None:
    """One of both: the budget is the more exact."""
    assert asks("openrouter", "m", api=API, budget_tokens=2048, effort="high") == (
        {"reasoning": {"enabled": True, "max_tokens": 2048}},
        ("effort",),
    )
    assert asks("openrouter", "m", api=API, enabled=False)[0] == {"reasoning": {"enabled": False}}


def test_a_budget_is_reported_where_there_is_no_place_for_one() -> None:
    """Nothing is stated in another's words."""
    assert asks("openai", "gpt-5.6", api=API, budget_tokens=2048) == ({}, ("budget_tokens",))


KEY = "reasoning.includeInContext"
KEEP = {KEY: True}


@each(
    "provider, model, plain, sealed, demanded",
    [
        ("openai", "gpt-5.6", "no_place", "kept", "required"),
        ("openai", "gpt-4o", "no_place", "no_place", "no_place"),
        ("azure", "d", "no_place", "kept", "required"),
        ("xai", "grok-4.3", "no_place", "kept", "include"),
        ("mistral", "mistral-medium", "kept", "kept", "include"),
        ("vllm", "gpt-oss", "kept", "origin", "origin"),
        ("openrouter", "m", "kept", "kept", "required"),
        (None, "m", "kept", "kept", "include"),
    ],
)
def test_what_goes_back_is_the_host_s_rule(
    provider: str | None, model: str, plain: str, sealed: str, demanded: str
) -> None:
    """Plain reasoning, ciphertext that says which field it came from, and an open loop."""
    seal = rs.ThinkingBlock(encrypted="gAAA", source_field="reasoning.encrypted_content")
    history = [rs.user("a"), rs.assistant(rs.ThinkingBlock(thought="Hm."), seal, "b"), rs.user("c")]
    loop = [rs.user("a"), rs.assistant(seal, CALL), answers(rs.assistant(CALL), "x")]

    def rules(messages: list[rs.Message], settings: dict[str, Any]) -> list[str]:
        found = rs.select(messages, provider=provider, model=model, api=API, settings=settings)
        return [verdict.rule for verdict in found.verdicts]

    assert rules(history, KEEP) == [plain, sealed]
    assert rules(loop, {}) == [demanded]


# What holds for every conversation


def check(items: list[dict[str, Any]]) -> None:
    """The rules of the protocol that a conversation can break."""
    called = [i["call_id"] for i in items if i.get("type", "").endswith("_call")]
    answered = [i["call_id"] for i in items if i.get("type", "").endswith("_output")]
    assert sorted(called) == sorted(answered)
    behind, reasoned = "", False
    for item in [*items, {"role": "user"}]:
        kind = item.get("type", "message")
        by_model = item.get("role", "assistant") == "assistant" and not kind.endswith("_output")
        assert by_model or behind != "reasoning"
        reasoned = by_model and (reasoned or kind == "reasoning")
        assert reasoned or kind == "compaction" or "id" not in item
        behind = kind if "id" in item else ""


def without_repeated(messages: list[rs.Message]) -> list[rs.Message]:
    """The same without raw blocks but for the first: they are all one item."""
    raw = (block for message in messages for block in message.blocks if block.type == "raw")
    first = next(raw, None)
    return [
        replace(m, blocks=tuple(b for b in m.blocks if b.type != "raw" or b is first))
        for m in messages
    ]


@given(conversations(API, "openai", "gpt-5.6"))
def test_any_conversation_keeps_the_rules_of_the_protocol(messages: list[rs.Message]) -> None:
    """Reasoning is followed by what it led to, calls by answers, and no seal is touched."""
    messages = without_repeated(messages)
    body = written(messages, "openai", "gpt-5.6", API, tools=[TOOL]).body
    check(body["input"])
    seals = [
        block.encrypted
        for message in messages
        for block in message.blocks
        if isinstance(block, rs.ThinkingBlock) and block.encrypted
    ]

    assert [
        item["encrypted_content"]
        for item in body["input"]
        if item.get("type") == "reasoning" and "encrypted_content" in item
    ] == seals


@given(conversations(API, "openai", "gpt-5.6"), st.sampled_from(["openai", "vllm"]))
def test_the_sdk_s_types_accept_every_body(messages: list[rs.Message], provider: str) -> None:
    """The official SDK's own types of a request, read to the end.

    They want an id of reasoning, and the service takes a seal without one.
    """
    body = written(messages, provider, "gpt-5.6", API, tools=[TOOL], system="Be brief.").body
    body["input"] = [
        {"id": "", **item} if item.get("type") == "reasoning" else item for item in body["input"]
    ]

    assert len(drained(SDK.validate_python(body))["input"]) == len(body["input"])
