"""docs/howto/serve.md and the Dockerfile: their commands are ones that serve."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import httpx2
import pytest

from reasoning_store.cli import main
from tests.docs.pages import CHECKOUT, FENCE
from tests.docs.provider import Provider
from tests.server.served import Served

PAGE = (CHECKOUT / "docs/howto/serve.md").read_text("utf-8")
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text("utf-8")
TOKEN = "0123456789abcdefgh"
LAUNCHERS = ("opentelemetry-instrument", "docker run")


def instructions(name: str) -> list[str]:
    """Return what stands after a word of the Dockerfile, its lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^(?:HEALTHCHECK )?{name} (.*)$", joined, re.MULTILINE)


def commands() -> list[str]:
    """Return every command that serves: of the page, its unit, and the Dockerfile."""
    text = "".join(block for _, block in FENCE.findall(PAGE))
    found = re.findall(r"^(?:\$ |ExecStart=\S*/)(.*\bserve\b.*)$", text, re.MULTILINE)
    of_image = json.loads(instructions("ENTRYPOINT")[0]) + json.loads(instructions("CMD")[-1])
    return [*found, shlex.join(of_image)]


@pytest.mark.parametrize("command", commands())
def test_a_command_that_serves_has_options_that_fit(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked by the command itself, with a token where it needs one."""
    (tmp_path / "tokens").write_text(f"{TOKEN} me\n")
    if "0.0.0.0" in command:
        monkeypatch.setenv("REASONING_STORE_TOKEN", TOKEN)
    launcher = next((one for one in LAUNCHERS if command.startswith(one)), None)
    if launcher is not None:
        command = command[command.rindex("reasoning-store serve") :]
    program, *words = shlex.split(command.replace("%d", str(tmp_path)))

    assert program == "reasoning-store"
    assert main([*words, "--check"]) == 0


def test_the_first_command_serves_as_the_page_prints(tmp_path: Path) -> None:
    """It prints its address at once, though its output is no terminal."""
    with Provider().listening() as provider:
        served = Served(tmp_path, provider.address)
        try:
            answer = httpx2.post(
                f"{served.address}/v1/chat/completions",
                json={"model": "m", "messages": [{"role": "user", "content": "?"}]},
            )
        finally:
            served.end(signal.SIGTERM)

    assert answer.status_code == 200


@pytest.mark.parametrize("command", ["ui --no-browser", "serve"])
def test_an_address_is_in_a_file_as_soon_as_the_server_answers(
    command: str, tmp_path: Path
) -> None:
    """A program waits for it there."""
    words = [sys.executable, "-m", "reasoning_store", *command.split(), "--port", "0"]
    with (
        (tmp_path / "out").open("w") as out,
        subprocess.Popen([*words, "--db", "chat.db"], cwd=tmp_path, stdout=out) as running,
    ):
        while not (address := (tmp_path / "out").read_text().strip()):
            assert running.poll() is None
            time.sleep(0.02)
        answer = httpx2.get(address)
        running.terminate()

    assert answer.status_code == 200


def test_an_image_needs_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    """Other machines reach its address."""
    words = json.loads(instructions("CMD")[-1])

    assert main([*words, "--check"]) != 0
    assert "REASONING_STORE_TOKEN" in capsys.readouterr().err


def copied() -> Iterator[str]:
    """Yield each file or folder of the checkout that the image is built of."""
    for words in instructions("COPY"):
        if not words.startswith("--from"):
            yield from words.split()[:-1]


def test_the_image_is_built_of_files_that_are_there() -> None:
    """And that are sent to the builder; all that the package's build reads is among them."""
    lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}

    assert {*copied()} == sent
    assert [name for name in sent if not (CHECKOUT / name).exists()] == []
    build = (CHECKOUT / "pyproject.toml").read_text()
    read = ["LICENSE", *re.findall(r'^readme = "(.*)"', build, re.MULTILINE), "migrations"]
    assert [one for one in read if not any(fnmatch(one, f"{name}*") for name in sent)] == []


def test_the_image_runs_as_a_user_and_keeps_its_database_in_a_volume() -> None:
    """A probe asks for its health."""
    (user,), (volume,) = instructions("USER"), instructions("VOLUME")
    (probe,) = [one for one in instructions("CMD") if "healthz" in one]

    assert user != "root"
    assert f"sqlite:///{volume}/" in DOCKERFILE
    compile(json.loads(probe)[2], "probe", "exec")
    for extra in re.findall(r"\.\[(.*)\]", instructions("RUN")[1])[0].split(","):
        assert f"\n{extra} = [" in (CHECKOUT / "pyproject.toml").read_text()
