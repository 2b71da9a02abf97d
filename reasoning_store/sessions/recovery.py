"""Recovery: a part that a provider refused is left out, and the refused request comes back.

Nothing is deleted: a part that is left out is stored as it was, and ``undo`` sends it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Origin,
    ThinkingBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.conversation.settings import Policy, resolve_settings
from reasoning_store.conversation.tool_pairs import pair_messages
from reasoning_store.conversation.turns import turn_positions
from reasoning_store.conversation.validation import check_position, check_text
from reasoning_store.conversation.withholding import BLOCK, SEAL, WithheldPart
from reasoning_store.egress.refusals import Act, Explanation, explain_refusal
from reasoning_store.egress.refused_blocks import error_text, find_refused, search_refused
from reasoning_store.egress.request import Request, source_of, written_messages
from reasoning_store.egress.request_places import Place
from reasoning_store.egress.selection import judge
from reasoning_store.egress.selection_values import SENT, ViewedMessage
from reasoning_store.egress.token_counts import FRAMING
from reasoning_store.egress.withheld_parts import count_part, digest_part
from reasoning_store.ledger.records import MessagePlace, StoredRow
from reasoning_store.ledger.withholdings import NewWithholding, WithheldRow, find
from reasoning_store.sessions.view import SessionView, how_sent
from reasoning_store.stored_values import Withheld, withheld
from reasoning_store.tokens import counter

if TYPE_CHECKING:
    from reasoning_store.egress.target import Target
    from reasoning_store.sessions.branch import SessionBranch

Ask: TypeAlias = Callable[[Request], object]
"""Sends a request, and returns the provider's error; None if it was taken."""

_MOST_ERROR = 500
"""The most characters of a refusal that are stored."""
_EVERYTHING = {
    "reasoning.includeInContext": True,
    "reasoning.stripFromContext": "none",
    "reasoning.floor": "provider",
}
"""The settings by which every thought is sent that can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The way back of a refused request."""

    request: Request | None
    """The request to send now; None if leaving something out does not help."""
    withheld: tuple[Withheld, ...] = ()
    """The parts that requests leave out from now on. ``Session.undo`` takes one back."""
    act: Act = "none"
    reason: str
    """The cause in words, and what is sent instead; of no request, what mends it."""
    is_certain: bool = False
    """The refusal names what is left out; else it is all that the refusal can be about."""


