"""The commands `usage` and `what-if`: what a request would count, and what others would."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli.call import Call
from reasoning_store.cli.exits import Exit
from reasoning_store.cli.options import Where, a_request, on_a_branch
from reasoning_store.cli.output import Page, answer, for_a_person, note
from reasoning_store.cli.tree import Command
from reasoning_store.egress.amounts import THRESHOLD
from reasoning_store.errors import UsageError

if TYPE_CHECKING:
    from reasoning_store.egress.usage import ContextUsage

_FULL = 1.0
_NO_THINKING = {"reasoning.includeInContext": False, "reasoning.floor": "off"}


@click.command(
    "usage",
    cls=Command,
    answers="effective raw fixed limit share exactness encoding breakdown over",
)
@on_a_branch
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
    help="Exit with 4 where more than this share of the limit is used, e.g. 0.85.",
)
@click.option("--breakdown", is_flag=True, help="Say what the number is made of, in a pipe too.")
@click.option("--at", type=click.IntRange(1), help="After this position, not at the end.")
@a_request
@click.pass_obj
def usage(
    call: Call,
    where: Where,
    limit: int | None,
    fail_over: float | None,
    breakdown: bool,
    at: int | None,
    asked: dict[str, Any],
) -> None:
    """Print what the next request would count: effective/limit."""
    if fail_over is not None and not isfinite(fail_over):
        raise UsageError("--fail-over is a number, e.g. 0.85")
    if fail_over is not None and limit is None:
        raise UsageError("--fail-over is a share of a limit", hint="say --limit too")
    with where.open(call) as session:
        found = session.usage(limit=limit, at=at, **asked)
        silent = {**asked, "settings": {**asked["settings"], **_NO_THINKING}}
        visible = session.usage(at=at, **silent).effective - found.fixed
    share = None if limit is None else found.effective / limit
    over = fail_over is not None and share is not None and share > fail_over
    if over:
        call.exit = Exit.OVER
    parts = _parts(found, visible)
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

    def people(page: Page) -> None:
        page.line(str(found), "bold" if share is None else _style(share))
        if share is not None and for_a_person():
            page.bar(share, _style(share))
        if breakdown or for_a_person():
            page.table(
                ("tokens", "of"),
                [(str(tokens), _NAMES[name]) for name, tokens in parts.items()],
                right=("tokens",),
            )
            page.line(f"counted in {found.encoding}: {found.exactness}", "dim")

    answer(call, data, people)
    if over and share is not None:
        note(f"{share:.0%} of the limit is used, more than {fail_over:.0%}")


_NAMES = {
    "fixed": "system, tools and the request itself",
    "visible": "messages without thinking",
    "thinkingSent": "thinking that is sent",
    "thinkingWithheld": "thinking that is not sent (not counted)",
    "free": "room left",
}


def _parts(found: ContextUsage, visible: int) -> dict[str, int]:
    parts = {
        "fixed": found.fixed,
        "visible": visible,
        "thinkingSent": found.effective - found.fixed - visible,
        "thinkingWithheld": found.raw - found.effective,
    }
    if found.limit is not None:
        parts["free"] = found.limit - found.effective
    return parts


def _style(share: float) -> str:
    return "bold red" if share > _FULL else "bold yellow" if share > THRESHOLD else "bold green"


@click.command(
    "what-if",
    cls=Command,
    answers="* includeInContext stripFromContext effective raw difference legal firstChange "
    "current warnings",
)
@on_a_branch
@a_request
@click.pass_obj
def what_if(call: Call, where: Where, asked: dict[str, Any]) -> None:
    """Print what every include and strip would send.

    A star marks the current settings. `first change` is the first message that would differ
    from what is sent now: from there on a prompt cache is of no use.
    """
    from reasoning_store.egress.what_if import COLUMNS, cells

    with where.open(call) as session:
        matrix = session.what_if(**asked)
    current = matrix.current.tokens.effective
    answer(
        call,
        [
            {
                "includeInContext": row.include_in_context,
                "stripFromContext": row.strip_from_context,
                "effective": row.tokens.effective,
                "raw": row.tokens.raw,
                "difference": row.tokens.effective - current,
                "legal": row.legal,
                "firstChange": row.first_change,
                "current": row.current,
                "warnings": [{"code": one.code, "text": one.text} for one in row.warnings],
            }
            for row in matrix.rows
        ],
        lambda page: page.table(
            COLUMNS,
            [cells(row) for row in matrix.rows],
            styles=lambda row: (
                "bold" if row[0] else "red" if row[COLUMNS.index("legal")] == "no" else ""
            ),
        ),
    )
