"""OpenAI's Responses: items, and which of them must follow each other.

A reasoning item and what it led to are one: sent with its server id, neither is accepted
without the other. A reasoning item with a seal and no id stands alone. Only a ``Record`` can
tell whether a message with a server id ever had reasoning before it: a model often answers
without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reasoning_store.testing.strict_provider.openai_chat import NAME
from reasoning_store.testing.strict_provider.rules import (
    EFFORTS,
    Rule,
    Sent,
    first_unknown,
    host_names,
    is_list,
    is_text,
    matches_pattern,
    numbered_objects,
    value_at,
)

TOP = frozenset(
    "access_programs background context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls "
    "previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning safety_identifier service_tier store stream stream_options temperature text "
    "tool_choice tools top_logprobs top_p truncation user".split()
)
PREFIXES = {"reasoning": "rs", "function_call": "fc", "message": "msg"}
ROLES = ("user", "assistant", "system", "developer")
USER_PARTS = ("input_text", "input_image", "input_file", "input_audio")
ASSISTANT_PARTS = ("output_text", "refusal")
NULL_FORBIDDEN = ("status", "content", "encrypted_content", "id", "phase")
ANSWERS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "apply_patch_call_output": "apply_patch_call",
    "computer_call_output": "computer_call",
    "local_shell_call_output": "local_shell_call",
    "mcp_approval_response": "mcp_approval_request",
    "shell_call_output": "shell_call",
    "tool_search_output": "tool_search_call",
}
ASKED: Mapping[str, Sequence[str]] = {
    "effort": EFFORTS,
    "summary": ("auto", "concise", "detailed"),
    "generate_summary": ("auto", "concise", "detailed"),
    "context": ("auto", "current_turn", "all_turns"),
    "mode": ("standard", "pro"),
}
_FERNET = r"gAAAA[A-Za-z0-9_=-]+"
"""How every ciphertext of this service begins: a version byte and a time."""


def kind(item: Mapping[str, Any]) -> str:
    return str(item.get("type", "message"))


def items(sent: Sent) -> list[Mapping[str, Any]]:
    given = sent.body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def structure(sent: Sent) -> str | None:
    if name := first_unknown(sent.body, TOP):
        return f"Unknown parameter: '{name}'."
    given = sent.body.get("input")
    if is_text(given):
        return None
    if not is_list(given):
        return "Missing required parameter: 'input'."
    for n, item in enumerate(items(sent)):
        where = f"input[{n}]"
        if not isinstance(item, Mapping):
            return f"Invalid type for '{where}': expected an object."
        for name in NULL_FORBIDDEN:
            if name in item and item[name] is None:
                return f"Invalid type for '{where}.{name}': expected a value, but got null instead."
        check = _SHAPES.get(kind(item))
        if check is not None and (objection := check(where, item)):
            return objection
    return None


def ids_are_the_services(sent: Sent) -> str | None:
    """Other hosts name their items otherwise: ``tco_...``, a UUID, ``msg_...`` for reasoning."""
    for n, item in enumerate(items(sent)):
        where = f"input[{n}]"
        prefix = PREFIXES.get(kind(item))
        if prefix and "id" in item and not str(item["id"]).startswith(prefix):
            return (
                f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
            )
    return None


def _message(where: str, item: Mapping[str, Any]) -> str | None:
    role = item.get("role")
    if role not in ROLES:
        return f"Invalid value: '{role}'. Supported values are: {', '.join(ROLES)}."
    content = item.get("content")
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return f"Missing required parameter: '{where}.content'."
    allowed = ASSISTANT_PARTS if role == "assistant" else USER_PARTS
    for p, part in enumerate(content):
        found = str(value_at(part, "type"))
        if found not in allowed:
            return (
                f"Invalid value: '{found}'. Supported values are: {', '.join(allowed)}. ({where})"
            )
        if found.endswith("_text") and not isinstance(part.get("text"), str):
            return f"Missing required parameter: '{where}.content[{p}].text'."
    return None


def _reasoning(where: str, item: Mapping[str, Any]) -> str | None:
    if "id" in item and not is_text(item["id"]):
        return f"Invalid type for '{where}.id': expected a string that is not empty."
    if not isinstance(item.get("summary"), list):
        return f"Missing required parameter: '{where}.summary'."
    for p, part in enumerate(item["summary"]):
        if value_at(part, "type") != "summary_text" or not isinstance(part.get("text"), str):
            return f"Invalid value for '{where}.summary[{p}]'."
    return None


def _call(where: str, item: Mapping[str, Any]) -> str | None:
    if not is_text(item.get("call_id")):
        return f"Missing required parameter: '{where}.call_id'."
    if not matches_pattern(NAME, item.get("name")):
        return f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
    if not isinstance(item.get("arguments"), str):
        return f"Missing required parameter: '{where}.arguments'."
    return None


def _output(where: str, item: Mapping[str, Any]) -> str | None:
    if not is_text(item.get("call_id")):
        return f"Missing required parameter: '{where}.call_id'."
    if not isinstance(item.get("output"), str | list):
        return f"Missing required parameter: '{where}.output'."
    return None


_SHAPES: Mapping[str, Callable[[str, Mapping[str, Any]], str | None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "function_call_output": _output,
}


def calls_are_answered(sent: Sent) -> str | None:
    hosted: set[str] = set()
    called: set[str] = set()
    answered: set[str] = set()
    for item in items(sent):
        name = str(item.get("call_id") or item.get("approval_request_id") or item.get("id"))
        if is_hosted(item) or name in hosted:
            hosted.add(name)
            continue
        if kind(item) in ANSWERS.values():
            called.add(name)
        elif kind(item) in ANSWERS:
            if name not in called and not _continues(sent):
                return f"No tool call found for function call output with call_id {name}."
            answered.add(name)
    if missing := sorted(called - answered):
        return f"No tool output found for function call {missing[0]}."
    return None


def _continues(sent: Sent) -> bool:
    """Whether the service itself has what came before."""
    return bool(sent.body.get("previous_response_id") or sent.body.get("conversation"))


def is_hosted(item: Mapping[str, Any]) -> bool:
    """Whether the service made a call, or its answer, by itself."""
    if kind(item) in ("tool_search_call", "tool_search_output"):
        return item.get("execution") != "client"
    if kind(item) == "shell_call":
        return value_at(item, "environment", "type") not in (None, "local")
    return False


def nothing_is_said_before_the_answers(sent: Sent) -> str | None:
    """DeepSeek: no message may be between a call and its response."""
    due: list[str] = []
    for item in items(sent):
        if kind(item) == "function_call":
            due.append(item["call_id"])
        elif kind(item) == "function_call_output":
            due = [call for call in due if call != item["call_id"]]
        elif kind(item) == "message" and due:
            return f"No tool output found for tool call {due[0]}."
    return None


def ids_are_unique(sent: Sent) -> str | None:
    seen: set[str] = set()
    for item in items(sent):
        if (id := item.get("id")) in seen:
            return (
                f"Duplicate item found with id {id}. Remove duplicate items from your input and "
                "try again."
            )
        seen |= {id} if id else set()
    return None


def reasoning_is_followed(sent: Sent) -> str | None:
    """Rule 1: the item that a reasoning item with an id led to comes directly after it."""
    found = items(sent)
    for n, item in enumerate(found):
        if kind(item) != "reasoning" or "id" not in item:
            continue
        following = found[n + 1] if n + 1 < len(found) else {"role": "user"}
        by_the_user = kind(following) == "message" and following.get("role") != "assistant"
        if by_the_user or (kind(following) in ANSWERS and not is_hosted(following)):
            return (
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                "following item."
            )
    return None


def items_keep_their_reasoning(sent: Sent) -> str | None:
    """Rule 2: an item with its server id has the reasoning that led to it before it."""
    if sent.record is None or value_at(sent.body, "reasoning", "effort") == "none":
        return None
    found = items(sent)
    for n, item in enumerate(found):
        led = sent.record.reasoning_before(str(item.get("id")))
        if led is not None and not _continues(sent) and not _has_reasoning(found[:n], led):
            return (
                f"Item '{item['id']}' of type '{kind(item)}' was provided without its required "
                f"'reasoning' item: '{led.get('id')}'."
            )
    return None


def _has_reasoning(before: Sequence[Mapping[str, Any]], led: Mapping[str, Any]) -> bool:
    """Whether a reasoning item is among others, by its id, its seal or a reference."""
    names = [led[name] for name in ("id", "encrypted_content") if name in led]
    return any(
        kind(item) in ("reasoning", "item_reference")
        and (item.get("id") in names or item.get("encrypted_content") in names)
        for item in before
    )


def reasoning_can_be_read(sent: Sent) -> str | None:
    """Rules 3 and 4: nothing is kept here, so what was thought comes along, and is ours."""
    for item in items(sent):
        if kind(item) != "reasoning":
            continue
        sealed = item.get("encrypted_content")
        if sealed is None:
            if sent.body.get("store") is False and "id" in item:
                return (
                    f"Item with id '{item['id']}' not found. Items are not persisted when `store` "
                    "is set to false."
                )
        elif not matches_pattern(_FERNET, sealed) or (
            sent.record is not None and sent.record.sealed(sealed) is None
        ):
            return (
                f"The encrypted content for item {item.get('id')} could not be verified. "
                "(invalid_encrypted_content)"
            )
    return None


def parameters(sent: Sent) -> str | None:
    asked = sent.body.get("reasoning")
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        return "Invalid type for 'reasoning': expected an object."
    for name, value in asked.items():
        if name not in ASKED:
            return f"Unknown parameter: 'reasoning.{name}'."
        if value is not None and value not in ASKED[name]:
            return f"Invalid value: '{value}'. Supported values are: {', '.join(ASKED[name])}."
    return None


def tools(sent: Sent) -> str | None:
    for n, tool in numbered_objects(sent.body.get("tools")):
        if tool.get("type") == "function" and not matches_pattern(NAME, tool.get("name")):
            return f"Missing required parameter: 'tools[{n}].name'."
        if not is_text(tool.get("type")):
            return f"Missing required parameter: 'tools[{n}].type'."
    return None


_OPENAI = host_names("openai azure")
_PAIRS = "platform.openai.com/docs/guides/reasoning: what api.openai.com answers"

RULES = (
    Rule(check=structure, source="openai SDK types: ResponseInputItemParam"),
    Rule(
        check=ids_are_the_services,
        providers=_OPENAI,
        source="the 400 of api.openai.com: expected an ID that begins with",
    ),
    Rule(check=tools, source="openai SDK types: FunctionToolParam"),
    Rule(check=parameters, providers=_OPENAI, source="openai SDK types: Reasoning"),
    Rule(
        check=calls_are_answered,
        source="the 400s of api.openai.com: no tool output found, no tool call found",
    ),
    Rule(
        check=nothing_is_said_before_the_answers,
        providers=host_names("deepseek"),
        source="a recorded 400 of api.deepseek.com: No tool output found for tool call",
    ),
    Rule(check=ids_are_unique, source="the 400 of api.openai.com: duplicate item"),
    Rule(check=reasoning_can_be_read, providers=_OPENAI, source=_PAIRS),
    Rule(
        check=reasoning_is_followed,
        providers=_OPENAI,
        source="github.com/continuedev/continue/issues/8933; accepted without ids in "
        "braintrustdata/lingua, openAIMultipleReasoningSignaturesReplayParam, 2026-08",
    ),
    Rule(check=items_keep_their_reasoning, providers=_OPENAI, source=_PAIRS),
)
