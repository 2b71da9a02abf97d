"""The parts of messages that a request leaves out because a provider refused them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import blake2b

from reasoning_store.conversation import codec, seals
from reasoning_store.conversation.blocks import (
    Block,
    Counts,
    MediaBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.withholding import BLOCK, SEAL, WithheldPart
from reasoning_store.egress.admissibility import is_same_address
from reasoning_store.egress.selection_values import JudgedMessage, Verdict
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import count_block
from reasoning_store.tokens import Counter
from reasoning_store.wire.content_parts import read_result, result_parts
from reasoning_store.wire.message_writer import NO_MEDIA
from reasoning_store.wire.tools import media_base64


def parts_left_out(item: JudgedMessage, to: Target) -> Sequence[WithheldPart]:
    """Return the parts of a message that requests for a target leave out."""
    return [part for part in item.withheld if _holds_at(part, to)] if item.withheld else ()


def _holds_at(part: WithheldPart, to: Target) -> bool:
    """Whether a part is left out there: everywhere, or where the provider refused it."""
    refused, here = part.target, to.origin
    if refused is None:
        return True
    if (refused.provider, refused.api) != (here.provider, here.api):
        return False
    addresses = (refused.base_url, here.base_url)
    return None in addresses or is_same_address(refused.base_url or "", here.base_url or "")


def visible_verdicts(item: JudgedMessage, parts: Sequence[WithheldPart]) -> list[Verdict]:
    """Return the verdicts of parts that are no thoughts: a text, a call, media, a seal.

    They have at most the tokens that the visible blocks count: of a cleared result few are left.
    """
    thoughts = {number for number, _ in item.thinking}
    left = item.counts.visible
    verdicts = []
    for part in parts:
        if part.block not in thoughts:
            tokens = min(part.tokens, left)
            left -= tokens
            verdicts.append(
                Verdict(item.number, part.block, False, "withheld", tokens, part.reason)
            )
    return verdicts


def count_part(message: Message, counts: Counts, number: int, part: str, counter: Counter) -> int:
    """Return the tokens that a message counts less without a part."""
    block = message.blocks[number]
    if isinstance(block, ThinkingBlock):
        thoughts = [place for place, one in enumerate(message.blocks) if one in message.thinking]
        return counts.thinking[thoughts.index(number)]
    if part == SEAL:
        return 0
    return count_block(_piece(block, part), counter)


def digest_part(block: Block, part: str) -> bytes:
    """Return the digest of a seal, or of the bytes or the text of a block."""
    match block := _piece(block, part):
        case ThinkingBlock():
            said = block.encrypted or block.signature or block.thought
        case MediaBlock():
            said = media_base64(block) if block.data is not None else block.url or block.ref or ""
        case _:
            said = codec.dumps(codec.block_to_json(block))
    return blake2b(said.encode(), digest_size=16).digest()


def _piece(block: Block, part: str) -> Block:
    """Return the piece of a tool's result that a part names; else the block itself."""
    parts = result_parts(block) if isinstance(block, ToolResponseBlock) else None
    return parts[int(part)] if parts is not None and part.isdecimal() else block


def sent_blocks(
    blocks: Sequence[tuple[int, Block]], left_out: Collection[int], parts: Sequence[WithheldPart]
) -> list[Block]:
    """Return the blocks that are sent of a message, each given with its place among all."""
    smaller = {part.block for part in parts if part.part != BLOCK}
    gone = {*left_out, *(part.block for part in parts)} - smaller
    sent = [
        _without(block, [part.part for part in parts if part.block == number])
        if number in smaller
        else block
        for number, block in blocks
        if number not in gone
    ]
    has_lost_media = any(number in gone and isinstance(one, MediaBlock) for number, one in blocks)
    return sent if sent or not has_lost_media else [TextBlock(text=NO_MEDIA)]


def _without(block: Block, parts: Sequence[str]) -> Block:
    """Return a block without its seal, or without some pieces of its result."""
    if SEAL in parts:
        return seals.without_seal(block)
    if not isinstance(block, ToolResponseBlock):
        return block
    pieces = block.result if isinstance(block.result, list) else [block.result]
    left = [piece for number, piece in enumerate(pieces) if str(number) not in parts]
    return replace(block, result=read_result(left) or NO_MEDIA)
