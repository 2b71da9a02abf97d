"""What would be refused, mended on its way out. The stored messages are not touched.

    no_result          a call that nobody answered gets an error result in its place
    response_moved     an answer that stands elsewhere is put behind its call
    response_orphan    an answer to no call is left out
    response_repeated  a second answer to one call is left out
    call_cut_off       a call that ended in mid-arguments is left out
    call_unusable      so is one without a name, and one that is not in a model's message
    arguments_wrapped  arguments that are not JSON become some, where others are refused
    half_character     what UTF-8 has no bytes for becomes U+FFFD
    number_unknown     what is no number in JSON becomes null
    seal_broken        the same in sealed reasoning, whose seal no longer fits
    draft              a reply that is still being written is left out
    block_unknown      a block newer than this package is left out
    block_foreign      a raw block of another api is left out

Beside these there is the order that a provider may want (``order``). Each repair is a
warning. None changes a count: what it leaves out still counts, what it puts in does not.
And what belongs to somebody else is taken off: the metadata of another provider's blocks,
and the field that its reasoning came from. Ids that the target does not take are mapped by
a pure function, in call and response alike.

An answer is due directly behind its call, and at the end too: a model that is asked to go
on cannot do so without it. Everything here depends on what stands before a message and on
the answers to its own calls, so a longer conversation is mended alike as far as it was
complete, and ``Repairs`` goes on where it stopped. It knows blocks and contracts; it must
not know a protocol's shapes or any policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Final

from reasoning_store import codec
from reasoning_store.blocks import (
    Block,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.egress import encodable, order
from reasoning_store.egress.admission import Origins
from reasoning_store.egress.answers import Answers, Matching
from reasoning_store.egress.call_ids import CallIds
from reasoning_store.egress.stretch import Rulings, Stretch
from reasoning_store.egress.verdicts import Target, Warning, WarningCode
from reasoning_store.wire import neutral
from reasoning_store.wire.base import Outgoing, Plain, PlainThought

NO_RESULT = "no result was recorded"

_TEXTS: Final[Mapping[WarningCode, str]] = {
    "no_result": f"a tool call has no response; it is answered by the error {NO_RESULT!r}",
    "response_moved": "a tool's response did not stand behind its call; it is sent there",
    "response_orphan": "a tool's response belongs to no call; it is left out",
    "response_repeated": "a tool call was answered more than once; the first response is sent",
    "call_cut_off": "a tool call ended in the middle of its arguments; it is left out",
    "arguments_wrapped": "the provider takes JSON for a call's arguments; others are wrapped in it",
    "call_unusable": "a tool call has no name, or is not in a model's message; it is left out",
    "number_unknown": "JSON has no infinite number and none that is not one; null is sent instead",
    "half_character": "half of a character cannot be sent; U+FFFD is sent in its place",
    "seal_broken": "half of a character cannot be sent, and sealed reasoning has one; with U+FFFD "
    "in its place its seal does not fit, and the provider may refuse it: strip it, or include none",
    "draft": "a reply that is still being written is not sent",
    "block_unknown": "a block of a type that this package does not know is left out",
    "block_foreign": "a raw block goes only to the api it came from; it is left out",
    **order.TEXTS,
}


HALF_CHARACTER = Warning(code="half_character", text=_TEXTS["half_character"])


class Repairs:
    """What was mended so far, and what has to be known of it to go on."""

    def __init__(self, to: Target) -> None:
        self._to = to
        self._found: dict[WarningCode, Warning] = {}
        self._matching = Matching()
        self._ids = CallIds(to)
        self._origins = Origins(to)
        self._order = order.Order(to.contract)

    def fork(self) -> Repairs:
        """Return the same, to go on with apart from this one."""
        other = copy(self)
        other._found = dict(self._found)
        other._matching = self._matching.fork()
        other._ids = self._ids.fork()
        other._order = self._order.fork()
        return other

    @property
    def warnings(self) -> tuple[Warning, ...]:
        return tuple(self._found.values())

    def next(
        self, messages: Sequence[Message], owed: Sequence[bool]
    ) -> tuple[list[Outgoing], bool]:
        """Return what is sent of the next messages of a conversation.

        The second value is false where they answer a call that was sent before as one that
        has no answer: then what was sent before has to be mended anew.
        """
        start = self._matching.read
        answers = self._matching.next(messages)
        self._ids.next(answers)
        # Nearly all messages of a long conversation are in order, and pass as they are.
        attention = answers.unpaired() | self._ids.touched
        if self._to.contract.json_arguments:
            attention |= {number for number, _ in answers.calls}
        out: list[Outgoing] = []
        for number, message in enumerate(messages, start):
            if message.status == "streaming":
                self._note("draft")
                continue
            blocks = message.blocks
            if number in attention or self._is_marked(message):
                blocks = tuple(self._mended(number, message, answers))
            if _says_something(message, blocks):
                sent = message if blocks is message.blocks else replace(message, blocks=blocks)
                self._put(Outgoing(sent, owed[number - start]), out)
            if number in attention:
                late = tuple(self._due(number, message, answers, messages, start))
                if late:
                    self._put(Outgoing(Message(role="tool", blocks=late)), out)
        return out, all(number >= start for number, _ in answers.of)

    def plain(self, stretch: Stretch, rulings: Rulings) -> Plain:
        """Return what is sent of plain messages."""
        goes = {name: stretch.named[name] for name, (kept, _) in rulings.items() if kept}
        thoughts = {
            # Its words are anybody's; the field they came in was another provider's.
            name: PlainThought(
                None if self._origins.is_foreign(kind.origin) else kind.block.source_field,
                kind.place,
                kind.block.signature is not None,
            )
            for name, kind in goes.items()
        }
        return Plain(
            stretch.roles, stretch.texts, stretch.thoughts, stretch.seals, stretch.kinds, thoughts
        )

    def lets_pass(self, messages: Plain) -> bool:
        """Whether plain messages are in order as they are; else each has to be looked at."""
        return self._order.lets_pass(messages.roles, thinking=bool(messages.goes))

    def pass_over(self, messages: Plain) -> None:
        """Go on behind plain messages."""
        self._matching.pass_over(messages.roles)
        self._order.pass_over(messages)

    def _put(self, item: Outgoing, out: list[Outgoing]) -> None:
        if self._order.wants:
            out += self._order.put(item, self._note)
        else:
            out.append(item)

    def _is_marked(self, message: Message) -> bool:
        """Whether a block of a message may not go as it is."""
        if self._origins.is_foreign(message.origin) and any(
            block.provider_metadata is not None or isinstance(block, ThinkingBlock)
            for block in message.blocks
        ):
            return True  # anything on it may be its maker's own
        for block in message.blocks:
            if type(block) is TextBlock and not block.provider_metadata and block.text.isascii():
                continue  # as nearly all are
            if isinstance(block, RawBlock) or encodable.needs_mending(block):
                return True
        return False

    def _mended(self, number: int, message: Message, answers: Answers) -> Iterator[Block]:
        """Yield what is sent of one message's own blocks."""
        foreign = self._origins.is_foreign(message.origin)
        for place, block in enumerate(message.blocks):
            spot = (number, place)
            if isinstance(block, ToolCallBlock):
                if why := answers.astray.get(spot):
                    self._note(why)
                    continue
                if spot not in answers.of and _is_cut_off(block, message):
                    self._note("call_cut_off")
                    continue
                block = self._ids.given(spot, block)
                if self._to.contract.json_arguments and not _is_json(block.arguments):
                    self._note("arguments_wrapped")
                    block = replace(block, arguments=codec.dumps(neutral.arguments(block)))
            elif isinstance(block, ToolResponseBlock):
                if spot in answers.away:
                    continue
                if why := answers.astray.get(spot):
                    self._note(why)
                    continue
                block = self._ids.answering(answers.to[spot], block)
            elif isinstance(block, RawBlock):
                if block.kind != "raw":
                    self._note("block_unknown")
                    continue
                if not self._origins.is_of_this_api(message.origin):
                    self._note("block_foreign")
                    continue
            yield self._encodable(_without_foreign(block) if foreign else block)

    def _encodable(self, block: Block) -> Block:
        other = encodable.mended_block(block)
        if other is not block and not encodable.is_torn(block):
            self._note("number_unknown")
        elif other is not block:
            sealed = isinstance(block, ThinkingBlock) and block.opaque
            self._note("seal_broken" if sealed else "half_character")
        return other

    def _due(
        self,
        number: int,
        message: Message,
        answers: Answers,
        messages: Sequence[Message],
        start: int,
    ) -> Iterator[ToolResponseBlock]:
        """Yield the answers that are due behind a message and do not stand there."""
        for place, call in enumerate(message.blocks):
            spot = (number, place)
            if not isinstance(call, ToolCallBlock) or spot in answers.astray:
                continue
            answer = answers.of.get(spot)
            if answer is None:
                if not _is_cut_off(call, message):
                    self._note("no_result")
                    missing = ToolResponseBlock(
                        call_id=call.id, tool_name=call.name, result=NO_RESULT, is_error=True
                    )
                    yield encodable.mended_block(self._ids.answering(spot, missing))
            elif answer in answers.away:
                self._note("response_moved")
                block = messages[answer[0] - start].blocks[answer[1]]
                if isinstance(block, ToolResponseBlock):
                    moved = self._encodable(self._ids.answering(spot, block))
                    assert isinstance(moved, ToolResponseBlock)
                    yield moved

    def _note(self, code: WarningCode) -> None:
        self._found.setdefault(code, Warning(code=code, text=_TEXTS[code]))


