"""Requests of Gemini's generateContent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.wire.gemini import writer as gemini_requests
from reasoning_store.wire.message_writer import Written
from tests.properties import each
from tests.wire.writing import TOOL, answers, asks, case, conversations, reply, weather, written

MODEL = "gemini-3.8-flash"
CASE = case("gemini_generate_content")
CALLING, SPEAKING = (reply(CASE, n) for n in range(2))
EGRESS = CASE["variants"][0]["egress"]
DUMMY = "skip_thought_signature_validator"

CALL = rs.ToolCallBlock(id="call_1", name="f", parameters={"x": 1})


def sent(*messages: rs.Message, owed: bool = False, model: str = MODEL) -> list[Any]:
    found: list[Any] = written(messages, "google", model, owed=owed).body["contents"]
    return found


def without_thinking(message: rs.Message) -> rs.Message:
    blocks = tuple(b for b in message.blocks if not isinstance(b, rs.ThinkingBlock))
    return replace(message, blocks=blocks)


def leaves_the_sdk(found: Written) -> Any:
    """What the official client sends of a request."""
    seen: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.content)
        return httpx.Response(200, json={"candidates": []})

    client = httpx.Client(transport=httpx.MockTransport(handler))
    options = types.HttpOptions(httpx_client=client)
    models = genai.Client(api_key="k", http_options=options).models
    models.generate_content(
        **{**gemini_requests.sdk_arguments(found.body), **found.address_arguments}
    )
    return json.loads(seen[0])


def test_a_recorded_tool_loop_goes_back_as_it_came() -> None:
    """The seal on the first call and nowhere else; thoughts go where they were kept."""
    loop = (rs.user("Weather in Oslo?"), CALLING, answers(CALLING, "4 C", "7 C"))
    without = [without_thinking(item) for item in loop]

    assert sent(*without) == EGRESS["tool_loop_messages"]
    assert sent(*loop)[1] == CASE["variants"][0]["nonstream"]["candidates"][0]["content"]


def test_a_finished_turn_goes_back_with_all_its_thoughts() -> None:
    """Each part as it came, its seal on it."""
    found = sent(*weather(CALLING, without_thinking(SPEAKING), "4 C", "7 C"))

    assert found == EGRESS["next_turn_include"]


def test_a_finished_turn_without_thoughts_keeps_its_seals() -> None:
    """A seal on a call or a text is not reasoning."""
    turn = [without_thinking(item) for item in weather(CALLING, SPEAKING, "4 C", "7 C")]
    expected = [dict(content) for content in EGRESS["next_turn_strip"]]
    expected[3] = EGRESS["next_turn_include"][3]

    assert sent(*turn) == expected


@pytest.mark.parametrize("variant", [0, 1])
def test_what_was_received_is_what_is_returned(variant: int) -> None:
    """Every recorded reply comes back as the content that it was."""
    received = CASE["variants"][variant]["nonstream"]["candidates"][0]["content"]

    assert sent(rs.user("Hi"), reply(CASE, variant))[1] == received


def test_a_seal_that_came_alone_goes_back_with_the_text_before_it() -> None:
    """Streams send it in a last part without text."""
    normalizer = rs.StreamNormalizer(provider="google", model=MODEL)
    for event in CASE["variants"][1]["stream"]:
        normalizer.feed(event)

    assert sent(rs.user("Hi"), normalizer.finish())[1]["parts"][1] == {
        "text": "It is 4 C in Oslo.",
        "thoughtSignature": "c2lnLWRlZg==",
    }


def test_a_seal_without_text_is_a_part_of_its_own() -> None:
    """Text that is empty and says nothing more is none."""
    sealed = rs.TextBlock(text="", provider_metadata={"thoughtSignature": "c2ln"})
    found = sent(rs.user("Hi", ""), rs.assistant("", sealed))

    assert [content["parts"] for content in found] == [
        [{"text": "Hi"}],
        [{"text": "", "thoughtSignature": "c2ln"}],
    ]


def test_a_sealed_thought_keeps_its_seal() -> None:
    """On the part that it came on."""
    thought = rs.ThinkingBlock(thought="Hm.", signature="c2ln")

    assert sent(rs.user("Hi"), rs.assistant(thought, "4 C"))[1]["parts"][0] == {
        "text": "Hm.",
        "thought": True,
        "thoughtSignature": "c2ln",
    }


def test_a_call_that_owes_a_seal_gets_the_documented_word_for_it() -> None:
    """Only the first call of a step, and never over a seal that is there."""
    other = replace(CALL, id="call_2")
    sealed = replace(CALL, provider_metadata={"thoughtSignature": "c2ln"})

    def seals(*calls: rs.ToolCallBlock, owed: bool, model: str = MODEL) -> list[str | None]:
        found = sent(rs.user("Hi"), rs.assistant(*calls), owed=owed, model=model)
        return [part.get("thoughtSignature") for part in found[1]["parts"]]

    assert seals(CALL, other, owed=True) == [DUMMY, None]
    assert seals(sealed, other, owed=True) == ["c2ln", None]
    assert seals(CALL, other, owed=False) == [None, None]


SERVICES = ("google", "vertex")
DEMANDING = {
    "gemini-3-pro-preview": True,
    "gemini-3.1-pro-preview": True,
    "gemini-3.5-flash": True,
    MODEL: True,
    "gemini-2.5-pro": False,
    "gemini-2.5-flash": False,
    "gemini-2.0-flash": False,
}


@each("provider", SERVICES)
@each("model", DEMANDING)
def test_the_open_turn_is_sealed_where_the_model_demands_it(provider: str, model: str) -> None:
    """A loop that another model began can be gone on with."""
    loop = [rs.user("Hi"), rs.assistant(CALL), answers(rs.assistant(CALL), "x")]
    body = rs.build_request(loop, provider=provider, model=model).body

    assert (body["contents"][1]["parts"][0].get("thoughtSignature") == DUMMY) is DEMANDING[model]


def test_calls_and_answers_have_one_name_and_no_id_that_was_made_here() -> None:
    """A call that came without an id goes back without one."""
    content = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    message = rs.normalize_response({"candidates": [{"content": content}]}, provider="google")
    answer = rs.ToolResponseBlock(call_id=message.tool_calls[0].id, result="x")
    found = sent(rs.user("Hi"), message, rs.tool(answer))

    assert found[1] == content
    assert found[2]["parts"] == [{"functionResponse": {"name": "f", "response": {"result": "x"}}}]


def test_an_answer_is_named_like_the_call_before_it() -> None:
    """One id may name another call in another turn."""
    other = replace(CALL, name="g")
    wrong = rs.tool(rs.ToolResponseBlock(call_id="call_1", tool_name="h", result=1))
    found = sent(rs.user("Hi"), rs.assistant(CALL), wrong, rs.assistant(other), wrong)

    assert [found[n]["parts"][0]["functionResponse"]["name"] for n in (2, 4)] == ["f", "g"]


def test_an_answer_is_an_object_whatever_the_tool_gave() -> None:
    """The value stands under result, or under error."""
    given = [
        rs.ToolResponseBlock(call_id="a", tool_name="f", result={"t": 4}),
        rs.ToolResponseBlock(call_id="b", tool_name="f", result="boom", is_error=True),
    ]
    found = sent(rs.tool(*given), rs.user("Hi"))

    assert [part.get("functionResponse", {}).get("response") for part in found[0]["parts"]] == [
        {"result": {"t": 4}},
        {"error": "boom"},
        None,
    ]


def test_messages_of_one_side_become_one_in_their_order() -> None:
    """The user begins, and answers stand before what else the user says."""
    found = sent(
        rs.assistant("a"),
        rs.assistant(CALL),
        rs.user("b"),
        answers(rs.assistant(CALL), "x"),
        rs.system("c"),
    )

    assert [content["role"] for content in found] == ["user", "model", "user"]
    assert [list(part) for part in found[2]["parts"]] == [["functionResponse"], ["text"], ["text"]]


def test_media_go_by_their_bytes_or_their_address() -> None:
    """Any kind, from either side, with what was said next to it."""
    about = {"videoMetadata": {"fps": 1}}
    film = rs.MediaBlock(
        kind="video", mime_type="video/mp4", url="gs://b/k", provider_metadata=about
    )
    picture = rs.MediaBlock(kind="image", mime_type="image/png", data=b"x")
    nameless = rs.MediaBlock(kind="image", mime_type="image/png", ref="blob-7")
    found = written([rs.user(film, nameless), rs.assistant(picture)], "google", MODEL)

    assert found.body["contents"] == [
        {
            "role": "user",
            "parts": [{"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/k"}, **about}],
        },
        {
            "role": "model",
            "parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}],
        },
    ]
    assert found.left_out == ("image",)


def test_what_a_server_side_tool_did_goes_back_as_it_came() -> None:
    """What was said of the candidate and not by it has no place."""
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ]
    candidate = {"content": {"parts": parts}, "groundingMetadata": {"webSearchQueries": ["x"]}}
    message = rs.normalize_response({"candidates": [candidate]}, provider="google")
    found = written([rs.user("Hi"), message], "google", MODEL)

    assert found.body["contents"][1]["parts"] == parts
    assert found.left_out == ("raw",)


def test_what_a_text_is_grounded_on_stays_home() -> None:
    """It was said of a whole candidate; a part has no place for it."""
    candidate = {
        "content": {"parts": [{"text": "4 C"}]},
        "groundingMetadata": {"webSearchQueries": ["x"]},
    }
    message = rs.normalize_response({"candidates": [candidate]}, provider="google")

    assert sent(rs.user("Hi"), message)[1]["parts"] == [{"text": "4 C"}]


def test_system_and_tools_have_places_of_their_own() -> None:
    """Functions in one tool, other tools and the protocol's own forms as they are."""
    own: list[Mapping[str, Any]] = [
        {"googleSearch": {}},
        {"name": "g", "parametersJsonSchema": {}},
        {"name": "h"},
    ]
    found = written(
        [rs.system("Be kind."), rs.user("Hi")],
        "google",
        MODEL,
        system={"parts": [{"text": "Be brief."}]},
        tools=[TOOL, *own],
    )
    declared = {
        "name": TOOL["name"],
        "description": TOOL["description"],
        "parametersJsonSchema": TOOL["parameters"],
    }

    assert found.body["systemInstruction"] == {
        "parts": [{"text": "Be brief."}, {"text": "Be kind."}]
    }
    assert found.body["tools"] == [{"functionDeclarations": [declared, *own[1:]]}, own[0]]
    assert written([rs.user("Hi")], "google", system="Be brief.").body["systemInstruction"] == {
        "parts": [{"text": "Be brief."}]
    }


