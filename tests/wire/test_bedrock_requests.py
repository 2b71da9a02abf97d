"""Requests in Bedrock's Converse protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

# botocore has no types of its own.
import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.testing import refusal
from reasoning_store.wire.bedrock import writer as bedrock_requests
from reasoning_store.wire.message_writer import Written
from reasoning_store.wire.reasoning_options import ReasoningOptions
from tests.properties import each
from tests.wire.writing import TOOL, answers, asks, case, conversations, reply, weather, written

CLAUDE = "us.anthropic.claude-opus-4-6-v1:0"
CASE = case("bedrock_converse")
CALLING = reply(CASE, 0, CLAUDE)
FIELDS = "additionalModelRequestFields"

CALL = rs.ToolCallBlock(id="tu_1", name="get_weather", parameters={"city": "Oslo"})
SIGNED = rs.ThinkingBlock(thought="Hm.", signature="c2ln")
LOOP = (rs.user("Weather?"), rs.assistant(SIGNED, CALL), answers(rs.assistant(CALL), "4 C"))


@cache
def converse() -> Any:
    service = botocore.session.Session().get_service_model("bedrock-runtime")
    return service.operation_model("Converse").input_shape


def arguments(found: Written) -> dict[str, Any]:
    return {**found.address_arguments, **bedrock_requests.sdk_arguments(found.body)}


def accepted(found: Written) -> None:
    """Have the SDK's own model of the service read a request's arguments."""
    report = ParamValidator().validate({"modelId": CLAUDE, **arguments(found)}, converse())
    assert not report.has_errors(), report.generate_report()


def sent(*messages: rs.Message, model: str = CLAUDE) -> list[Any]:
    found: list[Any] = written(messages, "aws", model).body["messages"]
    return found


def plain(value: Any) -> Any:
    """A recorded shape with its marked bytes as the base64 that JSON has."""
    if isinstance(value, Mapping):
        marked = value.get("$bytes_b64")
        return marked or {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_a_recorded_tool_loop_goes_back_as_it_came() -> None:
    """Thought and signature, redacted bytes and call, in order and unmodified."""
    loop = (rs.user("Weather in Oslo?"), CALLING, answers(CALLING, "4 C"))

    assert sent(*loop) == plain(CASE["variants"][0]["egress"]["tool_loop_messages"])


def test_the_sdk_takes_bytes_where_the_json_has_base64() -> None:
    """Redacted thinking, pictures and what tools show; a tool's own input is not touched."""
    picture = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89P")
    call = replace(CALL, parameters={"image": {"source": {"bytes": "AAAA"}}})
    found = written([rs.user("Hi", picture), CALLING, rs.assistant(call)], "aws", CLAUDE)
    first, second = arguments(found)["messages"]

    assert first["content"][1]["image"]["source"] == {"bytes": b"\x89P"}
    assert second["content"][1] == {"reasoningContent": {"redactedContent": b"ENC"}}
    assert second["content"][3]["toolUse"]["input"] == call.parameters


def test_the_model_is_in_the_address_and_not_in_the_body() -> None:
    """The SDK takes it by its own name."""
    found = written([rs.user("Hi")], "aws", CLAUDE)

    assert found.address_arguments == {"modelId": CLAUDE}
    assert found.body == {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    assert written([rs.user("Hi")], "aws").address_arguments == {}


def test_an_omitted_thought_keeps_its_empty_text() -> None:
    """The text is required, the signature is what counts."""
    omitted = rs.ThinkingBlock(thought="", signature="c2ln")

    assert sent(rs.user("Hi"), rs.assistant(omitted, "4 C"))[1]["content"][0] == {
        "reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}
    }


def test_an_unsigned_thought_has_no_signature() -> None:
    """Other makers' models sign nothing, and an empty signature is none."""
    found = sent(rs.user("Hi"), rs.assistant(rs.ThinkingBlock(thought="Hm.")), model="amazon.nova")

    assert found[1]["content"] == [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}]


