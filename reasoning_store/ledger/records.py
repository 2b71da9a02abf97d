"""Values that the ledger takes and returns: frozen, without SQL and JSON.

Times are microseconds since 1970, UTC. Branches are numbered from 1 in their session, positions
from 1 in their branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from reasoning_store.conversation.blocks import Counts, Message, Origin
from reasoning_store.conversation.identity import Asked, ReplyNumbers
from reasoning_store.conversation.thinking_header import ThinkingHeader

MOST_NUMBER = (1 << 31) - 1
"""The last that a branch or a compaction can have: a column of 4 bytes."""
MOST = (1 << 62) - 1
"""The most that a position, a sum or a time can be, so that two of them still add up in 8 bytes."""


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A page of sessions, hits or thoughts, and the value of ``after`` that gives the next.

    ``next`` is None where this is the last.
    """

    items: list[Item]
    next: str | None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append, with what it counts.

    ``request_facts`` are those of a reply's request (provider, api, model, base URL, resolved
    settings, digest): JSON, stored with it.
    """

    message: Message
    counts: Counts = field(default_factory=Counts)
    request_facts: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    id: str | None = None
    """An id of the application's own: a message of this id is stored once."""
    created_at: int | None = None
    echo: ReplyNumbers | None = None
    """Of a reply that was recorded from a client's request: what finds it again."""


class MetadataChange(NamedTuple):
    """A change of a session's metadata, and the keys and values that it has to have before."""

    changes: Mapping[str, Any]
    expected: Mapping[str, Any] = {}


class MessagePlace(NamedTuple):
    """The place of a message: the branch that its row is on, and its position."""

    branch: int
    position: int


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A message with its identity.

    Read without thinking, ``message.blocks`` lacks the thinking blocks, and ``counts`` is
    whole.
    """

    id: str
    position: int
    branch: int
    message: Message
    counts: Counts
    created_at: int
    digest: bytes
    is_new: bool = False
    headers: Sequence[ThinkingHeader] | None = field(default=None, repr=False)
    """Of each thinking block, where thinking was not read."""
    annotations: dict[str, Any] | None = None
    """The application's annotations: JSON, no part of the digest."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    key: int
    owner: str
    id: str
    title: str | None
    metadata: dict[str, Any]
    settings: dict[str, Any]
    encoding: str
    current_branch: int
    created_at: int
    updated_at: int
    """The time of the last message; renaming and the like do not change it."""
    archived: bool
    erased_at: int | None = None
    """When something in it last was: rows that were read before are stale. It never repeats."""
    profile: str | None = None
    """The name of the settings profile that it uses."""
    message_count: int | None = field(default=None, compare=False)
    """The messages of its current branch, where a page was read; else None."""
    preview: str | None = field(default=None, compare=False)
    """How the text of the last of them begins, where a page was read."""


@dataclass(frozen=True, slots=True)
class KeptSettings:
    """The settings that are stored for a session, layer by layer."""

    session: dict[str, Any]
    profile: dict[str, Any] | None
    """Those of the profile that it uses; None if no profile has that name."""
    owner: dict[str, Any]
    """The owner's default."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Settings under a name, for all sessions of an owner that use it."""

    name: str
    """Empty of the owner's default."""
    settings: dict[str, Any]
    updated_at: int


_PAGE = 128


@dataclass(frozen=True, slots=True)
class Segment:
    """The positions ``first..last`` of a lineage lie on ``branch``."""

    branch: int
    first: int
    last: int

    def pages(self) -> Iterator[Segment]:
        """Yield the parts of it that are read at a time, in order."""
        for first in range(self.first, self.last + 1, _PAGE):
            yield Segment(self.branch, first, min(first + _PAGE - 1, self.last))


@dataclass(frozen=True, slots=True)
class ReasoningUsed:
    """How much reasoning was used: as reported, and as counted where nothing was."""

    reported: int = 0
    counted: int = 0
    """The counted thinking of the replies that reported nothing."""
    unreported: int = 0
    """How many replies those are."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """The reasoning of a session, on all of its branches, and its reported marks."""

    thought: ReasoningUsed
    crossed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftRow:
    """A reply that is being recorded: what has arrived of the message at ``position``.

    Its id is that of the message which it becomes. ``parts`` are JSON texts that only
    their writer understands, in order; the handle that a recorder holds has none.
    """

    session_key: int
    branch: int
    id: str
    position: int
    origin: Origin | None
    annotations: dict[str, Any] | None
    request_facts: dict[str, Any] | None
    idempotency_key: str | None
    """As it is stored, to be compared only."""
    created_at: int
    asked: Asked | None = None
    """The client's question, where a client's request is answered."""
    parts: tuple[str, ...] = field(default=(), repr=False)
    expired: bool = False
    """Its recorder lives no more, or has lost it: what has arrived is what there will be."""
    stop: str | None = None
    """Why its recorder was asked to stop."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The parts of a draft after those that its reader has."""

    id: str
    position: int
    parts: tuple[str, ...] = field(repr=False)
    is_live: bool
    followed_until: int


