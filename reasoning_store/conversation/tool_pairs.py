"""Tool pairs: which response answers which call.

Theory. A response answers the last message before it that calls its id, and of several calls of
that id there the first that has no response yet. Ids may come again: a call whose id was called
again and answered there has no response any more. A response without a call left to answer
is repeated, or an orphan where no message before it calls its id.

Requests, windows and erasure read pairs here. They differ in one thing: a repeated response
is left out of a request and may be parted from its call by a window, but an erasure takes it
along (``erased_with``).

A response may be a block or the provider's own item, a ``RawBlock`` in a user's or a tool's
message (``read_answers``). A model's message may hold such items too: those of hosted tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    RawBlock,
    ToolCallBlock,
    ToolResponseBlock,
    with_blocks,
)

Spot: TypeAlias = tuple[int, int]
"""A block: the number of its message in the list, and its index in the message."""
Unpaired: TypeAlias = Literal["unusable", "repeated", "orphan"]
"""Why no pair holds a call or a response: the call has no name or is not in a model's message;
the response comes after another one to its call; the response has no call."""


class ToolBlock(NamedTuple):
    """The parts of a call or a response that pairing needs."""

    place: int
    """Its index among the blocks of its message."""
    id: str
    """The id of the call, in its response too."""
    is_call: bool
    is_usable: bool = True
    """A call has a name and a model made it; no other call can have a response."""


_TOOL_BLOCKS: Final = frozenset({ToolCallBlock, ToolResponseBlock})
_READ_AS_TOOLS: Final = _TOOL_BLOCKS | {RawBlock}
_OF_FUNCTIONS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
"""Items whose ``output`` is all that they hold."""


def read_answers(message: Message) -> Message:
    """Return a message with each item that answers a call as a ``ToolResponseBlock``.

    The result is the whole item, which is sent as it is where the call is of its kind.
    """
    if message.role == "assistant" or RawBlock not in map(type, message.blocks):
        return message
    return with_blocks(message, [_read_answer(block) for block in message.blocks])


def _read_answer(block: Block) -> Block:
    call_id = block.answered_call if isinstance(block, RawBlock) else None
    if not isinstance(block, RawBlock) or call_id is None:
        return block
    item = block.data
    return ToolResponseBlock(
        call_id=call_id,
        result=item.get("output") if item["type"] in _OF_FUNCTIONS else item,
        is_error=item.get("status") == "failed",
    )


def tool_blocks(message: Message) -> tuple[ToolBlock, ...]:
    """Return the calls and responses of a message, in order."""
    if _READ_AS_TOOLS.isdisjoint(map(type, message.blocks)):
        return ()
    message = read_answers(message)
    tools: list[ToolBlock] = []
    for index, block in enumerate(message.blocks):
        if isinstance(block, ToolCallBlock):
            usable = bool(block.name) and message.role == "assistant"
            tools.append(ToolBlock(index, block.id, True, usable))
        elif isinstance(block, ToolResponseBlock):
            tools.append(ToolBlock(index, block.call_id, False))
    return tuple(tools)


@dataclass(slots=True)
class ToolPairs:
    """The calls and responses of a sequence of messages, paired."""

    calls: dict[Spot, str] = field(default_factory=dict)
    """The id of every usable call, in order."""
    response_of: dict[Spot, Spot] = field(default_factory=dict)
    """The response of each call that has one."""
    call_of: dict[Spot, Spot] = field(default_factory=dict)
    """The call of each response that answers one."""
    unpaired: dict[Spot, Unpaired] = field(default_factory=dict)
    """The calls and responses that no pair can hold. A usable call without a response is not
    among them."""
    caller_of: dict[Spot, int] = field(default_factory=dict)
    """The last message that calls the id of an unpaired response, usable or not."""


def pair_tools(messages: Iterable[Sequence[ToolBlock]]) -> ToolPairs:
    """Return the pairs of messages that follow one another; each is given by its tool blocks."""
    pairs = ToolPairs()
    waiting: dict[str, list[Spot]] = {}  # the calls without a response, of the last to call an id
    called: dict[str, int] = {}
    usable: set[str] = set()
    for number, blocks in enumerate(messages):
        for block in blocks:
            spot = (number, block.place)
            if not block.is_call:
                _pair_response(pairs, waiting, spot, block.id)
                if spot not in pairs.call_of:
                    pairs.unpaired[spot] = "repeated" if block.id in usable else "orphan"
                    if block.id in called:
                        pairs.caller_of[spot] = called[block.id]
                continue
            called[block.id] = number
            if not block.is_usable:
                pairs.unpaired[spot] = "unusable"
                continue
            usable.add(block.id)
            pairs.calls[spot] = block.id
            earlier = waiting.get(block.id, [])
            waiting[block.id] = [*(one for one in earlier if one[0] == number), spot]
    return pairs


def pair_messages(messages: Iterable[Message]) -> ToolPairs:
    """Return the pairs of a conversation; a reply that is still arriving has none yet."""
    return pair_tools(() if one.status == "streaming" else tool_blocks(one) for one in messages)


def _pair_response(
    pairs: ToolPairs, waiting: Mapping[str, list[Spot]], spot: Spot, call_id: str
) -> None:
    if calls := waiting.get(call_id):
        call = calls.pop(0)
        pairs.response_of[call], pairs.call_of[spot] = spot, call


def displaced_responses(messages: Sequence[Message], pairs: ToolPairs) -> set[Spot]:
    """Return the paired responses that do not directly follow their call's message.

    Only other responses may be between the two; a reply that is still arriving does not count.
    """
    if not pairs.call_of:
        return set()
    displaced: set[Spot] = set()
    caller: int | None = None
    by_message: dict[int, list[Spot]] = {}
    for spot in pairs.call_of:
        by_message.setdefault(spot[0], []).append(spot)
    for number, message in enumerate(messages):
        if message.status == "streaming":
            continue
        displaced.update(
            spot for spot in by_message.get(number, ()) if pairs.call_of[spot][0] != caller
        )
        if message.role == "assistant":
            caller = number
        elif any(type(block) not in _TOOL_BLOCKS for block in message.blocks) or not message.blocks:
            caller = None
    return displaced


def tied_messages(messages: Iterable[Sequence[ToolBlock]]) -> list[tuple[int, int]]:
    """Return the pairs of messages that a window keeps together, the caller first."""
    pairs = pair_tools(messages)
    return [(call[0], response[0]) for call, response in pairs.response_of.items()]


def erased_with(messages: Iterable[Sequence[ToolBlock]]) -> list[tuple[int, int]]:
    """Return the pairs of messages of which an erasure takes both, the caller first.

    In addition to those of a window these are a second response and one to an unusable call: no
    response stays whose call is gone.
    """
    pairs = pair_tools(messages)
    more = [(caller, response[0]) for response, caller in pairs.caller_of.items()]
    return [(call[0], response[0]) for call, response in pairs.response_of.items()] + more
