"""The command `context`: the next request, its verdicts, and its difference to another."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall
from reasoning_store.cli import hints, options
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import takes_branch, takes_request
from reasoning_store.cli.output import Page, answer_fields, print_answer, print_warnings
from reasoning_store.cli.store_access import Where
from reasoning_store.cli.terminal_text import json_text, printable_json

if TYPE_CHECKING:
    from reasoning_store import Request

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command(
    "context",
    cls=Command,
    examples=("context chat-42 --explain", "context chat-42 --diff includeInContext=true"),
    answers="provider model api tokens verdicts warnings settings body",
)
@takes_branch
@click.option(
    "--explain", is_flag=True, help="Print for each thinking block whether it is sent, and why."
)
@click.option(
    "--diff",
    "other",
    multiple=True,
    metavar="KEY=VALUE",
    help="Print how the request would differ with this setting; may be repeated.",
)
@takes_request
@click.pass_obj
def context(
    call: Call, where: Where, explain: bool, other: tuple[str, ...], asked: dict[str, Any]
) -> None:
    """Print the next request's body, exactly as it would be sent.

    With --json, --explain changes nothing, and --diff prints the keys `now`, `other`, `difference`
    and `diff`.
    """
    if explain and other:
        raise InvalidCall("--explain and --diff exclude each other", hint="leave one of them out")
    with where.open(call) as session:
        request = session.build_request(**asked)
        changed = {**asked["settings"], **options.parse_settings(other)}
        against = session.build_request(**{**asked, "settings": changed}) if other else request
    if other:
        _print_difference(call, request, against, list(other))
    elif explain or call.json:
        print_answer(call, _request_data(request), lambda page: _print_verdicts(page, request))
    else:
        # A body is JSON already, for people and for curl alike.
        Page().line(json_text(request.body))
    print_warnings(hints.warning_texts(against.warnings, asked))


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
    tokens = request.tokens
    counted = f"{tokens.mark}{tokens} of {tokens.mark}{tokens.raw} tokens"
    page.line(f"{counted} would be sent to {_target_text(request)}")
    page.line()
    page.table(
        ("setting", "value", "from"),
        [
            (key, json_text(item.value), item.layer)
            for key, item in request.settings.resolved().items()
        ],
    )


def _target_text(request: Request) -> str:
    """Return the model that a request is for: without it no verdict can be understood."""
    to = request.target
    host = to.provider or "an unknown host"
    model = f"{to.model} of " if to.model else ""
    return f"{model}{host} ({to.api})"


def _print_difference(call: Call, now: Request, other: Request, changes: list[str]) -> None:
    difference = other.tokens.effective - now.tokens.effective
    lines = [printable_json(line) for line in other.diff(now, ("now", ", ".join(changes)))]

    def write_page(page: Page) -> None:
        for line in lines:
            page.line(line, _COLOURS.get(line[:1], ""))
        page.line(
            f"{now.tokens.mark}{now.tokens} -> {other.tokens.mark}{other.tokens} tokens"
            f" ({difference:+d})",
            "bold",
        )

    print_answer(
        call,
        {
            "now": _request_data(now),
            "other": _request_data(other),
            "difference": difference,
            "diff": lines,
        },
        write_page,
    )
