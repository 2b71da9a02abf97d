"""The group `compact`: plans that make requests shorter, carried out and undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from reasoning_store import Conflict, InvalidCall
from reasoning_store.cli import hints
from reasoning_store.cli.command import Call, Group
from reasoning_store.cli.options import (
    SHARE,
    TOKENS,
    limit_option,
    read_text,
    takes_branch,
    takes_place,
    takes_request,
)
from reasoning_store.cli.output import Page, answer_fields, print_answer, print_note
from reasoning_store.cli.store_access import Where
from reasoning_store.cli.terminal_text import shorten
from reasoning_store.egress.budget import THRESHOLD

if TYPE_CHECKING:
    from reasoning_store import Plan
    from reasoning_store.results import Compaction, Resolved

_STRIP = "reasoning.stripFromContext"
_PLAN = "action reasons effective after limit reserve usable triggerAt exactness"
_COMPACTION = "id kind branch first last tokens supersedes createdAt summary"


@click.group("compact", cls=Group, default="run")
def compact() -> None:
    """Plan how to shorten requests; carry the plan out or undo it.

    `compact SESSION --limit 212000` prints a plan; --apply carries it out. Nothing is deleted.
    """


@compact.command(
    "run",
    examples=("compact chat-42 --limit 60", "compact short --limit 212000"),
    answers=f"{_PLAN} steps toSummarize toClear",
)
@takes_branch
@limit_option(required=True)
@click.option(
    "--reserve",
    type=TOKENS,
    metavar="TOKENS",
    default=0,
    help="The part of it that the answer needs.",
)
@click.option(
    "--threshold",
    type=SHARE,
    metavar="SHARE",
    default=THRESHOLD,
    show_default=True,
    help="The share of the rest at which a plan acts.",
)
@click.option(
    "--clear/--no-clear", default=True, help="Whether old tool results may be cleared (default)."
)
@click.option(
    "--apply/--plan",
    "applies",
    default=None,
    help="Carry the plan out, or print it and change nothing (default).",
)
@click.option(
    "--summary-file",
    type=click.File("rb"),
    metavar="FILE",
    help="The summary to send in place of the plan's range; implies --apply.",
)
@click.option(
    "--range",
    "summary_range",
    metavar="FIRST-LAST",
    help="The range that the summary covers, as printed by the plan.",
)
@takes_request
@click.pass_obj
def run(
    call: Call,
    /,
    where: Where,
    applies: bool | None,
    summary_file: IO[bytes] | None,
    summary_range: str | None,
    asked: dict[str, Any],
    **plan_options: Any,
) -> None:
    """Print how the next request should get shorter, or carry that out.

    If the plan asks for a summary, write one and pass it with --summary-file and --range. The
    plan is computed again, and a range that has changed is refused.
    """
    if summary_file is not None if applies is None else applies:
        _apply(
            call,
            where,
            None if summary_file is None else _read_summary(summary_file),
            summary_range,
            asked,
            plan_options,
        )
    else:
        with where.open(call) as session:
            _print_plan(call, session.compression(**plan_options, **asked))


def _apply(
    call: Call,
    where: Where,
    summary: str | None,
    summary_range: str | None,
    asked: dict[str, Any],
    plan_options: dict[str, Any],
) -> None:
    """Carry out the plan of this moment, with a summary of the range that it asks for."""
    with where.open(call, writes=True) as session:
        plan = session.compression(**plan_options, **asked)
        if summary is not None:
            _check_range(plan, summary_range)
        elif plan.to_summarize is not None:
            planned = _target_text(plan.to_summarize)
            raise InvalidCall(
                f"the plan needs a summary of the messages {planned}",
                hint=f"pass one with --range {planned} --summary-file FILE",
            )
        strip_before = session.settings.resolved()[_STRIP]
        made = session.compact(plan, summary=summary)
        effective = session.usage(**asked).effective
    _print_result(call, _undo_words(where, made, strip_before), plan, made, effective)


def _read_summary(file: IO[bytes]) -> str:
    text = read_text(file, file.name).replace("\r\n", "\n")
    if not text.strip():
        raise InvalidCall(f"{file.name} is empty", hint="write a summary of the messages into it")
    return text


def _check_range(plan: Plan, summary_range: str | None) -> None:
    """Refuse a summary of other messages than those that it would replace."""
    if plan.to_summarize is None:
        raise InvalidCall(
            f"the plan summarizes nothing: {plan.action}", hint="leave --summary-file out"
        )
    planned = _target_text(plan.to_summarize)
    if summary_range is None:
        raise InvalidCall(
            "a summary needs the range that it covers", hint=f"pass --range {planned}"
        )
    if summary_range != planned:
        raise Conflict(
            f"the plan now summarizes {planned}, not {summary_range}",
            hint="summarize these messages",
        )


def _print_plan(call: Call, plan: Plan) -> None:
    def write_page(page: Page) -> None:
        page.line(f"{plan.action}: {', '.join(plan.reasons)}", "bold")
        now, then = (f"{plan.mark}{tokens}" for tokens in (plan.effective, plan.after))
        page.line(f"now {now}, then {then}, of {plan.usable} usable")
        if plan.steps:
            page.table(
                ("step", "what", "frees"),
                [(step.kind, _target_text(step.what), str(step.tokens)) for step in plan.steps],
                right=("frees",),
            )

    print_answer(call, _plan_data(plan), write_page)
    if call.json or not plan.steps:
        return
    summary = ""
    if plan.to_summarize is not None:
        summary = f" --range {_target_text(plan.to_summarize)} --summary-file FILE"
    print_note(f"to carry it out, add: --apply{summary}")


def _plan_data(plan: Plan) -> dict[str, Any]:
    return {
        **answer_fields(plan, _PLAN),
        "steps": [
            {**answer_fields(step, "kind tokens reversible"), "what": _target_text(step.what)}
            for step in plan.steps
        ],
        "toSummarize": _range_data(plan.to_summarize),
        "toClear": _range_data(plan.to_clear),
    }


def _range_data(planned: Any) -> dict[str, int] | None:
    return None if planned is None else {"first": planned.first, "last": planned.last}


def _target_text(target: Any) -> str:
    return target if isinstance(target, str) else f"{target.first}-{target.last}"


def _undo_words(where: Where, made: Compaction | None, strip_before: Resolved) -> list[str]:
    """Return the words of the command that undoes what was done."""
    if made is not None:
        branch = [] if where.branch is None else ["--branch", str(where.branch)]
        return ["compact", "undo", where.session_id, str(made.id), *branch]
    if strip_before.layer == "session":
        return ["settings", "set", where.session_id, f"{_STRIP}={strip_before.value}"]
    return ["settings", "unset", where.session_id, _STRIP]


def _print_result(
    call: Call, undo_words: Sequence[str], plan: Plan, made: Compaction | None, effective: int
) -> None:
    strip = [step.what for step in plan.steps if step.kind == "strip"]

    def write_page(page: Page) -> None:
        for value in strip:
            page.line(f"set {_STRIP} = {value}")
        if made is not None and made.kind == "summary":
            page.line(f"summary {made.id} replaces the messages {made.first}-{made.last}")
        if plan.to_clear is not None:
            page.line(f"the tool results up to {plan.to_clear.last} are cleared")
        page.line(f"{plan.mark}{plan.effective} -> {plan.mark}{effective} tokens")

    print_answer(
        call,
        {
            "action": plan.action,
            "stripFromContext": strip[0] if strip else None,
            "compaction": None if made is None else answer_fields(made, _COMPACTION),
            "cleared": _range_data(plan.to_clear),
            "before": plan.effective,
            "effective": effective,
        },
        write_page,
    )
    if not call.json:
        print_note(f"to undo it: {hints.command_line(call, *undo_words, of_owner=True)}")


@compact.command(
    "list",
    examples=("compact list chat-42",),
    answers=f"* {_COMPACTION}",
)
@takes_branch
@click.pass_obj
def list_(call: Call, where: Where) -> None:
    """List the summaries and clearings in force."""
    with where.open(call) as session:
        compactions = session.compactions()
    print_answer(
        call,
        [answer_fields(one, _COMPACTION) for one in compactions],
        lambda page: page.table(
            ("id", "messages", "tokens", "summary"),
            [
                (
                    str(one.id),
                    f"{one.first}-{one.last}",
                    str(one.tokens),
                    "tool results cleared" if one.summary is None else shorten(one.summary, 60),
                )
                for one in compactions
            ],
            right=("id", "tokens"),
        ),
    )


@compact.command(
    "undo",
    examples=("compact undo short 1",),
    answers=_COMPACTION,
)
@takes_place
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def undo(call: Call, where: Where, number: int) -> None:
    """Undo a summary or a clearing, and the setting that it changed."""
    with where.open(call, writes=True) as session:
        before = session.settings.resolved()[_STRIP].value
        taken = session.undo(number)
        strip = session.settings.resolved()[_STRIP].value

    def write_page(page: Page) -> None:
        cleared = f"tool results up to {taken.last}"
        what = cleared if taken.kind == "clearing" else f"messages {taken.first}-{taken.last}"
        page.line(f"the {what} are sent again")
        if strip != before:
            page.line(f"{_STRIP} is {strip} again")

    print_answer(call, answer_fields(taken, _COMPACTION), write_page)
