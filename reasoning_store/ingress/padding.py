"""Delimiters that bring their own line ends.

Some templates write ``<think>``, a line end, the thought, a line end, ``</think>`` and one
more: those line ends are the delimiter's, and go back with it. For a host whose contract
says so this stage stands behind the tag filter and takes exactly one line end away on
either side of a block and after it. Everywhere else nothing is trimmed.

It holds one line end at most, so that every chunking gives the same result. It knows runs
of text; it must not know which host wants it.
"""

from __future__ import annotations

from reasoning_store.ingress.places import PlacedTagFilter
from reasoning_store.ingress.tags import Run

_LINE_END = "\n"


class PaddedTagFilter(PlacedTagFilter):
    """A tag filter whose delimiters are the tag and the line ends around it."""

    __slots__ = ("_at_edge", "_line_end")

    def reset(self) -> None:
        super().reset()
        self._at_edge = False
        """The next text is the first behind a delimiter."""
        self._line_end: Run | None = None
        """A thought's last line end, which may yet turn out to be the delimiter's."""

    def feed(self, delta: str) -> list[Run]:
        return self._unpad(super().feed(delta))

    def finish(self) -> list[Run]:
        runs = self._unpad(super().finish())
        if self._line_end is not None:
            runs.append(self._line_end)
            self._line_end = None
        return runs

    def begin_outside(self) -> list[Run]:
        return self._unpad(super().begin_outside())

    @property
    def held(self) -> str:
        return (_LINE_END if self._line_end is not None else "") + super().held

    def _unpad(self, runs: list[Run]) -> list[Run]:
        out: list[Run] = []
        for run in runs:
            if run.phase != "delta":
                if run.phase == "end":
                    self._line_end = None
                self._at_edge = run.phase in ("start", "end")
                out.append(run)
                continue
            text = run.text
            if self._at_edge:
                self._at_edge = False
                text = text.removeprefix(_LINE_END)
            if run.kind == "thinking" and text:
                if self._line_end is not None:
                    text = _LINE_END + text
                    self._line_end = None
                if text.endswith(_LINE_END):
                    self._line_end = run._replace(text=_LINE_END)
                    text = text[:-1]
            if text:
                out.append(run._replace(text=text))
        return out
