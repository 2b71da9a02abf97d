"""What every protocol file offers, and the small things they share.

A protocol file knows one provider protocol's own shapes. It must not know channels, tags,
policy or SQL: reading, it says what arrived, in chunks; writing, it says where a given
block goes. Nothing here raises into an application's stream: what a reader does not
understand is an ``UnknownChunk``, and it changes nothing else.

The convention of readers, which ``ingress`` builds on:

* One event gives the chunks it holds, in the order of the protocol's own structure:
  reasoning before text before tool calls where one event carries several.
* ``content_index`` is set where the protocol itself numbers its units (``Indexer`` turns
  any key into a number), else ``None``.
* Deltas need no start and no end where the protocol sends none; ingress makes lifecycles.
* A seal is a signature or ciphertext, whichever a host gave: what makes reasoning opaque.
* An event is checked before anything is remembered of it, so that a bad one leaves no trace.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple, Protocol, TypeGuard, runtime_checkable

from reasoning_store.blocks import Block, MediaBlock, Message, Role, TextBlock, ThinkingBlock
from reasoning_store.chunks import Chunk, UnknownChunk
from reasoning_store.wire.contracts import Contract


class StreamAdapter(Protocol):
    """One stream's reader. One instance reads one stream."""

    id: str

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        """Whether this adapter reads what that model of that provider streams."""
        ...

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        """Return what one event says; dicts and SDK objects alike."""
        ...

    def reset(self) -> None:
        """Forget the stream: the next event is the first of another."""
        ...


@runtime_checkable
class Flushing(Protocol):
    """An adapter that may have to wait with a piece until the next one explains it."""

    def flush(self) -> list[Chunk]:
        """Return what still waits when the stream ends, or dies; a second time nothing."""
        ...


class ResponseParser(Protocol):
    """A whole response as the chunks that a stream of it would have given."""

    def __call__(self, body: Any, contract: Contract) -> list[Chunk]: ...


class Outgoing(NamedTuple):
    """One message on its way out: selected and repaired, with nothing left to decide.

    Every thinking block in it goes, and so does opaque metadata on its other blocks: what
    belongs to somebody else was taken off before.
    """

    message: Message
    owed: bool = False
    """The provider demands reasoning of this message; where there is none, its contract may
    name a placeholder."""


class PlainThought(NamedTuple):
    """A thought that is nothing but words, or words and their signature, without them."""

    source: str | None
    """The field that it came in."""
    place: int
    """Which block of its message it is."""
    signed: bool = False


class Plain(NamedTuple):
    """Whole messages on their way out by column: a text each, and of a reply a thought.

    Their roles are the user's and the model's, no text or thought is empty, and nothing is
    owed.
    """

    roles: Sequence[Role]
    texts: Sequence[str]
    thoughts: Sequence[str | None] | None
    """None, all of it, where none goes."""
    signatures: Sequence[str | None] | None
    """The signatures of thoughts, which are signed by their kind or are not; so is None."""
    kinds: Sequence[Hashable | None]
    """Of what kind each thought is, by a name that no role has."""
    goes: Mapping[Hashable | None, PlainThought]
    """The kinds of thoughts that go."""

    def but_last(self) -> Plain:
        """Return all of them but the last."""
        roles, texts, thoughts, signatures, kinds, goes = self
        thoughts = None if thoughts is None else thoughts[:-1]
        signatures = None if signatures is None else signatures[:-1]
        return Plain(roles[:-1], texts[:-1], thoughts, signatures, kinds[:-1], goes)

    def value(self, at: int) -> Outgoing:
        """Return one of them as a value."""
        blocks: list[Block] = [TextBlock(text=self.texts[at])]
        like = self.goes.get(self.kinds[at])
        thought = None if self.thoughts is None else self.thoughts[at]
        if like is not None and thought is not None:
            signature = None if self.signatures is None else self.signatures[at]
            said = ThinkingBlock(thought=thought, source_field=like.source, signature=signature)
            blocks.insert(like.place, said)
        return Outgoing(Message(role=self.roles[at], blocks=tuple(blocks)))

    def last(self) -> Outgoing:
        """Return the last one as a value."""
        return self.value(len(self.texts) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks of the model's reasoning; ``None`` is not said."""

    enabled: bool | None = None
    effort: str | None = None
    budget_tokens: int | None = None


ASKED: Final = tuple(field.name for field in fields(Asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A request's body, and what of it could not be said in the protocol."""

    body: dict[str, Any]
    unsaid: tuple[str, ...] = ()
    """Fields of ``Asked`` that were set and for which the host has no word."""
    held: tuple[str, ...] = ()
    """Those that it would refuse in this turn, and takes in the next one."""
    left_out: tuple[str, ...] = ()
    """Kinds of blocks that the protocol has no place for, each once."""
    unfollowed: bool = False
    """Whether reasoning that led to nothing got something said behind it."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What the SDK's call takes beside the body: the model, where it stands in the address."""


def plain(raw: Any) -> Any:
    """Return an SDK's object as the dicts and lists it was made from; dicts as they are."""
    if isinstance(raw, dict | list | str | bytes) or raw is None:
        return raw
    dump = getattr(raw, "model_dump", None)
    if callable(dump):
        try:
            return dump(by_alias=True, exclude_unset=True, warnings=False)
        except TypeError:  # a look-alike of pydantic's with fewer options
            return dump()
    if isinstance(raw, Mapping):
        return dict(raw)
    to_dict = getattr(raw, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    attributes = getattr(raw, "__dict__", None)
    if isinstance(attributes, dict):
        return {
            name: plain(value) for name, value in attributes.items() if not name.startswith("_")
        }
    return raw


def unknown(raw: Any, choice: int = 0) -> list[Chunk]:
    return [UnknownChunk(raw=raw, choice=choice)]


def is_index(value: Any) -> TypeGuard[int]:
    """Whether a value can number a choice, a block or a call: NaN, True and -1 cannot."""
    return type(value) is int and value >= 0


def whole_number(value: Any) -> int | None:
    """Return a reported token count, or ``None`` for what is not one. Absent is not zero."""
    if type(value) is int and value >= 0:
        return value
    if type(value) is float and value >= 0 and value.is_integer():
        return int(value)
    return None


def name_of(block: Block) -> str:
    """Return what a block is called that found no place."""
    return block.kind if isinstance(block, MediaBlock) else block.type


def without(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return what a mapping holds beside ``names`` and beside nothing at all."""
    left_out = frozenset(names)
    return {
        name: value for name, value in data.items() if name not in left_out and value is not None
    }


class Indexer:
    """Numbers for a protocol's own keys, in the order in which they first appear."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __getitem__(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers

    def clear(self) -> None:
        self._numbers.clear()
