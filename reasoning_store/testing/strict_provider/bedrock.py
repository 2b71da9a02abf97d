"""Bedrock's Converse: its structure, and then the checks of Claude's models on thinking.

For the checks that belong to the model the conversation is put into the blocks of the
Messages protocol. Other makers' models sign nothing; DeepSeek's takes no reasoning back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from reasoning_store.testing.strict_provider import claude
from reasoning_store.testing.strict_provider.claude import Talk
from reasoning_store.testing.strict_provider.rules import (
    Check,
    Rule,
    Sent,
    first_unknown,
    is_list,
    is_text,
    matches_pattern,
    numbered_objects,
    value_at,
)

TOP = frozenset(
    "modelId messages system inferenceConfig toolConfig guardrailConfig "
    "additionalModelRequestFields promptVariables additionalModelResponseFieldPaths "
    "requestMetadata performanceConfig serviceTier outputConfig".split()
)
BLOCKS = (
    *("text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent"),
    *("cachePoint", "reasoningContent", "citationsContent", "searchResult", "toolAddition"),
    "toolRemoval",
)
ID = r"[a-zA-Z0-9_.:-]{1,64}"
NAME = r"[a-zA-Z0-9_-]{1,64}"


def structure(sent: Sent) -> str | None:
    body = sent.body
    if name := first_unknown(body, TOP):
        return f'Unknown parameter in input: "{name}"'
    if not is_list(body.get("messages")):
        return "The messages field is required. Add at least one message, and try again."
    for n, message in enumerate(body["messages"]):
        where = f"messages.{n}"
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
            return f"{where}.role: must be one of: user, assistant"
        if name := first_unknown(message, ("role", "content")):
            return f'Unknown parameter in {where}: "{name}"'
        if not is_list(message.get("content")):
            return (
                f"The content field in the Message object at {where} is empty. Add a ContentBlock."
            )
        for b, block in enumerate(message["content"]):
            if objection := _block(f"{where}.content.{b}", block):
                return objection
    for n, block in numbered_objects(body.get("system")):
        if "text" in block and not str(block["text"]).strip():
            return f"The text field in the ContentBlock object at system.{n} is blank."
    return None


def _block(where: str, block: Any) -> str | None:
    if not isinstance(block, Mapping) or len(block) != 1 or next(iter(block)) not in BLOCKS:
        return f"Invalid number of parameters set for tagged union structure {where}."
    ((kind, value),) = block.items()
    if kind == "text" and not (isinstance(value, str) and value.strip()):
        return (
            f"The text field in the ContentBlock object at {where} is blank. Add text to the text "
            "field, and try again."
        )
    check = _SHAPES.get(kind)
    return check(where, value) if check is not None else None


def _reasoning(where: str, value: Any) -> str | None:
    if not isinstance(value, Mapping) or len(value) != 1:
        return f"Invalid number of parameters set for tagged union structure {where}."
    if "reasoningText" in value:
        given = value["reasoningText"]
        if not isinstance(value_at(given, "text"), str):
            return f'Missing required parameter in {where}.reasoningContent.reasoningText: "text"'
        if name := first_unknown(given, ("text", "signature")):
            return f'Unknown parameter in {where}.reasoningContent.reasoningText: "{name}"'
        return None
    if is_text(value.get("redactedContent")):
        return None
    return f"Invalid number of parameters set for tagged union structure {where}."


def _use(where: str, value: Any) -> str | None:
    if not matches_pattern(ID, value_at(value, "toolUseId")):
        return f"{where}.toolUse.toolUseId: must satisfy regular expression pattern: {ID}"
    if not matches_pattern(NAME, value_at(value, "name")):
        return f"{where}.toolUse.name: must satisfy regular expression pattern: {NAME}"
    if not isinstance(value_at(value, "input"), Mapping):
        return (
            f"The format of the value at {where}.toolUse.input is invalid. Provide a json object."
        )
    return None


def _result(where: str, value: Any) -> str | None:
    if not matches_pattern(ID, value_at(value, "toolUseId")) or not isinstance(
        value_at(value, "content"), list
    ):
        return f"Missing required parameter in {where}.toolResult"
    if value_at(value, "status") == "error" and not value["content"]:
        return (
            f"The content field at {where}.toolResult cannot be empty when status value is error."
        )
    return None


_SHAPES: Mapping[str, Callable[[str, Any], str | None]] = {
    "reasoningContent": _reasoning,
    "toolUse": _use,
    "toolResult": _result,
}


def roles_alternate(sent: Sent) -> str | None:
    roles = [message["role"] for message in sent.body["messages"]]
    if roles[0] != "user":
        return (
            "A conversation must start with a user message. Try again with a conversation that "
            "starts with a user message."
        )
    if any(one == other for one, other in pairwise(roles)):
        return (
            "A conversation must alternate between user and assistant roles. Make sure the "
            "conversation alternates between user and assistant roles and try again."
        )
    return None


def calls_are_answered(sent: Sent) -> str | None:
    due: list[str] = []
    n = 0
    for n, message in enumerate(sent.body["messages"]):
        answers = [
            block["toolResult"]["toolUseId"]
            for block in message["content"]
            if "toolResult" in block and message["role"] == "user"
        ]
        if missing := [call for call in due if call not in answers]:
            return _unanswered(n, missing)
        if len(answers) > len(due) or set(answers) - set(due):
            return (
                f"The number of toolResult blocks at messages.{n}.content exceeds the number of "
                "toolUse blocks of previous turn."
            )
        due = [
            block["toolUse"]["toolUseId"]
            for block in message["content"]
            if "toolUse" in block and block["toolUse"].get("type") != "server_tool_use"
        ]
        if len(due) != len(set(due)):
            return f"messages.{n}.content contains duplicate Ids"
    return _unanswered(n + 1, due) if due else None


def _unanswered(n: int, calls: list[str]) -> str:
    ids = ", ".join(calls)
    return f"Expected toolResult blocks at messages.{n}.content for the following Ids: {ids}"


def calls_have_tools(sent: Sent) -> str | None:
    """A conversation with tool blocks needs the tools too."""
    used = any(
        "toolUse" in block or "toolResult" in block
        for message in sent.body["messages"]
        for block in message["content"]
    )
    if used and not value_at(sent.body, "toolConfig", "tools"):
        return (
            "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        )
    return None


def thoughts_are_signed(sent: Sent) -> str | None:
    for n, message in enumerate(sent.body["messages"]):
        for b, block in enumerate(message["content"]):
            text = value_at(block, "reasoningContent", "reasoningText")
            if text is not None and not is_text(text.get("signature")):
                return f"messages.{n}.content.{b}.thinking.signature: Field required"
    return None


def no_thoughts_come_back(sent: Sent) -> str | None:
    for n, message in enumerate(sent.body["messages"]):
        for b, block in enumerate(message["content"]):
            if "reasoningContent" in block:
                return (
                    f"This model doesn't support the reasoningContent field at "
                    f"messages.{n}.content.{b}. Remove it, and try again."
                )
    return None


def read_talk(sent: Sent) -> Talk:
    """Return the same conversation in the blocks of the Messages protocol."""
    body = sent.body
    more = body.get("additionalModelRequestFields")
    effort = value_at(body, "outputConfig", "effort") or value_at(more, "output_config", "effort")
    return Talk(
        body=body,
        contents=[(m["role"], [_plain(block) for block in m["content"]]) for m in body["messages"]],
        model=claude.known(sent.model),
        thinking=value_at(more, "thinking") or value_at(more, "reasoning_config"),
        effort=effort,
        max_tokens=value_at(body, "inferenceConfig", "maxTokens"),
        is_forced=bool({"any", "tool"} & set(value_at(body, "toolConfig", "toolChoice") or ())),
        record=sent.record,
    )


def _plain(block: Mapping[str, Any]) -> Mapping[str, Any]:
    ((kind, value),) = block.items()
    if kind == "reasoningContent":
        if "redactedContent" in value:
            return {"type": "redacted_thinking", "data": value["redactedContent"]}
        given = value["reasoningText"]
        return {
            "type": "thinking",
            "thinking": given["text"],
            "signature": given.get("signature", ""),
        }
    return {"type": _KINDS.get(kind, kind), kind: value}


_KINDS = {"toolUse": "tool_use", "toolResult": "tool_result"}


def _of_claude(check: Callable[[Talk], str | None]) -> Check:
    return lambda sent: check(read_talk(sent))


_CLAUDE = ("*claude*",)
_SHAPE = "botocore service model bedrock-runtime: Converse"

RULES = (
    Rule(check=structure, source=_SHAPE),
    Rule(
        check=roles_alternate,
        source="docs.aws.amazon.com/bedrock: ValidationException of Converse",
    ),
    Rule(
        check=calls_are_answered,
        source="docs.aws.amazon.com/bedrock: ValidationException of Converse",
    ),
    Rule(
        check=calls_have_tools,
        source="docs.aws.amazon.com/bedrock: ValidationException of Converse",
    ),
    Rule(
        check=thoughts_are_signed,
        models=_CLAUDE,
        source="docs.aws.amazon.com/bedrock claude-messages-thinking",
    ),
    Rule(
        check=no_thoughts_come_back,
        models=("*deepseek*",),
        source="docs.aws.amazon.com/bedrock: no signature, do not send back",
    ),
    *(
        Rule(
            check=_of_claude(check),
            models=_CLAUDE,
            source="docs.aws.amazon.com/bedrock claude-messages-thinking",
        )
        for check in claude.CHECKS
    ),
)
