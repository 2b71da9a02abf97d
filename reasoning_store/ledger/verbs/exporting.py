"""The verb that gives away everything stored, as lines.

Line after line, whoever takes them: nothing is held open between two of them. A page of
messages is as long as the texts allow, so that memory does not grow with a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sqlalchemy import Connection

from reasoning_store.errors import NotFound
from reasoning_store.ledger import exporting, lines, sessions
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import BranchRow


class ExportingVerbs(Opened):
    """All that there is, to be taken elsewhere."""

    def export_lines(
        self, session_key: int | None = None, *, owner: str | None = None
    ) -> Iterator[str]:
        """Yield everything stored: of one session, of one owner, or of all.

        It is all there, opaque payloads too, and what comes back from an import of it is
        the same again. Lines end as lines do.
        """
        yield lines.written(lines.HeaderLine(version=lines.VERSION))
        if session_key is None:
            for profile in self._read(
                lambda connection: exporting.profile_lines(connection, owner)
            ):
                yield lines.written(profile)
        exported = 0
        for key in self._exported(session_key, owner):
            try:
                outline = self._outline(key)
            except NotFound:
                if session_key is not None:
                    raise
                continue  # erased meanwhile
            exported += 1
            yield lines.written(outline.head)
            erased = False
            try:
                for line, lineage in outline.parts:
                    yield lines.written(line)
                    yield from self._pages_of(key, lineage)
            except NotFound:
                erased = True
            else:
                for line in outline.tail:
                    yield lines.written(line)
            yield lines.written(lines.SessionEndLine(messages=outline.messages, erased=erased))
        yield lines.written(lines.EndLine(sessions=exported))

    def _outline(self, key: int) -> exporting.Outline:
        return self._read(lambda connection: exporting.outline(connection, key))

    def _exported(self, session_key: int | None, owner: str | None) -> Iterator[int]:
        if session_key is not None:
            yield session_key
            return
        if owner is not None:
            yield from self._read(
                lambda connection: exporting.owned(connection, owner), single=True
            )
            return
        after = -1
        while keys := self._read(partial(sessions.some_keys, after=after), single=True):
            yield from keys
            after = keys[-1]

    def _pages_of(self, key: int, lineage: BranchRow) -> Iterator[str]:
        first, count = lineage.first, 1
        while first < lineage.next_position:
            last = min(first + count, lineage.next_position) - 1

            def page(connection: Connection, first: int = first, last: int = last) -> list[str]:
                found = exporting.message_lines(connection, key, lineage, first, last)
                return [lines.written(line) for line in found]

            made = self._read(page)
            yield from made
            # The next page as long as this one's messages let expect.
            fitting = count * lines.CHARACTERS // sum(map(len, made))
            count = max(1, min(lines.AT_ONCE, 2 * count, fitting))
            first = last + 1
