"""What would be refused is mended in the request, and said; what is stored stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.egress.request_warnings import NO_RESULT
from reasoning_store.testing import refusal
from tests.egress.histories import (
    CLAUDE,
    DEEPSEEK,
    SIGNED,
    answer,
    call,
    targets,
    thought,
    views,
)
from tests.egress.targets import TARGETS, Target
from tests.properties import each

KEEP = {"reasoning.includeInContext": True}
QUESTION = rs.user("Weather?")


def request(*messages: rs.Message, provider: str | None = "openai", **given: Any) -> rs.Request:
    return rs.build_request(messages, provider=provider, model="m", **given)


def roles(found: rs.Request) -> list[str]:
    return [message["role"] for message in found.body["messages"]]


def codes(found: rs.Request) -> list[str]:
    return [warning.code for warning in found.warnings]


def tool_message(id: str = "call_1", content: str = "4 C") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


# --- calls and responses


def test_a_sound_conversation_is_sent_as_it_is() -> None:
    """Nothing is mended that is whole."""
    found = request(QUESTION, rs.assistant("Wait.", call()), answer(), rs.assistant("4 C."))

    assert roles(found) == ["user", "assistant", "tool", "assistant"]
    assert codes(found) == []


def test_an_unanswered_call_is_answered_by_an_error() -> None:
    """The user went on before the tool had answered."""
    found = request(QUESTION, rs.assistant(call()), rs.user("Never mind."))

    assert found.body["messages"][2] == tool_message(content=NO_RESULT)
    assert roles(found) == ["user", "assistant", "tool", "user"]
    assert codes(found) == ["no_result"]


def test_an_answer_is_due_at_the_end_too() -> None:
    """A model that is asked to go on cannot, without the result of its call."""
    found = request(QUESTION, rs.assistant(call()))

    assert found.body["messages"][-1] == tool_message(content=NO_RESULT)


def test_of_parallel_calls_only_the_unanswered_one_is_answered() -> None:
    """Behind their message, with the response that came."""
    found = request(QUESTION, rs.assistant(call("a"), call("b")), answer("b"), rs.user("Go on."))

    assert found.body["messages"][2:4] == [tool_message("a", NO_RESULT), tool_message("b")]


def test_a_misplaced_response_is_moved_after_its_call() -> None:
    """The result came after the user had spoken again; it is not lost."""
    found = request(QUESTION, rs.assistant(call()), rs.user("Hurry."), answer())

    assert roles(found) == ["user", "assistant", "tool", "user"]
    assert found.body["messages"][2] == tool_message()
    assert codes(found) == ["response_moved"]


def test_a_response_without_its_call_is_left_out() -> None:
    """Its call is in another branch, or was never there."""
    found = request(QUESTION, answer("gone"), rs.user("Well?"))

    assert roles(found) == ["user", "user"]
    assert codes(found) == ["response_orphan"]


def test_a_second_response_to_a_call_is_left_out() -> None:
    """A retry that was stored next to the first one."""
    again = rs.tool(rs.ToolResponseBlock(call_id="call_1", result="5 C"))
    found = request(QUESTION, rs.assistant(call()), answer(), again)

    assert found.body["messages"][2:] == [tool_message()]
    assert codes(found) == ["response_repeated"]


def test_an_id_that_is_used_again_belongs_to_the_last_call() -> None:
    """Hosts that count their calls anew in each message reuse ids."""
    later = rs.tool(rs.ToolResponseBlock(call_id="call_1", result="9 C"))
    found = request(
        QUESTION, rs.assistant(call()), answer(), rs.user("And now?"), rs.assistant(call()), later
    )

    assert [m["content"] for m in found.body["messages"] if m["role"] == "tool"] == ["4 C", "9 C"]
    assert codes(found) == []


def test_two_calls_of_one_message_never_share_an_id() -> None:
    """The second one gets an id that depends on nothing else, and so does its response."""
    found = request(QUESTION, rs.assistant(call(), call()), answer(), answer())
    one, other = (item["id"] for item in found.body["messages"][1]["tool_calls"])

    assert one == "call_1" != other
    assert [m["tool_call_id"] for m in found.body["messages"][2:]] == [one, other]


CUT = rs.ToolCallBlock(id="call_1", name="get_weather", arguments='{"city":"Os')


def test_a_call_cut_off_in_its_arguments_is_left_out() -> None:
    """The stream died; the text before it goes."""
    cut = rs.assistant("I will look.", CUT, status="interrupted")
    found = request(QUESTION, cut, rs.user("Go on."))

    assert found.body["messages"][1] == {"role": "assistant", "content": "I will look."}
    assert codes(found) == ["call_cut_off"]


def test_a_call_that_had_only_begun_is_left_out_of_an_interrupted_message() -> None:
    """A name without arguments is a call only where the message is whole."""
    begun = rs.ToolCallBlock(id="call_1", name="now", parameters={})

    assert "call_cut_off" in codes(request(rs.assistant("x", begun, status="interrupted")))
    assert "call_cut_off" not in codes(request(rs.assistant("x", begun)))


def test_malformed_arguments_that_were_answered_are_sent() -> None:
    """The model's own mistake, and what the tool said of it, are the conversation."""
    complaint = rs.tool(rs.ToolResponseBlock(call_id="call_1", result="bad", is_error=True))
    found = request(QUESTION, rs.assistant(CUT), complaint)

    assert found.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"city":"Os'
    assert codes(found) == []


