"""A conversation as one model gets to see it: the next request, its count, the alternatives.

Each verb reads the rows of now, with the settings that hold now (BR-008), and changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_tokens, check_truth
from reasoning_store.egress.budget import THRESHOLD
from reasoning_store.ledger.records import RecordedRequest
from reasoning_store.recording.streams import FED
from reasoning_store.sessions import settings as session_settings
from reasoning_store.sessions.branch import SessionBranch
from reasoning_store.sessions.view import (
    AFTER_ALL,
    CHANGED,
    UNNAMED,
    ContextNames,
    ContextOptions,
    EarlierRequest,
    SessionView,
    resolve_target,
    spell_names,
)

if TYPE_CHECKING:
    from reasoning_store.conversation.identity import Asked
    from reasoning_store.conversation.settings import Policy
    from reasoning_store.egress.compaction_plan import Plan
    from reasoning_store.egress.request import Request
    from reasoning_store.egress.selection_values import ViewedMessage
    from reasoning_store.egress.target import Target
    from reasoning_store.egress.usage import ContextUsage
    from reasoning_store.egress.what_if import WhatIf
    from reasoning_store.recording.recording import Recording
    from reasoning_store.sessions.recovery import Ask, Recovery
    from reasoning_store.sessions.session import Session

P = ParamSpec("P")
T = TypeVar("T")


class Context:
    """The part of a conversation that one model gets to see: you name the model once.

    Made by ``Session.context``. It follows its session: after an ``edit`` it is about the new
    branch. Each verb takes the names again, for one call; a session's verbs of the same kind are
    made from these.
    """

    def __init__(
        self, session: Session, limit: int | None = None, **names: Unpack[ContextNames]
    ) -> None:
        check_tokens("limit", limit, least=1, optional=True)
        self._session = session
        self._options = ContextOptions(**names)
        self._limit = limit
        self._last_request: Request | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._session!r}>"

    @spell_names
    def request(
        self, extra: Mapping[str, Any] | None = None, **names: Unpack[ContextNames]
    ) -> Request:
        """Return the next request, with the settings that hold now.

        Without names it is for the model that gave the last recorded reply. ``system`` and
        ``tools`` are for this request only: counted, and never stored. ``extra`` is laid over its
        body. ``cache_break`` compares it with the request which that reply answered.
        """
        from reasoning_store.egress.request import build

        view = self._branch().view
        options = replace(self._options, **names)
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

    def recover(self, error: object, *, ask: Ask | None = None) -> Recovery:
        """Bring back this context's last request, which was refused. See ``Session.recover``."""
        if self._last_request is None:
            raise InvalidCall(
                "this context has made no request yet",
                hint="session.recover(error, request) takes the one that was refused",
            )
        found = self._session.recover(error, self._last_request, ask=ask)
        self._last_request = found.request or self._last_request
        return found

    @spell_names
    def usage(
        self,
        *,
        limit: int | None = None,
        at: int | str | None = None,
        calibrated: bool = False,
        **names: Unpack[ContextNames],
    ) -> ContextUsage:
        """Return the tokens of the next request (BR-004); no text is read.

        With ``at`` it is the request that would have followed that position, or the message
        of that id. ``calibrated`` counts in the provider's tokens: by the ratio of the ``input``
        that it reported for the model's last request to the count of that one, where it did.
        """
        from reasoning_store.egress.usage import count_usage

        check_truth("calibrated", calibrated)
        check_tokens("limit", limit, least=1, optional=True)
        options = replace(self._options, **names)
        branch, (position,) = self._branch().locate(at)
        view = branch.view
        with_last = calibrated or options.names == UNNAMED
        inputs = view.inputs(options, view.row.encoding)

        snapshot, rows = view.ledger_views.narrow(
            view.row,
            view.branch_number,
            position,
            with_last=with_last,
            chains_from=partial(view.chains_from, options),
        )
        policy, to = view.how_next(options, snapshot)
        found = count_usage(
            rows,
            policy.settings,
            to,
            fixed=inputs.fixed,
            inputs_digest=inputs.digest,
            encoding=snapshot.session.encoding,
            limit=limit or self._limit,
        )
        return found if not calibrated else _calibrated(found, to, snapshot.last_request)

    @spell_names
    def what_if(self, **names: Unpack[ContextNames]) -> WhatIf:
        """Return what each policy would send, side by side."""
        from reasoning_store.egress.what_if import what_if

        options = replace(self._options, **names)
        view = self._branch().view
        inputs = view.inputs(options, view.row.encoding)

        def read(view: SessionView) -> tuple[list[ViewedMessage], Policy, Target]:
            snapshot = view.ledger_views.request_snapshot(
                view.row, view.branch_number, with_last=options.names == UNNAMED
            )
            policy = session_settings.policy(view.state, snapshot.settings, options.settings)
            to = resolve_target(options.names, snapshot.last_request, view.state.contracts)
            # Nothing is written, so no thought has to be read.
            return view.with_chains(view.messages(AFTER_ALL), policy, to), policy, to

        return what_if(*view.at_one_moment(read), inputs)

    @spell_names
    def compression(
        self,
        *,
        limit: int | None = None,
        threshold: float = THRESHOLD,
        reserve: int = 0,
        target: float | None = None,
        min_growth: int | None = None,
        min_freed: int | None = None,
        summary_tokens: int | None = None,
        clear: bool = True,
        **names: Unpack[ContextNames],
    ) -> Plan:
        """Return whether the next request should get shorter, and how. Changes nothing.

        ``limit`` is the model's whole window, ``reserve`` the part that its answer needs; above
        ``threshold`` of the rest something is done. Without ``clear`` tool results stay as they
        are. ``Session.compact`` applies the plan.
        """
        limit = self._limit if limit is None else limit
        if limit is None:
            raise InvalidCall(
                "a plan needs the limit of the model's context",
                hint="give it once, as in session.context(limit=212_000)",
            )
        from reasoning_store.egress.compaction_plan import Limits
        from reasoning_store.sessions.compaction import SessionCompaction

        limits = Limits(
            limit=limit,
            reserve=reserve,
            threshold=threshold,
            target=target,
            min_growth=min_growth,
            min_freed=min_freed,
            summary_tokens=summary_tokens,
        )
        options = replace(self._options, **names)
        return SessionCompaction(self._branch().view).plan(options, limits, clear=clear)

    @spell_names
    def record(
        self,
        stream: Iterable[Any] | AsyncIterable[Any] = FED,
        *,
        request: Request | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
        starts_inside: bool | None = None,
        merge: bool = False,
        metadata: Mapping[str, Any] | None = None,
        asked: Asked | None = None,
        **names: Unpack[ContextNames],
    ) -> Recording:
        """Return a recording of one reply: iterate it for clean chunks, and it is stored.

        Without a stream you feed the recording yourself (``Recording.feed``). ``api`` names the
        stream's protocol. Without it the first event does, where it carries the mark of one; else
        the ``request`` that it answers, which is the context's last one, or ``provider``, ``model``
        and ``base_url``. A stream of which nothing is understood is stored as interrupted, with
        ``finish_reason="unread"``, all of its events and a warning. A whole response is recorded as
        well. ``starts_inside`` is for models whose template opens a thought in the prompt. After
        native thinking ``merge`` keeps thoughts in tags that differ from it, too. ``metadata``
        becomes the first annotations of the draft and the message; ``secondsThought`` and
        ``secondsToFirstToken`` are added. ``id`` is an id of your own for the message, as in
        ``append``, and is recorded once. ``asked`` is that of ``Owner.identify``: by it the reply
        is found again.
        """
        from reasoning_store.recording.recording import Recording
        from reasoning_store.recording.reply_recorder import ReplyRecorder

        reply = ReplyRecorder(
            self._branch(),
            request or self._last_request,
            replace(self._options, **names),
            id=id,
            idempotency_key=idempotency_key,
            starts_inside=starts_inside,
            merge=merge,
            metadata=metadata,
            asked=asked,
        )
        return Recording(reply, stream)

    def _branch(self) -> SessionBranch:
        # Another thread may move the session's handle: each verb reads one branch to its end.
        return self._session._own_branch()


