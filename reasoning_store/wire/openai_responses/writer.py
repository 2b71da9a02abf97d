"""Theory of the Responses writer: a reasoning item and the items it led to belong together.

A reasoning item is written directly before the items of its response, and only items after it may
carry the server's ids. If reasoning is left out, the ids of the items that would have followed it
are left out too (``call_id`` is written). A hosted tool's item always carries its id: it is
accepted without reasoning before it. Reasoning that nothing followed, because the stream died or
its limit was reached, is written without its id where the host demands a follower of reasoning
with one (``reasoning_needs_follower``). Raw items are any mapping and are never added to.

An assistant's message without an id is a role and a text. Nothing has to alternate; a host may
want texts before all calls (``calls_last``). The history is ours, so a host that can is asked
to store none and to return its ciphertext (``stateless``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import (
    alternating,
    call_ids,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.message_writer import (
    MessageWriter,
    Outgoing,
    Tools,
    with_extra_body,
)
from reasoning_store.wire.openai_responses import typed_calls
from reasoning_store.wire.tools import (
    NO_PARAMETERS,
    call_arguments,
    media_url,
    neutral_function,
    system_texts,
)

Item = dict[str, Any]

SDK_PARAMETERS: Final = frozenset(
    "background conversation include input instructions max_output_tokens max_tool_calls "
    "metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning "
    "safety_identifier service_tier store stream stream_options temperature text tool_choice "
    "tools top_logprobs top_p truncation user".split()
)
"""The parameters of the official SDK's call; other keys are sent in its ``extra_body``."""

_BETWEEN_PARTS: Final = "\n\n"
_OF_REASONING: Final = ("item_id", "item_type", "summary", "content")
_OF_CALLS: Final = ("caller", "namespace")
"""Fields of a call that go back as they came."""
_NEEDS_NO_REASONING: Final = ("compaction",)
"""Raw items that no reasoning led to."""


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official SDK's call."""
    return with_extra_body(body, SDK_PARAMETERS)


class ResponsesWriter(MessageWriter):
    """Writes the messages of one request."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._types: dict[str, str] = {}
        """The types of the calls that are not a function's, by their id."""
        self._thoughts = 0
        self._used: set[str] = set()

    def write_body(self, body: Item, system: Any, tools: Tools) -> None:
        prompt = system_texts(system)
        if prompt:
            body["instructions"] = _BETWEEN_PARTS.join(prompt)
        items = [system] if isinstance(system, Mapping) else system
        body["input"] = [*(items if prompt is None else ()), *self.messages()]
        if tools:
            body["tools"] = [_write_tool(tool) for tool in tools]
        if self.contract.messages.stateless:
            body |= {"store": False, "include": ["reasoning.encrypted_content"]}

    def write_message(self, outgoing: Outgoing) -> None:
        self.rendered += self.items(outgoing.message)

    def items(self, message: Message) -> list[Item]:
        """Return a message as items in their order."""
        answers = [
            self._write_result(block)
            for block in message.blocks
            if isinstance(block, ToolResponseBlock)
        ]
        blocks = [block for block in message.blocks if not isinstance(block, ToolResponseBlock)]
        if message.role == "assistant":
            return [*self._reply_items(message, blocks), *answers]
        role = "system" if message.role == "system" else "user"
        return [*answers, *self._user_items(role, blocks)]

    def _user_items(self, role: str, blocks: Sequence[Block]) -> list[Item]:
        parts = []
        for block in blocks:
            if isinstance(block, TextBlock):
                parts += [{"type": "input_text", "text": block.text}] if block.text else []
            elif isinstance(block, MediaBlock) and (part := _write_media(block)) is not None:
                parts.append(part)
            else:
                self.leave_out(block)
        if not parts:
            return []
        if len(parts) == 1 and parts[0]["type"] == "input_text":
            return [{"role": role, "content": parts[0]["text"]}]
        return [{"role": role, "content": parts}]

    def _reply_items(self, message: Message, blocks: Sequence[Block]) -> list[Item]:
        with_id = False  # whether items may carry their ids: their reasoning is before them
        items: list[Item] = []
        spoken: Item | None = None  # the last message written, which the next text may be part of
        for block in blocks:
            if isinstance(block, ThinkingBlock):
                items.append(self._write_reasoning(block))
                with_id = True
            elif isinstance(block, TextBlock):
                if block.text:
                    before = spoken if items and items[-1] is spoken else None
                    spoken = self._write_text(before, block, with_id=with_id)
                    items += [] if spoken is before else [spoken]
            elif isinstance(block, ToolCallBlock):
                items.append(self._write_call(block, with_id=with_id))
            elif isinstance(block, RawBlock) and self._is_returned(block, message):
                if block.data.get("type") in _NEEDS_NO_REASONING:
                    self._close_reasoning(items)
                items.append(dict(block.data))
            else:
                self.leave_out(block)
        self._close_reasoning(items)
        if self.contract.messages.calls_last:
            items.sort(key=_is_call)
        return items

    def _close_reasoning(self, items: list[Item]) -> None:
        """Take the ids off reasoning that nothing followed: its seal is accepted alone."""
        if self.contract.returning.reasoning_needs_follower:
            for item in reversed(items):
                if item.get("type") != "reasoning":
                    break
                item.pop("id", None)

    def _is_returned(self, block: RawBlock, message: Message) -> bool:
        if block.provider_metadata or not alternating.is_own(block, message, self.contract):
            return False  # a part of a message, or another host's
        return not isinstance(block.data.get("id"), str) or self._is_new(block.data["id"])

    def _is_new(self, item_id: Any) -> bool:
        """Whether an item may have this id: two with one id are refused."""
        if not isinstance(item_id, str) or not item_id or item_id in self._used:
            return False
        self._used.add(item_id)
        return True

    def _write_reasoning(self, block: ThinkingBlock) -> Item:
        self._thoughts += 1
        about = block.provider_metadata or {}
        if not block.opaque and about.get("item_type") != "reasoning":
            about = {}  # a plain thought from elsewhere, and its metadata there
        summary, content = _texts(block, about)
        item_id = about.get("item_id")
        if not self._is_new(item_id):
            item_id = call_ids.make_call_id(self._thoughts, block.thought).replace("call_", "")
        item: Item = {
            **other_fields(about, _OF_REASONING),
            "id": item_id,
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text} for text in summary],
        }
        if content:
            item["content"] = [{"type": "reasoning_text", "text": text} for text in content]
        if block.encrypted:
            item["encrypted_content"] = block.encrypted
        if block.signature:
            item["signature"] = block.signature
        return item

    def _write_text(self, before: Item | None, block: TextBlock, *, with_id: bool) -> Item:
        """Return a text as a message: the one before, where it is part of that, or a new one."""
        about = block.provider_metadata or {}
        item_id = about.get("item_id") if with_id else None
        phase = {"phase": about["phase"]} if about.get("phase") else {}
        if item_id and before is not None and before.get("id") == item_id:
            before["content"].append(_write_text_part(block, about))
            return before
        if self._is_new(item_id):
            return {
                "id": item_id,
                "type": "message",
                "role": "assistant",
                "status": about.get("status", "completed"),
                **phase,
                "content": [_write_text_part(block, about)],
            }
        return {"type": "message", "role": "assistant", "content": block.text, **phase}

    def _write_call(self, block: ToolCallBlock, *, with_id: bool) -> Item:
        about = block.provider_metadata or {}
        if kind := typed_calls.type_of(block):
            self._types[block.id] = kind
            item_id = about.get("item_id") if self._is_new(about.get("item_id")) else None
            call_id = block.id
            return typed_calls.write_call(block, kind, item_id, call_id)
        item: Item = {name: about[name] for name in _OF_CALLS if about.get(name)}
        if with_id and self._is_new(about.get("item_id")):
            item["id"] = about["item_id"]
        item["call_id"] = block.id
        item["name"] = block.name
        if _is_custom(block):
            self._types[block.id] = "custom_tool_call"
            return {"type": "custom_tool_call", **item, "input": _free_input(block)}
        return {
            "type": "function_call",
            **item,
            "arguments": codec.argument_text(block),
            "status": about.get("status", "completed"),
        }

    def write_result_part(self, part: TextBlock | MediaBlock) -> Item | None:
        if isinstance(part, MediaBlock):
            return _write_media(part)
        return {"type": "input_text", "text": part.text} if part.text else None

    def _write_result(self, block: ToolResponseBlock) -> Item:
        kind = self._types.get(block.call_id, "function_call")
        call_id = block.call_id
        if kind in typed_calls.TYPES:
            item, fits = typed_calls.write_result(block, kind, call_id)
            if not fits:
                self.left_out[f"an answer that {kind} has no form for"] = None
            return item
        return {
            "type": f"{kind}_output",
            "call_id": call_id,
            "output": self.result_content(block),
        }


