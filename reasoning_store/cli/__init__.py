"""The command line. It speaks to people; everything it does, the library can do.

Data goes to standard output, everything else to standard error; what went wrong is one
line there, with what helps behind it, and an exit code of ``exits``. Commands are imported
when they are run. This module knows how a run ends, and no command.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reasoning_store.cli.call import Call

COMPLETION = "_REASONING_STORE_COMPLETE"
"""The variable by which a shell asks what a word could become."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    hint = "nothing is half done"
    _make_streams_whole()
    unwinding: list[int] = []
    try:
        if arguments is None:
            _let_signals_unwind(unwinding)
        from reasoning_store.cli.call import Call

        call = Call()
        try:
            code = _run(call, sys.argv[1:] if arguments is None else list(arguments))
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            # The reader has left, e.g. `| head`; nothing more can be said, nothing is wrong.
            _say_no_more()
            return call.exit
        except OSError as error:
            _say_no_more()
            # Nothing is missing where one writes: a folder is, to work in or for what is temporary.
            is_missing = isinstance(error, FileNotFoundError)
            where = error.filename or ("the folder" if is_missing else "the output")
            return _failed(f"{where}: {error.strerror or type(error).__name__}")
        except (KeyboardInterrupt, _Stopped):
            hint = call.if_interrupted
            raise
        finally:
            # What comes from now on ends nothing but the process.
            for each in unwinding:
                signal.signal(each, signal.SIG_DFL)
    except (KeyboardInterrupt, _Stopped) as stop:
        for each in unwinding:
            # Come again, they would only stop this from being said.
            signal.signal(each, signal.SIG_IGN)
        number = stop.number if isinstance(stop, _Stopped) else signal.SIGINT
        _failed(_TOLD[number], hint)
        return 128 + number


class _Stopped(BaseException):
    """A signal asked the command to end. No KeyboardInterrupt: Python counts those itself."""

    def __init__(self, number: int) -> None:
        self.number = number


_NAMED = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
_TOLD: dict[int, str] = {
    getattr(signal, name): told for name, told in _NAMED.items() if hasattr(signal, name)
}
"""The signals that ask a command to end, and how it says that one did."""


def _let_signals_unwind(unwinding: list[int]) -> None:
    """Let each of them end the command from within, so that it leaves nothing behind; note which.

    Else what is in a folder for what is temporary would stay there: copies of conversations.
    """
    hang_up = getattr(signal, "SIGHUP", None)
    came: set[int] = set()

    def stop(number: int, _: object) -> None:
        if number == hang_up and number in came:
            # A terminal that is closed may say so twice, by itself and by its shell: the second
            # would stop the tidying up. Who sends another signal again means it.
            return
        came.add(number)
        # What closes meanwhile would log that as a fault; it may be just being imported.
        if disable := getattr(sys.modules.get("logging"), "disable", None):
            disable()
        raise _Stopped(number)

    if threading.current_thread() is not threading.main_thread():
        return  # signals are not this one's
    for number in _TOLD:
        # Else it is ignored, as nohup asks, or somebody else's.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            unwinding.append(number)
            signal.signal(number, stop)


def _make_streams_whole() -> None:
    """Let there be all three streams, and the answer go out whole or with an error."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before we began, e.g. by `>&-`
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # By PYTHONUNBUFFERED; what a full disk takes only a part of would be cut without a word.
        file, encoding = sys.stdout.fileno(), sys.stdout.encoding
        sys.stdout = open(file, "w", encoding=encoding, closefd=False)  # noqa: SIM115


def _run(call: Call, words: list[str]) -> int:
    import click

    from reasoning_store import files
    from reasoning_store.cli import advice, exits
    from reasoning_store.cli.app import app
    from reasoning_store.errors import ReasoningStoreError

    call.words = tuple(words)
    for number, word in enumerate(words, 1):
        if not files.is_name(word):  # of a program that calls us: no shell can
            return _failed(
                f"word {number} holds a character that no command line can hold",
                code=exits.Exit.USAGE,
            )
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(app, {"obj": call}, "reasoning-store", COMPLETION, instruction)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal has no letter for is written out rather than refused.
        reconfigure: Callable[..., None] | None = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        with app.make_context("reasoning-store", words, obj=call) as context:
            app.invoke(context)
        return call.exit
    except click.exceptions.Exit as end:
        return end.exit_code
    except ReasoningStoreError as error:
        return _failed(str(error), advice.of_library(call, error.hint), exits.of(error))
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return exits.Exit.USAGE
    except click.UsageError as error:
        return _failed(*advice.of_words(call, app, error), exits.Exit.USAGE)
    except click.ClickException as error:
        return _failed(error.format_message(), code=error.exit_code)
    except RecursionError:
        # No shape that we write is deep: it came in with a file.
        return _failed("what was given is nested too deep", code=exits.Exit.USAGE)
    except click.Abort:
        raise KeyboardInterrupt from None


def _failed(message: str, hint: str | None = None, code: int = 1) -> int:
    """Say in one line what went wrong and what helps."""
    from reasoning_store.cli.printable import one_line

    try:
        # What was found before this goes out first.
        sys.stdout.flush()
    except OSError:
        _say_no_more()
    try:
        told = f" ({hint})" if hint else ""
        sys.stderr.write(one_line(f"error: {message.strip()}{told}") + "\n")
        sys.stderr.flush()
    except OSError:
        _say_no_more()
    return code


def _say_no_more() -> None:
    """Let what is still buffered go nowhere, so that closing the streams fails no more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