class SessionRecovery:
    """Leaves out of one branch what a provider refused."""

    def __init__(self, branch: SessionBranch) -> None:
        self._branch = branch
        self._ledger = branch.ledger
        self._key = branch.key

    # By hand

    def withhold(
        self, at: int | str, block: int | None, part: str | int, reason: str | None
    ) -> list[Withheld]:
        check_position("at", at)
        said = self._branch.masked(check_text("reason", reason or "left out by hand"))
        here, (position,) = self._branch.locate(at)
        own = SessionRecovery(here)
        row = own._read(position)
        numbers = _numbers(row, block)
        wanted = [(position, number, _checked_part(row, number, part)) for number in numbers]
        if part == BLOCK:
            wanted += own._partners(position, numbers)
        return own._add(own._new(wanted, said, None, None))

    def withheld(self) -> list[Withheld]:
        branch = self._ledger.branches.get(self._key, self._branch.number)
        rows = self._ledger.withholdings.of_session(self._key)
        return [withheld(row) for row in rows if branch.holds(row.place)]

    def undo(self, id: str, *, force: bool) -> Withheld:
        row = find(self._ledger.withholdings.of_session(self._key), id)
        void = 0 if force else self._branch.view.at_one_moment(lambda view: _voided(view, row))
        if void:
            raise Conflict(
                f"{void} later thoughts were made without it, and would be left out",
                hint="session.undo(id, force=True) sends it again all the same",
            )
        return withheld(self._ledger.withholdings.undo(self._key, id))

    # After a refusal

    def recover(self, error: object, request: Request, ask: Ask | None) -> Recovery:
        if not isinstance(request, Request):
            raise InvalidCall(
                f"request: the Request that was refused, not {type(request).__name__}",
                hint="that of session.build_request()",
            )
        text = error_text(error)
        explained = explain_refusal(request.target.provider, text)
        if explained is None:
            return Recovery(request=None, reason="the refusal is not known")
        of = _Refused(self._branch.view, request)
        if written_messages(of.again) != written_messages(request):
            why = "the request is not one of this conversation as it is now; build it again"
            return Recovery(request=None, act=explained.act, reason=why)
        if explained.act == "resend":
            return of.resend(explained)
        if explained.act in ("ids", "none"):
            return Recovery(request=None, act=explained.act, reason=str(explained))
        return self._leave_out(of, explained, text, ask)

    def _leave_out(
        self, of: _Refused, explained: Explanation, text: str, ask: Ask | None
    ) -> Recovery:
        """Leave out the blocks that a refusal is about."""
        act = explained.act
        found = find_refused(of.again, act, text)
        if not found.places:
            return Recovery(request=None, act=act, reason=found.reason)
        places: Sequence[Place] = found.places
        is_certain = found.is_certain
        reason = f"refused by {of.again.target.provider or 'the host'}: {explained.cause}"
        target = replace(of.again.target, model=None, response_id=None)
        shown = self._branch.masked(text)[:_MOST_ERROR]

        def rows_of(some: Collection[Place]) -> list[NewWithholding]:
            wanted = [(place.message, place.block, _part_of(place, act, of)) for place in some]
            return self._new(wanted, reason, shown, target)

        if not is_certain and ask is not None:
            each = {place: rows_of([place])[0] for place in places}
            searched = search_refused(
                places, lambda some: ask(of.without(map(each.__getitem__, some))) is None
            )
            places, is_certain = searched.places, searched.is_certain
        elif not is_certain:
            places = of.in_open_turn(places) or places
        new = rows_of(places)
        request = of.without(new)
        if request.body == of.again.body:
            return Recovery(request=None, act=act, reason="leaving it out changes nothing")
        added = [item for item in request.warnings if item not in of.again.warnings]
        if any(item.code == "nothing_to_send" for item in added):
            return Recovery(request=None, act=act, reason="nothing would be left to send")
        return Recovery(
            request=request,
            withheld=tuple(self._add(new)),
            act=act,
            reason="; ".join([reason, *(item.text for item in added)]),
            is_certain=is_certain,
        )

    # Rows

    def _read(self, position: int) -> StoredRow:
        return self._ledger.history.get(self._key, self._branch.number, position)

    def _new(
        self,
        wanted: Iterable[tuple[int, int, str]],
        reason: str,
        error: str | None,
        target: Origin | None,
    ) -> list[NewWithholding]:
        """Return the withholdings of blocks, each by its position, its place and its part."""
        by_position: dict[int, list[tuple[int, str]]] = {}
        for position, block, part in wanted:
            by_position.setdefault(position, []).append((block, part))
        tokens_of = counter(self._branch.row.encoding)
        new = []
        for position, parts in by_position.items():
            row = self._read(position)
            place = MessagePlace(row.branch, row.position)
            gone = {block for block, part in parts if part == BLOCK}
            for block, part in parts:
                held = row.message.blocks[block]
                tokens = count_part(row.message, row.counts, block, part, tokens_of)
                if block == max(gone, default=None) and gone >= _visible(row):
                    tokens += FRAMING
                about = WithheldPart(block, part, tokens, reason, target)
                made = WithheldRow(
                    place=place,
                    message_id=row.id,
                    part=about,
                    digest=digest_part(held, part),
                    error=error,
                )
                new.append(NewWithholding(made, row.digest))
        return new

    def _add(self, new: Sequence[NewWithholding]) -> list[Withheld]:
        return [withheld(row) for row in self._ledger.withholdings.add(self._key, new)]

    def _partners(self, position: int, numbers: Collection[int]) -> list[tuple[int, int, str]]:
        """Return the responses of the calls among these blocks, and the calls of the responses."""
        view = self._branch.view.messages(1)
        pairs = pair_messages(item.message for item in view)
        both = {**pairs.response_of, **pairs.call_of}
        found = [
            (view[other].number, block, BLOCK)
            for (number, index), (other, block) in both.items()
            if view[number].number == position and index in numbers
        ]
        return [one for one in found if one[:2] not in [(position, number) for number in numbers]]


