"""The object that every protocol's folder offers: its reader and its writer, and their facts.

Readers agree on this, and ingress builds on it:

* One event gives the chunks it holds, in the order of the protocol's own structure:
  reasoning before text before tool calls where one event carries several.
* ``content_index`` is set where the protocol itself numbers its units, else ``None``.
* Deltas need no start and no end where the protocol sends none; ingress makes lifecycles.
* A seal is a signature or ciphertext: either makes reasoning opaque.
* An event is checked before anything is remembered of it, so that a bad one leaves no trace.
* An event that a reader does not understand is an ``UnknownChunk``; no reader raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from reasoning_store.conversation.chunks import Chunk
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.message_writer import MessageWriter

Event: TypeAlias = Mapping[str, Any]


class ReasoningStreamAdapter(ABC):
    """The reader of one stream. One instance reads one stream.

    An adapter of your own has an ``id`` and the three methods; ``adapters.register`` takes it.
    """

    id: ClassVar[str]

    @abstractmethod
    def can_handle(self, model: str | None, provider: str | None) -> bool:
        """Whether this adapter reads the streams of that model of that provider."""

    @abstractmethod
    def parse_chunk(self, raw: Any) -> list[Chunk]:
        """Return the chunks of one event, a dict or an SDK's object."""

    def flush(self) -> list[Chunk]:
        """Return the pieces that are still held when the stream ends; a second time nothing."""
        return []

    @abstractmethod
    def reset(self) -> None:
        """Forget the stream: the next event is the first of another."""


class ProtocolReader(ReasoningStreamAdapter):
    """The reader of a protocol, under a host's contract."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._provider = contract.provider or ""
        self.reset()

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contract_lookup.speaks_api(provider, model, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A wire format."""

    reader: type[ProtocolReader]
    parse: Callable[[Any, Contract], list[Chunk]]
    """Reads a whole response as the chunks that a stream of it would have given."""
    writer: type[MessageWriter]
    sdk_arguments: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Returns a body as keyword arguments of the official SDK's call."""
    owned_keys: frozenset[str]
    """The keys of a body that are built from the conversation, and that ``extra`` cannot set."""
    messages_key: str = "messages"
    """The key of a body's list of messages."""
    needs_model: bool = True
    """Whether a request without a model is refused."""
    has_mark: Callable[[Event], bool] = lambda event: False
    """Whether an event carries a mark that no other protocol has."""
    only_read: tuple[str, ...] = ()
    """Names of other forms of the api that are read and not written; a reply that came in one
    is continued in this protocol."""

    @property
    def id(self) -> str:
        """The name of its api."""
        return self.reader.id
