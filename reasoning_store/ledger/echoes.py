"""The numbers of replies, and the conversation that a client goes on with: known, never alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, Select, bindparam, literal_column, select

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.errors import NotFound
from reasoning_store.conversation.identity import (
    ClientChain,
    Numbers,
    VisibleText,
    count_equal,
    given_id,
    item_number,
    number_messages,
    owner_number,
    plain_text,
    question_number,
)
from reasoning_store.conversation.message_flags import HAS_CALL
from reasoning_store.ledger import branches, history
from reasoning_store.ledger import sessions as session_rows
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import BranchRow, MessagePlace, SessionRow, StoredRow
from reasoning_store.ledger.tables import echoes, in_range, messages, range_params

Match: TypeAlias = Literal["session", "chain", "ids", "place", "window", "new"]
Miss: TypeAlias = Literal["edited", "system prompt changed", "ambiguous", "elsewhere"]
_e, _m = echoes.c, messages.c
_ENOUGH: Final = 16
"""The tokens of recorded replies that no other conversation is likely to have."""
_MOST_IDS: Final = 8
"""How many replies are looked up by their ids: the latest."""
_FRAMING: Final = 4
"""The tokens that a message counts without any text."""

_OF_SESSION = Statement(
    select(_e.number, _e.branch, _e.position).where(_e.session_key == bindparam("key"))
)
_RECORDED = Statement(
    select(_m.position, _m.visible, _m.flags).where(
        *in_range(_m), _m.role == literal_column("'assistant'")
    )
)


def _ends(*conditions: Any) -> Statement:
    """Return the statement of the first and the last session of a number."""

    def end(*order: Any) -> Any:
        found: Select[Any] = select(_e.session_key).where(_e.number == bindparam("number"))
        return found.where(*conditions).order_by(*order).limit(1).scalar_subquery()

    first = end(_e.client_group, _e.session_key)
    return Statement(select(first, end(_e.client_group.desc(), _e.session_key.desc())))


_ANYWHERE = _ends()
_IN_GROUP = _ends(_e.client_group == bindparam("group"))


class Identity(NamedTuple):
    """The stored conversation that a client goes on with."""

    match: Match
    row: SessionRow | None = None
    branch: int = 0
    last: int = 0
    """The last position of the branch."""
    after: int = 0
    """The position that the first new message follows."""
    first_new: int = 0
    """The index of the client's first message that is not stored there."""
    replies: Mapping[int, MessagePlace] = {}
    """By the index of a client's reply: the stored one whose thoughts may go out."""
    missed: Mapping[int, Miss] = {}
    """By the index of a client's reply that is stored: why its thoughts may not go out."""


class Echoes:
    """The numbers of the replies of all sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self,
        owner: str,
        sent: Sequence[Message],
        chain: ClientChain,
        *,
        visible: VisibleText,
        session_id: str | None = None,
    ) -> Identity:
        """Return the conversation of a client's messages."""

        def read(connection: Connection) -> Identity:
            search = _Search(connection, owner, sent, chain, visible)
            return search.find() if session_id is None else search.find_in(session_id)

        return self._database.read(read)

    def find_items(self, owner: str, ids: Iterable[str]) -> dict[str, StoredRow | None]:
        """Return the reply of each item that an owner holds; ``None`` where several have it."""
        wanted = {item_number(owner_number(owner), id): id for id in ids}

        def read(connection: Connection) -> dict[str, StoredRow | None]:
            found: dict[str, StoredRow | None] = {}
            while wanted:
                number = next(iter(wanted))
                keys = set(_ANYWHERE.row(connection, {"number": number}) or ()) - {None}
                if len(keys) != 1:
                    id = wanted.pop(number)
                    found |= dict.fromkeys([id] if keys else [])
                    continue
                key = keys.pop()
                places = {
                    one: MessagePlace(*place)
                    for one, *place in _OF_SESSION.rows(connection, {"key": key})
                    if one in wanted
                }
                rows = history.replies_at(connection, key, {*places.values()}, whole=True)
                found |= {wanted.pop(one): rows.get(place) for one, place in places.items()}
            return found

        return self._database.read(read)

    def heads(self, key: int, places: Iterable[MessagePlace]) -> dict[MessagePlace, StoredRow]:
        """Return replies without their blocks, and the headers of their thinking."""
        return self._database.read(history.replies_at, key, [*places], whole=False)

    def replies(self, key: int, places: Iterable[MessagePlace]) -> dict[MessagePlace, StoredRow]:
        """Return replies whole."""
        return self._database.read(history.replies_at, key, [*places], whole=True)


