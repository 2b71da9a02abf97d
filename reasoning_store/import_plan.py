"""Which messages of a conversation are new, and after which stored message each is written.

A message is found by its key, which depends on all before it: so of each line of a conversation a
beginning is found, and only the rest is new. If the message that it follows is the last of its
branch, the rest is appended there; if another message of the same source follows that one, the rest
is a new branch. If a message of anyone else follows it, because the session has gone on or the
source was changed, the conversation is refused.

Reads a store and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reasoning_store.kept_histories import Conversation, Item, SourceBranch
from reasoning_store.ledger.records import SessionRow
from reasoning_store.store_state import StoreState


class Place(NamedTuple):
    """The place of a stored message; position 0 is before the first."""

    branch: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Messages that are new, and the message after which they are written."""

    items: Sequence[Item]
    after: Place
    branch: int
    """The place to write them: the branch of ``after``, or a new one that starts there."""

    @property
    def is_fork(self) -> bool:
        return self.branch != self.after.branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The messages that the earlier plans of a dry run would have written into a session."""

    places: dict[str, Place] = field(default_factory=dict)
    heads: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The messages of a conversation to write, or the reason why it is refused."""

    known: int
    runs: Sequence[Run] = ()
    refused: str | None = None
    planned: Planned = field(default_factory=Planned)

    @property
    def new(self) -> int:
        return sum(len(run.items) for run in self.runs)

    def branch_of(self, key: str | None) -> int | None:
        """Return the branch that a new message is written on."""
        for run in self.runs:
            if any(item.key == key for item in run.items):
                return run.branch
        return None


class _Refused(Exception):
    """A conversation cannot be written."""


def make_plan(
    state: StoreState, row: SessionRow | None, one: Conversation, before: Planned
) -> Plan:
    """Return what is to be written of a conversation into its session, if that is there."""
    planner = _Planner(state, row, before)
    known = sum(planner.count_known(line.items) for line in one.lines)
    try:
        runs = list(planner.runs(one))
    except _Refused as reason:
        return Plan(known=known, refused=str(reason), planned=before)
    planned = Planned(places=planner.places, heads=planner.heads)
    return Plan(known=known, runs=runs, planned=planned)


class _Planner:
    """A plan under way; ``places`` and ``heads`` are those of what it has planned."""

    def __init__(self, state: StoreState, row: SessionRow | None, before: Planned) -> None:
        self._ledger = state.ledger
        self._row = row
        self.places = dict(before.places)
        self.heads = dict(before.heads)

    def count_known(self, items: Sequence[Item]) -> int:
        """Return how many are stored already; a key is of all messages up to its own."""
        stored = (n for n in range(len(items), 0, -1) if self._place_of(items[n - 1].key))
        return next(stored, 0)

    def runs(self, one: Conversation) -> Iterator[Run]:
        """Yield the new messages, those before a branch first."""
        followers = _followers(one)
        for line in one.lines:
            known = self.count_known(line.items)
            if known == len(line.items):
                continue
            before = line.items[known - 1].key if known else line.after
            after = self._place_before(line, before)
            branch = self._branch_after(after, followers[before])
            run = Run(items=line.items[known:], after=after, branch=branch)
            for position, item in enumerate(run.items, after.position + 1):
                self.places[item.key] = Place(branch, position)
            self.heads[branch] = after.position + len(run.items)
            yield run

    def _place_of(self, key: str) -> Place | None:
        if key in self.places or self._row is None:
            return self.places.get(key)
        found = self._ledger.history.by_idempotency_key(self._row.key, key)
        return Place(found[0].branch, found[0].position) if found else None

    def _place_before(self, line: SourceBranch, key: str) -> Place:
        found = self._place_of(key) if key else None
        if found is not None:
            return found
        return Place(1 if self._row is None else self._row.current_branch, line.first - 1)

    def _branch_after(self, after: Place, followers: Sequence[str]) -> int:
        """Return the branch on which messages after a place are written."""
        head = self._head(after.branch)
        if head < after.position:
            raise _Refused(f"the session ends at {head}, before its message {after.position}")
        if head == after.position:
            # An append would end it; what is being said here goes on.
            if self._has_draft(after.branch):
                raise _Refused("a reply is being recorded in the session")
            return after.branch
        if all(self._place_of(key) is None for key in followers):
            raise _Refused(f"the session has other messages after message {after.position}")
        return 1 + max(self._stored_branches() | self.heads.keys() | {1})

    def _head(self, branch: int) -> int:
        if branch in self.heads or self._row is None:
            return self.heads.get(branch, 0)
        return self._ledger.branches.get(self._row.key, branch).head

    def _has_draft(self, branch: int) -> bool:
        if self._row is None or branch not in self._stored_branches():
            return False
        return self._ledger.drafts.get(self._row.key, branch) is not None

    def _stored_branches(self) -> set[int]:
        if self._row is None:
            return set()
        return {one.number for one in self._ledger.branches.all_of(self._row.key)}


def _followers(one: Conversation) -> dict[str, list[str]]:
    """Return the keys that follow each key in the source."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in one.lines:
        before = line.after
        for item in line.items:
            found[before].append(item.key)
            before = item.key
    return found
