"""The modes of the gateway: inline tags moved to their field, thinking rendered into the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.display.text_renderer import answers_without_sections
from reasoning_store.server.options import Mode, ServerOptions
from reasoning_store.server.reply_modes import make_rewriter
from reasoning_store.testing import response, sse, stream
from tests.docs.provider import THINKS, Answer, Asked, Provider
from tests.server.serving import serving

TAGGED = "<think>Cold there.</think>It is `<4 C>`, no `<think>`."
CLEAN = ("It is `<4 C>`, no `<think>`.", "Cold there.")
RENDERED = (f"\n\n---\nCold there.\n---\n\n{CLEAN[0]}", "")
PATHS = {"openai.chat": "/v1/chat/completions", "anthropic.messages": "/v1/messages"}


def read(message: rs.Message) -> tuple[str, str]:
    return message.text, "".join(block.thought or "" for block in message.thinking)


@pytest.mark.parametrize("pieces", [1, 3, 17])
@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(("mode", "wanted"), [("clean", CLEAN), ("render", RENDERED)])
def test_inline_tags_are_moved(api: str, mode: Mode, wanted: tuple[str, str], pieces: int) -> None:
    """Streamed in any pieces, and whole, in the form that the protocol's own clients read."""
    path = PATHS[api]
    message = rs.assistant(TAGGED)
    rewriter = make_rewriter(mode, path)
    data = sse(stream(message, api=api, pieces=pieces), api=api)
    moved = b"".join(rewriter.feed(data[at : at + 50]) for at in range(0, len(data), 50))
    moved += rewriter.finish()
    normalizer = rs.StreamNormalizer(provider="openai", api=api)
    for line in moved.split(b"\n"):
        if line.startswith(b"data: {"):
            normalizer.feed(json.loads(line[6:]))
    whole = make_rewriter(mode, path)
    body = whole.rewrite_whole(json.dumps(response(message, api=api)).encode())

    assert read(normalizer.finish()) == wanted
    assert read(rs.normalize_response(json.loads(body), provider="openai", api=api)) == wanted


@given(
    parts=st.lists(
        st.sampled_from(
            ["<think>", "</think>", "\n", "\n\n", "a", " ", "`", "<thi", "Cold.", "native"]
        )
    ),
    thought=st.sampled_from(["", "Cold.", "a"]),
    size=st.integers(1, 9),
    provider=st.sampled_from([None, "deepseek", "vllm", "ollama"]),
)
@pytest.mark.parametrize("api", PATHS)
def test_the_client_of_clean_gets_the_text_that_is_stored(
    api: str, parts: list[str], thought: str, size: int, provider: str | None
) -> None:
    """Without the line ends around tags, streamed and whole, for every host."""
    names: Any = {"provider": provider, "api": api}
    blocks = [rs.ThinkingBlock(thought=thought)] if thought else []
    message = rs.assistant(*blocks, "".join(parts) or "x")
    data = sse(stream(message, api=api, pieces=size), api=api)
    stored = rs.StreamNormalizer(**names)
    for event in rs.JSONEvents().feed(data):
        stored.feed(event)
    rewriter = make_rewriter("clean", PATHS[api], names=names)
    moved = rewriter.feed(data) + rewriter.finish()
    shown = rs.StreamNormalizer(api=api, tags="never")
    for event in rs.JSONEvents().feed(moved):
        shown.feed(event)
    body = response(message, api=api)
    whole = make_rewriter("clean", PATHS[api], names=names)
    cleaned = json.loads(whole.rewrite_whole(json.dumps(body).encode()))

    assert shown.finish().text == stored.finish().text
    assert (
        rs.normalize_response(cleaned, api=api, tags="never").text
        == rs.normalize_response(body, **names).text
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\n\n---\nthought\n---\n\nanswer", "answer"),
        ("---\nthought\n---\n\nanswer", "answer"),
        ("before\n\n---\nthought\n---\n\nafter\n\n---\nmore\n---\n\nend", "beforeafterend"),
        ("\n\n---\nonly a thought\n---", ""),
        ("\n\n---\na rule\n---\n\nin the thought\n---\n\nanswer", "answer"),
    ],
)
def test_a_rendered_text_offers_its_answer(text: str, answer: str) -> None:
    """Among the answers that it may have been made of."""
    assert answer in answers_without_sections(text)


