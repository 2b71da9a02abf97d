"""Commands that look and change nothing: sessions, show, usage, context."""

from __future__ import annotations

import json
from typing import Any

import click

from reasoning_store.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResponseBlock
from reasoning_store.cli.opening import existing
from reasoning_store.cli.printable import printable
from reasoning_store.codec import argument_text, result_text
from reasoning_store.session import Session

OWNER = click.option("--owner", default="", help="Whose sessions; by default the nameless owner's.")


def _target_options(command: Any) -> Any:
    """Whom the request is for; by default who gave the last recorded reply."""
    for name in ("--base-url", "--api", "--model", "--provider"):
        command = click.option(name)(command)
    return command


@click.command("sessions")
@OWNER
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000))
@click.pass_context
def sessions_command(context: click.Context, owner: str, limit: int) -> None:
    """List the sessions, the latest first."""
    with existing(context) as store:
        page = store.for_owner(owner).sessions(limit=limit)
        for session in page.items:
            title = f"  {printable(session.title)}" if session.title else ""
            click.echo(f"{session.updated_at:%Y-%m-%d %H:%M}  {printable(session.id)}{title}")
    if page.next is not None:
        click.echo(f"there are more than {limit}; --limit shows them", err=True)


@click.command("show")
@click.argument("session_id", metavar="SESSION")
@OWNER
@click.option("--thinking", type=click.Choice(["full", "none"]), default="full", show_default=True)
@click.pass_context
def show_command(context: click.Context, session_id: str, owner: str, thinking: str) -> None:
    """Print a conversation, its thinking beside its answers."""
    with existing(context) as store:
        for item in store.for_owner(owner).session(session_id).history():
            click.echo(f"[{item.position}] {item.message.role}")
            for block in item.message.blocks:
                if isinstance(block, ThinkingBlock):
                    if thinking == "full":
                        click.echo(_indented(block.thought or "(cannot be read)", "  | "))
                elif isinstance(block, TextBlock):
                    click.echo(_indented(block.text, "  "))
                elif isinstance(block, ToolCallBlock):
                    click.echo(_indented(f"-> {block.name}({argument_text(block)})", "  "))
                elif isinstance(block, ToolResponseBlock):
                    click.echo(_indented(f"<- {result_text(block)}", "  "))
                else:
                    click.echo(f"  ({block.type})")


@click.command("usage")
@click.argument("session_id", metavar="SESSION")
@OWNER
@click.option("--limit", type=click.IntRange(1), help="The model's context window, in tokens.")
@_target_options
@click.pass_context
def usage_command(
    context: click.Context, /, session_id: str, owner: str, limit: int | None, **target: Any
) -> None:
    """Print what the next request would count: effective/limit."""
    with existing(context) as store:
        click.echo(str(_session(store.for_owner(owner), session_id).usage(limit=limit, **target)))


@click.command("context")
@click.argument("session_id", metavar="SESSION")
@OWNER
@click.option("--explain", is_flag=True, help="Say of each thinking block whether and why it goes.")
@_target_options
@click.pass_context
def context_command(
    context: click.Context, /, session_id: str, owner: str, explain: bool, **target: Any
) -> None:
    """Print the next request's body, exactly as it would be sent."""
    with existing(context) as store:
        session = _session(store.for_owner(owner), session_id)
        request = session.build_request(**target)
        if not explain:
            click.echo(json.dumps(request.body, indent=2))
        else:
            click.echo(f"{'message':>7} {'block':>5} {'tokens':>7}  verdict")
            for verdict in request.verdicts:
                does = "kept" if verdict.kept else "stays"
                click.echo(
                    f"{verdict.message:>7} {verdict.block:>5} {verdict.tokens:>7}  {does}"
                    f" ({verdict.rule}): {verdict.reason}"
                )
            for key, item in session.settings.resolved().items():
                click.echo(f"{key} = {json.dumps(item.value)}  [{item.layer}]")
        for warning in request.warnings:
            click.echo(f"warning: {warning.text}", err=True)


def _session(owner: Any, session_id: str) -> Session:
    session: Session = owner.session(session_id)
    return session


def _indented(text: str, mark: str) -> str:
    return "\n".join(mark + printable(line) for line in text.split("\n"))
