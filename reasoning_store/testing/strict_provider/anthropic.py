"""Anthropic's Messages: the structure of a request, and then what Claude checks of it.

Messages of one role that follow each other are one turn, and the first may be the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reasoning_store.testing.strict_provider import claude
from reasoning_store.testing.strict_provider.chat_hosts import deepseek_thinks
from reasoning_store.testing.strict_provider.claude import Talk
from reasoning_store.testing.strict_provider.images import images_are_taken
from reasoning_store.testing.strict_provider.rules import (
    Check,
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
    "billing_policy cache_control compaction container context_management diagnostics "
    "fallback_credit_token fallbacks inference_geo max_tokens mcp_servers messages metadata "
    "output_config output_format service_tier speed stop_sequences stream system temperature "
    "thinking thread "
    "tool_choice tools top_k top_p user_profile_id workspace_id".split()
)
ID = r"[a-zA-Z0-9_-]+"

_TEXT = ({"text"}, {"citations", "cache_control"})
_SOURCE = ({"source"}, {"cache_control", "title", "context", "citations", "transformations"})
BLOCKS: Mapping[str, Mapping[str, tuple[set[str], set[str]]]] = {
    "user": {
        "text": _TEXT,
        "image": _SOURCE,
        "document": _SOURCE,
        "search_result": ({"source", "title", "content"}, {"cache_control", "citations"}),
        "tool_result": ({"tool_use_id"}, {"content", "is_error", "cache_control", "toolset_name"}),
    },
    "assistant": {
        "text": _TEXT,
        "thinking": ({"thinking", "signature"}, set()),
        "redacted_thinking": ({"data"}, set()),
        "tool_use": ({"id", "name", "input"}, {"cache_control", "caller", "toolset_name"}),
    },
    "system": {"text": _TEXT},
}
"""The blocks of each role: the keys that a block must have, and those that it may."""

SERVER_SIDE = frozenset(
    "server_tool_use web_search_tool_result web_fetch_tool_result advisor_tool_result "
    "code_execution_tool_result bash_code_execution_tool_result "
    "text_editor_code_execution_tool_result tool_search_tool_result mcp_tool_use mcp_tool_result "
    "mcp_tool_listing container_upload compaction fallback tool_addition tool_removal".split()
)
"""Blocks of the service's own tools; they go back as they came."""


def structure(sent: Sent) -> str | None:
    body = sent.body
    # If the model is in the address, the body names the protocol's version.
    invoked = sent.provider == "aws" and "model" not in body
    named = "anthropic_version" if invoked or sent.provider == "vertex" else "model"
    if name := first_unknown(body, TOP | {named} | ({"anthropic_beta"} if invoked else set())):
        return f"{name}: Extra inputs are not permitted"
    if not is_text(body.get(named)):
        return f"{named}: Field required"
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        return "max_tokens: Field required"
    if not is_list(body.get("messages")):
        return "messages: at least one message is required"
    for n, message in enumerate(body["messages"]):
        if str(value_at(message, "role")) not in BLOCKS:
            return f"messages.{n}.role: Input should be 'user' or 'assistant'"
        if name := first_unknown(message, ("role", "content")):
            return f"messages.{n}.{name}: Extra inputs are not permitted"
        if objection := _content(n, message, sent, is_last=n == len(body["messages"]) - 1):
            return objection
    return _system(body.get("system"))


_UNSIGNED = host_names("deepseek minimax moonshot zai")
"""The hosts of other makers' models, whose thoughts have no signature."""


def _system(system: Any) -> str | None:
    if system is None or isinstance(system, str):
        return None
    for n, block in numbered_objects(system):
        if block.get("type") != "text" or not is_text(block.get("text")):
            return f"system.{n}: text content blocks must be non-empty"
    return None if isinstance(system, list) else "system: Input should be a valid string or list"


