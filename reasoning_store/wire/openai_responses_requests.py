"""OpenAI's Responses protocol, the writing direction: messages as input items.

Theory. A reasoning item and what it led to are one: it goes directly before the items of its
response, and these may name themselves by the server's ids only behind it. Where reasoning
stayed home, the ids of the items that would have followed it go too (``call_id`` stays), and
with them what a hosted tool did, which is nothing without its id. Reasoning that led to
nothing, because the stream died or its limit was reached, gets a word said behind it where
the host wants the pair (``paired``). What was kept as it came is any mapping: only what was
made here is added to.

An assistant's message without an id has another shape than one with: a role and a text.
Nothing has to alternate here. The history is ours, so a host that can is asked to keep none
and to give back its ciphertext (``stateless``).

What is kept was decided before. The reading direction is ``openai_responses``; this module
must not know settings, tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import asking, call_ids, neutral, turns
from reasoning_store.wire.base import Asked, Outgoing, Written, name_of, without
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.pages import Page, with_extra_body

Item = dict[str, Any]

BUILT: Final = frozenset({"model", "instructions", "input", "tools"})

SDK_PARAMETERS: Final = frozenset(
    "background conversation include input instructions max_output_tokens max_tool_calls "
    "metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning "
    "safety_identifier service_tier store stream stream_options temperature text tool_choice "
    "tools top_logprobs top_p truncation user".split()
)
"""What the official SDK's call takes by name; the rest goes through its ``extra_body``."""

_BETWEEN_PARTS: Final = "\n\n"
_OF_REASONING: Final = ("item_id", "item_type", "summary", "content")
_OF_CALLS: Final = ("caller", "namespace")
"""What a call says beside its data and takes back as it came."""
_STANDS_ALONE: Final = ("compaction",)
"""Kept items that no reasoning led to."""


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return _Page(contract)


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official SDK's call."""
    return with_extra_body(body, SDK_PARAMETERS)


