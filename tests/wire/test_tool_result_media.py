"""A tool's result with media: stored as it came, sent as parts, counted and shown as media."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.egress.token_counts import MEDIA
from reasoning_store.importers import formats
from reasoning_store.testing import refusal
from reasoning_store.wire.content_parts import describe_result
from tests.properties import each

PNG = "iVBORw0KGgo="
DATA_URL = f"data:image/png;base64,{PNG}"
TEXT = {"type": "text", "text": "shot"}
FORMS: dict[str, list[Any]] = {
    "blocks": [
        rs.TextBlock(text="shot"),
        rs.MediaBlock(kind="image", mime_type="image/png", data=b64decode(PNG)),
    ],
    "Messages": [
        TEXT,
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ],
    "Responses": [
        {"type": "input_text", "text": "shot"},
        {"type": "input_image", "detail": "auto", "image_url": DATA_URL},
    ],
    "Chat Completions": [TEXT, {"type": "image_url", "image_url": {"url": DATA_URL}}],
    "MCP": [TEXT, {"type": "image", "data": PNG, "mimeType": "image/png"}],
    "AI SDK": [TEXT, {"type": "media", "data": PNG, "mediaType": "image/png"}],
}
SENT: dict[tuple[str, str, str | None], Any] = {
    ("anthropic", "claude-sonnet-4-5", None): FORMS["Messages"],
    ("openai", "gpt-5", "openai.responses"): FORMS["Responses"],
    ("aws", "anthropic.claude-sonnet-4-5", None): [
        {"text": "shot"},
        {"image": {"format": "png", "source": {"bytes": PNG}}},
    ],
    ("google", "gemini-3-pro-preview", None): [
        {"inlineData": {"mimeType": "image/png", "data": PNG}}
    ],
    ("vercel-ai-sdk", "m", None): FORMS["AI SDK"],
    ("google", "gemini-2.5-pro", None): None,
    ("openai", "gpt-4.1", "openai.chat"): None,
    ("mistral", "mistral-medium", None): None,
    ("ollama", "qwen3", None): None,
    ("cohere", "command-a", None): None,
}
"""What of the result is in the body of each target; None where media have no place in it."""


def history(result: Any) -> list[rs.Message]:
    call = rs.ToolCallBlock(id="call_1", name="f", parameters={})
    return [
        rs.user("q"),
        rs.assistant(call),
        rs.tool(rs.ToolResponseBlock(call_id="call_1", tool_name="f", result=result)),
    ]


@each("target", SENT)
def test_the_media_of_a_result_are_sent_as_parts(target: tuple[str, str, str | None]) -> None:
    """Whatever form they came in; where they have no place, the text is, and a warning."""
    provider, model, api = target
    to: dict[str, Any] = {"provider": provider, "model": model, "api": api}
    bodies = set()
    for form in FORMS.values():
        request = rs.build_request(history(form), **to)
        bodies.add(body := json.dumps(request.body))
        codes = [warning.code for warning in request.warnings]

        assert "shot" in body
        assert refusal(request.body, **to) is None
        if SENT[target] is None:
            assert PNG not in body
            assert "block_left_out" in codes
        else:
            assert json.dumps(SENT[target]) in body
            assert "block_left_out" not in codes
    assert len(bodies) == 1


def test_a_result_of_media_alone_says_that_they_were_left_out() -> None:
    """No provider takes a result without content."""
    request = rs.build_request(history(FORMS["MCP"][1:]), provider="openai", model="gpt-4.1")

    assert request.body["messages"][-1]["content"] == "an attachment was left out"
    assert [warning.code for warning in request.warnings] == ["block_left_out"]


def test_the_media_of_a_result_are_counted_by_their_estimate() -> None:
    """Not by the letters of their bytes."""
    large = {"type": "image", "data": "A" * 40_000, "mimeType": "image/png"}
    with_text, alone = (
        rs.effective_tokens(history(result), provider="anthropic", model="claude-sonnet-4-5")
        for result in ([TEXT, large], "shot")
    )

    assert with_text.effective == alone.effective + MEDIA["image"]
    assert with_text.exactness == "estimated"


@pytest.mark.parametrize(
    "result",
    [
        [{"type": "file", "name": "a.txt"}],
        [{"type": "image", "name": "a.png", "width": 3}],
        [TEXT],
        {"type": "image", "url": "https://host/a.png"},
        [1, "image", None],
    ],
)
def test_a_result_without_media_is_sent_as_its_json(result: Any) -> None:
    """A tool may list files by the same names."""
    request = rs.build_request(history(result), provider="openai", model="gpt-4.1")

    assert json.loads(request.body["messages"][-1]["content"]) == result


def test_a_result_with_media_is_stored_shown_and_erased() -> None:
    """Shown by its kind, without its bytes; masked and erased like any other result."""
    secret = "hunter2-hunter2"
    masker = rs.SecretMasker(values=[secret])
    result = [rs.TextBlock(text=f"shot {secret}"), FORMS["blocks"][1]]
    with rs.Store("sqlite://", masker=masker) as store:
        session = store.session()
        for message in history(result):
            session.append(message)
        stored = session.history()[-1]
        (block,) = stored.message.blocks
        assert isinstance(block, rs.ToolResponseBlock)
        shown = json.dumps(rs.ui_messages(session.history()))

        assert describe_result(block).splitlines()[1:] == ["(image: image/png)"]
        assert secret not in str(block)
        assert PNG in str(block.result)
        assert "(image: image/png)" in shown
        assert PNG not in shown
        assert store.verify().problems == ()
        session.erase(stored.position)
        assert PNG not in str(session.history())


@each("api", ["anthropic", "openai"])
def test_the_media_of_a_result_come_from_foreign_messages(api: str) -> None:
    """As a kept history and the client of a server have them."""
    in_messages = [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "call_1", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": FORMS["Messages"]}
            ],
        },
    ]
    in_items = [
        {"role": "user", "content": "q"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": FORMS["Responses"]},
    ]
    lines = [json.dumps({"messages": in_messages} if api == "anthropic" else {"input": in_items})]
    (read,) = formats.conversations(lines, format=api)
    request = rs.build_request(
        [item.message for item in read.items], provider="anthropic", model="claude-sonnet-4-5"
    )

    assert json.dumps(FORMS["Messages"]) in json.dumps(request.body)
