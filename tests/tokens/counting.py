"""Texts that are counted, and counters of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sized
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import reasoning_store.tokens as tokenizers
from reasoning_store.tokens import vocabularies as shipped

if TYPE_CHECKING:
    import tiktoken


ROOT = Path(__file__).resolve().parents[2]


BOTH = pytest.mark.parametrize("encoding", tokenizers.ENCODINGS)


IN_THE_WORLD: dict[str, str] = json.loads(
    (Path(__file__).parent / "scripts.json").read_text("utf-8")
)


@cache
def reference(encoding: str) -> tiktoken.Encoding:
    """tiktoken itself, for whole-text counts."""
    return shipped.load(shipped.VOCABULARIES[encoding])


def tokens_of(encoding: str, text: str) -> list[int]:
    return reference(encoding).encode_ordinary(text)


class Fake:
    """Stands where tiktoken's encoding does; remembers what it was handed."""

    def __init__(self, encode: Callable[[str], Sized] = lambda text: text) -> None:
        self.encode = encode
        self.handed: list[str] = []

    def encode_ordinary(self, text: str) -> Sized:
        self.handed.append(text)
        return self.encode(text)


FIRST_COUNT = """
import json, os, socket, sys

asked, wrote = [], []
def watch(event, arguments):
    if event.startswith("socket."):
        asked.append(event)
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        wrote.append(str(arguments[0]))
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"):
        wrote.append(event)
def unplugged(*arguments, **options):
    raise OSError("the network is unplugged")
socket.socket = socket.create_connection = socket.getaddrinfo = unplugged
environment = dict(os.environ)
sys.addaudithook(watch)

import warnings
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    from reasoning_store.tokens import counter
    first, second = (counter(sys.argv[1]).count("Is 91 prime?") for _ in range(2))

registry = sys.modules.get("tiktoken.registry")
print(json.dumps({
    "first": first, "second": second, "asked": asked, "wrote": wrote,
    "warned": [[warning.category.__name__, str(warning.message)] for warning in warned],
    "environment kept": environment == dict(os.environ),
    "registered": [len(registry.ENCODINGS), registry.ENCODING_CONSTRUCTORS is not None]
                  if registry else None,
}))
"""


def first_count(
    encoding: str, scratch: Path, *, package: Path = ROOT, variables: dict[str, str] | None = None
) -> Any:
    """The first count of a new process that has no network, no cache and no one's home."""
    for name in ("home", "tmp"):
        (scratch / name).mkdir(exist_ok=True)
    keep = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    environment = keep | {
        "HOME": str(scratch / "home"),
        "USERPROFILE": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "TEMP": str(scratch / "tmp"),
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", FIRST_COUNT, encoding],
        env=environment | (variables or {}),
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [*(scratch / "home").iterdir(), *(scratch / "tmp").iterdir()] == []
    return json.loads(done.stdout)
