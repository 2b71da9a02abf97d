"""A conversation as one model gets to see it: the next request, its count, the alternatives.

Each verb reads the rows of now, with the settings that hold now (BR-008), and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.settings import Policy
from reasoning_store.conversation.validation import check_tokens, check_truth
from reasoning_store.egress.budget import THRESHOLD
from reasoning_store.egress.target import Target
from reasoning_store.egress.usage import ContextUsage, calibrate, count_usage, first_thinking_sent
from reasoning_store.egress.verdicts import ViewedMessage
from reasoning_store.ledger.records import RecordedRequest
from reasoning_store.sessions import settings as session_settings
from reasoning_store.sessions.branch import SessionBranch
from reasoning_store.sessions.view import (
    AFTER_ALL,
    CHANGED,
    UNNAMED,
    ContextOptions,
    EarlierRequest,
    SessionView,
    origins_by_kind,
    resolve_target,
)

if TYPE_CHECKING:
    from reasoning_store.egress.compaction_plan import Plan
    from reasoning_store.egress.request import Request
    from reasoning_store.egress.what_if import WhatIf
    from reasoning_store.recording.recording import Recording
    from reasoning_store.recording.reply_recorder import ReplyRecorder
    from reasoning_store.sessions.session import Session


class Context:
    """The part of a conversation that one model gets to see: you name the model once.

    Made by ``Session.context``. It follows its session: after an ``edit`` it is about the new
    branch.
    """

    def __init__(self, session: Session, options: ContextOptions, limit: int | None = None) -> None:
        check_tokens("limit", limit, least=1, optional=True)
        self._session = session
        self._options = options
        self._limit = limit
        self._last_request: Request | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._session!r}>"

    def request(self, extra: Mapping[str, Any] | None = None) -> Request:
        """Return the next request, with the settings that hold now.

        ``extra`` is laid over its body. The request that the last recorded reply answered is built
        again too, for ``cache_break``.
        """
        from reasoning_store.egress.request import build

        view = self._branch().view
        options = self._options
        inputs = view.inputs(options, view.row.encoding, extra)
        read = view.at_one_moment(partial(_read_request, options=options, digest=inputs.digest))
        previous, earlier = None, read.earlier
        if earlier is not None:
            previous = build(
                read.earlier_messages, earlier.policy, earlier.to, replace(inputs, extra={})
            )
        request = build(read.messages, read.policy, read.to, inputs, previous=previous)
        if (
            previous is None
            and read.last_request is not None
            and "digest" in read.last_request.facts
        ):
            request = replace(request, cache_break=0)  # system or tools have changed
        self._last_request = request
        return request

    def last_request(self) -> Request | None:
        """Return the request that the last recorded reply answered, built again.

        It has this context's system and tools: of those that were sent only a digest is stored.
        None if no reply was recorded with its request, or its messages have changed since.
        """
        from reasoning_store.egress.request import build

        view = self._branch().view
        inputs = view.inputs(self._options, view.row.encoding)
        found = view.at_one_moment(_read_last_request)
        if found is None:
            return None
        earlier, messages = found
        return build(messages, earlier.policy, earlier.to, inputs)

    def usage(self, *, at: int | str | None = None, calibrated: bool = False) -> ContextUsage:
        """Return the tokens of the next request (BR-004), from the running totals alone.

        With ``at`` it is the request that would have followed that position, or the message
        of that id. ``calibrated`` counts in the provider's tokens: by the ratio of the ``input``
        that it reported for the model's last request to the count of that one, where it did.
        """
        check_truth("calibrated", calibrated)
        options = self._options
        branch, (position,) = self._branch().locate(at)
        view = branch.view
        snapshot = view.ledger_views.request_snapshot(
            view.row,
            view.branch_number,
            position,
            with_last=calibrated or options.names == UNNAMED,
        )
        totals = snapshot.totals
        to = resolve_target(options.names, snapshot.last_request, view.state.contracts)
        found = count_usage(
            totals,
            origins_by_kind(totals),
            session_settings.policy(view.state, snapshot.settings, options.settings).settings,
            to,
            fixed=view.inputs(options, totals.encoding).fixed,
            encoding=totals.encoding,
            limit=self._limit,
        )
        return found if not calibrated else _calibrated(found, to, snapshot.last_request)

    def what_if(self) -> WhatIf:
        """Return what each policy would send, side by side."""
        from reasoning_store.egress.what_if import what_if

        options = self._options
        view = self._branch().view
        inputs = view.inputs(options, view.row.encoding)

        def read(view: SessionView) -> tuple[list[ViewedMessage], Policy, Target]:
            snapshot = view.ledger_views.request_snapshot(
                view.row, view.branch_number, with_last=options.names == UNNAMED
            )
            policy = session_settings.policy(view.state, snapshot.settings, options.settings)
            to = resolve_target(options.names, snapshot.last_request, view.state.contracts)
            # Nothing is written, so no thought has to be read.
            return view.with_digests(view.messages(AFTER_ALL), policy, to), policy, to

        return what_if(*view.at_one_moment(read), inputs)

    def compression(
        self,
        *,
        threshold: float = THRESHOLD,
        reserve: int = 0,
        target: float | None = None,
        min_growth: int | None = None,
        min_freed: int | None = None,
        summary_tokens: int | None = None,
        clear: bool = True,
    ) -> Plan:
        """Return whether the next request should get shorter, and how. Changes nothing.

        The context's ``limit`` is the model's whole window, ``reserve`` the part that its answer
        needs; above ``threshold`` of the rest something is done. Without ``clear`` tool results
        stay as they are. ``Session.compact`` applies the plan.
        """
        if self._limit is None:
            raise InvalidCall(
                "a plan needs the limit of the model's context",
                hint="give it once, as in session.context(limit=212_000)",
            )
        from reasoning_store.egress.compaction_plan import Limits
        from reasoning_store.sessions.compaction import SessionCompaction

        limits = Limits(
            limit=self._limit,
            reserve=reserve,
            threshold=threshold,
            target=target,
            min_growth=min_growth,
            min_freed=min_freed,
            summary_tokens=summary_tokens,
        )
        return SessionCompaction(self._branch().view).plan(self._options, limits, clear=clear)

    def record(
        self,
        stream: Iterable[Any],
        *,
        idempotency_key: str | None = None,
        starts_inside: bool | None = None,
        merge: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Recording:
        """Return a recording of the reply to this context's last request.

        See ``Session.record``.
        """
        from reasoning_store.recording.recording import Recording

        reply = self._reply(
            idempotency_key=idempotency_key,
            starts_inside=starts_inside,
            merge=merge,
            metadata=metadata,
        )
        return Recording(reply, stream)

    def _reply(self, **named: Any) -> ReplyRecorder:
        from reasoning_store.recording.reply_recorder import ReplyRecorder

        return ReplyRecorder(self._branch(), self._last_request, self._options, **named)

    def _branch(self) -> SessionBranch:
        # Another thread may move the session's handle: each verb reads one branch to its end.
        return self._session._own_branch()


def _calibrated(found: ContextUsage, to: Target, last: RecordedRequest | None) -> ContextUsage:
    """Return a count scaled by the provider's report for the last request, if it reported."""
    counted = None if last is None else last.facts.get("tokens")
    if last is None or not last.input or not isinstance(counted, int) or counted <= 0:
        return found
    before = resolve_target(UNNAMED, last, to.contracts).origin
    if (before.provider, before.model) != (to.origin.provider, to.origin.model):
        return found  # another model has another tokenizer
    return calibrate(found, counted=counted, reported=last.input)


