"""Calls and their answers go back in the forms of the Responses protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.testing import refusal
from tests.properties import each
from tests.wire.responses_bodies import API, CALL, SEALED, received, sent
from tests.wire.writing import (
    answers,
)

TYPED: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "apply_patch_call": (
        {"operation": {"type": "create_file", "path": "a", "diff": "+x"}},
        "done",
        {"type": "apply_patch_call_output", "status": "completed", "output": "done"},
    ),
    "shell_call": (
        {"action": {"commands": ["ls"]}, "environment": {"type": "local"}},
        "a.txt",
        {
            "type": "shell_call_output",
            "output": [
                {"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            ],
        },
    ),
    "local_shell_call": (
        {"action": {"type": "exec", "command": ["ls"], "env": {}}},
        "a.txt",
        {"type": "local_shell_call_output", "id": "call_1", "output": "a.txt"},
    ),
    "computer_call": (
        {"action": {"type": "screenshot"}, "pending_safety_checks": []},
        "data:image/png;base64,AA==",
        {
            "type": "computer_call_output",
            "output": {
                "type": "computer_screenshot",
                "image_url": "data:image/png;base64,AA==",
            },
        },
    ),
    "tool_search_call": (
        {"arguments": {"query": "x"}, "execution": "client"},
        [{"type": "function", "name": "f"}],
        {
            "type": "tool_search_output",
            "execution": "client",
            "status": "completed",
            "tools": [{"type": "function", "name": "f"}],
        },
    ),
}


@pytest.mark.parametrize("kind", TYPED)
def test_a_call_with_a_type_of_its_own_is_answered_in_its_own_form(kind: str) -> None:
    """It is a tool call like any other, and both go back as the service has them."""
    fields, result, output = TYPED[kind]
    item = {"id": "x_1", "type": kind, "call_id": "call_1", "status": "completed", **fields}
    message = received([item])
    [call] = message.tool_calls
    response = rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result=result)
    request = rs.build_request(
        [rs.user("q"), message, rs.tool(response)], provider="openai", model="gpt-5.6", api=API
    )

    assert (call.id, call.name, call.parameters) == ("call_1", kind.removesuffix("_call"), fields)
    assert request.body["input"][1:] == [item, {**output, "call_id": "call_1"}]
    assert request.warnings == ()
    assert refusal(request.body, provider="openai", model="gpt-5.6", api=API) is None


@pytest.mark.parametrize(
    ("result", "approve"),
    [(True, True), ("approve", True), ({"approve": True}, True), ("No", False), (False, False)],
)
def test_a_servers_call_is_approved_only_in_so_many_words(result: Any, approve: bool) -> None:
    """An approval names the request by its item's id."""
    asked = {"name": "roll", "arguments": "{}", "server_label": "dice"}
    message = received([{"id": "mcpr_1", "type": "mcp_approval_request", **asked}])
    [call] = message.tool_calls
    response = rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result=result)
    one, other = sent(message, rs.tool(response))

    assert call.parameters == asked
    assert one == {"id": "mcpr_1", "type": "mcp_approval_request", **asked}
    assert (other["type"], other["approval_request_id"]) == ("mcp_approval_response", "mcpr_1")
    assert other["approve"] is approve


def test_a_result_that_is_the_typed_answer_is_sent_as_it_stands() -> None:
    """With the id of its call."""
    item = {"id": "sh_1", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "output": [], "max_output_length": 5}
    answer = rs.ToolResponseBlock(call_id="c", tool_name="shell", result=output)

    assert sent(received([item]), rs.tool(answer))[1] == {**output, "call_id": "c"}


INSTEAD: dict[str, tuple[str, dict[str, Any]]] = {
    "computer_call": ("done", {"type": "computer_call_output", "call_id": "x_1"}),
    "mcp_approval_request": (
        "later",
        {"type": "mcp_approval_response", "approval_request_id": "x_1", "approve": False},
    ),
    "tool_search_call": (
        "no tool fits",
        {"type": "function_call_output", "call_id": "x_1", "output": "no tool fits"},
    ),
}


