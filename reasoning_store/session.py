"""The promised face of one conversation, on one of its branches.

A handle holds no history: each verb reads what it needs now, with the settings that hold
now (BR-008). Storing is always complete and no setting has a say in it (BR-002); what a
setting decides is what the next request carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, overload

from reasoning_store import recorder
from reasoning_store import settings as _settings
from reasoning_store.blocks import Message, Origin
from reasoning_store.egress import request as _request
from reasoning_store.egress.request import Request
from reasoning_store.egress.select import Target, Viewed, target
from reasoning_store.egress.tokens import fixed_tokens
from reasoning_store.egress.usage import ContextUsage, usage
from reasoning_store.errors import Conflict, NotFound, UsageError
from reasoning_store.ingress import drafting
from reasoning_store.ledger.carried import field_of, origin_of
from reasoning_store.ledger.values import (
    BranchRow,
    DraftRow,
    Entry,
    Segment,
    SessionRow,
    StoredRow,
)
from reasoning_store.recorder import Recording, Reply
from reasoning_store.settings import Policy, ReasoningSettings, Resolved

if TYPE_CHECKING:
    from reasoning_store.store import Workings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message with its identity: where it stands, since when, and what it counts."""

    id: str
    position: int
    branch: int
    tokens: int
    """What the message counts, all of its thinking included; 0 while it is still arriving."""
    created_at: datetime
    message: Message
    is_new: bool = False
    """Whether this call wrote it; an idempotent repeat did not."""
    siblings: tuple[int, ...] = ()
    """The branches that say something else here, after the same messages before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of a conversation: what it shares, and where it ends."""

    id: int
    parent: int | None
    first: int
    """The first position that is its own; those before are shared with its parent."""
    head: int
    """The position of its last message; 0 where there is none."""
    created_at: datetime
    is_current: bool


