"""The code in visible text, in which delimiters are text: fences, and spans in backticks.

Theory. A run of three or more backticks or tildes at a line's begin opens a fence; one at least as
long, on the same line or at the begin of another, closes it. A span is code between two runs of as
many backticks on one line. Only the place of a delimiter is ever asked for. The state has the open
run and no text, and the next ``WINDOW`` characters decide whether the span around a delimiter is
closed. So little is held, and the answer is the same however the text is cut.
"""

from __future__ import annotations

import re
from typing import Final

WINDOW: Final = 256
"""The characters from a delimiter on in which the end of its span is looked for."""

_LEAST_FENCE: Final = 3
_LONGEST_RUN: Final = 64
_TOKENS: Final = re.compile(r"[\r\n]|`+|~+|[^\r\n`~]+")
_MARK: Final = re.compile(r"[\r\n`~]")
_NEXT: Final = re.compile(r"[\r\n]|`+")
_BEFORE_FENCE: Final = " \t>*+-.)0123456789"
"""The characters that may precede a fence on its line: indents, quotes, items of a list."""


class CodeMarks:
    """The state of code at the end of the visible text so far."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the text: the next begins a line, outside of code."""
        self._fence = ""  # the run that opened it
        self._is_first_line = False  # of the fence
        self._span = ""  # the run that opened a span on this line
        self._run = ""  # the run that the text ends with
        self._begins = True  # a fence may begin on this line

    def read(self, text: str) -> None:
        """Read the next piece of visible text."""
        if not (self._begins or self._run or _MARK.search(text)):
            return
        for token in _TOKENS.findall(text):
            if token[0] != self._run[:1]:
                self._end_run()
            if token[0] in "`~":
                self._run = (self._run + token)[:_LONGEST_RUN]
            elif token in "\r\n":
                self._span, self._begins, self._is_first_line = "", True, False
            else:
                self._begins = self._begins and not token.strip(_BEFORE_FENCE)

    def covers(self, text: str, at: int, *, is_last: bool) -> bool | None:
        """Whether the delimiter at this place is in code; None where more text decides.

        ``read`` has had all the visible text before it.
        """
        self._end_run()
        if not self._span:
            return bool(self._fence)
        end = at + WINDOW
        ends = (self._span, "\r", "\n")
        found = next((one for one in _NEXT.finditer(text, at, end) if one[0] in ends), None)
        if (found is None or found.end() == len(text)) and len(text) < end and not is_last:
            return None
        is_code = found is not None and found[0] == self._span
        if not is_code:
            self._span = ""  # nothing ends it: the run was no more than its characters
        return is_code

    def _end_run(self) -> None:
        run, self._run = self._run, ""
        if not run:
            return
        begins, self._begins = self._begins and len(run) >= _LEAST_FENCE, False
        if self._fence:
            if (begins or self._is_first_line) and run.startswith(self._fence):
                self._fence = ""
        elif begins:
            self._fence, self._is_first_line = run, True
        elif run[0] == "`":
            self._span = "" if run == self._span else self._span or run