@pytest.mark.parametrize("kind", INSTEAD)
def test_an_answer_that_a_typed_call_has_no_form_for_is_sent_in_another_with_a_warning(
    kind: str,
) -> None:
    """A stored conversation never makes a request raise; an error has the call's own form."""
    text, instead = INSTEAD[kind]
    fields = TYPED[kind][0] if kind in TYPED else {"name": "roll", "arguments": "{}"}
    message = received([{"id": "x_1", "type": kind, **fields}])
    [call] = message.tool_calls

    def answered(**given: Any) -> rs.Request:
        response = rs.tool(rs.ToolResponseBlock(call_id=call.id, result=text, **given))
        history = [rs.user("Go."), message, response]
        return rs.build_request(history, provider="openai", model="gpt-5", api="openai.responses")

    request, failed = answered(), answered(is_error=True)
    assert instead.items() <= request.body["input"][-1].items()
    [warning] = request.warnings
    assert (warning.code, kind in warning.text) == ("block_left_out", True)
    assert failed.warnings == ()


def test_a_computer_is_shown_the_image_of_a_result_with_parts() -> None:
    """As a tool's server returns a screenshot."""
    message = received([{"id": "x_1", "type": "computer_call", "action": {"type": "wait"}}])
    shot = [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    answer = rs.ToolResponseBlock(call_id=message.tool_calls[0].id, result=shot)

    output = sent(message, rs.tool(answer))[1]["output"]
    assert output == {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}


RAW_ANSWERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(
        (kind, {**fields, "call_id": "call_1"}, {**answer, "call_id": "call_1"})
        for kind, (fields, _, answer) in TYPED.items()
    ),
    (
        "mcp_approval_request",
        {"id": "call_1", "name": "roll", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "call_1", "approve": True},
    ),
    (
        "function_call",
        {"call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "97"},
    ),
]


@each("make", [rs.user, rs.tool])
@each("kind, fields, answer", RAW_ANSWERS)
def test_an_answer_in_the_providers_own_form_is_sent_as_the_answer(
    make: Any, kind: str, fields: dict[str, Any], answer: dict[str, Any]
) -> None:
    """Of a user or a tool; it answers its call and begins no turn."""
    message = received([{"id": "x_1", "type": kind, "status": "completed", **fields}])
    answered = make(rs.RawBlock(data=answer))
    to: dict[str, Any] = {"provider": "openai", "model": "gpt-5.6", "api": API}
    request = rs.build_request([rs.user("q"), message, answered], **to)

    assert request.body["input"][2:] == [answer]
    assert request.warnings == ()
    assert not answered.starts_turn


def test_an_answer_in_the_providers_own_form_stays_with_its_call() -> None:
    """In a window of the history, and when one of them is erased."""
    item = {"id": "sh_1", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    answer = rs.RawBlock(data={"type": "shell_call_output", "call_id": "c", "output": []})
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append([rs.user("q"), received([item]), rs.tool(answer)])

        assert [one.position for one in session.history(limit=1)] == [2, 3]
        session.erase(2)
        assert session.get(3).message.status == "erased"


def test_a_call_that_the_service_answers_is_not_the_applications() -> None:
    """A shell in its container and a search of its own go back as they came."""
    items: list[dict[str, Any]] = [
        {
            "id": "sh_1",
            "type": "shell_call",
            "call_id": "c",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": "cntr_1"},
        },
        {"id": "sho_1", "type": "shell_call_output", "call_id": "c", "output": []},
        {"id": "ts_1", "type": "tool_search_call", "execution": "server", "arguments": {}},
    ]
    message = received(items)

    assert message.tool_calls == ()
    assert sent(message) == items


def test_a_custom_tool_takes_text_and_gives_text() -> None:
    """Its input is free, and its answer an item of another type."""
    item = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "run",
        "input": 'print("x")',
    }
    message = received([SEALED, item])

    assert sent(message, answers(message, "x"))[1:] == [
        item,
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "x"},
    ]


def test_arguments_go_back_letter_by_letter() -> None:
    """A space in them is a space."""
    assert sent(rs.assistant(CALL)) == [
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"x": 1}',
            "status": "completed",
        }
    ]


def test_ids_that_are_too_long_are_replaced_in_call_and_answer_alike() -> None:
    """Other hosts' ids are longer than the 64 characters that are taken here."""
    call = replace(CALL, id="x" * 65)
    loop = [rs.assistant(call), answers(rs.assistant(call), "4 C")]
    request = rs.build_request(loop, provider="openai", model="gpt-5.6", api=API)
    use, answer = request.body["input"]

    assert use["call_id"] == answer["call_id"]
    assert len(use["call_id"]) <= 64
