"""The draft of one reply: the parts of what has arrived, those that are written, and its followers.

The loop that reads the reply adds to it, and the draft writer writes it. A follower in this process
is passed each entry in memory, as it arrives.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from reasoning_store.ingress.draft_parts import DraftParts, Entry
from reasoning_store.ledger import stored_drafts
from reasoning_store.ledger.records import DraftRow, NewParts

if TYPE_CHECKING:
    from reasoning_store.ingress.masking import Masker


Receive: TypeAlias = Callable[[Entry | None], None]


class ReplyDraft:
    """The draft of a reply that is being recorded.

    The thread that reads the stream starts it, adds to it and notes that it waits. The draft
    writer's notes the parts it has written, and the requests of other processes. These two, a
    thread that leaves the recording, and one that appends to the branch may end it: each holds
    ``ending`` meanwhile.
    """

    def __init__(self, masker: Masker | None) -> None:
        self.ending = threading.Lock()
        """Held while the reply is ended, from its last part until it is stored."""
        self.adding = threading.Lock()
        """Held while an event is added, and never while a disk is waited for."""
        self._row: DraftRow | None = None
        self.parts = DraftParts(masker)
        self.part_at = time.monotonic()
        self.is_followed = False
        """Readers in other processes follow it. Only the draft writer's thread uses this."""
        self._is_waiting = False
        """The stream is waited for: the lease is renewed meanwhile."""
        self._unwritten: list[str] = []
        self._written = 0
        """The number of parts that are written."""
        self._renewed = 0.0
        """When its lease was, by a clock that only goes forward."""
        self._overtaken = self._ended = False
        self._followers: list[weakref.WeakMethod[Receive]] = []

    @property
    def row(self) -> DraftRow | None:
        """The draft in the store: from the beginning of the reply until it is stored."""
        return self._row

    def start(self, row: DraftRow) -> None:
        """Note that the draft is in the store, with a lease of now."""
        self._renewed = time.monotonic()
        self._row = row

    def note_waiting(self) -> None:
        """Note that the stream is waited for."""
        self._is_waiting = True

    def note_arrival(self) -> None:
        """Note that the stream is waited for no more, until ``note_waiting``."""
        self._is_waiting = False

    def detach(self) -> None:
        """End it, and note that it is in the store no more: its message is stored, or nothing."""
        self.end()
        self._row = None

    def end(self) -> None:
        """Note that nothing more arrives, and let the followers know. Its lease runs out."""
        self._is_waiting = False
        self._ended = True  # a follower that asks again has been passed the end
        self._pass_on(None)

    @property
    def live_row(self) -> DraftRow | None:
        """The draft in the store, while it is this recorder's."""
        return None if self._overtaken else self._row

    def is_on(self, session_key: int, branch: int) -> bool:
        row = self._row
        return row is not None and (row.session_key, row.branch) == (session_key, branch)

    def make_part(self, *, last: bool) -> None:
        """Make a part of what has arrived since the last one. Computes only."""
        with self.ending:
            if self.live_row is not None:
                self._make_part(last=last)

    def _make_part(self, *, last: bool) -> None:
        with self.adding:
            if last:
                self.parts.release()
            part = self.parts.take_part()
            if part is not None:
                self._unwritten.append(part)
            self.part_at = time.monotonic()

    def new_parts(self, *, last: bool) -> NewParts | None:
        """Return the parts to write now, or the lease alone."""
        row, parts = self.live_row, tuple(self._unwritten)
        if row is None:
            return None
        if parts:
            return NewParts(row, self._written + 1, parts)
        lapses = self._is_waiting and time.monotonic() - self._renewed > stored_drafts.LEASE / 3
        return NewParts(row) if lapses or last else None

    def note_written(self, new: NewParts, *, mine: bool) -> None:
        """Note that parts are written, or that another append has ended the draft."""
        if not mine:
            self.note_overtaken()
            return
        self._renewed = time.monotonic()
        with self.adding:
            self._written += len(new.parts)
            del self._unwritten[: len(new.parts)]

    def note_overtaken(self) -> None:
        """Note that another append has ended the draft."""
        self._pass_on(None)
        self._overtaken = True

    def parts_after(self, id: str, written: int) -> Sequence[str]:
        """Return what arrived of a draft that another append ends, after its written parts."""
        mine = self._row
        if mine is None or mine.id != id:
            return ()  # another reply's end must not be waited for
        with self.ending:
            if self._row is None:
                return ()
            self._make_part(last=True)
            self.note_overtaken()
            # A write whose answer was lost may have stored some of these.
            return self._unwritten[max(0, written - self._written) :]

    def add_follower(self, receive: Receive) -> tuple[str, int, Sequence[str]] | None:
        """Pass each entry on from now; return the draft's id, how many parts are written, the rest.

        None where there is no draft to follow. ``receive`` is a method that waits for nothing; it
        gets None where the reply has ended, and its follower is not kept alive.
        """
        with self.adding:
            row = self.live_row
            if row is None or self._ended:
                return None
            self._followers.append(weakref.WeakMethod(receive))
            self.parts.pass_on = self._pass_on
            waiting = self.parts.next_part()
            rest = self._unwritten if waiting is None else [*self._unwritten, waiting]
            return row.id, self._written, tuple(rest)

    def _pass_on(self, entry: Entry | None) -> None:
        alive = [receive for one in self._followers if (receive := one()) is not None]
        for receive in alive:
            receive(entry)
        if len(alive) < len(self._followers):
            self._followers = [one for one in self._followers if one() is not None]