def _without_foreign(block: Block) -> Block:
    if isinstance(block, ThinkingBlock):
        if block.source_field is None and block.provider_metadata is None:
            return block
        # Its words are anybody's; the field they came in was another provider's. There may be
        # many of them, and ``replace`` costs three times as much.
        return ThinkingBlock(
            thought=block.thought,
            is_hidden=block.is_hidden,
            signature=block.signature,
            encrypted=block.encrypted,
            redacted=block.redacted,
            interrupted=block.interrupted,
        )
    return block if block.provider_metadata is None else replace(block, provider_metadata=None)


def _is_cut_off(call: ToolCallBlock, message: Message) -> bool:
    """Whether a call that nobody answered ended in the middle of its arguments."""
    if (call.provider_metadata or {}).get("type") == "custom":
        return False  # its input is any text
    if call.arguments is None:
        return message.status == "interrupted" and not call.parameters
    if not call.arguments.strip():
        return message.status == "interrupted"
    return not _is_json(call.arguments)


def _is_json(text: str | None) -> bool:
    """Whether a string of arguments can be read; none at all can."""
    return text is None or (bool(text.strip()) and neutral.read(text) is not None)


def _says_something(message: Message, blocks: Sequence[Block]) -> bool:
    """Whether there is anything to send; an empty text of a user's is the user's own."""
    if message.role != "assistant":
        return bool(blocks)
    for block in blocks:
        if isinstance(block, TextBlock):
            if block.text or block.provider_metadata:
                return True
        elif not isinstance(block, ThinkingBlock) or block.thought or block.opaque:
            return True
    return False
