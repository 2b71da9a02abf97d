"""The promised face of what a session sends: the next request, its count, the alternatives.

Everything here is asked anew of the rows, with the settings that hold at that moment
(BR-008), and changes nothing. ``shortening`` adds how it gets shorter, ``session`` the
verbs that write and read.

Glue: what may leave is decided in ``egress``, what is stored is the ledger's. It must not decide
anything, or know a statement.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from itertools import product
from typing import Any, Concatenate, ParamSpec, TypeVar

from reasoning_store import layers
from reasoning_store.blocks import Origin
from reasoning_store.egress import amounts, building, given
from reasoning_store.egress import request as _request
from reasoning_store.egress.building import Remembered
from reasoning_store.egress.policy import Place
from reasoning_store.egress.request import Request
from reasoning_store.egress.select import decide, target
from reasoning_store.egress.stretch import Stretch
from reasoning_store.egress.usage import ContextUsage, usage
from reasoning_store.egress.verdicts import Target, Viewed
from reasoning_store.egress.what_if import WhatIf, what_if
from reasoning_store.ledger.carried import field_of, origin_of
from reasoning_store.ledger.collecting import uncollected
from reasoning_store.ledger.summaries import Outlook, UsageRows
from reasoning_store.ledger.values import SentRow, SessionRow
from reasoning_store.rope import Rope
from reasoning_store.settings import KEYS, Policy, ReasoningSettings
from reasoning_store.viewing import View
from reasoning_store.workings import Workings

P = ParamSpec("P")
S = TypeVar("S", bound="Sending")
T = TypeVar("T")


def on_its_branch(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Return the same on the branch where the handle stands at its beginning.

    Another thread may move the handle meanwhile, and a verb that reads several times would
    read of two branches.
    """

    @wraps(verb)
    def here(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verb(type(self)(self._workings, self._row, self._branch), *args, **kwargs)

    return here


class Sending:
    """One conversation, on one of its branches, as models get to see it."""

    def __init__(self, workings: Workings, row: SessionRow, branch: int) -> None:
        self._workings = workings
        self._row = row
        self._branch = branch

    @uncollected
    @on_its_branch
    def build_request(
        self,
        *,
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        """Return the next request, with the settings that hold now.

        Whom it is for defaults to who gave the last recorded reply. ``system`` and
        ``tools`` are for this request only: counted, and never stored. ``cache_break`` is
        held against the request of that reply.
        """
        now = self._workings.ledger.outlook(self._row.owner, self._row.id, self._branch)
        row, last = now.session, now.sent
        policy = layers.policy(self._workings, row, settings)
        to = _whom((provider, model, api, base_url), lambda: last)
        counter = self._workings.counter(self._row.encoding)
        digest = given.digest(system, tools)
        first = _first_kept(policy.settings, to, lambda: now.usage)
        then = self._then(now, last, digest) if last is not None else None
        if then is not None:
            first = min(first, then.first)
        view = self._workings.views.of(row, self._branch, thinking_from=first)
        if then is not None and view.in_force != now.usage.in_force.numbers:
            then = replace(then, position=0)  # it was changed since it was looked at
        before = self._made_then(then, view) if then is not None else None
        key = building.Key.of(to, policy.settings, digest)
        request, made = _request.build_next(
            self._asked(view.items, policy, to),
            policy,
            to,
            counter,
            before=_furthest(key, view.made, before),
            system=system,
            tools=tools,
            extra=extra,
            previous=before,
        )
        self._workings.views.remember(row, self._branch, view, made, before)
        if before is None and last is not None and "digest" in last.sent:
            request = replace(request, cache_break=0)  # the head was another
        return request

    def usage(
        self,
        *,
        limit: int | None = None,
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        at: int | None = None,
    ) -> ContextUsage:
        """Return what the next request would count (BR-004), from carried state alone.

        With ``at`` it is that of the request that would have followed that position.
        """
        amounts.tokens("limit", limit, least=1, optional=True)
        names = (provider, model, api, base_url)
        now = self._workings.ledger.outlook(
            self._row.owner, self._row.id, self._branch, at, sent=names == _UNNAMED
        )
        carried = now.usage
        return usage(
            carried,
            makers(carried),
            layers.policy(self._workings, now.session, settings).settings,
            _whom(names, lambda: now.sent),
            fixed=given.fixed(system, tools, self._workings.counter(carried.encoding)),
            encoding=carried.encoding,
            limit=limit,
        )

    @uncollected
    @on_its_branch
    def what_if(
        self,
        *,
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> WhatIf:
        """Return what every include and strip would send, side by side."""
        row = self._session()
        policy = layers.policy(self._workings, row, settings)
        to = self._whom(provider, model, api, base_url)
        # It renders nothing: what was thought need not be read.
        view = self._workings.views.of(row, self._branch, thinking_from=_NOWHERE)
        return what_if(
            self._asked(view.items, policy, to),
            policy,
            to,
            self._workings.counter(self._row.encoding),
            system=system,
            tools=tools,
        )

    # What these are made of

    def _session(self) -> SessionRow:
        return self._workings.ledger.get_session(self._row.owner, self._row.id)

    def _policy(self, call: ReasoningSettings | Mapping[str, Any] | None) -> Policy:
        return layers.policy(self._workings, self._session(), call)

    def _whom(self, *names: str | None) -> Target:
        """Return whom a request is for, where the last reply is not read yet."""
        return _whom(names, lambda: self._workings.ledger.last_sent(self._row.key, self._branch))

    def _carried(self, at: int | None) -> UsageRows:
        return self._workings.ledger.states(self._row.key, self._branch, at)

    def _asked(self, items: Rope[Viewed], policy: Policy, to: Target) -> Rope[Viewed]:
        """Return a view with what is known of the requests that its replies answered.

        Only whoever binds reasoning to all that stood before it needs to know.
        """
        if to.contract.bound is None:
            return items
        first = _first_kept(policy.settings, to, partial(self._carried, None))
        sent = self._workings.ledger.sent_from(self._row.key, self._branch, first)
        digests = {row.position: row.sent["digest"] for row in sent if "digest" in row.sent}
        before = _upto(items, min(digests, default=_NOWHERE))
        asked = items.part(0, before)
        for piece in items.part(before, len(items)).chunks:
            if isinstance(piece, Stretch):
                names = range(piece.first, piece.first + len(piece))
                asked.join(replace(piece, asked=[*map(digests.get, names)]))
            else:
                asked.extend(
                    replace(item, asked_with=digests[item.name])
                    if item.name in digests and not item.summary
                    else item
                    for item in piece
                )
        return asked

    def _then(self, now: Outlook, last: SentRow, digest: str) -> _Then | None:
        """Return how the request was asked for that the last recorded reply answered.

        None where system and tools are not what they were, or nothing is known of it.
        """
        if last.sent.get("digest") != digest:
            return None
        to = _target_of(last.sent)
        settings = ReasoningSettings.model_validate(last.sent["settings"])
        policy = Policy(settings, dict.fromkeys(KEYS, "call"))
        key = building.Key.of(to, settings, digest)
        in_force = self._workings.ledger.in_force_when_sent(self._row.key, last)
        erased_at = now.session.erased_at
        if in_force != now.usage.in_force.before(last.position) or (
            erased_at is not None and erased_at >= last.created_at
        ):
            return _Then(key, policy, 0, _NOWHERE)
        first = _first_kept(settings, to, partial(self._carried, last.position - 1))
        return _Then(key, policy, last.position, first)

    def _made_then(self, then: _Then, view: View) -> Remembered:
        """Return what that request was made of. Rows never change, so it can be made again."""
        items = view.items.part(0, _upto(view.items, then.position))
        fits = [made for made in (view.sent, view.made) if made and len(made.view) <= len(items)]
        asked = self._asked(items, then.policy, then.key.to)
        return building.remember(then.key, asked, _furthest(then.key, *fits))


@dataclass(frozen=True, slots=True)
class _Then:
    """How an earlier request was asked for."""

    key: building.Key
    policy: Policy
    position: int
    """Of its reply: what stands before it was sent. 0 where a view has something else there."""
    first: int
    """The first position whose thinking it may have carried."""


def _furthest(key: building.Key, *made: Remembered | None) -> Remembered | None:
    """Return what was made with the same key and can be gone on with the furthest."""
    same = [one for one in made if one is not None and one.key == key]
    return max(same, key=lambda one: len(one.view), default=None)


def _first_kept(settings: ReasoningSettings, to: Target, carried: Callable[[], UsageRows]) -> int:
    """Return the first position whose thinking a request may carry.

    Where a message of a closed turn stands decides alike for all of them.
    """

    def kept(*, last: bool) -> bool:
        return any(
            decide(None, settings, Place(last, False, *calls), to)[0]
            for calls in product((False, True), repeat=2)
        )

    if kept(last=False):
        return 1
    known = carried()
    start = known.head.turn_start or 1
    if known.last_thinking is None or not kept(last=True):
        return start
    return min(start, known.last_thinking.position)


_NOWHERE = 1 << 62
_UNNAMED = (None, None, None, None)


def _upto(items: Rope[Viewed], position: int) -> int:
    """Return how many items of a view stand before a position."""
    return bisect_left(items, position, key=lambda item: item.name)


def makers(carried: UsageRows) -> Callable[[str], tuple[Origin | None, str | None]]:
    def made_by(kind: str) -> tuple[Origin | None, str | None]:
        return carried.origins.get(origin_of(kind)), field_of(kind)

    return made_by


# A conversation asks about the same few models, and each is matched against many patterns.
known_target = lru_cache(maxsize=256)(target)


def _whom(names: tuple[str | None, ...], last: Callable[[], SentRow | None]) -> Target:
    """Return whom a request is for: who is named, or who gave the last recorded reply."""
    if names == _UNNAMED:
        found = last()
        return _target_of(found.sent if found is not None else {})
    if all(name is None or isinstance(name, str) for name in names):
        return known_target(*names)
    return target(*names)


def _target_of(sent: Mapping[str, Any]) -> Target:
    return known_target(
        sent.get("provider"), sent.get("model"), sent.get("api"), sent.get("baseUrl")
    )
