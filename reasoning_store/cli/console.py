"""rich's console, as this program uses it: stored text is text, and a reader may leave.

Imported where a person is looking, and by nothing that answers a program.
"""

from __future__ import annotations

from typing import Any

import rich.console


class Console(rich.console.Console):
    """A console that reads no markup into texts."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(highlight=False, emoji=False, **attributes)

    def on_broken_pipe(self) -> None:
        # rich would end the program by itself, with a code of its own.
        raise BrokenPipeError
