"""Echo matching: a client's request gets back the thinking that the client lost.

Clients send back role, text and calls of a conversation, and lose the thoughts. The store finds
the conversation by them, or by the session that the client names. The replies that lack their
thinking get the stored one back where the settings and the provider want it. The new messages
and the reply are stored. A message that is not found is counted as missed, and stays as it is:
no thinking is ever invented.

Its only I/O is the store's. The HTTP transport of ``http.py`` is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import reasoning_store as rs
from reasoning_store.display.text_renderer import answers_without_sections
from reasoning_store.integrations.client_bodies import BodyForm, ClientMessage, find_form
from reasoning_store.integrations.exchange import Exchange
from reasoning_store.integrations.store_access import (
    Settings,
    check_owner,
    continue_conversation,
    find_conversation,
    read_settings,
    resolve_settings,
    stored_messages,
)
from reasoning_store.results import FoundConversation, Owner


class _OutgoingMessage(NamedTuple):
    """A stored message as it is sent."""

    message: rs.Message
    owed: bool
    """The provider demands the field of its thinking, also where it is empty."""
    is_stripped: bool
    """It has thinking that is left out."""


class _Match(NamedTuple):
    """A client's messages as they were found in the store."""

    conversation: FoundConversation | None
    answers: dict[int, rs.Message]
    """By its index, each message that is stored without the sections rendered into it."""