@each(
    "model, thought, rule",
    [
        (CLAUDE, rs.ThinkingBlock(thought="Hm."), "unsigned"),
        ("us.deepseek.r1-v1:0", rs.ThinkingBlock(thought="Hm."), "no_place"),
        ("openai.gpt-oss-120b-1:0", rs.ThinkingBlock(thought="Hm."), "kept"),
        ("openai.gpt-oss-120b-1:0", SIGNED, "origin"),
        ("amazon.nova-2-lite-v1:0", rs.ThinkingBlock(thought="Hm."), "kept"),
        ("anthropic.claude-3-haiku-20240307-v1:0", SIGNED, "origin"),
    ],
)
def test_what_a_model_takes_back_is_its_maker_s_rule(
    model: str, thought: rs.ThinkingBlock, rule: str
) -> None:
    """Claude wants signatures, DeepSeek refuses its own thoughts, others take them plain."""
    selection = rs.select(
        [rs.user("Hi"), rs.assistant(thought, "Ho")],
        provider="aws",
        model=model,
        settings={"reasoning.includeInContext": True},
    )

    assert [verdict.rule for verdict in selection.verdicts] == [rule]


@pytest.mark.parametrize("field", ["reasoningText", "redactedContent"])
def test_a_sealed_thought_without_an_origin_is_known_by_its_field(field: str) -> None:
    """The field it came from belongs to this protocol."""
    sealed = rs.ThinkingBlock(
        encrypted="RU5D", redacted=True, source_field=f"reasoningContent.{field}"
    )
    verdicts = [
        rs.select(
            [rs.user("Hi"), rs.assistant(sealed, "Ho")],
            provider="aws",
            model=model,
            settings={"reasoning.includeInContext": True},
        ).verdicts[0]
        for model in (CLAUDE, "openai.gpt-oss-120b-1:0", "amazon.nova-2-lite-v1:0")
    ]

    assert [verdict.rule for verdict in verdicts] == ["kept", "kept", "kept"]


def test_answers_stand_first_and_say_what_they_are() -> None:
    """A string as it is, a value as JSON, nothing as nothing, an error with a word."""
    given = [
        rs.ToolResponseBlock(call_id="a", result="4 C"),
        rs.ToolResponseBlock(call_id="b", result=[4]),
        rs.ToolResponseBlock(call_id="c", result=" "),
        rs.ToolResponseBlock(call_id="d", result="", is_error=True),
    ]
    found = sent(rs.user("Hi"), rs.tool(*given))

    assert [part.get("toolResult") for part in found[0]["content"]] == [
        {"toolUseId": "a", "content": [{"text": "4 C"}]},
        {"toolUseId": "b", "content": [{"text": "[4]"}]},
        {"toolUseId": "c", "content": []},
        {"toolUseId": "d", "content": [{"text": "error"}], "status": "error"},
        None,
    ]


def test_ids_that_are_refused_are_replaced_in_call_and_answer_alike() -> None:
    """No dots, no colons, no more than 64 characters."""
    for bad in ("functions.f:0", "x" * 65):
        call = replace(CALL, id=bad)
        loop = [rs.user("Hi"), rs.assistant(call), answers(rs.assistant(call), "4 C")]
        found = rs.build_request(loop, provider="aws", model=CLAUDE).body["messages"]
        new = found[1]["content"][0]["toolUse"]["toolUseId"]

        assert new == found[2]["content"][0]["toolResult"]["toolUseId"]
        assert new.replace("_", "").isalnum()
        assert len(new) <= 64


@pytest.mark.parametrize(
    "model", [CLAUDE, "us.deepseek.r1-v1:0", "openai.gpt-oss-20b", "amazon.nova-lite", None]
)
def test_every_row_of_the_service_knows_the_form_of_its_ids(model: str | None) -> None:
    """The one who made the model, the service checks them."""
    provider = "aws" if model else None
    call = replace(CALL, id="functions.f:0")
    loop = [rs.user("Hi"), rs.assistant(call), answers(rs.assistant(call), "4 C")]
    request = rs.build_request(loop, provider=provider, model=model, api="bedrock.converse")
    use = request.body["messages"][1]["content"][0]["toolUse"]

    assert use["toolUseId"].startswith("rs_call_")


