"""Calls of the Responses protocol that have an item type of their own, and their results.

In addition to functions the application executes calls whose type names the tool: patching a
file, running a command, using a computer, approving a server's call, finding tools. The name
of such a call is its type, its parameters are the fields of its item. The result is an item of
another type: a result that is such an item already is sent as it is, any other is put where
that type has its output. An error and a cleared result have no picture and no tools: a blank
picture and an empty list are sent. Any other answer that this type has no form for is sent in
another, with a warning: a blank picture, a refusal, or a function's output, which is accepted for
a search.

A shell in the service's environment and a search for tools that the server executes are hosted,
and need no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import MediaBlock, ToolCallBlock, ToolResponseBlock
from reasoning_store.conversation.chunks import ToolCallChunk
from reasoning_store.conversation.placeholders import PLACEHOLDER
from reasoning_store.wire.content_parts import result_parts
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.tools import call_arguments, media_url

Item = dict[str, Any]

_OWN_FIELDS: Final = ("id", "type", "call_id", "status")
_APPROVAL: Final = "mcp_approval_request"
_WORDS: Final = {
    **dict.fromkeys(("approve", "approved", "true", "yes"), True),
    **dict.fromkeys(("deny", "denied", "false", "no", "reject", "rejected"), False),
}
_BLANK: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA"
    "60e6kgAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""


def is_typed(data: Mapping[str, Any]) -> bool:
    """Whether an item is such a call, and the application's to answer."""
    kind = data.get("type")
    if kind == "shell_call":
        environment = data.get("environment")
        return not isinstance(environment, Mapping) or environment.get("type") == "local"
    if kind == "tool_search_call":
        return data.get("execution") == "client"
    return kind in _RESULTS


def call_of(data: Mapping[str, Any], number: int) -> ToolCallChunk:
    """Return the call that such an item is; its answer names an approval by the item's own id."""
    call_id = data.get("call_id") or data.get("id")
    kind = data["type"]
    about = {"item_id": data.get("id"), "item_type": kind, "status": data.get("status")}
    return ToolCallChunk(
        index=number,
        id=call_id if isinstance(call_id, str) else "",
        name=str(kind).removesuffix("_call"),
        parameters=other_fields(data, _OWN_FIELDS),
        is_complete=True,
        metadata=other_fields(about, ()),
    )


def type_of(block: ToolCallBlock) -> str | None:
    """Return the type of a call's item, where it is one of these."""
    kind = (block.provider_metadata or {}).get("item_type")
    return kind if kind in _RESULTS else None


def write_call(block: ToolCallBlock, kind: str, item_id: str | None, call_id: str) -> Item:
    """Return a call as the item that it came as."""
    if kind == _APPROVAL:
        return {"type": kind, "id": call_id, **call_arguments(block)}
    status = (block.provider_metadata or {}).get("status")
    return {
        "type": kind,
        **({"id": item_id} if item_id else {}),
        "call_id": call_id,
        **call_arguments(block),
        **({"status": status} if status else {}),
    }


def write_result(block: ToolResponseBlock, kind: str, call_id: str) -> tuple[Item, bool]:
    """Return the answer to a call of this type, and whether the type has a form for it."""
    output, render = _RESULTS[kind]
    named = {_ID_FIELDS.get(kind, "call_id"): call_id}
    if isinstance(block.result, Mapping) and block.result.get("type") == output:
        return {**block.result, **named}, True
    fields = render(block)
    if fields is not None:
        return {"type": output, **named, **fields}, True
    return {**named, **_INSTEAD[kind](codec.result_text(block))}, False


def _patch_fields(block: ToolResponseBlock) -> Item:
    status = "failed" if block.is_error else "completed"
    return {"status": status, "output": codec.result_text(block)}


def _shell_fields(block: ToolResponseBlock) -> Item:
    if isinstance(block.result, list):
        return {"output": block.result}
    text = codec.result_text(block)
    outputs = {"stdout": "", "stderr": text} if block.is_error else {"stdout": text, "stderr": ""}
    return {"output": [{**outputs, "outcome": {"type": "exit", "exit_code": int(block.is_error)}}]}


def _local_shell_fields(block: ToolResponseBlock) -> Item:
    # The SDK's types name the call by ``id``, the guide by ``call_id``.
    return {"id": block.call_id, "output": codec.result_text(block)}


def _computer_fields(block: ToolResponseBlock) -> Item | None:
    if isinstance(block.result, Mapping):
        return {"output": dict(block.result)}
    media = [part for part in result_parts(block) or () if isinstance(part, MediaBlock)]
    url = _BLANK if _says_nothing(block) else media_url(media[0]) if media else block.result
    if not isinstance(url, str) or not url.startswith(("data:", "http:", "https:")):
        return None
    return {"output": {"type": "computer_screenshot", "image_url": url}}


def _approval_fields(block: ToolResponseBlock) -> Item | None:
    """Approve only an explicit yes."""
    result = block.result
    if isinstance(result, Mapping) and isinstance(result.get("approve"), bool):
        return {"approve": result["approve"], **other_fields(result, ("approve", "type"))}
    if block.is_error:
        return {"approve": False, "reason": codec.result_text(block)}
    approve = _WORDS.get(result.strip().lower()) if isinstance(result, str) else result
    return {"approve": approve} if isinstance(approve, bool) else None


def _search_fields(block: ToolResponseBlock) -> Item | None:
    result = block.result
    found = result.get("tools") if isinstance(result, Mapping) else result
    tools = [] if _says_nothing(block) else found
    if not isinstance(tools, list):
        return None
    return {"execution": "client", "status": "completed", "tools": tools}


def _says_nothing(block: ToolResponseBlock) -> bool:
    """Whether a text is the reason why there is no result."""
    is_text = not isinstance(block.result, Mapping | list)
    return is_text and (block.is_error or block.result == PLACEHOLDER)


_RESULTS: Final[Mapping[Any, tuple[str, Callable[[ToolResponseBlock], Item | None]]]] = {
    "apply_patch_call": ("apply_patch_call_output", _patch_fields),
    "computer_call": ("computer_call_output", _computer_fields),
    "local_shell_call": ("local_shell_call_output", _local_shell_fields),
    _APPROVAL: ("mcp_approval_response", _approval_fields),
    "shell_call": ("shell_call_output", _shell_fields),
    "tool_search_call": ("tool_search_output", _search_fields),
}
"""The type of each call, with the type of its result and the function that writes its fields."""
_INSTEAD: Final[Mapping[Any, Callable[[str], Item]]] = {
    "computer_call": lambda text: {
        "type": "computer_call_output",
        "output": {"type": "computer_screenshot", "image_url": _BLANK},
    },
    _APPROVAL: lambda text: {"type": "mcp_approval_response", "approve": False, "reason": text},
    "tool_search_call": lambda text: {"type": "function_call_output", "output": text},
}
"""The answer to a call whose type has no form for the one that is stored."""
TYPES: Final = frozenset(_RESULTS)
_ID_FIELDS: Final[Mapping[str, str]] = {_APPROVAL: "approval_request_id"}
