"""The steps of an import: each writes what some lines say, in one short transaction.

What is there already is compared and not written again. A line that does not fit is an error,
and nothing of its step is written; of several lines a ``Misfit`` says which.

Knows the ledger's verbs; must not know in which order lines come, nor their numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from reasoning_store.errors import Conflict
from reasoning_store.ledger import faults, importing, importing_compactions, profiles
from reasoning_store.ledger.columns import Prepared
from reasoning_store.ledger.importing import Begun, Misfit
from reasoning_store.ledger.importing_compactions import Given
from reasoning_store.ledger.lines import BranchLine, MessageLine, ProfileLine, SessionLine
from reasoning_store.ledger.pairs import Place
from reasoning_store.ledger.values import DraftRow, Entry, SessionRow
from reasoning_store.ledger.verbs.erasing import ErasingVerbs


@dataclass(frozen=True, slots=True)
class Item:
    """A message on its way in."""

    position: int
    prepared: Prepared
    has_id: bool
    """Its line says which."""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of messages on their way in."""

    new: int
    already: int
    erased: frozenset[Place]
    """Those of which something was erased here, and not where the lines come from."""


class TakingInVerbs(ErasingVerbs):
    """What lines say, written step by step."""

    def take_profile(self, owner: str, line: ProfileLine) -> None:
        at = self._time(line.updated_at)
        row = profiles.columns_of(owner, line.name, line.settings, now=at)
        self._write(lambda connection: importing.profile(connection, row))

    def take_session(self, owner: str, line: SessionLine) -> tuple[SessionRow, Begun | None]:
        """Return the session of a line, made where there is none."""
        now = self._time(None)

        def make() -> tuple[SessionRow, Begun | None]:
            return self._write(
                lambda connection: importing.session(connection, owner, line, now=now)
            )

        try:
            return make()
        except faults.Taken:
            return make()  # somebody else made it meanwhile

    def take_branch(self, key: int, line: BranchLine) -> bool:
        """Make the branch of a line; False where it is there already."""
        now = self._time(None)
        return self._write(lambda connection: importing.branch(connection, key, line, now=now))

    def prepared_line(self, line: MessageLine, entry: Entry) -> Prepared:
        """Return the columns of a message, with what only its line knows of it."""
        prepared = self._prepared(entry, self._time(line.created_at), id=line.id)
        more: dict[str, Any] = {
            "idempotency_key": line.repeat,
            "batch": line.batch,
            "erased_at": line.erased_at,
        }
        return prepared._replace(columns={**prepared.columns, **more})

    def take_messages(self, key: int, branch: int, items: Sequence[Item]) -> Added:
        """Write messages that stand behind one another, less those that are there already."""
        there = self._read(
            lambda connection: importing.there(
                connection, key, branch, items[0].position, items[-1].position
            ),
            single=True,
        )
        new: list[Item] = []
        erased: set[Place] = set()
        for item in items:
            found = there.get(item.position)
            if found is None:
                new.append(item)
                continue
            id_, digest, erased_at = found
            same = digest == item.prepared.columns["digest"]
            if not same and erased_at is not None:
                erased.add((branch, item.position))
                same = True
            if not same or (item.has_id and id_ != item.prepared.columns["id"]):
                another = Conflict(f"another message is at {item.position} of branch {branch}")
                raise Misfit(item.position, another)
        if new:
            self._take_new(key, branch, new)
        return Added(len(new), len(items) - len(new), frozenset(erased))

    def _take_new(self, key: int, branch: int, new: Sequence[Item]) -> None:
        prepared = [item.prepared for item in new]
        now = max(item.columns["created_at"] for item in prepared)
        after = new[0].position - 1
        if self._append(key, branch, prepared, after=after, now=now) is not None:
            return
        draft = self.draft(key, branch)
        # The draft that this message became, where it was exported.
        if draft is not None and draft.id == prepared[0].columns["id"]:
            made = self._append(key, branch, prepared, after=after, now=now, ending=draft.id)
            if made is not None:
                return
        in_the_way = Conflict(
            f"something else stands behind {after} of branch {branch}"
            if draft is None
            else f"a reply is being recorded behind {after} of branch {branch}"
        )
        raise Misfit(new[0].position, in_the_way)

    def take_draft(self, row: DraftRow) -> bool:
        """Write a draft whose recorder is gone; False where its position is past."""
        return self._write(lambda connection: importing.draft(connection, row))

    def take_compactions(
        self, key: int, branch: int, given: Sequence[Given], *, erased: Collection[Place]
    ) -> None:
        """Write the compactions of a branch: what one is depends on the others.

        ``erased`` are messages that the lines have, and that were erased here.
        """
        now = self._time(None)
        self._write(
            lambda connection: importing_compactions.take(
                connection, key, branch, given, erased=erased, now=now
            )
        )

    def finish_session(self, key: int, line: SessionLine) -> None:
        """Make a session whose lines have all come one like any other."""
        self._write(lambda connection: importing.finish(connection, key, line))

    def forget_session(self, key: int) -> None:
        """Erase what was begun of a session that was erased while it was exported."""
        if self._read(lambda connection: importing.is_importing(connection, key)):
            self.erase_session(key)

    def take_back(self, key: int, begun: Begun) -> None:
        """Remove a session that was begun from lines that are wrong, unless it has more in it."""
        self._write(lambda connection: importing.take_back(connection, key, begun))
