"""The command `what-if`: the next request under every policy."""

from __future__ import annotations

from typing import Any

import click

from reasoning_store.cli import hints
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import takes_branch, takes_request
from reasoning_store.cli.output import answer_fields, print_answer, print_warnings
from reasoning_store.cli.store_access import Where

_ROW = "includeInContext stripFromContext legal firstChange current"
_TOKENS = "effective raw"


@click.command(
    "what-if",
    cls=Command,
    examples=("what-if chat-42 --provider deepseek",),
    answers=f"* {_ROW} {_TOKENS} difference warnings",
)
@takes_branch
@takes_request
@click.pass_obj
def what_if(call: Call, where: Where, asked: dict[str, Any]) -> None:
    """Print the next request's tokens under every policy.

    A star marks the current settings. `first change` is the first message that would differ from
    the request as it is now: a prompt cache is lost from there on.
    """
    from reasoning_store.egress.what_if import COLUMNS, cells_of

    with where.open(call) as session:
        matrix = session.what_if(**asked)
    rows = matrix.rows
    current = matrix.current.tokens.effective
    print_answer(
        call,
        [
            {
                **answer_fields(row, _ROW),
                **answer_fields(row.tokens, _TOKENS),
                "difference": row.tokens.effective - current,
                "warnings": [answer_fields(one, "code text") for one in row.warnings],
            }
            for row in rows
        ],
        lambda page: page.table(
            COLUMNS,
            [cells_of(row) for row in rows],
            styles=lambda row: (
                "bold" if row[0] else "red" if row[COLUMNS.index("legal")] == "no" else ""
            ),
        ),
    )
    texts_of_rows = [[*hints.warning_texts(row.warnings, asked)] for row in rows]
    for text in dict.fromkeys(text for texts in texts_of_rows for text in texts):
        with_it = [row for row, texts in zip(rows, texts_of_rows, strict=True) if text in texts]
        illegal = len(with_it) == sum(not row.legal for row in with_it)
        place = f"in {len(with_it)} of {len(rows)} rows: " if len(with_it) < len(rows) else ""
        print_warnings([f"{'not legal ' if illegal else ''}{place}{text}"])