@dataclass(slots=True)
class _Known:
    """One conversation: its branches, and its replies by their numbers."""

    row: SessionRow
    branches: Sequence[BranchRow]
    places: dict[int, list[MessagePlace]] = field(default_factory=dict)
    """By its number, the replies that have it."""

    def choose(self, number: int) -> tuple[BranchRow, MessagePlace]:
        """Return the branch that ends soonest after a reply, the latest of several."""
        *_, branch, place = min(
            (
                (branch.head - place.position, -branch.number, branch, place)
                for branch in self.branches
                for place in self.places[number]
                if branch.holds(place)
            ),
            key=lambda found: found[:2],
        )
        return branch, place

    @property
    def current(self) -> BranchRow:
        return branches.branch_of(self.branches, self.row.current_branch)


@dataclass(slots=True)
class _Search:
    """One search, in one transaction."""

    connection: Connection
    owner: str
    sent: Sequence[Message]
    chain: ClientChain
    visible: VisibleText
    is_named: bool = False
    is_ambiguous: bool = False

    def find(self) -> Identity:
        """Return the conversation by the client's last reply, in the order of the ways."""
        for way in (self._by_chain, self._by_ids, self._by_place, self._by_window):
            if self.chain.replies and (found := way()) is not None:
                return found
        return self._by_question() or Identity("new", missed=self._missed_elsewhere())

    def find_in(self, session_id: str) -> Identity:
        """Return where the messages belong in the session that the client named."""
        self.is_named = True
        try:
            known = self._read(session_rows.get(self.connection, self.owner, session_id))
        except NotFound:
            return Identity("new")
        replies = self.chain.replies
        if any(one.place not in known.places for one in replies.values()):
            self._number_unrecorded(known)
        for index in reversed(replies):
            for number in (replies[index].whole, replies[index].place):
                if number in known.places:
                    return self._continue("session", known, index, number)
        if replies:
            pair = self._last.pair
            if pair in known.places and self._is_window(known):
                return self._continue("session", known, self._last_index, pair)
            return self._branch_off("session", known, known.current)
        start = self._go_on(known, known.current, 0, 0)
        if start == (0, 0):
            last = known.current.head
            return Identity("session", known.row, known.current.number, last, last, 0)
        return self._at("session", known, known.current, *start)

    # The ways

    @property
    def _last_index(self) -> int:
        return next(reversed(self.chain.replies))

    @property
    def _last(self) -> Numbers:
        return self.chain.replies[self._last_index]

    def _by_chain(self) -> Identity | None:
        """The system prompt and every message up to the last reply agree."""
        known = self._one_of(self._last.whole)
        if known is not None:
            return self._continue("chain", known, self._last_index, self._last.whole)
        known = None if self.is_ambiguous else self._one_of(self._last.asked)
        if known is not None and self._is_cut(known, self._last_index):
            return self._continue("chain", known, self._last_index, self._last.asked)
        return None

    def _by_ids(self) -> Identity | None:
        """The ids of a reply's calls are stored: an older message or the system prompt changed."""
        replies = self.chain.replies
        own = [index for index in reversed(replies) if replies[index].has_own_ids][:_MOST_IDS]
        for index in own:
            known = self._one_of(replies[index].calls or 0)
            if known is None:
                continue
            for earlier in reversed(replies):
                if earlier <= index and replies[earlier].place in known.places:
                    return self._continue("ids", known, earlier, replies[earlier].place)
            branch, _ = known.choose(replies[index].calls or 0)
            return self._branch_off("ids", known, branch)
        return None

    def _by_place(self) -> Identity | None:
        """Every message agrees, and only the system prompt does not."""
        known = self._one_of(self._last.place)
        if known is None or not self._has_proof(known, self._last.place):
            return None
        return self._continue("place", known, self._last_index, self._last.place)

    def _by_window(self) -> Identity | None:
        """The client left the beginning out."""
        known = None if self.is_ambiguous else self._one_of(self._last.pair)
        if known is None or not self._has_proof(known, self._last.pair, among=self._pairs()):
            return None
        if self._is_window(known):
            return self._continue("window", known, self._last_index, self._last.pair)
        return self._branch_off("window", known, known.choose(self._last.pair)[0])

    def _by_question(self) -> Identity | None:
        """The client named a group, and asks again what was asked in one of its conversations."""
        group = self.chain.asked.group
        if not group or self.is_ambiguous:
            return None
        asked = question_number(self.chain.asked)
        keys = self._sessions(_IN_GROUP, asked)
        if len(keys) != 1:
            return None
        known = self._read(session_rows.by_key(self.connection, keys.pop()))
        branch, place = known.choose(asked)
        return self._at("chain", known, branch, place.position - 1, len(self.sent))

    # What is read

    def _one_of(self, number: int) -> _Known | None:
        """Return the one conversation that has a number."""
        group = self.chain.asked.group
        keys = self._sessions(_IN_GROUP, number) if group else set()
        if not keys:
            # A conversation that began before its client named it has no group.
            keys = self._sessions(_IN_GROUP if group else _ANYWHERE, number, group=0)
        self.is_ambiguous = self.is_ambiguous or len(keys) > 1
        if len(keys) != 1:
            return None
        row = session_rows.by_key(self.connection, keys.pop())
        return self._read(row) if row.owner == self.owner else None

    def _sessions(self, statement: Statement, number: int, group: int | None = None) -> set[int]:
        named = self.chain.asked.group if group is None else group
        ends = statement.row(self.connection, {"number": number, "group": named})
        return {key for key in ends or () if key is not None}

    def _read(self, row: SessionRow) -> _Known:
        known = _Known(row, branches.all_of(self.connection, row.key))
        for number, *place in _OF_SESSION.rows(self.connection, {"key": row.key}):
            known.places.setdefault(number, []).append(MessagePlace(*place))
        return known

    def _number_unrecorded(self, known: _Known) -> None:
        """Number the replies of a session that were not recorded from a client's request."""
        recorded = {place for places in known.places.values() for place in places}
        for branch in known.branches:
            rows = history.of_segments(
                self.connection, known.row.key, branch.segments, thinking=False
            )
            made = number_messages(self.owner, [row.message for row in rows], visible=self.visible)
            for index, numbers in made.replies.items():
                segment = branches.segment_at(branch, rows[index].position)
                place = MessagePlace(segment.branch, rows[index].position)
                if place not in recorded:
                    for number in (numbers.place, numbers.pair, numbers.calls):
                        if number is not None and place not in known.places.get(number, ()):
                            known.places.setdefault(number, []).append(place)

    def _has_proof(self, known: _Known, number: int, among: Iterable[int] = ()) -> bool:
        """Whether the recorded replies up to one are such that another conversation has others."""
        branch, place = known.choose(number)
        held = [known.places[one] for one in among if one in known.places]
        counted = {one for places in held or known.places.values() for one in places}
        tokens = 0
        for segment in branches.segments_upto(branch.segments, place.position):
            span = range_params(known.row.key, segment)
            for position, visible, flags in _RECORDED.rows(self.connection, span):
                if MessagePlace(segment.branch, position) in counted:
                    tokens += visible - _FRAMING
                    if flags & HAS_CALL:
                        return True
        return tokens >= _ENOUGH

    # What follows

    def _pairs(self) -> list[int]:
        return [numbers.pair for numbers in self.chain.replies.values()]

    def _is_window(self, known: _Known) -> bool:
        """Whether the client's replies are, in a row, the last ones up to one that is stored."""
        branch, place = known.choose(self._last.pair)
        held = sorted(
            {
                one
                for places in known.places.values()
                for one in places
                if one.position <= place.position and branch.holds(one)
            },
            key=lambda one: one.position,
        )
        pairs = self._pairs()
        row = held[-len(pairs) :]
        return len(row) == len(pairs) and all(
            one in known.places.get(pair, ()) for pair, one in zip(pairs, row, strict=True)
        )

    def _continue(self, match: Match, known: _Known, index: int, number: int) -> Identity:
        """Go on after the stored reply that is the client's at an index."""
        branch, place = known.choose(number)
        after, first_new = self._go_on(known, branch, place.position, index + 1)
        return self._at(match, known, branch, after, first_new)

    def _branch_off(self, match: Match, known: _Known, branch: BranchRow) -> Identity:
        """Store all that the client sent on a branch from position 1."""
        return self._at(match, known, branch, 0, 0)

    def _go_on(
        self, known: _Known, branch: BranchRow, after: int, first_new: int
    ) -> tuple[int, int]:
        """Return where the client's messages end that are stored already: it asks once more."""
        rest = self.sent[first_new:]
        last = min(branch.head, after + len(rest))
        if last <= after:
            return after, first_new
        segments = branches.segments_between(branch, after + 1, last)
        rows = history.of_segments(self.connection, known.row.key, segments, thinking=False)
        equal = count_equal(rest, [row.message for row in rows], self.visible)
        return after + equal, first_new + equal

    def _at(
        self, match: Match, known: _Known, branch: BranchRow, after: int, first_new: int
    ) -> Identity:
        replies: dict[int, MessagePlace] = {}
        missed: dict[int, Miss] = {}
        turn_start = self._turn_start
        for index in self.chain.replies:
            found = self._thought(known, branch, index, turn_start)
            if isinstance(found, MessagePlace):
                replies[index] = found
            elif found is not None:
                missed[index] = found
        last = branch.head
        return Identity(match, known.row, branch.number, last, after, first_new, replies, missed)

    def _thought(
        self, known: _Known, branch: BranchRow, index: int, turn_start: int
    ) -> MessagePlace | Miss | None:
        """Return the reply whose thought may go out in the place of a client's; else why not.

        Everything before it agrees; in the open turn its own ids are enough, or its other ids and
        its place; in a session that the client named its place is.
        """
        numbers, places = self.chain.replies[index], known.places
        found = places.get(numbers.whole)
        if found is None and self._is_cut(known, index):
            found = places[numbers.asked]
        if found is None:
            at_place, by_ids = places.get(numbers.place), places.get(numbers.calls or -1)
            if self.is_named:
                found = at_place
            if found is None and by_ids and index > turn_start:
                found = by_ids if numbers.has_own_ids else at_place
        if found and len(found) > 1 and self.chain.asked.group and not self.is_named:
            return "ambiguous"  # two clients under one key that are equal so far
        if found is not None:
            return next((place for place in reversed(found) if branch.holds(place)), found[-1])
        if at_place:
            return "system prompt changed"
        return "edited" if by_ids or numbers.pair in places else None

    @property
    def _turn_start(self) -> int:
        turns = (index for index, one in enumerate(self.sent) if one.starts_turn)
        return max(turns, default=-1)

    def _is_cut(self, known: _Known, index: int) -> bool:
        """Whether a client's reply is a part of one that was stopped, or the other way round."""
        sent = self.sent[index]
        text, calls = self._plain(sent), _call_ids(sent)
        for place in known.places.get(self.chain.replies[index].asked, ()):
            branch = next((one for one in known.branches if one.holds(place)), None)
            if branch is None:
                continue
            segments = branches.segments_between(branch, place.position, place.position)
            (row,) = history.of_segments(self.connection, known.row.key, segments, thinking=False)
            stored = self._plain(row.message)
            is_part = stored.startswith(text) or (stored and text.startswith(stored))
            is_part = is_part and calls <= _call_ids(row.message)
            if row.message.status == "interrupted" and is_part:
                return True
        return False

    def _plain(self, message: Message) -> str:
        return plain_text(self.visible(message.text))

    def _missed_elsewhere(self) -> dict[int, Miss]:
        """Return the replies of the open turn that other conversations hold."""
        missed: dict[int, Miss] = {}
        turn_start = self._turn_start
        for index, numbers in self.chain.replies.items():
            if index <= turn_start:
                continue
            held = {numbers.whole, numbers.place, numbers.pair}
            held |= {numbers.calls} if numbers.calls and numbers.has_own_ids else set()
            keys = {key for number in held for key in self._sessions(_ANYWHERE, number)}
            if keys:
                missed[index] = "ambiguous" if self.is_ambiguous else "elsewhere"
        return missed


def _call_ids(reply: Message) -> set[str]:
    return {given_id(call.id) for call in reply.tool_calls}
