"""Requests in Anthropic's Messages protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import reasoning_store as rs
from reasoning_store.testing import refusal
from tests.properties import each
from tests.wire.anthropic_bodies import CALL, CASE, SIGNED
from tests.wire.writing import (
    TOOL,
    answers,
    conversations,
    drained,
    reply,
    weather,
    written,
)

CALLING, OMITTED, INTERLEAVED = (reply(CASE, n) for n in range(3))


EGRESS = CASE["variants"][0]["egress"]


SDK = TypeAdapter(MessageCreateParamsNonStreaming)


def sent(*messages: rs.Message, model: str = "claude-opus-5") -> list[Any]:
    found: list[Any] = written(messages, "anthropic", model).body["messages"]
    return found


def without_thinking(message: rs.Message) -> rs.Message:
    blocks = tuple(b for b in message.blocks if not isinstance(b, rs.ThinkingBlock))
    return replace(message, blocks=blocks)


def test_a_recorded_tool_loop_goes_back_as_it_came() -> None:
    """Thought, redacted thought and call, in order and unmodified."""
    loop = (rs.user("Weather in Oslo?"), CALLING, answers(CALLING, "4 C"))

    assert sent(*loop) == EGRESS["tool_loop_messages"]


def test_deepseek_gets_the_thought_of_every_call_or_an_empty_one() -> None:
    """It refuses a call without, of earlier turns too; a message without a call owes nothing."""
    thought = rs.ThinkingBlock(thought="Hm.", source_field="thinking")
    other = replace(CALL, id="toolu_2")
    messages = [
        rs.user("Weather?"),
        rs.assistant(thought, CALL),
        answers(rs.assistant(CALL), "4 C"),
        rs.assistant("4 C."),
        rs.user("And now?"),
        rs.assistant(other),
        answers(rs.assistant(other), "5 C"),
    ]
    body = rs.build_request(
        messages, provider="deepseek", model="deepseek-flash", api="anthropic.messages"
    ).body

    said = [m["content"] for m in body["messages"] if m["role"] == "assistant"]
    assert [[part.get("thinking") for part in parts] for parts in said] == [
        ["Hm.", None],
        [None],
        ["", None],
    ]
    assert "thinking" not in body


@each("signed", [True, False])
@each("provider", ["moonshot", "zai", "minimax"])
def test_a_loop_keeps_its_thoughts_at_hosts_that_speak_the_protocol(
    provider: str, signed: bool
) -> None:
    """As it does in Chat Completions, whatever is stripped; a closed turn gives its own up."""
    to: dict[str, Any] = {"provider": provider, "api": "anthropic.messages", "model": "some-model"}
    thought = replace(SIGNED, signature="c2ln" if signed else None)
    origin = rs.Origin(provider=provider, api="anthropic.messages", model="some-model")
    called = rs.assistant(thought, CALL, origin=origin)
    loop = [rs.user("Weather?"), called, answers(called, "4 C")]
    closed = [*loop, rs.assistant("4 C.", origin=origin), rs.user("Thanks.")]

    for messages, rule in ((loop, "required"), (closed, "include")):
        built = rs.build_request(messages, **to)
        kinds = [part["type"] for part in built.body["messages"][1]["content"]]
        assert [verdict.rule for verdict in built.verdicts] == [rule]
        assert ("thinking" in kinds) == (rule == "required")


def test_deepseek_is_asked_as_its_page_says() -> None:
    """In its own words, at the places where the protocol has them."""
    to: dict[str, Any] = {
        "provider": "deepseek",
        "model": "deepseek-flash",
        "api": "anthropic.messages",
    }
    off = rs.build_request([rs.user("Hi")], settings={"reasoning.enabled": False}, **to)
    more = rs.build_request([rs.user("Hi")], settings={"reasoning.effort": "medium"}, **to)

    assert off.body["thinking"] == {"type": "disabled"}
    assert more.body["output_config"] == {"effort": "high"}
    assert (off.warnings, more.warnings) == ((), ())


def test_a_finished_turn_goes_back_with_all_its_thinking() -> None:
    """A thought without text is a block like any other where it is signed."""
    assert sent(*weather(CALLING, OMITTED, "4 C")) == EGRESS["next_turn_include"]


def test_a_finished_turn_without_thinking_has_nothing_in_its_place() -> None:
    """Stripped is absent: no empty block, no other."""
    stripped = [without_thinking(item) for item in weather(CALLING, OMITTED, "4 C")]

    assert sent(*stripped) == EGRESS["next_turn_strip"]


@pytest.mark.parametrize("message", [CALLING, OMITTED, INTERLEAVED])
def test_what_was_received_is_what_is_returned(message: rs.Message) -> None:
    """Every recorded reply comes back as the content that it was."""
    variant = [CALLING, OMITTED, INTERLEAVED].index(message)
    received = CASE["variants"][variant]["nonstream"]["content"]

    assert sent(rs.user("Hi"), message)[1]["content"] == received


def test_blocks_of_the_service_s_own_tools_go_back_as_they_came() -> None:
    """What has no block of ours is kept whole, and means something there."""
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "4 C", "citations": [{"type": "char_location", "cited": "4"}]},
    ]
    message = rs.normalize_response({"content": content}, provider="anthropic")

    assert sent(rs.user("Hi"), message)[1]["content"] == content


def test_a_raw_block_from_elsewhere_is_left_out_and_named() -> None:
    """It would be refused, and it is not turned into something else."""
    raw = rs.RawBlock(data={"type": "web_search_call", "id": "ws_1"})
    foreign = rs.assistant(raw, "Hi", origin=rs.Origin(provider="openai", api="openai.responses"))
    found = written([rs.user("Hi"), foreign], "anthropic", "claude-opus-5")

    assert found.body["messages"][1]["content"] == [{"type": "text", "text": "Hi"}]
    assert found.left_out == ("raw",)


def test_a_thought_without_a_signature_has_none_at_a_host_that_takes_it() -> None:
    """An empty signature would be an invalid one."""
    unsigned = rs.assistant(rs.ThinkingBlock(thought="Hm."))
    found = written([rs.user("Hi"), unsigned], None, "m", "anthropic.messages")

    assert found.body["messages"][1]["content"] == [{"type": "thinking", "thinking": "Hm."}]


@each(
    "provider, model, plain, sealed",
    [
        ("anthropic", "claude-opus-5", "unsigned", "kept"),
        ("anthropic", "claude-3-5-haiku-latest", "unsigned", "no_place"),
        ("another-host", "m", "kept", "kept"),
    ],
)
@each("field", ["thinking", "redacted_thinking"])
def test_what_goes_back_is_the_host_s_rule(
    provider: str, model: str, plain: str, sealed: str, field: str
) -> None:
    """Claude wants signatures; a seal without an origin is known by its field."""
    seal = replace(SIGNED, source_field=field)
    found = rs.select(
        [rs.user("Hi"), rs.assistant(rs.ThinkingBlock(thought="Hm."), seal, "Ho")],
        provider=provider,
        model=model,
        api="anthropic.messages",
        settings={"reasoning.includeInContext": True},
    )

    assert [verdict.rule for verdict in found.verdicts] == [plain, sealed]


@pytest.mark.parametrize("blank", ["", " ", "\n\n"])
def test_blank_text_is_no_block(blank: str) -> None:
    """It is refused, and says nothing."""
    assert sent(rs.user("Hi", blank), rs.assistant(blank, CALL))[1]["content"] == [
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "get_weather",
            "input": {"city": "Oslo"},
        }
    ]


def test_messages_of_one_side_become_one_in_their_order() -> None:
    """Nothing is lost where two users speak in a row, or two replies stand side by side."""
    found = sent(rs.user("a"), rs.user("b"), rs.assistant("c"), rs.assistant(SIGNED, "d"))

    assert [message["role"] for message in found] == ["user", "assistant"]
    assert [block["text"] for block in found[0]["content"]] == ["a", "b"]
    assert [block["type"] for block in found[1]["content"]] == ["text", "thinking", "text"]


def test_answers_stand_before_what_else_the_user_says() -> None:
    """All answers to a message's calls, from however many messages, in one."""
    other = replace(CALL, id="toolu_2")
    one, two = (answers(rs.assistant(call), "4 C") for call in (CALL, other))
    found = sent(rs.user("Hi"), rs.assistant(CALL, other), one, rs.user("Hurry!"), two)

    assert [block["type"] for block in found[2]["content"]] == [
        "tool_result",
        "tool_result",
        "text",
    ]


