"""The command `demo`; what it shows is in ``tour``, which is loaded when it is shown."""

from __future__ import annotations

import click

from reasoning_store.cli.call import Call
from reasoning_store.cli.tree import Command


@click.command("demo", cls=Command, answers="effective raw limit messages request")
@click.pass_obj
def demo(call: Call) -> None:
    """Show it all in a minute: no key, no network.

    Bundled streams are replayed into a database that is thrown away.
    """
    from reasoning_store.cli import tour

    tour.show(call)