class EchoMatcher:
    """Finds, restores and records the conversations of one store or owner.

    ``settings`` are laid over the session's for these requests. ``provider`` names the host if its
    address does not. ``on_store_error="pass"`` lets the chat go on if the store fails; ``"fail"``
    raises.
    """

    def __init__(
        self,
        store: Owner,
        *,
        settings: Settings = None,
        provider: str | None = None,
        on_store_error: str = "pass",
    ) -> None:
        if on_store_error not in ("pass", "fail"):
            raise rs.InvalidCall(
                'on_store_error: "pass" or "fail"', hint='on_store_error="pass" is the default'
            )
        self._store = check_owner(store)
        self._settings = read_settings(settings)
        self._provider = provider
        self._raises = on_store_error == "fail"

    def begin(
        self,
        body: Mapping[str, Any],
        *,
        path: str,
        base_url: str | None = None,
        session_id: str | None = None,
        is_stored: bool = True,
        takes_reply_id: bool = False,
    ) -> Exchange | None:
        """Return the exchange of a request's body; ``None`` if it has no conversation.

        Without ``is_stored`` thinking is put back, and nothing is stored. With ``takes_reply_id``
        the message of the reply gets its provider's id, and the caller follows the order of
        ``Exchange``.
        """
        form = find_form(path)
        if form is None or not form.list_of(body):
            return None
        model = body.get("model")
        names = {
            "provider": self._provider,
            "api": form.api,
            "model": model if isinstance(model, str) else None,
            "base_url": base_url,
        }
        exchange = Exchange(
            body, form, names=names, raises=self._raises, takes_reply_id=takes_reply_id
        )
        try:
            self._match(exchange, form, session_id, is_stored=is_stored)
        except rs.ReasoningStoreError as error:
            exchange.session = None
            exchange.fail(error)
        return exchange

    def _match(
        self,
        exchange: Exchange,
        form: BodyForm,
        session_id: str | None,
        *,
        is_stored: bool,
    ) -> None:
        parts = form.list_of(exchange.body)
        client = list(form.read(parts))
        conversation, answers = self._find_rendered(client, session_id)
        for index, message in answers.items():
            own = form.replace_text([parts[client[index].first]], message.text)
            parts[client[index].first : client[index].last + 1] = own
            client[index] = client[index]._replace(message=message)
        if answers:
            exchange.replace_parts(parts)
        positions: Sequence[int | None] = [None] * len(client)
        if conversation is not None:
            positions = conversation.positions
        if not is_stored:
            if conversation is not None:
                session = conversation.session
                self._restore(exchange, session, form, parts, client, positions)
            return
        if conversation is None:
            session, last = self._store.session(session_id, create=True), None
        else:
            session, last = continue_conversation(conversation)
        exchange.session = session
        self._restore(exchange, session, form, parts, client, positions)
        known = [index for index, position in enumerate(positions) if position is not None]
        new = client[known[-1] + 1 :] if known else client
        if new:
            imported = form.import_messages(parts[new[0].first :])
            named = _name_tools(imported, [one.message for one in client])
            stored = [one for one in named if one.role != "system"]
            exchange.session = _append(session, stored, after=last)

    def _find_rendered(self, client: Sequence[ClientMessage], session_id: str | None) -> _Match:
        """Find a conversation whose thinking was rendered into its text.

        A section is taken out where the rest is a stored reply, and nowhere else: a text may have
        such lines of its own.
        """
        candidates = {index: made for index, one in enumerate(client) if (made := _candidates(one))}
        answers: dict[int, rs.Message] = {}
        for attempt in range(max(map(len, candidates.values()), default=0)):
            tried = {
                index: answers.get(index, several[min(attempt, len(several) - 1)])
                for index, several in candidates.items()
            }
            conversation = self._find(client, tried, session_id)
            if conversation is None:
                continue
            session_id, positions = conversation.session.id, conversation.positions
            answers |= {index: one for index, one in tried.items() if positions[index] is not None}
            if len(answers) == len(candidates):
                return _Match(conversation, answers)
        return _Match(self._find(client, answers, session_id), answers)

    def _find(
        self,
        client: Sequence[ClientMessage],
        answers: Mapping[int, rs.Message],
        session_id: str | None,
    ) -> FoundConversation | None:
        """Return the stored conversation of a client's messages, some of them replaced."""
        messages = [answers.get(index, one.message) for index, one in enumerate(client)]
        return find_conversation(self._store, messages, session_id)

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
        if not lacking:
            return
        exchange.missed = sum(positions[index] is None for index in lacking)
        sent = self._select(session, client, positions, exchange.names)
        changed = list(parts)
        for index in reversed(lacking):
            one, stored = client[index], sent[index]
            own = changed[one.first : one.last + 1]
            if stored is not None and (stored.owed or stored.message.thinking):
                written = rs.write_message(stored.message, owed=stored.owed, **exchange.names)
                own = form.restore(own, written)
            else:
                own = form.unbind(own)
            if stored is not None:
                exchange.restored += bool(stored.message.thinking)
                exchange.left_out += stored.is_stripped and not stored.message.thinking
            changed[one.first : one.last + 1] = own
        if changed != parts:
            exchange.replace_parts(changed)

    def _select(
        self,
        session: rs.Session,
        client: Sequence[ClientMessage],
        positions: Sequence[int | None],
        names: Mapping[str, Any],
    ) -> list[_OutgoingMessage | None]:
        """Return the stored message of each of the client's, with the thinking that is sent."""
        whole = stored_messages(session, [one.message for one in client], positions)
        settings = resolve_settings(session, self._settings)
        selection = rs.select(whole, settings=settings, **names)
        withheld = {(one.message, one.block) for one in selection.verdicts if not one.kept}
        owed = iter(selection.owed)
        sent: list[_OutgoingMessage | None] = []
        for index, (message, position) in enumerate(zip(whole, positions, strict=True)):
            blocks = [
                block
                for number, block in enumerate(message.blocks)
                if (index, number) not in withheld
            ]
            is_owed = bool(blocks) and next(owed)  # a selection leaves empty messages out
            is_stored = position is not None
            kept = replace(message, blocks=tuple(blocks))
            outgoing = _OutgoingMessage(kept, is_owed, len(blocks) < len(message.blocks))
            sent.append(outgoing if is_stored else None)
        return sent


def _append(session: rs.Session, messages: list[rs.Message], *, after: int | None) -> rs.Session:
    """Append the new messages of a request; return the session on their branch."""
    try:
        session.append(messages, after=after)
    except rs.Conflict:
        if after is None:
            raise
        # Another request has continued the same messages meanwhile: this one goes on next to it.
        session = session.fork(at=after + 1)
        session.append(messages)
        session.activate(session.branch_id)
    return session


def _candidates(one: ClientMessage) -> list[rs.Message]:
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
