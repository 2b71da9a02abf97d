"""Each client, unchanged, runs two turns of tools through the gateway; the store has it all."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

import reasoning_store as rs
from tests.clients.client_table import CLIENTS, run
from tests.clients.provider import QUESTION, STEPS, TITLE, ClientsProvider, own_id
from tests.integrations.loops import TOOL
from tests.server.served import Served

MODEL = "kimi-k2-thinking"
IDS: Mapping[str, Any] = {
    "own": lambda number, step: own_id(number),
    "counted": lambda number, step: f"functions.get_weather:{step}",
}
RESTORED = re.compile(r"(\d+)/(\d+)(?:; missed=(\d+) \([\w ,]+\))?")
RUNS = [
    pytest.param(name, form, id=f"{name} {form}")
    for name, client in CLIENTS.items()
    for form in client.forms
]


@contextmanager
def served(folder: Path, provider: ClientsProvider, name: str) -> Iterator[str]:
    """Serve a store in a folder, and yield the address."""
    with provider.listening():
        server = Served(folder, provider.address, "--provider", name)
        try:
            yield server.address
        finally:
            server.end(signal.SIGTERM)


def parts(message: rs.Message) -> tuple[Any, ...]:
    calls = [(call.id, call.name, call.parameters) for call in message.tool_calls]
    return [block.thought for block in message.thinking], message.text, calls


def client_said(body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the texts of the user and the results of tools in a request, in order."""
    texts: list[str] = []
    results: list[str] = []
    for item in body.get("messages") or body["input"]:
        if item.get("role") == "tool":
            results.append(text_of(item["content"]))
        elif item.get("type") == "function_call_output":
            results.append(text_of(item["output"]))
        elif item.get("role") == "user":
            content = item["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            results += [text_of(one["content"]) for one in blocks if one["type"] == "tool_result"]
            if said := text_of([one for one in blocks if one["type"] != "tool_result"]):
                texts.append(said)
    return texts, results


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


@pytest.mark.parametrize(("name", "form"), RUNS)
def test_the_store_has_what_provider_and_client_said(name: str, form: str, tmp_path: Path) -> None:
    """No request is refused; one session, one branch, each thought, text, call and result."""
    client = CLIENTS[name]
    home = tmp_path / "home"
    home.mkdir()
    provider = ClientsProvider()

    with served(tmp_path, provider, client.provider) as address:
        printed = run(client, address, home, form)

    assert provider.refused == [], printed
    assert len(provider.said) == sum(STEPS) + len(STEPS), printed
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        sessions = [store.session(one.id) for one in store.sessions().items]
        (session,) = [one for one in sessions if one.history()[-1].message.text != TITLE]
        branches = len(session.branches())
        history = [one.message for one in session.history()]
    replies = [one for one in history if one.role == "assistant"]
    assert [parts(one) for one in replies] == [parts(one) for one in provider.said]
    results = [
        text_of(block.result)
        for one in history
        for block in one.blocks
        if isinstance(block, rs.ToolResponseBlock)
    ]
    texts = [one.text for one in history if one.role == "user" and one.text]
    assert (texts, results) == client_said(provider.asked[-1].body)
    assert branches == 1


@pytest.mark.parametrize("name", CLIENTS)
def test_the_page_names_the_clients_that_are_refused_without_the_gateway(
    name: str, tmp_path: Path
) -> None:
    """Each asks the strict provider itself."""
    client = CLIENTS[name]
    provider = ClientsProvider()
    with provider.listening():
        run(client, provider.address, tmp_path, client.forms[0])

    assert provider.asked != []
    assert (provider.refused == []) is client.passes_alone


def run_steps(address: str, seed: int) -> int:
    """Run the question once, and return how many thoughts were restored.

    A run that is taken for none goes on in a session of its own: what it missed then, and the
    header has reported, is not in that session.
    """
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": TOOL}}]
    messages: list[Any] = [{"role": "user", "content": QUESTION.format(0)}]
    restored_in_all = missed_before = 0
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
    for sent in range(STEPS[0] + 1):
        raw = client.chat.completions.with_raw_response.create(
            model=MODEL, messages=messages, tools=tools, seed=seed
        )
        header = RESTORED.fullmatch(raw.headers["X-Reasoning-Restored"])
        assert header is not None, raw.headers["X-Reasoning-Restored"]
        restored, held, missed = (int(group or 0) for group in header.groups())
        if missed or raw.headers["X-Reasoning-Match"] == "new":
            missed_before = missed
        assert restored + missed == held
        assert restored + missed_before == sent
        restored_in_all += restored
        said = raw.parse().choices[0].message
        messages.append(
            said.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)
        )
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": "4 C"}
            for call in said.tool_calls or ()
        ]
    return restored_in_all


@pytest.mark.parametrize("ids", IDS)
def test_eight_parallel_runs_of_one_prompt_get_no_thought_of_another(
    ids: str, tmp_path: Path
) -> None:
    """With ids of their own each gets all of its own; with counted ids each miss is reported."""
    provider = ClientsProvider(call_id=IDS[ids], refuses=ids == "own")

    with served(tmp_path, provider, "moonshot") as address, ThreadPoolExecutor(8) as threads:
        restored = [*threads.map(lambda seed: run_steps(address, seed), range(8))]

    assert provider.crossed == []
    assert sum(restored) == provider.returned
    if ids == "own":
        assert restored == [sum(range(STEPS[0] + 1))] * 8
