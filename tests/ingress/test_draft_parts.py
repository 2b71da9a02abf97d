"""What a reply leaves behind while it arrives: whole, in order, and without its secrets."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.ingress import draft_parts
from reasoning_store.ingress.masking import Masker, mask_message
from tests.properties import examples
from tests.wire.cases import Case, params

SECRET = "weather tool"


def drafted(
    case: Case, masker: Masker | None, seed: int, *, shuffled: bool = False
) -> tuple[list[str], rs.Message]:
    """Return the parts of a case's stream, taken at random moments, and its message."""
    dice = random.Random(seed)
    events = list(case.variant["stream"])
    if shuffled:
        dice.shuffle(events)
    normalizer = case.normalizer()
    draft = draft_parts.DraftParts(masker)
    parts: list[str | None] = []
    for event in events:
        draft.add(normalizer.feed(event))
        if dice.random() < 0.4:
            parts.append(draft.take_part())
    draft.add(normalizer.close())
    draft.release()
    parts.append(draft.take_part())
    return [part for part in parts if part is not None], normalizer.finish()


def made_of(parts: list[str], message: rs.Message) -> rs.Message:
    assert message.origin is not None
    origin = rs.Origin(provider=message.origin.provider, api=message.origin.api)
    return draft_parts.build_message(parts, origin=origin, interrupted=False)


@pytest.mark.parametrize("case", params("stream"))
@examples(10)
@given(seed=st.integers(0, 2**32))
def test_the_parts_of_a_reply_come_to_the_reply(case: Case, seed: int) -> None:
    """Whenever they are taken, the same blocks, usage and origin."""
    parts, message = drafted(case, None, seed)
    again = made_of(parts, message)

    assert again.blocks == message.blocks
    assert again.usage == message.usage
    assert again.origin == message.origin


@pytest.mark.parametrize("case", params("stream"))
@examples(10)
@given(seed=st.integers(0, 2**32))
def test_what_comes_out_of_order_is_in_the_parts(case: Case, seed: int) -> None:
    """A seal follows its block's end, and a call the finish."""
    parts, message = drafted(case, None, seed, shuffled=True)

    assert made_of(parts, message).blocks == message.blocks


@pytest.mark.parametrize("case", params("stream"))
@examples(10)
@given(seed=st.integers(0, 2**32))
def test_no_part_holds_a_secret_however_the_stream_is_cut(case: Case, seed: int) -> None:
    """Masking stands before every write, drafts too."""
    parts, message = drafted(case, rs.SecretMasker(values=[SECRET]), seed)

    assert SECRET not in "".join(block.thought for block in made_of(parts, message).thinking)
    assert all(SECRET not in part for part in parts)


@pytest.mark.parametrize("case", params("stream"))
def test_a_masked_draft_is_the_masked_message_where_nothing_is_sealed(case: Case) -> None:
    """What is drafted and what is stored at the end are masked alike."""
    masker = rs.SecretMasker(values=[SECRET])
    parts, message = drafted(case, masker, seed=7)
    stored, again = mask_message(message, masker), made_of(parts, message)

    for mine, other in zip(again.blocks, stored.blocks, strict=True):
        if not (isinstance(other, rs.ThinkingBlock) and other.signature is not None):
            assert mine == other


def test_a_masked_draft_takes_a_block_of_what_json_cannot_hold() -> None:
    """A host in the same process may send anything; what becomes of it is masked, too."""
    data = {"type": "new", "bytes": b"\xff", "set": {SECRET}}
    draft = draft_parts.DraftParts(rs.SecretMasker(values=[SECRET]))
    draft.add([rs.BlockChunk(block=rs.RawBlock(data=data), content_index=0)])

    part = draft.take_part()
    assert part is not None
    assert SECRET not in part
    assert '{"$bytes_b64":"/w=="}' in part


