"""One run of the program: from its arguments to an exit code, however it ends."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reasoning_store.cli.command import Call

PROGRAM = "reasoning-store"
COMPLETION = "_REASONING_STORE_COMPLETE"
"""The variable by which a shell asks for the words that complete a line."""
_STOPPED_BY = {
    getattr(signal, name): text
    for name, text in (("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "hung up"))
    if hasattr(signal, name)
}
"""The signals that end a command, each with the word in its error line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    hint = "nothing was left half done"
    caught: list[int] = []
    _prepare_streams()
    try:
        if arguments is None:
            gc.set_threshold(100_000)  # it finds no garbage in the modules that are imported
            _raise_on_signals(caught)
        from reasoning_store.cli.command import Call

        call = Call()
        try:
            return _run(call, sys.argv[1:] if arguments is None else list(arguments))
        except (KeyboardInterrupt, _Stopped):
            hint = call.if_interrupted
            raise
        finally:
            for number in caught:
                signal.signal(number, signal.SIG_DFL)
    except (KeyboardInterrupt, _Stopped) as stop:
        number = stop.number if isinstance(stop, _Stopped) else signal.SIGINT
        for each in caught:
            signal.signal(each, signal.SIG_IGN)  # a second one would cut the error line
        _fail(_STOPPED_BY[number], hint)
        if number in caught and os.name == "posix":
            # A shell ends its loop only if the command died of the signal itself.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        return 128 + number


class _Stopped(BaseException):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        self.number = number


def _raise_on_signals(caught: list[int]) -> None:
    """Let signals end the command by an exception, so that temporary files are removed.

    The signals go to ``caught``. Signals that are ignored (``nohup``, ``&``) stay ignored.
    """

    def stop(number: int, _: object) -> None:
        # A connection that closes meanwhile would log the exception as a fault.
        if disable := getattr(sys.modules.get("logging"), "disable", None):
            disable()
        raise _Stopped(number)

    if threading.current_thread() is not threading.main_thread():
        return
    for number in _STOPPED_BY:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            caught.append(number)
            signal.signal(number, stop)


def _prepare_streams() -> None:
    """Replace streams that were closed before the start, as by cron, and one that cuts output."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # PYTHONUNBUFFERED, which container images set: if a full disk takes only a part of a
        # write, the rest would be lost without an error.
        number, encoding = sys.stdout.fileno(), sys.stdout.encoding
        sys.stdout = open(number, "w", encoding=encoding, closefd=False)  # noqa: SIM115


def _run(call: Call, words: list[str]) -> int:
    """Run a command and write all of its output; return the exit code."""
    try:
        code = _run_command(call, words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader left, e.g. `| head`: no error.
        _discard_output()
        return call.exit
    except OSError as error:
        _discard_output()
        # Without a name, a missing file is the working folder or the one for temporary files.
        is_missing = isinstance(error, FileNotFoundError)
        place = error.filename or ("the folder" if is_missing else "the output")
        return _fail(f"{place}: {error.strerror or type(error).__name__}")


def _run_command(call: Call, words: list[str]) -> int:
    """Run a command; write an error of ours, or of its words, as one line."""
    import click

    from reasoning_store import ReasoningStoreError
    from reasoning_store.cli import exit_codes, hints
    from reasoning_store.cli.app import app
    from reasoning_store.cli.configuration import read_configuration

    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        given: dict[str, Any] = {"obj": call}
        with suppress(ReasoningStoreError, OSError):  # a shell has no place for an error
            given["default_map"] = read_configuration()
        return shell_complete(app, given, PROGRAM, COMPLETION, instruction)
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is written as an escape.
        reconfigure: Callable[..., None] | None = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        defaults = read_configuration()
        with app.make_context(PROGRAM, words, obj=call, default_map=defaults) as context:
            app.invoke(context)
        return call.exit
    except click.exceptions.Exit as end:
        return end.exit_code
    except ReasoningStoreError as error:
        hint = hints.for_command_line(call, error.hint)
        return _fail(str(error), hint, exit_codes.exit_code_of(error), as_json=call.json)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return exit_codes.Exit.USAGE
    except click.UsageError as error:
        message, hint = hints.explain_usage_error(app, error)
        return _fail(message, hint, exit_codes.Exit.USAGE, as_json="--json" in words)
    except click.ClickException as error:
        return _fail(error.format_message(), code=error.exit_code)
    except RecursionError:
        return _fail("the input is nested too deep", code=exit_codes.Exit.USAGE)
    except click.Abort:
        raise KeyboardInterrupt from None


def _fail(message: str, hint: str | None = None, code: int = 1, *, as_json: bool = False) -> int:
    """Write the error line, after all output before it; return the exit code."""
    from reasoning_store.cli.terminal_text import json_text, one_line

    if as_json:
        error = {"error": message.strip(), "hint": hint or None, "code": int(code)}
        line = json_text(error, ascii_only=True, indent=None)
    else:
        more = f" ({hint})" if hint else ""
        line = one_line(f"error: {message.strip()}{more}")
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        _discard_output()
    return code


def _discard_output() -> None:
    """Send what is still buffered to the null device, so that closing the streams cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
