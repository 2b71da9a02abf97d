"""The group `compact`: what would make a conversation's requests shorter, done and undone."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

import click

from reasoning_store import strict
from reasoning_store.cli import advice
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import Where, a_request, content, on_a_branch
from reasoning_store.cli.output import Page, answer, note, stamp
from reasoning_store.cli.tree import Group
from reasoning_store.egress.amounts import THRESHOLD
from reasoning_store.errors import Conflict, UsageError

if TYPE_CHECKING:
    from reasoning_store.shortening import Plan
    from reasoning_store.stored import Compaction

_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)


@click.group("compact", cls=Group, default="run")
def compact() -> None:
    """Make requests shorter, or longer again.

    `compact SESSION --limit 212000` says what should be done; with --apply it is done.
    Nothing is deleted.
    """


@compact.command(
    "run",
    answers="action reasons steps toSummarize toClear effective after limit reserve usable "
    "triggerAt exactness",
)
@on_a_branch
@click.option(
    "--limit",
    type=click.IntRange(1),
    required=True,
    envvar="REASONING_STORE_LIMIT",
    help="The model's context window, in tokens.  [env: REASONING_STORE_LIMIT]",
)
@click.option("--reserve", type=click.IntRange(0), default=0, help="What the answer needs of it.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=THRESHOLD,
    show_default=True,
    help="The share of the rest from which on something is done.",
)
@click.option(
    "--clear/--no-clear", default=True, help="Whether old tool results may be cleared (default)."
)
@click.option("--plan", "plan_only", is_flag=True, help="Only say what should be done (default).")
@click.option("--apply", "apply_it", is_flag=True, help="Do it.")
@click.option(
    "--summary-file",
    type=click.File("rb"),
    metavar="FILE",
    help="The text that shall stand for the range of the plan; implies --apply.",
)
@click.option(
    "--range",
    "covered",
    metavar="FIRST-LAST",
    help="The messages that the summary is of, as the plan named them.",
)
@a_request
@click.pass_obj
def run(
    call: Call,
    where: Where,
    limit: int,
    reserve: int,
    threshold: float,
    clear: bool,
    plan_only: bool,
    apply_it: bool,
    summary_file: IO[bytes] | None,
    covered: str | None,
    asked: dict[str, Any],
) -> None:
    """Say whether the next request should get shorter and how, or do it.

    Where the plan is to summarize messages, write a summary of them and give it with
    --summary-file and their --range: the plan is made anew, and refused if it has moved.
    """
    applies = apply_it or summary_file is not None
    if applies and plan_only:
        raise UsageError("--plan changes nothing, --apply does", hint="say one of them")
    summary = None if summary_file is None else _read(summary_file)
    with where.open(call) as session:
        plan = session.compression(
            limit=limit, reserve=reserve, threshold=threshold, clear=clear, **asked
        )
        if not applies:
            _say_plan(call, plan)
            return
        if summary is not None:
            _check_range(plan, covered)
        made = session.compact(plan, summary=summary)
        effective = session.usage(**asked).effective
    _say_done(call, plan, made, effective)


def _read(file: IO[bytes]) -> str:
    text = strict.decoded(content(file), file.name).replace("\r\n", "\n")
    if not text.strip():
        raise UsageError(f"{file.name} is empty", hint="a summary of the messages is wanted")
    return text


def _check_range(plan: Plan, covered: str | None) -> None:
    """Refuse a summary of other messages than those that it would stand for."""
    at = plan.to_summarize
    if at is None:
        raise UsageError(
            f"the plan summarizes nothing: {plan.action}", hint="leave --summary-file out"
        )
    now = f"{at.first}-{at.last}"
    if covered is None:
        raise UsageError(
            "a summary stands for the messages that it was made of", hint=f"say --range {now}"
        )
    if not _RANGE.fullmatch(covered):
        raise UsageError(f"{covered!r} is no range of positions", hint=f"--range {now}")
    if covered != now:
        raise Conflict(
            f"the plan is to summarize {now} by now, not {covered}",
            hint="make a summary of these",
        )


def _say_plan(call: Call, plan: Plan) -> None:
    at = plan.to_summarize

    def people(page: Page) -> None:
        page.line(f"{plan.action}: {', '.join(plan.reasons)}", "bold")
        page.line(f"now {plan.effective}, then {plan.after}, of {plan.usable} usable")
        if plan.steps:
            page.table(
                ("step", "what", "frees"),
                [(step.kind, _what(step.what), str(step.tokens)) for step in plan.steps],
                right=("frees",),
            )

    answer(call, _plan(plan), people)
    if call.json or not plan.steps:
        return
    more = ["--apply"]
    if at is not None:
        more += ["--range", f"{at.first}-{at.last}", "--summary-file", "FILE"]
    again = advice.once_more(call, click.get_current_context(), more, without={"--plan"})
    note(f"to do it: {again}")


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "action": plan.action,
        "reasons": list(plan.reasons),
        "steps": [
            {
                "kind": step.kind,
                "what": _what(step.what),
                "tokens": step.tokens,
                "reversible": step.reversible,
            }
            for step in plan.steps
        ],
        "toSummarize": _range(plan.to_summarize),
        "toClear": _range(plan.to_clear),
        "effective": plan.effective,
        "after": plan.after,
        "limit": plan.limit,
        "reserve": plan.reserve,
        "usable": plan.usable,
        "triggerAt": plan.trigger_at,
        "exactness": plan.exactness,
    }


def _range(at: Any) -> dict[str, int] | None:
    return None if at is None else {"first": at.first, "last": at.last}


def _what(what: Any) -> str:
    return what if isinstance(what, str) else f"{what.first}-{what.last}"


def _say_done(call: Call, plan: Plan, made: Compaction | None, effective: int) -> None:
    strip = [step.what for step in plan.steps if step.kind == "strip"]

    def people(page: Page) -> None:
        for value in strip:
            page.line(f"set reasoning.stripFromContext = {value}")
        if made is not None and made.kind == "summary":
            page.line(f"summary {made.id} stands for the messages {made.first}-{made.last}")
        if plan.to_clear is not None:
            page.line(f"the tool results up to {plan.to_clear.last} are cleared")
        page.line(f"{plan.effective} -> {effective} tokens")

    answer(
        call,
        {
            "action": plan.action,
            "stripFromContext": strip[0] if strip else None,
            "compaction": None if made is None else _data(made),
            "cleared": _range(plan.to_clear),
            "before": plan.effective,
            "effective": effective,
        },
        people,
    )


@compact.command("list", answers="* id kind branch first last tokens supersedes createdAt summary")
@on_a_branch
@click.pass_obj
def list_(call: Call, where: Where) -> None:
    """List what is in force: summaries, and how far tool results are cleared."""
    with where.open(call) as session:
        found = session.compactions()
    answer(
        call,
        [_data(one) for one in found],
        lambda page: (
            page.table(
                ("id", "messages", "tokens", "summary"),
                [
                    (
                        str(one.id),
                        f"{one.first}-{one.last}",
                        str(one.tokens),
                        "tool results cleared" if one.summary is None else _first_line(one.summary),
                    )
                    for one in found
                ],
                right=("id", "tokens"),
            )
            if found
            else None
        ),
    )


@compact.command("undo", answers="id kind branch first last tokens supersedes createdAt summary")
@on_a_branch
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def undo(call: Call, where: Where, number: int) -> None:
    """Take a summary or a clearing back: what it stands for goes out again."""
    with where.open(call) as session:
        taken = session.undo(number)
    answer(
        call,
        _data(taken),
        lambda page: page.line(_back(taken)),
    )


def _back(one: Compaction) -> str:
    if one.kind == "clearing":
        return f"the tool results up to {one.last} go out again"
    return f"the messages {one.first}-{one.last} go out again"


def _data(one: Compaction) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind,
        "branch": one.branch,
        "first": one.first,
        "last": one.last,
        "tokens": one.tokens,
        "supersedes": list(one.supersedes),
        "createdAt": stamp(one.created_at),
        "summary": one.summary,
    }


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
