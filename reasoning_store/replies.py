"""A reply that is being recorded: what has arrived of it, and what becomes of that.

A draft is begun before the first event is read; what arrives is kept in it until the reply
is stored, complete or interrupted, or dropped where nothing arrived. Each step either only
computes or only writes, so that ``recorder`` drives them from a loop and ``aio_recorder``
from an asynchronous one.

It knows the ledger's drafts. It must not know who iterates: no loop, no task, no closing of
streams.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from reasoning_store import streams
from reasoning_store.blocks import Message, Origin
from reasoning_store.chunks import Chunk
from reasoning_store.egress.request import Request
from reasoning_store.errors import Conflict, UsageError
from reasoning_store.ingress.drafting import Draft
from reasoning_store.ingress.normalizer import StreamNormalizer, Tags
from reasoning_store.ledger.values import DraftRow, Growth, SessionRow
from reasoning_store.ledger.verbs import drafting
from reasoning_store.stored import Stored, told

if TYPE_CHECKING:
    from reasoning_store.workings import Workings

PART_SECONDS = 1.0
PART_CHARACTERS = 65_536
"""How much of a reply may be in memory only: a second of it, or this much."""


class Reply:
    """One reply on its way into a session: what has arrived, and what becomes of it.

    A draft is begun before the first event is read, so that an attempt that was made
    before is refused in time, and nothing that arrives is only in memory for long. The
    draft keeper's thread writes it; everything else happens in the caller's.
    """

    def __init__(
        self,
        workings: Workings,
        row: SessionRow,
        branch: int,
        *,
        origin: Origin,
        tags: Tags,
        starts_inside: bool | None,
        merge: bool,
        request: Request | None,
        idempotency_key: str | None,
    ) -> None:
        self._workings = workings
        self._ledger = workings.ledger
        self._row = row
        self._branch = branch
        self._origin = origin
        self._sent = _sent(self._origin, request)
        self._key = idempotency_key
        self._normalizer = StreamNormalizer(
            origin.provider,
            origin.model,
            origin.api,
            base_url=origin.base_url,
            tags=tags,
            starts_inside=starts_inside,
            merge=merge,
        )
        self._pieces = Draft(self._workings.masker)
        self._draft: DraftRow | None = None
        self._unwritten: list[tuple[str, int]] = []
        """Parts, each with its number."""
        self._numbers = count(1)
        self._taken = False
        """Somebody else has ended the draft, or is about to."""
        self._renewed = 0.0
        self.forked()
        self._waiting = False
        self._arrived = False
        self._told = False
        self.over = False
        self.conflict: Conflict | None = None
        self.failure: Exception | None = None
        self.stored: Stored | None = None

    def forked(self) -> None:
        """Hold nothing, whoever held it."""
        self._ending = threading.Lock()
        # What has arrived: another thread may leave the recording than reads it. Never held
        # while a disk is waited for.
        self._adding = threading.Lock()

    @property
    def message(self) -> Message | None:
        """What was stored, or before that what has arrived so far."""
        if self.stored is not None:
            return self.stored.message
        return self._normalizer.snapshot() if self._arrived else None

    def begin(self) -> None:
        """Begin the draft. Writes the store; refuses an attempt that was made before."""
        if self._draft is not None or self.over:
            return
        try:
            self._draft = self._ledger.begin_draft(
                self._row.key,
                self._branch,
                origin=self._origin,
                sent=self._sent,
                idempotency_key=self._key,
                resolve=self._workings.resolve,
            )
        except Conflict as conflict:
            self.over = True
            raise told(conflict) from None
        self._renewed = time.monotonic()
        self._workings.draft_keeper.add(self)

    def expect(self) -> None:
        """The model is being waited for; the draft is kept alive meanwhile."""
        self._waiting = True

    def feed(self, raw: Any) -> list[Chunk]:
        """Take in one event. Computes only."""
        if not self._arrived:
            streams.check_first(raw)
        return self._take(self._normalizer.feed, raw)

    def feed_whole(self, body: Any) -> list[Chunk]:
        """Take in a whole response. Computes only."""
        return self._take(self._normalizer.feed_whole, body)

    def _take(self, read: Callable[[Any], list[Chunk]], raw: Any) -> list[Chunk]:
        self._waiting = False
        with self._adding:
            if self.over:
                raise UsageError(
                    "this recording is over: it was left while its stream was read",
                    hint="end the task or the thread that reads it before it is left",
                )
            chunks = read(raw)
            self._arrived = True
            self._pieces.add((*chunks, *self._normalizer.unseen))
        if self._pieces.size >= PART_CHARACTERS:
            self._workings.draft_keeper.hurry()
        return chunks

    def gather(self, *, last: bool) -> None:
        """Make a part of what has arrived since the last one. Computes only."""
        with self._ending:
            if not (self.over or self._taken):
                self._gather(last=last)

    def _gather(self, *, last: bool) -> None:
        with self._adding:
            if last:
                self._pieces.settle()
            part = self._pieces.take()
        if part is not None:
            # One call that runs no Python: an interrupt finds both done, or neither.
            self._unwritten.extend(zip((part,), self._numbers, strict=False))

    def due(self, *, last: bool) -> Growth | None:
        """Return what is to be written of it now: its parts, or whether its recorder lives."""
        draft, parts = self._draft, [*self._unwritten]
        if draft is None or self._taken:
            return None
        if parts:
            return Growth(draft, parts[0][1], tuple([part for part, _ in parts]))
        waits = self._waiting and time.monotonic() - self._renewed > drafting.LEASE / 3
        return Growth(draft) if waits or last else None

    def kept(self, written: Growth, *, mine: bool) -> None:
        """That was written; or the draft is somebody's who is yet to ask for it."""
        if mine:
            self._renewed = time.monotonic()
            del self._unwritten[: len(written.parts)]
        else:
            self._taken = True

    @property
    def is_ending(self) -> bool:
        """Whether it is being masked, counted and stored at this moment."""
        return self._ending.locked()

    @property
    def place(self) -> tuple[int, int] | None:
        """The session and the branch of the draft, while there is one."""
        draft = self._draft
        return None if draft is None else (draft.session_key, draft.branch)

    def rest(self, draft: str, written: int) -> Sequence[str]:
        """Return what arrived of a draft that somebody ends, behind the parts it has there."""
        mine = self._draft
        if mine is None or mine.id != draft:
            return ()  # nobody waits for what another session's reply is about
        with self._ending:
            if self._draft is None:
                return ()
            self._taken = True  # from here on nothing is written of it
            self._gather(last=True)
            # Some of these may be there, where nobody could say so any more.
            return [part for part, number in [*self._unwritten] if number > written]

    def complete(self) -> list[Chunk]:
        """End a reply whose stream has ended. Writes the store."""
        with self._adding:
            rest = [] if self.over else self._normalizer.close()
        self._save(interrupted=False)
        self.tell(None)
        return rest

    def leave(self, error: BaseException | None) -> None:
        """Keep what arrived of a reply that was left. Writes the store."""
        try:
            self._save(interrupted=True)
        except Exception as failure:
            self.lose(failure, error)
        else:
            if error is not None and not isinstance(error, GeneratorExit):
                self.tell(error)

    def lose(self, failure: Exception, error: BaseException | None) -> None:
        """Take note of why a reply that was left could not be stored.

        The application's own exception goes on; ``tell`` says on it what was lost.
        """
        self.failure = failure
        self._end()
        if error is None or isinstance(error, GeneratorExit):
            raise failure
        self.tell(error)

    def tell(self, error: BaseException | None) -> None:
        """Say once what became of the reply: on an exception of the application's, else raised."""
        problem = self.conflict or self.failure
        if problem is None or problem is error or self._told:
            return
        self._told = True
        if error is None:
            raise problem
        what = "stored again" if problem is self.conflict else "stored"
        error.add_note(f"the interrupted reply could not be {what}: {problem}")

    def _save(self, *, interrupted: bool) -> None:
        # Held to the end: whoever closes the store or ends the draft comes before all of it or
        # after.
        with self._ending:
            if self.over or self._draft is None:
                self.over = True
                return
            try:
                self._store(self._draft, interrupted=interrupted)
            except Conflict as conflict:
                self.conflict = told(conflict)
            except Exception:
                self._end()
                raise
            # An interrupt goes on, and finds a reply that can still be left.
            self._end()

    def _end(self) -> None:
        self.over = True
        self._draft = None
        self._workings.draft_keeper.discard(self)

    def _store(self, draft: DraftRow, *, interrupted: bool) -> None:
        with self._adding:
            message = self._normalizer.finish(interrupted) if self._arrived else None
            if message is not None and interrupted and not self._normalizer.others:
                # A stream that was left before it said anything has said that it begins.
                self._arrived = _says(message)
        if message is None or not self._arrived:
            self._ledger.drop_draft(draft)
            return
        # Each further choice goes to a fork beside it.
        entry, *beside = [
            self._workings.entry(choice, self._row.encoding, self._sent)
            for choice in (message, *self._normalizer.others)
        ]
        (row,) = self._ledger.finish_draft(draft, [entry], beside=beside)
        self.stored = Stored(row)


def _says(message: Message) -> bool:
    return bool(
        message.blocks
        or message.usage is not None
        or message.finish_reason is not None
        or message.metadata
    )


def _sent(to: Origin, request: Request | None) -> dict[str, Any]:
    """Return what is kept of the request that a reply answers; its address holds no login."""
    sent: dict[str, Any] = {
        "provider": to.provider,
        "model": to.model,
        "api": to.api,
        "baseUrl": to.base_url,
    }
    if request is not None:
        sent |= {"settings": request.settings.by_key(), "digest": request.digest}
    return sent
