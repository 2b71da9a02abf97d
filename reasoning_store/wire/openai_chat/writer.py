"""Writes OpenAI Chat Completions and its kin.

A message is one object, except that tool results are a message each; ``reply`` writes a model's
message. Hosts of this family agree on the frame and differ in details, which the contract has: the
field of reasoning, its switch, whether an empty text is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.wire.message_writer import (
    LeaveOut,
    MessageWriter,
    Outgoing,
    Part,
    Tools,
    with_extra_body,
)
from reasoning_store.wire.openai_chat.reply import (
    is_part,
    join_parts,
    write_reply,
)
from reasoning_store.wire.tools import media_base64, media_url, system_texts

SDK_PARAMETERS: Final = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream "
    "stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options".split()
)
"""The parameters of the official SDK's call; other keys are sent in its ``extra_body``."""

Medium: TypeAlias = Callable[[MediaBlock], dict[str, Any] | None]
"""Returns a medium as a part of the content, or ``None`` where it cannot be one."""


class ChatWriter(MessageWriter):
    """Writes Chat Completions; a protocol of this family may have other parts for media."""

    def write_message(self, outgoing: Outgoing) -> None:
        message = outgoing.message
        text = _only_text(message)
        if text is not None and not outgoing.owed:
            self._append({"role": _ROLES[message.role], "content": text})
            return
        if message.role == "assistant":
            self._append(write_reply(outgoing, self.contract, self.leave_out))
            return
        for block in message.blocks:
            if isinstance(block, ToolResponseBlock):
                answer = {"role": "tool", "tool_call_id": block.call_id}
                self._append({**answer, "content": self.result_content(block)})
        content = write_content(message, self.media, self.leave_out)
        if content is not None:
            self._append({"role": _ROLES[message.role], "content": content})

    @property
    def media(self) -> Mapping[str, Medium]:
        """How each kind of media is written."""
        return _MEDIA

    def write_body(self, body: Part, system: Any, tools: Tools) -> None:
        body["messages"] = [*system_messages(system), *self.messages()]
        if tools:
            body["tools"] = [write_function_tool(tool) for tool in tools]

    def messages(self) -> list[dict[str, Any]]:
        out = super().messages()
        mark = self.contract.messages.continuation_mark
        if mark is not None and out:
            last = out[-1]
            if last["role"] == "assistant" and not last.get("tool_calls"):
                out[-1] = {**last, mark: True}
        return out

    def _append(self, message: dict[str, Any]) -> None:
        blank = self.contract.messages.blank_text_as
        if blank is not None and message.get("content") == "" and not message.get("tool_calls"):
            message["content"] = blank
            self.has_added_text = True
        self.rendered.append(message)


_ROLES: Final = {"user": "user", "assistant": "assistant", "system": "system", "tool": "user"}


def _only_text(message: Message) -> str | None:
    """Return the text of a message that has one text and nothing else, as most do."""
    if len(message.blocks) == 1:
        block = message.blocks[0]
        if isinstance(block, TextBlock) and not block.provider_metadata:
            return block.text
    return None


def sdk_arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same request as keyword arguments of the official SDK's call."""
    return with_extra_body(body, SDK_PARAMETERS)


def system_messages(system: Any) -> list[dict[str, Any]]:
    """Return a system prompt as messages: its own, or one of its texts or parts."""
    texts = system_texts(system)
    if texts is not None:
        return [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    items = [system] if isinstance(system, Mapping) else list(system)
    if all(isinstance(item, Mapping) and "role" in item for item in items):
        return [dict(item) for item in items]
    return [{"role": "system", "content": items}]


def write_content(message: Message, media: Mapping[str, Medium], leave_out: LeaveOut) -> Any:
    """Return a user's content: a string where it is text alone, else its parts."""
    if len(message.blocks) == 1 and isinstance(block := message.blocks[0], TextBlock):
        return block.text
    parts: list[str | dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, ToolResponseBlock):
            continue
        part = block.text if isinstance(block, TextBlock) else _write_part(block, media)
        if part is None:
            leave_out(block)
        else:
            parts.append(part)
    return join_parts(parts) if parts else None


def _write_part(block: Block, media: Mapping[str, Medium]) -> dict[str, Any] | None:
    if isinstance(block, MediaBlock):
        render = media.get(block.kind)
        return render(block) if render is not None else None
    if isinstance(block, RawBlock) and is_part(block.data):
        return dict(block.data)
    return None


def write_address(name: str, block: MediaBlock) -> dict[str, Any] | None:
    url = media_address(block)
    return {"type": name, name: {"url": url}} if url else None


write_image = partial(write_address, "image_url")


def _write_audio(block: MediaBlock) -> dict[str, Any] | None:
    if block.data is None:
        return None
    subtype = block.mime_type.rpartition("/")[2]
    sound = {"data": media_base64(block), "format": _SOUNDS.get(subtype, subtype)}
    return {"type": "input_audio", "input_audio": sound}


def _write_file(block: MediaBlock) -> dict[str, Any] | None:
    url = media_address(block)
    if url is None:
        return None
    about = {"filename": block.name} if block.name else {}
    return {"type": "file", "file": {**about, "file_data": url}}


def media_address(block: MediaBlock) -> str | None:
    """Return the address of a medium, or a data URL; an application's own name is no address."""
    return media_url(block) if block.url or block.data is not None else None


_SOUNDS: Final[Mapping[str, str]] = {
    "*": "wav",
    "mpeg": "mp3",
    "vnd.wave": "wav",
    "wave": "wav",
    "x-wav": "wav",
}
"""The protocol's word for a format, where it is not the subtype."""

_MEDIA: Final[Mapping[str, Medium]] = {
    "image": write_image,
    "audio": _write_audio,
    # The family's own part for films; api.openai.com accepts none.
    "video": partial(write_address, "video_url"),
    "file": _write_file,
}


def write_function_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the protocol's form; one that already has it stays as it is."""
    if isinstance(tool.get("function"), Mapping) or tool.get("type", "function") != "function":
        return dict(tool)
    # Bare, or in the form of Responses or of Messages: their names for the same things.
    function = {name: value for name, value in tool.items() if name != "type"}
    if "input_schema" in function:
        function["parameters"] = function.pop("input_schema")
    return {"type": "function", "function": function}
