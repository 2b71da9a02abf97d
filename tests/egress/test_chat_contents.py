"""Texts, media, tools and system prompts in requests of Chat Completions and its kin."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import reasoning_store as rs
from tests.egress.chat_bodies import KEEP, body, sent
from tests.egress.histories import (
    call,
)
from tests.properties import each

# --- text, media, tools, system


PNG = b"\x89PNG\r\n"


PNG_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


IMAGE = rs.MediaBlock(kind="image", mime_type="image/png", data=PNG)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (IMAGE, {"type": "image_url", "image_url": {"url": PNG_URL}}),
        (
            rs.MediaBlock(kind="image", mime_type="image/png", url="https://x.org/a.png"),
            {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
        ),
        (
            rs.MediaBlock(kind="audio", mime_type="audio/mpeg", data=b"mp3"),
            {"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}},
        ),
        (
            rs.MediaBlock(kind="video", mime_type="video/mp4", url="https://x.org/a.mp4"),
            {"type": "video_url", "video_url": {"url": "https://x.org/a.mp4"}},
        ),
        (
            rs.MediaBlock(kind="file", mime_type="application/pdf", name="a.pdf", data=b"pdf"),
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
            },
        ),
    ],
)
def test_media_are_parts_of_what_a_user_says(block: rs.MediaBlock, part: dict[str, Any]) -> None:
    """Next to the text, in order."""
    assert sent(rs.user("See:", block)) == [
        {"role": "user", "content": [{"type": "text", "text": "See:"}, part]}
    ]


@pytest.mark.parametrize(
    ("provider", "model", "part"),
    [
        (
            "mistral",
            "mistral-medium-3.5",
            {"type": "document_url", "document_url": "data:application/pdf;base64,cGRm"},
        ),
        ("mistral", "mistral-medium-3.5", {"type": "input_audio", "input_audio": "bXAz"}),
    ],
)
def test_mistral_has_parts_of_its_own(provider: str, model: str, part: dict[str, Any]) -> None:
    """A document is an address, sound is bare data."""
    block = (
        rs.MediaBlock(kind="file", mime_type="application/pdf", data=b"pdf")
        if "document_url" in part
        else rs.MediaBlock(kind="audio", mime_type="audio/mpeg", data=b"mp3")
    )

    assert sent(rs.user("See:", block), provider=provider, model=model)[0]["content"][1] == part


def test_ollama_has_pictures_in_a_field_of_their_own() -> None:
    """As bare base64, and by data only."""
    (found,) = sent(rs.user("See:", IMAGE), provider="ollama", model="qwen3")

    assert found == {"role": "user", "content": "See:", "images": [base64.b64encode(PNG).decode()]}


@each(
    "provider, block, kind",
    [
        (None, rs.MediaBlock(kind="image", mime_type="image/png", ref="app://1"), "image"),
        (None, rs.MediaBlock(kind="audio", mime_type="audio/wav", url="https://x.org/a"), "audio"),
        ("mistral", rs.MediaBlock(kind="video", mime_type="video/mp4", data=b"x"), "video"),
        (
            "ollama",
            rs.MediaBlock(kind="image", mime_type="image/png", url="https://x.org"),
            "image",
        ),
        ("ollama", rs.MediaBlock(kind="file", mime_type="text/plain", data=b"x"), "file"),
        ("cohere", rs.MediaBlock(kind="audio", mime_type="audio/wav", data=b"x"), "audio"),
    ],
)
def test_a_medium_without_a_place_is_left_out_with_a_warning(
    provider: str | None, block: rs.MediaBlock, kind: str
) -> None:
    """Never silently."""
    request = rs.build_request([rs.user("See:", block)], provider=provider, model="m")

    assert request.body["messages"][0]["content"] == "See:"
    assert [(w.code, kind in w.text) for w in request.warnings] == [("block_left_out", True)]


@each(
    "system, messages",
    [
        (None, []),
        ("", []),
        ("Be brief.", [{"role": "system", "content": "Be brief."}]),
        (["Be", "brief."], [{"role": "system", "content": "Be\n\nbrief."}]),
        (
            [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            [
                {
                    "role": "system",
                    "content": [
                        {
                            "type": "text",
                            "text": "Be brief.",
                            "cache_control": {"type": "ephemeral"},
                        }
                    ],
                }
            ],
        ),
        (
            {"role": "developer", "content": "Be brief."},
            [{"role": "developer", "content": "Be brief."}],
        ),
    ],
)
def test_a_system_prompt_is_neutral_or_already_the_wires(
    system: Any, messages: list[dict[str, Any]]
) -> None:
    """It stands first, and is for this request only."""
    assert sent(rs.user("Hi"), system=system) == [*messages, {"role": "user", "content": "Hi"}]


@each(
    "tool",
    [
        {"name": "f", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {"type": "function", "name": "f", "parameters": {"type": "object"}},
        {"name": "f", "input_schema": {"type": "object"}},
    ],
)
@each("provider", [None, "mistral", "ollama", "cohere"])
def test_a_tool_is_neutral_or_some_wires_own(provider: str | None, tool: dict[str, Any]) -> None:
    """Bare, or in the form of another protocol: the same function."""
    assert body(rs.user("Hi"), provider=provider, model="m", tools=[tool])["tools"] == [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    ]


def test_a_tool_of_the_hosts_own_stays_as_it_is() -> None:
    """What is not a function is not ours to change."""
    tool = {"type": "web_search", "max_results": 3}

    assert body(rs.user("Hi"), tools=[tool])["tools"] == [tool]


def test_a_custom_call_goes_back_as_one() -> None:
    """Its input is any text, and no JSON."""
    said = {
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}]
    }
    response = {"choices": [{"message": {"content": None, **said}}]}
    reply = rs.normalize_response(response, provider="openai", model="gpt-5.6")
    done = rs.tool(rs.ToolResponseBlock(call_id="c", result="a.txt"))
    found = sent(reply, done, provider="openai", model="gpt-5.6")

    assert found[0] == {"role": "assistant", "content": None, **said}


def test_a_refusal_goes_back_as_one() -> None:
    """It is no text of the answer's."""
    response = {"choices": [{"message": {"content": None, "refusal": "No."}}]}
    reply = rs.normalize_response(response, provider="openai", model="gpt-5.6")

    assert sent(reply, provider="openai", model="gpt-5.6") == [
        {"role": "assistant", "content": None, "refusal": "No."}
    ]


def test_what_a_tool_answers_is_text() -> None:
    """A string as it is, anything else as JSON."""
    structured = rs.tool(rs.ToolResponseBlock(call_id="call_1", result={"c": 4}))

    assert sent(rs.assistant(call()), structured)[1]["content"] == '{"c":4}'


def test_ollama_names_the_tool_that_answers() -> None:
    """Calls have no ids there; a response without a name has its call's."""
    nameless = rs.tool(rs.ToolResponseBlock(call_id="call_1", result="4 C"))
    found = sent(rs.assistant(call()), nameless, provider="ollama", model="qwen3")

    assert found[1] == {"role": "tool", "tool_name": "get_weather", "content": "4 C"}


def test_coheres_plan_and_citations_go_back_to_their_places() -> None:
    """What it said it would do is next to its thoughts, what it cited next to its text."""
    citation = {"start": 0, "end": 2, "text": "Hi", "type": "TEXT_CONTENT", "content_index": 0}
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "tool_plan": "I will look.",
        "citations": [citation],
    }
    reply = rs.normalize_response({"message": message}, provider="cohere", model="command-a")
    (found,) = sent(reply, provider="cohere", model="command-a", settings=KEEP)

    assert found == {**message, "content": "Hi"}
