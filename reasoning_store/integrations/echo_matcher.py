"""Echo matching: a client's request gets back the thinking that the client lost.

Clients send back role, text and calls of a conversation, and lose the thoughts. The store finds
the conversation by them, or by the session that the client names. The replies that lack their
thinking get the stored one back where the settings and the provider want it. The new messages
and the reply are stored. A message that is not found is counted as missed, and stays as it is:
no thinking is ever invented.

Its only I/O is the store's. The HTTP transport of ``http.py`` is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import reasoning_store as rs
from reasoning_store.display.text_renderer import answers_without_sections
from reasoning_store.integrations.client_bodies import BodyForm, ClientMessage, find_form
from reasoning_store.results import FoundConversation, Owner
from reasoning_store.wire.sse import JSONEvents

SESSION_HEADER = "X-Reasoning-Session"
RESTORED_HEADER = "X-Reasoning-Restored"
ERROR_HEADER = "X-Reasoning-Store-Error"


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request of a client and its reply. Made by ``EchoMatcher.begin``.

    Send ``content``. Then ``record`` the whole response, or give each piece of a stream to
    ``feed`` and call ``finish`` before you pass its last event on; ``leave`` where the stream
    broke off.
    """

    body: Mapping[str, Any]
    session: rs.Session | None = None
    """The session that holds the conversation; ``None`` where the store could not be used."""
    restored: int = 0
    """How many replies got their thinking back."""
    missed: int = 0
    """How many replies without thinking are not in the store."""
    reply_id: str | None = None
    """The provider's id of the reply, once it has come."""
    error: str | None = None
    """The name of the store's error, where the chat went on without the store."""
    _given: bytes = field(repr=False)
    _form: BodyForm
    _names: Mapping[str, Any]
    _raises: bool = False
    _is_changed: bool = False
    _events: JSONEvents | None = field(default_factory=JSONEvents, repr=False)
    _recording: rs.Recording | None = field(default=None, repr=False)
    _recorded: rs.Recording | None = field(default=None, repr=False)

    @property
    def reply(self) -> rs.Message | None:
        """The reply that was recorded, or the part of it that arrived."""
        return None if self._recorded is None else self._recorded.message

    @property
    def content(self) -> bytes:
        """The body's bytes: as the client sent them where nothing was put back."""
        if not self._is_changed:
            return self._given
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()

    @property
    def headers(self) -> dict[str, str]:
        """The headers that report what was done."""
        found = {RESTORED_HEADER: f"{self.restored}/{self.restored + self.missed}"}
        if self.missed:
            found[RESTORED_HEADER] += f"; missed={self.missed}"
        if self.session is not None:
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
        except ValueError:
            return
        if not isinstance(response, dict):
            return
        self._note_id(response)
        try:
            self._recorded = self.session.record(response, **self._names)
            for _ in self._recorded:
                pass
        except rs.ReasoningStoreError as error:
            self._fail(error)

    def begin_stream(self) -> None:
        """Begin to record a stream."""
        if self.session is None:
            return
        try:
            recording = self.session.record(**self._names)
            recording.__enter__()
            self._recording = self._recorded = recording
        except rs.ReasoningStoreError as error:
            self._fail(error)

    def feed(self, piece: bytes) -> bool:
        """Read a piece of a stream; say whether its last event was in it. Writes nothing."""
        if self._events is None:
            return False
        is_last = self._feed_events(self._events.feed(piece))
        return is_last or self._events.done

    def _feed_events(self, events: Sequence[Any]) -> bool:
        is_last = False
        for event in events:
            if self.reply_id is None and isinstance(event, dict):
                self._note_id(event.get("response") or event.get("message") or event)
            if self._recording is not None:
                try:
                    self._recording.feed(event)
                except rs.ReasoningStoreError as error:
                    self._fail(error)
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
        recording, self._recording = self._recording, None
        if recording is None:
            return
        try:
            recording.finish()
            recording.__exit__(None, None, None)
        except rs.ReasoningStoreError as error:
            self._fail(error)

    def leave(self) -> None:
        """Store what arrived of a reply whose stream broke off, as interrupted."""
        recording, self._recording = self._recording, None
        if recording is None:
            return
        try:
            recording.__exit__(None, None, None)
        except rs.ReasoningStoreError as error:
            self._fail(error)

    def _fail(self, error: rs.ReasoningStoreError) -> None:
        self.error, self._recording = type(error).__name__, None
        if self._raises:
            raise error


