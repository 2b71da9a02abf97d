"""The streams that a recording reads: the ones it refuses, and how it closes one."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from reasoning_store.conversation import json_values
from reasoning_store.conversation.errors import InvalidCall

_FRAMING = ("data:", "event:", "id:", "retry:", ":")
_OURS = "append(message) stores a message; a recording reads the provider's events"


@contextmanager
def noting_failure(error: BaseException | None) -> Iterator[None]:
    """Close a stream here: a failure becomes a note on ``error``, or is raised without one."""
    try:
        yield
    except Exception as failure:
        if error is None:
            raise
        error.add_note(f"the stream could not be closed: {type(failure).__name__}")


def is_whole(given: Any) -> bool:
    """Whether this is a whole response: a mapping, or an SDK's object that is no stream."""
    if isinstance(given, Mapping):
        return True
    # Such objects can be iterated, too: they give their fields.
    dumps = callable(getattr(given, "model_dump", None))
    return dumps and not isinstance(given, Iterator | AsyncIterator)


class _FedStream:
    """The stream of a recording that is fed: it cannot be iterated."""

    def __repr__(self) -> str:
        return "FED"

    def __iter__(self) -> Iterator[Any]:
        raise InvalidCall(
            "this recording has no stream to iterate", hint="feed(event), then finish()"
        )


FED: Final = _FedStream()


def check_fed(stream: Any, *, is_begun: bool) -> None:
    """Refuse to feed a recording that has a stream, or one that is not under ``with``."""
    if stream is not FED:
        raise InvalidCall(
            "this recording reads its own stream", hint="record() without one can be fed"
        )
    if not is_begun:
        raise InvalidCall(
            "feed a recording inside a with block", hint="with session.record(...) as reply"
        )


def check_stream(stream: Any, *, awaited: bool) -> None:
    """Refuse a value that gives no events; ``awaited`` if it may be asynchronous."""
    if isinstance(stream, str | bytes | bytearray):
        raise InvalidCall(
            "record() reads provider events, not text",
            hint="append(rs.normalize_response(text)) stores a whole answer",
        )
    if is_whole(stream) or isinstance(stream, Iterable):
        return
    if isinstance(stream, AsyncIterable):
        if awaited:
            return
        raise InvalidCall("this stream is asynchronous", hint="record it with rs.AsyncStore")
    if isinstance(stream, Awaitable):
        raise InvalidCall("this stream was not awaited", hint="record(await client...create(...))")
    raise InvalidCall(
        f"the stream must be iterable, not {type(stream).__name__}",
        hint=_OURS if _is_ours(stream) else "enter a context manager first: with ... as stream",
    )


def check_first(event: Any) -> None:
    """Refuse a stream whose first event is no event: bytes, a line, text, or ours."""
    if isinstance(event, bytes | bytearray | memoryview) or (
        isinstance(event, str) and (event.startswith(_FRAMING) or json_values.is_object(event))
    ):
        raise InvalidCall(
            "this stream gives bytes or lines, not events",
            hint="JSONEvents and NDJSONDecoder of reasoning_store make events of them",
        )
    if isinstance(event, str):
        raise InvalidCall(
            "this stream gives pieces of text, not events",
            hint="record the provider's events, and take the text from the chunks you get",
        )
    if _is_ours(event):
        raise InvalidCall(
            f"this stream gives {type(event).__name__} objects, not events", hint=_OURS
        )


def _is_ours(given: Any) -> bool:
    """Whether this is a message or a chunk, which a recording makes and does not read."""
    return type(given).__module__.partition(".")[0] == __name__.partition(".")[0]
