"""A message of a request, and the calls that the answers of tools are for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from reasoning_store.conversation.blocks import (
    Block,
    Role,
    TextBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.wire import call_ids, content_parts

ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""The role of each in a request."""
THOUGHTS: Final = ("thinking", "redacted_thinking")
"""The types of parts that are a thought."""


@dataclass(frozen=True, slots=True)
class RequestMessage(ABC):
    """A message of a request's body: one part of its list, or a run of items."""

    api: ClassVar[str]
    role: Role | None
    """``None`` where the protocol has no such message."""
    parts: Sequence[Mapping[str, Any]]
    first: int = 0
    """The index of its first part in the body's list."""

    @property
    def last(self) -> int:
        return self.first + len(self.parts) - 1

    @property
    @abstractmethod
    def has_thinking(self) -> bool:
        """Whether a reply has a thought, or its seal."""

    @property
    @abstractmethod
    def read_fields(self) -> Iterable[str]:
        """The fields of which the message has all that they hold."""

    @abstractmethod
    def blocks(self) -> list[Block]:
        """Return what it holds; of a reply its texts and calls, without what it thought."""

    @abstractmethod
    def response(self) -> dict[str, Any]:
        """Return a reply in the form of a response of its protocol."""

    def texts(self) -> list[str]:
        """Return the texts of a reply, each as it came."""
        return content_parts.visible_texts(self.parts[0].get("content"))

    @abstractmethod
    def count_thoughts(self) -> int:
        """Count the thoughts of a reply outside of its text."""


def read_text(content: Any) -> str:
    """Return the text of a content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def read_texts(content: Any) -> list[Block]:
    """Return the text of a reply as a block, if it has any."""
    text = read_text(content)
    return [TextBlock(text=text)] if text else []


def read_content(content: Any) -> list[Block]:
    """Return the blocks of a content that is a text or a list of parts."""
    return content_parts.read_blocks(content if isinstance(content, str | list) else None)


def read_call(call_id: Any, name: Any, arguments: Any) -> ToolCallBlock:
    """Return a call; its arguments are an object, or its JSON."""
    return ToolCallBlock(
        id=str(call_id or ""),
        name=str(name or ""),
        parameters=dict(arguments) if isinstance(arguments, Mapping) else None,
        arguments=arguments if isinstance(arguments, str) else None,
    )


def tool_response(
    call_id: Any,
    content: Any,
    *,
    name: Any = None,
    is_error: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> ToolResponseBlock:
    """Return a tool response; ``CallLinks`` completes one without an id or a name."""
    return ToolResponseBlock(
        call_id=call_id if isinstance(call_id, str) else "",
        tool_name=name if isinstance(name, str) else "",
        result=content_parts.read_result(content),
        is_error=is_error,
        provider_metadata=metadata or None,
    )


@dataclass(slots=True)
class CallLinks:
    """The calls of a conversation so far.

    A call without an id gets one, and a tool response without an id is for the first call of its
    name that has no answer.
    """

    names: dict[str, str] = field(default_factory=dict)
    """The tool of each call."""
    due: dict[str, str] = field(default_factory=dict)
    """The calls that have no answer yet."""

    def copy(self) -> CallLinks:
        return CallLinks(dict(self.names), dict(self.due))

    def link(self, blocks: Iterable[Block], *seeds: object) -> Iterator[Block]:
        """Yield the blocks of a message with their calls named.

        ``seeds`` name the message: a call whose id was made here gets one of them, as the id of a
        lone response repeats in a history.
        """
        for place, block in enumerate(blocks):
            if isinstance(block, ToolCallBlock):
                if not block.id or (seeds and call_ids.is_made_here(block.id)):
                    block = replace(block, id=call_ids.make_call_id(*seeds, place))
                self.names[block.id] = self.due[block.id] = block.name
            elif isinstance(block, ToolResponseBlock):
                block = self._name_response(block, seeds)
            yield block

    def _name_response(self, block: ToolResponseBlock, seeds: Sequence[object]) -> Block:
        call_id, name = block.call_id, block.tool_name
        if not call_id:
            waiting = (id for id, called in self.due.items() if not name or _same(called, name))
            call_id = next(waiting, "") or call_ids.make_call_id(*seeds)
        self.due.pop(call_id, None)
        return replace(block, call_id=call_id, tool_name=name or self.names.get(call_id, ""))


def _same(called: str, answering: str) -> bool:
    """Whether a tool answers to a name: a part of it may have been called, as ``files.search``."""
    return called == answering or called.partition(".")[0] == answering.partition(".")[0]