class _Sent(NamedTuple):
    """A stored message as it is sent."""

    message: rs.Message
    owed: bool
    """The provider demands the field of its thinking, also where it is empty."""


class EchoMatcher:
    """Finds, restores and records the conversations of one store or owner.

    ``settings`` are laid over the session's for these requests. ``provider`` names the host where
    its address does not. ``on_store_error="pass"`` lets
    the chat go on where the store fails; ``"fail"`` raises.
    """

    def __init__(
        self,
        store: Owner,
        *,
        settings: rs.ReasoningSettings | Mapping[str, Any] | None = None,
        provider: str | None = None,
        on_store_error: str = "pass",
    ) -> None:
        if on_store_error not in ("pass", "fail"):
            raise rs.InvalidCall(
                'on_store_error: "pass" or "fail"', hint='on_store_error="pass" is the default'
            )
        if not isinstance(store, Owner):
            raise rs.InvalidCall(
                f"a store or an owner, not {type(store).__name__}",
                hint='rs.Store("sqlite:///chat.db"); an asynchronous client takes one, too',
            )
        self._store = store
        if not isinstance(settings, rs.ReasoningSettings):
            settings = rs.ReasoningSettings.model_validate(dict(settings or {}))
        self._settings = settings
        self._provider = provider
        self._raises = on_store_error == "fail"

    def begin(
        self,
        content: bytes,
        *,
        path: str,
        base_url: str | None = None,
        session_id: str | None = None,
        stores: bool = True,
    ) -> Exchange | None:
        """Return the exchange of a request's body; ``None`` where it carries no conversation.

        Without ``stores`` thinking is put back, and nothing is stored.
        """
        form = find_form(path)
        if form is None:
            return None
        try:
            body = json.loads(content)
        except ValueError:
            return None
        if not isinstance(body, dict) or not form.list_of(body):
            return None
        model = body.get("model")
        names = {
            "provider": self._provider,
            "api": form.api,
            "model": model if isinstance(model, str) else None,
            "base_url": base_url,
        }
        exchange = Exchange(
            body=body, _given=content, _form=form, _names=names, _raises=self._raises
        )
        try:
            self._match(exchange, form, body, session_id, stores=stores)
        except rs.ReasoningStoreError as error:
            exchange.session = None
            exchange._fail(error)
        return exchange

    def _match(
        self,
        exchange: Exchange,
        form: BodyForm,
        body: dict[str, Any],
        session_id: str | None,
        *,
        stores: bool,
    ) -> None:
        parts = form.list_of(body)
        client = list(form.read(parts))
        found, answers = self._find_rendered(client, session_id)
        for index, message in answers.items():
            own = form.replace_text([parts[client[index].first]], message.text)
            parts[client[index].first : client[index].last + 1] = own
            client[index] = client[index]._replace(message=message)
            exchange._is_changed = True
        if answers:
            exchange.body = {**exchange.body, form.messages_key: parts}
        positions: Sequence[int | None] = found.positions if found else [None] * len(client)
        if not stores:
            if found is not None:
                self._restore(exchange, found.session, form, parts, client, positions)
            return
        session = self._continue(found, positions, session_id)
        exchange.session = session
        self._restore(exchange, session, form, parts, client, positions)
        begun = [index for index, position in enumerate(positions) if position is not None]
        new = client[begun[-1] + 1 :] if begun else client
        if new:
            imported = form.import_messages(parts[new[0].first :])
            named = _name_tools(imported, [one.message for one in client])
            session.append([one for one in named if one.role != "system"])

    def _find_rendered(
        self, client: Sequence[ClientMessage], session_id: str | None
    ) -> tuple[FoundConversation | None, dict[int, rs.Message]]:
        """Find a conversation whose thinking was rendered into its text.

        Returns also the messages that are stored without the rendered sections. A section is
        taken out where the rest is a stored reply, and nowhere else: a text may have such lines
        of its own.
        """
        choices = {index: made for index, one in enumerate(client) if (made := _choices(one))}
        answers: dict[int, rs.Message] = {}
        for turn in range(max(map(len, choices.values()), default=0)):
            attempt = [
                one._replace(message=answers[index])
                if index in answers
                else one._replace(message=choices[index][min(turn, len(choices[index]) - 1)])
                if index in choices
                else one
                for index, one in enumerate(client)
            ]
            found = self._find(attempt, session_id)
            if found is None:
                continue
            session_id = found.session.id
            answers |= {
                index: attempt[index].message
                for index in choices
                if found.positions[index] is not None
            }
            if len(answers) == len(choices):
                return found, answers
        rest = [
            one._replace(message=answers.get(index, one.message))
            for index, one in enumerate(client)
        ]
        return self._find(rest, session_id), answers

    def _find(
        self, client: Sequence[ClientMessage], session_id: str | None
    ) -> FoundConversation | None:
        try:
            return self._store.find_conversation(
                [one.message for one in client], session_id=session_id
            )
        except rs.NotFound:
            return None

    def _continue(
        self,
        found: FoundConversation | None,
        positions: Sequence[int | None],
        session_id: str | None,
    ) -> rs.Session:
        """Return the session on the branch where this request's new messages belong."""
        if found is None:
            return self._store.session(session_id, create=True)
        last = max((position for position in positions if position is not None), default=0)
        if last == found.last:
            return found.session
        # The client left the stored course: it goes on next to it, and nothing is overwritten.
        branch = found.session.fork(at=last + 1)
        branch.activate(branch.branch_id)
        return branch

    def _restore(
        self,
        exchange: Exchange,
        session: rs.Session,
        form: BodyForm,
        parts: list[Any],
        client: Sequence[ClientMessage],
        positions: Sequence[int | None],
    ) -> None:
        lacking = [
            index
            for index, one in enumerate(client)
            if one.message.role == "assistant" and not one.has_thinking
        ]
        exchange.missed = sum(positions[index] is None for index in lacking)
        sent = self._select(session, client, positions, exchange._names)
        changed = list(parts)
        for index in reversed(lacking):
            one, stored = client[index], sent[index]
            own = changed[one.first : one.last + 1]
            if stored is not None and (stored.owed or stored.message.thinking):
                written = rs.write_message(stored.message, owed=stored.owed, **exchange._names)
                own = form.restore(own, written)
                exchange.restored += bool(stored.message.thinking)
            else:
                own = form.unbind(own)
            changed[one.first : one.last + 1] = own
        if lacking:
            exchange.body = {**exchange.body, form.messages_key: changed}
            exchange._is_changed = exchange._is_changed or changed != parts

    def _select(
        self,
        session: rs.Session,
        client: Sequence[ClientMessage],
        positions: Sequence[int | None],
        names: Mapping[str, Any],
    ) -> list[_Sent | None]:
        """Return the stored message of each of the client's, with the thinking that is sent."""
        known = {position for position in positions if position is not None}
        stored = {one.position: one.message for one in session.history() if one.position in known}
        whole = [
            one.message if position is None else stored.get(position, one.message)
            for one, position in zip(client, positions, strict=True)
        ]
        selection = rs.select(whole, settings=self._policy(session), **names)
        withheld = {(one.message, one.block) for one in selection.verdicts if not one.kept}
        owed = iter(selection.owed)
        sent: list[_Sent | None] = []
        for index, (message, position) in enumerate(zip(whole, positions, strict=True)):
            blocks = [
                block
                for number, block in enumerate(message.blocks)
                if (index, number) not in withheld
            ]
            is_owed = bool(blocks) and next(owed)  # a selection leaves empty messages out
            is_stored = position is not None
            message = replace(message, blocks=tuple(blocks))
            sent.append(_Sent(message, is_owed) if is_stored else None)
        return sent

    def _policy(self, session: rs.Session) -> dict[str, Any]:
        kept = {key: found.value for key, found in session.settings.resolved().items()}
        return {**kept, **self._settings.model_dump(by_alias=True, exclude_unset=True)}


def _choices(one: ClientMessage) -> list[rs.Message]:
    """Return the replies that a client's message may be, without rendered sections."""
    message = one.message
    if message.role != "assistant":
        return []
    calls = [block for block in message.blocks if isinstance(block, rs.ToolCallBlock)]
    return [rs.assistant(answer, *calls) for answer in answers_without_sections(message.text)]


def _name_tools(messages: Sequence[rs.Message], calling: Sequence[rs.Message]) -> list[rs.Message]:
    """Return messages whose tool responses have the names of their calls."""
    names = {call.id: call.name for message in calling for call in message.tool_calls}
    return [
        replace(
            message,
            blocks=tuple(
                replace(block, tool_name=names.get(block.call_id, ""))
                if isinstance(block, rs.ToolResponseBlock) and not block.tool_name
                else block
                for block in message.blocks
            ),
        )
        for message in messages
    ]
