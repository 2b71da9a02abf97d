"""One branch of a session, as verbs, requests, counts and plans read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    Origin,
    ThinkingBlock,
    with_blocks,
)
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.conversation.validation import (
    are_several,
    check_mapping,
    check_position,
    check_text,
)
from reasoning_store.ledger.message_ids import no_message
from reasoning_store.ledger.records import Erased, SentRow, SessionRow, StoredRow
from reasoning_store.ledger.rows.thinking_header import ThinkingHeader
from reasoning_store.ledger.rows.totals import field_of, origin_of
from reasoning_store.ledger.view_records import Outlook, SummaryRow, ViewTotals
from reasoning_store.ledger.views import Views
from reasoning_store.store_state import StoreState
from reasoning_store.stored import (
    Branch,
    Stored,
    as_public_conflict,
    branch,
    draft_so_far,
    microseconds,
    stored_history,
    versions,
)

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.conversation.settings import Policy
    from reasoning_store.egress.request_inputs import RequestInputs
    from reasoning_store.egress.target import Target
    from reasoning_store.egress.verdicts import ViewedMessage
    from reasoning_store.ledger.erasure import Only
    from reasoning_store.recording.following import Following

UNNAMED = (None, None, None, None)
MOST_REASON = 200
"""The most characters of the reason of a stop."""
AFTER_ALL = 1 << 62
"""A position after all messages: from there on no thinking has to be read."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """The model that a request is for, and what goes with the conversation."""

    provider: str | None = None
    model: str | None = None
    api: str | None = None
    base_url: str | None = None
    system: Any = None
    tools: Sequence[Mapping[str, Any]] | None = None
    settings: ReasoningSettings | Mapping[str, Any] | None = None

    @property
    def names(self) -> tuple[str | None, str | None, str | None, str | None]:
        return self.provider, self.model, self.api, self.base_url


class SessionBranch:
    """Reads and changes one branch: another thread may move the session's handle meanwhile."""

    def __init__(
        self, state: StoreState, row: SessionRow, branch: int, pending: set[int] | None = None
    ) -> None:
        self.state = state
        self._pending = set() if pending is None else pending
        """The branches of the handle that become current with their first message."""
        self.ledger = state.ledger
        self.views = state.ledger.views
        self.row = row
        self.key = row.key
        self.branch = branch

    def at_one_moment(self, work: Callable[[SessionBranch], T]) -> T:
        """Run ``work`` with this branch as it is at one moment: it only reads, and is quick."""

        def bound(views: Views) -> T:
            branch = SessionBranch(self.state, self.row, self.branch)
            branch.views = views
            return work(branch)

        return self.views.at_one_moment(bound)

    def locate(self, *at: int | str | None) -> tuple[SessionBranch, list[Any]]:
        """Return a branch that has the messages of these ids, and the position of each.

        This branch, if it has them all. A position stays as it is, and so does None.
        """
        ids = [one for one in at if isinstance(one, str)]
        if not ids:
            return self, list(at)
        branch, positions = self.ledger.history.locate(self.key, self.branch, ids)
        found = dict(zip(ids, positions, strict=True))
        here = SessionBranch(self.state, self.row, branch)
        return here, [found[one] if isinstance(one, str) else one for one in at]

    def append(
        self,
        given: Any,
        idempotency_key: str | None,
        after: int | str | None,
        created_at: datetime | None,
    ) -> list[Stored]:
        """Store messages at the end, as one."""
        # Anything else goes on as one message, and is refused there as not being one.
        several = type(given) is list or are_several(given)
        batch = enumerate(given) if several else [(None, given)]
        # Masking, counting and JSON are done before the ledger's lane is asked for.
        entries = [self.state.prepare(item, self.row.encoding, at=at) for at, item in batch]
        self.state.draft_writer.write_branch(self.key, self.branch)
        here, (last,) = self.locate(after)
        if here.branch != self.branch:
            raise Conflict(
                f"the message to append after is on branch {here.branch}",
                hint=f"session.branch({here.branch}).append(...) continues there",
            )
        try:
            rows = self.ledger.messages.append(
                self.key,
                self.branch,
                entries,
                after=last,
                idempotency_key=idempotency_key,
                created_at=microseconds(created_at, "created_at"),
                resolve=self.state.resolve,
            )
        except Conflict as conflict:
            raise as_public_conflict(conflict) from None
        self.become_current()
        return [Stored(row) for row in rows]

    def history(
        self,
        *,
        limit: int | None,
        tokens: int | None,
        before: int | str | None,
        after: int | str | None,
    ) -> list[Stored]:
        here, (first, last) = self.locate(after, before)
        moment = here.ledger.history.moment(
            here.key, here.branch, limit=limit, tokens=tokens, before=last, after=first
        )
        return stored_history(moment, here.branch, with_draft=before is None, after=first)

    def get(self, position: int | str) -> Stored:
        if isinstance(position, str):
            here, (at,) = self.locate(position)
            found = here.get(at)
            if found.id != position:  # a reply that has ended meanwhile, of which nothing came
                raise no_message(position)
            return found
        moment = self.ledger.history.moment_at(self.key, self.branch, position)
        others = versions(moment, self.branch).get(position, ())
        if (
            moment.draft is not None
            and (arriving := draft_so_far(moment.draft, others)) is not None
        ):
            return arriving
        rows = moment.rows or [self.ledger.history.get(self.key, self.branch, position)]
        return Stored(rows[0], others)

    def edit(self, position: int | str, message: Message) -> Stored:
        """Store a message in place of another, on a new branch."""
        check_position("position", position)
        entry = self.state.prepare(message, self.row.encoding)
        here, (at,) = self.locate(position)
        role = here.get(position).message.role
        if message.role != role:
            raise InvalidCall(
                f"the message at {at} is of the role {role}, not {message.role}",
                hint="edit takes a message of that role"
                + (f"; regenerate({at}) asks for another reply" * (role == "assistant")),
            )
        return Stored(self.ledger.messages.edit(self.key, here.branch, at, entry))

    def fork(self, at: int | str) -> int:
        """Make a new branch that shares the messages before ``at``."""
        here, (position,) = self.locate(at)
        resolve = self.state.resolve
        return self.ledger.branches.fork(self.key, here.branch, position, resolve=resolve)

    def fork_before_reply(self, position: int | str) -> int:
        """Make a branch that ends before a reply, and becomes current with its first message."""
        here, (at,) = self.locate(position)
        if here.get(position).message.role != "assistant":
            raise InvalidCall(
                f"the message at {at} is not a model's reply",
                hint="edit(position, message) replaces a user's message",
            )
        branch = self.ledger.branches.fork(self.key, here.branch, at)
        self._pending.add(branch)
        return branch

    def drop_tail(self, at: int | str) -> tuple[int, list[Stored]]:
        """Make a new current branch that ends before a message; return it and what it lacks."""
        check_position("at", at)
        here, (position,) = self.locate(at)
        branch, rows = self.ledger.messages.drop_tail(self.key, here.branch, position)
        return branch, [Stored(row) for row in rows]

    def branches(self) -> list[Branch]:
        """Return every branch, the oldest first."""
        current = self.session().current_branch
        return [branch(row, current=current) for row in self.ledger.branches.all_of(self.key)]

    def fork_before_turn(self) -> int:
        """Make a new current branch that ends before the last turn."""
        start = self.ledger.branches.head(self.key, self.branch).turn_start
        if start is None:
            raise InvalidCall("there is no turn to take back: the branch has no user message yet")
        return self.ledger.branches.fork(self.key, self.branch, start, current=True)

    def follow(self, after: str | None) -> Following:
        """Follow the reply that is arriving."""
        from reasoning_store.recording.following import Following, ReplyFollower

        return Following(ReplyFollower(self, after))

    def stop(self, reason: str) -> bool:
        """Ask the recorder of the reply that is arriving to stop."""
        if not isinstance(reason, str) or not 0 < len(reason) <= MOST_REASON:
            raise InvalidCall(
                "reason: a short text that says why", hint=f"1 to {MOST_REASON} characters"
            )
        text = check_text("reason", reason)
        was_live = self.ledger.drafts.stop(self.key, self.branch, text)
        self.state.draft_writer.wake()  # it may be recorded here
        return was_live

    def annotate(self, position: int | str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Merge into the annotations of a message."""
        check_position("position", position)
        wanted = check_mapping("annotations", changes)
        if self.state.masker is not None:
            from reasoning_store.ingress.masking import mask_value

            wanted = mask_value(wanted, self.state.masker)
        return self.ledger.annotations.merge(self.key, self.branch, position, wanted)

    def erase(self, position: int | str | None, *, only: Only) -> Erased:
        """Erase the session, or a message; or only the reasoning of that."""
        erasure, count, resolve = self.ledger.erasure, self.state.count, self.state.resolve
        if position is None:
            return erasure.erase_session(self.key, only=only, count=count, resolve=resolve)
        here, (at,) = self.locate(position)
        if isinstance(position, str):
            # A live reply may end as no message: then another message has its position.
            self.ledger.drafts.end_at(self.key, here.branch, at, resolve, at_once=True)
            here, (at,) = here.locate(position)
        return erasure.erase_message(
            self.key, here.branch, at, only=only, count=count, resolve=resolve
        )

    def become_current(self) -> int | None:
        """Make a branch that was made for another reply current; return the one that was."""
        if self.branch not in self._pending:
            return None
        was = self.session().current_branch
        self.ledger.branches.activate(self.key, self.branch)
        self._pending.discard(self.branch)
        return was

    def fall_back(self, was: int | None) -> None:
        """Make the earlier branch current again: no reply has arrived on this one."""
        if was is None:
            return
        self._pending.add(self.branch)
        if self.session().current_branch == self.branch:
            self.ledger.branches.activate(self.key, was)

    def session(self) -> SessionRow:
        return self.ledger.sessions.get(self.row.owner, self.row.id)

    def policy(self, options: ContextOptions) -> Policy:
        from reasoning_store import session_settings

        kept = self.ledger.sessions.kept_settings(self.row.owner, self.row.id)
        return session_settings.policy(self.state, kept, options.settings)

    def target(self, options: ContextOptions) -> Target:
        """Return the model that is named, or that gave the last recorded reply."""
        return resolve_target(options.names, lambda: self.views.last_sent(self.key, self.branch))

    def outlook(self, at: int | None = None, *, sent: bool = True) -> Outlook:
        return self.views.outlook(self.row.owner, self.row.id, self.branch, at, sent=sent)

    def totals(self, at: int | None = None) -> ViewTotals:
        return self.views.usage(self.key, self.branch, at)

    def inputs(
        self, options: ContextOptions, encoding: str, extra: Mapping[str, Any] | None = None
    ) -> RequestInputs:
        """Return the checked system and tools, and ``extra``."""
        from reasoning_store.egress.request_inputs import RequestInputs

        return RequestInputs.of(self.state.counter(encoding), options.system, options.tools, extra)

    def view(self, thinking_from: int) -> list[ViewedMessage]:
        """Return the branch with its compactions applied."""
        found = self.views.view(self.key, self.branch, thinking_from=thinking_from)
        return [_viewed(row) for row in found.rows]

    def with_digests(
        self, items: list[ViewedMessage], policy: Policy, to: Target
    ) -> list[ViewedMessage]:
        """Return a view with the digests of the requests that its replies answered.

        Only a host that binds reasoning to all that precedes it needs them.
        """
        if to.contract.returning.prefix_bound_hint is None:
            return items
        from reasoning_store.egress.usage import first_thinking_sent

        first = first_thinking_sent(self.totals, policy.settings, to)
        sent = self.views.sent_from(self.key, self.branch, first)
        digests = {row.position: row.sent["digest"] for row in sent if "digest" in row.sent}
        return [
            replace(item, inputs_digest=digests[item.number])
            if item.number in digests and not item.summary
            else item
            for item in items
        ]

    def earlier_request(self, now: Outlook, digest: str) -> EarlierRequest | None:
        """Return how the request was made that the last recorded reply answered.

        None if its system and tools were others, or nothing is known of it.
        """
        from reasoning_store.conversation.settings import resolve
        from reasoning_store.egress.usage import first_thinking_sent

        last = now.sent
        if last is None or last.sent.get("digest") != digest:
            return None
        to = _target_of(last.sent)
        policy = resolve(last.sent["settings"])
        in_force = self.views.in_force_when_sent(self.key, last)
        erased_at = now.session.erased_at
        if in_force != now.usage.in_force.before(last.position) or (
            erased_at is not None and erased_at >= last.created_at
        ):
            return EarlierRequest(to, policy, 0, AFTER_ALL)
        first = first_thinking_sent(lambda: self.totals(last.position - 1), policy.settings, to)
        return EarlierRequest(to, policy, last.position, first)


@dataclass(frozen=True, slots=True)
class EarlierRequest:
    """How an earlier request was made."""

    to: Target
    policy: Policy
    position: int
    """The position of its reply: the messages before it were sent. 0 if they have changed."""
    first_with_thinking: int
    """The first position whose thinking it may have carried."""


def _viewed(row: StoredRow | SummaryRow) -> ViewedMessage:
    from reasoning_store.egress.verdicts import ViewedMessage

    if isinstance(row, SummaryRow):
        return ViewedMessage(row.message, row.counts, row.position, summary=True)
    message = row.message if not row.headers else _with_unread_thinking(row.message, row.headers)
    return ViewedMessage(message, row.counts, row.position)


def _with_unread_thinking(message: Message, headers: Iterable[ThinkingHeader]) -> Message:
    blocks: list[Block] = list(message.blocks)
    for header in headers:
        blocks.insert(header.place, _unread_thinking(header.flags, header.source_field))
    return with_blocks(message, blocks)


@lru_cache(maxsize=1024)
def _unread_thinking(flags: int, source_field: str | None) -> ThinkingBlock:
    header = ThinkingHeader(0, 0, flags, source_field)
    return ThinkingBlock(
        thought=_UNREAD if header.readable else "",
        source_field=header.source_field,
        is_hidden=header.hidden,
        signature=_UNREAD if header.signed else None,
        encrypted=_UNREAD if header.encrypted else None,
        redacted=header.redacted,
        interrupted=header.interrupted,
    )


_UNREAD = "unread"


def origins_by_kind(totals: ViewTotals) -> Callable[[str], tuple[Origin | None, str | None]]:
    """Return a function from a kind of opaque thinking to its origin and its field."""

    def origin_and_field(kind: str) -> tuple[Origin | None, str | None]:
        return totals.origins.get(origin_of(kind)), field_of(kind)

    return origin_and_field


def resolve_target(names: tuple[str | None, ...], last: Callable[[], SentRow | None]) -> Target:
    """Return the model that is named, or the one that gave the last recorded reply."""
    from reasoning_store.egress.target import find_target, known_target

    if names == UNNAMED:
        found = last()
        return _target_of(found.sent if found is not None else {})
    if all(name is None or isinstance(name, str) for name in names):
        return known_target(*names)
    return find_target(*names)


def _target_of(sent: Mapping[str, Any]) -> Target:
    """Return the target of a recorded request."""
    from reasoning_store.egress.target import continued_target

    names = (sent.get("provider"), sent.get("model"), sent.get("api"), sent.get("baseUrl"))
    return continued_target(*names)