def of_context(
    verb: Callable[Concatenate[Context, P], T],
) -> Callable[Concatenate[Any, P], T]:
    """Return a verb of a context as one of the session's, with the names in the call."""

    @wraps(verb)
    def ask(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verb(Context(self), *args, **kwargs)

    return ask


def _calibrated(found: ContextUsage, to: Target, last: RecordedRequest | None) -> ContextUsage:
    """Return a count scaled by the provider's report for the last request, if it reported."""
    from reasoning_store.egress.usage import calibrate

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
    return earlier, view.with_chains(sent, earlier.policy, earlier.to)


def _read_request(view: SessionView, options: ContextOptions, digest: str) -> _RequestReads:
    from reasoning_store.egress.usage import first_thinking_sent

    snapshot = view.ledger_views.request_snapshot(view.row, view.branch_number)
    policy = session_settings.policy(view.state, snapshot.settings, options.settings)
    to = resolve_target(options.names, snapshot.last_request, view.state.contracts)
    earlier = view.earlier_request(snapshot, digest)
    first = first_thinking_sent(view.thinking_needed_from, policy.settings, to)
    if earlier is not None:
        first = min(first, earlier.first_with_thinking)
    messages = view.messages(first)
    before: list[ViewedMessage] = []
    if earlier is not None:
        same = [item for item in messages if item.number < earlier.position]
        before = view.with_chains(same, earlier.policy, earlier.to)
    messages = view.with_chains(messages, policy, to)
    return _RequestReads(snapshot.last_request, policy, to, messages, earlier, before)