Count: TypeAlias = Callable[[Message, str], Counts]
"""A function of the caller: the counts of a message in an encoding. It is called outside of any
transaction."""
DraftMessage: TypeAlias = Callable[[DraftRow], NewMessage | None]
"""Return the message that has arrived of a draft; None where nothing has. The caller's, called
outside of any transaction: the same draft has the same answer."""


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """Messages of a branch, its draft and all branches of its session, as they were together."""

    rows: list[StoredRow]
    draft: DraftRow | None
    branches: list[BranchRow]


@dataclass(frozen=True, slots=True)
class NewParts:
    """The new parts of a draft, from number ``first`` on.

    Without parts it only renews the lease: the recorder lives.
    """

    draft: DraftRow
    first: int = 1
    parts: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class BranchRow:
    number: int
    parent: int | None
    first: int
    """The first position of its own; those before it are shared."""
    segments: tuple[Segment, ...]
    """The places of its messages, in order, its own part last (absent while empty)."""
    next_position: int
    next_compaction: int
    """1 where it never had one."""
    created_at: int
    encoding: str
    """The one in which its session is counted."""
    last_at: int = 0
    """The time of its own last message, or of the reply that is arriving; 0: it has no message, or
    the time was not read."""

    @property
    def head(self) -> int:
        """The position of its last message; 0 without one."""
        return self.next_position - 1

    def holds(self, place: MessagePlace) -> bool:
        """Whether its lineage has this very row, and not another at its position."""
        return any(
            segment.branch == place.branch and segment.first <= place.position <= segment.last
            for segment in self.segments
        )

    @property
    def own_messages(self) -> Segment:
        """The positions that are its own, none of them while it has no message."""
        return Segment(self.number, self.first, self.head)


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erasure: the removed messages, and the files that may still have them."""

    sessions: int = 0
    messages: int = 0
    thinking_blocks: int = 0
    profiles: int = 0
    """Settings profiles: they go with their owner."""
    copies: tuple[str, ...] = ()
    """Files that may still hold it: copies made before upgrades, and where the file or its
    WAL could not be rewritten because someone was using it, these."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The counts of a deletion."""

    sessions: int = 0
    messages: int = 0
    thinking_blocks: int = 0
    profiles: int = 0
    """Settings profiles: they go with their owner."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The request of a reply, as its recorder stored it."""

    position: int
    branch: int
    facts: dict[str, Any]
    created_at: int
    input: int | None = None
    """The input tokens that the provider reported for it."""


ProblemCode: TypeAlias = Literal[
    "integrity",  # the engine finds its file damaged
    "foreign",  # another program's table or trigger is in the file
    "stray",  # a row that belongs to nothing
    "unreadable",  # a row that cannot be read back
    "session",  # its own row does not fit what it holds
    "budget",  # a sum of its usage is not what its messages give
    "origin",  # an origin is not what its number is made of
    "lineage",  # a branch shares what its parent does not have
    "gap",  # as many messages as there should be are not there
    "compaction",  # it does not fit its branch
    "batch",  # what an idempotency key covers is not there
    "digest",  # a message is not the one that was written
    "count",  # a message counts something else than its row has
    "columns",  # what stands next to a message is not what it says
    "search",  # an entry of the search index is stale, or says that it is another owner's
]


@dataclass(frozen=True, slots=True)
class Problem:
    """A stored row that is not as it was written, and its place; never its content."""

    code: ProblemCode
    detail: str
    session_key: int | None = None
    branch: int | None = None
    position: int | None = None
    owner: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a check: the rows that were read, and the problems found."""

    sessions: int
    messages: int
    problems: tuple[Problem, ...]
    unerased: tuple[str, ...] = ()
    """The files that may still hold what an interrupted erasure took; ``scrub`` finishes it."""

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """The tokens of one group of messages; the fields that it was grouped by are set."""

    owner: str | None = None
    session: str | None = None
    model: str | None = None
    """None for messages that have no model, users' among them."""
    day: str | None = None
    """As 2026-11-18, UTC."""
    # As in Usage, as the providers reported it:
    input: int
    output: int
    reasoning: int
    cached: int
    cache_write: int
    # As in Budget:
    counted: int
    """The counted thinking of the replies of which no reasoning was reported."""
    unreported: int
    """How many replies those are."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup that was made and compared with its original."""

    path: str
    sessions: int
    messages: int
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The counts of an import."""

    sessions: int = 0
    """Those that were taken in to their end."""
    messages: int = 0
    """Those that were written."""
    already: int = 0
    """Those that were there before."""
    skipped: tuple[str, ...] = ()
    """The ids of sessions that differ here, where those were to be skipped."""
