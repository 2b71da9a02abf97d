"""A reply that is followed while it is recorded, in this process or in another.

In the process that records it, each entry of the reply is passed on in memory as it arrives.
Elsewhere its draft is read from the store, many times a second, and its recorder writes it more
often while there are followers. A follower gets the stored text, so it gets no secrets that a
masker removes. Once the reply has ended, the rest is read from its stored message.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from reasoning_store.conversation.chunks import Chunk
from reasoning_store.conversation.errors import InvalidCall, ReasoningStoreError
from reasoning_store.ingress.draft_parts import Entry
from reasoning_store.ingress.followed_chunks import BEGIN, FollowedChunks, Place, Placed
from reasoning_store.ledger.records import Arrival
from reasoning_store.sessions.branch import SessionBranch

READ_SECONDS = 0.05
"""How often a draft of another process is read: by its key, in a small part of a millisecond."""
ALIVE_SECONDS = 0.25
"""How often a follower in memory looks whether its recorder is still there."""
_CURSOR = re.compile(r"([0-9a-f]{1,16})\.([^.]{1,64})\.([0-9]{1,15})\.([0-9]{1,15})")
_MADE = "the .cursor of a follower of this session; leave it out to start at the beginning"


class ReplyFollower:
    """One reply that is followed: the steps under both faces.

    ``take`` gives what has arrived. Between two of them ``wake`` is called when more has
    arrived in this process, from any thread.
    """

    def __init__(self, branch: SessionBranch, after: str | None) -> None:
        self._branch = branch
        self._drafts = branch.ledger.drafts
        self._after = _parse(after, branch.key)
        self.cursor = after
        self.over = False
        self.wake: Callable[[], None] = lambda: None
        self._id: str | None = None
        self._position = 0
        self._parts = 0
        self._chunks = FollowedChunks()
        self._heard: deque[Entry | None] | None = None

    def receive(self, entry: Entry | None) -> None:
        """Take the next entry of a reply of this process; None means that it has ended."""
        heard = self._heard
        if heard is not None:
            heard.append(entry)
            self.wake()

    @property
    def seconds(self) -> float:
        """For how long ``wake`` may be waited for."""
        return READ_SECONDS if self._heard is None else ALIVE_SECONDS

    def take(self) -> list[Placed]:
        """Return what has arrived since. Reads the store."""
        if self.over:
            return []
        if self._id is None:
            return self._begin()
        return self._hear_more() if self._heard is not None else self._read_more()

    def take_received(self) -> list[Placed]:
        """Return what has arrived in memory. Computes only."""
        found: list[Placed] = []
        heard = self._heard
        while heard and (entry := heard[0]) is not None:
            heard.popleft()
            found.extend(self._chunks.read(entry))
        return found

    def cursor_at(self, place: Place) -> str:
        """Return the cursor of a place in the reply."""
        return f"{self._branch.key:x}.{self._id}.{place.characters}.{place.marks}"

    def _begin(self) -> list[Placed]:
        draft = self._branch.state.draft_writer.find(self._branch.key, self._branch.number)
        heard: deque[Entry | None] = deque()
        self._heard = heard  # before it is passed anything
        recorded = None if draft is None else draft.add_follower(self.receive)
        arrival = self._drafts.arrived(self._branch.key, self._branch.number)
        if arrival is None or not arrival.is_live:
            self.over = True
            return []
        self._id, self._position = arrival.id, arrival.position
        self._chunks = FollowedChunks(self._place_in(arrival))
        if recorded is None or recorded[0] != arrival.id:
            self._heard = None
            self._keep_followed(arrival)
            return self._read(arrival.parts)
        _, written, waiting = recorded
        return self._read([*arrival.parts[:written], *waiting])

    def _place_in(self, arrival: Arrival) -> Place:
        if self._after is None:
            return BEGIN
        reply, place = self._after
        if reply != arrival.id:
            raise InvalidCall("after: the cursor of another reply, which has ended", hint=_MADE)
        return place

    def _hear_more(self) -> list[Placed]:
        found = self.take_received()
        if self._heard:
            found += self._finish()
        elif not found and self._is_abandoned():
            # It is no longer recorded here: continue from the store, at the same place.
            self._heard, self._parts = None, 0
            self._chunks = FollowedChunks(self._chunks.place)
        return found

    def _is_abandoned(self) -> bool:
        draft = self._branch.state.draft_writer.find(self._branch.key, self._branch.number)
        row = None if draft is None else draft.live_row
        return row is None or row.id != self._id

    def _read_more(self) -> list[Placed]:
        arrival = self._drafts.arrived(self._branch.key, self._branch.number, after=self._parts)
        if arrival is None or arrival.id != self._id:
            return self._finish()
        if arrival.is_live:
            self._keep_followed(arrival)
        else:
            self.over = True
        return self._read(arrival.parts)

    def _read(self, parts: Iterable[str]) -> list[Placed]:
        found: list[Placed] = []
        for part in parts:
            found.extend(self._chunks.read_part(part))
            self._parts += 1
        return found

    def _keep_followed(self, arrival: Arrival) -> None:
        # A store that only reads follows too: the parts then come once a second.
        with suppress(ReasoningStoreError):
            self._drafts.follow(self._branch.key, self._branch.number, arrival)

    def _finish(self) -> list[Placed]:
        self.over = True
        key, branch = self._branch.key, self._branch.number
        row = self._drafts.ended_as(key, branch, self._id or "", self._position)
        return [] if row is None else [*self._chunks.rest(row.message)]


class Following:
    """A reply that is followed from a loop. Made by ``Session.follow``.

    Iterate it for the chunks as they arrive; it ends when the reply ends, and at once where no
    reply is live.
    """

    def __init__(self, follower: ReplyFollower) -> None:
        self._follower = follower
        self._ready: deque[Placed] = deque()
        self._more = threading.Event()
        follower.wake = self._more.set

    @property
    def cursor(self) -> str | None:
        """The place after the last chunk: ``follow(after=cursor)`` reads on there, in any
        process."""
        return self._follower.cursor

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        follower = self._follower
        while not self._ready:
            if follower.over:
                raise StopIteration
            self._more.clear()
            self._ready.extend(follower.take())
            if not self._ready and not follower.over:
                self._more.wait(follower.seconds)
        chunk, place = self._ready.popleft()
        follower.cursor = follower.cursor_at(place)
        return chunk


def _parse(after: str | None, session_key: int) -> tuple[str, Place] | None:
    if after is None:
        return None
    found = _CURSOR.fullmatch(after) if isinstance(after, str) else None
    if found is None:
        raise InvalidCall("after: not a cursor", hint=_MADE)
    if int(found[1], 16) != session_key:
        raise InvalidCall("after: the cursor of another session", hint=_MADE)
    return found[2], Place(int(found[3]), int(found[4]))
