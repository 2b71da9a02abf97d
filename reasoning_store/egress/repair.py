"""What would be refused, mended on its way out. The stored messages are not touched.

    no_result          a call that nobody answered gets an error result in its place
    response_moved     an answer that stands elsewhere is put behind its call
    response_orphan    an answer to no call is left out
    response_repeated  a second answer to one call is left out
    call_cut_off       a call that ended in mid-arguments is left out
    arguments_wrapped  arguments that are not JSON become some, where others are refused
    no_answer          where only the model may speak after a tool, a reply is put between
    system_as_user     where system messages stand at the beginning, a later one is a user's
    draft              a reply that is still being written is left out
    block_unknown      a block newer than this package is left out
    block_foreign      a raw block of another api is left out

Each repair is a warning. None changes a count: what it leaves out still counts, what it
puts in does not (DESIGN 7). Beside these, what belongs to somebody else is taken off: the
metadata of another provider's blocks, and the field that its reasoning came from. Ids that
the target does not take are mapped by a pure function, in call and response alike.

An answer is due directly behind its call, and at the end too: a model that is asked to go
on cannot do so without it. Everything here depends on what stands before a message and on
the answers to its own calls, so a longer conversation is mended alike as far as it was
complete. It knows blocks and contracts; it must not know a protocol's shapes or any policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from reasoning_store.egress.admission import is_made_at, is_unknown
from reasoning_store.egress.answers import Answers, Spot, matched
from reasoning_store.egress.verdicts import Selection, Target, Warning
from reasoning_store.errors import UsageError
from reasoning_store.wire import call_ids, contracts, neutral
from reasoning_store.wire.base import Outgoing

NO_RESULT = "no result was recorded"
NO_ANSWER = "no answer was recorded"

_TEXTS = {
    "no_result": f"a tool call has no response; it is answered by the error {NO_RESULT!r}",
    "response_moved": "a tool's response did not stand behind its call; it is sent there",
    "response_orphan": "a tool's response belongs to no call; it is left out",
    "response_repeated": "a tool call was answered more than once; the first response is sent",
    "call_cut_off": "a tool call ended in the middle of its arguments; it is left out",
    "arguments_wrapped": "the provider takes JSON for a call's arguments; others are wrapped in it",
    "no_answer": "the provider wants a reply straight after a tool's response; "
    f"{NO_ANSWER!r} is sent as one",
    "system_as_user": "the provider wants system messages at the beginning; a later one is sent "
    "as the user's",
    "draft": "a reply that is still being written is not sent",
    "block_unknown": "a block of a type that this package does not know is left out",
    "block_foreign": "a raw block goes only to the api it came from; it is left out",
}


@dataclass(frozen=True, slots=True)
class Repaired:
    """Messages that can be sent, and what was done to them."""

    outgoing: list[Outgoing]
    warnings: tuple[Warning, ...]


def repair(selection: Selection, to: Target) -> Repaired:
    """Return what is sent of a selection."""
    messages = selection.messages
    found: dict[str, Warning] = {}
    answers = matched(messages)
    ids = _Ids(to, answers)
    origins = _Origins(to)
    # Nearly all messages of a long conversation are in order, and pass as they are.
    attention = answers.unpaired() | ids.touched
    if to.contract.json_arguments:
        attention |= {number for number, _ in answers.calls}
    out: list[Outgoing] = []
    for number, message in enumerate(messages):
        if message.status == "streaming":
            _note(found, "draft")
            continue
        blocks = message.blocks
        if number in attention or RawBlock in map(type, blocks) or origins.is_marked(message):
            blocks = tuple(_mended(number, message, to, answers, ids, origins, found))
        if _says_something(message, blocks):
            sent = message if blocks is message.blocks else replace(message, blocks=blocks)
            owed = bool(selection.owed and selection.owed[number])
            if to.contract.strict_order:
                out += _in_turn(out, sent, owed, found)
            else:
                out.append(Outgoing(message=sent, owed=owed))
        if number in attention:
            late = tuple(_due(number, message, answers, ids, messages, found))
            if late:
                out.append(Outgoing(message=Message(role="tool", blocks=late)))
    return Repaired(out, tuple(found.values()))


def _mended(
    number: int,
    message: Message,
    to: Target,
    answers: Answers,
    ids: _Ids,
    origins: _Origins,
    found: dict[str, Warning],
) -> Iterator[Block]:
    """Yield what is sent of one message's own blocks."""
    foreign = origins.is_foreign(message)
    for place, block in enumerate(message.blocks):
        spot = (number, place)
        if isinstance(block, ToolCallBlock):
            if spot not in answers.of and _is_cut_off(block, message):
                _note(found, "call_cut_off")
                continue
            block = ids.given(spot, block)
            if to.contract.json_arguments and not _is_json(block.arguments):
                _note(found, "arguments_wrapped")
                block = replace(block, arguments=codec.dumps(neutral.arguments(block)))
        elif isinstance(block, ToolResponseBlock):
            if spot in answers.away:
                continue
            if why := answers.astray.get(spot):
                _note(found, why)
                continue
            block = ids.answering(answers.to[spot], block)
        elif isinstance(block, RawBlock):
            if block.kind != "raw":
                _note(found, "block_unknown")
                continue
            if not origins.is_of_this_api(message):
                _note(found, "block_foreign")
                continue
        yield _without_foreign(block) if foreign else block


def _without_foreign(block: Block) -> Block:
    if isinstance(block, ThinkingBlock):
        if block.source_field is None and block.provider_metadata is None:
            return block
        # Its words are anybody's; the field they came in was another provider's.
        return replace(block, source_field=None, provider_metadata=None)
    return block if block.provider_metadata is None else replace(block, provider_metadata=None)