@dataclass(frozen=True, slots=True)
class _RequestReads:
    """The inputs of a request, read at one moment."""

    last_request: RecordedRequest | None
    """The request that the last recorded reply answered."""
    policy: Policy
    to: Target
    messages: list[ViewedMessage]
    earlier: EarlierRequest | None
    earlier_messages: list[ViewedMessage]


def _read_last_request(
    view: SessionView,
) -> tuple[EarlierRequest, list[ViewedMessage]] | None:
    snapshot = view.ledger_views.request_snapshot(view.row, view.branch_number)
    earlier = view.earlier_request(snapshot, None)
    if earlier is None or earlier.position == CHANGED:
        return None
    messages = view.messages(earlier.first_with_thinking)
    sent = [item for item in messages if item.number < earlier.position]
    return earlier, view.with_digests(sent, earlier.policy, earlier.to)


def _read_request(view: SessionView, options: ContextOptions, digest: str) -> _RequestReads:
    snapshot = view.ledger_views.request_snapshot(view.row, view.branch_number)
    policy = session_settings.policy(view.state, snapshot.settings, options.settings)
    to = resolve_target(options.names, snapshot.last_request, view.state.contracts)
    earlier = view.earlier_request(snapshot, digest)
    first = first_thinking_sent(lambda: snapshot.totals, policy.settings, to)
    if earlier is not None:
        first = min(first, earlier.first_with_thinking)
    messages = view.messages(first)
    before: list[ViewedMessage] = []
    if earlier is not None:
        same = [item for item in messages if item.number < earlier.position]
        before = view.with_digests(same, earlier.policy, earlier.to)
    messages = view.with_digests(messages, policy, to)
    return _RequestReads(snapshot.last_request, policy, to, messages, earlier, before)
