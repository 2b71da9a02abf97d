"""The commands of whoever keeps a database: report, verify, backup."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.exits import Exit
from reasoning_store.cli.output import Page, answer, note, plural
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.tree import Command
from reasoning_store.errors import CorruptRow

if TYPE_CHECKING:
    from reasoning_store.ledger.reporting import By
    from reasoning_store.ledger.values import Verified

_NUMBERS = ("input", "output", "reasoning", "cached", "counted", "unreported")
_DATES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S")


@click.command(
    "report",
    cls=Command,
    answers="* owner session input output reasoning cached counted unreported",
)
@click.option(
    "--by",
    type=click.Choice(["session", "owner", "model", "day"]),
    default="session",
    show_default=True,
)
@click.option("--since", type=click.DateTime(_DATES), help="From here on, in local time.")
@click.option("--until", type=click.DateTime(_DATES), help="Before this, in local time.")
@click.option("--owner", help="Of this owner only; by default of all.")
@click.pass_obj
def report(
    call: Call, by: By, since: datetime | None, until: datetime | None, owner: str | None
) -> None:
    """Print the tokens used, by session, owner, model or day.

    As the providers reported them, and as counted here; `unreported` is how many replies
    came without numbers.
    """
    with opening.existing(call) as store, Progress("adding up"):
        of = store if owner is None else store.for_owner(owner)
        rows = of.report(by, since=since, until=until)
    groups = ("owner", "session") if by == "session" else (by,)
    answer(
        call,
        [{name: getattr(row, name) for name in (*groups, *_NUMBERS)} for row in rows],
        lambda page: page.table(
            (*groups, *_NUMBERS),
            [
                (
                    *(_name(getattr(row, name)) for name in groups),
                    *(str(getattr(row, name)) for name in _NUMBERS),
                )
                for row in rows
            ],
            right=_NUMBERS,
        ),
    )


def _name(value: str | None) -> str:
    return "-" if value is None else value


@click.command("verify", cls=Command, answers="ok sessions messages problems")
@click.pass_obj
def verify(call: Call) -> None:
    """Check everything stored against what was written.

    Exits with 7 where it differs. Changes nothing.
    """
    try:
        with opening.existing(call) as store, Progress("verifying"):
            found = store.verify()
    except CorruptRow as error:
        # What the error itself advises is to run this command.
        raise CorruptRow(str(error), hint="restore a copy; nothing was changed") from None
    if not found.ok:
        call.exit = Exit.DAMAGED
    answer(
        call,
        {
            "ok": found.ok,
            "sessions": found.sessions,
            "messages": found.messages,
            "problems": [{name: getattr(one, name) for name in _PROBLEM} for one in found.problems],
        },
        lambda page: _say_verified(page, found),
    )
    if found.problems:
        note(f"{plural(len(found.problems), 'problem')}; nothing was changed")


_PROBLEM = ("code", "detail", "owner", "session", "branch", "position")


def _say_verified(page: Page, found: Verified) -> None:
    if not found.problems:
        counted = f"{plural(found.sessions, 'session')}, {plural(found.messages, 'message')}"
        page.line(f"as written: {counted}")
        return
    page.table(
        ("problem", "session", "branch", "position", "detail"),
        [
            (
                one.code,
                _name(one.session),
                str(one.branch or "-"),
                str(one.position or "-"),
                one.detail,
            )
            for one in found.problems
        ],
        right=("branch", "position"),
    )


@click.command("backup", cls=Command, answers="path sessions messages size")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace a file that is there, once it is whole.")
@click.pass_obj
def backup(call: Call, path: Path, overwrite: bool) -> None:
    """Copy the database to PATH, in use or not, and compare.

    Only an SQLite database is one file; PostgreSQL has tools of its own.
    """
    with opening.existing(call) as store, Progress("copying"):
        made = store.backup(path, overwrite=overwrite)
    answer(call, asdict(made), lambda page: page.line(made.path))
    note(f"{plural(made.sessions, 'session')}, {plural(made.messages, 'message')}: compared")
