"""The facts about a recorded reply other than its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Message, Origin
from reasoning_store.conversation.chunks import Chunk, ReasoningChunk, TextChunk, ToolCallChunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_mapping
from reasoning_store.egress.request import Request
from reasoning_store.ingress.normalizer import TagMode
from reasoning_store.ledger.encode import MOST_OF_DRAFT

if TYPE_CHECKING:
    from reasoning_store.sessions.view import ContextOptions, SessionView


def has_more_than_origin(message: Message) -> bool:
    """Whether anything but the origin has arrived."""
    return bool(
        message.blocks
        or message.usage is not None
        or message.finish_reason is not None
        or message.metadata
    )


def origin_and_tags(
    view: SessionView, request: Request | None, options: ContextOptions
) -> tuple[Origin, TagMode]:
    """Return the model that a reply comes from, and whether its text is searched for tags."""
    if request is None:
        return view.target(options).origin, view.policy(options).settings.tags
    if not isinstance(request, Request):
        raise InvalidCall(
            f"request: the Request of build_request(), not {type(request).__name__}",
            hint="without one, name the provider and the model",
        )
    return request.target, request.settings.tags


def request_facts(to: Origin, request: Request | None) -> dict[str, Any]:
    """Return the stored facts of the request that a reply answers; its address has no login."""
    facts: dict[str, Any] = {
        "provider": to.provider,
        "model": to.model,
        "api": to.api,
        "baseUrl": to.base_url,
    }
    if request is not None:
        facts |= {"settings": request.settings.by_key(), "digest": request.digest}
        facts["tokens"] = request.tokens.effective
        if request.chain is not None:
            facts["chain"] = request.chain
        layers = {key: item.layer for key, item in request.settings.resolved().items()}
        facts["chosen"] = [key for key, layer in layers.items() if layer != "default"]
    return facts


def check_metadata(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what an application stores with a reply, if JSON can hold it and it is small."""
    if given is None:
        return None
    metadata = check_mapping("metadata", given)
    if len(codec.dumps(metadata).encode()) > MOST_OF_DRAFT:
        raise InvalidCall(
            f"metadata: more than {MOST_OF_DRAFT} bytes of JSON",
            hint="store a key here, and the data in a table of your own",
        )
    return {name: value for name, value in metadata.items() if value is not None} or None


class ReplyTimes:
    """How long a streamed reply took to its first token, and for how long it thought.

    Times are seconds of a clock that only goes forward. A reply thinks from the first sign of a
    thought to the first chunk of another kind.
    """

    def __init__(self) -> None:
        self._began = self._last = 0.0
        self._first: float | None = None
        self._thought: float | None = None
        self._thinks = False

    def begin(self, now: float) -> None:
        self._began = now

    def note_chunks(self, chunks: Iterable[Chunk], now: float) -> None:
        """Note the chunks of one event."""
        if self._thinks:
            self._thought = (self._thought or 0.0) + now - self._last
        self._last = now
        for chunk in chunks:
            if chunk.choice or not isinstance(chunk, ReasoningChunk | TextChunk | ToolCallChunk):
                continue
            if self._first is None and not (isinstance(chunk, ReasoningChunk) and not chunk.text):
                self._first = now
            self._thinks = isinstance(chunk, ReasoningChunk) and chunk.phase != "end"
            if self._thinks and self._thought is None:
                self._thought = 0.0

    def to_annotations(self) -> dict[str, float]:
        """Return the times as JSON has them; none of a reply of which nothing was streamed."""
        took = None if self._first is None else self._first - self._began
        times = {"secondsThought": self._thought, "secondsToFirstToken": took}
        return {name: round(time, 3) for name, time in times.items() if time is not None}
