"""The places of a request: which block stands where in its body."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress.request import written_messages
from tests.egress import histories
from tests.properties import each

CLAUDE: dict[str, Any] = {"provider": "anthropic", "model": "claude-opus-5"}
GEMINI: dict[str, Any] = {"provider": "google", "model": "gemini-3-pro"}
OPENAI = {"provider": "openai", "model": "gpt-5.6", "api": "openai.responses"}
IMAGE = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG....")
SIGNED = rs.ThinkingBlock(thought="Look.", source_field="thinking", signature="c2ln")
SEALED = rs.ThinkingBlock(
    thought="Look.",
    source_field="reasoning.summary",
    encrypted="gAAAAB0==",
    provider_metadata={"item_id": "rs_0001", "item_type": "reasoning"},
)


def loop(thought: rs.ThinkingBlock, to: dict[str, Any], **about: Any) -> list[rs.Message]:
    """Return an open loop whose tool answers with a picture."""
    origin = rs.Origin(**{"api": "anthropic.messages", **to})
    call = rs.ToolCallBlock(id="call_1", name="look", parameters={}, **about)
    seen = [
        {"type": "text", "text": "a street"},
        {"type": "media", "kind": "image", "mimeType": "image/png", "data": "iVBORw0K"},
    ]
    return [
        rs.system("Be brief."),
        rs.user("What is there?", IMAGE),
        rs.assistant(thought, "Let me look.", call, origin=origin),
        rs.tool(rs.ToolResponseBlock(call_id="call_1", tool_name="look", result=seen)),
    ]


PLACES: dict[str, tuple[rs.ThinkingBlock, dict[str, Any], dict[Any, Any]]] = {
    "Messages": (
        SIGNED,
        CLAUDE,
        {
            (0, 1): [(1, 1, None)],
            (1, 0): [(2, 0, None)],
            (1,): [(2, 0, None), (2, 1, None), (2, 2, None)],
            (2, 0, 1): [(3, 0, 1)],
            "call_1": [(2, 2, None), (3, 0, 0), (3, 0, 1)],
        },
    ),
    "Responses": (
        SEALED,
        OPENAI,
        {
            (0,): [(0, 0, None)],
            (2,): [(2, 0, None)],
            "rs_0001": [(2, 0, None)],
            (5, 1): [(3, 0, 1)],
        },
    ),
    "Gemini": (
        rs.ThinkingBlock(thought="Look.", source_field="thought"),
        GEMINI,
        {(1, 1): [(2, 2, None)], (2, 0): [(3, 0, 0), (3, 0, 1)]},
    ),
}


OF = {"Messages": "anthropic.messages", "Gemini": "gemini.generate_content", "Responses": ""}


@each("case", PLACES)
def test_a_place_names_the_block_that_was_written_there(case: str) -> None:
    """By the indexes that a refusal names, or by an id."""
    thought, to, expected = PLACES[case]
    request = rs.build_request(loop(thought, to | {"api": to.get("api", OF[case])}), **to)

    places = request.places

    assert {key: [*map(tuple, places.get(key, ()))] for key in expected} == expected


TARGETS = histories.targets | st.sampled_from(
    [
        ("openai", "gpt-5.6", "openai.responses"),
        ("google", "gemini-3-pro", None),
        ("aws", "anthropic.claude-opus-5", None),
    ]
)


def test_an_index_of_a_repair_names_no_block() -> None:
    """A stand-in for a result that was never recorded is nobody's block."""
    messages = loop(SIGNED, CLAUDE)[:-1]

    assert (2, 0) not in rs.build_request(messages, **CLAUDE).places


@given(histories.views, histories.settings, TARGETS)
def test_a_place_holds_what_its_block_says(
    view: list[rs.Message], settings: rs.ReasoningSettings, target: tuple[Any, ...]
) -> None:
    """Every text, thought and result that a place names stands there, for every protocol."""
    provider, model, api = target
    request = rs.build_request(view, settings=settings, provider=provider, model=model, api=api)
    for key, places in request.places.items():
        if isinstance(key, str):
            continue
        written = json.dumps(written_messages(request)[key[0]], ensure_ascii=False)
        for place in places:
            block = view[place.message].blocks[place.block]
            said = [block.text] if isinstance(block, rs.TextBlock) else [""]
            if isinstance(block, rs.ThinkingBlock):  # sealed, it may be sent without its words
                said = [block.thought, block.encrypted or block.thought]
            assert any(json.dumps(one, ensure_ascii=False)[1:-1] in written for one in said)


@given(histories.views, histories.settings, TARGETS)
def test_every_thought_that_is_sent_has_a_place(
    view: list[rs.Message], settings: rs.ReasoningSettings, target: tuple[Any, ...]
) -> None:
    """So a refusal can be about any of them."""
    provider, model, api = target
    request = rs.build_request(view, settings=settings, provider=provider, model=model, api=api)
    placed = {(p.message, p.block) for found in request.places.values() for p in found}

    for verdict in request.verdicts:
        block = view[verdict.message].blocks[verdict.block]
        if verdict.kept and isinstance(block, rs.ThinkingBlock) and block.thought:
            assert (verdict.message, verdict.block) in placed