def test_media_have_the_service_s_formats() -> None:
    """Bytes, places in S3, and documents by a name in the letters that are taken."""
    media = [
        rs.MediaBlock(kind="image", mime_type="image/jpeg", data=b"x"),
        rs.MediaBlock(kind="video", mime_type="video/quicktime", url="s3://b/k"),
        rs.MediaBlock(kind="file", mime_type="application/pdf", data=b"x", name="a_b.pdf"),
        rs.MediaBlock(kind="file", mime_type="text/plain", data=b"x"),
    ]
    found = written([rs.user("Hi", *media)], "aws", CLAUDE)

    accepted(found)
    assert found.body["messages"][0]["content"][1:] == [
        {"image": {"format": "jpeg", "source": {"bytes": "eA=="}}},
        {"video": {"format": "mov", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        {"document": {"format": "pdf", "source": {"bytes": "eA=="}, "name": "a b pdf 1"}},
        {"document": {"format": "txt", "source": {"bytes": "eA=="}, "name": "document 2"}},
    ]


@pytest.mark.parametrize(
    ("medium", "kind"),
    [
        (rs.MediaBlock(kind="image", mime_type="image/png", url="https://example.org"), "image"),
        (rs.MediaBlock(kind="image", mime_type="image/svg+xml", data=b"x"), "image"),
        (rs.MediaBlock(kind="file", mime_type="application/zip", data=b"x"), "file"),
    ],
)
def test_media_without_a_place_are_left_out_and_named(medium: rs.MediaBlock, kind: str) -> None:
    """The service fetches nothing from the web, and knows its formats."""
    assert written([rs.user("Hi", medium)], "aws", CLAUDE).left_out == (kind,)


def test_what_was_kept_whole_goes_back_whole() -> None:
    """A block that we have no block for, its bytes as base64 again, and what a text cites."""
    content = [
        {"guardContent": {"image": {"format": "png", "source": {"bytes": b"\x89P"}}}},
        {"citationsContent": {"content": [{"text": "4 C"}], "citations": [{"title": "yr"}]}},
    ]
    message = rs.normalize_response(
        {"output": {"message": {"role": "assistant", "content": content}}},
        provider="aws",
        model=CLAUDE,
    )
    found = written([rs.user("Hi"), message], "aws", CLAUDE)
    image = {"format": "png", "source": {"bytes": "iVA="}}

    assert found.body["messages"][1]["content"] == [{"guardContent": {"image": image}}, content[1]]
    assert arguments(found)["messages"][1]["content"] == content


def test_bytes_that_are_none_are_left_to_the_service() -> None:
    """Making a request never fails for what stands in a block."""
    sealed = rs.ThinkingBlock(encrypted="not base64!", redacted=True)
    found = written([rs.user("Hi"), rs.assistant(sealed)], "aws", CLAUDE)

    assert arguments(found)["messages"][1]["content"] == [
        {"reasoningContent": {"redactedContent": "not base64!"}}
    ]


def test_system_and_tools_have_places_of_their_own() -> None:
    """Neutral, in the envelope of Chat Completions, or in the service's own form."""
    own = {"cachePoint": {"type": "default"}}
    found = written(
        [rs.system("Be kind."), rs.user("Hi")],
        "aws",
        CLAUDE,
        system=[{"text": "Be brief."}, own],
        tools=[TOOL, own],
    )
    spec = {
        "name": TOOL["name"],
        "description": TOOL["description"],
        "inputSchema": {"json": TOOL["parameters"]},
    }

    accepted(found)
    assert found.body["system"] == [{"text": "Be brief."}, own, {"text": "Be kind."}]
    assert found.body["toolConfig"] == {"tools": [{"toolSpec": spec}, own]}


def test_a_conversation_with_calls_brings_the_tools_that_it_calls() -> None:
    """Without any the service refuses the calls."""
    found = written(LOOP, "aws", CLAUDE)
    schema = {"json": {"type": "object", "properties": {}}}

    assert found.body["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "get_weather", "inputSchema": schema}}]
    }


# What is asked of reasoning


def test_a_typed_call_is_answered_and_sent_back_with_a_servers_call() -> None:
    """Only `server_tool_use` is answered by Bedrock, in the model's own message."""
    server = {"toolUseId": "srv_1", "name": "nova_code_interpreter", "type": "server_tool_use"}
    content = [
        {"toolUse": {**server, "input": {"code": "1"}}},
        {"toolResult": {"toolUseId": "srv_1", "content": [{"json": {"exitCode": 0}}]}},
        {
            "toolUse": {
                "toolUseId": "tooluse_1",
                "name": "get_weather",
                "input": {"city": "Oslo"},
                "type": "tool_use",
            }
        },
    ]
    body = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
    }
    said = rs.normalize_response(body, provider="aws", model=CLAUDE)
    answer = rs.ToolResponseBlock(call_id="tooluse_1", tool_name="get_weather", result="4 C")

    request = rs.build_request(
        [rs.user("Weather?"), said, rs.tool(answer)], provider="aws", model=CLAUDE, tools=[TOOL]
    )

    assert request.warnings == ()
    sent_back, answered = request.body["messages"][1:]
    assert [next(iter(part)) for part in sent_back["content"]] == [
        "toolUse",
        "toolResult",
        "toolUse",
    ]
    assert answered["content"] == [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "4 C"}]}}
    ]
    assert refusal(request.body, provider="aws", model=CLAUDE) is None


