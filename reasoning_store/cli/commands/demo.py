"""The command `demo`; its story is in ``demo_story``, which is imported when it runs."""

from __future__ import annotations

import click

from reasoning_store.cli.command import Call, Command


@click.command(
    "demo",
    cls=Command,
    examples=("demo", "demo --folder tour --speed 2"),
    answers="effective raw limit messages request database page",
)
@click.option(
    "--folder", metavar="FOLDER", help="For the database and the page; by default a temporary one."
)
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="How fast it plays at a terminal.",
)
@click.pass_obj
def demo(call: Call, folder: str | None, speed: float) -> None:
    """Show how thinking is stored and sent, in a minute.

    It needs no key and no network. A database with the session
    `demo` and a page of HTML are left in a folder; --db names another database.
    """
    from reasoning_store.cli import demo_story

    demo_story.run_demo(call, folder, speed)
