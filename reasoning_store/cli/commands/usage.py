"""The command `usage`: the tokens of the next request."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.options import POSITION, takes_branch, takes_request
from reasoning_store.cli.output import Page, is_for_person, print_answer, print_note
from reasoning_store.cli.store_access import Where
from reasoning_store.egress.budget import THRESHOLD

if TYPE_CHECKING:
    from reasoning_store.results import ContextUsage

_FULL = 1.0


@click.command(
    "usage",
    cls=Command,
    examples=("usage chat-42 --limit 212000", "usage @latest --limit 1000 --fail-over 0.9"),
    answers="effective raw fixed limit share exactness encoding breakdown over",
)
@takes_branch
@click.option(
    "--limit",
    type=click.IntRange(1),
    envvar="REASONING_STORE_LIMIT",
    help="The model's context window, in tokens.  [env: REASONING_STORE_LIMIT]",
)
@click.option(
    "--fail-over",
    type=click.FloatRange(0),
    metavar="SHARE",
    help="Exit with 4 if more than this share of the limit is used, e.g. 0.85.",
)
@click.option(
    "--calibrated",
    is_flag=True,
    help="Scale the count by the provider's report for the last request.",
)
@click.option("--breakdown", is_flag=True, help="Print the parts of the number, in a pipe too.")
@click.option(
    "--at",
    type=POSITION,
    metavar="POSITION|ID",
    help="Count up to this message instead of the end.",
)
@takes_request
@click.pass_obj
def usage(
    call: Call,
    where: Where,
    limit: int | None,
    fail_over: float | None,
    breakdown: bool,
    calibrated: bool,
    at: int | str | None,
    asked: dict[str, Any],
) -> None:
    """Print the tokens of the next request: effective/limit."""
    if fail_over is not None and not isfinite(fail_over):
        raise InvalidCall("--fail-over must be a number, e.g. 0.85")
    if fail_over is not None and limit is None:
        raise InvalidCall("--fail-over is a share of a limit", hint="pass --limit too")
    with where.open(call) as session:
        found = session.usage(limit=limit, at=at, calibrated=calibrated, **asked)
    share = None if limit is None else found.effective / limit
    over = fail_over is not None and share is not None and share > fail_over
    if over:
        call.exit = Exit.OVER
    parts = _parts(found)
    data = {
        "effective": found.effective,
        "raw": found.raw,
        "fixed": found.fixed,
        "limit": limit,
        "share": share,
        "exactness": found.exactness,
        "encoding": found.encoding,
        "breakdown": parts,
        "over": over,
    }

    def write_page(page: Page) -> None:
        page.line(f"{found.mark}{found}", "bold" if share is None else _style(share))
        if share is not None and is_for_person():
            page.bar(share, _style(share))
        if breakdown or is_for_person():
            page.table(
                ("tokens", "of"),
                [
                    (str(abs(tokens)), "over the limit" if tokens < 0 else _NAMES[name])
                    for name, tokens in parts.items()
                ],
                right=("tokens",),
            )
            page.line(f"counted in {found.encoding}: {found.exactness}", "dim")

    print_answer(call, data, write_page)
    if over and share is not None:
        print_note(f"{share:.0%} of the limit is used, more than {fail_over:.0%}")


_NAMES = {
    "system": "--system",
    "tools": "--tools",
    "messages": "messages without thinking",
    "thinking": "thinking that is sent",
    "withheld": "thinking that is left out (not counted)",
    "free": "room left",
}


def _parts(found: ContextUsage) -> dict[str, int]:
    parts = asdict(found.by_kind)
    if found.limit is not None:
        parts["free"] = found.limit - found.effective
    return parts


def _style(share: float) -> str:
    return "bold red" if share > _FULL else "bold yellow" if share > THRESHOLD else "bold green"
