"""The AI SDK's own code takes what we write for its pages: the npm package ``ai``.

It needs ``node`` and ``npm``, which installs the package into a temporary folder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.testing import stream
from tests.display.ui_states import STATES
from tests.egress.histories import EVERYTHING, OPEN_LOOP, TWO_TURNS, answer, call, thought, views
from tests.strategies import carried

pytestmark = pytest.mark.long
SCRIPT = Path(__file__).with_name("ai_sdk.mjs")

Given: TypeAlias = dict[str, list[Any]]
Asked: TypeAlias = Callable[[Sequence[list[rs.Message]], Sequence[str]], Given]


@pytest.fixture(scope="module")
def ask_ai_sdk(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Give histories and streams to the AI SDK, and return what it makes of them."""
    for program in ("node", "npm"):
        assert shutil.which(program), f"this test needs {program}: apt-get install nodejs npm"
    folder = tmp_path_factory.mktemp("ai")
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", "ai"]
    subprocess.run(install, check=True, cwd=folder, timeout=300)

    def ask(histories: Sequence[list[rs.Message]], streams: Sequence[str]) -> Given:
        cases = {"histories": [rs.ui_messages(one) for one in histories], "streams": streams}
        file = folder / "cases.json"
        file.write_text(json.dumps(cases), "utf-8")
        ran = subprocess.run(
            ["node", SCRIPT, folder, file], capture_output=True, text=True, check=False, timeout=300
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        found: Given = in_javascript(ran.stdout)
        return found

    return ask


def framed(events: Sequence[rs.Chunk | rs.Message]) -> str:
    return "".join(rs.ui_sse(rs.ui_events(events, message_id="m-1")))


def chunks_of(message: rs.Message, api: str, pieces: int) -> list[rs.Chunk]:
    normalizer = rs.StreamNormalizer(api=api)
    events = stream(message, api=api, pieces=pieces)
    return [*(chunk for event in events for chunk in normalizer.feed(event)), *normalizer.close()]


def test_the_ai_sdk_takes_stored_histories(ask_ai_sdk: Asked) -> None:
    """Its validator, and its conversion to what a model is sent."""
    histories = [
        [*TWO_TURNS],
        [*OPEN_LOOP],
        [*EVERYTHING],
        *(messages for _, messages, _ in STATES),
    ]
    media = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG", name="a.png")
    histories.append([rs.user("See", media), rs.Message(role="user", status="erased")])

    found = ask_ai_sdk(histories, [])["validated"]

    assert [one.get("error") for one in found] == [None] * len(histories)
    assert [one["messages"] for one in found] == [rs.ui_messages(one) for one in histories]


@settings(max_examples=5, phases=[Phase.generate])  # each example asks the AI SDK for 30
@given(many=st.lists(views.filter(bool), min_size=30, max_size=30))
def test_the_ai_sdk_takes_any_history(ask_ai_sdk: Asked, many: list[list[rs.Message]]) -> None:
    """In any order, with any seals, whole or interrupted."""
    many = [one for one in many if rs.ui_messages(one)]

    found = ask_ai_sdk(many, [])["validated"]

    assert [one.get("error") for one in found] == [None] * len(many)


@settings(max_examples=5, phases=[Phase.generate])  # each example asks the AI SDK for 30
@given(data=st.data())
def test_the_ai_sdk_reads_a_stream_as_the_message_that_is_stored(
    ask_ai_sdk: Asked, data: st.DataObject
) -> None:
    """Live, every chunk is one of its schema; what it makes of them is what a reload shows."""
    replies = [
        data.draw(carried(api))
        for api in ("openai.chat", "anthropic.messages", "thinking_events")
        for _ in range(10)
    ]
    streams = [framed(chunks_of(one, "anthropic.messages", 3)) for one in replies[10:20]]
    streams += [framed([one]) for one in replies]

    found = ask_ai_sdk([], streams)["read"]

    assert [one["problems"] for one in found] == [[]] * len(streams)
    for one, reply in zip(found[10:], replies, strict=True):
        parts = one["message"]["parts"] if one["message"] else []
        stored = json.dumps(rs.ui_messages([reply])[0]["parts"])
        assert said(parts) == said(in_javascript(stored))


def test_the_ai_sdk_reads_a_reply_with_a_tool_as_one_message(ask_ai_sdk: Asked) -> None:
    """Steps, the tool's output, usage and the id of the stored message."""
    used = rs.Usage(input=9, output=3)
    asks = rs.assistant(thought("Need it."), call(), finish_reason="tool_calls", usage=used)
    says = rs.assistant("4 C.", finish_reason="stop", usage=used)
    api = "openai.chat"
    stopped: list[rs.Chunk] = [rs.TextChunk(text="Half"), rs.FinishChunk(reason="stopped")]
    streams = [
        framed([*chunks_of(asks, api, 3), answer(), *chunks_of(says, api, 2)]),
        framed(stopped),
        framed([rs.TextChunk(text="Half"), rs.ErrorChunk(raw={})]),
    ]

    whole, aborted, failed = ask_ai_sdk([], streams)["read"]

    assert (whole["problems"], aborted["problems"]) == ([], [])
    assert failed["problems"] == ["Error: The reply ended with an error."]
    assert whole["message"]["id"] == "m-1"
    assert whole["message"]["metadata"]["usage"] == {"inputTokens": 18, "outputTokens": 6}
    stored = rs.ui_messages([asks, answer(), says])[0]["parts"]
    assert shown(whole["message"]["parts"]) == shown(stored)
    assert [part["state"] for part in whole["message"]["parts"] if "state" in part] == [
        part["state"] for part in stored if "state" in part
    ]


def in_javascript(text: str) -> Any:
    """Return the value of JSON, its numbers as JavaScript has them."""
    return json.loads(text, parse_int=float)


def said(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts without the marks of steps: a stream without a chunk has none."""
    return [part for part in shown(parts) if part["type"] != "step-start"]


def shown(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts without the states and ids that only a stream has, and without empty ones."""
    kept = ("type", "text", "toolCallId", "input", "output", "errorText")
    found = [
        {key: part[key] for key in kept if key in part} for part in parts if part.get("text") != ""
    ]
    return [part if part.get("errorText") is None else part | {"input": None} for part in found]
