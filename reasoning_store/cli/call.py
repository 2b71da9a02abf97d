"""One call of the program: what holds for all of it, whatever the command.

It knows no command, and nothing of the rest of the package.
"""

from __future__ import annotations

from dataclasses import dataclass

from reasoning_store.cli.exits import Exit


@dataclass(slots=True)
class Call:
    """What was asked of the program as a whole, and how it is going to end."""

    words: tuple[str, ...] = ()
    """The words that the program was called with, as they were given."""
    db: str | None = None
    """The URL of the database, where one was given."""
    db_was_said: bool = False
    """It was given in words, and not by the environment, which says it the next time too."""
    owner: str = ""
    """Whose sessions, where that was said."""
    json: bool = False
    """The answer is for a program."""
    command: str = ""
    """The words that name the command, e.g. ``sessions list``."""
    exit: Exit = Exit.DONE
    """What the command found; it stays so when nobody reads the answer to its end."""
    if_interrupted: str = "nothing is half done"
    """What to tell whoever stops the command in the middle."""
