"""The blocks that a refusal is about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress.refusals import explain_refusal
from reasoning_store.egress.refused_blocks import error_text, find_refused, search_refused
from reasoning_store.egress.request_places import Place
from tests.egress.histories import answer
from tests.properties import each

FILE = Path(__file__).parent.parent / "cases" / "wire" / "errors_400.json"
KNOWN: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["patterns"]
ACTS = {
    "of type 'reasoning' was provided without its required following item": "block",
    "was provided without its required 'reasoning' item": "resend",
    "Items are not persisted when `store` is set to false": "ids",
    "invalid_encrypted_content": "block",
    "The block is bound to a different conversation": "block",
    "Invalid `signature` in `thinking` block": "block",
    "Expected `thinking` or `redacted_thinking`, but found": "resend",
    "When thinking is disabled, an `assistant` message": "none",
    '"thinking.type.disabled" is not supported for this model': "none",
    '"thinking.type.enabled" is not supported for this model': "none",
    "The `reasoning_content` in the thinking mode must be passed back to the API": "resend",
    "Missing `reasoning_content` field in the assistant message at message index": "resend",
    "reasoning_content is missing in assistant tool call message at index": "resend",
    "is missing a thought_signature": "resend",
    "Corrupted thought signature|Invalid thought signature|Thought signature is not valid": "seal",
    "reasoning_details": "block",
    "requires adaptive thinking": "none",
}
PROVIDERS = {"openai.responses": "openai"}


def test_every_recorded_refusal_has_its_act() -> None:
    """A third of those about a block want more of it, not less."""
    found = {}
    for known in KNOWN:
        provider = PROVIDERS.get(known["api"], known["api"])
        explained = explain_refusal(provider, known["match"].split("|")[0])
        found[known["match"]] = explained.act if explained else None

    assert found == ACTS


CLAUDE: dict[str, Any] = {
    "provider": "anthropic",
    "model": "claude-opus-5",
    "api": "anthropic.messages",
}
RESPONSES: dict[str, Any] = {"provider": "openai", "model": "gpt-5.6", "api": "openai.responses"}
GEMINI: dict[str, Any] = {
    "provider": "google",
    "model": "gemini-3-pro",
    "api": "gemini.generate_content",
}
IMAGE = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG....")
PICTURES = [
    {"type": "text", "text": "a street"},
    {"type": "media", "kind": "image", "mimeType": "image/png", "data": "iVBORw0K"},
]


def signed(n: int) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=f"Step {n}.", source_field="thinking", signature=f"c2ln{n:04}")


def sealed(n: int) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(
        source_field="reasoning.summary",
        encrypted=f"gAAAA{n:04}B{n}==",
        provider_metadata={"item_id": f"rs_000{n}", "item_type": "reasoning"},
    )


def loop(kind: Any, to: dict[str, Any], about: dict[str, Any] | None = None) -> rs.Request:
    """Return the request of an open loop of three steps; the last one answers with a picture."""
    origin = rs.Origin(**to)
    messages = [rs.user("Look.", IMAGE, " ")]
    for n in range(3):
        made = rs.ToolCallBlock(
            id=f"call_{n}", name="look", parameters={}, arguments="{}", provider_metadata=about
        )
        messages += [rs.assistant(kind(n), made, origin=origin), answer(f"call_{n}")]
    messages[-1] = rs.tool(rs.ToolResponseBlock(call_id="call_2", result=PICTURES))
    return rs.build_request(messages, **to)


REQUESTS = {
    "claude": loop(signed, CLAUDE),
    "responses": loop(sealed, RESPONSES),
    "gemini": loop(
        lambda n: rs.ThinkingBlock(thought=f"Step {n}.", source_field="thought"),
        GEMINI,
        {"thoughtSignature": "c2ln"},
    ),
}
THOUGHTS = [(1, 0, None), (3, 0, None), (5, 0, None)]
CALLS = [(1, 1, None), (3, 1, None), (5, 1, None)]

REFUSALS: dict[str, tuple[str, str, str, list[tuple[Any, ...]], bool]] = {
    "an index": (
        "claude", "messages.3.content.0: Invalid `signature` in `thinking` block",
        "block", [(3, 0, None)], True,
    ),
    "an index of a thought that was changed": (
        "claude", "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest "
        "assistant message cannot be modified.", "block", [(5, 0, None)], True,
    ),
    "an index that is bound": (
        "claude", "messages.1.content.0: Invalid `signature` in `thinking` block. The block is "
        "bound to a different conversation.", "block", [(1, 0, None)], True,
    ),
    "an index of another kind of block": (
        "claude", "messages.3.content.1: Invalid `signature` in `thinking` block",
        "block", THOUGHTS, False,
    ),
    "no index": (
        "claude", "Invalid `signature` in `thinking` block", "block", THOUGHTS, False,
    ),
    "an index that no message has": (
        "claude", "messages.40.content.0: Invalid `signature` in `thinking` block",
        "block", [], False,
    ),
    "an image of the user": (
        "claude", "messages.0.content.1.image.source.base64.data: At least one of the image "
        "dimensions exceed max allowed size for many-image requests: 2000 pixels",
        "media", [(0, 1, None)], True,
    ),
    "an image in a result": (
        "claude", "messages.6.content.0.tool_result.content.1.image.source.base64: image exceeds 5 "
        "MB maximum: 6000000 bytes > 5242880 bytes", "media", [(6, 0, 1)], True,
    ),
    "an image without a place": (
        "claude", "Could not process image", "media", [(0, 1, None), (6, 0, 1)], False,
    ),
    "an empty text": (
        "claude", "messages: text content blocks must be non-empty",
        "text", [(0, 2, None)], True,
    ),
    "an id": (
        "responses", "Item 'rs_0001' of type 'reasoning' was provided without its required "
        "following item.", "block", [(3, 0, None)], True,
    ),
    "the ends of a ciphertext": (
        "responses", "The encrypted content gAAA...B2== could not be verified. Reason: Encrypted "
        "content could not be decrypted or parsed.", "block", [(5, 0, None)], True,
    ),
    "ends that several have": (
        "responses", "invalid_encrypted_content: gAAA...==", "block", THOUGHTS, False,
    ),
    "a place by its parameter": (
        "responses", "invalid_encrypted_content {'param': 'input[1].encrypted_content'}",
        "block", [(1, 0, None)], True,
    ),
    "a seal": ("gemini", "Corrupted thought signature.", "seal", CALLS, False),
    "a seal with its place": (
        "gemini", "Thought signature is not valid. (contents[1].parts[0])",
        "seal", [(1, 1, None)], True,
    ),
}  # fmt: skip


@each("name", REFUSALS)
def test_a_refusal_names_its_block_or_leaves_suspects(name: str) -> None:
    """By its own words; a name that is about another kind of block is none."""
    of, text, act, places, certain = REFUSALS[name]
    request = REQUESTS[of]
    explained = explain_refusal(request.target.provider, text)

    assert explained is not None
    assert explained.act == act
    found = find_refused(request, explained.act, text)
    assert [tuple(place) for place in found.places] == places
    assert found.is_certain == certain
    assert bool(found.reason) == (not places)


def http_error(kind: Any, body: dict[str, Any]) -> Exception:
    """Return the exception that an SDK makes of a refusal."""
    asked = httpx.Request("POST", "https://api.test/v1")
    response = httpx.Response(400, json=body, request=asked)
    if kind is httpx.HTTPStatusError:
        return httpx.HTTPStatusError("400 Bad Request", request=asked, response=response)
    error: Exception = kind("Error code: 400", response=response, body=body)
    return error


BODY = {"error": {"message": "messages.3.content.0: Invalid signature", "param": "input[3]"}}


@pytest.mark.parametrize(
    "error",
    [
        BODY["error"]["message"],
        BODY,
        json.dumps(BODY).encode(),
        http_error(anthropic.BadRequestError, BODY),
        http_error(openai.BadRequestError, BODY),
        http_error(httpx.HTTPStatusError, BODY),
    ],
    ids=["text", "body", "bytes", "anthropic", "openai", "httpx"],
)
def test_a_refusal_is_read_in_whatever_form_it_comes(error: object) -> None:
    assert "messages.3.content.0: Invalid signature" in error_text(error)


def test_an_error_without_a_text_is_refused() -> None:
    with pytest.raises(rs.InvalidCall, match="error must be"):
        error_text(400)


@given(st.integers(1, 200), st.data())
def test_a_search_finds_the_one_suspect_that_is_refused(number: int, data: st.DataObject) -> None:
    """With at most log2 of their number questions, and one more."""
    suspects = [Place(n, 0) for n in range(number)]
    bad = data.draw(st.sampled_from(suspects))
    asked = []

    def is_accepted(left_out: Any) -> bool:
        asked.append(left_out)
        return bad in left_out

    found = search_refused(suspects, is_accepted)

    assert found.places == (bad,)
    assert found.is_certain
    assert len(asked) <= (number - 1).bit_length() + 1


@given(st.sets(st.integers(0, 19), min_size=1))
def test_a_search_among_several_leaves_all_of_them_out(bad: set[int]) -> None:
    """Then it cannot tell which of those after the first are good."""
    suspects = [Place(n, 0) for n in range(20)]
    refused = {suspects[n] for n in bad}

    found = search_refused(suspects, lambda left_out: refused <= set(left_out))

    assert refused <= set(found.places)
    assert found.is_certain == (len(bad) == 1)
