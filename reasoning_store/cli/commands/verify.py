"""The command `verify`: everything stored, checked against what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reasoning_store import CorruptRow
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.output import (
    Page,
    answer_fields,
    plural,
    print_answer,
    print_note,
    print_warnings,
)
from reasoning_store.cli.progress import SHARES, Progress

if TYPE_CHECKING:
    from reasoning_store.results import Verified


@click.command(
    "verify",
    cls=Command,
    examples=("verify",),
    answers="ok sessions messages unerased problems",
)
@click.pass_obj
def verify(call: Call) -> None:
    """Check that everything stored is as it was written.

    Exits with 7 if anything differs. Changes nothing.
    """
    try:
        with store_access.open_to_read(call) as store, Progress("verifying", SHARES) as progress:
            found = store.verify(progress=progress.reach)
    except CorruptRow as error:
        # The error itself advises to run this command.
        raise CorruptRow(str(error), hint="restore a backup; nothing was changed") from None
    if not found.ok:
        call.exit = Exit.DAMAGED
    print_answer(
        call,
        {
            **answer_fields(found, "ok sessions messages unerased"),
            "problems": [
                answer_fields(one, "code detail owner session branch position")
                for one in found.problems
            ],
        },
        lambda page: _print_verified(page, found),
    )
    if found.problems:
        print_note(f"{plural(len(found.problems), 'problem')}; nothing was changed")
    print_warnings(
        f"an erasure was interrupted: erased data may still be in {name}; run db doctor"
        for name in found.unerased
    )


def _print_verified(page: Page, found: Verified) -> None:
    if not found.problems:
        counted = f"{plural(found.sessions, 'session')}, {plural(found.messages, 'message')}"
        page.line(f"everything is as it was written: {counted}")
        return
    page.table(
        ("problem", "session", "branch", "position", "detail"),
        [
            (
                one.code,
                "-" if one.session is None else one.session,
                str(one.branch or "-"),
                str(one.position or "-"),
                one.detail,
            )
            for one in found.problems
        ],
        right=("branch", "position"),
    )