class _Page(Page):
    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._custom: set[str] = set()
        """The calls that any text was given to."""
        self._thoughts = 0
        self._used: set[str] = set()
        self._unfollowed = False

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: Item = {}
        if model is not None:
            body["model"] = model
        prompt = neutral.system_texts(system)
        if prompt:
            body["instructions"] = _BETWEEN_PARTS.join(prompt)
        given = [system] if isinstance(system, Mapping) else system
        body["input"] = [*(given if prompt is None else ()), *self.messages(copies=copies)]
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        unsaid, held = asking.ask(asked, self.contract, body, self.turn)
        if self.contract.stateless:
            body |= {"store": False, "include": ["reasoning.encrypted_content"]}
        return Written(
            body=body,
            unsaid=unsaid,
            held=held,
            left_out=tuple(self.left_out),
            unfollowed=self._unfollowed,
        )

    def write(self, messages: Iterable[Outgoing]) -> None:
        for outgoing in messages:
            self.rendered += self.items(outgoing.message)

    def items(self, message: Message) -> list[Item]:
        """Return what a message says, as items in their order."""
        answers = [
            self._answer(block) for block in message.blocks if isinstance(block, ToolResponseBlock)
        ]
        blocks = [block for block in message.blocks if not isinstance(block, ToolResponseBlock)]
        if message.role == "assistant":
            return [*self._said(message, blocks), *answers]
        role = "system" if message.role == "system" else "user"
        return [*answers, *self._heard(role, blocks)]

    def _heard(self, role: str, blocks: Sequence[Block]) -> list[Item]:
        parts = []
        for block in blocks:
            if isinstance(block, TextBlock):
                parts += [{"type": "input_text", "text": block.text}] if block.text else []
            elif isinstance(block, MediaBlock) and (part := _media(block)) is not None:
                parts.append(part)
            else:
                self._leave(block)
        if not parts:
            return []
        if len(parts) == 1 and parts[0]["type"] == "input_text":
            return [{"role": role, "content": parts[0]["text"]}]
        return [{"role": role, "content": parts}]

    def _said(self, message: Message, blocks: Sequence[Block]) -> list[Item]:
        named = False  # whether items may name themselves: their reasoning is before them
        items: list[Item] = []
        spoken: Item | None = None  # the last message of ours, of which a text may be a part
        for block in blocks:
            if isinstance(block, ThinkingBlock):
                items.append(self._reasoning(block))
                named = True
            elif isinstance(block, TextBlock):
                if block.text:
                    before = spoken if items and items[-1] is spoken else None
                    spoken = self._said_with(before, block, named=named)
                    items += [] if spoken is before else [spoken]
            elif isinstance(block, ToolCallBlock):
                items.append(self._call(block, named=named))
            elif isinstance(block, RawBlock) and self._returns(block, message, named=named):
                if block.data.get("type") in _STANDS_ALONE:
                    self._follow(items)
                items.append(dict(block.data))
            else:
                self._leave(block)
        self._follow(items)
        return items

    def _follow(self, items: list[Item]) -> None:
        """Say something behind reasoning that led to nothing, where it must not stand alone."""
        if self.contract.paired and items and items[-1].get("type") == "reasoning":
            items.append({"type": "message", "role": "assistant", "content": neutral.NO_ANSWER})
            self._unfollowed = True

    def _returns(self, block: RawBlock, message: Message, *, named: bool) -> bool:
        if block.provider_metadata or not turns.is_own(block, message, self.contract):
            return False  # a part of a message, or somebody else's
        if not (named or block.data.get("type") in _STANDS_ALONE):
            return False
        return not isinstance(block.data.get("id"), str) or self._is_new(block.data["id"])

    def _is_new(self, item_id: Any) -> bool:
        """Whether an item may have this id: two with one id are refused."""
        if not isinstance(item_id, str) or not item_id or item_id in self._used:
            return False
        self._used.add(item_id)
        return True

    def _reasoning(self, block: ThinkingBlock) -> Item:
        self._thoughts += 1
        about = block.provider_metadata or {}
        if not block.opaque and about.get("item_type") != "reasoning":
            about = {}  # a plain thought from elsewhere, and what was said of it there
        summary, content = _texts(block, about)
        item_id = about.get("item_id")
        if not self._is_new(item_id):
            item_id = call_ids.made(self._thoughts, block.thought).replace("call_", "")
        item: Item = {
            **without(about, _OF_REASONING),
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

    def _said_with(self, before: Item | None, block: TextBlock, *, named: bool) -> Item:
        """Return a text as a message: the one before, where it is a part of that, or another."""
        about = block.provider_metadata or {}
        item_id = about.get("item_id") if named else None
        phase = {"phase": about["phase"]} if about.get("phase") else {}
        if item_id and before is not None and before.get("id") == item_id:
            before["content"].append(_part(block, about))
            return before
        if self._is_new(item_id):
            return {
                "id": item_id,
                "type": "message",
                "role": "assistant",
                "status": about.get("status", "completed"),
                **phase,
                "content": [_part(block, about)],
            }
        return {"type": "message", "role": "assistant", "content": block.text, **phase}

    def _call(self, block: ToolCallBlock, *, named: bool) -> Item:
        about = block.provider_metadata or {}
        item: Item = {name: about[name] for name in _OF_CALLS if about.get(name)}
        if named and self._is_new(about.get("item_id")):
            item["id"] = about["item_id"]
        item["call_id"] = call_ids.accepted(block.id, self.contract.call_id)
        item["name"] = block.name
        if _is_custom(block):
            self._custom.add(block.id)
            return {"type": "custom_tool_call", **item, "input": _free_input(block)}
        return {
            "type": "function_call",
            **item,
            "arguments": codec.argument_text(block),
            "status": about.get("status", "completed"),
        }

    def _answer(self, block: ToolResponseBlock) -> Item:
        kind = "custom_tool_call" if block.call_id in self._custom else "function_call"
        return {
            "type": f"{kind}_output",
            "call_id": call_ids.accepted(block.call_id, self.contract.call_id),
            "output": codec.result_text(block),
        }

    def _leave(self, block: Block) -> None:
        self.left_out[name_of(block)] = None


def _part(block: TextBlock, about: Mapping[str, Any]) -> Item:
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
    value = neutral.arguments(block).get("input")
    return value if isinstance(value, str) else codec.argument_text(block)


def _tool(tool: Mapping[str, Any]) -> Item:
    about = neutral.function(tool)
    if about is None:
        return dict(tool)
    return {
        "type": "function",
        **without(about, ()),
        "parameters": about.get("parameters") or dict(neutral.NO_PARAMETERS),
        # Unless it is said, this protocol takes a schema for a strict one.
        "strict": bool(about.get("strict")),
    }


# Media


def _media(block: MediaBlock) -> Item | None:
    if block.data is None and block.url is None:
        return None  # the application's own name for it means nothing to others
    render = _MEDIA.get(block.kind)
    return render(block) if render is not None else None


def _image(block: MediaBlock) -> Item:
    return {"type": "input_image", "detail": "auto", "image_url": neutral.data_url(block)}


def _file(block: MediaBlock) -> Item:
    if block.data is None:
        return {"type": "input_file", "file_url": block.url}
    data = neutral.data_url(block)
    return {"type": "input_file", "filename": block.name or "file", "file_data": data}


_MEDIA: Final[Mapping[str, Callable[[MediaBlock], Item]]] = {"image": _image, "file": _file}
