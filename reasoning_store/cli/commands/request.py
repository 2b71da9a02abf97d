"""The command `request`: the next request, its verdicts, its tokens and its alternatives."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall, NotFound
from reasoning_store.cli import hints
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.options import SHARE, limit_option, takes_branch, takes_request
from reasoning_store.cli.output import (
    Page,
    answer_fields,
    is_for_person,
    print_answer,
    print_note,
    print_warnings,
)
from reasoning_store.cli.store_access import Where
from reasoning_store.cli.terminal_text import json_text, printable_json
from reasoning_store.egress.budget import THRESHOLD

if TYPE_CHECKING:
    from reasoning_store import Request, Session
    from reasoning_store.results import ContextUsage, WhatIf

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_ROW = "includeInContext stripFromContext legal firstChange current"
_PARTS = {
    "system": "--system",
    "tools": "--tools",
    "messages": "messages without thinking",
    "thinking": "thinking that is sent",
    "withheld": "thinking that is left out (not counted)",
    "free": "room left",
}


@click.command(
    "request",
    cls=Command,
    examples=(
        "request chat-42 --why",
        "request --tokens --limit 128k --fail-over 85%",
        "request --every --provider deepseek",
        "request --diff --with includeInContext=true",
    ),
    answers="provider model api tokens verdicts warnings settings body",
)
@takes_branch
@click.option(
    "--why",
    "form",
    flag_value="why",
    help="Print for each thinking block whether it is sent, and why.",
)
@click.option("--tokens", "form", flag_value="tokens", help="Print its tokens: effective/limit.")
@click.option("--every", "form", flag_value="every", help="Print its tokens under every policy.")
@click.option(
    "--diff",
    "form",
    flag_value="diff",
    help="Print the difference from the last request that was sent; with --with, from the next "
    "one without these settings.",
)
@limit_option()
@click.option(
    "--fail-over",
    type=SHARE,
    metavar="SHARE",
    help="With --tokens: exit with 4 if more than this share of the limit is used, e.g. 85%.",
)
@click.option(
    "--calibrated",
    is_flag=True,
    help="With --tokens: scale the count by the provider's report for the last request.",
)
@takes_request
@click.pass_obj
def request(
    call: Call,
    where: Where,
    form: str | None,
    limit: int | None,
    fail_over: float | None,
    calibrated: bool,
    asked: dict[str, Any],
) -> None:
    """Print the next request's body, exactly as it would be sent.

    With --every, a star marks the current settings, and `first change` is the first message that
    would differ from the request as it is now: a prompt cache is lost from there on.
    """
    if fail_over is not None and limit is None:
        raise InvalidCall("--fail-over is a share of a limit", hint="pass --limit too")
    with where.open(call) as session:
        if form == "tokens":
            found = session.usage(limit=limit, calibrated=calibrated, **asked)
            _print_usage(call, found, fail_over)
        elif form == "every":
            _print_alternatives(call, session.what_if(**asked), asked)
        elif form == "diff":
            _print_difference(call, session, asked)
        else:
            _print_request(call, session.build_request(**asked), asked, why=form is not None)


def _print_request(call: Call, made: Request, asked: dict[str, Any], *, why: bool) -> None:
    if why or call.json:
        print_answer(call, _request_data(made), lambda page: _print_verdicts(page, made))
    else:
        # A body is JSON already, for people and for curl alike.
        Page().line(json_text(made.body))
    print_warnings(hints.warning_texts(made.warnings, asked))


def _request_data(request: Request) -> dict[str, Any]:
    return {
        **answer_fields(request.target, "provider model api"),
        "tokens": answer_fields(request.tokens, "effective raw fixed exactness"),
        "verdicts": [
            answer_fields(one, "message block kept rule tokens reason") for one in request.verdicts
        ],
        "warnings": [answer_fields(one, "code text") for one in request.warnings],
        "settings": {key: asdict(item) for key, item in request.settings.resolved().items()},
        "body": request.body,
    }


def _print_verdicts(page: Page, request: Request) -> None:
    page.table(
        ("message", "block", "tokens", "verdict"),
        [
            (
                str(verdict.message),
                str(verdict.block),
                str(verdict.tokens),
                f"{'sent' if verdict.kept else 'left out'}: {verdict.reason}",
            )
            for verdict in request.verdicts
        ],
        right=("message", "block", "tokens"),
        styles=lambda row: "green" if row[3].startswith("sent") else "dim",
    )
    # Without the model that a request is for, no verdict can be understood.
    tokens, to = request.tokens, request.target
    model = f"{to.model} of " if to.model else ""
    page.line(
        f"{tokens.mark}{tokens} of {tokens.mark}{tokens.raw} tokens would be sent to "
        f"{model}{to.provider or 'an unknown host'} ({to.api})"
    )
    page.line()
    page.table(
        ("setting", "value", "from"),
        [
            (key, json_text(item.value), item.layer)
            for key, item in request.settings.resolved().items()
        ],
    )


def _print_difference(call: Call, session: Session, asked: dict[str, Any]) -> None:
    changes = asked["settings"]
    now = session.build_request(**asked)
    before = (
        session.build_request(**{**asked, "settings": {}})
        if changes
        else session.context(**asked).last_request()
    )
    if before is None:
        raise NotFound(
            "no reply was recorded with its request", hint="--with KEY=VALUE compares settings"
        )
    names = ("without --with", "with --with") if changes else ("last request", "next request")
    lines = [printable_json(line) for line in now.diff(before, names)]
    difference = now.tokens.effective - before.tokens.effective

    def write_page(page: Page) -> None:
        for line in lines:
            page.line(line, _COLOURS.get(line[:1], ""))
        page.line(
            f"{before.tokens.mark}{before.tokens} -> {now.tokens.mark}{now.tokens} tokens"
            f" ({difference:+d})",
            "bold",
        )

    print_answer(
        call,
        {
            "before": _request_data(before),
            "now": _request_data(now),
            "difference": difference,
            "diff": lines,
        },
        write_page,
    )
    print_warnings(hints.warning_texts(now.warnings, asked))


def _print_alternatives(call: Call, matrix: WhatIf, asked: dict[str, Any]) -> None:
    rows = matrix.rows
    current = matrix.current.tokens.effective

    def write_page(page: Page) -> None:
        head, *lines = str(matrix).split("\n")
        page.line(head, "bold")
        for row, line in zip(rows, lines, strict=True):
            page.line(line, "bold" if row.current else "" if row.legal else "red")

    print_answer(
        call,
        [
            {
                **answer_fields(row, _ROW),
                **answer_fields(row.tokens, "effective raw"),
                "difference": row.tokens.effective - current,
                "warnings": [answer_fields(one, "code text") for one in row.warnings],
            }
            for row in rows
        ],
        write_page,
    )
    print_warnings(
        dict.fromkeys(text for row in rows for text in hints.warning_texts(row.warnings, asked))
    )


def _print_usage(call: Call, found: ContextUsage, fail_over: float | None) -> None:
    share = None if found.limit is None else found.effective / found.limit
    over = fail_over is not None and share is not None and share > fail_over
    parts: dict[str, int] = asdict(found.by_kind)
    if found.limit is not None:
        parts["free"] = found.limit - found.effective

    def write_page(page: Page) -> None:
        page.line(f"{found.mark}{found}", _style(share or 0))
        if not is_for_person():
            return
        if share is not None:
            page.bar(share, _style(share))
        page.table(
            ("tokens", "of"),
            [
                (str(abs(tokens)), "over the limit" if tokens < 0 else _PARTS[name])
                for name, tokens in parts.items()
            ],
            right=("tokens",),
        )
        page.line(f"counted in {found.encoding}: {found.exactness}", "dim")

    print_answer(
        call,
        {
            **answer_fields(found, "effective raw fixed limit"),
            "share": share,
            **answer_fields(found, "exactness encoding"),
            "breakdown": parts,
            "over": over,
        },
        write_page,
    )
    if over:
        call.exit = Exit.OVER
        print_note(f"{share:.0%} of the limit is used, more than {fail_over:.0%}")


def _style(share: float) -> str:
    return "bold red" if share > 1 else "bold yellow" if share > THRESHOLD else "bold green"
