"""Turns a stream, or a whole response, into chunks and at its end into one message.

The path of an event: the protocol's reader makes chunks of it (``wire``), the ``channels`` of a
choice put these in order, the application gets the result, and the ``accumulator`` makes the
message of the same chunks. A whole response takes the same path in one step.

No event raises into an application's stream. One that the reader does not know, or cannot read,
is an ``UnknownChunk``: it is counted, kept within bounds, and changes nothing else. A stream of
which nothing was understood gives an interrupted message (``UNREAD``), never a complete one
without content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, get_args

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Message, Origin
from reasoning_store.conversation.chunks import (
    Chunk,
    TextChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import (
    InvalidCall,
    SettingError,
    WireError,
)
from reasoning_store.conversation.json_values import make_json
from reasoning_store.conversation.validation import check_truth, describe
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.channels import Channels
from reasoning_store.ingress.duplicates import MirroredFields
from reasoning_store.ingress.half_characters import HalfCharacters
from reasoning_store.ingress.markers import DEFAULT_TAGS, check_tag_names
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.tags import TagFilter
from reasoning_store.ingress.text_channel import TextChannel
from reasoning_store.wire import (
    contract_lookup,
    registry,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.contract_tables import Contracts, default_contracts
from reasoning_store.wire.event_fields import plain_value

TagMode: TypeAlias = Literal["auto", "always", "never"]
Tags: TypeAlias = TagMode | Iterable[str]

_TAG_MODES: Final = get_args(TagMode)
_NO_NAMES: Final = (None, None, None, None)

UNREAD: Final = "unread"
"""The finish reason of a stream of which nothing was understood."""

_UNREAD_CHARACTERS = 4_194_304
_UNKNOWN_CHARACTERS = 65_536
"""How much is kept of the events: of a stream that was not understood, and of any other."""


def make_text_channel(
    contract: Contract,
    counters: Counters,
    *,
    is_stream: bool,
    tags: Tags = "auto",
    starts_inside: bool = False,
    merge: bool = False,
) -> TextChannel:
    """Return the channel that takes the tags out of the text of one choice."""
    reading = contract.reading
    tag_filter = None
    if tags != "never" and (tags != "auto" or reading.tags):
        tag_filter = TagFilter(
            DEFAULT_TAGS if isinstance(tags, str) else tuple(tags),
            starts_inside,
            markers=reading.markers,
            events=True,
            code_is_text=tags != "always",
            leading_only=tags == "auto" and reading.tags == "leading",
        )
    return TextChannel(
        tag_filter,
        counters,
        merge=merge,
        stray_opens=reading.stray_opens,
        may_lack_open=reading.unparsed and tags != "always" and not is_stream,
    )


class StreamNormalizer:
    """Turns one stream into clean chunks, and into a ``Message`` at its end.

    ``api`` names the protocol. Without it the first event does, where it carries the mark of one;
    else ``usual_api``, the path of the address, the provider or the model. ``tags`` decides whether
    text is searched for inline delimiters: where the contract says, outside of code (``auto``);
    in all text (``always``); ``never``; or outside of code for these names. Tagged thoughts after a
    native one are taken for copies of it; ``merge`` keeps those with another text. ``contracts``
    are those of a store: ``store.contracts``.
    """

    def __init__(
        self,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        *,
        base_url: str | None = None,
        usual_api: str | None = None,
        tags: Tags = "auto",
        starts_inside: bool | None = None,
        merge: bool = False,
        contracts: Contracts | None = None,
    ) -> None:
        self._contracts = contracts or default_contracts()
        self._provider, self._model, self._base_url = provider, model, base_url
        self._api, self._usual_api = api, usual_api
        self._tags = _check_tags(tags)
        if starts_inside is not None:
            check_truth("starts_inside", starts_inside)
        self._starts_inside = bool(starts_inside)
        self._merge = check_truth("merge", merge)
        self.reset()

    def reset(self) -> None:
        """Forget the stream: the next event is the first of another."""
        self._read_as(self._usual_api if self._api is None else self._api)
        self._is_stream = False
        self._choices: dict[int, Channels] = {}
        self._halves = HalfCharacters()
        self._unknown_count = 0
        self._unknown = _KeptEvents(_UNKNOWN_CHARACTERS)
        self._unread = _KeptEvents(_UNREAD_CHARACTERS)
        self.is_unread = False
        """Whether the finished stream had events, and none was understood."""
        self._message: Message | None = None
        self._others: tuple[Message, ...] = ()
        self._is_closed = False

    def _read_as(self, api: str | None) -> None:
        """Read the stream in this protocol; ``None`` for the one of address, host and model."""
        names = (self._provider, self._model, api, self._base_url or None)
        self._contract = contract_lookup.find_contract(*names, self._contracts)
        provider = contract_lookup.provider_id(self._provider, self._base_url, self._contracts)
        own = None
        if self._api is None:
            own = registry.adapters.find_own(self._model, provider)
        self._adapter = own or registry.make_reader(
            self._model, self._provider, api, self._base_url, self._contracts
        )
        self._is_protocol_known = self._api is not None or own is not None
        self._origin = Origin(
            provider=provider,
            api=None if names == _NO_NAMES else self._contract.api,
            model=self._model,
            base_url=self._base_url,
        )

    def feed(self, raw: Any) -> list[Chunk]:
        """Return the chunks of one event, for the application to show."""
        self._check_open()
        self._is_stream = True
        try:
            if not self._is_protocol_known:
                self._recognize_protocol(raw)
            chunks = self._adapter.parse_chunk(raw)
        except Exception:  # no event, whatever it holds, raises into the application's stream
            chunks = [UnknownChunk(raw=raw)]
        shown = self._add_chunks(chunks)
        if not self._has_block_or_end:
            self._unread.add(raw)
        return shown

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidCall("the stream is finished", hint="reset() begins another")

    def _recognize_protocol(self, raw: Any) -> None:
        """Read the stream in the protocol that an event names, until one was understood."""
        named = None if self._choices else registry.api_named_by(raw)
        if named is not None and not contract_lookup.is_dialect(self._contract.api, named):
            self._read_as(named)
        self._is_protocol_known = named is not None or bool(self._choices)

    def feed_whole(self, body: Any) -> list[Chunk]:
        """Return the chunks of a whole response, or of the plain text of an answer.

        Raises ``WireError`` for a body that does not have the protocol's form.
        """
        self._check_open()
        if self._api is None:
            self._recognize_protocol(body)
        if isinstance(body, str):
            return self._add_chunks([TextChunk(text=body)])
        return self._add_chunks(
            registry.find_protocol(self._contract.api).parse(body, self._contract)
        )

    def close(self, *, interrupted: bool = False) -> list[Chunk]:
        """Return the last chunks: the held text, the ends of open blocks, and the finish.

        ``finish`` does this by itself, and shows nothing.
        """
        if self._is_closed:
            return []
        self._is_closed = True
        out = self._add_chunks(self._adapter.flush())
        out += self._add_chunks(self._halves.release())
        self.is_unread = self._is_stream and self._unknown_count > 0 and not self._has_block_or_end
        for choice in self._choices.values():
            out += choice.close(interrupted=interrupted)
        return out

    def finish(self, interrupted: bool = False) -> Message:
        """Return the message. ``interrupted`` is true if the stream did not reach its end.

        Further choices, if the provider was asked for several, are in ``others``.
        """
        if self._message is None:
            self.close(interrupted=interrupted)
            self._message = self._build(0, interrupted)
            self._others = tuple(
                self._build(number, interrupted) for number in sorted(self._choices) if number
            )
            self._choices.clear()  # the messages hold the text; the pieces are let go
        return self._message

    @property
    def api(self) -> str:
        """The protocol in which the stream is read."""
        return self._contract.api

    @property
    def others(self) -> tuple[Message, ...]:
        """The messages of the further choices, after ``finish``."""
        return self._others

    def snapshot(self) -> Message:
        """Return the part of the first choice that has arrived, as an unfinished message.

        After ``finish`` it is the message itself.
        """
        return self._message if self._message is not None else self._build(0, interrupted=True)

    @property
    def _has_block_or_end(self) -> bool:
        return any(choice.has_block_or_end for choice in self._choices.values())

    def _add_chunks(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        out: list[Chunk] = []
        for chunk in chain.from_iterable(map(self._halves.join_halves, chunks)):
            if isinstance(chunk, UnknownChunk):
                self._unknown_count += 1
                self._unknown.add(chunk.raw)
                out.append(chunk)
            else:
                choice = self._choices.get(chunk.choice) or self._begin_choice(chunk.choice)
                out += choice.feed(chunk)
        return out

    def _begin_choice(self, number: int) -> Channels:
        counters = Counters()
        text = make_text_channel(
            self._contract,
            counters,
            is_stream=self._is_stream,
            tags=self._tags,
            starts_inside=self._starts_inside,
            merge=self._merge,
        )
        mirrors = MirroredFields(
            frozenset(contract_lookup.mirrored_fields(self._contract)), counters
        )
        provider = self._origin.provider or ""
        choice = self._choices[number] = Channels(text, mirrors, provider=provider, choice=number)
        return choice

    def _build(self, number: int, interrupted: bool) -> Message:
        choice = self._choices.get(number)
        accumulator = choice.accumulator if choice else Accumulator()
        counters = choice.counters if choice else Counters()
        metadata = {}
        if number == 0:  # an event that was not understood is of no choice: the first has it
            counters = replace(counters, unknown_chunks=self._unknown_count)
            if kept := (self._unread if self.is_unread else self._unknown).events:
                metadata["unknownEvents"] = [*kept]
        message = accumulator.build(
            origin=self._origin,
            interrupted=interrupted or self.is_unread,
            counters=counters,
            metadata=metadata,
        )
        return replace(message, finish_reason=UNREAD) if self.is_unread else message


class _KeptEvents:
    """The first events of a stream, as JSON, as far as there is room."""

    def __init__(self, room: int) -> None:
        self.events: list[Any] = []
        self._room = room

    def add(self, raw: Any) -> None:
        try:
            value = make_json(plain_value(raw))
            size = len(codec.dumps(value))
        except Exception:  # an object that cannot even be looked at is not kept
            return
        if size <= self._room:
            self._room -= size
            self.events.append(value)


def _check_tags(tags: Tags) -> Tags:
    """Return a mode, or names that tags can have."""
    if isinstance(tags, str):
        if tags not in _TAG_MODES:
            raise SettingError(
                f"tags is {', '.join(_TAG_MODES)} or a sequence of names, not {describe(tags)}",
                key="tags",
            )
        return tags
    return check_tag_names(tags)


def normalize_response(
    body: Any,
    *,
    provider: str | None = None,
    model: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    tags: Tags = "auto",
    starts_inside: bool | None = None,
    merge: bool = False,
    contracts: Contracts | None = None,
) -> Message:
    """Return the message of a whole response, or of the plain text of an answer.

    Raises ``WireError`` for a body that does not have the protocol's form.
    """
    normalizer = StreamNormalizer(
        provider,
        model,
        api,
        base_url=base_url,
        tags=tags,
        starts_inside=starts_inside,
        merge=merge,
        contracts=contracts,
    )
    try:
        normalizer.feed_whole(body)
    except WireError as error:
        if api is None:
            read_as = normalizer.api
            hint = f"it was read as {read_as}; api= names another protocol"
            raise WireError(str(error), hint=hint) from None
        raise
    return normalizer.finish()
