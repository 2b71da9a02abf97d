"""One reply on its way into a session: its events read, its draft kept, its end stored.

A draft is begun before the first event is read. Each step either only computes or only writes,
so that a loop and an asynchronous loop can drive the same steps.

States: *begun* with a draft, which another append may end; *stopped* by another; *over* if it
takes no more events; *stored* with its message. If it is over and not stored, nothing arrived, or
there was a conflict or a failure (see ``save``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.chunks import Chunk, FinishChunk
from reasoning_store.conversation.errors import Conflict, InvalidCall, StoreBusy, StoreFull
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.notices import give_notice
from reasoning_store.conversation.validation import describe
from reasoning_store.ingress.masking import mask_origin, mask_value
from reasoning_store.ingress.normalizer import StreamNormalizer
from reasoning_store.ledger.records import DraftRow
from reasoning_store.recording.draft_writer import PART_CHARACTERS
from reasoning_store.recording.reply_draft import ReplyDraft
from reasoning_store.recording.reply_facts import (
    ReplyTimes,
    check_metadata,
    has_more_than_origin,
    origin_and_tags,
    request_facts,
)
from reasoning_store.recording.streams import check_first
from reasoning_store.stored_values import (
    STOP_REASON,
    STOPPED,
    Stored,
    as_public_conflict,
    stop_reason,
)

if TYPE_CHECKING:
    from reasoning_store.egress.request import Request
    from reasoning_store.sessions.branch import SessionBranch
    from reasoning_store.sessions.view import ContextOptions

_SAVE = "once the store answers again, .save() of the recording stores this reply"


class ReplyRecorder:
    """One reply that is being recorded.

    It ends by one of these: ``complete``, its stream has ended; ``stop``, another process or thread
    asked for it; ``store_partly``, its loop was left. Without any of them its lease ends it.
    """

    def __init__(
        self,
        branch: SessionBranch,
        request: Request | None,
        options: ContextOptions,
        *,
        id: str | None = None,
        idempotency_key: str | None,
        starts_inside: bool | None,
        merge: bool,
        metadata: Mapping[str, Any] | None = None,
        asked: Asked | None = None,
    ) -> None:
        origin, tags = origin_and_tags(branch.view, request, options)
        self._state = branch.state
        self._ledger = branch.state.ledger
        self._row = branch.row
        self._branch = branch
        masker = self._state.masker
        self._origin = origin if masker is None else mask_origin(origin, masker)
        self._request_facts = request_facts(self._origin, request)
        self._answers_request = request is not None
        self._id = id
        self._key = idempotency_key
        self._asked = asked
        self._normalizer = StreamNormalizer(
            origin.provider,
            origin.model,
            options.api,
            base_url=origin.base_url,
            usual_api=origin.api,
            tags=tags,
            starts_inside=starts_inside,
            merge=merge,
            contracts=self._state.contracts,
        )
        given = check_metadata(metadata)
        self._annotations = given if given is None or masker is None else mask_value(given, masker)
        self._times = ReplyTimes()
        self._process = os.getpid()
        self.draft = ReplyDraft(masker)
        self._has_events = self._is_empty = False
        self._last_chunks: list[Chunk] = []
        self._was_reported = self._is_interrupted = False
        self._stop_reason: str | None = None
        self.on_stop: Callable[[], None] | None = None
        """Ends the loop's wait for its stream, once the reply was stopped and is stored."""
        self.over = False
        self.problem: Exception | None = None
        """Why nothing was stored: another writer came first, or the store refused it."""
        self.stored: Stored | None = None

    @property
    def has_arrived(self) -> bool:
        """Whether an event was added, and the message is more than its origin."""
        return self._has_events and not self._is_empty

    @property
    def message(self) -> Message | None:
        """The message that was stored, or what has arrived of it."""
        if self.stored is not None:
            return self.stored.message
        return self._normalizer.snapshot() if self.has_arrived else None

    @property
    def described(self) -> str:
        """The place and the status of the reply, for ``repr``."""
        where = f"in {describe(self._row.id)}"
        if self.stored is not None:
            return f"{self.stored.message.status} at {self.stored.position} {where}"
        state = "ended, not stored" if self.over else "not begun"
        return f"{'streaming' if self.has_arrived and not self.over else state} {where}"

    # The loop's steps

    def begin(self) -> None:
        """Begin the draft. Writes the store; refuses a key whose reply is stored already."""
        if self.draft.row is not None or self.over:
            return
        try:
            row = self._ledger.drafts.begin(
                self._row.key,
                self._branch.number,
                origin=self._origin,
                request_facts=self._request_facts,
                annotations=self._annotations,
                id=self._id,
                idempotency_key=self._key,
                asked=self._asked,
                draft_message=self._state.draft_message,
            )
        except Conflict as conflict:
            self.over = True
            raise as_public_conflict(conflict) from None
        self.draft.start(row)
        self._times.begin(time.monotonic())
        self._state.draft_writer.add(self)

    def wait(self) -> None:
        """Note that the stream is waited for: its draft's lease is renewed meanwhile."""
        self.draft.note_waiting()

    def feed(self, event: Any) -> list[Chunk]:
        """Add one event. Computes only."""
        if not self.has_arrived:
            check_first(event)
        return self._add(self._normalizer.feed, event, is_stream=True)

    def feed_whole(self, body: Any) -> list[Chunk]:
        """Add a whole response. Computes only."""
        return self._add(self._normalizer.feed_whole, body, is_stream=False)

    def _add(self, read: Callable[[Any], list[Chunk]], raw: Any, *, is_stream: bool) -> list[Chunk]:
        draft = self.draft
        draft.note_arrival()
        with draft.adding:
            if self.is_stopped:  # it may be on its way into the store
                return []
            if self.over:
                raise InvalidCall(
                    "this recording is over: it was left while its stream was read",
                    hint="end the task or the thread that reads it before it is left",
                )
            chunks = read(raw)
            if is_stream:
                self._times.note_chunks(chunks, time.monotonic())
            self._has_events = True
            draft.parts.add(chunks)
        if draft.parts.size >= PART_CHARACTERS:
            self._state.draft_writer.wake()
        return chunks

    def complete(self) -> list[Chunk]:
        """End a reply whose stream has ended. Writes the store."""
        with self.draft.adding:
            if not (self.over or self.is_stopped):
                self._last_chunks = self._normalizer.close()
                self.draft.parts.add(self._last_chunks)
        self._end(interrupted=False)
        self.report(None)
        if self.is_stopped:
            last = [chunk for chunk in self._last_chunks if not isinstance(chunk, FinishChunk)]
            return [*last, FinishChunk(reason=STOPPED)] if self.has_arrived else []
        if self._normalizer.is_unread:
            give_notice(
                f"no event of this stream was understood as {self._normalizer.api}: the reply is"
                " stored as interrupted, its events under unknownEvents in its metadata"
                " (record(..., api=) names another protocol)",
                stacklevel=3,
            )
        return self._last_chunks

    @property
    def is_stopped(self) -> bool:
        """Whether this reply was stopped: its loop ends, and it is stored as far as it came."""
        return self._stop_reason is not None

    def stop(self, reason: str) -> None:
        """Store what arrived of a reply that is to stop, and end its loop. Writes the store."""
        with self.draft.ending:
            if self.over or self.draft.row is None:
                return
            self._stop_reason, self._is_interrupted = reason, True
            try:
                self._store(self.draft.row)
            except Exception as failure:
                self.problem = failure
        if self.on_stop is not None:
            self.on_stop()

    def store_partly(self, error: BaseException | None) -> None:
        """Store what arrived of a reply that was left. Writes the store."""
        try:
            self._end(interrupted=True)
        except Exception as failure:
            self.note_failure(failure, error)
        else:
            self.report(error)

    def note_failure(self, failure: Exception, error: BaseException | None) -> None:
        """Note why a reply that was left could not be stored.

        The application's own exception goes on, with a note.
        """
        self.problem, self.over = failure, True
        self.report(error)

    def report(self, error: BaseException | None) -> None:
        """Report once why nothing was stored: as a note on ``error``, or raised without one."""
        problem = self.problem
        if problem is None or problem is error or self._was_reported:
            return
        self._was_reported = True
        if error is None:
            raise problem
        is_overtaken = isinstance(problem, Conflict)
        what = "was ended by another writer" if is_overtaken else "could not be stored"
        helps = f"; {_SAVE}" if isinstance(problem, StoreBusy | StoreFull) else ""
        error.add_note(f"the interrupted reply {what}: {problem}{helps}")

    def save(self) -> Stored | None:
        """Store a reply whose end the store refused. Writes the store."""
        if not self.over:
            raise InvalidCall(
                "this reply is still being recorded",
                hint="read its stream to the end, or leave the loop",
            )
        with self.draft.ending:
            if self.draft.row is not None:
                self.problem = None
                self._store(self.draft.row)
        if isinstance(self.problem, Conflict):
            raise self.problem
        return self.stored

    # The end

    def _end(self, *, interrupted: bool) -> None:
        if os.getpid() != self._process:
            # Refused in the child of a fork, where a lock may be held for ever.
            self._ledger.branches.get(self._row.key, self._branch.number)
        with self.draft.ending:
            if self.over or self.draft.row is None:
                self.over = True
                return
            self._is_interrupted = interrupted
            self._store(self.draft.row)

    def _store(self, draft: DraftRow) -> None:
        try:
            self.stored = self._finish(draft)
        except Conflict as conflict:
            conflict = as_public_conflict(conflict)
            ended = conflict.stored
            is_mine = isinstance(ended, Stored) and ended.id == draft.id
            if is_mine and stop_reason(ended.message, ended.annotations) is not None:
                self.stored = ended
            else:
                self.problem = conflict
        except Exception as error:
            # The draft stays, so that ``save`` can end it, but its lease is not renewed.
            self.over = True
            self.draft.end()
            if isinstance(error, StoreBusy | StoreFull):
                raise type(error)(str(error), hint=_SAVE) from error
            raise
        self.over = True
        self.draft.detach()
        self._state.draft_writer.remove(self.draft)

    def _finish(self, draft: DraftRow) -> Stored | None:
        normalizer = self._normalizer
        with self.draft.adding:
            self._last_chunks += normalizer.close(interrupted=self._is_interrupted)
            message = normalizer.finish(self._is_interrupted) if self._has_events else None
        if message is not None and self._is_interrupted and not normalizer.others:
            # Some streams begin with an event that holds nothing.
            self._is_empty = not has_more_than_origin(message)
        if message is None or not self.has_arrived:
            self._ledger.drafts.drop(draft)
            return None
        annotations = {**(self._annotations or {}), **self._times.to_annotations()}
        if self._stop_reason is not None:
            message = replace(message, finish_reason=STOPPED)
            annotations[STOP_REASON] = self._stop_reason
        if not self._answers_request and message.origin is not None:
            self._request_facts["api"] = message.origin.api  # the next request goes the same way
        # Each further choice becomes a fork.
        prepare, encoding = self._state.prepare, self._row.encoding
        facts, asked = self._request_facts, self._asked
        entry = prepare(message, encoding, facts, annotations=annotations, asked=asked)
        alternatives = [
            prepare(choice, encoding, facts, asked=asked) for choice in normalizer.others
        ]
        (row,) = self._ledger.drafts.finish(draft, [entry], alternatives=alternatives)
        return Stored(row)