class Session:
    """One conversation. Made by ``Store.session``."""

    def __init__(self, workings: Workings, row: SessionRow, branch: int) -> None:
        self._workings = workings
        self._row = row
        self._branch = branch

    @property
    def id(self) -> str:
        return self._row.id

    @property
    def owner(self) -> str:
        return self._row.owner

    @property
    def title(self) -> str | None:
        return self._row.title

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(self._row.metadata)

    @property
    def updated_at(self) -> datetime:
        """When something was last said, as of when this handle was made."""
        return time_of(self._row.updated_at)

    def rename(self, title: str | None) -> None:
        """Give the session another title, or none."""
        self._row = self._workings.ledger.rename(self._row.key, title)

    def archive(self, *, archived: bool = True) -> None:
        """Take the session out of the usual list, or put it back."""
        self._row = self._workings.ledger.archive(self._row.key, archived=archived)

    @property
    def settings(self) -> SessionSettings:
        return SessionSettings(self._workings, self._row)

    # Writing

    @overload
    def append(
        self,
        message: Message,
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> Stored: ...

    @overload
    def append(
        self,
        message: Sequence[Message],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> list[Stored]: ...

    def append(
        self,
        message: Message | Sequence[Message],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> Stored | list[Stored]:
        """Store a message at the end, or several as one.

        Repeated with the same ``idempotency_key`` and the same messages, it returns what
        was stored the first time. ``after`` is the position that must be the last one;
        when something stands behind it already, nothing is stored (``Conflict``).
        """
        batch = [message] if isinstance(message, Message) else list(message)
        stored = self._append(
            batch, idempotency_key=idempotency_key, after=after, created_at=created_at
        )
        return stored[0] if isinstance(message, Message) else stored

    def _append(
        self,
        batch: Iterable[Message],
        *,
        sent: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> list[Stored]:
        # Masking, counting and JSON are done before the ledger's lane is asked for.
        entries = [self._workings.entry(item, self._row.encoding, sent) for item in batch]
        try:
            rows = self._workings.ledger.append(
                self._row.key,
                self._branch,
                entries,
                after=after,
                idempotency_key=idempotency_key,
                created_at=None if created_at is None else microseconds(created_at),
                resolve=self._resolve,
            )
        except Conflict as conflict:
            raise _told(conflict) from None
        return [stored(row) for row in rows]

    def record(
        self,
        stream: Iterable[Any],
        *,
        request: Request | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> Recording:
        """Return a recording of one reply: iterate it for clean chunks, and it is stored.

        What the stream is follows from the ``request`` it answers, or from ``provider``,
        ``model`` and ``api``.
        """
        reply = self._reply(request, (provider, model, api, base_url), idempotency_key)
        return Recording(reply, stream)

    def _reply(
        self,
        request: Request | None,
        names: tuple[str | None, str | None, str | None, str | None],
        idempotency_key: str | None,
    ) -> Reply:
        """Return a reply to ``request``, or one of whoever is named, ready to be fed."""
        if request is not None:
            to, tags = request.target, request.settings.tags
        else:
            to, tags = self._target(*names), self._policy(None).settings.tags
        return Reply(self, to=to, tags=tags, request=request, idempotency_key=idempotency_key)

    def _begin_draft(
        self, origin: Origin, sent: Mapping[str, Any], idempotency_key: str | None
    ) -> DraftRow:
        try:
            return self._workings.ledger.begin_draft(
                self._row.key,
                self._branch,
                origin=origin,
                sent=sent,
                idempotency_key=idempotency_key,
                lease=recorder.LEASE,
                resolve=self._resolve,
            )
        except Conflict as conflict:
            raise _told(conflict) from None

    def _add_part(self, draft: DraftRow, number: int, part: str) -> bool:
        return self._workings.ledger.add_part(draft, number, part, lease=recorder.LEASE)

    def _renew(self, draft: DraftRow) -> bool:
        return self._workings.ledger.renew(draft, lease=recorder.LEASE)

    def _drop_draft(self, draft: DraftRow) -> None:
        self._workings.ledger.drop_draft(draft)

    def _finish_draft(
        self,
        draft: DraftRow,
        message: Message,
        others: Iterable[Message],
        sent: Mapping[str, Any],
    ) -> Stored:
        """Store a recorded reply, and each further choice as a fork beside it."""
        entry = self._workings.entry(message, self._row.encoding, sent)
        try:
            (row,) = self._workings.ledger.finish_draft(draft, [entry])
        except Conflict as conflict:
            raise _told(conflict) from None
        for other in others:
            branch = self._workings.ledger.fork(self._row.key, draft.branch, row.position)
            Session(self._workings, self._row, branch)._append([other], sent=sent)
        return stored(row)

    def _resolve(self, draft: DraftRow) -> Entry | None:
        """Return what has arrived of a reply whose recorder is ended, if anything has."""
        message = _drafted(draft, interrupted=True)
        if not message.blocks and message.usage is None:
            return None
        # Its parts were masked when they were written.
        return Entry(message, self._workings.counts(message, self._row.encoding), draft.sent)

    # Reading

    def history(
        self, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> list[Stored]:
        """Return the messages, all of their thinking included (BR-002), oldest first.

        A reply that is being recorded stands last, as far as it has arrived, with the status
        ``streaming``; ``interrupted`` where its recorder is gone.
        """
        ledger = self._workings.ledger
        # The draft first: where its message is there by the time the messages are read, it
        # has become that message.
        draft = ledger.draft(self._row.key, self._branch) if before is None else None
        rows = ledger.history(self._row.key, self._branch, limit=limit, before=before, after=after)
        others = siblings(ledger.branches(self._row.key), self._branch)
        found = [
            replace(stored(row), siblings=others[row.position])
            if row.position in others
            else stored(row)
            for row in rows
        ]
        arriving = _arriving(draft) if draft is not None else None
        last = found[-1].position if found else (after or 0)
        if arriving is not None and last == arriving.position - 1:
            found.append(arriving)
        return found

    def get(self, position: int) -> Stored:
        """Return one message; of a reply that is being recorded, what has arrived so far."""
        ledger = self._workings.ledger
        draft = ledger.draft(self._row.key, self._branch)
        try:
            return stored(ledger.get(self._row.key, self._branch, position))
        except NotFound:
            arriving = _arriving(draft) if draft is not None else None
            if arriving is None or arriving.position != position:
                raise
            return arriving

    # Branches

    def fork(self, *, at: int) -> Session:
        """Return a new branch that shares the messages before ``at`` and nothing after.

        Neither this handle nor the session's current branch moves.
        """
        return self.branch(self._workings.ledger.fork(self._row.key, self._branch, at))

    def edit(self, position: int, message: Message) -> Stored:
        """Say something else at ``position``, on a new branch that becomes the current one.

        What stood there and after it stays on the branch where it was. This handle goes on
        with the new branch.
        """
        self._go_to(self.fork(at=position)._branch)
        return self.append(message)

    def regenerate(self, position: int) -> Session:
        """Make room for another reply in place of the one at ``position``, and return this handle.

        It stands on a new branch, now the current one, that ends before that reply.
        """
        if self.get(position).message.role != "assistant":
            raise UsageError(
                f"the message at {position} is not a model's reply",
                hint="edit(position, message) says something else in a user's place",
            )
        self._go_to(self.fork(at=position)._branch)
        return self

    def pop_turn(self) -> Session:
        """Take the last turn back, from its user message on, and return this handle.

        It stands on a new branch, now the current one; nothing is deleted.
        """
        start = self._workings.ledger.head(self._row.key, self._branch).turn_start
        if start is None:
            raise UsageError("there is no turn to take back: no user has said anything yet")
        self._go_to(self.fork(at=start)._branch)
        return self

    def _go_to(self, branch: int) -> None:
        self.activate(branch)
        self._branch = branch

    def branches(self) -> list[Branch]:
        """Return every branch, the oldest first."""
        current = self._workings.ledger.get_session(self._row.owner, self._row.id).current_branch
        return [
            Branch(
                id=row.number,
                parent=row.parent,
                first=row.first,
                head=row.state.position,
                created_at=time_of(row.created_at),
                is_current=row.number == current,
            )
            for row in self._workings.ledger.branches(self._row.key)
        ]

    def branch(self, id: int) -> Session:
        """Return this session on another of its branches."""
        self._workings.ledger.get_branch(self._row.key, id)
        return Session(self._workings, self._row, id)

    def activate(self, id: int) -> None:
        """Make a branch the one that opening the session gives."""
        self._workings.ledger.activate(self._row.key, id)

    # The next request

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
        ``tools`` are for this request only: counted, and never stored.
        """
        rows = self._workings.ledger.history(self._row.key, self._branch)
        return _request.build(
            [Viewed(row.message, row.counts, row.position) for row in rows],
            self._policy(settings),
            self._target(provider, model, api, base_url),
            self._workings.counter(self._row.encoding),
            system=system,
            tools=tools,
            extra=extra,
        )

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
        carried = self._workings.ledger.states(self._row.key, self._branch, at)

        def made_by(kind: str) -> tuple[Origin | None, str | None]:
            return carried.origins.get(origin_of(kind)), field_of(kind)

        return usage(
            carried,
            made_by,
            self._policy(settings).settings,
            self._target(provider, model, api, base_url),
            fixed=fixed_tokens(system, tools, self._workings.counter(carried.encoding)),
            encoding=carried.encoding,
            limit=limit,
        )

    def _policy(self, call: ReasoningSettings | Mapping[str, Any] | None) -> Policy:
        row = self._workings.ledger.get_session(self._row.owner, self._row.id)
        return _settings.resolve(
            call, session=row.settings, environment=self._workings.environment()
        )

    def _target(
        self, provider: str | None, model: str | None, api: str | None, base_url: str | None
    ) -> Target:
        if provider is None and model is None and api is None and base_url is None:
            last = self._workings.ledger.last_sent(self._row.key, self._branch)
            known = last.sent if last is not None else {}
            return target(
                known.get("provider"), known.get("model"), known.get("api"), known.get("baseUrl")
            )
        return target(provider, model, api, base_url)


class SessionSettings:
    """The settings of one session: set once, read for every request."""

    def __init__(self, workings: Workings, row: SessionRow) -> None:
        self._workings = workings
        self._row = row

    def set(self, key: str, value: Any) -> None:
        """Set one key for this session. A bad value changes nothing (ERR-001)."""
        change = _settings.checked({key: value})
        self._workings.ledger.set_settings(self._row.key, {**self._own(), **change})

    def unset(self, key: str) -> None:
        """Let the weaker layers decide about this key again."""
        (name,) = _settings.checked({key: None}) if key not in _settings.KEYS else (key,)
        self._workings.ledger.set_settings(
            self._row.key, {k: v for k, v in self._own().items() if k != name}
        )

    def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that holds now, and the layer it comes from."""
        return _settings.resolve(
            session=self._own(), environment=self._workings.environment()
        ).resolved()

    def _own(self) -> dict[str, Any]:
        return self._workings.ledger.get_session(self._row.owner, self._row.id).settings


def _told(conflict: Conflict) -> Conflict:
    """Return a conflict of the ledger's with what was stored as an application sees it."""
    rows = conflict.stored
    if isinstance(rows, list):
        items = [stored(row) for row in rows]
        conflict.stored = items[0] if len(items) == 1 else items or None
    return conflict


def _drafted(draft: DraftRow, *, interrupted: bool) -> Message:
    return drafting.message(
        draft.parts,
        origin=draft.origin or Origin(),
        interrupted=interrupted,
        metadata=draft.metadata,
    )


def _arriving(draft: DraftRow) -> Stored | None:
    """Return a draft as a reader sees it, if anything of it has arrived."""
    message = _drafted(draft, interrupted=draft.expired)
    if not message.blocks:
        return None
    return Stored(
        id=draft.id,
        position=draft.position,
        branch=draft.branch,
        tokens=0,
        created_at=time_of(draft.created_at),
        message=message if draft.expired else drafting.streaming(message),
    )


def siblings(branches: Sequence[BranchRow], mine: int) -> dict[int, tuple[int, ...]]:
    """Return, by position, the branches that first differ from one of them there."""
    by_number = {row.number: row for row in branches}
    found: dict[int, list[int]] = {}
    for other in branches:
        if other.number != mine:
            differ = _common(by_number[mine].segments, other.segments) + 1
            if differ <= min(other.state.position, by_number[mine].state.position):
                found.setdefault(differ, []).append(other.number)
    return {position: tuple(numbers) for position, numbers in found.items()}


def _common(one: Sequence[Segment], other: Sequence[Segment]) -> int:
    """Return the last position up to which two lineages are the same messages."""
    last = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine.branch != theirs.branch:
            break
        last = min(mine.last, theirs.last)
        if mine.last != theirs.last:
            break
    return last


def stored(row: StoredRow) -> Stored:
    """Return a ledger's row as an application sees it."""
    return Stored(
        id=row.id,
        position=row.position,
        branch=row.branch,
        tokens=row.counts.visible + sum(row.counts.thinking),
        created_at=time_of(row.created_at),
        message=row.message,
        is_new=row.is_new,
    )


def time_of(microseconds_since_1970: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds_since_1970)


def microseconds(time: datetime) -> int:
    """Return a time as the ledger keeps it; one without a zone is taken for local time."""
    return (time.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
