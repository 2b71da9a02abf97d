"""The exit codes: one table, which the program, its documentation and its tests read.

A code says what a script can do about it: wait, upgrade, name something else. It knows the
error tree. It must not know any command.
"""

from __future__ import annotations

from enum import IntEnum

from reasoning_store import errors


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    SCHEMA = 3
    OVER = 4
    NOT_FOUND = 5
    CONFLICT = 6
    DAMAGED = 7
    BUSY = 8
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANING: dict[Exit, str] = {
    Exit.DONE: "Done. Also where the reader of a pipe left early, as `head` does.",
    Exit.FAILED: "It failed: a full disk, a check of `doctor`, an answer no to a question.",
    Exit.USAGE: "A wrong word: an unknown command or option, a setting or a file that is not "
    "allowed, a server that cannot be reached, an optional part that is not installed.",
    Exit.SCHEMA: "The database is not ours, or has to be upgraded, or is newer than the program.",
    Exit.OVER: "`usage --fail-over` was exceeded.",
    Exit.NOT_FOUND: "There is no such database, session, branch, message or profile.",
    Exit.CONFLICT: "Somebody was first: what stands there is not what was expected.",
    Exit.DAMAGED: "Something stored is not as it was written.",
    Exit.BUSY: "Another writer held the store for longer than we wait; try again.",
    Exit.HUNG_UP: "The terminal was closed (SIGHUP); nothing is half done.",
    Exit.INTERRUPTED: "Interrupted by Ctrl-C (SIGINT); nothing is half done.",
    Exit.TERMINATED: "Asked to end (SIGTERM); nothing is half done.",
}
"""What each code says to whoever runs the program."""

OF_ERROR: dict[type[errors.ReasoningStoreError], Exit] = {
    errors.SettingError: Exit.USAGE,
    errors.WireError: Exit.USAGE,
    errors.UsageError: Exit.USAGE,
    errors.NotFound: Exit.NOT_FOUND,
    errors.Conflict: Exit.CONFLICT,
    errors.SchemaError: Exit.SCHEMA,
    errors.CorruptRow: Exit.DAMAGED,
    errors.StoreFull: Exit.FAILED,
    errors.StoreBusy: Exit.BUSY,
    errors.MissingExtra: Exit.USAGE,
}
"""The code of each branch of the error tree."""


def of(error: errors.ReasoningStoreError) -> Exit:
    """Return the code of an error: that of the nearest class that has one."""
    return next((OF_ERROR[kind] for kind in type(error).__mro__ if kind in OF_ERROR), Exit.FAILED)