def _content(n: int, message: Mapping[str, Any], sent: Sent, *, is_last: bool) -> str | None:
    content = message.get("content")
    if not content and not (is_last and message["role"] == "assistant"):
        return f"messages.{n}: all messages must have non-empty content"
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return f"messages.{n}.content: Input should be a valid string or list"
    known = BLOCKS[message["role"]]
    for b, block in enumerate(content):
        kind = str(value_at(block, "type"))
        where = f"messages.{n}.content.{b}"
        if kind in SERVER_SIDE:
            continue
        if kind not in known:
            return (
                f"{where}: Input tag '{kind}' found using 'type' does not match any of the "
                f"expected tags for role {message['role']}"
            )
        must, may = known[kind]
        if sent.provider in _UNSIGNED:
            must, may = must - {"signature"}, may | {"signature"}
        if missing := sorted(must - set(block)):
            return f"{where}.{kind}.{missing[0]}: Field required"
        if extra := first_unknown(block, frozenset({"type", *must, *may})):
            return f"{where}.{kind}.{extra}: Extra inputs are not permitted"
        check = _SHAPES.get(kind)
        if check is not None and (objection := check(block)):
            return f"{where}.{kind}.{objection}"
    return None


def _string(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    return lambda block: (
        None if isinstance(block[name], str) else f"{name}: Input should be a valid string"
    )


def _use(block: Mapping[str, Any]) -> str | None:
    if not matches_pattern(ID, block["id"]):
        return "id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    if not is_text(block["name"]):
        return "name: String should have at least 1 character"
    if not isinstance(block["input"], Mapping):
        return "input: Input should be a valid dictionary"
    return None


_SHAPES: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "text": _string("text"),
    "thinking": _string("thinking"),
    "redacted_thinking": _string("data"),
    "tool_use": _use,
}


def turns(sent: Sent) -> list[tuple[str, list[claude.Block]]]:
    """Return role and blocks of each turn: messages of one role that follow each other are one."""
    found: list[tuple[str, list[claude.Block]]] = []
    for message in sent.body["messages"]:
        if found and found[-1][0] == message["role"]:
            found[-1][1].extend(claude.blocks(message["content"]))
        else:
            found.append((message["role"], [*claude.blocks(message["content"])]))
    return found


def text_is_not_blank(sent: Sent) -> str | None:
    for message in sent.body["messages"]:
        for block in claude.blocks(message["content"]):
            if block["type"] == "text" and not block["text"].strip():
                return (
                    "messages: text content blocks must contain non-whitespace text"
                    if block["text"]
                    else "messages: text content blocks must be non-empty"
                )
    return None


def calls_are_answered(sent: Sent) -> str | None:
    """A call is answered at the beginning of the next message."""
    due: list[str] = []
    seen: set[str] = set()
    n = 0
    for n, (_, content) in enumerate(turns(sent)):
        answers = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if missing := [call for call in due if call not in answers]:
            return _unanswered(n - 1, missing)
        if stray := [call for call in answers if call not in due]:
            return (
                f"messages.{n}.content: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{', '.join(stray)}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message."
            )
        if len(answers) != len(set(answers)):
            return f"messages.{n}.content: each `tool_use` must have a single `tool_result`"
        if any(block["type"] == "tool_result" for block in content[len(answers) :]):
            return f"messages.{n}.content: `tool_result` blocks must come first"
        due = [block["id"] for block in content if block["type"] == "tool_use"]
        if len(due) != len(set(due)) or seen & set(due):
            return f"messages.{n}.content: `tool_use` ids must be unique"
        seen |= set(due)
    return _unanswered(n, due) if due else None


def _unanswered(n: int, calls: list[str]) -> str:
    return (
        f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message."
    )


def tools(sent: Sent) -> str | None:
    for n, tool in numbered_objects(sent.body.get("tools")):
        if tool.get("type", "custom") != "custom":
            continue
        if not matches_pattern(r"[a-zA-Z0-9_-]{1,128}", tool.get("name")):
            return f"tools.{n}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if not isinstance(tool.get("input_schema"), Mapping):
            return f"tools.{n}.custom.input_schema: Field required"
        if name := first_unknown(tool, _TOOL):
            return f"tools.{n}.custom.{name}: Extra inputs are not permitted"
    return None


