"""Repairs of a request: blocks that a provider would refuse are mended or left out.

    no_result          a call without a response gets an error as its response
    response_moved     a response that does not follow its call is sent right after it
    response_orphan    a response to no call is left out
    response_repeated  a second response to one call is left out
    call_cut_off       a call that ended in the middle of its arguments is left out
    call_unusable      a call without a name, or outside of a model's message, is left out
    arguments_wrapped  arguments that are not JSON are wrapped in it, where others are refused
    draft              a reply that is still being written is left out
    block_unknown      a block newer than this package is left out
    block_foreign      a raw block of another api is left out
    media_left_out     media of a kind that the model does not take are left out

Each repair is a warning, and so is each change of the order of messages (``message_order``).
Counts ignore repairs, as they are made from the selection alone: a block that is left out still
counts, an added one does not. Two changes give no warning: metadata and source fields of another
provider are taken off, and call ids that the target refuses are mapped by a pure function, in call
and response alike.

A repair depends only on earlier messages and on the responses to a message's own calls, so a
longer conversation is repaired alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

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
    with_blocks,
)
from reasoning_store.conversation.tool_pairs import (
    Spot,
    ToolPairs,
    Unpaired,
    displaced_responses,
    pair_messages,
    read_answers,
)
from reasoning_store.egress.admissibility import Admissibility
from reasoning_store.egress.message_order import order_messages
from reasoning_store.egress.request_warnings import NO_RESULT, model_name, warning
from reasoning_store.egress.selection_values import RequestWarning, WarningCode
from reasoning_store.egress.target import Target
from reasoning_store.wire import call_ids
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.message_writer import NO_MEDIA, Outgoing
from reasoning_store.wire.tools import call_arguments, parse_arguments

_SENT_AS_THEY_ARE: Final = frozenset({TextBlock, ThinkingBlock})
"""Blocks that no provider refuses."""

_LEFT_OUT: Final[Mapping[Unpaired, WarningCode]] = {
    "unusable": "call_unusable",
    "repeated": "response_repeated",
    "orphan": "response_orphan",
}


def repair(
    messages: Sequence[Message], owed: Sequence[bool], to: Target
) -> tuple[list[Outgoing], tuple[RequestWarning, ...]]:
    """Return the messages that are sent of a selection, and the warnings of their repairs."""
    repairs = _Repairs(messages, to)
    outgoing = order_messages(repairs.run(owed), to.contract, repairs.warn)
    return outgoing, tuple(repairs.warnings.values())


class _Repairs:
    """The repairs of one conversation for one target."""

    def __init__(self, messages: Sequence[Message], to: Target) -> None:
        self._needs_none = [
            not [block for block in message.blocks if type(block) not in _SENT_AS_THEY_ARE]
            for message in messages
        ]
        """For each message: all of its blocks are sent as they are."""
        self._messages = [
            message if needs_none else read_answers(message)
            for message, needs_none in zip(messages, self._needs_none, strict=True)
        ]
        self._to = to
        self._media = to.contract.messages.media
        self._json_arguments = to.contract.messages.json_arguments_only
        self._pairs = pair_messages(self._messages)
        self._displaced = displaced_responses(self._messages, self._pairs)
        self._ids = _accepted_ids(self._pairs, to.contract)
        self._admissibility = Admissibility(to)
        self.warnings: dict[WarningCode, RequestWarning] = {}

    def run(self, owed: Sequence[bool]) -> list[Outgoing]:
        """Return the messages as they are sent, in their own order."""
        outgoing: list[Outgoing] = []
        for number, message in enumerate(self._messages):
            if message.status == "streaming":
                self.warn("draft")
                continue
            needs_none = self._needs_none[number]
            blocks = message.blocks if needs_none else tuple(self._repaired_blocks(number))
            if not blocks and self._has_media_left_out(message):
                blocks = (TextBlock(text=NO_MEDIA),)
            if message.origin is not None and self._admissibility.is_foreign(message.origin):
                blocks = tuple([_without_foreign(block) for block in blocks])
            if _is_worth_sending(message.role, blocks):
                outgoing.append(Outgoing(_reuse_if_same(message, blocks), owed[number]))
            if not needs_none and (responses := tuple(self._responses_due(number))):
                outgoing.append(Outgoing(Message(role="tool", blocks=responses)))
        return outgoing

    def warn(self, code: WarningCode) -> None:
        self.warnings.setdefault(code, warning(code))

    def _has_media_left_out(self, message: Message) -> bool:
        """Whether a user's message has media of a kind that the model does not take."""
        return message.role == "user" and any(map(self._is_not_taken, message.blocks))

    def _is_not_taken(self, block: Block) -> bool:
        return isinstance(block, MediaBlock) and block.kind not in self._media

    def _leave_media_out(self) -> None:
        kinds = {
            block.kind
            for message in self._messages
            for block in message.blocks
            if isinstance(block, MediaBlock) and self._is_not_taken(block)
        }
        left_out = warning(
            "media_left_out", model=model_name(self._to), kinds=", ".join(sorted(kinds))
        )
        self.warnings.setdefault("media_left_out", left_out)

    def _repaired_blocks(self, number: int) -> Iterator[Block]:
        """Yield the blocks that are sent of a message itself."""
        message = self._messages[number]
        for index, block in enumerate(message.blocks):
            sent = self._repaired_block(block, (number, index), message)
            if sent is not None:
                yield sent

    def _repaired_block(self, block: Block, spot: Spot, message: Message) -> Block | None:
        """Return a block as it is sent; None where it is left out."""
        if isinstance(block, ToolCallBlock | ToolResponseBlock):
            if (reason := self._pairs.unpaired.get(spot)) is not None:
                self.warn(_LEFT_OUT[reason])
                return None
            if isinstance(block, ToolCallBlock):
                return self._repaired_call(block, spot, message)
            return None if spot in self._displaced else self._with_call_id(spot, block)
        if self._is_not_taken(block):
            self._leave_media_out()
            return None
        if isinstance(block, RawBlock):
            if block.kind != "raw":
                self.warn("block_unknown")
                return None
            if not self._admissibility.is_of_this_api(message.origin):
                self.warn("block_foreign")
                return None
        return block

    def _repaired_call(
        self, call: ToolCallBlock, spot: Spot, message: Message
    ) -> ToolCallBlock | None:
        if spot not in self._pairs.response_of and _is_cut_off(call, message):
            self.warn("call_cut_off")
            return None
        if spot in self._ids:
            call = replace(call, id=self._ids[spot])
        if self._json_arguments and not _is_json(call.arguments):
            self.warn("arguments_wrapped")
            call = replace(call, arguments=codec.dumps(call_arguments(call)))
        return call

    def _responses_due(self, number: int) -> Iterator[ToolResponseBlock]:
        """Yield the responses that are due after a message and do not follow it.

        They are due at the end of a conversation, too: no model answers without them.
        """
        message = self._messages[number]
        for index, call in enumerate(message.blocks):
            spot = (number, index)
            if not isinstance(call, ToolCallBlock) or spot in self._pairs.unpaired:
                continue
            response_spot = self._pairs.response_of.get(spot)
            if response_spot is None and not _is_cut_off(call, message):
                self.warn("no_result")
                call_id = self._ids.get(spot, call.id)
                yield ToolResponseBlock(
                    call_id=call_id, tool_name=call.name, result=NO_RESULT, is_error=True
                )
            elif response_spot in self._displaced:
                self.warn("response_moved")
                response = self._messages[response_spot[0]].blocks[response_spot[1]]
                assert isinstance(response, ToolResponseBlock)
                yield self._with_call_id(response_spot, response)

    def _with_call_id(self, spot: Spot, response: ToolResponseBlock) -> ToolResponseBlock:
        """Return a response with the id that its call is sent with."""
        call_id = self._ids.get(self._pairs.call_of[spot])
        return response if call_id is None else replace(response, call_id=call_id)


