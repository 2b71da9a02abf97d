"""The command `demo`; its story is in ``demo_story``, which is imported when it runs."""

from __future__ import annotations

import click

from reasoning_store.cli.command import Call, Command


@click.command(
    "demo", cls=Command, examples=("demo",), answers="effective raw limit messages request"
)
@click.pass_obj
def demo(call: Call) -> None:
    """Show in a minute how thinking is stored and sent: no key, no network.

    Bundled streams are replayed into a database that is thrown away, or into the one that --db
    names, as the session `demo`.
    """
    from reasoning_store.cli import demo_story

    demo_story.run_demo(call)
