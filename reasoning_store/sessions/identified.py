"""The stored conversation that a client goes on with: what is new of it, and what goes back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from reasoning_store.conversation.blocks import Counts, Message
from reasoning_store.conversation.errors import Conflict
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.turns import turn_positions
from reasoning_store.egress.verdicts import ViewedMessage
from reasoning_store.ledger.echoes import Identity, Match, Miss
from reasoning_store.ledger.rows.keys import new_id
from reasoning_store.sessions import settings as session_settings
from reasoning_store.sessions.session import Session
from reasoning_store.sessions.view import resolve_target
from reasoning_store.store_state import StoreState
from reasoning_store.stored_values import Stored

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.ledger.records import StoredRow


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

        row, found = self._identity.row, self._identity
        places = found.replies
        wanted = {index: places[index] for index in lacking if index in places}
        if row is None or not wanted:
            return {}
        target = resolve_target((provider, model, api, base_url), None, self._state.contracts)
        kept = self._state.ledger.sessions.kept_settings(row.owner, row.id)
        policy = session_settings.policy(self._state, kept, settings).settings
        heads = self._state.ledger.echoes.heads(row.key, places.values())
        view = [
            ViewedMessage(one, Counts(), index)
            if index not in places
            else _narrow(one, index, heads[places[index]])
            for index, one in enumerate(self._messages)
        ]
        positions = turn_positions(view)
        chosen = select(view, positions, policy, target)
        kept_blocks: dict[int, set[int]] = {}
        for verdict in chosen.verdicts:
            if verdict.kept:
                kept_blocks.setdefault(verdict.message, set()).add(verdict.block)
        owed = set(compress(chosen.numbers, chosen.owed))
        needed = {*whole, *owed, *kept_blocks}
        read = self._state.ledger.echoes.replies(
            row.key,
            [
                place
                for index, place in wanted.items()
                if index in needed or positions[index].in_open_turn
            ],
        )
        restored: dict[int, RestoredReply] = {}
        for index, place in wanted.items():
            message = _left(read[place], kept_blocks.get(index, ())) if place in read else None
            is_sent = message is not None and (index in owed or index in kept_blocks)
            restored[index] = RestoredReply(
                message,
                write_reply(message, target, owed=index in owed) if message and is_sent else [],
                bool(heads[place].headers) and index not in kept_blocks,
            )
        return restored


def _branch_off(session: Session, after: int, new: Sequence[Message]) -> Session:
    branch = session.fork(at=after + 1)
    if new:
        branch.append(list(new))
    branch.activate(branch.branch_id)
    return branch


def _narrow(sent: Message, index: int, head: StoredRow) -> ViewedMessage:
    """Return a reply with the thinking that is stored of it, not read."""
    message = replace(sent, origin=head.message.origin)
    return ViewedMessage(message, head.counts, index, unread=head.headers or ())


def _left(row: StoredRow, kept: Collection[int]) -> Message:
    blocks = [
        block
        for number, block in enumerate(row.message.blocks)
        if block.type != "thinking" or number in kept
    ]
    return replace(row.message, blocks=tuple(blocks))
