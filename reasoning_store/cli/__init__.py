"""The command line. It speaks to people; everything it does, the library can do.

Data goes to standard output, errors and hints to standard error. Exit codes: 0 done, 1
failed, 2 a wrong word or an invalid setting, 3 a schema to upgrade, 5 not found, 130
interrupted. Commands are imported when they are run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    import click

    from reasoning_store import errors
    from reasoning_store.cli.app import app

    codes: dict[type[errors.ReasoningStoreError], int] = {
        errors.UsageError: 2,
        errors.SettingError: 2,
        errors.MissingExtra: 2,
        errors.SchemaError: 3,
        errors.NotFound: 5,
    }
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        with app.make_context("reasoning-store", words) as context:
            app.invoke(context)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except errors.ReasoningStoreError as error:
        hint = f" ({error.hint})" if error.hint else ""
        click.echo(f"error: {error}{hint}", err=True)
        return codes.get(type(error), 1)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader has left, e.g. `| head`; nothing more can be said, and nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
