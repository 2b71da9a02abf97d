"""One request of a client and its reply, from the bytes that are sent to the stored message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import BodyForm
from reasoning_store.results import ClientConversation

MATCH_HEADER = "X-Reasoning-Match"
SESSION_HEADER = "X-Reasoning-Session"
RESTORED_HEADER = "X-Reasoning-Restored"
ERROR_HEADER = "X-Reasoning-Store-Error"
STORE_HEADER = "X-Reasoning-Store"
STORED_HEADER = "X-Reasoning-Stored"


def why_unstored(body: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return why nothing of a request is stored: its client says so in a header or in its body."""
    asked = headers.get(STORE_HEADER)
    if asked == "yes":
        return None
    if asked == "no":
        return f"{STORE_HEADER}: no"
    if asked:
        raise rs.InvalidCall(f"{STORE_HEADER}: yes or no", hint=f"{STORE_HEADER}: yes")
    return "store=false" if body.get("store") is False else None


class Exchange:
    """One request of a client and its reply. Made by ``EchoMatcher.begin``.

    Send ``body``. Then give a whole response to ``record``. Of a stream, give each piece to
    ``feed``, call ``begin_stream`` once ``is_ready``, and call ``finish`` before you pass the last
    event on. Call ``leave`` if the stream breaks off.
    """

    def __init__(
        self,
        body: Mapping[str, Any],
        form: BodyForm,
        *,
        names: Mapping[str, Any],
        raises: bool,
        takes_reply_id: bool,
        unstored: str | None = None,
    ) -> None:
        """With ``takes_reply_id`` the reply is stored under its provider's id."""
        self.body = body
        """The body to send: that of the client, with the thinking that was put back."""
        self.names = names
        """The provider, the protocol, the model and the address, as ``record`` takes them."""
        self.conversation: ClientConversation | None = None
        """The conversation; ``None`` where the store could not be used."""
        self.session: rs.Session | None = None
        """The session that holds the conversation, once what the client sent is stored."""
        self.restored = 0
        """How many replies got their thinking back."""
        self.missed: Mapping[int, str] = {}
        """Why stored thoughts do not go back, by the index of the client's reply."""
        self.left_out = 0
        """How many replies have stored thoughts of which none is sent."""
        self.is_rendered = False
        """Whether the client is given the thinking in the text."""
        self.metadata: Mapping[str, Any] | None = None
        """The first annotations of the reply."""
        self.make_facts: Callable[[], Mapping[str, Any]] = dict
        """Returns the title and the metadata of a session that is made."""
        self.reply_id: str | None = None
        """The provider's id of the reply, once it has come."""
        self.is_refused = False
        """Whether the provider refused the request: then it makes no session."""
        self.error: str | None = None
        """The name of the store's error, where the chat went on without the store."""
        self.is_unsaved = False
        """Whether the reply came, and the store refused its end: ``save`` stores it later."""
        self._form = form
        self._raises = raises
        self._takes_reply_id = takes_reply_id
        self.unstored = unstored
        """Why nothing is stored of the request and its reply; ``None`` where they are."""
        self._read_reply: Callable[[rs.Message], None] | None = None
        self._reading: rs.StreamNormalizer | None = None
        self._events: rs.JSONEvents | None = rs.JSONEvents()
        self.is_stored = False
        """Whether the conversation is stored, now or with the reply's first event."""
        self._new: Sequence[rs.Message] | None = None
        """The client's messages that are to be stored."""
        self._waiting: list[Any] = []
        """The first events of a stream, until it is recorded."""
        self._beginning = Lock()
        self._is_over = False
        """Whether the reply has ended, or the store has failed: nothing more is recorded."""
        self._recording: rs.Recording | None = None
        self._recorded: rs.Recording | None = None

    def replace_parts(self, parts: Sequence[Any]) -> None:
        """Send these messages in place of the client's."""
        self.body = {**self.body, self._form.messages_key: parts}

    def fail(self, error: rs.ReasoningStoreError) -> None:
        """Note an error of the store, which records no more; raise it if that is asked for."""
        refused = isinstance(error, rs.StoreBusy | rs.StoreFull)
        self.is_unsaved = refused and (self._recorded is not None or bool(self._waiting))
        self.error, self._recording = type(error).__name__, None
        if not self.is_unsaved:
            self._waiting, self._is_over = [], True
        if self._raises:
            raise error

    @property
    def reply(self) -> rs.Message | None:
        """The reply that was recorded, or the part of it that arrived."""
        return None if self._recorded is None else self._recorded.message

    @property
    def headers(self) -> dict[str, str]:
        """The headers that report what was done."""
        lacking = self.restored + len(self.missed) + self.left_out
        found = {RESTORED_HEADER: f"{self.restored}/{lacking}"}
        if self.missed:
            why = ", ".join(dict.fromkeys(self.missed.values()))
            found[RESTORED_HEADER] += f"; missed={len(self.missed)} ({why})"
        if self.left_out:
            found[RESTORED_HEADER] += f"; left_out={self.left_out}"
        if (conversation := self.conversation) is not None:
            found[MATCH_HEADER] = conversation.match
            exists = (self.session or conversation.session) is not None
            is_named = self.is_stored and (exists or not self.is_refused)
            if is_named and _fits_header(conversation.session_id):
                found[SESSION_HEADER] = conversation.session_id
        if self.unstored is not None:
            found[STORED_HEADER] = f"no ({self.unstored})"
        if self.error is not None:
            found[ERROR_HEADER] = self.error
        return found

    def read_reply(self, read: Callable[[rs.Message], None], *, unstored: str) -> None:
        """Have the reply read that is not stored, for the reason ``unstored``."""
        self._read_reply, self.unstored = read, unstored
        self._reading = rs.StreamNormalizer(**self.names)

    def keep(self, new: Sequence[rs.Message]) -> None:
        """Have these messages stored with the reply's first event, and the reply after them."""
        self._new, self.is_stored = new, True

    def store_request(self) -> None:
        """Store what the client sent: a request that is refused stores nothing."""
        if self._new is not None and self.conversation is not None:
            facts = self.make_facts() if self.conversation.session is None else {}
            self.session = self.conversation.store(self._new, **facts)
            self._new = None

    def record(self, content: bytes) -> None:
        """Store a whole response, or a list of a stream's events; other content is left out."""
        if not self.is_stored and self._read_reply is None:
            return
        try:
            response = json.loads(content)
        except (ValueError, RecursionError):
            return
        if not isinstance(response, dict | list):
            return
        self._note_id(response)
        with self._reporting():
            if self._read_reply is not None:
                if isinstance(response, dict):
                    self._read_reply(rs.normalize_response(response, **self.names))
                return
            self.store_request()
            is_list = isinstance(response, list)
            whole = [*map(self._kept, response)] if is_list else self._kept(response)
            recording = self._recorded = self._enter_recording(whole)
            for _ in recording:
                pass
            recording.__exit__(None, None, None)

    def begin_stream(self) -> None:
        """Begin to record a stream, with the events that have come. It writes the store."""
        with self._beginning:
            self._begin()

    def _begin(self) -> None:
        if self._is_over or self._recording is not None or not self.is_stored:
            return
        with self._reporting():
            self.store_request()
            self._recorded = self._recording = self._enter_recording()
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                self._recording.feed(event)

    def _enter_recording(self, *whole: Any) -> rs.Recording:
        assert self.session is not None
        assert self.conversation is not None
        asked = self.conversation.asked._replace(is_rendered=self.is_rendered)
        record = partial(
            self.session.record, *whole, **self.names, asked=asked, metadata=self.metadata
        )
        if self._takes_reply_id and self.reply_id is not None:
            # Without it where it cannot be an id, or where the provider has given it twice.
            with suppress(rs.Conflict, rs.InvalidCall):
                return record(id=self.reply_id).__enter__()
        return record().__enter__()

    @property
    def is_ready(self) -> bool:
        """Whether the first event has come, and its id: call ``begin_stream``."""
        return bool(self._waiting) and not self.needs_id

    @property
    def needs_id(self) -> bool:
        """Whether the stream is recorded under an id that has not come."""
        return self._takes_reply_id and self.reply_id is None

    def feed(self, piece: bytes) -> bool:
        """Read a piece of a stream; return whether its last event was in it. Writes nothing."""
        if self._events is None:
            return False
        is_last = self._feed_events(self._events.feed(piece))
        return is_last or self._events.done

    def _feed_events(self, events: Sequence[Any]) -> bool:
        is_last = False
        for event in events:
            if self.reply_id is None and isinstance(event, dict):
                self._note_id(event.get("response") or event.get("message") or event)
            event = self._kept(event)
            if self._recording is not None:
                try:
                    self._recording.feed(event)
                except rs.ReasoningStoreError as error:
                    self.fail(error)
            elif self._reading is not None:
                self._reading.feed(event)
            elif self.is_stored and not self._is_over:
                self._waiting.append(event)
            is_last = is_last or self._form.ends(event)
        return is_last

    def _kept(self, event: Any) -> Any:
        """Return an event without the fields that make ids which the client does not send."""
        if self._form.unkept and isinstance(event, dict):
            return {name: one for name, one in event.items() if name not in self._form.unkept}
        return event

    def _note_id(self, response: Any) -> None:
        found = response.get("id") if isinstance(response, dict) else None
        self.reply_id = found if isinstance(found, str) else None

    @property
    def is_stopped(self) -> bool:
        """Whether ``Session.stop`` ended the reply: read no more of its stream."""
        return self._recording is not None and self._recording.is_stopped

    def finish(self) -> None:
        """Store the reply, whose stream has ended. A second call does nothing."""
        events, self._events = self._events, None
        if events is not None:
            self._feed_events(events.finish())
        self._end(is_whole=True)

    def leave(self) -> None:
        """Store the part that arrived of a reply whose stream broke off, as interrupted."""
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        with self._beginning:  # it may be begun by a thread whose client has left
            if self._waiting:  # the id did not come
                self._begin()
            recording, self._recording, self._is_over = self._recording, None, True
            reading, self._reading = self._reading, None
        if self._read_reply is not None and reading is not None and is_whole:
            with self._reporting():
                self._read_reply(reading.finish())
        if recording is None:
            return
        with self._reporting():
            if is_whole:
                recording.finish()
            recording.__exit__(None, None, None)

    def save(self) -> bool:
        """Store a reply whose end the store refused; return whether it need not be tried again."""
        if self._recorded is not None and self.is_unsaved:
            with suppress(rs.Conflict):  # it was ended as interrupted meanwhile
                try:
                    self._recorded.save()
                except (rs.StoreBusy, rs.StoreFull):
                    return False
        elif self.is_unsaved:
            self._raises, self._is_over, self.is_unsaved = False, False, False
            self._end(is_whole=self._events is None)
            return not self.is_unsaved
        self.is_unsaved = False
        return True

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Note an error of the store, and let the chat go on if that is asked for."""
        try:
            yield
        except rs.ReasoningStoreError as error:
            self.fail(error)


def _fits_header(id: str) -> bool:
    """Whether a header can hold an id: one with other letters or a line break is left out."""
    return id.isascii() and id.isprintable()