class _Refused:
    """A refused request, and others like it that leave something out."""

    def __init__(self, view: SessionView, request: Request) -> None:
        source = source_of(request)
        self._view = view
        self._source = source
        self.messages = _read(view, source.policy, source.to)
        self.again = source.build(self.messages)
        """The same request of the conversation as it is now."""

    def without(self, new: Iterable[NewWithholding]) -> Request:
        """Return the request without some more parts."""
        more: dict[int, tuple[WithheldPart, ...]] = {}
        for one in new:
            at = one.row.place.position
            more[at] = (*more.get(at, ()), one.row.part)
        return self._source.build(
            [
                item._replace(withheld=(*item.withheld, *more[item.number]))
                if item.number in more and not item.summary
                else item
                for item in self.messages
            ]
        )

    def in_open_turn(self, places: Iterable[Place]) -> list[Place]:
        """Return those of the open turn, and those after the last reply's request began."""
        positions = zip(self.messages, turn_positions(self.messages), strict=True)
        open_turn = {item.number for item, position in positions if position.in_open_turn}
        return [place for place in places if place.message in open_turn]

    def is_thought(self, place: Place) -> bool:
        numbers = (item for item in self.messages if item.number == place.message)
        return any(
            number == place.block and isinstance(block, ThinkingBlock)
            for item in numbers
            for number, block in item.blocks
        )

    def resend(self, explained: Explanation) -> Recovery:
        """Return the request with the thoughts that the settings had left out."""
        named = dict(one.split("=") for one in explained.settings if "=" in one)
        for settings in (named, _EVERYTHING):
            policy = _with_settings(self._source.policy, settings)
            source = replace(self._source, policy=policy)
            request = source.build(_read(self._view, policy, source.to))
            if request.body != self.again.body:
                sets = ", ".join(f"{key}={value}" for key, value in settings.items())
                reason = f"{explained.cause}; sent again with {sets}, in this request only"
                return Recovery(request=request, act="resend", reason=reason, is_certain=True)
        left_out = [one.reason for one in self.again.verdicts if one.rule == "withheld"]
        because = left_out[0] if left_out else "no thought is stored that the settings left out"
        return Recovery(
            request=None, act="resend", reason=f"{explained.cause}; {because}; {explained.fix}"
        )


def _read(view: SessionView, policy: Policy, to: Target) -> list[ViewedMessage]:
    """Return a branch with all of its thinking."""
    return view.at_one_moment(lambda view: view.with_chains(view.messages(1), policy, to))


def _with_settings(policy: Policy, settings: dict[str, Any]) -> Policy:
    chosen = {
        key: value
        for key, value in policy.settings.by_key().items()
        if policy.layers[key] != "default"
    }
    return resolve_settings({**chosen, **settings})


def _part_of(place: Place, act: Act, of: _Refused) -> str:
    if place.piece is not None:
        return str(place.piece)
    return SEAL if act == "seal" and not of.is_thought(place) else BLOCK


def _visible(row: StoredRow) -> set[int]:
    blocks = enumerate(row.message.blocks)
    return {number for number, block in blocks if not isinstance(block, ThinkingBlock)}


def _numbers(row: StoredRow, block: int | None) -> list[int]:
    """Return the blocks that are meant: one, or the thoughts of a message, or its media."""
    blocks = row.message.blocks
    if block is not None:
        if isinstance(block, bool) or not isinstance(block, int) or not 0 <= block < len(blocks):
            raise InvalidCall(
                f"block: message {row.position} has the blocks 0 to {len(blocks) - 1}",
                hint="get(position).message.blocks lists them",
            )
        return [block]
    for kind in (ThinkingBlock, MediaBlock):
        if found := [number for number, one in enumerate(blocks) if isinstance(one, kind)]:
            return found
    raise InvalidCall(
        f"message {row.position} has no thought and no media", hint="name the block=, from 0"
    )


def _checked_part(row: StoredRow, number: int, part: str | int) -> str:
    """Return the part of a block that is left out, as it is stored."""
    block, name = row.message.blocks[number], str(part)
    if name == BLOCK:
        return BLOCK
    if name == SEAL and not isinstance(block, ThinkingBlock):
        return SEAL
    pieces = block.result if isinstance(block, ToolResponseBlock) else None
    if name.isdecimal() and isinstance(pieces, list) and int(name) < len(pieces):
        return name
    raise InvalidCall(
        f"part: block {number} of message {row.position} has no such part",
        hint='"block"; "seal" of a call or a text; or the index of a piece of a tool\'s result',
    )


def _voided(view: SessionView, row: WithheldRow) -> int:
    """Return how many thoughts are sent now, and would not be if a part were sent again."""
    last = view.ledger_views.last_request(view.key, view.branch_number)
    if last is None:
        return 0
    to, policy = how_sent(last, view.state.contracts)
    now = view.with_chains(view.messages(1), policy, to)
    then = [
        item._replace(withheld=[part for part in item.withheld if part != row.part])
        if item.number == row.place.position
        else item
        for item in now
    ]
    digest = last.facts.get("digest")
    return len(_sent(now, policy, to, digest) - _sent(then, policy, to, digest))


def _sent(
    view: Sequence[ViewedMessage], policy: Policy, to: Target, digest: str | None
) -> set[tuple[int, int]]:
    verdicts = judge(view, turn_positions(view), policy.settings, to, digest)
    return {(one.message, one.block) for own in verdicts for one in own if one.rule in SENT}