def test_a_missing_user_message_is_added() -> None:
    """A conversation begins with a user."""
    assert [m["role"] for m in sent(rs.assistant("Welcome!"), rs.user("Hi"))] == [
        "user",
        "assistant",
        "user",
    ]


def test_an_answer_says_what_it_is() -> None:
    """A string as it is, a value as JSON, nothing as nothing, an error as one."""
    given = [
        rs.ToolResponseBlock(call_id="a", result="4 C"),
        rs.ToolResponseBlock(call_id="b", result={"t": 4}),
        rs.ToolResponseBlock(call_id="c", result=""),
        rs.ToolResponseBlock(call_id="d", result="boom", is_error=True),
    ]

    assert sent(rs.tool(*given))[0]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "4 C"},
        {"type": "tool_result", "tool_use_id": "b", "content": '{"t":4}'},
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "tool_result", "tool_use_id": "d", "content": "boom", "is_error": True},
    ]


def test_ids_that_are_refused_are_replaced_in_call_and_answer_alike() -> None:
    """Other makers' ids have dots and colons in them."""
    call = replace(CALL, id="functions.get_weather:0")
    loop = [rs.user("Hi"), rs.assistant(call), answers(rs.assistant(call), "4 C")]
    found = rs.build_request(loop, provider="anthropic", model="claude-opus-5").body["messages"]
    new = found[1]["content"][0]["id"]

    assert new == found[2]["content"][0]["tool_use_id"]
    assert new.replace("_", "").isalnum()


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (rs.ToolCallBlock(id="a", name="f"), {}),
        (rs.ToolCallBlock(id="a", name="f", arguments='{"x": 1}'), {"x": 1}),
        (rs.ToolCallBlock(id="a", name="f", arguments="[1]"), {"input": [1]}),
        (rs.ToolCallBlock(id="a", name="f", arguments="{x"), {"input": "{x"}),
    ],
)
def test_arguments_are_an_object(call: rs.ToolCallBlock, given: dict[str, Any]) -> None:
    """The protocol takes nothing else, and nothing is lost."""
    assert sent(rs.user("Hi"), rs.assistant(call))[1]["content"][0]["input"] == given


