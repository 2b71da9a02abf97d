"""The command `db doctor`: checks of this installation and this database, fit to be pasted.

No finding holds text of a conversation or a secret: of a URL only the engine and the host are
printed.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from importlib import metadata
from typing import TYPE_CHECKING

import click

from reasoning_store import ReasoningStoreError, __version__
from reasoning_store.cli import hints, store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.output import plural, print_answer, print_note

if TYPE_CHECKING:
    from reasoning_store.results import Finding

_EXTRAS = {"psycopg": "postgres", "pysqlite3": None}
_STYLES = {"ok": "green", "note": "yellow", "failed": "bold red"}


@click.command("doctor", cls=Command, examples=("db doctor",), answers="ok findings")
@click.pass_obj
def doctor(call: Call) -> None:
    """Check this installation and the database.

    Exits with 1 if a check fails. The answer holds no conversation and no secret: you can show it
    to others.
    """
    findings = [finding for check in _CHECKS for finding in check(call)]
    bad = [finding for finding in findings if finding.state == "failed"]
    if bad:
        call.exit = Exit.FAILED
    print_answer(
        call,
        {"ok": not bad, "findings": [asdict(finding) for finding in findings]},
        lambda page: page.table(
            ("what", "state", ""),
            [(finding.name, finding.state, finding.detail) for finding in findings],
            styles=lambda row: _STYLES[row[1]],
        ),
    )
    if bad:
        print_note(
            f"{plural(len(bad), 'thing')} wrong: {', '.join(finding.name for finding in bad)}"
        )


def _check_installation(call: Call) -> Iterator[Finding]:
    from reasoning_store.results import Finding

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


def _check_store(call: Call) -> Iterator[Finding]:
    """Check the library, the environment and the database, as any program can."""
    from reasoning_store import Store
    from reasoning_store.results import Finding

    try:
        url = store_access.database_url(call)
    except ReasoningStoreError as error:
        yield Finding("database", "failed", f"{error} ({error.hint})")
        return
    for found in Store.diagnose(url):
        detail = hints.for_command_line(call, found.detail, hide=True) or ""
        yield replace(found, detail=_hide_home(detail))


def _hide_home(text: str) -> str:
    """Leave the name of whose home it is out."""
    return text.replace(os.path.expanduser("~"), "~")


_CHECKS: tuple[Callable[[Call], Iterator[Finding]], ...] = (_check_installation, _check_store)
