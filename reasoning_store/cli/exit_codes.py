"""The exit codes, in one table that the program, its documentation and its tests read."""

from __future__ import annotations

from enum import IntEnum

import reasoning_store as rs


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
    Exit.FAILED: "It failed: a full disk, a check of `db doctor`, a question answered with no.",
    Exit.USAGE: "A usage or configuration error: an unknown command or option, an invalid "
    "setting or file, an unreachable server, a missing optional package.",
    Exit.SCHEMA: "The database is not ours, or has to be upgraded, or is newer than the program.",
    Exit.OVER: "`request --tokens --fail-over` was exceeded.",
    Exit.NOT_FOUND: "There is no such database, session, branch, message or profile, or no row "
    "about it.",
    Exit.CONFLICT: "Another writer was first: the stored data is not the data that was expected.",
    Exit.DAMAGED: "Stored data differs from the data that was written.",
    Exit.BUSY: "Another writer held the store for longer than the program waits; try again.",
    Exit.HUNG_UP: "The terminal was closed (SIGHUP); nothing was left half done.",
    Exit.INTERRUPTED: "Interrupted by Ctrl-C: it dies of SIGINT; nothing was left half done.",
    Exit.TERMINATED: "Asked to end (SIGTERM); nothing was left half done.",
}
"""The meaning of each code, as documented."""

OF_ERROR: dict[type[rs.ReasoningStoreError], Exit] = {
    rs.SettingError: Exit.USAGE,
    rs.WireError: Exit.USAGE,
    rs.InvalidCall: Exit.USAGE,
    rs.NotFound: Exit.NOT_FOUND,
    rs.Conflict: Exit.CONFLICT,
    rs.SchemaError: Exit.SCHEMA,
    rs.CorruptRow: Exit.DAMAGED,
    rs.StoreFull: Exit.FAILED,
    rs.StoreBusy: Exit.BUSY,
    rs.MissingExtra: Exit.USAGE,
}
"""The code of each class of error, subclasses included."""


def exit_code_of(error: rs.ReasoningStoreError) -> Exit:
    """Return the exit code of an error."""
    return next((OF_ERROR[kind] for kind in type(error).__mro__ if kind in OF_ERROR), Exit.FAILED)