def test_media_are_blocks_of_the_user() -> None:
    """Bytes in base64, addresses as they are, text as text."""
    media = [
        rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89P"),
        rs.MediaBlock(kind="image", mime_type="image/png", url="https://example.org/a.png"),
        rs.MediaBlock(kind="file", mime_type="application/pdf", data=b"%P", name="a.pdf"),
        rs.MediaBlock(kind="file", mime_type="text/csv", data=b"a,b"),
    ]

    assert [(m["type"], m["source"]) for m in sent(rs.user(*media))[0]["content"]] == [
        ("image", {"type": "base64", "media_type": "image/png", "data": "iVA="}),
        ("image", {"type": "url", "url": "https://example.org/a.png"}),
        ("document", {"type": "base64", "media_type": "application/pdf", "data": "JVA="}),
        ("document", {"type": "text", "media_type": "text/plain", "data": "a,b"}),
    ]


@pytest.mark.parametrize(
    ("medium", "kind"),
    [
        (rs.MediaBlock(kind="audio", mime_type="audio/wav", data=b"x"), "audio"),
        (rs.MediaBlock(kind="file", mime_type="application/zip", data=b"x"), "file"),
        (rs.MediaBlock(kind="image", mime_type="image/png", ref="blob-7"), "image"),
    ],
)
def test_media_without_a_place_are_left_out_and_named(medium: rs.MediaBlock, kind: str) -> None:
    """A request that says less than the conversation says so."""
    assert written([rs.user("Hi", medium)], "anthropic").left_out == (kind,)


def test_system_is_sent_at_the_top() -> None:
    """What was given and what the conversation begins with, each a text of its own."""
    begun = [rs.system("Be kind."), rs.user("Hi")]

    assert written(begun, "anthropic").body["system"] == "Be kind."
    assert written(begun, "anthropic", system="Be brief.").body["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Be kind."},
    ]


def test_a_system_prompt_in_the_protocol_s_own_form_stays_as_it_is() -> None:
    """A mark for the prompt cache is not lost."""
    own = [{"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral"}}]

    assert written([rs.user("Hi")], "anthropic", system=own).body["system"] == own


INSIDE = (rs.user("a"), rs.assistant("b"), rs.system("Now in Norwegian."), rs.user("c"))