def test_the_model_is_in_the_address_and_not_in_the_body() -> None:
    """The SDK takes it by its own name."""
    found = written([rs.user("Hi")], "google", MODEL)

    assert found.address_arguments == {"model": MODEL}
    assert found.body == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert written([rs.user("Hi")], "google").address_arguments == {}


SPELT = [
    rs.assistant(rs.TextBlock(text="x", provider_metadata={"thoughtSignature": "+/+/"})),
    rs.assistant(rs.TextBlock(text="x", provider_metadata={"thoughtSignature": "not base64"})),
    rs.assistant(rs.ThinkingBlock(thought="x", signature="c2ln"), CALL),
    rs.user(rs.MediaBlock(kind="image", mime_type="image/png", data=b"\xff\xfe\xfd")),
    rs.user("x"),
]


@each("message", SPELT)
@each("tools", [None, [TOOL]])
@each("system", [None, "Be brief."])
def test_what_leaves_the_sdk_is_the_body(message: rs.Message, tools: Any, system: Any) -> None:
    """Names and base64 in the body's own letters, which the SDK would spell otherwise."""
    found = written([rs.user("Hi"), message], "google", MODEL, tools=tools, system=system)

    assert leaves_the_sdk(found) == found.body


# What is asked of reasoning


def thinking(provider: str, model: str, **asked: Any) -> tuple[Any, tuple[str, ...]]:
    about, unsaid = asks(provider, model, **asked)
    return about.get("generationConfig", {}).get("thinkingConfig"), unsaid


