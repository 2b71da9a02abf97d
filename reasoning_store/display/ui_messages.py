"""A stored conversation as the AI SDK's UI messages, for the page that shows it.

A UI message is one side's part of a turn: a model's reply, its tool calls with their results and
the answer after them are one. Each stored message of the model is a step of it and begins with
``step-start``; a result is in the part of its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
from reasoning_store.conversation.reasoning_settings import ReasoningSettings
from reasoning_store.conversation.tool_pairs import ToolPairs, pair_messages
from reasoning_store.conversation.validation import Holder, message_of
from reasoning_store.display.ui_parts import (
    UIObject,
    add_usage,
    call_part,
    file_part,
    finish_reason,
    hosted_outcomes,
    own_part,
    response_fields,
)
from reasoning_store.display.visible_parts import is_visible, shows_thinking
from reasoning_store.wire.ui_messages.messages import usage_object


def ui_messages(
    history: Iterable[Message | Holder],
    settings: ReasoningSettings | Mapping[str, Any] | None = None,
) -> list[UIObject]:
    """Return the AI SDK's UI messages of a history, as JSON.

    Thinking is shown where ``includeInResponse`` is on and the block is not hidden; give
    ``session.settings.resolved()``, or the default holds. The id of a UI message is that of its
    first stored message, or its number where the messages are not stored. ``metadata`` has status,
    time, position, model, usage, siblings, versions and annotations, and each stored message
    under ``messages``. Seals and providers' opaque data are left out.
    """
    items = [*history]
    messages = [message_of(item) for item in items]
    page = _Page(messages, with_thinking=shows_thinking(settings))
    for number, item in enumerate(items):
        page.add(number, item)
    return page.written


class _Page:
    """The UI messages so far, and the reply that continues."""

    def __init__(self, messages: Sequence[Message], *, with_thinking: bool) -> None:
        self.written: list[UIObject] = []
        self._messages = messages
        self._pairs: ToolPairs = pair_messages(messages)
        self._with_thinking = with_thinking
        self._reply_goes_on = False

    def add(self, number: int, item: Message | Holder) -> None:
        """Add the next message, to the UI message before it or as one of its own."""
        message = self._messages[number]
        is_answer = message.role == "tool" or _holds_only_responses(message)
        parts = self._parts(number)
        if message.role == "assistant":
            parts = [{"type": "step-start"}, *parts]
        is_reply = is_answer or message.role == "assistant"
        if is_reply and self._reply_goes_on:
            whole = self.written[-1]
        elif is_answer and not parts:
            return  # responses to calls before this window
        else:
            role = "assistant" if is_reply else message.role
            whole = {"id": str(number + 1), "role": role, "metadata": {}, "parts": []}
            self.written.append(whole)
        # The AI SDK refuses a message of a user or a system without a part.
        whole["parts"] += parts or ([] if is_reply else [{"type": "text", "text": ""}])
        _add_metadata(whole, item, message, in_reply=is_answer)
        self._reply_goes_on = is_answer or (is_reply and message.has_call)

    def _parts(self, number: int) -> list[UIObject]:
        message = self._messages[number]
        hosted = hosted_outcomes(message)
        last = len(message.blocks) - 1
        parts: list[UIObject] = []
        for place, block in enumerate(message.blocks):
            if not is_visible(block, with_thinking=self._with_thinking):
                continue
            arriving = message.status == "streaming" and place == last
            if isinstance(block, ToolCallBlock):
                response = self._response((number, place))
                outcome = hosted.get(block.id) if response is None else response_fields(response)
                parts.append(call_part(block, outcome, arriving=arriving))
            elif isinstance(block, ToolResponseBlock):
                if self._pairs.unpaired.get((number, place)) == "orphan":
                    call = ToolCallBlock(id=block.call_id, name=block.tool_name)
                    parts.append(call_part(call, response_fields(block), arriving=False))
            elif (part := _block_part(block, arriving=arriving)) is not None:
                parts.append(part)
        return parts

    def _response(self, call: tuple[int, int]) -> ToolResponseBlock | None:
        spot = self._pairs.response_of.get(call)
        if spot is None:
            return None
        block = self._messages[spot[0]].blocks[spot[1]]
        return block if isinstance(block, ToolResponseBlock) else None


def _holds_only_responses(message: Message) -> bool:
    return bool(message.blocks) and message.role == "user" and not message.starts_turn


def _block_part(block: Block, *, arriving: bool) -> UIObject | None:
    state = "streaming" if arriving else "done"
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text, "state": state}
        case ThinkingBlock():
            return {"type": "reasoning", "text": block.thought, "state": state}
        case MediaBlock():
            return file_part(block)
        case RawBlock():
            return own_part(block)
    return None


def _add_metadata(
    whole: UIObject, item: Message | Holder, message: Message, *, in_reply: bool
) -> None:
    """Note the facts of a stored message for its UI message; those of the last one hold."""
    metadata: UIObject = whole["metadata"]
    metadata.setdefault("messages", [])
    if not isinstance(item, Message):
        own = {"id": getattr(item, "id", None), "position": getattr(item, "position", None)}
        if not metadata["messages"]:
            whole["id"] = own["id"] or whole["id"]
            metadata |= {"position": own["position"], "branch": getattr(item, "branch", None)}
            created_at = getattr(item, "created_at", None)
            metadata["createdAt"] = None if created_at is None else created_at.isoformat()
        if annotations := getattr(item, "annotations", None):
            metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
            seconds = annotations.get("secondsThought")
            if isinstance(seconds, int | float):
                metadata["secondsThought"] = round(metadata.get("secondsThought", 0) + seconds, 3)
        metadata["messages"].append(own)
        metadata["tokens"] = metadata.get("tokens", 0) + getattr(item, "tokens", 0)
        siblings = [*getattr(item, "siblings", ())]
        if siblings and "siblings" not in metadata:
            metadata["siblings"] = siblings
            metadata["versions"] = [
                {"branch": one.branch, "isShown": one.is_shown}
                for one in getattr(item, "versions", ())
            ]
    if in_reply:
        return
    metadata["status"] = message.status
    if message.origin is not None:
        metadata |= {"provider": message.origin.provider, "model": message.origin.model}
    if message.finish_reason is not None:
        metadata["finishReason"] = finish_reason(message.finish_reason)
    if counts := usage_object(message.usage):
        metadata["usage"] = add_usage(metadata.get("usage", {}), counts)