def test_a_seal_over_a_text_that_was_changed_is_left_out() -> None:
    """A provider refuses a sealed thought that is not the one it sealed."""
    draft = draft_parts.DraftParts(rs.SecretMasker(values=["hunter2-hunter2"]))
    about: dict[str, Any] = {"sourceField": "thinking"}
    draft.add(
        [
            rs.ReasoningChunk(phase="start", content_index=0, metadata=about),
            rs.ReasoningChunk(text="it is hunter2-", content_index=0, metadata=about),
            rs.ReasoningChunk(text="hunter2.", content_index=0, metadata=about),
            rs.ReasoningChunk(
                content_index=0,
                phase="end",
                is_complete=True,
                metadata={**about, "signature": "c2ln"},
            ),
        ]
    )
    part = draft.take_part()
    assert part is not None
    (block,) = draft_parts.build_message([part], origin=rs.Origin()).thinking

    assert "hunter2" not in block.thought
    assert block.signature is None


@pytest.mark.parametrize(
    ("rest", "seal"), [("hunter2", None), ("nothing", "c2ln")], ids=["secret", "no secret"]
)
def test_a_seal_waits_for_the_end_of_its_thought(rest: str, seal: str | None) -> None:
    """It comes before the end, while a secret may still be held that would break it."""
    draft = draft_parts.DraftParts(rs.SecretMasker(values=["hunter2-hunter2"]))
    about: dict[str, Any] = {"sourceField": "thinking"}
    signed = {**about, "signature": "c2ln"}
    parts = []
    for chunk in (
        rs.ReasoningChunk(phase="start", content_index=0, metadata=about),
        rs.ReasoningChunk(text=f"it is hunter2-{rest}", content_index=0, metadata=about),
        rs.ReasoningChunk(content_index=0, metadata=signed),
        rs.ReasoningChunk(phase="end", content_index=0, is_complete=True, metadata=about),
    ):
        draft.add([chunk])
        parts.append(draft.take_part() or "[]")
    (block,) = draft_parts.build_message(parts, origin=rs.Origin()).thinking

    assert block.signature == seal
    assert "hunter2-hunter2" not in block.thought


def test_the_newest_text_waits_until_no_secret_can_begin_in_it() -> None:
    """A part is cut a lookback behind what has arrived."""
    masker = rs.SecretMasker(values=["hunter2-hunter2"])
    draft = draft_parts.DraftParts(masker)
    draft.add([rs.TextChunk(text="x" * (masker.lookback * 3) + "hunter2-hun", content_index=0)])
    part = draft.take_part()

    assert part is not None
    assert "hunter2" not in part


def test_an_unknown_part_is_corrupt() -> None:
    """A damaged draft is reported, never half read."""
    with pytest.raises(rs.CorruptRow):
        draft_parts.build_message(['[{"type":"nonsense"}]'], origin=rs.Origin())


ESCAPED = [
    '{"k":"say pass\\"word now"}',
    '{"k":"p\\u0061ss\\u0022word", "n": 1}',
    '{"a":"\\n","k":"x"}',
]


@pytest.mark.parametrize("arguments", ESCAPED)
@examples(20)
@given(seed=st.integers(0, 2**32))
def test_no_part_holds_a_secret_that_an_escape_hides(arguments: str, seed: int) -> None:
    """What a tool is called with is JSON, in pieces and in a draft too."""
    dice = random.Random(seed)
    normalizer = rs.StreamNormalizer(api="openai.chat")
    draft = draft_parts.DraftParts(rs.SecretMasker(values=['pass"word']))
    parts: list[str | None] = []
    place = 0
    while place < len(arguments):
        size = dice.randint(1, 9)
        function = {"name": "f", "arguments": arguments[place : place + size]}
        call = {"index": 0, **({} if place else {"id": "c"}), "function": function}
        draft.add(normalizer.feed({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
        place += size
        parts.append(draft.take_part())
        so_far = draft_parts.build_message([part for part in parts if part], origin=rs.Origin())
        assert 'pass"word' not in str([call.parameters for call in so_far.tool_calls])
        assert "pass\\" not in str(parts)
    draft.add([*normalizer.close(), rs.FinishChunk(reason=None)])
    parts.append(draft.take_part())
    whole = draft_parts.build_message(
        [part for part in parts if part], origin=rs.Origin(), interrupted=False
    )

    (wanted,) = mask_message(normalizer.finish(), rs.SecretMasker(values=['pass"word'])).tool_calls
    (call_made,) = whole.tool_calls
    assert 'pass"word' not in str(call_made.parameters)
    assert '"word' not in (call_made.arguments or "")
    if wanted.arguments == arguments:
        assert call_made.arguments == arguments