LEVELS = {
    "gemini-3-pro-preview": "LOW LOW HIGH HIGH HIGH HIGH",
    "gemini-3.1-pro-preview": "LOW LOW MEDIUM HIGH HIGH HIGH",
    "gemini-3-flash-preview": "MINIMAL LOW MEDIUM HIGH HIGH HIGH",
    "gemini-3.5-flash": "MINIMAL LOW MEDIUM HIGH HIGH HIGH",
    "gemini-3.6-flash": "MINIMAL LOW MEDIUM HIGH HIGH HIGH",
    "gemini-3.7-flash": "LOW LOW MEDIUM HIGH HIGH HIGH",
    MODEL: "LOW LOW MEDIUM HIGH HIGH HIGH",
    "gemini-4-argon": "LOW LOW MEDIUM HIGH HIGH HIGH",
}
BUDGETS = {
    "gemini-2.5-pro": (1024, 1024, 8192, 24576, 32768, 32768),
    "gemini-2.5-flash-lite": (1024, 1024, 8192, 24576, 24576, 24576),
}
OURS = ("minimal", "low", "medium", "high", "xhigh", "max")


@each("provider", SERVICES)
@each("model", LEVELS)
def test_effort_is_a_level_from_gemini_3_on(provider: str, model: str) -> None:
    """The nearest that the model knows, and never a budget next to it."""
    found = [thinking(provider, model, effort=effort)[0] for effort in OURS]

    assert found == [{"thinkingLevel": level} for level in LEVELS[model].split()]
    assert thinking(provider, model, budget_tokens=2048) == (None, ("budget_tokens",))