def test_a_later_system_message_follows_the_user_where_the_model_takes_it() -> None:
    """It keeps its authority and its place, and the system prompt is not touched."""
    spoken = (rs.user("a"), rs.system("Now in Norwegian."), rs.assistant("b"), rs.user("c"))

    assert [m["role"] for m in sent(*spoken, model="claude-opus-4-8")] == [
        "user",
        "system",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-4-6", "claude-opus-4-5"])
def test_a_later_system_message_is_sent_as_the_user_to_older_models(model: str) -> None:
    """They know no other sides than two."""
    found = sent(*INSIDE, model=model)

    assert [m["role"] for m in found] == ["user", "assistant", "user"]
    assert [block["text"] for block in found[2]["content"]] == ["Now in Norwegian.", "c"]


def test_tools_are_neutral_or_the_protocol_s_own() -> None:
    """The envelope of Chat Completions is taken for neutral; nothing else is touched."""
    own = {"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    envelope = {"type": "function", "function": TOOL}
    tools: list[Mapping[str, Any]] = [TOOL, envelope, own, {"name": "g"}]
    schema = TOOL["parameters"]
    neutral = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": schema}

    assert written([rs.user("Hi")], "anthropic", tools=tools).body["tools"] == [
        neutral,
        neutral,
        own,
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]


# What holds for every conversation


def check(body: Mapping[str, Any]) -> None:
    """The rules of the protocol that a conversation can break."""
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    assert roles[:1] in ([], ["user"])
    assert all(one != other for one, other in pairwise(roles))
    due: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            assert content.strip()
            content = [{"type": "text", "text": content}]
        assert content
        kinds = [block["type"] for block in content]
        given = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if message["role"] != "system":
            assert sorted(given) == sorted(due)
            assert kinds[: len(given)] == ["tool_result"] * len(given)
            due = [block["id"] for block in content if block["type"] == "tool_use"]
        assert all(block["text"].strip() for block in content if block["type"] == "text")


def seals(messages: list[rs.Message]) -> list[Any]:
    return [
        block.encrypted if block.redacted else (block.thought, block.signature)
        for message in messages
        for block in message.thinking
        if block.opaque
    ]


@given(
    conversations("anthropic.messages", "anthropic", "claude-opus-5"),
    st.sampled_from(["claude-opus-5", "claude-opus-4-7", "claude-sonnet-4-5"]),
)
def test_any_conversation_keeps_the_rules_of_the_protocol(
    messages: list[rs.Message], model: str
) -> None:
    """Sides alternate, answers follow their calls, no text is blank, no seal is touched."""
    signed = [_signed(message) for message in messages]
    body = written(signed, "anthropic", model, tools=[TOOL], system="Be brief.").body
    check(body)
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]

    assert [
        block["data"] if block["type"] == "redacted_thinking" else _sealed(block)
        for block in blocks
        if block["type"].endswith("thinking")
    ] == seals(signed)


def _sealed(block: Mapping[str, Any]) -> tuple[str, str]:
    return block["thinking"], block["signature"]


def _signed(message: rs.Message) -> rs.Message:
    """A message as selection leaves it here: without what is not signed."""
    kept = tuple(b for b in message.blocks if not isinstance(b, rs.ThinkingBlock) or b.opaque)
    return replace(message, blocks=kept)


@given(conversations("anthropic.messages", "anthropic", "claude-opus-5"))
def test_the_sdk_s_types_accept_every_body(messages: list[rs.Message]) -> None:
    """The official SDK's own types of a request, read to the end."""
    own = [replace(m, blocks=tuple(b for b in m.blocks if b.type != "raw")) for m in messages]
    body = written([_signed(m) for m in own], "anthropic", "claude-opus-5", tools=[TOOL]).body

    assert drained(SDK.validate_python(body))["max_tokens"] == 16000


def test_a_paused_turn_is_continued_unchanged_with_its_thinking() -> None:
    """It is open though no tool of the application was called, and nothing follows it."""
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
    ]
    body = {"role": "assistant", "content": content, "stop_reason": "pause_turn"}
    model = "claude-sonnet-4-5"
    paused = rs.normalize_response(body, provider="anthropic", model=model)
    asked = {"reasoning.enabled": True, "reasoning.budgetTokens": 4096}
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append([rs.user("q"), paused])
        to: dict[str, Any] = {"provider": "anthropic", "model": model}
        request = session.build_request(settings=asked, **to)
        assert session.usage(settings=asked, **to).effective == request.tokens.effective

    assert request.body["messages"][-1]["content"] == content
    assert [verdict.rule for verdict in request.verdicts] == ["required"]
    assert request.warnings == ()
    assert refusal(request.body, provider="anthropic", model=model) is None


def test_a_turn_that_ended_is_no_paused_one() -> None:
    """Its message cannot be the last, whatever the service searched in it."""
    body = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
    ended = rs.normalize_response(
        {**body, "stop_reason": "end_turn"}, provider="anthropic", model="claude-sonnet-4-5"
    )
    request = rs.build_request([rs.user("q"), ended], provider="anthropic", model="claude-opus-5")

    assert [warning.code for warning in request.warnings] == ["reply_last"]