MANUAL = {"type": "enabled", "budget_tokens": 4096}
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
ON = {
    "anthropic.claude-fable-5-1": ADAPTIVE,
    "anthropic.claude-opus-5-5": ADAPTIVE,
    CLAUDE: ADAPTIVE,
    "anthropic.claude-opus-4-5-20251101-v1:0": MANUAL,
    "eu.anthropic.claude-sonnet-4-5-20250929-v1:0": MANUAL,
    "anthropic.claude-3-7-sonnet-20250219-v1:0": MANUAL,
}


@each("model", ON)
def test_thinking_is_a_field_that_only_claude_knows(model: str) -> None:
    """Switched in the words of the model; a budget comes with a limit above it."""
    about, unsaid = asks("aws", model, enabled=True)
    limit = {"inferenceConfig": {"maxTokens": 12288}} if ON[model] == MANUAL else {}

    assert (about, unsaid) == ({FIELDS: {"thinking": ON[model]}, **limit}, ())


OFF = {
    "anthropic.claude-opus-5-5": None,
    "anthropic.claude-sonnet-5-5": "between_tools",
    "anthropic.claude-haiku-5-5": "disabled",
    "anthropic.claude-opus-5": "disabled",
    "anthropic.claude-opus-4-8": "disabled",
    "anthropic.claude-opus-4-7": "disabled",
    CLAUDE: "disabled",
    "anthropic.claude-opus-4-5": "disabled",
    "anthropic.claude-haiku-4-5": "disabled",
    "anthropic.claude-3-haiku-20240307-v1:0": None,
}


@each("model", OFF)
def test_thinking_is_switched_off_where_it_can_be(model: str) -> None:
    """What cannot be said is reported."""
    about, unsaid = asks("aws", model, enabled=False)

    assert unsaid == (() if OFF[model] else ("enabled",))
    assert about == ({FIELDS: {"thinking": {"type": OFF[model]}}} if OFF[model] else {})