def test_malformed_arguments_are_wrapped_for_a_host_that_reads_them() -> None:
    """Its template parses them, and would refuse the request."""
    complaint = rs.tool(rs.ToolResponseBlock(call_id="call_1", result="bad", is_error=True))
    found = request(QUESTION, rs.assistant(CUT), complaint, provider="vllm")

    function = found.body["messages"][1]["tool_calls"][0]["function"]
    assert function["arguments"] == '{"input":"{\\"city\\":\\"Os"}'
    assert codes(found) == ["arguments_wrapped"]


@pytest.mark.parametrize(
    ("provider", "id", "fits"),
    [
        ("openai", "x" * 41, r".{1,40}"),
        ("mistral", "call_1", r"[A-Za-z0-9]{9}"),
        ("deepseek", "", r".+"),
    ],
)
def test_an_id_that_a_target_refuses_is_mapped_in_call_and_response(
    provider: str, id: str, fits: str
) -> None:
    """By a pure function: every request maps it alike."""
    loop = (QUESTION, rs.assistant(call(id)), answer(id))
    messages = request(*loop, provider=provider).body["messages"]
    made = messages[1]["tool_calls"][0]["id"]

    assert made == messages[2]["tool_call_id"] != id
    assert re.fullmatch(fits, made)
    assert request(*loop, rs.user("x"), provider=provider).body["messages"][:3] == messages


# --- messages


def test_of_an_interrupted_message_the_text_goes() -> None:
    """What was said was said."""
    found = request(QUESTION, rs.assistant("It is", status="interrupted"), rs.user("Go on."))

    assert found.body["messages"][1] == {"role": "assistant", "content": "It is"}


def test_of_an_interrupted_message_the_rules_decide_about_the_thinking() -> None:
    """Portable words go where the settings keep them; a signing provider takes none unsigned."""
    half = rs.ThinkingBlock(thought="Perhaps", interrupted=True)
    cut = rs.assistant(half, "It is", status="interrupted")

    def rule(provider: str) -> str:
        return rs.select([QUESTION, cut], settings=KEEP, provider=provider).verdicts[0].rule

    assert (rule("deepseek"), rule("anthropic")) == ("kept", "unsigned")


def test_a_live_draft_is_not_sent() -> None:
    """It is still growing: neither its text nor its thoughts."""
    draft = rs.assistant(thought("Perhaps"), "It is", status="streaming")
    found = request(QUESTION, draft, provider="deepseek", settings=KEEP)

    assert roles(found) == ["user"]
    assert codes(found) == ["draft"]
    assert [(v.kept, v.rule) for v in found.verdicts] == [(False, "no_place")]


def test_an_erased_message_says_nothing() -> None:
    """Its place remains in the session, not in the request."""
    erased = rs.Message(role="assistant", status="erased")

    assert roles(request(QUESTION, erased, rs.user("Well?"))) == ["user", "user"]


def test_an_empty_reply_is_not_sent() -> None:
    """A reply of an empty text says nothing; an empty text of the user's is the user's own."""
    found = request(rs.user(""), rs.assistant(""), rs.user("Well?"))

    assert [message["content"] for message in found.body["messages"]] == ["", "Well?"]


def test_two_user_messages_in_a_row_stay_two() -> None:
    """Chat Completions takes them; merging is for protocols that demand alternation."""
    assert roles(request(rs.user("a"), rs.user("b"))) == ["user", "user"]


