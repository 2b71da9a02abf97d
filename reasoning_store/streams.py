"""What may be given to a recording: a stream of events, or a whole response.

A request made without ``stream=True`` is answered in one piece, which is recorded as it is.
Everything else that is no stream is refused before anything is written, since whatever can
be iterated would otherwise be stored as a reply that says nothing.

It knows what Python calls a stream. It must not know a provider's words or the store.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager
from typing import Any

from reasoning_store import codec
from reasoning_store.errors import UsageError

_FRAMING = ("data:", "event:", "id:", "retry:", ":")
_OURS = "append(message) stores a message; a recording reads the provider's events"


def is_whole(given: Any) -> bool:
    """Whether this is a whole response: a mapping, or an SDK's object that is no stream."""
    if isinstance(given, Mapping):
        return True
    # Such objects can be iterated, too: they give their fields.
    dumps = callable(getattr(given, "model_dump", None))
    return dumps and not isinstance(given, Iterator | AsyncIterator)


def check(given: Any, *, awaited: bool) -> None:
    """Refuse what no events can come from; ``awaited`` where it may be asynchronous."""
    if isinstance(given, str | bytes | bytearray):
        raise UsageError(
            "text is no stream of events",
            hint="append(rs.normalize_response(text)) stores a whole answer",
        )
    if is_whole(given) or isinstance(given, Iterable):
        return
    if isinstance(given, AsyncIterable):
        if awaited:
            return
        raise UsageError("this stream is asynchronous", hint="record it with rs.AsyncStore")
    if isinstance(given, Awaitable):
        raise UsageError("this stream was not awaited", hint="record(await client...create(...))")
    raise UsageError(
        f"a stream is iterated, and {type(given).__name__} cannot be",
        hint=_OURS
        if _is_ours(given)
        else "what is a context manager is entered first: with ... as stream",
    )


def _is_ours(given: Any) -> bool:
    """Whether this is a message or a chunk, which a recording makes and does not read."""
    return type(given).__module__.partition(".")[0] == __name__.partition(".")[0]


def check_first(event: Any) -> None:
    """Refuse a stream whose first event is a piece of what a socket gives, or of an answer.

    Or something that was read already.
    """
    if isinstance(event, bytes | bytearray | memoryview) or (
        isinstance(event, str) and (event.startswith(_FRAMING) or codec.is_object(event))
    ):
        raise UsageError(
            "this stream gives bytes or lines, not events",
            hint="reasoning_store.wire.sse turns them into events: JSONEvents, NDJSONDecoder",
        )
    if isinstance(event, str):
        raise UsageError(
            "this stream gives pieces of text, not events",
            hint="record the provider's events, and take the text from the chunks you get",
        )
    if _is_ours(event):
        raise UsageError(
            f"this stream gives {type(event).__name__} objects, not events", hint=_OURS
        )


def close(stream: Any, error: BaseException | None = None) -> None:
    """Close a stream that can be closed; a list cannot.

    Where it cannot be closed, that takes no other ``error``'s place.
    """
    closing = getattr(stream, "close", None)
    if callable(closing):
        with kept(error):
            closing()


@contextmanager
def kept(error: BaseException | None) -> Iterator[None]:
    """Close a stream here: what goes wrong is noted on ``error``, or raised where there is none."""
    try:
        yield
    except Exception as failure:
        if error is None:
            raise
        error.add_note(f"the stream could not be closed: {type(failure).__name__}")