def _is_call(item: Item) -> bool:
    return str(item.get("type")).endswith("_call")


def _write_text_part(block: TextBlock, about: Mapping[str, Any]) -> Item:
    if about.get("part_type") == "refusal":
        return {"type": "refusal", "refusal": block.text}
    annotations = about.get("annotations")
    listed = list(annotations) if isinstance(annotations, list) else []
    return {"type": "output_text", "text": block.text, "annotations": listed}


def _texts(block: ThinkingBlock, about: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the parts of a thought: its summary's, and those of the reasoning itself."""
    summary, content = (_strings(about.get(name)) for name in ("summary", "content"))
    rest = block.thought
    if _BETWEEN_PARTS.join(text for text in (*summary, *content) if text) == rest:
        return summary, content
    return ([rest], []) if block.source_field == "reasoning.summary" else ([], [rest])


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _is_custom(block: ToolCallBlock) -> bool:
    return (block.provider_metadata or {}).get("item_type") == "custom_tool_call"


def _free_input(block: ToolCallBlock) -> str:
    value = call_arguments(block).get("input")
    return value if isinstance(value, str) else codec.argument_text(block)


def _write_tool(tool: Mapping[str, Any]) -> Item:
    about = neutral_function(tool)
    if about is None:
        return dict(tool)
    return {
        "type": "function",
        **other_fields(about, ()),
        "parameters": about.get("parameters") or dict(NO_PARAMETERS),
        # Without this field the protocol takes a schema for a strict one.
        "strict": bool(about.get("strict")),
    }


# Media


def _write_media(block: MediaBlock) -> Item | None:
    if block.data is None and block.url is None:
        return None  # the application's own name for it means nothing to others
    render = _MEDIA.get(block.kind)
    return render(block) if render is not None else None


def _write_image(block: MediaBlock) -> Item:
    return {"type": "input_image", "detail": "auto", "image_url": media_url(block)}


def _write_file(block: MediaBlock) -> Item:
    if block.data is None:
        return {"type": "input_file", "file_url": block.url}
    data = media_url(block)
    return {"type": "input_file", "filename": block.name or "file", "file_data": data}


_MEDIA: Final[Mapping[str, Callable[[MediaBlock], Item]]] = {
    "image": _write_image,
    "file": _write_file,
}
