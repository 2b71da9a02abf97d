"""OpenAI Chat Completions and its kin, the writing direction: messages as a request body.

Theory. A message is one object, but for the answers of tools, which are a message each.
What a model said, called and thought is one object too; ``openai_chat_replies`` makes it.
Hosts of this family agree on the frame and differ in details, which the contract says:
where reasoning goes, how it is asked for, whether an empty text is null or a string.

What is kept was decided before: every thinking block that stands in a message here is
written. The reading direction is ``openai_chat``; this module must not know settings,
tokens or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import asking, neutral, reasoning_parameters
from reasoning_store.wire.base import Asked, Outgoing, Plain, Written, name_of
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_replies import is_part, plain_place, reply, together
from reasoning_store.wire.pages import Page, with_extra_body

SDK_PARAMETERS: Final = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream "
    "stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options".split()
)
"""What the official SDK's call takes by name; the rest goes through its ``extra_body``."""

Medium: TypeAlias = Callable[[MediaBlock], dict[str, Any] | None]
"""Returns a medium as a part of the content, or ``None`` where it cannot be one."""

BUILT: Final = frozenset({"model", "messages", "tools"})
"""The keys of the body that are made here and that nobody else may set."""


def page(contract: Contract) -> Page:
    """Return an empty page."""
    return ChatPage(contract, _MEDIA)


class ChatPage(Page):
    """A page of this family; its protocols may differ in their parts for media."""

    def __init__(self, contract: Contract, media: Mapping[str, Medium]) -> None:
        super().__init__(contract)
        self._media = MappingProxyType(media)

    def write(self, messages: Iterable[Outgoing]) -> None:
        for outgoing in messages:
            self._message(outgoing)

    def has_forms(self, messages: Plain) -> bool:
        return self._fields(messages) is not None or super().has_forms(messages)

    def write_plain(self, messages: Plain) -> bool:
        # The form is known here, and most plain thoughts have a place in it, too.
        places = self._fields(messages)
        if places is None:
            return super().write_plain(messages)
        roles, texts, thoughts, _, kinds, _ = messages
        written: list[dict[str, Any]]
        if thoughts is None or not places:
            written = [
                {"role": role, "content": text} for role, text in zip(roles, texts, strict=True)
            ]
        else:
            written = [
                {"role": role, "content": text, places[kind]: thought}
                if kind in places
                else {"role": role, "content": text}
                for role, text, kind, thought in zip(roles, texts, kinds, thoughts, strict=True)
            ]
        self.put_flat(written)
        return True

    def _fields(self, messages: Plain) -> Mapping[Hashable | None, str] | None:
        """Return the field of each kind of thoughts that go; None where one has none."""
        fields = {}
        for kind, thought in messages.goes.items():
            field = None if thought.signed else plain_place(thought.source, self.contract)
            if field is None:
                return None
            fields[kind] = field
        return fields

    def finish(
        self,
        *,
        model: str | None,
        system: Any,
        tools: Sequence[Mapping[str, Any]] | None,
        asked: Asked,
        copies: bool,
    ) -> Written:
        body: dict[str, Any] = {}
        if model is not None:
            body["model"] = model
        body["messages"] = messages = self.messages(copies=copies)
        messages[:0] = system_messages(system)
        if tools:
            body["tools"] = [function_tool(tool) for tool in tools]
        unsaid, held = asking.ask(asked, self.contract, body, self.turn)
        if self.contract.keep_at is not None and self.turn.thought_before:
            reasoning_parameters.say_keep(self.contract, body)
        return Written(body=body, unsaid=unsaid, held=held, left_out=tuple(self.left_out))

    def messages(self, *, copies: bool, since: int = 0) -> list[dict[str, Any]]:
        out = super().messages(copies=copies, since=since)
        mark = self.contract.continued_by
        if mark is not None and out:
            last = out[-1]
            if last["role"] == "assistant" and not last.get("tool_calls"):
                out[-1] = {**last, mark: True}
        return out

    def _message(self, outgoing: Outgoing) -> None:
        message = outgoing.message
        text = _only_text(message)
        if text is not None and not outgoing.owed:
            self._put({"role": _ROLES[message.role], "content": text})
            return
        if message.role == "assistant":
            self._put(reply(outgoing, self.contract, self.left_out))
            return
        for block in message.blocks:
            if isinstance(block, ToolResponseBlock):
                self._put(_answer(block))
        content = said(message, self._media, self.left_out)
        if content is not None:
            self._put({"role": _ROLES[message.role], "content": content})

    def _put(self, message: dict[str, Any]) -> None:
        blank = self.contract.blank
        if blank is not None and message.get("content") == "" and not message.get("tool_calls"):
            message["content"] = blank
        self.rendered.append(message)


