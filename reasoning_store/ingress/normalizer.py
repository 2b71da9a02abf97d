"""The door: whatever a provider sends comes out as chunks, and at the end as one message.

``StreamNormalizer`` feeds a protocol's adapter, hands each chunk to the channels of its
choice, and lets an accumulator collect what they let through. A whole response goes the
same way in one step, so that streamed and whole give the same blocks.

Nothing raises into an application's stream: an event that the adapter does not know, or
cannot read, is counted, kept within bounds, and changes nothing else.

It knows how the parts of this room fit. It must not know a provider's words, SQL or policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, get_args

from reasoning_store import codec
from reasoning_store.blocks import Message, Origin
from reasoning_store.chunks import (
    Chunk,
    TextChunk,
    UnknownChunk,
)
from reasoning_store.errors import SettingError, UsageError, WireError
from reasoning_store.ingress.accumulator import Accumulator
from reasoning_store.ingress.channels import Channels
from reasoning_store.ingress.jsonable import jsonable
from reasoning_store.ingress.markers import DEFAULT_TAGS, tag_names, truth
from reasoning_store.ingress.padding import PaddedTagFilter
from reasoning_store.ingress.places import PlacedTagFilter
from reasoning_store.ingress.texts import TAG_SOURCE
from reasoning_store.quoting import shown
from reasoning_store.wire import contracts, registry
from reasoning_store.wire.base import Flushing, plain

Where: TypeAlias = Literal["auto", "always", "never"]
Tags: TypeAlias = Where | Iterable[str]

_WHERE: Final = get_args(Where)

_KEPT_UNKNOWN = 16
_KEPT_UNKNOWN_CHARACTERS = 16_384


class StreamNormalizer:
    """Turns one stream into clean chunks, and into a ``Message`` at its end.

    ``api`` names the protocol; without it the provider and the model do. ``tags`` says
    whether text is searched for inline delimiters: where the protocol may hold them
    (``auto``), ``always``, ``never``, or for these names. Tagged thoughts behind a native one
    are taken for copies of it, whatever they say; ``merge`` keeps those that say something else.
    """

    def __init__(
        self,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        *,
        base_url: str | None = None,
        tags: Tags = "auto",
        starts_inside: bool | None = None,
        merge: bool = False,
    ) -> None:
        self._contract = contracts.resolve(provider, model, api, base_url)
        self._adapter = registry.resolve(model=model, provider=provider, api=api, base_url=base_url)
        known = provider is not None or model is not None or api is not None or bool(base_url)
        self._origin = Origin(
            provider=contracts.provider_id(provider, base_url),
            api=self._contract.api if known else None,
            model=model,
            base_url=base_url,
        )
        self._tags = _told(tags)
        if starts_inside is not None:
            truth("starts_inside", starts_inside)
        self._starts_inside = starts_inside
        self._merge = truth("merge", merge)
        self._mirrors = frozenset(contracts.mirrors(self._contract))
        self._begin()

    def _begin(self) -> None:
        self._choices: dict[int, tuple[Channels, Accumulator]] = {}
        self._unknown = 0
        self._kept: list[Any] = []
        self._kept_characters = 0
        self._message: Message | None = None
        self._others: tuple[Message, ...] = ()
        self.unseen: list[Chunk] = []
        """What the last event said that belongs to the message and is not shown any more."""

    def reset(self) -> None:
        """Forget the stream: the next event is the first of another."""
        self._adapter.reset()
        self._begin()

    def feed(self, raw: Any) -> list[Chunk]:
        """Return what one event of the stream says, for the application to show."""
        if self._message is not None:
            raise UsageError("the stream is finished", hint="reset() begins another")
        self.unseen.clear()
        try:
            chunks = self._adapter.parse_chunk(raw)
        except Exception:  # whatever a stream holds, it never raises into the application's
            chunks = [UnknownChunk(raw=raw)]
        return self._take(chunks)

    def feed_whole(self, body: Any) -> list[Chunk]:
        """Return what a whole response says: the one event of a stream that was not asked for.

        Raises ``WireError`` for a body that does not have the protocol's form.
        """
        self.unseen.clear()
        chunks = registry.parser(self._contract.api)(body, self._contract)
        return self._take(chunks)

    def close(self, *, interrupted: bool = False) -> list[Chunk]:
        """Return the chunks that end what is still open. ``finish`` does this by itself."""
        out: list[Chunk] = []
        self.unseen.clear()
        if isinstance(self._adapter, Flushing):
            out += self._take(self._adapter.flush())
        for channels, accumulator in self._choices.values():
            chunks = channels.close(interrupted=interrupted)
            self._collect(channels, accumulator, chunks)
            out += chunks
        return out

    def finish(self, interrupted: bool = False) -> Message:
        """Return the message. ``interrupted`` says that the stream did not reach its end.

        Further choices, if the provider was asked for several, are in ``others``.
        """
        if self._message is None:
            self.close(interrupted=interrupted)
            self._message = self._build(0, interrupted)
            self._others = tuple(
                self._build(choice, interrupted) for choice in sorted(self._choices) if choice
            )
            self._choices.clear()  # the messages hold the text; the pieces are not kept beside
        return self._message

    @property
    def others(self) -> tuple[Message, ...]:
        """The messages of the choices beside the first, after ``finish``."""
        return self._others

    def snapshot(self) -> Message:
        """Return what has arrived so far of the first choice, as an unfinished message.

        After ``finish`` it is the message itself.
        """
        return self._message if self._message is not None else self._build(0, interrupted=True)

    def _take(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        out: list[Chunk] = []
        for chunk in chunks:
            if type(chunk) is UnknownChunk:
                self._note(chunk.raw)
                continue
            pair = self._choices.get(chunk.choice)
            if pair is None:
                pair = self._choices[chunk.choice] = (
                    self._channels(chunk.choice),
                    Accumulator(),
                )
            channels, accumulator = pair
            shown = channels.feed(chunk)
            self._collect(channels, accumulator, shown)
            out += shown
        return out

    def _collect(self, channels: Channels, accumulator: Accumulator, shown: list[Chunk]) -> None:
        for chunk in shown:
            accumulator.add(chunk)
        if channels.late:
            for chunk in channels.late:
                accumulator.add(chunk)
            self.unseen += channels.late
            channels.late.clear()

    def _channels(self, choice: int) -> Channels:
        return Channels(
            provider=self._contract.provider or "",
            mirrors=self._mirrors,
            tag_filter=self._tag_filter(),
            merge=self._merge,
            choice=choice,
        )

    def _tag_filter(self) -> PlacedTagFilter | None:
        contract = self._contract
        if self._tags == "never" or (self._tags == "auto" and not contract.tags):
            return None
        names: Iterable[str] = (*DEFAULT_TAGS, *contract.tag_names)
        if not isinstance(self._tags, str):
            names = self._tags
        starts_inside = self._starts_inside
        make = PaddedTagFilter if contract.padded_tags else PlacedTagFilter
        return make(
            tuple(names),
            contract.starts_inside if starts_inside is None else starts_inside,
            markers=contract.markers,
            events=True,
        )

    def _note(self, raw: Any) -> None:
        """Count an event that nobody understood, and keep it if there is room."""
        self._unknown += 1
        if len(self._kept) >= _KEPT_UNKNOWN:
            return
        try:
            value = jsonable(plain(raw))
            size = len(codec.dumps(value))
        except Exception:  # an object that cannot even be looked at is counted all the same
            return
        if self._kept_characters + size <= _KEPT_UNKNOWN_CHARACTERS:
            self._kept_characters += size
            self._kept.append(value)

    def _build(self, choice: int, interrupted: bool) -> Message:
        pair = self._choices.get(choice)
        channels, accumulator = pair if pair else (self._channels(choice), Accumulator())
        # An event that nobody understood belongs to the stream, which the first choice stands for.
        first = choice == 0
        return accumulator.message(
            origin=self._origin,
            interrupted=interrupted,
            tag_source=TAG_SOURCE,
            counters={
                "strippedDelimiters": channels.stripped,
                "extractedBlocks": channels.extracted,
                "suppressedDuplicates": channels.suppressed,
                "unknownChunks": self._unknown if first else 0,
            },
            metadata={"unknownEvents": list(self._kept)} if first and self._kept else {},
        )


def _told(tags: Tags) -> Tags:
    """Return where tags are looked for, or their names; refuse what is neither."""
    if isinstance(tags, str):
        if tags not in _WHERE:
            raise SettingError(
                f"tags is {', '.join(_WHERE)} or a sequence of names, not {shown(tags)}", key="tags"
            )
        return tags
    return tag_names(tags)


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
    )
    if isinstance(body, str):
        normalizer._take([TextChunk(text=body)])
    else:
        try:
            normalizer.feed_whole(body)
        except WireError as error:
            if api is None:
                read_as = normalizer._contract.api
                error.hint = f"it was read as {read_as}; api= names another protocol"
            raise
    return normalizer.finish()