@pytest.fixture
def provider() -> Iterator[Provider]:
    def answer(asked: Asked) -> Answer:
        think, call_metadata = THINKS[asked.api]
        number = len(listening.asked)
        usage = rs.Usage(input=40, output=12, reasoning=5)
        thought = think(f"A rule:\n---\n\nand thought {number}.", f"s{number}")
        if number < 4:
            call = rs.ToolCallBlock(
                id=f"call_{number}",
                name="get_weather",
                parameters={"city": "Oslo"},
                provider_metadata=call_metadata(f"s{number}", 0),
            )
            text = f"Step {number}.\n\n---\n\nA rule of mine."
            return Answer(
                message=rs.assistant(*thought, rs.TextBlock(text=text), call, usage=usage)
            )
        return Answer(message=rs.assistant(*thought, rs.TextBlock(text="Done."), usage=usage))

    with Provider(answer).listening() as listening:
        yield listening


def chat_turn(client: Any, messages: list[Any]) -> list[Any]:
    text = ""
    calls: dict[int, dict[str, str]] = {}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}]
    asked = {"model": "deepseek-reasoner", "messages": messages, "tools": tools, "stream": True}
    for event in client.chat.completions.create(**asked):
        for choice in event.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                found = calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
                found["id"] += call.id or ""
                found["name"] += call.function.name or ""
                found["arguments"] += call.function.arguments or ""
    made = [
        {
            "id": one["id"],
            "type": "function",
            "function": {"name": one["name"], "arguments": one["arguments"]},
        }
        for one in calls.values()
    ]
    reply: dict[str, Any] = {"role": "assistant", "content": text}
    answers = [{"role": "tool", "tool_call_id": one["id"], "content": "4 C"} for one in made]
    return [reply | ({"tool_calls": made} if made else {}), *answers]


def claude_turn(client: Any, messages: list[Any]) -> list[Any]:
    with client.messages.stream(
        model="claude-sonnet-4-6",
        max_tokens=4096,
        messages=messages,
        tools=[{"name": "get_weather", "input_schema": {"type": "object"}}],
        thinking={"type": "enabled", "budget_tokens": 1024},
    ) as events:
        reply = events.get_final_message()
    blocks = [block.model_dump(exclude_none=True) for block in reply.content]
    answers = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "4 C"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    kept = [
        {k: v for k, v in b.items() if k in ("type", "text", "id", "name", "input")} for b in blocks
    ]
    return [
        {"role": "assistant", "content": kept},
        *([{"role": "user", "content": answers}] if answers else ()),
    ]


@pytest.mark.parametrize("host", ["deepseek", "anthropic"])
def test_rendered_thinking_is_taken_out_of_the_echo(
    provider: Provider, tmp_path: Path, host: str
) -> None:
    """The strict provider gets its thinking back in its field, and the texts as it wrote them."""
    options = ServerOptions(upstream=f"{provider.address}/v1", provider=host, mode="render")
    with (
        rs.Store(f"sqlite:///{tmp_path}/chat.db") as store,
        serving(store, options) as address,
        openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0) as chat,
        anthropic.Anthropic(api_key="k", base_url=address, max_retries=0) as claude,
    ):
        messages: list[Any] = [{"role": "user", "content": "How is Oslo?"}]
        turn = chat_turn if host == "deepseek" else claude_turn
        for _ in range(4):
            messages += turn(chat if host == "deepseek" else claude, messages)
        (session,) = store.sessions().items
        stored = session.history()

    assert provider.refused == []
    assert "thought 1." in json.dumps(messages[1])
    sent = json.dumps(provider.asked[-1].body["messages"])
    assert "\\n---\\n\\nStep" not in sent
    assert sent.count("Step 1.\\n\\n---\\n\\nA rule of mine.") == 1
    assert len(stored) == 8
    assert stored[-1].message.text == "Done."


def test_an_unknown_mode_is_refused(provider: Provider) -> None:
    """By a route, a header, and for a protocol that has it not."""
    with (
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(upstream=f"{provider.address}/v1")) as address,
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        url = f"{address}/v1/chat/completions"
        unknown = httpx2.post(url, json=body, headers={"X-Reasoning-Mode": "shiny"})
        unsupported = httpx2.post(f"{address}/render/v1/responses", json={"input": "?"})

    assert (unknown.status_code, unsupported.status_code) == (400, 400)
    assert unknown.json()["error"]["param"] == "X-Reasoning-Mode"
    assert "mirror" in unsupported.json()["error"]["message"]
