"""The clients: how each is started, what it asks, and whether it passes without the gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients.provider import QUESTION, STEPS

CHECKOUT = Path(__file__).parents[2]
MODULES = Path(sys.prefix) / "node_modules"
QUESTIONS = [QUESTION.format(number) for number in range(len(STEPS))]

Commands = Callable[["Client", str, Path, bool], Sequence[Sequence[str | Path]]]


@dataclass(frozen=True, slots=True)
class Client:
    """One client in one of its forms."""

    commands: Commands
    """Makes its commands, of its row, the address, a folder and whether it streams."""
    kind: str
    model: str
    provider: str
    passes_alone: bool = False
    """Whether a strict provider accepts what it sends by itself."""
    forms: Sequence[str] = ("whole", "streamed")


def run(client: Client, address: str, home: Path, form: str) -> str:
    """Run a client with a home of its own; it reaches this machine only."""
    closed = "http://127.0.0.1:9"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(CHECKOUT),
        "NO_PROXY": "127.0.0.1",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), closed),
        "GATEWAY_KEY": "k",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    said = ""
    for words in client.commands(client, address, home, form == "streamed"):
        done = subprocess.run(
            words,
            cwd=home,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        said += done.stdout + done.stderr
    return said


def program(name: str) -> Commands:
    """Return the commands of a program of ours: one that asks both questions."""
    path = CHECKOUT / "tests" / "clients" / "programs" / name

    def commands(
        client: Client, address: str, home: Path, streams: bool
    ) -> Sequence[Sequence[str | Path]]:
        form = "streamed" if streams else "whole"
        words = [address, client.kind, client.model, form, *QUESTIONS]
        if path.suffix == ".py":
            return [[sys.executable, path, *words]]
        for one in path.parent.glob("*.mjs"):
            (home / one.name).write_text(one.read_text())
        if not (home / "node_modules").exists():
            (home / "node_modules").symlink_to(MODULES)
        return [["node", "--preserve-symlinks", home / name, *words]]

    return commands


def codex(
    client: Client, address: str, home: Path, streams: bool
) -> Sequence[Sequence[str | Path]]:
    """Codex is told of a provider in its own file."""
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        f'model = "{client.model}"\n'
        'model_provider = "gateway"\n'
        "\n"
        "[model_providers.gateway]\n"
        'name = "reasoning-store"\n'
        f'base_url = "{address}/v1"\n'
        'env_key = "GATEWAY_KEY"\n'
        'wire_api = "responses"\n'
        'http_headers = { "X-Reasoning-Store" = "yes" }\n'
    )
    started = [
        MODULES / ".bin" / "codex",
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",  # it calls echo alone
    ]
    first, second = QUESTIONS
    return [[*started, first], [*started, "resume", "--last", second]]


def opencode(
    client: Client, address: str, home: Path, streams: bool
) -> Sequence[Sequence[str | Path]]:
    """Opencode is told of a provider in the file of the project."""
    model = f"gateway/{client.model}"
    gateway = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "reasoning-store",
        "options": {"baseURL": f"{address}/v1", "apiKey": "{env:GATEWAY_KEY}"},
        "models": {client.model: {}},
    }
    (home / "opencode.json").write_text(
        json.dumps({"model": model, "small_model": model, "provider": {"gateway": gateway}})
    )
    (found,) = sorted(MODULES.glob("opencode-*-x64/bin/opencode")) or sorted(
        MODULES.glob("opencode-*-arm64/bin/opencode")
    )
    first, second = QUESTIONS
    return [[found, "run", first], [found, "run", "--continue", second]]


DEEPSEEK = ("deepseek-reasoner", "deepseek")
KIMI = ("kimi-k2-thinking", "moonshot")
CLAUDE = ("claude-sonnet-4-5", "anthropic")
GPT = ("gpt-5.4", "openai")
PYTHON, LITELLM, OPENAI, AI, LANGCHAIN = map(
    program,
    ("python_sdks.py", "litellm_sdk.py", "openai.mjs", "ai.mjs", "langchain.mjs"),
)

CLIENTS = {
    "openai (Python), Chat Completions": Client(PYTHON, "chat", *DEEPSEEK),
    "openai (Python), Responses": Client(PYTHON, "responses", *GPT),
    "anthropic (Python)": Client(PYTHON, "messages", *CLAUDE),
    "litellm (Python), OpenAI's protocol": Client(
        LITELLM, "chat", "openai/deepseek-reasoner", "deepseek"
    ),
    "litellm (Python), Anthropic's protocol": Client(
        LITELLM, "messages", "anthropic/claude-sonnet-4-5", "anthropic"
    ),
    "openai (npm), DeepSeek": Client(OPENAI, "chat", *DEEPSEEK),
    "openai (npm), Kimi": Client(OPENAI, "chat", *KIMI),
    "openai (npm), Responses": Client(OPENAI, "responses", *GPT, passes_alone=True),
    "ai, @ai-sdk/openai": Client(AI, "responses", *GPT, passes_alone=True),
    "ai, @ai-sdk/openai .chat": Client(AI, "chat", *DEEPSEEK),
    "ai, @ai-sdk/openai-compatible": Client(AI, "compatible", *DEEPSEEK, passes_alone=True),
    "ai, @ai-sdk/anthropic": Client(AI, "messages", *CLAUDE, passes_alone=True),
    "@langchain/openai, Chat Completions": Client(LANGCHAIN, "chat", *DEEPSEEK),
    "@langchain/openai, Responses": Client(LANGCHAIN, "responses", *GPT, passes_alone=True),
    "Codex": Client(codex, "responses", *GPT, passes_alone=True, forms=["streamed"]),
    "opencode": Client(opencode, "chat", *DEEPSEEK, passes_alone=True, forms=["streamed"]),
}