@pytest.mark.parametrize(
    ("model", "about"),
    [
        ("anthropic.claude-opus-5-5", {"outputConfig": {"effort": "xhigh"}}),
        ("anthropic.claude-opus-4-5", {"outputConfig": {"effort": "high"}}),
        ("openai.gpt-oss-120b-1:0", {FIELDS: {"reasoning_effort": "high"}}),
    ],
)
def test_effort_is_sent_where_the_models_maker_has_it(model: str, about: dict[str, Any]) -> None:
    """Claude's has a place in the protocol; that of gpt-oss is its own field."""
    found, unsaid = asks("aws", model, effort="xhigh")

    assert about.items() <= found.items()
    assert unsaid == ()


def test_effort_is_a_budget_where_the_model_knows_no_other() -> None:
    """The limit leaves the answer its room next to it."""
    assert asks("aws", "anthropic.claude-sonnet-4-5", effort="low") == (
        {
            FIELDS: {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "inferenceConfig": {"maxTokens": 9216},
        },
        (),
    )


@pytest.mark.parametrize("model", ["us.deepseek.r1-v1:0", "amazon.nova-2-lite-v1:0"])
def test_models_that_no_parameter_is_known_of_are_asked_nothing(model: str) -> None:
    """What was chosen and is not said is reported."""
    assert asks("aws", model, enabled=True, effort="high", budget_tokens=2048) == (
        {},
        ("enabled", "effort", "budget_tokens"),
    )


def test_a_loop_goes_on_as_it_began() -> None:
    """Thoughts keep thinking on; a call without one keeps a model with a budget from it."""
    bare = (LOOP[0], rs.assistant(CALL), LOOP[2])
    manual = "anthropic.claude-sonnet-4-5"

    assert written(LOOP, "aws", CLAUDE).body[FIELDS] == {"thinking": ADAPTIVE}
    assert FIELDS not in written(bare, "aws", manual, options=ReasoningOptions(enabled=True)).body


# What holds for every conversation


def check(body: Mapping[str, Any]) -> None:
    """The rules of the protocol that a conversation can break."""
    assert all(one["role"] != other["role"] for one, other in pairwise(body["messages"]))
    assert [message["role"] for message in body["messages"]][:1] in ([], ["user"])
    due: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        assert content
        kinds = [next(iter(part)) for part in content]
        given = [part["toolResult"]["toolUseId"] for part in content if "toolResult" in part]
        assert sorted(given) == sorted(due)
        assert kinds[: len(given)] == ["toolResult"] * len(given)
        assert all(part["text"].strip() for part in content if "text" in part)
        due = [part["toolUse"]["toolUseId"] for part in content if "toolUse" in part]


@given(
    conversations("bedrock.converse", "aws", CLAUDE),
    st.sampled_from([CLAUDE, "us.deepseek.r1-v1:0", "amazon.nova-2-lite-v1:0"]),
)
def test_any_conversation_keeps_the_rules_of_the_protocol(
    messages: list[rs.Message], model: str
) -> None:
    """Sides alternate, answers follow their calls, no text is blank, no seal is touched, and
    the SDK's model of the service has nothing to say."""
    found = written(messages, "aws", model, tools=[TOOL], system="Be brief.")
    check(found.body)
    if found.body["messages"]:
        accepted(found)
    thoughts = [block for message in messages for block in message.thinking]
    text = json.dumps(found.body)

    assert all(json.dumps(block.signature) in text for block in thoughts if block.signature)
    assert all(json.dumps(block.encrypted) in text for block in thoughts if block.encrypted)
    assert text.count('"reasoningContent"') == len(thoughts)


def test_a_finished_turn_goes_back_with_and_without_its_thinking() -> None:
    """The rest stays as it is."""
    bare = replace(CALLING, blocks=CALLING.blocks[2:])
    turns = [
        sent(*weather(first, rs.assistant("4 C"), "4 C"))[1]["content"] for first in (CALLING, bare)
    ]

    assert turns[0][2:] == turns[1] == [{"toolUse": turns[0][2]["toolUse"]}]
