"""One request of a client and its reply, from the bytes that are sent to the stored message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import BodyForm

SESSION_HEADER = "X-Reasoning-Session"
RESTORED_HEADER = "X-Reasoning-Restored"
ERROR_HEADER = "X-Reasoning-Store-Error"


class Exchange:
    """One request of a client and its reply. Made by ``EchoMatcher.begin``.

    Send ``body``. Then give a whole response to ``record``. Of a stream, call ``begin_stream``,
    give each piece to ``feed``, call ``begin_stream`` again once ``is_ready``, and call ``finish``
    before you pass the last event on. Call ``leave`` if the stream breaks off.
    """

    def __init__(
        self,
        body: Mapping[str, Any],
        form: BodyForm,
        *,
        names: Mapping[str, Any],
        raises: bool,
        takes_reply_id: bool,
    ) -> None:
        """With ``takes_reply_id`` the reply is stored under its provider's id."""
        self.body = body
        """The body to send: that of the client, with the thinking that was put back."""
        self.names = names
        """The provider, the protocol, the model and the address, as ``record`` takes them."""
        self.session: rs.Session | None = None
        """The session that holds the conversation; ``None`` where the store could not be used."""
        self.restored = 0
        """How many replies got their thinking back."""
        self.missed = 0
        """How many replies without thinking are not in the store."""
        self.left_out = 0
        """How many replies without thinking have some in the store, which is not sent."""
        self.reply_id: str | None = None
        """The provider's id of the reply, once it has come."""
        self.error: str | None = None
        """The name of the store's error, where the chat went on without the store."""
        self.is_unsaved = False
        """Whether the reply came, and the store refused its end: ``save`` stores it later."""
        self._form = form
        self._raises = raises
        self._takes_reply_id = takes_reply_id
        self._events: rs.JSONEvents | None = rs.JSONEvents()
        self._waiting: list[Any] = []
        """The first events of a stream, until the id is known under which it is recorded."""
        self._recording: rs.Recording | None = None
        self._recorded: rs.Recording | None = None

    def replace_parts(self, parts: Sequence[Any]) -> None:
        """Send these messages in place of the client's."""
        self.body = {**self.body, self._form.messages_key: parts}

    def fail(self, error: rs.ReasoningStoreError) -> None:
        """Note an error of the store, which records no more; raise it if that is asked for."""
        refused = isinstance(error, rs.StoreBusy | rs.StoreFull)
        self.is_unsaved = refused and self._recorded is not None
        self.error, self._recording = type(error).__name__, None
        self._takes_reply_id, self._waiting = False, []
        if self._raises:
            raise error

    @property
    def reply(self) -> rs.Message | None:
        """The reply that was recorded, or the part of it that arrived."""
        return None if self._recorded is None else self._recorded.message

    @property
    def headers(self) -> dict[str, str]:
        """The headers that report what was done."""
        lacking = self.restored + self.missed + self.left_out
        found = {RESTORED_HEADER: f"{self.restored}/{lacking}"}
        for name in ("missed", "left_out"):
            if count := getattr(self, name):
                found[RESTORED_HEADER] += f"; {name}={count}"
        if self.session is not None and _fits_header(self.session.id):
            found[SESSION_HEADER] = self.session.id
        if self.error is not None:
            found[ERROR_HEADER] = self.error
        return found

    def record(self, content: bytes) -> None:
        """Store a whole response; one that is no JSON object is left out."""
        if self.session is None:
            return
        try:
            response = json.loads(content)
        except (ValueError, RecursionError):
            return
        if not isinstance(response, dict):
            return
        self._note_id(response)
        with self._reporting():
            recording = self._recorded = self._enter_recording(self.session, response)
            for _ in recording:
                pass
            recording.__exit__(None, None, None)

    def begin_stream(self) -> None:
        """Begin to record a stream; one that is stored under its id begins with its id."""
        if self.session is None or self._recording is not None or self._needs_id:
            return
        with self._reporting():
            self._recording = self._recorded = self._enter_recording(self.session)
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                self._recording.feed(event)

    def _enter_recording(self, session: rs.Session, *whole: Any) -> rs.Recording:
        if self._takes_reply_id and self.reply_id is not None:
            # Without it where it cannot be an id, or where the provider has given it twice.
            with suppress(rs.Conflict, rs.InvalidCall):
                return session.record(*whole, **self.names, id=self.reply_id).__enter__()
        return session.record(*whole, **self.names).__enter__()

    def _begin_waiting(self) -> None:
        """Begin to record a stream whose id did not come, or came with its last events."""
        if self._waiting:
            self._takes_reply_id = self._takes_reply_id and self.reply_id is not None
            self.begin_stream()

    @property
    def is_ready(self) -> bool:
        """Whether the stream's id has come: call ``begin_stream`` again, which writes."""
        return bool(self._waiting) and not self._needs_id

    @property
    def _needs_id(self) -> bool:
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
            if self._recording is None and self._takes_reply_id:
                self._waiting.append(event)
            elif self._recording is not None:
                try:
                    self._recording.feed(event)
                except rs.ReasoningStoreError as error:
                    self.fail(error)
            is_last = is_last or self._form.ends(event)
        return is_last

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
        self._begin_waiting()
        recording, self._recording = self._recording, None
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