def _due(
    number: int,
    message: Message,
    answers: Answers,
    ids: _Ids,
    messages: Sequence[Message],
    found: dict[str, Warning],
) -> Iterator[ToolResponseBlock]:
    """Yield the answers that are due behind a message and do not stand there."""
    for place, call in enumerate(message.blocks):
        if not isinstance(call, ToolCallBlock):
            continue
        spot = (number, place)
        answer = answers.of.get(spot)
        if answer is None:
            if not _is_cut_off(call, message):
                _note(found, "no_result")
                missing = ToolResponseBlock(
                    call_id=call.id, tool_name=call.name, result=NO_RESULT, is_error=True
                )
                yield ids.answering(spot, missing)
        elif answer in answers.away:
            _note(found, "response_moved")
            block = messages[answer[0]].blocks[answer[1]]
            if isinstance(block, ToolResponseBlock):
                yield ids.answering(spot, block)


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
    try:
        return text is None or json.loads(text) is not None
    except (ValueError, RecursionError):
        return False


def _in_turn(
    out: Sequence[Outgoing], message: Message, owed: bool, found: dict[str, Warning]
) -> Iterator[Outgoing]:
    """Yield a message for a host that wants roles in an order of its own."""
    if message.role == "system" and any(item.message.role != "system" for item in out):
        _note(found, "system_as_user")
        message = replace(message, role="user")
    answers = tuple(block for block in message.blocks if _is_response(block))
    rest = tuple(block for block in message.blocks if not _is_response(block))
    if answers and rest and message.role != "assistant":
        yield Outgoing(message=replace(message, blocks=answers))
        message = replace(message, blocks=rest)
    speaks = bool(rest) and message.role != "assistant"
    if speaks and (answers or (out and all(map(_is_response, out[-1].message.blocks)))):
        _note(found, "no_answer")
        yield Outgoing(message=Message(role="assistant", blocks=(TextBlock(text=NO_ANSWER),)))
    yield Outgoing(message=message, owed=owed)


def _is_response(block: Block) -> bool:
    return isinstance(block, ToolResponseBlock)


def _says_something(message: Message, blocks: Sequence[Block]) -> bool:
    """Whether there is anything to send; an empty text of a user's is the user's own."""
    if message.role != "assistant":
        return bool(blocks)
    return any(
        bool(block.text or block.provider_metadata)
        if isinstance(block, TextBlock)
        else bool(block.thought or block.opaque)
        if isinstance(block, ThinkingBlock)
        else True
        for block in blocks
    )


class _Origins:
    """Whose a message is, each origin looked up once."""

    __slots__ = ("_api", "_foreign", "_to")

    def __init__(self, to: Target) -> None:
        self._to = to
        self._foreign: dict[tuple[str | None, ...], bool] = {}
        self._api: dict[str | None, bool] = {None: False}

    def is_foreign(self, message: Message) -> bool:
        """Whether a message was made by somebody else; of no known origin it is nobody's."""
        origin = message.origin
        if origin is None:
            return False
        key = (origin.provider, origin.api, origin.model, origin.base_url)
        if key not in self._foreign:
            self._foreign[key] = not is_unknown(origin) and not is_made_at(origin, self._to)
        return self._foreign[key]

    def is_marked(self, message: Message) -> bool:
        """Whether a foreign message carries anything that is its maker's own."""
        return self.is_foreign(message) and any(
            block.provider_metadata is not None or isinstance(block, ThinkingBlock)
            for block in message.blocks
        )

    def is_of_this_api(self, message: Message) -> bool:
        api = message.origin.api if message.origin is not None else None
        if api not in self._api:
            try:
                same = contracts.api_name(api or "") == self._to.contract.api
            except UsageError:
                same = False
            self._api[api] = same
        return self._api[api]


class _Ids:
    """The ids that the target takes for the calls of one conversation.

    An id depends on the call's own and, where ids repeat and must not, on how often it
    was used before: a longer conversation changes none.
    """

    __slots__ = ("_at", "_pattern", "touched")

    def __init__(self, to: Target, answers: Answers) -> None:
        contract = to.contract
        self._pattern = contract.call_id
        self._at: dict[Spot, str] = {}
        self.touched: set[int] = set()
        """The messages in which an id changes."""
        used: dict[str | tuple[int, str], int] = {}
        for spot, call in answers.calls.items():
            name = call.id if contract.unique_call_ids else (spot[0], call.id)
            times = used[name] = used.get(name, 0) + 1
            fitting = self._fitting(call.id, times)
            if fitting != call.id:
                self._at[spot] = fitting
                self.touched.add(spot[0])
                if spot in answers.of:
                    self.touched.add(answers.of[spot][0])

    def given(self, spot: Spot, call: ToolCallBlock) -> ToolCallBlock:
        other = self._at.get(spot)
        return call if other is None else replace(call, id=other)

    def answering(self, spot: Spot, response: ToolResponseBlock) -> ToolResponseBlock:
        """Return a response to the call at a spot, by the id that the call has there."""
        other = self._at.get(spot)
        return response if other is None else replace(response, call_id=other)

    def _fitting(self, call_id: str, times: int) -> str:
        if times > 1:
            call_id = call_ids.made(call_id, times)
        return call_ids.accepted(call_id or call_ids.made(""), self._pattern)


def _note(found: dict[str, Warning], code: str) -> None:
    found.setdefault(code, Warning(code=code, text=_TEXTS[code]))