_ROLES: Final = {"user": "user", "assistant": "assistant", "system": "system", "tool": "user"}


def _only_text(message: Message) -> str | None:
    """Return the text of a message that is nothing but one, as most are."""
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
    texts = neutral.system_texts(system)
    if texts is not None:
        return [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    given = [system] if isinstance(system, Mapping) else list(system)
    if all(isinstance(item, Mapping) and "role" in item for item in given):
        return [dict(item) for item in given]
    return [{"role": "system", "content": given}]


def _answer(block: ToolResponseBlock) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": block.call_id,
        "content": codec.result_text(block),
    }


def said(message: Message, media: Mapping[str, Medium], left_out: dict[str, None]) -> Any:
    """Return what a user says: a string where it is text alone, else its parts."""
    if len(message.blocks) == 1 and isinstance(block := message.blocks[0], TextBlock):
        return block.text
    parts: list[str | dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, ToolResponseBlock):
            continue
        part = block.text if isinstance(block, TextBlock) else _part(block, media)
        if part is None:
            left_out[name_of(block)] = None
        else:
            parts.append(part)
    return together(parts) if parts else None


def _part(block: Block, media: Mapping[str, Medium]) -> dict[str, Any] | None:
    if isinstance(block, MediaBlock):
        render = media.get(block.kind)
        return render(block) if render is not None else None
    if isinstance(block, RawBlock) and is_part(block.data):
        return dict(block.data)
    return None


def image(block: MediaBlock) -> dict[str, Any] | None:
    url = address(block)
    return {"type": "image_url", "image_url": {"url": url}} if url else None


def _video(block: MediaBlock) -> dict[str, Any] | None:
    # The family's own part for films; api.openai.com takes none at all.
    url = address(block)
    return {"type": "video_url", "video_url": {"url": url}} if url else None


def _audio(block: MediaBlock) -> dict[str, Any] | None:
    if block.data is None:
        return None
    subtype = block.mime_type.rpartition("/")[2]
    sound = {"data": neutral.base64_of(block), "format": _SOUNDS.get(subtype, subtype)}
    return {"type": "input_audio", "input_audio": sound}


def _file(block: MediaBlock) -> dict[str, Any] | None:
    url = address(block)
    if url is None:
        return None
    about = {"filename": block.name} if block.name else {}
    return {"type": "file", "file": {**about, "file_data": url}}


def address(block: MediaBlock) -> str | None:
    """Return where a medium is, or all of it; an application's own name is no address."""
    return neutral.data_url(block) if block.url or block.data is not None else None


_SOUNDS: Final[Mapping[str, str]] = {
    "*": "wav",
    "mpeg": "mp3",
    "vnd.wave": "wav",
    "wave": "wav",
    "x-wav": "wav",
}
"""The protocol's word for a format, where it is not the subtype."""

_MEDIA: Final[Mapping[str, Medium]] = {
    "image": image,
    "audio": _audio,
    "video": _video,
    "file": _file,
}


def function_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the protocol's form; one that already has it stays as it is."""
    if isinstance(tool.get("function"), Mapping) or tool.get("type", "function") != "function":
        return dict(tool)
    # Bare, or in the form of Responses or of Messages: their names for the same things.
    function = {name: value for name, value in tool.items() if name != "type"}
    if "input_schema" in function:
        function["parameters"] = function.pop("input_schema")
    return {"type": "function", "function": function}
