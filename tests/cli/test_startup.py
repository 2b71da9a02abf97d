"""What a start costs, told by what it loads and by what it reads, never by a clock."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import clean

HEAVY = {"alembic", "pydantic", "rich", "sqlalchemy", "tiktoken"}


def loaded(folder: Path, *words: str) -> set[str]:
    """Return the packages that a run has loaded at its end."""
    code = (
        "import sys; from reasoning_store.cli import main; code = main(sys.argv[1:]);"
        "print(sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**clean(os.environ, folder), "REASONING_STORE_URL": "sqlite:///chat.db"},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(ast.literal_eval(ran.stderr.splitlines()[-1]))
    return modules | {name.partition(".")[0] for name in modules}


def test_the_version_needs_nothing_but_the_parser(folder: Path) -> None:
    """No SQL, no vocabulary, no rich, no settings."""
    assert not loaded(folder, "--version") & HEAVY


@pytest.mark.parametrize("words", [("--help",), ("show", "--help")], ids=" ".join)
def test_help_opens_nothing(folder: Path, words: tuple[str, ...]) -> None:
    """What a command needs is loaded when it runs, not when its words are read."""
    assert not loaded(folder, *words) & HEAVY


@pytest.mark.parametrize(
    "words",
    [
        ("request", "--tokens", "--limit", "1000"),
        ("sessions",),
        ("show", "chat-42"),
        ("db",),
        ("explain", "Missing `reasoning_content` field in the assistant message"),
    ],
    ids=lambda words: words[0],
)
def test_looking_loads_no_vocabulary_no_migrations_and_no_rich(
    folder: Path, words: tuple[str, ...]
) -> None:
    """Counts are read, not made again; a pipe needs no terminal's library."""
    assert not loaded(folder, *words) & {"alembic", "rich", "tiktoken"}


@pytest.mark.parametrize(
    "words",
    [
        ("sessions",),
        ("show", "chat-42"),
        ("request", "--tokens", "--limit", "1000"),
        ("settings", "short"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_that_reads_loads_only_what_reads(folder: Path, words: tuple[str, ...]) -> None:
    """No protocol, no writing of requests, no recording, no validation of what is stored."""
    unread = {
        "pydantic",
        "reasoning_store.egress.request",
        "reasoning_store.ingress.accumulator",
        "reasoning_store.ledger.erasure",
        "reasoning_store.ledger.messages",
        "reasoning_store.ledger.transfer",
        "reasoning_store.recording.recording",
        "reasoning_store.wire.registry",
    }

    assert not loaded(folder, *words) & unread


def test_a_page_is_written_without_the_packages_of_the_server(folder: Path) -> None:
    """A plain install has the page; other commands do not load its templates."""
    served = {"starlette", "uvicorn", "httpx2"}

    assert not loaded(folder, "show", "chat-42", "--html", "page.html") & served
    assert not loaded(folder, "show", "chat-42") & {*served, "jinja2"}


def test_an_sqlite_file_loads_nothing_for_a_server(folder: Path) -> None:
    """Neither the driver nor its dialect."""
    assert not loaded(folder, "request", "chat-42", "--tokens") & {
        "psycopg",
        "sqlalchemy.dialects.postgresql",
    }


def test_a_command_loads_no_command_but_its_own(folder: Path) -> None:
    """Commands are imported when they are run."""
    mine = {
        name
        for name in loaded(folder, "request", "chat-42", "--tokens")
        if name.startswith("reasoning_")
    }

    assert "reasoning_store.cli.commands.request" in mine
    assert not mine & {
        "reasoning_store.cli.commands.demo",
        "reasoning_store.cli.commands.database",
        "reasoning_store.history_import",
        "reasoning_store.testing",
    }
