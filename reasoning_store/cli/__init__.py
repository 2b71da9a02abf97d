"""The command line: a door to what the library does, for people and for scripts.

Answers go to standard output, messages to standard error. An error is one line with its hint,
and an exit code of ``exit_codes``. A command's module is imported when the command runs.
"""

from reasoning_store.cli.program import main

__all__ = ["main"]
