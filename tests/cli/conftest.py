"""A folder with all that a command may be given, and two ways to run one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.cli import main
from reasoning_store.cli.demo_story import read_capture
from tests import programs
from tests.egress.histories import OPEN_LOOP, TWO_TURNS

STREAM = "reasoning_then_tool_call"


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What it answered, of a run with --json."""
        return json.loads(self.out)["data"]


Here = Callable[..., Ran]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


_FOLDERS = ("XDG_DATA_HOME", "XDG_CONFIG_HOME")


def clean(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which nothing is set for us, and whose home is a folder."""
    of_ours = ("REASONING_STORE", "_REASONING_STORE", "FORCE_COLOR", "NO_COLOR")
    kept = {key: value for key, value in environment.items() if not key.startswith(of_ours)}
    return {**kept, "HOME": str(folder), "COLUMNS": "80", **dict.fromkeys(_FOLDERS, str(folder))}


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the tests find it; made once."""
    folder = tmp_path_factory.mktemp("furnished")
    with rs.Store(f"sqlite:///{folder / 'chat.db'}") as store:
        store.session("chat-42", create=True, title="Weather").append(list(TWO_TURNS))
        short = store.session("short", create=True)
        short.append([*TWO_TURNS[:4], *OPEN_LOOP])
        plan = short.compression(limit=60)
        short.compact(plan, summary="They spoke of the weather.")
        store.settings.profiles.set("terse", {"reasoning.effort": "low"})
        (folder / "export.jsonl").write_text("".join(store.export_lines("chat-42")), "utf-8")
    (folder / "stream.jsonl").write_text("\n".join(map(json.dumps, read_capture(STREAM))), "utf-8")
    sse = "".join(f"data: {json.dumps(event)}\n\n" for event in read_capture("tags_split"))
    (folder / "stream.sse").write_text(sse + "data: [DONE]\n\n", "utf-8")
    history = [
        {"role": "user", "content": "Is 91 prime?"},
        {"role": "assistant", "content": "<think>7 * 13</think>No."},
    ]
    (folder / "histories").mkdir()
    for name in ("history.json", "histories/primes.json"):
        (folder / name).write_text(json.dumps(history), "utf-8")
    (folder / "broken.json").write_text('{"messages": [', "utf-8")
    (folder / "summary.txt").write_text("They spoke of the weather.", "utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path, furnished: Path) -> Path:
    """The same folder, this test's own."""
    shutil.copytree(furnished, tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run a command line in this process, in that folder, on its database."""
    for name in os.environ:
        if name not in clean(os.environ, folder):
            monkeypatch.delenv(name)
    for name, value in clean({}, folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("REASONING_STORE_URL", "sqlite:///chat.db")
    monkeypatch.chdir(folder)

    def run(line: str) -> Ran:
        capsys.readouterr()
        code = main(shlex.split(line))
        return Ran(code, *capsys.readouterr())

    return run


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "reasoning_store", *words]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command line as a process of its own, in an empty folder."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return programs.run(
            command(*arguments),
            cwd=tmp_path,
            env={**clean(os.environ, tmp_path), **environment},
        )

    return run
