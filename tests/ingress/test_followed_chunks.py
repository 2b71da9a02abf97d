"""The chunks that followers get of a reply, however it was cut on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.draft_parts import DraftParts, Entry
from reasoning_store.ingress.followed_chunks import BEGIN, FollowedChunks, Placed
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.testing import stream
from tests.ingress.mangled import mangle
from tests.properties import examples
from tests.strategies import carried

APIS = ("anthropic.messages", "bedrock.converse", "openai.chat", "openai.responses")


def recorded(
    message: rs.Message, api: str, dice: Random, *, is_mangled: bool
) -> tuple[list[rs.Chunk], rs.Message]:
    """Return the chunks of a reply that arrives in random pieces, and its message."""
    normalizer = rs.StreamNormalizer(api=api)
    chunks: list[rs.Chunk] = []
    events = stream(message, api=api, pieces=dice.randint(1, 5), seed=dice.randint(0, 99))
    for event in mangle(events, dice) if is_mangled else events:
        chunks += normalizer.feed(event)
    chunks += normalizer.close()
    return chunks, normalizer.finish()


def read_from_memory(reader: FollowedChunks, chunks: list[rs.Chunk]) -> Iterator[Placed]:
    """Read each entry as it arrives."""
    entries: list[Entry] = []
    draft = DraftParts(None)
    draft.pass_on = entries.append
    draft.add(chunks)
    for entry in entries:
        yield from reader.read(entry)


def read_from_store(
    reader: FollowedChunks, chunks: list[rs.Chunk], dice: Random
) -> Iterator[Placed]:
    """Read the parts of the draft, which were taken at random moments."""
    draft = DraftParts(None)
    for chunk in chunks:
        draft.add([chunk])
        if dice.random() < 0.3 and (part := draft.take_part()) is not None:
            yield from reader.read_part(part)
    if (part := draft.take_part()) is not None:
        yield from reader.read_part(part)


@examples(600)
@given(st.data())
def test_a_follower_gets_the_message_however_it_is_cut(data: st.DataObject) -> None:
    """The stream into chunks, the draft into parts, the reading at any cursor; unwritten ends."""
    api = data.draw(st.sampled_from(APIS))
    drawn = data.draw(carried(api))
    dice = data.draw(st.randoms(use_true_random=False))
    is_mangled = data.draw(st.booleans())
    chunks, message = recorded(drawn, api, dice, is_mangled=is_mangled)

    found, place = Accumulator(), BEGIN
    # A place beyond what was written counts characters, so it needs them in the message's order.
    for is_last in (True,) if is_mangled else (False, False, True):
        arrived = chunks[: dice.randint(0, len(chunks))] if is_last else chunks
        reader = FollowedChunks(place)
        if dice.random() < 0.5:
            placed = [*read_from_memory(reader, arrived)]
        else:
            placed = [*read_from_store(reader, arrived, dice)]
        if is_last:
            placed += reader.rest(message)
        else:
            placed = placed[: dice.randint(0, len(placed))]
        for one in placed:
            found.add(one.chunk)
            place = one.place
    followed = found.build(origin=rs.Origin(), interrupted=False, counters=Counters(), metadata={})

    if is_mangled:  # the entries of an array may be elsewhere, and a begin is not taken back
        assert not Counter(map(repr, message.blocks)) - Counter(map(repr, followed.blocks))
    else:
        assert followed.blocks == message.blocks
    assert (followed.usage, followed.finish_reason) == (message.usage, message.finish_reason)
