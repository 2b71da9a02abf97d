"""The command `doctor`: what this installation and this database are, fit to be pasted.

Each finding has a name, a state and a line. None holds anything of a conversation, and no
secret: of a URL only the engine and the place are told, never a user or a password.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

import click

from reasoning_store import __version__
from reasoning_store.cli import advice, opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.exits import Exit
from reasoning_store.cli.output import answer, note, plural
from reasoning_store.cli.tree import Command
from reasoning_store.errors import ReasoningStoreError

State: TypeAlias = Literal["ok", "note", "failed"]

_EXTRAS = {"psycopg": "postgres", "pysqlite3": None}
_STYLES = {"ok": "green", "note": "yellow", "failed": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    detail: str


@click.command("doctor", cls=Command, answers="ok findings")
@click.pass_obj
def doctor(call: Call) -> None:
    """Look at this installation and at the database.

    Exits with 1 where something is wrong. The answer holds nothing of a conversation and no
    secret: it can be shown to others.
    """
    findings = [finding for look in _LOOKS for finding in look(call)]
    bad = [finding for finding in findings if finding.state == "failed"]
    if bad:
        call.exit = Exit.FAILED
    answer(
        call,
        {"ok": not bad, "findings": [asdict(finding) for finding in findings]},
        lambda page: page.table(
            ("what", "state", ""),
            [(finding.name, finding.state, finding.detail) for finding in findings],
            styles=lambda row: _STYLES[row[1]],
        ),
    )
    if bad:
        note(f"{plural(len(bad), 'thing')} wrong: {', '.join(finding.name for finding in bad)}")


def _installation(call: Call) -> Iterator[Finding]:
    yield Finding("reasoning-store", "ok", __version__)
    version = ".".join(map(str, sys.version_info[:3]))
    system = f"{platform.system()} {platform.machine()}"
    yield Finding("python", "ok", f"{platform.python_implementation()} {version}, {system}")
    for name, extra in _EXTRAS.items():
        try:
            yield Finding(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            how = f"; pip install 'reasoning-store[{extra}]' brings it" if extra else ""
            yield Finding(name, "note", f"not installed{how}")


def _library(call: Call) -> Iterator[Finding]:
    from reasoning_store.ledger import sqlite_connections

    module: Any = sqlite_connections.library()
    version = f"{module.sqlite_version} of {module.__name__.partition('.')[0]}"
    if sqlite_connections.vulnerable(module.sqlite_version_info):
        yield Finding(
            "sqlite",
            "note",
            f"{version}; two processes could lose data with it, so checkpoints are made under"
            " the write lock only",
        )
    else:
        yield Finding("sqlite", "ok", f"{version}; its WAL needs no guard")


def _vocabularies(call: Call) -> Iterator[Finding]:
    from reasoning_store.tokenizers import ENCODINGS, counter

    for name in ENCODINGS:
        count = counter(name).count("seven")
        exact = count.exactness == "exact"
        yield Finding(
            name, "ok" if exact else "failed", "counts exactly" if exact else "estimates only"
        )


def _environment(call: Call) -> Iterator[Finding]:
    from reasoning_store import settings

    try:
        given = settings.from_environment(os.environ)
    except ReasoningStoreError as error:
        yield Finding("environment", "failed", str(error))
    else:
        told = ", ".join(given) or "sets nothing"
        yield Finding("environment", "ok", told)


def _database(call: Call) -> Iterator[Finding]:
    from reasoning_store.cli import schema
    from reasoning_store.ledger import engine, migrate

    try:
        path = opening.file(call)
        address = engine.parse(opening.url(call))
        server = address.get_backend_name() != "sqlite"
        place = f"PostgreSQL at {address.host or 'a socket'}" if server else _shown(path)
        if path is not None and not opening.is_there(path):
            how = advice.line(call, "init", hide=True)
            yield Finding("database", "note", f"{place}: not made yet; {how} makes it")
            return
        revision = schema.revision(opening.url(call))
    except ReasoningStoreError as error:
        helps = advice.of_library(call, error.hint, hide=True)
        told = f"{error} ({helps})" if helps else str(error)
        yield Finding("database", "failed", _redacted(told))
        return
    yield Finding("database", "ok", place)
    newest = migrate.REVISIONS[-1]
    if revision == newest:
        yield Finding("schema", "ok", f"revision {revision}")
    elif revision in (schema.BASE, *migrate.REVISIONS):
        how = advice.line(call, "upgrade", hide=True)
        yield Finding("schema", "failed", f"revision {revision}; run: {how}")
    else:
        yield Finding("schema", "failed", "newer than this program")
    if path is not None:
        yield from _files(path)


def _files(path: Path) -> Iterator[Finding]:
    from reasoning_store.ledger import copies

    for file, name in ((path, "file"), (Path(f"{path}-wal"), "wal")):
        if file.exists():
            mode = file.stat().st_mode & 0o777
            open_to_others = bool(mode & 0o077) and os.name == "posix"
            detail = f"{file.stat().st_size} bytes, mode {mode:04o}"
            yield Finding(
                name,
                "note" if open_to_others else "ok",
                detail + ("; others can read it" if open_to_others else ""),
            )
    if beside := copies.beside(path):
        yield Finding("copies", "note", f"{plural(len(beside), 'older copy', 'older copies')}")


def _shown(path: Path | None) -> str:
    return "in memory" if path is None else _redacted(str(path))


def _redacted(text: str) -> str:
    """Leave the name of whose home it is out."""
    return text.replace(os.path.expanduser("~"), "~")


_LOOKS: tuple[Callable[[Call], Iterator[Finding]], ...] = (
    _installation,
    _library,
    _vocabularies,
    _environment,
    _database,
)
