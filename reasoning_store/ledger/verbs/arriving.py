"""A session whose lines are being read: what is known of it so far, and what waits.

Messages wait until a few hundred stand behind one another, and are then one append; those of
one idempotency key are not parted.

Knows values and the numbers of lines; writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reasoning_store.errors import UsageError
from reasoning_store.ledger import lines
from reasoning_store.ledger.importing import Begun
from reasoning_store.ledger.importing_compactions import Given
from reasoning_store.ledger.lines import MessageLine, SessionLine
from reasoning_store.ledger.pairs import Place
from reasoning_store.ledger.verbs.taking_in import Item


@dataclass(slots=True)
class Waiting:
    """Messages of one branch that stand behind one another, until they are written at once."""

    branch: int = 1
    items: list[Item] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)
    """Of each, by its position: the number of its line."""
    characters: int = 0

    def add(self, item: Item, *, number: int) -> None:
        self.items.append(item)
        self.lines[item.position] = number
        thinking, body = item.prepared.thinking, item.prepared.body
        self.characters += sum(len(row["thought"] or "") for row in thinking)
        self.characters += len(body["text"] or "") + len(body["data"] or "")

    @property
    def are_many(self) -> bool:
        return len(self.items) >= lines.AT_ONCE or self.characters >= lines.CHARACTERS


@dataclass(slots=True, kw_only=True)
class Current:
    """The session whose lines are being read."""

    line: SessionLine
    number: int
    """Of its line."""
    key: int
    encoding: str
    begun: Begun | None
    """What was written of it, where it was not there before."""
    next: dict[int, int] = field(default_factory=lambda: {1: 1})
    """Of each branch, the position that its next line has."""
    messages: int = 0
    recounted: int = 0
    """How much more its reasoning counts here than where the lines come from."""
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each branch, how far its last idempotency key reaches, and the line that says so."""
    compactions: dict[int, dict[int, tuple[int, Given]]] = field(default_factory=dict)
    """Of each branch, by number: the line that says so, and what it says."""
    erased: set[Place] = field(default_factory=set)
    """What these lines have, and what was erased here."""
    waiting: Waiting = field(default_factory=Waiting)

    def position(self, branch: int) -> int:
        """Return where the next message of a branch stands; refuse one that was not begun."""
        if branch not in self.next:
            raise UsageError("branch: has no line of its own before this one")
        return self.next[branch]

    def place(self, line: MessageLine, *, number: int) -> int:
        """Return where a message stands that its line does not put elsewhere."""
        position = self.position(line.branch)
        if line.position not in (None, position):
            raise UsageError(f"position: is not {position}, which follows")
        if (line.repeat is None) != (line.batch is None):
            raise UsageError("repeat, batch: one is there without the other")
        if line.batch is not None:
            if position <= self.batches.get(line.branch, (0, 0))[0]:
                raise UsageError("repeat: stands among the messages of another one")
            self.batches[line.branch] = (position + line.batch - 1, number)
        return position

    def missing(self, branch: int) -> int | None:
        """Return the line whose idempotency key covers more of a branch than has come yet."""
        last, number = self.batches.get(branch, (0, 0))
        return number if last >= self.next[branch] else None

    def add(self, branch: int, item: Item, *, number: int) -> None:
        """Let a message wait behind the others of its branch."""
        self.waiting.branch = branch
        self.waiting.add(item, number=number)
        self.next[branch] += 1
        self.messages += 1

    def keep(self, branch: int, given: Given, *, number: int) -> None:
        """Keep what a line says of a compaction until all of them have come."""
        found = self.compactions.setdefault(branch, {})
        if given.line.number in found:
            raise UsageError("number: is that of another one on this branch")
        found[given.line.number] = (number, given)
