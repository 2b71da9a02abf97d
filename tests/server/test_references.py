"""Clients that send the ids of stored items in their place, as Vercel's AI SDK does by default."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import httpx2
import pytest

import reasoning_store as rs
from reasoning_store.server.options import ServerOptions, token_digest
from tests.docs.provider import Answer, Asked, Provider
from tests.integrations.loops import STEPS
from tests.server.serving import serving

_numbers = count(1)
TOKENS = {"me": "token-of-owner-me", "you": "token-of-owner-you"}
TOOL = {"type": "function", "name": "get_weather", "parameters": {}, "strict": False}


def with_text(asked: Asked) -> Answer:
    """Think, speak and call a tool until twenty have answered; each id is its own, or no id is."""
    name = f"{next(_numbers):032x}"
    steps = json.dumps(asked.body["input"]).count("function_call_output") % STEPS
    is_answer = "output" in asked.last and not steps
    thought = rs.ThinkingBlock(
        thought=f"Thought {name}.",
        source_field="reasoning.summary",
        provider_metadata={"item_id": f"rs_{name}", "item_type": "reasoning"},
    )
    text = rs.TextBlock(
        text=f"Done {name}." if is_answer else "I look.",
        provider_metadata={"item_id": f"msg_{name}"},
    )
    call = rs.ToolCallBlock(id=f"call_{name}", name="get_weather", parameters={})
    said = (thought, text) if is_answer else (thought, text, call)
    return Answer(message=rs.assistant(*said, origin=rs.Origin(response_id=f"resp_{name}")))


def completed(text: str) -> Any:
    """Return the response with which a stream ends."""
    lines = [
        line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")
    ]
    return json.loads(lines[-1])["response"]


def run_turn(address: str, items: list[Any], question: str, *, streamed: bool) -> str:
    """Run a turn as the AI SDK does: calls in full, reasoning and text by their ids.

    Return how the conversation was found at last.
    """
    items.append({"role": "user", "content": [{"type": "input_text", "text": question}]})
    while True:
        body = {"model": "gpt-5", "input": items, "tools": [TOOL], "stream": streamed}
        answer = httpx2.post(f"{address}/v1/responses", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        reply = completed(answer.text) if streamed else answer.json()
        for item in reply["output"]:
            if item["type"] == "function_call":
                call = {name: item[name] for name in ("type", "call_id", "name", "arguments")}
                items.append(call)
            else:
                items.append({"type": "item_reference", "id": item["id"]})
        calls = [item for item in reply["output"] if item["type"] == "function_call"]
        if not calls:
            return str(answer.headers["X-Reasoning-Match"])
        items += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "4 C"}
            for call in calls
        ]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_client_that_sends_ids_of_items_has_one_session(
    provider: Provider, streamed: bool
) -> None:
    """Two turns of twenty steps: every item is passed on as it came, on one branch."""
    provider.script = with_text
    options = ServerOptions(upstream=f"{provider.address}/v1", provider="openai")
    with rs.Store("sqlite://") as store, serving(store, options) as address:
        items: list[Any] = []
        run_turn(address, items, "How is Oslo?", streamed=streamed)
        run_turn(address, items, "And Bergen?", streamed=streamed)

        (session,) = store.sessions().items
        history = session.history()
        branches = session.branches()

    sent = provider.asked[-1].body["input"]
    assert sent == items[: len(sent)]
    assert len(branches) == 1
    assert len(history) == 2 * (2 + 2 * STEPS)
    assert all(one.message.thinking for one in history if one.message.role == "assistant")


def answer_in_text(asked: Asked) -> Answer:
    """Think and answer, each time with ids of its own."""
    return with_text(replace(asked, body={**asked.body, "input": [{"output": ""}]}))


def test_a_reply_is_known_by_the_ids_of_its_items(provider: Provider) -> None:
    """Though the client has changed a message before it: the session gets a branch."""
    provider.script = answer_in_text
    options = ServerOptions(upstream=f"{provider.address}/v1", provider="openai")
    items: list[Any] = []
    with rs.Store("sqlite://") as store, serving(store, options) as address:
        run_turn(address, items, "How is Oslo?", streamed=False)
        run_turn(address, items, "And Bergen?", streamed=False)
        items[0]["content"][0]["text"] = "How is [removed]?"
        match = run_turn(address, items, "And Turin?", streamed=False)
        (session,) = store.sessions().items
        roles = [one.message.role for one in session.history()]
        texts = [one.message.text for one in session.history()]

    assert roles == ["user", "assistant"] * 3
    assert match == "ids"
    assert texts[1].startswith("Done")
    assert texts[0] == "How is [removed]?"


@pytest.mark.parametrize("shares", [True, False], ids=["shared key", "own keys"])
def test_an_item_of_another_owner_is_refused_where_the_key_is_shared(
    provider: Provider, shares: bool
) -> None:
    """The provider would resolve it for whoever has the key; one's own is passed on."""
    provider.script = answer_in_text
    options = ServerOptions(
        upstream=f"{provider.address}/v1",
        provider="openai",
        upstream_key="k" if shares else None,
        tokens={token_digest(token): owner for owner, token in TOKENS.items()},
    )
    with rs.Store("sqlite://") as store, serving(store, options) as address:
        mine = ask(address, "me", [{"role": "user", "content": "Mine."}]).json()["output"]
        references = [{"type": "item_reference", "id": item["id"]} for item in mine]
        question = {"role": "user", "content": "And?"}
        own = ask(address, "me", [*references, question])
        before = len(provider.asked)
        other = ask(address, "you", [*references, question])

    assert own.status_code == 200
    assert (other.status_code, len(provider.asked) - before) == ((404, 0) if shares else (200, 1))


def ask(address: str, owner: str, items: list[Any]) -> httpx2.Response:
    headers = {"x-reasoning-token": TOKENS[owner]}
    body = {"model": "gpt-5", "input": items}
    return httpx2.post(f"{address}/v1/responses", json=body, headers=headers, timeout=60)