@pytest.mark.parametrize("provider", SERVICES)
@pytest.mark.parametrize("model", BUDGETS)
def test_effort_is_a_budget_before_gemini_3(provider: str, model: str) -> None:
    """As Google's own endpoint for the other SDK translates it; showing thoughts goes along."""
    found = [thinking(provider, model, effort=effort)[0] for effort in OURS]

    assert [config["thinkingBudget"] for config in found] == list(BUDGETS[model])


@each(
    "model, asked, config, unsaid",
    [
        (MODEL, {"enabled": True}, {"includeThoughts": True}, ()),
        (MODEL, {"enabled": False}, None, ("enabled",)),
        (MODEL, {"effort": "none"}, None, ("effort",)),
        ("gemini-2.5-flash", {"enabled": False}, {"thinkingBudget": 0}, ()),
        ("gemini-2.5-flash", {"effort": "none"}, {"thinkingBudget": 0}, ()),
        ("gemini-2.5-flash", {"budget_tokens": 0}, {"thinkingBudget": 0}, ()),
        ("gemini-2.5-flash", {"budget_tokens": 99999}, None, ("budget_tokens",)),
        ("gemini-2.5-pro", {"enabled": False}, None, ("enabled",)),
        ("gemini-2.5-pro", {"budget_tokens": 0}, None, ("budget_tokens",)),
        ("gemini-2.5-pro", {"budget_tokens": 64}, None, ("budget_tokens",)),
        ("gemini-2.0-flash", {"enabled": True}, None, ("enabled",)),
        ("gemini-2.0-flash", {"effort": "low"}, None, ("effort",)),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(
    model: str, asked: dict[str, Any], config: Any, unsaid: tuple[str, ...]
) -> None:
    """Only some can be switched off; what cannot be said is reported."""
    assert thinking("google", model, **asked) == (config, unsaid)


def test_an_unknown_host_is_asked_nothing_and_gets_thoughts_back() -> None:
    """Its protocol has a place for them."""
    api = "gemini.generate_content"
    assert asks("other", "m", api=api, enabled=True, effort="low") == ({}, ("enabled", "effort"))
    sealed = rs.ThinkingBlock(thought="Hm.", signature="c2ln", source_field="thought")
    selection = rs.select(
        [rs.user("Hi"), rs.assistant(sealed, "Ho")],
        provider="other",
        api=api,
        settings={"reasoning.includeInContext": True},
    )

    assert [verdict.rule for verdict in selection.verdicts] == ["kept"]


def test_the_two_services_of_google_refuse_each_other_s_seals() -> None:
    """What was sealed on the one is not sent to the other."""
    made = rs.Origin(provider="vertex", model=MODEL)
    sealed = rs.ThinkingBlock(thought="Hm.", signature="c2ln", source_field="thought")
    settings = {"reasoning.includeInContext": True}
    rules = [
        rs.select(
            [rs.user("Hi"), rs.assistant(sealed, "Ho", origin=made)],
            provider=provider,
            model=MODEL,
            settings=settings,
        )
        .verdicts[0]
        .rule
        for provider in ("google", "vertex")
    ]

    assert rules == ["origin", "kept"]


# What holds for every conversation


def check(contents: list[dict[str, Any]]) -> None:
    """The rules of the protocol that a conversation can break."""
    assert [content["role"] for content in contents][:1] in ([], ["user"])
    assert all(one["role"] != other["role"] for one, other in pairwise(contents))
    due: list[str] = []
    for content in contents:
        parts = content["parts"]
        assert parts
        given = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        assert sorted(given) == sorted(due)
        assert all("functionResponse" in part for part in parts[: len(given)])
        assert all(part.get("text", "x") or "thoughtSignature" in part for part in parts)
        due = [part["functionCall"]["name"] for part in parts if "functionCall" in part]


def seals(messages: list[rs.Message]) -> list[str]:
    return [
        seal
        for message in messages
        for block in message.blocks
        if (
            seal := block.signature
            if isinstance(block, rs.ThinkingBlock)
            else (block.provider_metadata or {}).get("thoughtSignature")
        )
    ]


@given(
    conversations("gemini.generate_content", "google", MODEL),
    st.sampled_from([MODEL, "gemini-2.5-flash"]),
)
def test_any_conversation_keeps_the_rules_of_the_protocol(
    messages: list[rs.Message], model: str
) -> None:
    """Sides alternate, answers follow their calls, nothing is empty, no seal is touched, and
    the SDK's types accept it."""
    found = written(messages, "google", model, tools=[TOOL], system="Be brief.")
    contents = found.body["contents"]
    check(contents)
    types.GenerateContentConfig.model_validate(
        {"systemInstruction": found.body["systemInstruction"], "tools": found.body["tools"]}
    )
    for content in gemini_requests.sdk_arguments(found.body)["contents"]:
        types.Content.model_validate(content)

    assert [
        part["thoughtSignature"]
        for content in contents
        for part in content["parts"]
        if "thoughtSignature" in part
    ] == seals(messages)


@pytest.mark.parametrize(
    "to",
    [
        {"api": "gemini.interactions"},
        {"api": "interactions"},
        {"base_url": "https://generativelanguage.googleapis.com/v1beta/interactions"},
    ],
    ids=lambda to: next(iter(to.values())),
)
def test_a_request_of_the_interactions_api_is_refused_by_name(to: dict[str, Any]) -> None:
    """It is read and not written; no other protocol's body is sent in its place."""
    with pytest.raises(rs.InvalidCall, match=r"gemini\.interactions is read") as caught:
        rs.build_request([rs.user("Hi")], provider="google", model="gemini-3-pro", **to)

    assert "gemini.generate_content" in (caught.value.hint or "")


@pytest.mark.parametrize("sent_as", ["gemini.generate_content", "gemini.interactions"])
def test_a_session_recorded_from_interactions_goes_on_in_the_protocol_that_is_written(
    sent_as: str,
) -> None:
    """Without names its requests are generateContent's, imported from an older export as well."""
    events = [
        {"event_type": "interaction.created", "interaction": {"id": "i", "model": "gemini-3-pro"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hello"}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {"id": "i"}},
    ]
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(rs.user("Hi"))
        list(
            session.record(
                events, provider="google", model="gemini-3-pro", api="gemini.interactions"
            )
        )
        lines = [
            line.replace('"api":"gemini.generate_content"', f'"api":"{sent_as}"')
            for line in store.export_lines()
        ]
    with rs.Store("sqlite://") as store:
        store.import_lines(lines)
        session = store.session("s")
        request = session.build_request()

    assert request.target == rs.Origin(
        provider="google", api="gemini.generate_content", model="gemini-3-pro"
    )
    assert [item["role"] for item in request.body["contents"]] == ["user", "model"]