def _accepted_ids(pairs: ToolPairs, contract: Contract) -> dict[Spot, str]:
    """Return the ids of the calls that the target takes by another id than their own.

    An id depends on the call's own and, where ids have to differ, on how often it was used
    before: a longer conversation changes none.
    """
    ids: dict[Spot, str] = {}
    uses: dict[tuple[int | None, str], int] = {}
    for spot, call_id in pairs.calls.items():
        # A protocol that lets ids repeat still wants them to differ within one message.
        key = (None if contract.messages.unique_call_ids else spot[0], call_id)
        uses[key] = uses.get(key, 0) + 1
        own = call_ids.make_call_id(call_id, uses[key]) if uses[key] > 1 else call_id
        accepted = call_ids.accepted_id(
            own or call_ids.make_call_id(""), contract.messages.call_id_pattern
        )
        if accepted != call_id:
            ids[spot] = accepted
    return ids


def _without_foreign(block: Block) -> Block:
    """Return a block of another provider without the parts that only its maker understands."""
    if isinstance(block, ThinkingBlock):
        if block.source_field is None and block.provider_metadata is None:
            return block
        return ThinkingBlock(
            thought=block.thought,
            is_hidden=block.is_hidden,
            signature=block.signature,
            encrypted=block.encrypted,
            redacted=block.redacted,
            interrupted=block.interrupted,
        )
    return block if block.provider_metadata is None else replace(block, provider_metadata=None)


def _reuse_if_same(message: Message, blocks: Sequence[Block]) -> Message:
    """Return a message with these blocks; itself where they are its own."""
    own = message.blocks
    if blocks is own:
        return message
    if len(own) == len(blocks) and all(map(lambda one, other: one is other, own, blocks)):
        return message
    return with_blocks(message, blocks)


def _is_cut_off(call: ToolCallBlock, message: Message) -> bool:
    """Whether a call without a response ended in the middle of its arguments."""
    if (call.provider_metadata or {}).get("type") == "custom":
        return False  # its input is any text
    if call.arguments is None:
        return message.status == "interrupted" and not call.parameters
    if not call.arguments.strip():
        return message.status == "interrupted"
    return not _is_json(call.arguments)


def _is_json(text: str | None) -> bool:
    """Whether a string of arguments is JSON; so is an absent one."""
    return text is None or (bool(text.strip()) and parse_arguments(text) is not None)


def _is_worth_sending(role: str, blocks: Sequence[Block]) -> bool:
    """Whether anything is left to send; a user may send an empty text."""
    if role != "assistant":
        return bool(blocks)
    for block in blocks:
        if isinstance(block, TextBlock):
            if block.text or block.provider_metadata:
                return True
        elif not isinstance(block, ThinkingBlock) or block.thought or block.opaque:
            return True
    return False
