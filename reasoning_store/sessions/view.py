"""One branch of a session as its next request, a count or a plan reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from reasoning_store.ledger.records import RecordedRequest, SessionRow
from reasoning_store.ledger.view_records import (
    NarrowRow,
    RequestSnapshot,
    SummaryRow,
    summary_digest,
)
from reasoning_store.ledger.views import Views
from reasoning_store.store_state import StoreState
from reasoning_store.tokens import counter

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.conversation.settings import Policy
    from reasoning_store.egress.request_inputs import RequestInputs
    from reasoning_store.egress.selection_values import ViewedMessage
    from reasoning_store.egress.target import Target
    from reasoning_store.wire.contract_tables import Contracts

UNNAMED = (None, None, None, None)
AFTER_ALL = 1 << 62
"""A position after all messages: from there on no thinking has to be read."""

CHANGED = 0
"""Instead of the position of a reply: its request was made of messages that have changed since."""

T = TypeVar("T")
Verb = TypeVar("Verb", bound=Callable[..., Any])


class ContextNames(TypedDict, total=False):
    """The keywords of every verb about a context: the fields of ``ContextOptions``."""

    provider: str | None
    model: str | None
    api: str | None
    base_url: str | None
    system: Any
    tools: Sequence[Mapping[str, Any]] | None
    settings: ReasoningSettings | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """The model of a request, and its arguments apart from the conversation."""

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


def spell_names(verb: Verb) -> Verb:
    """Write the names of a context into the signature of a verb that takes them, for ``help``."""
    found = signature(verb)
    own = [one for one in found.parameters.values() if one.kind is not one.VAR_KEYWORD]
    names = signature(ContextOptions).parameters.values()
    own += [one.replace(kind=one.KEYWORD_ONLY) for one in names]
    verb.__signature__ = found.replace(parameters=own)  # type: ignore[attr-defined]
    return verb


class SessionView:
    """Reads one branch for requests; it changes nothing."""

    def __init__(
        self, state: StoreState, row: SessionRow, branch: int, views: Views | None = None
    ) -> None:
        self.state = state
        self.row = row
        self.key = row.key
        self.branch_number = branch
        self.ledger_views = state.ledger.views if views is None else views

    def at_one_moment(self, work: Callable[[SessionView], T]) -> T:
        """Run ``work`` with a view whose reads share one transaction; it is quick."""

        def bound(views: Views) -> T:
            return work(SessionView(self.state, self.row, self.branch_number, views))

        return self.ledger_views.at_one_moment(bound)

    def policy(self, options: ContextOptions) -> Policy:
        from reasoning_store.sessions import settings as session_settings

        kept = self.state.ledger.sessions.kept_settings(self.row.owner, self.row.id)
        return session_settings.policy(self.state, kept, options.settings)

    def target(self, options: ContextOptions) -> Target:
        """Return the model that is named, or that gave the last recorded reply."""
        last = None
        if options.names == UNNAMED:
            last = self.ledger_views.last_request(self.key, self.branch_number)
        return resolve_target(options.names, last, self.state.contracts)

    def thinking_needed_from(self, at: int | None = None) -> tuple[int, int]:
        return self.ledger_views.thinking_needed_from(self.key, self.branch_number, at)

    def inputs(
        self, options: ContextOptions, encoding: str, extra: Mapping[str, Any] | None = None
    ) -> RequestInputs:
        """Return the checked system and tools, and ``extra``."""
        from reasoning_store.egress.request_inputs import RequestInputs

        return RequestInputs.of(counter(encoding), options.system, options.tools, extra)

    def messages(self, thinking_from: int) -> list[ViewedMessage]:
        """Return the branch with its compactions applied."""
        from reasoning_store.egress.selection_values import ViewedMessage

        found = self.ledger_views.view(self.key, self.branch_number, thinking_from=thinking_from)
        withheld = self.ledger_views.withheld(self.key, self.branch_number)
        return [
            ViewedMessage(
                row.message,
                row.counts,
                row.position,
                summary=True,
                digest=summary_digest(row.last),
            )
            if isinstance(row, SummaryRow)
            else ViewedMessage(
                row.message,
                row.counts,
                row.position,
                unread=row.headers or (),
                withheld=withheld.get(row.position, ()),
                digest=row.digest,
            )
            for row in found
        ]

    def with_chains(
        self, items: list[ViewedMessage], policy: Policy, to: Target
    ) -> list[ViewedMessage]:
        """Return a view with what is known of the requests that its replies answered.

        Only a host that binds reasoning to all that precedes it needs that.
        """
        first = _first_chain(policy, to, self.thinking_needed_from)
        if first is None:
            return items
        found = self.ledger_views.requests_from(self.key, self.branch_number, first)
        requests = {row.position: row.facts for row in found}
        return [
            item._replace(
                inputs_digest=requests[item.number].get("digest"),
                chain=requests[item.number].get("chain"),
            )
            if item.number in requests and not item.summary
            else item
            for item in items
        ]

    def how_next(self, options: ContextOptions, snapshot: RequestSnapshot) -> tuple[Policy, Target]:
        """Return how the next request is made."""
        from reasoning_store.sessions import settings as session_settings

        policy = session_settings.policy(self.state, snapshot.settings, options.settings)
        to = resolve_target(options.names, snapshot.last_request, self.state.contracts)
        return policy, to

    def chains_from(
        self, options: ContextOptions, snapshot: RequestSnapshot, rows: Sequence[NarrowRow]
    ) -> int | None:
        """Return from which position on the chains of a narrow view are needed."""
        last = max((row.position for row in rows if row.headers), default=1)
        how = self.how_next(options, snapshot)
        return _first_chain(*how, lambda: (snapshot.turn_start or 1, last))

    def earlier_request(
        self, snapshot: RequestSnapshot, digest: str | None
    ) -> EarlierRequest | None:
        """Return how the request was made that the last recorded reply answered.

        None if nothing is known of it, or it had system and tools of another digest.
        """
        from reasoning_store.egress.usage import first_thinking_sent

        last = snapshot.last_request
        if last is None or "digest" not in last.facts:
            return None
        if digest is not None and last.facts["digest"] != digest:
            return None
        to, policy = how_sent(last, self.state.contracts)
        in_force = self.ledger_views.in_force_when_sent(self.key, last)
        erased_at = snapshot.session.erased_at
        if in_force != snapshot.in_force.before(last.position) or (
            erased_at is not None and erased_at >= last.created_at
        ):
            return EarlierRequest(to, policy, CHANGED, AFTER_ALL)
        needed_from = partial(self.thinking_needed_from, last.position - 1)
        first = first_thinking_sent(needed_from, policy.settings, to)
        return EarlierRequest(to, policy, last.position, first)


def how_sent(request: RecordedRequest, contracts: Contracts) -> tuple[Target, Policy]:
    """Return the target and the settings of a recorded request."""
    from reasoning_store.conversation.settings import resolve_settings

    values = request.facts.get("settings", {})
    chosen = request.facts.get("chosen", values)  # rows of before have none: all were chosen
    policy = resolve_settings({key: values[key] for key in chosen})
    return _target_of(request.facts, contracts), policy


def _first_chain(
    policy: Policy, to: Target, needed_from: Callable[[], tuple[int, int]]
) -> int | None:
    """Return from which position on thoughts may be sent; None if the host binds none."""
    if to.contract.returning.prefix_bound is None:
        return None
    from reasoning_store.egress.usage import first_thinking_sent

    return first_thinking_sent(needed_from, policy.settings, to)


@dataclass(frozen=True, slots=True)
class EarlierRequest:
    """How an earlier request was made."""

    to: Target
    policy: Policy
    position: int
    """The position of its reply: the messages before it were sent; or ``CHANGED``."""
    first_with_thinking: int
    """The first position whose thinking it may have carried."""


def resolve_target(
    names: tuple[str | None, str | None, str | None, str | None],
    last: RecordedRequest | None,
    contracts: Contracts,
) -> Target:
    """Return the model that is named, or the one that gave the last recorded reply."""
    from reasoning_store.egress.target import find_target

    if names == UNNAMED:
        return _target_of({} if last is None else last.facts, contracts)
    return find_target(*names, contracts)


def _target_of(facts: Mapping[str, Any], contracts: Contracts) -> Target:
    """Return the target of a recorded request."""
    from reasoning_store.egress.target import continued_target

    names = (facts.get("provider"), facts.get("model"), facts.get("api"), facts.get("baseUrl"))
    return continued_target(*names, contracts)
