"""The command `report`: the tokens used, by session, owner, model or day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import SINCE, UNTIL
from reasoning_store.cli.output import Page, answer_fields, print_answer
from reasoning_store.cli.progress import Progress

if TYPE_CHECKING:
    from reasoning_store.results import ReportRow

_NUMBERS = (
    "input",
    "output",
    "reasoning",
    "cached",
    "cache_write",
    "counted",
    "unreported",
)
_KEYS = tuple(name.replace("_w", "W") for name in _NUMBERS)
_BY = ("session", "owner", "model", "day")
_TOTAL = "total"


@click.command(
    "report",
    cls=Command,
    examples=(
        "report --limit 10",
        "report --by model --by day --since 2026-01-01",
        "report --by model --sort reasoning",
    ),
    answers="* owner session input output reasoning cached cacheWrite counted unreported",
)
@click.option(
    "--by",
    type=click.Choice(_BY),
    multiple=True,
    default=["session"],
    show_default=True,
    help="May be repeated, to group by several.",
)
@SINCE
@UNTIL
@click.option(
    "--sort",
    type=click.Choice([*_BY, _TOTAL, *(name.replace("_", "-") for name in _NUMBERS)]),
    help="The order: a group by name, a number from the highest down, total is input and output.",
)
@click.option("--owner", help="Only this owner; by default all.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Only the first N rows; without --sort, those with the most tokens.",
)
@click.pass_obj
def report(
    call: Call,
    by: tuple[Any, ...],
    since: datetime | None,
    until: datetime | None,
    sort: str | None,
    owner: str | None,
    limit: int | None,
) -> None:
    """Print the tokens used, by session, owner, model or day.

    `unreported` is the number of replies without a reported number of reasoning tokens, and
    `counted` is their thinking as counted here: the reasoning used is `reasoning` and `counted`
    together. - means: not reported.
    """
    with store_access.open_to_read(call) as store, Progress("adding up"):
        of = store if owner is None else store.for_owner(owner)
        rows = of.report(by, since=since, until=until)
    named = [name for one in by for name in (("owner", one) if one == "session" else (one,))]
    groups = tuple(dict.fromkeys(named))
    all_rows = rows
    if sort in _BY and sort not in groups:
        raise InvalidCall(f"--sort {sort}: the rows have no {sort}", hint=f"pass --by {sort}, too")
    if sort is not None or limit is not None:
        rows = _sorted(rows, sort or _TOTAL)[:limit]

    def write_page(page: Page) -> None:
        # The nameless owner alone needs no column.
        is_one = len(groups) > 1 and not any(row.owner for row in rows)
        shown = [name for name in groups if name != "owner" or not is_one]
        lines = [
            [*(_name_cell(getattr(row, name)) for name in shown), *_number_cells(row)]
            for row in rows
        ]
        if len(all_rows) > 1 and shown:
            total = ["" for _ in shown]
            total[0] = "total" if len(all_rows) == len(rows) else f"total of {len(all_rows)}"
            lines.append([*total, *_number_cells(_total_row(all_rows))])
        page.table(
            [name.replace("_", " ") for name in (*shown, *_NUMBERS)],
            lines,
            right=[name.replace("_", " ") for name in _NUMBERS],
        )

    print_answer(
        call,
        [answer_fields(row, " ".join((*groups, *_KEYS))) for row in rows],
        write_page,
    )


def _sorted(rows: Sequence[ReportRow], sort: str) -> list[ReportRow]:
    if sort in _BY:
        return sorted(rows, key=lambda row: getattr(row, sort) or "")
    if sort == _TOTAL:
        return sorted(rows, key=lambda row: row.input + row.output, reverse=True)
    return sorted(rows, key=lambda row: int(getattr(row, sort.replace("-", "_"))), reverse=True)


def _number_cells(row: ReportRow) -> list[str]:
    """Return what a row used; a zero that means that nothing was reported is a dash."""
    silent = {"reasoning"} if row.unreported else set()
    if not (row.input or row.output):
        silent = {name for name in _NUMBERS if name not in ("counted", "unreported")}
    return [
        "-" if name in silent and not getattr(row, name) else str(getattr(row, name))
        for name in _NUMBERS
    ]


def _total_row(rows: Sequence[ReportRow]) -> ReportRow:
    from reasoning_store.results import ReportRow

    return ReportRow(**{name: sum(getattr(row, name) for row in rows) for name in _NUMBERS})


def _name_cell(value: str | None) -> str:
    return "-" if value is None else value
