"""The thread that writes the drafts of a store's recordings, and renews their leases.

About once a second it writes what each reply has received, so that a process that dies loses a
second of it at most and readers elsewhere can follow; the loop that shows a reply never waits for
a disk. It renews the lease of a reply that waits for its model. A reply that is not read any more
is not kept alive: its lease runs out, and it reads as interrupted. A reply whose recorder was
collected is written to its end first.

New parts of many replies are written in one transaction. A masker runs before it, reply by
reply.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from reasoning_store.conversation.errors import StoreBusy, StoreFull
from reasoning_store.conversation.validation import check_seconds
from reasoning_store.ledger import stored_drafts
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow
from reasoning_store.stored_values import stop_reason

if TYPE_CHECKING:
    from reasoning_store.recording.reply_draft import ReplyDraft
    from reasoning_store.recording.reply_recorder import ReplyRecorder

PART_SECONDS = 1.0
PART_CHARACTERS = 65_536
"""The most of a reply that is in memory only: a second of it, or this many characters."""
FOLLOWED_SECONDS = 0.2
"""The most of a reply that a reader in another process follows: with the time of a commit and
of the reader's next look it has each chunk within 300 ms."""
LOOK_SECONDS = 0.2
"""How often a recorder looks for what others ask of it: to stop, and that they follow."""
_TOGETHER = 100
"""The most replies that are written in one transaction, so that no other write waits for long."""
_writers: weakref.WeakSet[DraftWriter] = weakref.WeakSet()


def check_intervals(**seconds: float | None) -> None:
    """Refuse seconds between two parts that no disk keeps up with, or that no lease outlives."""
    for name, value in seconds.items():
        check_seconds(name, value, least=0.05, most=stored_drafts.LEASE / 3, optional=True)


class DraftWriter:
    """Writes the drafts of one store, in a thread that lives while there are any."""

    def __init__(
        self, ledger: Ledger, every: float | None = None, followed: float | None = None
    ) -> None:
        self._ledger = ledger
        self._every = PART_SECONDS if every is None else every
        self._followed = min(self._every, FOLLOWED_SECONDS if followed is None else followed)
        self._tick = min(self._followed, LOOK_SECONDS)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        """Held from ``new_parts`` until they are known to be written; no masker runs meanwhile."""
        self._recorders: dict[ReplyDraft, weakref.ref[ReplyRecorder]] = {}
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        _writers.add(self)

    def add(self, reply: ReplyRecorder) -> None:
        """Write the draft of a reply until it is removed or forgotten."""
        with self._lock:
            self._recorders[reply.draft] = weakref.ref(reply)
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name="reasoning-store-drafts", daemon=True
                )
                # Without a thread the reply is stored at its end all the same.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def remove(self, draft: ReplyDraft) -> None:
        with self._lock:
            self._recorders.pop(draft, None)
        if not self._recorders:
            self.wake()

    def wake(self) -> None:
        """Write soon: a reply has received much, or the last one has ended."""
        self._wake.put(None)

    def write_branch(self, session_key: int, branch: int) -> None:
        """Write now what has arrived on a branch: another message follows there."""
        self._write(draft for draft in self._drafts() if draft.is_on(session_key, branch))

    def write_all(self) -> None:
        """Write now what has arrived of every reply: nothing can be written after this.

        A reply that is still read reads as interrupted elsewhere, and its loop raises at its end.
        """
        self._write(self._drafts(), last=True)

    def parts_after(self, draft: str, written: int) -> Sequence[str]:
        """Return what arrived here of a draft that another append ends, and is not written."""
        return [part for mine in self._drafts() for part in mine.parts_after(draft, written)]

    def _drafts(self) -> Sequence[ReplyDraft]:
        # The child of a fork writes nothing of its parent's.
        if not self._recorders or os.getpid() != self._process:
            return ()
        with self._lock:
            return [*self._recorders]

    def find(self, session_key: int, branch: int) -> ReplyDraft | None:
        """Return the draft of the reply that is recorded here on a branch."""
        return next((draft for draft in self._drafts() if draft.is_on(session_key, branch)), None)

    def _run(self) -> None:
        due = time.monotonic() + self._tick
        while True:
            woken = self._sleep(due)
            due = time.monotonic() + self._tick
            with self._lock:
                if self._thread is not threading.current_thread():
                    return  # an interrupt fell into ``add``, and another thread was started
                if not self._recorders:
                    self._thread = None
                    return
                recorders = [*self._recorders.items()]
            left = [draft for draft, recorder in recorders if recorder() is None]
            if self._write(left, last=True):
                for draft in left:
                    self.remove(draft)
            self._obey_signals()
            # A reply that is being stored needs no part.
            self._write(
                draft
                for draft in self._drafts()
                if not draft.ending.locked() and (woken or self._is_due(draft))
            )

    def _sleep(self, due: float) -> bool:
        """Wait until something is due; return whether this was woken."""
        woken = False
        with suppress(Empty):
            self._wake.get(timeout=max(0.0, due - time.monotonic()))
            woken = True
            while True:
                self._wake.get_nowait()
        return woken

    def _is_due(self, draft: ReplyDraft) -> bool:
        every = self._followed if draft.is_followed else self._every
        return time.monotonic() - draft.part_at >= every - self._tick / 2

    def _obey_signals(self) -> None:
        """Do what others ask of the recorders here: stop a reply, or write it more often."""
        live = [(one, row) for one in self._drafts() if (row := one.live_row) is not None]
        with suppress(Exception):  # a store that does not answer is asked again
            found = self._ledger.drafts.signals([row for _, row in live])
            for (draft, row), signals in zip(live, found, strict=True):
                if signals is not None:
                    draft.is_followed = signals.is_followed
                    reason = signals.stop
                else:
                    reason = self._stopped_with(row)
                    if reason is None and draft.live_row is not None:
                        draft.note_overtaken()
                recorder = self._recorders.get(draft)
                reply = None if recorder is None else recorder()
                if reason is not None and reply is not None:
                    reply.stop(reason)

    def _stopped_with(self, draft: DraftRow) -> str | None:
        """Return why a draft was to stop that another append has ended since."""
        row = self._ledger.drafts.ended_as(
            draft.session_key, draft.branch, draft.id, draft.position
        )
        return None if row is None else stop_reason(row.message, row.annotations)

    def _write(self, drafts: Iterable[ReplyDraft], *, last: bool = False) -> bool:
        """Write the new parts of drafts; return False once the store takes nothing."""
        rest = iter(drafts)
        while some := [*islice(rest, _TOGETHER)]:
            for draft in some:
                with suppress(Exception):  # of its masker: the others are written
                    draft.make_part(last=last)
            if not self._write_together(some, last=last):
                return False
        return True

    def _write_together(self, drafts: Sequence[ReplyDraft], *, last: bool) -> bool:
        """Write new parts in one transaction; return False if the store takes nothing."""
        try:
            with self._writing:
                found = [(draft, draft.new_parts(last=last)) for draft in drafts]
                new = [(draft, parts) for draft, parts in found if parts is not None]
                if new:
                    mine = self._ledger.drafts.write_parts([parts for _, parts in new], last=last)
                    for (draft, parts), is_mine in zip(new, mine, strict=True):
                        draft.note_written(parts, mine=is_mine)
                return True
        except (StoreBusy, StoreFull):
            return False
        except Exception:
            # One of them cannot be written: write the others without it.
            if len(drafts) == 1:
                return True
        return all([self._write_together([draft], last=last) for draft in drafts])


def _at_the_end() -> None:
    for writer in [*_writers]:
        writer.write_all()


atexit.register(_at_the_end)
