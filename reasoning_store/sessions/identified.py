"""The stored conversation that a client goes on with: what is new of it, and what goes back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reasoning_store.conversation.blocks import Counts, Message, with_blocks
from reasoning_store.conversation.errors import Conflict
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.turns import turn_positions
from reasoning_store.conversation.withholding import SEAL
from reasoning_store.egress.selection_values import ViewedMessage
from reasoning_store.ledger.echoes import Identity, Match, Miss
from reasoning_store.ledger.keys import new_id
from reasoning_store.sessions import settings as session_settings
from reasoning_store.sessions.session import Session
from reasoning_store.sessions.view import resolve_target
from reasoning_store.store_state import StoreState
from reasoning_store.stored_values import Stored

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.conversation.withholding import WithheldPart
    from reasoning_store.ledger.records import MessagePlace, StoredRow


_NO_COUNTS: Final = Counts()


class RestoredReply(NamedTuple):
    """A stored reply with the thoughts that are sent."""

    message: Message | None
    """``None`` where nothing of it goes back."""
    written: list[dict[str, Any]]
    """The parts of a body that carry it, where its thinking or the field of it is sent."""
    is_left_out: bool
    """It has thoughts, and none of them is sent."""


class ClientConversation:
    """A conversation as its client sent it, and as it is stored. Made by ``Owner.identify``."""

    def __init__(
        self,
        state: StoreState,
        owner: str,
        messages: Sequence[Message],
        asked: Asked,
        identity: Identity,
        session_id: str | None,
    ) -> None:
        self._state = state
        self._owner = owner
        self._messages = messages
        self._identity = identity
        self.asked = asked
        """The client's question, for ``Session.record``: the reply is found again by it."""
        row = identity.row
        self.session = None if row is None else Session(state, row, identity.branch)
        """The session, on the branch that goes on; ``None`` where no conversation is known."""
        self.session_id = (session_id or new_id()) if row is None else row.id
        """Its id; that of the session that ``store`` makes, where the conversation is new."""

    @property
    def match(self) -> Match:
        """How the conversation was found."""
        return self._identity.match

    @property
    def first_new(self) -> int:
        """The index of the first message that is not stored."""
        return self._identity.first_new

    @property
    def missed(self) -> Mapping[int, Miss]:
        """By its index, why the thoughts of a stored reply do not go back."""
        return self._identity.missed

    def store(self, new: Sequence[Message], **facts: Any) -> Session:
        """Append what is new; return the session on the branch where the reply belongs.

        A client that left the stored course goes on next to it, on a branch that becomes current.
        ``facts`` are those of a session that is made: ``title`` and ``metadata``.
        """
        from reasoning_store.ingress.masking import mask_value
        from reasoning_store.owner import Owner

        found, session = self._identity, self.session
        if session is None:
            masker = self._state.masker
            safe = facts if masker is None else mask_value(facts, masker)
            session = Owner(self._state, self._owner).session(self.session_id, create=True, **safe)
        elif found.after < found.last:
            return _branch_off(session, found.after, new)
        if new:
            try:
                session.append(list(new), after=found.after)
            except Conflict:
                # Another request has continued the same messages meanwhile.
                return _branch_off(session, found.after, new)
        return session

    def append_reply(self, session: Session, reply: Message) -> Stored:
        """Append a reply that no recording stores, so that it is found again."""
        branch = session._own_branch()
        return branch.append(reply, None, None, None, None, None, asked=self.asked)[0]

    def restore(
        self,
        lacking: Collection[int],
        *,
        whole: Collection[int] = (),
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
    ) -> dict[int, RestoredReply]:
        """Return, by their indexes, the stored replies with the thoughts that are sent.

        ``lacking`` are the replies that the client sends without their thoughts. Those of which
        something goes back are read, those of the open turn, and ``whole``.
        """
        from reasoning_store.egress.functions import write_reply
        from reasoning_store.egress.selection import select
        from reasoning_store.egress.withheld_parts import parts_left_out

        row, places = self._identity.row, self._identity.replies
        wanted = {index: places[index] for index in lacking if index in places}
        if row is None or not wanted:
            return {}
        target = resolve_target((provider, model, api, base_url), None, self._state.contracts)
        kept = self._state.ledger.sessions.kept_settings(row.owner, row.id)
        policy = session_settings.policy(self._state, kept, settings).settings
        echoes = self._state.ledger.echoes
        begun = max((at for at, one in enumerate(self._messages) if one.starts_turn), default=-1)
        first = [place for index, place in wanted.items() if index > begun or index in whole]
        read = echoes.replies(row.key, first)
        heads = echoes.heads(row.key, {*places.values()} - read.keys())
        withheld: dict[MessagePlace, list[WithheldPart]] = {}
        for one in self._state.ledger.withholdings.of_session(row.key):
            withheld.setdefault(one.place, []).append(one.part)
        view = [
            _view(message, index, places.get(index), read, heads, withheld)
            for index, message in enumerate(self._messages)
        ]
        chosen = select(view, turn_positions(view), policy, target)
        owed = {*compress(chosen.numbers, chosen.owed)}
        kept_blocks: dict[int, set[int]] = {}
        for verdict in chosen.verdicts:
            if verdict.kept:
                kept_blocks.setdefault(verdict.message, set()).add(verdict.block)
        needed = [
            place
            for index, place in wanted.items()
            if place in heads and (index in owed or index in kept_blocks)
        ]
        read |= echoes.replies(row.key, needed)
        restored: dict[int, RestoredReply] = {}
        for index, place in wanted.items():
            message = None
            if place in read:
                parts = parts_left_out(view[index], target)
                message = _left(read[place].message, kept_blocks.get(index, ()), parts)
            is_sent = message is not None and (index in owed or index in kept_blocks)
            restored[index] = RestoredReply(
                message,
                write_reply(message, target, owed=index in owed) if message and is_sent else [],
                view[index].has_thinking and index not in kept_blocks,
            )
        return restored


def _branch_off(session: Session, after: int, new: Sequence[Message]) -> Session:
    branch = session.fork(at=after + 1)
    if new:
        branch.append(list(new))
    branch.activate(branch.branch_id)
    return branch


def _view(
    sent: Message,
    index: int,
    place: MessagePlace | None,
    read: Mapping[MessagePlace, StoredRow],
    heads: Mapping[MessagePlace, StoredRow],
    withheld: Mapping[MessagePlace, Sequence[WithheldPart]],
) -> ViewedMessage:
    """Return a client's message, or the stored reply in its place; its thinking read or not."""
    if place is None:
        return ViewedMessage(sent, _NO_COUNTS, index)
    parts = withheld.get(place, ())
    if (row := read.get(place)) is not None:
        return ViewedMessage(row.message, row.counts, index, withheld=parts)
    row = heads[place]
    message = replace(sent, origin=row.message.origin)
    return ViewedMessage(message, row.counts, index, unread=row.headers or (), withheld=parts)


def _left(message: Message, kept: Collection[int], parts: Sequence[WithheldPart]) -> Message:
    """Return a stored reply with the thoughts and the seals that are sent."""
    from reasoning_store.egress.withheld_parts import sent_blocks

    blocks = [*enumerate(message.blocks)]
    left_out = {n for n, block in blocks if block.type == "thinking" and n not in kept}
    seals = [part for part in parts if part.part == SEAL]
    if not left_out and not seals:
        return message
    return with_blocks(message, sent_blocks(blocks, left_out, seals))
