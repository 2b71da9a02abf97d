"""The examples do what they say, against a provider that is as strict as the real ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reasoning_store as rs
from tests import programs
from tests.docs.provider import Answer, Provider

pytestmark = pytest.mark.thinned
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ANSWER = "It is 4 C in Oslo, and it will stay so until the evening comes."


def tagged(text: str, thought: str = "4 C: cold.") -> rs.Message:
    """A reply whose thought stands in its text, between delimiters."""
    return rs.assistant(rs.ThinkingBlock(thought=thought, source_field="think_tags"), text)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


def environment(provider: Provider, folder: Path) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    return {**kept, "HOME": str(folder), "PYTHONUNBUFFERED": "1", **provider.environment}


def program(
    name: str, *arguments: str, provider: Provider, folder: Path, said: str = ""
) -> subprocess.CompletedProcess[str]:
    return programs.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=folder,
        env=environment(provider, folder),
        input=said,
    )


# A chat in the terminal


def test_the_terminal_shows_an_answer_without_its_delimiters(
    provider: Provider, tmp_path: Path
) -> None:
    """Cut in the middle of its tags, a thought is shown apart, and no tag is shown at all."""
    provider.script = lambda asked: Answer(message=tagged(ANSWER), pieces=9, seed=5)

    ran = program(
        "terminal_chat.py",
        *("--model", "qwen3", "--provider", "vllm"),
        provider=provider,
        folder=tmp_path,
        said="How is the weather?\n/usage\n/set includeInContext true\n/what-if\nAnd now?\n",
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"[4 C: cold.]\n{ANSWER}\n" in ran.stdout
    assert "think>" not in ran.stdout
    assert re.search(r"\*  yes +none", ran.stdout)
    assert "4 C: cold." in json.dumps(provider.asked[-1].body)
    assert provider.refused == []


def test_the_terminal_shows_no_thought_where_the_settings_say_so(
    provider: Provider, tmp_path: Path
) -> None:
    """BR-003: from the next reply on, and it is stored all the same."""
    provider.script = lambda asked: Answer(message=tagged(ANSWER), pieces=9, seed=5)

    ran = program(
        "terminal_chat.py",
        *("--model", "qwen3", "--provider", "vllm"),
        provider=provider,
        folder=tmp_path,
        said="/set includeInResponse false\n/set budgetTokens 2000\nHow is the weather?\n",
    )

    assert ran.returncode == 0
    assert "whole number" not in ran.stderr
    assert ran.stdout.strip() == ANSWER
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        kept = store.session("terminal").history()[-1].message
    assert [block.thought for block in kept.thinking] == ["4 C: cold."]


def test_the_terminal_keeps_what_arrived_of_a_reply_whose_connection_died(
    provider: Provider, tmp_path: Path
) -> None:
    """The chat says so, goes on, and is there when the program is started again."""
    answers = [
        Answer(message=tagged(ANSWER), pieces=12, drop_after=20),
        Answer(message=tagged("As I said, 4 C.")),
    ]
    provider.script = lambda asked: answers.pop(0)
    arguments = ("--model", "qwen3", "--provider", "vllm")

    first = program(
        "terminal_chat.py",
        *arguments,
        provider=provider,
        folder=tmp_path,
        said="How is the weather?\nPardon?\n",
    )
    again = program("terminal_chat.py", *arguments, provider=provider, folder=tmp_path)

    assert first.returncode == again.returncode == 0
    assert "What had arrived is kept." in first.stderr
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        kept = [item.message for item in store.session("terminal").history()]
    assert [message.status for message in kept] == ["complete", "interrupted", *["complete"] * 2]
    assert kept[1].text
    assert ANSWER.startswith(kept[1].text)
    assert again.stdout.splitlines()[-1] == "assistant: As I said, 4 C."


def test_the_terminal_tells_a_bad_setting_and_goes_on(provider: Provider, tmp_path: Path) -> None:
    """The allowed values are named, and the chat is not over."""
    ran = program(
        "terminal_chat.py",
        *("--model", "qwen3"),
        provider=provider,
        folder=tmp_path,
        said="/set stripFromContext some\n/nonsense\n/set\nHello\n",
    )

    assert ran.returncode == 0
    assert "allButLast" in ran.stderr
    assert ran.stdout.rstrip().endswith("It is 4 C in Oslo.")


# Reasoning toggled


def test_no_setting_makes_the_provider_refuse(provider: Provider, tmp_path: Path) -> None:
    """Each request carries what the setting of its turn says, and what is demanded."""
    ran = program("toggle_reasoning.py", provider=provider, folder=tmp_path)

    assert (ran.returncode, ran.stderr, provider.refused) == (0, "", [])
    assert "12 thoughts stored, whatever was sent" in ran.stdout
    sent = re.findall(r"thoughts: (.*)", ran.stdout)
    assert len(sent) == len(provider.asked) == 12
    assert sent[0] == "-"
    assert set(sent[-1].split(", ")) == {"required", "strip"}
    assert "kept" in sent[3]
    assert "strip" in sent[5]