_TOOL = frozenset(
    "type name description input_schema cache_control strict allowed_callers defer_loading "
    "input_examples eager_input_streaming".split()
)


def ends_with_the_user(sent: Sent) -> str | None:
    """A model that thinks does not go on in the middle of its own message, if not paused in it.

    A message that was paused (``pause_turn``) has a call of a server's tool.
    """
    last = sent.body["messages"][-1]
    if any(block["type"] == "server_tool_use" for block in claude.blocks(last["content"])):
        return None
    if last["role"] == "assistant" and not read_talk(sent).is_off:
        return (
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    return None


def deepseek_missing(sent: Sent) -> str | None:
    """Every message with a call needs its thought, an empty one too, in whichever turn."""
    if not deepseek_thinks(sent):
        return None
    for message in sent.body["messages"]:
        kinds = {block["type"] for block in claude.blocks(message["content"])}
        if "tool_use" in kinds and "thinking" not in kinds:
            return "The `content[].thinking` in the thinking mode must be passed back to the API."
    return None


def kimi_missing(sent: Sent) -> str | None:
    """Every message with a call of the open turn needs its thought."""
    if value_at(sent.body, "thinking", "type") == "disabled":
        return None
    messages = sent.body["messages"]
    for n in range(_open_turn(messages), len(messages)):
        kinds = {block["type"] for block in claude.blocks(messages[n]["content"])}
        if "tool_use" in kinds and "thinking" not in kinds:
            return (
                "thinking is enabled but reasoning_content is missing in assistant tool call "
                f"message at index {n}"
            )
    return None


def _open_turn(messages: list[Mapping[str, Any]]) -> int:
    """Return the place of the last message in which a user says something."""
    said = (
        n
        for n, message in enumerate(messages)
        if message["role"] == "user"
        and any(block["type"] != "tool_result" for block in claude.blocks(message["content"]))
    )
    return max(said, default=0)


def read_talk(sent: Sent) -> Talk:
    body = sent.body
    return Talk(
        body=body,
        contents=turns(sent),
        model=claude.known(sent.model),
        thinking=body.get("thinking"),
        effort=value_at(body, "output_config", "effort"),
        max_tokens=body["max_tokens"],
        is_forced=value_at(body, "tool_choice", "type") in ("any", "tool"),
        record=sent.record,
    )


def _of_claude(check: Callable[[Talk], str | None]) -> Check:
    return lambda sent: check(read_talk(sent))


_CLAUDE = host_names("anthropic aws azure vertex")
_DOCS = "platform.claude.com/docs/en/build-with-claude/extended-thinking"

RULES = (
    Rule(check=structure, source="anthropic SDK types: MessageCreateParams"),
    Rule(check=text_is_not_blank, source="github.com/NousResearch/hermes-agent/pull/63983"),
    Rule(check=calls_are_answered, source="platform.claude.com/docs: handling tool_result"),
    Rule(check=tools, source="anthropic SDK types: ToolParam"),
    Rule(
        check=deepseek_missing,
        providers=host_names("deepseek"),
        source="github.com/esengine/DeepSeek-Reasonix/pull/8927; .../issues/8902",
    ),
    Rule(
        check=kimi_missing,
        providers=host_names("moonshot"),
        source="github.com/YishenTu/claudian/issues/759: api.moonshot.cn/anthropic",
    ),
    Rule(
        check=images_are_taken,
        providers=_CLAUDE,
        source="platform.claude.com/docs/en/build-with-claude/vision; "
        "github.com/anthropics/claude-code/issues/14887, .../issues/49720",
    ),
    *(Rule(check=_of_claude(check), providers=_CLAUDE, source=_DOCS) for check in claude.CHECKS),
    Rule(
        check=ends_with_the_user,
        providers=_CLAUDE,
        source=_DOCS,
    ),
)