def test_a_request_of_nothing_says_so() -> None:
    """A provider refuses one without messages."""
    assert codes(request(rs.assistant(""))) == ["nothing_to_send"]


@pytest.mark.parametrize(("provider", "said"), [("mistral", ["nothing_to_send"]), ("openai", [])])
def test_a_system_prompt_alone_is_nothing_where_the_order_is_strict(
    provider: str, said: list[str]
) -> None:
    """Mistral wants a user or a tool last; others answer it."""
    assert codes(request(rs.system("Be brief."), provider=provider)) == said


@each("target", TARGETS)
@each("message", [rs.user(call()), rs.system(call()), rs.assistant(replace(call(), name=""))])
def test_an_impossible_call_is_left_out_with_its_response(
    target: Target, message: rs.Message
) -> None:
    """One that is no model's, or that names no tool; nothing of it is refused."""
    found = rs.build_request([QUESTION, message, answer(), rs.user("Well?")], **target.to)

    assert {"call_unusable", "response_orphan"} <= set(codes(found))
    assert "get_weather" not in json.dumps(found.body)
    to = {**target.to, "provider": target.provider or ""}
    assert refusal(found.body, **to) is None


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_in(item)


@each("arguments", ['{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', '{"a": 1'])
@each("target", TARGETS)
def test_arguments_that_are_no_json_are_one_thing_to_every_protocol(
    target: Target, arguments: str
) -> None:
    """The text itself, or that text as the one input: no host gets a reading of its own."""
    half = replace(call(), parameters=None, arguments=arguments)
    found = rs.build_request(
        [QUESTION, rs.assistant(half), answer(), rs.user("Well?")], **target.to
    )

    wrapped = json.dumps({"input": arguments}, separators=(",", ":"))
    assert {arguments, wrapped} & set(strings_in(found.body))


@pytest.mark.parametrize("api", ["openai.chat", "mistral.chat"])
def test_at_mistral_a_user_may_speak_directly_after_a_tool(api: str) -> None:
    """Recorded requests were accepted so: no reply is invented between them."""
    left = (QUESTION, rs.assistant(call()), answer(), rs.user("Never mind."))
    found = rs.build_request(left, provider="mistral", model="mistral-medium-3.5", api=api)

    assert roles(found) == ["user", "assistant", "tool", "user"]
    assert codes(found) == []


def test_mistral_continues_a_message_of_its_own_only_where_it_is_marked() -> None:
    """The last message is the reply that broke off."""
    cut = rs.assistant("It is", status="interrupted")
    found = request(QUESTION, cut, provider="mistral")

    assert found.body["messages"][-1] == {"role": "assistant", "content": "It is", "prefix": True}


# --- blocks


def test_a_block_newer_than_the_code_is_left_out_with_a_warning() -> None:
    """Never silently: a newer release wrote something that this one cannot render."""
    newer = rs.RawBlock(kind="hologram", data={"type": "hologram", "x": 1})
    found = request(rs.user("See:", newer))

    assert found.body["messages"] == [{"role": "user", "content": "See:"}]
    assert codes(found) == ["block_unknown"]


def test_a_raw_block_goes_only_to_the_api_it_came_from() -> None:
    """What no one here understands means nothing elsewhere."""
    part = {"type": "tool_reference", "title": "Oslo"}
    reply = rs.assistant("See:", rs.RawBlock(data=part), origin=DEEPSEEK)
    at_home = request(reply, provider="deepseek")
    elsewhere = request(reply, provider="ollama")

    assert at_home.body["messages"][0]["content"] == [{"type": "text", "text": "See:"}, part]
    assert "tool_reference" not in str(elsewhere.body)
    assert codes(elsewhere) == ["block_foreign"]


def test_foreign_metadata_is_taken_off() -> None:
    """What another provider put on texts and calls is its own; the stored block keeps it."""
    mark = {"thoughtSignature": "c2ln"}
    reply = rs.assistant(
        rs.TextBlock(text="Hi", provider_metadata=mark),
        replace(call(), provider_metadata=mark),
        origin=CLAUDE,
    )
    found = request(reply, answer(), provider="deepseek")

    assert "c2ln" not in str(found.body)
    assert reply.blocks[0].provider_metadata == mark


def test_foreign_words_go_where_the_target_reads_them() -> None:
    """Not into the field that another provider had sent them in."""
    foreign = rs.assistant(
        rs.ThinkingBlock(thought="Hm", source_field="reasoning_content"), "Hi", origin=DEEPSEEK
    )
    (found,) = request(foreign, provider="vllm", settings=KEEP).body["messages"]

    assert found == {"role": "assistant", "content": "Hi", "reasoning": "Hm"}


# --- all of it


def test_a_repair_changes_no_count() -> None:
    """What is left out still counts, what is put in does not."""
    messages = [QUESTION, rs.assistant("x", CUT, status="interrupted"), answer("gone")]
    found = request(*messages)

    assert {"call_cut_off", "response_orphan"} <= set(codes(found))
    assert found.tokens == rs.effective_tokens(messages, provider="openai", model="m")


@given(views, targets)
def test_repairs_leave_the_messages_as_they_are(
    messages: list[rs.Message], to: tuple[str | None, str | None, str | None]
) -> None:
    """BR-009 holds for repairs as for policies."""
    before = repr(messages)
    rs.build_request(messages, provider=to[0], model=to[1], api=to[2])

    assert repr(messages) == before


@given(views, targets.filter(lambda to: to[0] not in ("anthropic", "ollama")))
def test_every_call_is_answered_directly_and_once(
    messages: list[rs.Message], to: tuple[str | None, str | None, str | None]
) -> None:
    """Whatever the history, by whatever ids."""
    found = rs.build_request(messages, provider=to[0], model=to[1], api=to[2])
    due: list[str] = []
    answered: list[str] = []
    for message in found.body["messages"]:
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
            continue
        assert sorted(answered) == sorted(due)
        due, answered = [item["id"] for item in message.get("tool_calls", ())], []
    assert sorted(answered) == sorted(due)


def test_mistral_takes_system_messages_at_the_beginning_only() -> None:
    """A later one stands where it was said, on the user's side."""
    found = request(
        rs.system("Be brief."),
        QUESTION,
        rs.assistant("Wet."),
        rs.system("Be kind."),
        provider="mistral",
    )

    assert roles(found) == ["system", "user", "assistant", "user"]
    assert codes(found) == ["system_as_user"]


def test_mistral_takes_an_answer_and_a_question_apart() -> None:
    """An application may keep both in one message."""
    both = rs.user(rs.ToolResponseBlock(call_id="call_1", result="4 C"), "And tomorrow?")
    found = request(QUESTION, rs.assistant(call()), both, provider="mistral")

    assert roles(found) == ["user", "assistant", "tool", "user"]


# --- turns that began without reasoning


HAIKU: dict[str, Any] = {"provider": "anthropic", "model": "claude-haiku-4-5"}
BY_HAIKU = rs.Origin(api="anthropic.messages", **HAIKU)
THINKS = {"reasoning.budgetTokens": 2_048}


def begun_without() -> list[rs.Message]:
    """A loop whose first call another model made, and whose second was thought about."""
    thinking = rs.assistant(SIGNED, call("call_2"), origin=BY_HAIKU)
    return [QUESTION, rs.assistant(call()), answer(), thinking, answer("call_2")]


def test_reasoning_in_a_turn_that_began_without_begins_one() -> None:
    """Refused with thinking on for the first call, and with thinking off for the second."""
    found = rs.build_request(begun_without(), settings=THINKS, **HAIKU)

    assert found.body["messages"][2]["content"][1:] == [{"type": "text", "text": "."}]
    assert found.body["messages"][3]["content"][0]["type"] == "thinking"
    assert found.body["thinking"] == {"type": "enabled", "budget_tokens": 2_048}
    assert [verdict.rule for verdict in found.verdicts] == ["required"]
    assert "turn_begun" in codes(found)
    assert refusal(found.body, **HAIKU) is None


def test_a_turn_that_is_begun_anew_stays_so_when_it_is_over() -> None:
    """A prompt cache finds what it was sent."""
    keep = {**THINKS, "reasoning.includeInContext": True}
    first = rs.build_request(begun_without(), settings=keep, **HAIKU)
    later = rs.build_request([*begun_without(), rs.user("Go on.")], settings=keep, **HAIKU)

    assert later.body["messages"][:4] == first.body["messages"][:4]


def test_a_turn_that_began_with_reasoning_is_left_alone() -> None:
    """Not every step of a loop is thought about."""
    asked, bare, result, thinking, other = begun_without()
    own = replace(bare, origin=BY_HAIKU)
    found = rs.build_request([asked, thinking, other, own, result], settings=THINKS, **HAIKU)

    assert codes(found) == []
